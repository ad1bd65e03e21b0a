//! What of a schema this node does not serve. Its rows are kept as they came, so that all nodes
//! agree on the version; but a node that must not join because of it says each object, and a write
//! that would be done by half is refused.
//!
//! `Schema::refuses_writes` tells a replica which tables it must not write to.

use std::fmt;

use types::CqlType;

use crate::keyspace::Keyspace;
use crate::table::{Index, Table};
use crate::table_id::TableId;

/// Indexes of Cassandra's own whose rows are as those without them: a node that does not answer by
/// them says so to its peers (`INDEX_STATUS`), and coordinators ask others.
const OWN_INDEXES: [&str; 3] = ["sai", "StorageAttachedIndex", "SASIIndex"];

/// Why an object is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A materialized view.
    View,
    /// A table with materialized views: each write to it would have to be one to them.
    BaseOfView,
    /// A table with triggers: each write to it would have to run them.
    Trigger,
    /// A user-defined function.
    Function,
    /// A user-defined aggregate.
    Aggregate,
    /// An index of a class that is not Cassandra's own.
    CustomIndex,
    /// A table with a column of a type given as a Java class: its values have an order that nobody
    /// else knows.
    CustomType,
    /// A super column family, left from Thrift.
    SuperColumns,
    /// Replication of a class that is not known here.
    Strategy,
    /// Transient replicas.
    Transient,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::View => "a materialized view",
            Self::BaseOfView => "it has materialized views",
            Self::Trigger => "it has triggers",
            Self::Function => "a user-defined function",
            Self::Aggregate => "a user-defined aggregate",
            Self::CustomIndex => "an index of a custom class",
            Self::CustomType => "it has a column of a custom type",
            Self::SuperColumns => "a super column family",
            Self::Strategy => "it has a replication strategy of a custom class",
            Self::Transient => "it has transient replicas",
        })
    }
}

pub(crate) fn is_foreign(index: &Index) -> bool {
    let class = index.options.get("class_name").map_or("", String::as_str);
    let short = class.rsplit('.').next().unwrap_or_default();
    index.is_custom() && !OWN_INDEXES.contains(&short)
}

fn is_custom(ty: &CqlType) -> bool {
    match ty {
        CqlType::Custom(_) => true,
        CqlType::List { element, .. }
        | CqlType::Set { element, .. }
        | CqlType::Vector { element, .. } => is_custom(element),
        CqlType::Map { key, value, .. } => is_custom(key) || is_custom(value),
        CqlType::Tuple(parts) => parts.iter().any(is_custom),
        CqlType::Udt { definition, .. } => definition.fields.iter().any(|(_, ty)| is_custom(ty)),
        _ => false,
    }
}

/// Why no write to a table may be taken, as far as the table itself says.
pub(crate) fn own_refusal(table: &Table) -> Option<Reason> {
    if !table.triggers.is_empty() {
        return Some(Reason::Trigger);
    }
    if table.flags.super_table {
        return Some(Reason::SuperColumns);
    }
    table.columns().any(|column| is_custom(&column.ty)).then_some(Reason::CustomType)
}

/// Tables of a keyspace to which no write may be taken: it would be done by half.
pub(crate) fn refusals(keyspace: &Keyspace) -> impl Iterator<Item = (TableId, Reason)> {
    let is_local = crate::stored::is_local(&keyspace.name);
    let tables = keyspace.tables.values().filter(move |_| !is_local);
    let own = tables.filter_map(|table| Some((table.id, own_refusal(table)?)));
    let views = keyspace.views.values();
    own.chain(views.map(|view| (view.base_table_id, Reason::BaseOfView)))
}
