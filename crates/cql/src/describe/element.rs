//! Elements of the schema, in the order in which DESCRIBE shows them.

use std::cmp::Ordering;

use schema::{Aggregate, Function, Index, Keyspace, Release, Signature, Table, View};
use types::{CqlType, UserType, java_order, maybe_quote};

/// An element of the schema.
pub(super) enum Element<'a> {
    Keyspace(&'a Keyspace),
    Type(&'a Keyspace, &'a UserType),
    Function(&'a Keyspace, &'a Signature, &'a Function),
    Aggregate(&'a Keyspace, &'a Signature, &'a Aggregate),
    Table(&'a Keyspace, &'a Table),
    Index(&'a Keyspace, &'a Table, &'a Index),
    View(&'a Keyspace, &'a View),
}

/// The order of names: without regard to case.
pub(super) fn by_name(a: &str, b: &str) -> Ordering {
    java_order::strings_without_case(a, b)
}

fn sorted<'a, T>(
    items: impl Iterator<Item = T>,
    name: impl Fn(&T) -> String,
    element: impl Fn(T) -> Element<'a>,
) -> Vec<Element<'a>> {
    let mut named: Vec<(String, T)> = items.map(|item| (name(&item), item)).collect();
    named.sort_by(|(a, _), (b, _)| by_name(a, b));
    named.into_iter().map(|(_, item)| element(item)).collect()
}

fn signature(key: &Signature) -> String {
    format!("{}({})", key.name, key.argument_types.join(", "))
}

/// Its tables.
pub(super) fn tables(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let tables = keyspace.tables.values();
    sorted(tables, |table| table.name.clone(), |table| Element::Table(keyspace, table))
}

/// Its types.
pub(super) fn types(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let types = in_their_order(keyspace).into_iter();
    sorted(types, |ty| ty.name.clone(), |ty| Element::Type(keyspace, ty))
}

/// Its functions.
pub(super) fn functions(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let functions = keyspace.functions.iter();
    sorted(
        functions,
        |(key, _)| signature(key),
        |(key, function)| Element::Function(keyspace, key, function),
    )
}

/// Its aggregates.
pub(super) fn aggregates(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let aggregates = keyspace.aggregates.iter();
    sorted(
        aggregates,
        |(key, _)| signature(key),
        |(key, aggregate)| Element::Aggregate(keyspace, key, aggregate),
    )
}

/// A table, its indexes and its views.
pub(super) fn with_table<'a>(keyspace: &'a Keyspace, table: &'a Table) -> Vec<Element<'a>> {
    let mut elements = vec![Element::Table(keyspace, table)];
    elements.extend(sorted(
        table.indexes.values(),
        |index| index.name.clone(),
        |index| Element::Index(keyspace, table, index),
    ));
    let views = keyspace.views.values().filter(|view| view.base_table_id == table.id);
    elements.extend(sorted(
        views,
        |view| view.table.name.clone(),
        |view| Element::View(keyspace, view),
    ));
    elements
}

/// A keyspace and all that is in it.
pub(super) fn all_of(keyspace: &Keyspace) -> Vec<Element<'_>> {
    let mut elements = vec![Element::Keyspace(keyspace)];
    let types = types_by_need(keyspace);
    elements.extend(types.into_iter().map(|ty| Element::Type(keyspace, ty)));
    elements.extend(functions(keyspace));
    elements.extend(aggregates(keyspace));
    for table in tables(keyspace) {
        if let Element::Table(_, table) = table {
            elements.extend(with_table(keyspace, table));
        }
    }
    elements
}

/// Its types as Cassandra keeps them (`Types`): those that differ in case alone stay in this order.
fn in_their_order(keyspace: &Keyspace) -> Vec<&UserType> {
    let mut types: Vec<&UserType> = keyspace.types.values().map(AsRef::as_ref).collect();
    types.sort_by(|a, b| java_order::buffers(a.name.as_bytes(), b.name.as_bytes()));
    types
}

/// Types by name, each right behind those that it needs and that did not come before.
fn types_by_need(keyspace: &Keyspace) -> Vec<&UserType> {
    let mut ordered: Vec<&UserType> = Vec::new();
    for user_type in in_their_order(keyspace) {
        add_with_needs(keyspace, user_type, &mut ordered, ::types::MAX_DEPTH);
    }
    ordered
}

fn add_with_needs<'a>(
    keyspace: &'a Keyspace,
    user_type: &'a UserType,
    ordered: &mut Vec<&'a UserType>,
    depth: usize,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if ordered.iter().any(|other| other.name == user_type.name) {
        return;
    }
    for (_, field) in &user_type.fields {
        for name in named_types(field) {
            if let Some(needed) = keyspace.types.get(&name) {
                add_with_needs(keyspace, needed, ordered, depth);
            }
        }
    }
    if !ordered.iter().any(|other| other.name == user_type.name) {
        ordered.push(user_type);
    }
}

/// Names of the user types in a type, in order.
fn named_types(ty: &CqlType) -> Vec<String> {
    let mut names = Vec::new();
    ty.any(&mut |ty| {
        if let CqlType::Udt { definition, .. } = ty {
            names.push(definition.name.clone());
        }
        false
    });
    names
}

impl Element<'_> {
    /// Is it a function or an aggregate of this name?
    pub(super) fn is_called(&self, name: &str) -> bool {
        match self {
            Self::Function(_, key, _) | Self::Aggregate(_, key, _) => key.name == name,
            _ => false,
        }
    }

    /// Its row: keyspace, kind, name; and the statement that makes it if `text` is wanted.
    pub(super) fn row(&self, text: bool, internals: bool, release: Release) -> Vec<Vec<u8>> {
        let (keyspace, kind, name) = self.title();
        let mut row = vec![keyspace, kind.to_owned(), name];
        if text {
            row.push(self.text(internals, release));
        }
        row.into_iter().map(String::into_bytes).collect()
    }

    fn title(&self) -> (String, &'static str, String) {
        let (keyspace, kind, name) = match self {
            Self::Keyspace(keyspace) => (keyspace, "keyspace", quoted(&keyspace.name)),
            Self::Type(keyspace, user_type) => (keyspace, "type", quoted(&user_type.name)),
            Self::Function(keyspace, key, _) => (keyspace, "function", key.to_cql()),
            Self::Aggregate(keyspace, key, _) => (keyspace, "aggregate", key.to_cql()),
            Self::Table(keyspace, table) => (keyspace, "table", quoted(&table.name)),
            Self::Index(keyspace, _, index) => (keyspace, "index", quoted(&index.name)),
            Self::View(keyspace, view) => (keyspace, "materialized_view", quoted(&view.table.name)),
        };
        (quoted(&keyspace.name), kind, name)
    }

    fn text(&self, internals: bool, release: Release) -> String {
        match self {
            Self::Keyspace(keyspace) => keyspace.to_cql(false),
            Self::Type(_, user_type) => schema::describe::type_to_cql(user_type, false),
            Self::Function(keyspace, key, function) => {
                keyspace.function_description(key, function).create_statement
            }
            Self::Aggregate(keyspace, key, aggregate) => {
                keyspace.aggregate_description(key, aggregate).create_statement
            }
            Self::Table(_, table) => table.to_cql(internals, false, release),
            Self::Index(_, table, index) => index.to_cql(table),
            Self::View(_, view) => view.to_cql(internals, release),
        }
    }
}

fn quoted(name: &str) -> String {
    maybe_quote(name).into_owned()
}
