//! The schema: immutable snapshots of keyspaces, tables, columns and types; their rows in
//! `system_schema`; the digest that a cluster agrees on; changes by DDL; and the text of DESCRIBE.
//!
//! Pure: no clock, no I/O, nothing random. The rows of `system_schema` are the truth, kept as they
//! were received; a [`Schema`] is derived from them. One owner task applies changes, and each shard
//! holds an `Arc` of the snapshot under which its requests run.
#![forbid(unsafe_code)]

pub mod change;
mod column;
pub mod describe;
mod error;
mod jvm;
mod key;
mod keyspace;
mod params;
mod properties;
mod release;
mod replication;
mod schema;
mod served;
mod state;
mod stored;
pub mod system;
mod table;
mod table_id;
mod unserved;

pub use change::{Applied, ChangeKind, ChangeOptions, SchemaChange, SchemaEvent, Target, apply};
/// The order in which Java's `HashSet` of strings goes through them, for texts that show it.
pub fn hash_order(items: Vec<String>) -> Vec<String> {
    jvm::string_order(items, jvm::DEFAULT_CAPACITY)
}

pub use column::{Column, ColumnKind, ColumnMask, DroppedColumn, select_order};
pub use error::SchemaError;
pub use key::{KeyError, MAX_KEY_LENGTH};
pub use keyspace::{Aggregate, Function, Keyspace, Signature, View};
pub use params::caching::{CachingParams, RowsPerPartition};
pub use params::compaction::{CompactionParams, TombstoneOption};
pub use params::compaction_class::CompactionClass;
pub use params::compression::{CompressionParams, Compressor};
pub use params::from_properties::TABLE_PROPERTIES;
pub use params::retry::{RetryCombination, SpeculativeRetry};
pub use params::strategies::bytes_of;
pub use params::{ReadRepair, TableParams};
pub use properties::{Properties, PropertyValue};
pub use release::Release;
pub use replication::{ReplicaCount, Replication, Strategy};
pub use schema::Schema;
pub use served::Reason;
pub use state::{MergeError, Merged, SchemaState};
pub use stored::{
    LoadError, MutationError, SchemaCell, SchemaMutation, SchemaPartition, SchemaRow, SchemaRows,
    SchemaTable, Tombstone,
};
pub use table::{Index, IndexPart, Table, TableBuilder, TableFlags, TableKind};
pub use table_id::TableId;
pub use unserved::{Unserved, unserved};
