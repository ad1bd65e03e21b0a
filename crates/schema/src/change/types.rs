//! CREATE, ALTER and DROP TYPE.

use std::collections::BTreeSet;
use std::sync::Arc;

use types::{CqlType, UserType, maybe_quote};

use crate::change::{Context, Outcome, TypeAlteration};
use crate::column::Column;
use crate::error::SchemaError;
use crate::keyspace::Keyspace;
use crate::table::Table;

/// Does the type mention a user type of this name, at any depth?
fn mentions(ty: &CqlType, name: &str) -> bool {
    ty.any(&mut |ty| matches!(ty, CqlType::Udt { definition, .. } if definition.name == name))
}

/// The type with another definition of a user type in it.
fn updated(ty: &CqlType, new: &Arc<UserType>) -> CqlType {
    let inner = |ty: &Arc<CqlType>| Arc::new(updated(ty, new));
    match ty {
        CqlType::List { element, frozen } => {
            CqlType::List { element: inner(element), frozen: *frozen }
        }
        CqlType::Set { element, frozen } => {
            CqlType::Set { element: inner(element), frozen: *frozen }
        }
        CqlType::Map { key, value, frozen } => {
            CqlType::Map { key: inner(key), value: inner(value), frozen: *frozen }
        }
        CqlType::Vector { element, dimension } => {
            CqlType::Vector { element: inner(element), dimension: *dimension }
        }
        CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(|ty| updated(ty, new)).collect()),
        CqlType::Udt { definition, frozen } => {
            CqlType::Udt { definition: update_definition(definition, new), frozen: *frozen }
        }
        other => other.clone(),
    }
}

fn update_definition(definition: &Arc<UserType>, new: &Arc<UserType>) -> Arc<UserType> {
    if definition.name == new.name {
        return Arc::clone(new);
    }
    let fields = definition.fields.iter().map(|(name, ty)| (name.clone(), updated(ty, new)));
    Arc::new(UserType {
        keyspace: definition.keyspace.clone(),
        name: definition.name.clone(),
        fields: fields.collect(),
    })
}

/// The table with another definition of a user type; `None` if it does not mention it.
fn updated_table(table: &Table, new: &Arc<UserType>) -> Option<Arc<Table>> {
    if !table.columns().any(|column| mentions(&column.ty, &new.name)) {
        return None;
    }
    let mut builder = table.to_builder();
    for Column { ty, .. } in &mut builder.columns {
        *ty = updated(ty, new);
    }
    Some(Arc::new(builder.build()))
}

fn update_keyspace(keyspace: &mut Keyspace, new: &Arc<UserType>) {
    keyspace.types.insert(new.name.clone(), Arc::clone(new));
    for user_type in keyspace.types.values_mut() {
        if user_type.name != new.name
            && user_type.fields.iter().any(|(_, ty)| mentions(ty, &new.name))
        {
            *user_type = update_definition(user_type, new);
        }
    }
    for table in keyspace.tables.values_mut() {
        if let Some(updated) = updated_table(table, new) {
            *table = updated;
        }
    }
    for view in keyspace.views.values_mut() {
        if let Some(table) = updated_table(&view.table, new) {
            *view = Arc::new(crate::View { table, ..crate::View::clone(view) });
        }
    }
}

fn check_field(ty: &CqlType) -> Result<(), SchemaError> {
    match ty {
        CqlType::Counter => SchemaError::invalid("A user type cannot contain counters"),
        CqlType::Udt { frozen: false, .. } => {
            SchemaError::invalid("A user type cannot contain non-frozen UDTs")
        }
        _ => Ok(()),
    }
}

/// A type's name as in messages: with the keyspace of user types.
fn qualified(ty: &CqlType) -> String {
    match ty {
        CqlType::Udt { definition, frozen } => {
            let (keyspace, name) =
                (maybe_quote(&definition.keyspace), maybe_quote(&definition.name));
            if *frozen {
                format!("frozen<{keyspace}.{name}>")
            } else {
                format!("{keyspace}.{name}")
            }
        }
        other => other.cql_name(),
    }
}

impl Context<'_> {
    pub(super) fn create_type(
        &mut self,
        name: &str,
        fields: &[(String, CqlType)],
        if_not_exists: bool,
    ) -> Result<Outcome, SchemaError> {
        let keyspace = self.existing()?;
        if keyspace.types.contains_key(name) {
            if if_not_exists {
                return Ok(Outcome::Unchanged);
            }
            return SchemaError::invalid(format!("A user type with name '{name}' already exists"));
        }
        let mut seen = BTreeSet::new();
        for (field, _) in fields {
            if !seen.insert(field) {
                return SchemaError::invalid(format!(
                    "Duplicate field name '{field}' in type '{name}'"
                ));
            }
        }
        fields.iter().try_for_each(|(_, ty)| check_field(ty))?;
        let user_type = UserType {
            keyspace: self.keyspace.to_owned(),
            name: name.to_owned(),
            fields: fields.to_vec(),
        };
        let mut keyspace = Keyspace::clone(keyspace);
        keyspace.types.insert(name.to_owned(), Arc::new(user_type));
        Ok(Outcome::Changed(Box::new(keyspace)))
    }

    pub(super) fn alter_type(
        &mut self,
        name: &str,
        if_exists: bool,
        alteration: &TypeAlteration,
    ) -> Result<Outcome, SchemaError> {
        let current = self.current();
        let Some((keyspace, user_type)) =
            current.and_then(|keyspace| Some((keyspace, keyspace.types.get(name)?)))
        else {
            if if_exists {
                return Ok(Outcome::Unchanged);
            }
            return SchemaError::invalid(format!("Type {}.{name} doesn't exist", self.keyspace));
        };
        let altered = match alteration {
            TypeAlteration::AddField { if_not_exists, name, ty } => {
                add_field(keyspace, user_type, name, ty, *if_not_exists)?
            }
            TypeAlteration::RenameFields { if_exists, fields } => {
                Some(rename_fields(keyspace, user_type, fields, *if_exists)?)
            }
            TypeAlteration::AlterFieldType => {
                return SchemaError::invalid("Altering field types is no longer supported");
            }
        };
        let Some(altered) = altered else { return Ok(Outcome::Unchanged) };
        let mut keyspace = Keyspace::clone(keyspace);
        update_keyspace(&mut keyspace, &Arc::new(altered));
        Ok(Outcome::Changed(Box::new(keyspace)))
    }

    pub(super) fn drop_type(
        &mut self,
        name: &str,
        if_exists: bool,
    ) -> Result<Outcome, SchemaError> {
        let current = self.current();
        let Some(keyspace) = current.filter(|keyspace| keyspace.types.contains_key(name)) else {
            if if_exists {
                return Ok(Outcome::Unchanged);
            }
            return SchemaError::invalid(format!("Type '{}.{name}' doesn't exist", self.keyspace));
        };
        let used = |by: &str, names: Vec<String>| {
            if names.is_empty() {
                return Ok(());
            }
            SchemaError::invalid(format!(
                "Cannot drop user type '{}.{name}' as it is still used by {by} {}",
                self.keyspace,
                names.join(", ")
            ))
        };
        used("functions", functions_mentioning(keyspace, name))?;
        let types = keyspace.types.values().filter(|user_type| {
            user_type.name != name && user_type.fields.iter().any(|(_, ty)| mentions(ty, name))
        });
        used("user types", types.map(|user_type| user_type.name.clone()).collect())?;
        let tables = keyspace.tables.values();
        let tables = tables.filter(|table| table.columns().any(|c| mentions(&c.ty, name)));
        used("tables", tables.map(|table| table.name.clone()).collect())?;
        let mut keyspace = Keyspace::clone(keyspace);
        keyspace.types.remove(name);
        Ok(Outcome::Changed(Box::new(keyspace)))
    }
}

/// Functions and aggregates whose types, kept as text, mention a user type.
fn functions_mentioning(keyspace: &Keyspace, name: &str) -> Vec<String> {
    let text_mentions = |text: &str| {
        let mut found = false;
        let mut resolve = |_: Option<&str>, asked: &str| {
            found |= asked == name;
            keyspace.types.get(asked).cloned()
        };
        let parsed = CqlType::parse_cql_name(text, &mut resolve);
        found || parsed.is_ok_and(|ty| mentions(&ty, name))
    };
    let mut names = Vec::new();
    for (key, function) in &keyspace.functions {
        let mut texts = key.argument_types.iter().chain([&function.return_type]);
        if texts.any(|text| text_mentions(text)) {
            names.push(format!("{}.{}", keyspace.name, key.name));
        }
    }
    for (key, aggregate) in &keyspace.aggregates {
        let own = [&aggregate.return_type, &aggregate.state_type];
        if key.argument_types.iter().chain(own).any(|text| text_mentions(text)) {
            names.push(format!("{}.{}", keyspace.name, key.name));
        }
    }
    names
}

fn add_field(
    keyspace: &Keyspace,
    user_type: &UserType,
    name: &str,
    ty: &CqlType,
    if_not_exists: bool,
) -> Result<Option<UserType>, SchemaError> {
    check_field(ty)?;
    let full = format!("{}.{}", maybe_quote(&user_type.keyspace), maybe_quote(&user_type.name));
    if user_type.fields.iter().any(|(field, _)| field == name) {
        if if_not_exists {
            return Ok(None);
        }
        return SchemaError::invalid(format!(
            "Cannot add field {name} to type {full}: a field with name {name} already exists"
        ));
    }
    let adding =
        format!("Cannot add new field {name} of type {} to user type {full} as", qualified(ty));
    if mentions(ty, &user_type.name) {
        return SchemaError::invalid(format!("{adding} it would create a circular reference"));
    }
    let views = keyspace.views.values().map(|view| &view.table);
    let keyed: Vec<String> = keyspace
        .tables
        .values()
        .chain(views)
        .filter(|table| table.partition_key.iter().any(|c| mentions(&c.ty, &user_type.name)))
        .map(|table| table.qualified_name())
        .collect();
    if !keyed.is_empty() {
        return SchemaError::invalid(format!(
            "{adding} the type is being used in partition key by the following tables: {}",
            keyed.join(", ")
        ));
    }
    let mut altered = user_type.clone();
    altered.fields.push((name.to_owned(), ty.clone()));
    Ok(Some(altered))
}

fn rename_fields(
    keyspace: &Keyspace,
    user_type: &UserType,
    renames: &[(String, String)],
    if_exists: bool,
) -> Result<UserType, SchemaError> {
    let full = format!("{}.{}", maybe_quote(&user_type.keyspace), maybe_quote(&user_type.name));
    let initial = keyspace.aggregates.iter().filter(|(_, a)| {
        let mut resolve = |_: Option<&str>, name: &str| keyspace.types.get(name).cloned();
        let state = CqlType::parse_cql_name(&a.state_type, &mut resolve);
        a.initcond.is_some() && state.is_ok_and(|ty| mentions(&ty, &user_type.name))
    });
    let initial: Vec<String> =
        initial.map(|(key, _)| format!("{}.{}", keyspace.name, key.name)).collect();
    if !initial.is_empty() {
        return SchemaError::invalid(format!(
            "Cannot alter user type {full} as it is still used in INITCOND by aggregates {}",
            initial.join(", ")
        ));
    }
    let mut altered = user_type.clone();
    for (from, to) in renames {
        let at = user_type.fields.iter().position(|(field, _)| field == from);
        match at.and_then(|at| altered.fields.get_mut(at)) {
            Some((field, _)) => *field = to.clone(),
            None if if_exists => {}
            None => {
                let text = format!("Unkown field {from} in user type {full}");
                return SchemaError::invalid(text);
            }
        }
    }
    for (name, _) in &altered.fields {
        if altered.fields.iter().filter(|(other, _)| other == name).count() > 1 {
            // the keyspace stands where the type should: Cassandra's own slip
            return SchemaError::invalid(format!(
                "Duplicate field name {name} in type {}",
                user_type.keyspace
            ));
        }
    }
    Ok(altered)
}
