//! The schema as rows of `system_schema`: their merged state, the model read from them, the
//! mutations that a change makes, and the digest.

mod check;
pub(crate) mod decode;
mod digest;
pub(crate) mod encode;
mod mutation;
mod rows;
mod table;
pub(crate) mod value;

pub(crate) use digest::is_local;

pub(crate) use check::{check, check_names};
pub use decode::LoadError;
pub use mutation::MutationError;
pub use rows::{SchemaCell, SchemaMutation, SchemaPartition, SchemaRow, SchemaRows, Tombstone};
pub use table::SchemaTable;
