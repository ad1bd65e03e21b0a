//! Changes of the schema, and the checks of USE and TRUNCATE.
//!
//! A plan keeps types as they were written: they are resolved when the statement runs, against the
//! schema of that moment, as Cassandra does. So `CREATE TABLE IF NOT EXISTS` of a table that exists
//! passes whatever its types are, and a prepared statement sees types that were made after it.

mod index;
mod mask;
mod raw_type;
mod unserved;

use std::sync::Arc;

use schema::change::{Action, ColumnSpec, CreateTable, TableAlteration, TypeAlteration};
use schema::{
    ChangeOptions, ColumnMask, Keyspace, PropertyValue, Schema, SchemaChange, SchemaError, TableId,
};
use types::CqlType;

use crate::ast::{self, NativeType, QualifiedName, RawType, Statement, TableChange, TypeChange};
use crate::error::CqlError;
use crate::scope::Scope;
use crate::system_keyspaces::is_local_system;
use unserved::Unserved;

/// A change of the schema.
#[derive(Clone, Debug)]
pub struct Ddl {
    keyspace: String,
    body: Body,
}

/// Which statement changes the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "CQL's words")]
pub enum DdlKind {
    CreateKeyspace,
    AlterKeyspace,
    DropKeyspace,
    CreateTable,
    AlterTable,
    DropTable,
    CreateType,
    AlterType,
    DropType,
    CreateIndex,
    DropIndex,
    CreateView,
    AlterView,
    DropView,
    CreateFunction,
    DropFunction,
    CreateAggregate,
    DropAggregate,
    CreateTrigger,
    DropTrigger,
}

#[derive(Clone, Debug)]
enum Body {
    /// Nothing in it depends on the schema.
    Ready(Action),
    CreateTable(Box<ast::CreateTable>),
    AddColumns(AddColumns),
    Mask(MaskColumn),
    CreateType(ast::CreateType),
    AddField(AddField),
    CreateIndex(Box<ast::CreateIndex>),
    DropIndex(ast::DropObject),
    Unserved(Unserved),
}

/// `ALTER TABLE .. ADD`.
#[derive(Clone, Debug)]
struct AddColumns {
    table: String,
    if_exists: bool,
    if_not_exists: bool,
    columns: Vec<ast::ColumnDefinition>,
}

/// `ALTER TABLE .. ALTER .. MASKED WITH`, or `DROP MASKED`.
#[derive(Clone, Debug)]
struct MaskColumn {
    table: String,
    if_exists: bool,
    if_column_exists: bool,
    column: String,
    mask: Option<ast::ColumnMask>,
}

/// `ALTER TYPE .. ADD`.
#[derive(Clone, Debug)]
struct AddField {
    user_type: String,
    if_exists: bool,
    if_not_exists: bool,
    field: String,
    data_type: RawType,
}

impl From<SchemaError> for CqlError {
    fn from(error: SchemaError) -> Self {
        let message = error.to_string();
        match error {
            SchemaError::Syntax(_) => Self::Syntax(message),
            SchemaError::Unauthorized(_) => Self::Unauthorized(message),
            SchemaError::Invalid(_) => Self::Invalid(message),
            SchemaError::Config(_) => Self::Config(message),
            SchemaError::AlreadyExists { keyspace, table } => {
                Self::AlreadyExists { keyspace, table, message }
            }
        }
    }
}

/// Is there a keyspace to USE?
pub fn check_use(keyspace: &str, schema: &Schema) -> Result<(), CqlError> {
    match schema.keyspace(keyspace) {
        Some(_) => Ok(()),
        None => Err(CqlError::invalid(format!("Keyspace '{keyspace}' does not exist"))),
    }
}

/// Can this be truncated?
pub fn check_truncate(table: &schema::Table) -> Result<(), CqlError> {
    if table.kind == schema::TableKind::View {
        return Err(CqlError::invalid(
            "Cannot TRUNCATE materialized view directly; must truncate base table instead",
        ));
    }
    if table.is_virtual() && table.name != schema::system::SYSTEM_LOGS {
        return Err(CqlError::invalid(format!(
            "Truncation is not supported by table {}",
            table.qualified_name()
        )));
    }
    Ok(())
}

fn properties(properties: &[ast::Property]) -> Vec<(String, PropertyValue)> {
    let value = |value: &ast::PropertyValue| match value {
        ast::PropertyValue::Text(text) => PropertyValue::Text(text.clone()),
        ast::PropertyValue::Map(map) => PropertyValue::Map(map.clone()),
    };
    properties.iter().map(|property| (property.name.clone(), value(&property.value))).collect()
}

/// A type as messages show it, in a statement about `keyspace`.
pub(crate) fn shown_type(raw: &RawType, keyspace: &str) -> String {
    raw_type::shown_in(raw, keyspace)
}

fn written(name: &QualifiedName) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", name.name),
        None => name.name.clone(),
    }
}

impl Ddl {
    /// Plans a statement that changes the schema.
    pub(crate) fn prepare(statement: &Statement, scope: &Scope<'_>) -> Result<Self, CqlError> {
        let of = |name: &QualifiedName| scope.keyspace_of(name).map(str::to_owned);
        let (keyspace, action) = match statement {
            Statement::CreateKeyspace(create) => {
                let properties = properties(&create.properties);
                let if_not_exists = create.if_not_exists;
                (create.name.clone(), Action::CreateKeyspace { if_not_exists, properties })
            }
            Statement::AlterKeyspace(alter) => {
                let properties = properties(&alter.properties);
                let action = Action::AlterKeyspace { if_exists: alter.if_exists, properties };
                (alter.name.clone(), action)
            }
            Statement::DropKeyspace(drop) => {
                (drop.name.clone(), Action::DropKeyspace { if_exists: drop.if_exists })
            }
            Statement::DropTable(drop) => {
                let (table, if_exists) = (drop.name.name.clone(), drop.if_exists);
                (of(&drop.name)?, Action::DropTable { table, if_exists })
            }
            Statement::DropType(drop) => {
                let (name, if_exists) = (drop.name.name.clone(), drop.if_exists);
                (of(&drop.name)?, Action::DropType { name, if_exists })
            }
            Statement::CreateTable(create) => {
                let keyspace = of(&create.name)?;
                if create.primary_key.is_none() {
                    return Err(CqlError::invalid(format!(
                        "No PRIMARY KEY specifed for table '{}' (exactly one required)",
                        written(&create.name)
                    )));
                }
                return Ok(Self { keyspace, body: Body::CreateTable(create.clone()) });
            }
            Statement::AlterTable(alter) => {
                return Ok(Self { keyspace: of(&alter.name)?, body: alter_table(alter) });
            }
            Statement::CreateType(create) => {
                let keyspace = of(&create.name)?;
                return Ok(Self { keyspace, body: Body::CreateType(create.clone()) });
            }
            Statement::AlterType(alter) => {
                return Ok(Self { keyspace: of(&alter.name)?, body: alter_type(alter) });
            }
            Statement::CreateIndex(create) => {
                let keyspace = of(&create.table)?;
                return Ok(Self { keyspace, body: Body::CreateIndex(create.clone()) });
            }
            Statement::DropIndex(drop) => {
                return Ok(Self { keyspace: of(&drop.name)?, body: Body::DropIndex(drop.clone()) });
            }
            other => {
                let (keyspace, unserved) = Unserved::prepare(other, scope)?;
                return Ok(Self { keyspace, body: Body::Unserved(unserved) });
            }
        };
        Ok(Self { keyspace, body: Body::Ready(action) })
    }

    /// Is it CREATE INDEX?
    pub fn creates_index(&self) -> bool {
        matches!(self.body, Body::CreateIndex(_))
    }

    /// Of the system's own keyspaces the schema says so itself, but for what it knows nothing of or
    /// looks for first.
    fn check_keyspace(&self) -> Result<(), CqlError> {
        let looks =
            matches!(self.body, Body::CreateIndex(_) | Body::DropIndex(_) | Body::Unserved(_));
        if looks && is_local_system(&self.keyspace) {
            return Err(CqlError::invalid(format!(
                "System keyspace '{}' is not user-modifiable",
                self.keyspace
            )));
        }
        Ok(())
    }

    /// Which statement it is, and the name of what it changes within the keyspace; none of an
    /// index without a name.
    pub fn subject(&self) -> (DdlKind, Option<&str>) {
        match &self.body {
            Body::Ready(action) => subject(action),
            Body::CreateTable(create) => (DdlKind::CreateTable, Some(&create.name.name)),
            Body::AddColumns(add) => (DdlKind::AlterTable, Some(&add.table)),
            Body::Mask(mask) => (DdlKind::AlterTable, Some(&mask.table)),
            Body::CreateType(create) => (DdlKind::CreateType, Some(&create.name.name)),
            Body::AddField(add) => (DdlKind::AlterType, Some(&add.user_type)),
            Body::CreateIndex(create) => (DdlKind::CreateIndex, create.name.as_deref()),
            Body::DropIndex(drop) => (DdlKind::DropIndex, Some(&drop.name.name)),
            Body::Unserved(unserved) => unserved.subject(),
        }
    }

    /// The keyspace that it changes.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    /// The change, its types resolved against the schema that it will be applied to; `None` where
    /// there is nothing to change. What the types have no part in is left to
    /// [`schema::change::apply`].
    pub fn change(
        &self,
        schema: &Schema,
        options: &ChangeOptions,
    ) -> Result<Option<SchemaChange>, CqlError> {
        self.check_keyspace()?;
        let resolver = Resolver {
            name: &self.keyspace,
            keyspace: schema.keyspace(&self.keyspace).map(AsRef::as_ref),
            schema,
            options,
        };
        let action = match &self.body {
            Body::Ready(action) => action.clone(),
            Body::CreateTable(create) => resolver.create_table(create)?,
            Body::AddColumns(add) => resolver.add_columns(add)?,
            Body::Mask(mask) => resolver.mask_column(mask)?,
            Body::CreateType(create) => resolver.create_type(create)?,
            Body::AddField(add) => resolver.add_field(add)?,
            Body::CreateIndex(create) => {
                let release = schema.release();
                match index::create(create, &self.keyspace, resolver.keyspace, release)? {
                    Some(action) => action,
                    None => return Ok(None),
                }
            }
            Body::DropIndex(drop) => match index::drop(drop, &self.keyspace, resolver.keyspace)? {
                Some(action) => action,
                None => return Ok(None),
            },
            Body::Unserved(unserved) => {
                unserved.outcome(&self.keyspace, schema)?;
                return Ok(None);
            }
        };
        Ok(Some(SchemaChange { keyspace: self.keyspace.clone(), action }))
    }
}

/// The statement that has only an action, and what it changes.
fn subject(action: &Action) -> (DdlKind, Option<&str>) {
    match action {
        Action::CreateKeyspace { .. } => (DdlKind::CreateKeyspace, None),
        Action::AlterKeyspace { .. } => (DdlKind::AlterKeyspace, None),
        Action::DropKeyspace { .. } => (DdlKind::DropKeyspace, None),
        Action::AlterTable { table, .. } => (DdlKind::AlterTable, Some(table)),
        Action::DropTable { table, .. } => (DdlKind::DropTable, Some(table)),
        Action::AlterType { name, .. } => (DdlKind::AlterType, Some(name)),
        Action::DropType { name, .. } => (DdlKind::DropType, Some(name)),
        Action::CreateType { .. } => (DdlKind::CreateType, None),
        Action::CreateIndex(_) => (DdlKind::CreateIndex, None),
        Action::DropIndex { .. } => (DdlKind::DropIndex, None),
        // no statement of ours has another one
        Action::CreateTable(_) | Action::Unsupported(_) => (DdlKind::CreateTable, None),
    }
}

fn alter_table(alter: &ast::AlterTable) -> Body {
    let (table, if_exists) = (alter.name.name.clone(), alter.if_exists);
    let alteration = match &alter.change {
        TableChange::Add { if_not_exists, columns } => {
            let (if_not_exists, columns) = (*if_not_exists, columns.clone());
            return Body::AddColumns(AddColumns { table, if_exists, if_not_exists, columns });
        }
        TableChange::AlterType { .. } => TableAlteration::AlterColumnType,
        TableChange::Mask { column, if_exists, mask } => {
            let (column, mask) = (column.clone(), mask.clone());
            return Body::Mask(MaskColumn {
                table,
                if_exists: alter.if_exists,
                if_column_exists: *if_exists,
                column,
                mask,
            });
        }
        TableChange::Drop { if_exists, columns, timestamp } => {
            let (columns, timestamp) = (columns.clone(), *timestamp);
            TableAlteration::DropColumns { if_exists: *if_exists, columns, timestamp }
        }
        TableChange::Rename { if_exists, columns } => {
            let (if_exists, columns) = (*if_exists, columns.clone());
            TableAlteration::RenameColumns { if_exists, columns }
        }
        TableChange::DropCompactStorage => TableAlteration::DropCompactStorage,
        TableChange::Properties(given) => TableAlteration::Options(properties(given)),
    };
    Body::Ready(Action::AlterTable { table, if_exists, alteration })
}

fn alter_type(alter: &ast::AlterType) -> Body {
    let (name, if_exists) = (alter.name.name.clone(), alter.if_exists);
    let alteration = match &alter.change {
        TypeChange::Add { if_not_exists, field, data_type } => {
            return Body::AddField(AddField {
                user_type: name,
                if_exists,
                if_not_exists: *if_not_exists,
                field: field.clone(),
                data_type: data_type.clone(),
            });
        }
        TypeChange::AlterField { .. } => TypeAlteration::AlterFieldType,
        TypeChange::Rename { if_exists, fields } => {
            TypeAlteration::RenameFields { if_exists: *if_exists, fields: fields.clone() }
        }
    };
    Body::Ready(Action::AlterType { name, if_exists, alteration })
}

/// Stands for types that nobody looks at, because the statement is answered before.
const ANY: CqlType = CqlType::Int;

/// Resolves types, and puts what is wrong with them in its place among the other errors.
struct Resolver<'a> {
    name: &'a str,
    keyspace: Option<&'a Keyspace>,
    schema: &'a Schema,
    options: &'a ChangeOptions,
}

impl Resolver<'_> {
    /// What is wrong with a type counts only where the statement passes what is looked at before:
    /// `before` is a statement that passes or fails just that.
    fn settle(&self, before: Action, error: CqlError) -> CqlError {
        match self.probe(before) {
            Some(earlier) => earlier.into(),
            None => error,
        }
    }

    fn probe(&self, action: Action) -> Option<SchemaError> {
        let change = SchemaChange { keyspace: self.name.to_owned(), action };
        schema::change::apply(self.schema, &change, 0, TableId([0; 16]), self.options).err()
    }

    fn create_table(&self, create: &ast::CreateTable) -> Result<Action, CqlError> {
        let key = create.primary_key.as_ref();
        let mut action = CreateTable {
            table: create.name.name.clone(),
            if_not_exists: create.if_not_exists,
            columns: create.columns.iter().map(|column| column_spec(column, ANY, None)).collect(),
            partition_key: key.map(|key| key.partition.clone()).unwrap_or_default(),
            clustering: key.map(|key| key.clustering.clone()).unwrap_or_default(),
            clustering_order: create.options.clustering_order.clone(),
            properties: properties(&create.options.properties),
            compact_storage: create.options.compact_storage,
        };
        if !self.options.masking && create.columns.iter().any(|column| column.mask.is_some()) {
            // looked at before the schema is, but after the options
            return Err(match self.probe(bare_table(&action)) {
                Some(error @ (SchemaError::Syntax(_) | SchemaError::Config(_))) => error.into(),
                Some(error @ SchemaError::Unauthorized(_)) => error.into(),
                _ => CqlError::invalid(mask::DISABLED),
            });
        }
        let keyspace = self.keyspace.filter(|ks| ks.table_or_view(&action.table).is_none());
        let Some(keyspace) = keyspace else { return Ok(Action::CreateTable(action)) };
        let mut resolved = std::collections::BTreeMap::new();
        for column in &create.columns {
            resolved.insert(&column.name, self.column(column, keyspace));
        }
        for column in &mut action.columns {
            if let Some(Ok(spec)) = resolved.get(&column.name) {
                *column = spec.clone();
            }
        }
        match resolved.into_values().find_map(Result::err) {
            Some(error) => Err(self.settle(bare_table(&action), error)),
            None => self.by_classes(create, action),
        }
    }

    /// What the class that a column's type is given by says beside the type: a clustering column's
    /// order. No class makes a table one of counters.
    fn by_classes(
        &self,
        create: &ast::CreateTable,
        mut action: CreateTable,
    ) -> Result<Action, CqlError> {
        let is_reversed = |name: &String| {
            let column = create.columns.iter().find(|column| column.name == *name);
            column.is_some_and(|column| raw_type::is_reversed(&column.data_type))
        };
        if action.clustering.iter().any(is_reversed) {
            if action.clustering_order.is_empty() {
                let names = action.clustering.iter().cloned();
                action.clustering_order = names.map(|name| (name, false)).collect();
            }
            for (name, descends) in &mut action.clustering_order {
                *descends |= is_reversed(name);
            }
        }
        let named = |column: &ast::ColumnDefinition| {
            column.data_type == RawType::Native(NativeType::Counter)
        };
        let is_key =
            |name: &String| action.partition_key.contains(name) || action.clustering.contains(name);
        let counter = |column: &&ColumnSpec| column.ty == CqlType::Counter && !is_key(&column.name);
        match action.columns.iter().find(counter) {
            Some(column) if !create.columns.iter().any(named) => {
                let error = CqlError::Config(format!(
                    "{}.{}: Cannot have a counter column (\"{}\") in a non counter table",
                    self.name, action.table, column.name
                ));
                Err(self.settle(bare_table(&action), error))
            }
            _ => Ok(Action::CreateTable(action)),
        }
    }

    fn add_columns(&self, add: &AddColumns) -> Result<Action, CqlError> {
        let action = |columns| {
            let alteration =
                TableAlteration::AddColumns { if_not_exists: add.if_not_exists, columns };
            let (table, if_exists) = (add.table.clone(), add.if_exists);
            Action::AlterTable { table, if_exists, alteration }
        };
        let table = self.keyspace.and_then(|keyspace| keyspace.tables.get(&add.table));
        let keyspace = self.keyspace.filter(|_| table.is_some());
        let mut columns = Vec::with_capacity(add.columns.len());
        for column in &add.columns {
            let spec = match keyspace {
                None => Ok(column_spec(column, ANY, None)),
                Some(keyspace) => self.column(column, keyspace),
            };
            match spec {
                Ok(spec) => columns.push(spec),
                // a column is looked at when those before it are added; the table as a whole at the
                // end
                Err(error) => {
                    return Err(match self.probe(action(columns)) {
                        None | Some(SchemaError::Config(_)) => error,
                        Some(earlier) => earlier.into(),
                    });
                }
            }
        }
        Ok(action(columns))
    }

    /// A column with its type, and with its mask whether masking is enabled or not, as Cassandra
    /// adds it.
    fn column(
        &self,
        column: &ast::ColumnDefinition,
        keyspace: &Keyspace,
    ) -> Result<ColumnSpec, CqlError> {
        let ty = raw_type::resolve(&column.data_type, keyspace)?;
        let mask = column.mask.as_ref();
        let mask = mask.map(|mask| mask::resolve(mask, self.name, &column.name, &ty, self.schema));
        Ok(column_spec(column, ty, mask.transpose()?))
    }

    fn mask_column(&self, change: &MaskColumn) -> Result<Action, CqlError> {
        if change.mask.is_some() && !self.options.masking {
            return Err(CqlError::invalid(mask::DISABLED));
        }
        let table = self.keyspace.and_then(|keyspace| keyspace.tables.get(&change.table));
        let column = table.and_then(|table| table.column(&change.column));
        // without a column the schema has its own say
        let mask = match (&change.mask, column) {
            (Some(mask), Some(column)) => {
                Some(mask::resolve(mask, self.name, &column.name, &column.ty, self.schema)?)
            }
            _ => None,
        };
        Ok(Action::AlterTable {
            table: change.table.clone(),
            if_exists: change.if_exists,
            alteration: TableAlteration::Mask {
                if_exists: change.if_column_exists,
                column: change.column.clone(),
                mask,
            },
        })
    }

    fn create_type(&self, create: &ast::CreateType) -> Result<Action, CqlError> {
        let action = |fields| Action::CreateType {
            name: create.name.name.clone(),
            fields,
            if_not_exists: create.if_not_exists,
        };
        let any = || create.fields.iter().map(|(name, _)| (name.clone(), ANY)).collect();
        let keyspace = self.keyspace.filter(|ks| !ks.types.contains_key(&create.name.name));
        let Some(keyspace) = keyspace else { return Ok(action(any())) };
        let fields = || {
            create.fields.iter().try_for_each(|(_, ty)| check_field(ty))?;
            let fields = create.fields.iter();
            fields
                .map(|(name, ty)| Ok((name.clone(), raw_type::resolve(ty, keyspace)?)))
                .collect::<Result<Vec<_>, CqlError>>()
        };
        match fields() {
            Ok(fields) => Ok(action(fields)),
            Err(error) => Err(self.settle(action(any()), error)),
        }
    }

    fn add_field(&self, add: &AddField) -> Result<Action, CqlError> {
        let action = |alteration| Action::AlterType {
            name: add.user_type.clone(),
            if_exists: add.if_exists,
            alteration,
        };
        let adding = |ty| {
            let (if_not_exists, name) = (add.if_not_exists, add.field.clone());
            action(TypeAlteration::AddField { if_not_exists, name, ty })
        };
        let nothing = || action(TypeAlteration::RenameFields { if_exists: true, fields: vec![] });
        let found = self.keyspace.and_then(|ks| Some((ks, ks.types.get(&add.user_type)?)));
        let Some((keyspace, user_type)) = found else { return Ok(adding(ANY)) };
        check_field(&add.data_type).map_err(|error| self.settle(nothing(), error))?;
        if user_type.fields.iter().any(|(name, _)| *name == add.field) {
            return Ok(adding(ANY));
        }
        let ty = raw_type::resolve(&add.data_type, keyspace)
            .map_err(|error| self.settle(nothing(), error))?;
        let circular = ty.any(&mut |ty| match ty {
            CqlType::Udt { definition, .. } => definition.name == user_type.name,
            _ => false,
        });
        if circular {
            let error = CqlError::invalid(format!(
                "Cannot add new field {} of type {} to user type {}.{} as it would create a circular \
                 reference",
                add.field,
                raw_type::shown_in(&add.data_type, &keyspace.name),
                types::maybe_quote(&keyspace.name),
                types::maybe_quote(&user_type.name)
            ));
            return Err(self.settle(nothing(), error));
        }
        Ok(adding(ty))
    }
}

fn column_spec(
    column: &ast::ColumnDefinition,
    ty: CqlType,
    mask: Option<Arc<ColumnMask>>,
) -> ColumnSpec {
    ColumnSpec { name: column.name.clone(), ty, is_static: column.is_static, mask }
}

/// The statement with one key column only: nothing is wrong with it but perhaps its options.
fn bare_table(create: &CreateTable) -> Action {
    let key = "k".to_owned();
    Action::CreateTable(CreateTable {
        table: create.table.clone(),
        if_not_exists: create.if_not_exists,
        columns: vec![ColumnSpec { name: key.clone(), ty: ANY, is_static: false, mask: None }],
        partition_key: vec![key],
        properties: create.properties.clone(),
        ..CreateTable::default()
    })
}

/// What no field may be, seen from the text alone.
fn check_field(raw: &RawType) -> Result<(), CqlError> {
    match raw {
        RawType::Native(NativeType::Counter) => {
            Err(CqlError::invalid("A user type cannot contain counters"))
        }
        RawType::User(_) => Err(CqlError::invalid("A user type cannot contain non-frozen UDTs")),
        _ => Ok(()),
    }
}
