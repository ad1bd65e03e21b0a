//! The syntax tree: plain owned data, exactly what the text said, nothing resolved against a
//! schema.
//!
//! Identifiers are already folded as Cassandra folds them (lower case unless quoted); literals keep
//! their source text, because their type is only known once they meet a column.

mod ddl;
mod describe;
mod modify;
mod role;
mod select;
mod term;

pub use ddl::*;
pub use describe::*;
pub use modify::*;
pub use role::*;
pub use select::*;
pub use term::*;

/// One parsed statement and its bind markers.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The statement itself.
    pub statement: Statement,
    /// One entry per bind marker in textual order; the index is the number that [`Term::Marker`]
    /// and its kin carry. `Some` for `:name`, `None` for `?`. A name that occurs twice has two
    /// entries.
    pub markers: Vec<Option<String>>,
}

/// `name` or `keyspace.name`: a table, view, index, type, function or aggregate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct QualifiedName {
    /// The keyspace, where the text gave one.
    pub keyspace: Option<String>,
    /// The name proper.
    pub name: String,
}

/// Every statement of CQL 3.4.7.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // each variant is the statement it is named after
pub enum Statement {
    Use(String),
    Select(Box<Select>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Batch(Box<Batch>),
    Truncate(QualifiedName),
    CreateKeyspace(CreateKeyspace),
    AlterKeyspace(AlterKeyspace),
    DropKeyspace(DropKeyspace),
    CreateTable(Box<CreateTable>),
    AlterTable(Box<AlterTable>),
    DropTable(DropObject),
    CreateType(CreateType),
    AlterType(AlterType),
    DropType(DropObject),
    CreateIndex(Box<CreateIndex>),
    DropIndex(DropObject),
    CreateView(Box<CreateView>),
    AlterView(AlterView),
    DropView(DropObject),
    CreateFunction(Box<CreateFunction>),
    DropFunction(DropFunction),
    CreateAggregate(Box<CreateAggregate>),
    DropAggregate(DropFunction),
    CreateTrigger(CreateTrigger),
    DropTrigger(DropTrigger),
    Role(Box<RoleStatement>),
    Describe(Describe),
}
