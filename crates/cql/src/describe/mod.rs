//! DESCRIBE: what of the schema is shown, in Cassandra's order, a page at a time.
//!
//! The statement is about the schema of the moment when it runs, and about the keyspace that the
//! session uses then. An element's text is made for the elements of the page only.

mod cluster;
mod element;
mod page;

use std::sync::Arc;

use schema::{Keyspace, Release, Schema};
use types::CqlType;

use crate::ast::{self, DescribeTarget, QualifiedName};
use crate::error::CqlError;
use crate::metadata::ResultColumn;
pub use cluster::Cluster;
use element::{Element, by_name};

/// A prepared DESCRIBE.
#[derive(Clone, Debug)]
pub struct Describe {
    target: DescribeTarget,
    internals: bool,
}

/// What DESCRIBE runs with.
pub struct DescribeContext<'a> {
    /// The schema, system and virtual keyspaces included.
    pub schema: &'a Schema,
    /// The session's keyspace.
    pub keyspace: Option<&'a str>,
    /// For DESCRIBE CLUSTER.
    pub cluster: &'a Cluster<'a>,
    /// `release_version` of this node, which is the ring's: part of the state of pages, and whose
    /// options tables have.
    pub release_version: &'a str,
    /// Rows a page; none, zero or less = all.
    pub page_size: Option<i32>,
    /// Where to go on: `partition_key` of the client's paging state.
    pub page: Option<&'a [u8]>,
}

/// What DESCRIBE answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The columns.
    pub columns: Arc<[ResultColumn]>,
    /// The values, serialized; none is null.
    pub rows: Vec<Vec<Vec<u8>>>,
    /// Where the next page starts: `partition_key` of the paging state for the client, whose other
    /// fields are no row mark, and `i32::MAX` remaining, twice.
    pub next_page: Option<Vec<u8>>,
}

/// Columns of the answer that lists names.
const NAMES: [&str; 3] = ["keyspace_name", "type", "name"];
/// Columns of the answer that shows texts.
const TEXTS: [&str; 4] = ["keyspace_name", "type", "name", "create_statement"];

fn column(name: &str, ty: CqlType) -> ResultColumn {
    ResultColumn {
        keyspace: "system".into(),
        table: "describe".into(),
        name: name.into(),
        ty,
        reversed: false,
    }
}

fn fail<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::Invalid(message))
}

impl Describe {
    /// Plans a DESCRIBE: nothing of it depends on the schema before it runs.
    pub fn prepare(statement: &ast::Describe) -> Self {
        Self { target: statement.target.clone(), internals: statement.internals }
    }

    /// Answers it, one page.
    pub fn run(&self, context: &DescribeContext<'_>) -> Result<Described, CqlError> {
        let offset = page::offset(context)?;
        if let DescribeTarget::Cluster = self.target {
            let (columns, row) = cluster::describe(context)?;
            return Ok(page::described(context, columns, offset, [row].into_iter()));
        }
        let elements = self.elements(context)?;
        let listing = matches!(
            self.target,
            DescribeTarget::Keyspaces
                | DescribeTarget::Tables
                | DescribeTarget::Types
                | DescribeTarget::Functions
                | DescribeTarget::Aggregates
        );
        let names: &[&str] = if listing { &NAMES } else { &TEXTS };
        let columns = names.iter().map(|name| column(name, CqlType::Text)).collect();
        // of another release's ring there is nothing to describe that it does not know
        let release = Release::parse(context.release_version).unwrap_or_default();
        let rows = elements.iter().map(|element| element.row(!listing, self.internals, release));
        Ok(page::described(context, columns, offset, rows))
    }

    fn elements<'a>(&self, context: &'a DescribeContext<'a>) -> Result<Vec<Element<'a>>, CqlError> {
        let schema = context.schema;
        let one = |keyspace: &Option<String>| named_keyspace(context, keyspace.as_deref());
        match &self.target {
            DescribeTarget::Cluster => Ok(Vec::new()),
            DescribeTarget::Keyspaces => Ok(keyspaces(schema).map(Element::Keyspace).collect()),
            DescribeTarget::Schema { full } => {
                let shown = keyspaces(schema)
                    .filter(|ks| *full || !crate::system_keyspaces::is_system(&ks.name));
                Ok(shown.flat_map(element::all_of).collect())
            }
            DescribeTarget::Keyspace { name, only } => {
                let keyspace = one(name)?;
                Ok(if *only {
                    vec![Element::Keyspace(keyspace)]
                } else {
                    element::all_of(keyspace)
                })
            }
            DescribeTarget::Tables => list(context, element::tables),
            DescribeTarget::Types => list(context, element::types),
            DescribeTarget::Functions => list(context, element::functions),
            DescribeTarget::Aggregates => list(context, element::aggregates),
            DescribeTarget::Table(name) => table(one(&name.keyspace)?, &name.name),
            DescribeTarget::Index(name) => index(one(&name.keyspace)?, &name.name),
            DescribeTarget::View(name) => view(one(&name.keyspace)?, &name.name),
            DescribeTarget::Type(name) => {
                let keyspace = one(&name.keyspace)?;
                match keyspace.types.get(&name.name) {
                    Some(user_type) => Ok(vec![Element::Type(keyspace, user_type)]),
                    None => missing("User defined type", keyspace, &name.name),
                }
            }
            DescribeTarget::Function(name) => {
                let keyspace = one(&name.keyspace)?;
                called("User defined function", element::functions(keyspace), keyspace, name)
            }
            DescribeTarget::Aggregate(name) => {
                let keyspace = one(&name.keyspace)?;
                called("User defined aggregate", element::aggregates(keyspace), keyspace, name)
            }
            DescribeTarget::Generic(name) => generic(context, name),
        }
    }
}

/// All keyspaces by name.
fn keyspaces(schema: &Schema) -> impl Iterator<Item = &Keyspace> {
    let mut keyspaces: Vec<&Keyspace> = schema.keyspaces().values().map(AsRef::as_ref).collect();
    keyspaces.sort_by(|a, b| by_name(&a.name, &b.name));
    keyspaces.into_iter()
}

fn existing<'a>(schema: &'a Schema, name: &str) -> Result<&'a Keyspace, CqlError> {
    match schema.keyspace(name) {
        Some(keyspace) => Ok(keyspace),
        None => fail(format!("'{name}' not found in keyspaces")),
    }
}

/// The keyspace of this name, or the session's.
fn named_keyspace<'a>(
    context: &'a DescribeContext<'a>,
    name: Option<&str>,
) -> Result<&'a Keyspace, CqlError> {
    match name.or(context.keyspace) {
        Some(name) => existing(context.schema, name),
        None => fail("No keyspace specified and no current keyspace".to_owned()),
    }
}

/// Elements of one kind: of the session's keyspace, or of all.
fn list<'a>(
    context: &'a DescribeContext<'a>,
    kind: impl Fn(&'a Keyspace) -> Vec<Element<'a>>,
) -> Result<Vec<Element<'a>>, CqlError> {
    match context.keyspace {
        Some(name) => Ok(kind(existing(context.schema, name)?)),
        None => Ok(keyspaces(context.schema).flat_map(kind).collect()),
    }
}

fn missing<T>(what: &str, keyspace: &Keyspace, name: &str) -> Result<T, CqlError> {
    fail(format!("{what} '{name}' not found in '{}'", keyspace.name))
}

fn table<'a>(keyspace: &'a Keyspace, name: &str) -> Result<Vec<Element<'a>>, CqlError> {
    match keyspace.tables.get(name) {
        Some(table) => Ok(element::with_table(keyspace, table)),
        None => fail(format!("Table '{name}' not found in keyspace '{}'", keyspace.name)),
    }
}

fn find_index<'a>(keyspace: &'a Keyspace, name: &str) -> Option<Element<'a>> {
    let mut tables = keyspace.tables.values();
    tables.find_map(|table| Some(Element::Index(keyspace, table, table.indexes.get(name)?)))
}

fn index<'a>(keyspace: &'a Keyspace, name: &str) -> Result<Vec<Element<'a>>, CqlError> {
    match find_index(keyspace, name) {
        Some(index) => Ok(vec![index]),
        None => missing("Table for existing index", keyspace, name),
    }
}

fn view<'a>(keyspace: &'a Keyspace, name: &str) -> Result<Vec<Element<'a>>, CqlError> {
    match keyspace.views.get(name) {
        Some(view) => Ok(vec![Element::View(keyspace, view)]),
        None => missing("Materialized view", keyspace, name),
    }
}

/// The overloads of a name.
fn called<'a>(
    what: &str,
    all: Vec<Element<'a>>,
    keyspace: &Keyspace,
    name: &QualifiedName,
) -> Result<Vec<Element<'a>>, CqlError> {
    let overloads: Vec<Element<'a>> =
        all.into_iter().filter(|element| element.is_called(&name.name)).collect();
    if overloads.is_empty() {
        return missing(what, keyspace, &name.name);
    }
    Ok(overloads)
}

/// A name alone: a keyspace, else a table, an index or a view.
fn generic<'a>(
    context: &'a DescribeContext<'a>,
    name: &QualifiedName,
) -> Result<Vec<Element<'a>>, CqlError> {
    let own = &name.name;
    if name.keyspace.is_none()
        && let Some(keyspace) = context.schema.keyspace(own)
    {
        return Ok(element::all_of(keyspace));
    }
    let keyspace = name.keyspace.as_deref().or(context.keyspace).unwrap_or(own);
    let keyspace = existing(context.schema, keyspace)?;
    if keyspace.tables.contains_key(own) {
        return table(keyspace, own);
    }
    if let Some(index) = find_index(keyspace, own) {
        return Ok(vec![index]);
    }
    match keyspace.views.get(own) {
        Some(view) => Ok(vec![Element::View(keyspace, view)]),
        None => fail(format!("'{own}' not found in keyspace '{}'", keyspace.name)),
    }
}
