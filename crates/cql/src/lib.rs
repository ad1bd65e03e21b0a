//! CQL 3.4.7, the language of Apache Cassandra 5.0: text to tokens to syntax tree, tree and schema
//! to a prepared plan, plan and bound values to what is written and read. Pure: no clock, no I/O.
#![forbid(unsafe_code)]

pub mod ast;
mod context;
pub mod ddl;
pub mod describe;
mod error;
pub mod guard;
mod lexer;
mod metadata;
pub mod modify;
mod parser;
pub mod permission;
mod prepared;
mod redact;
mod relation_text;
mod resource;
mod scope;
pub mod select;
mod system_keyspaces;
pub mod term;
mod token;
mod value;

pub use context::{Bind, ExpirationOverflow, Limits, Once};
pub use error::CqlError;
pub use lexer::Keyword;
pub use metadata::{ResultColumn, Variable};
pub use parser::{MAX_DEPTH, ParseError, SyntaxError, parse, parse_of_shard_aware};
pub use prepared::{Plan, Prepared, prepare};
pub use redact::{REDACTED, redacted, without_values};
pub use scope::{ColumnSpec, Scope, Variables};
pub use system_keyspaces::is_system as is_system_keyspace;
pub use value::{Bound, OwnedValue, OwnedValues, Value, Values};
