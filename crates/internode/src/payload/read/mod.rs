//! READ and RANGE (`db.ReadCommand`), and what answers them (`db.ReadResponse`).

mod columns;
mod command;
mod digest;
mod filter;
mod limits;
mod response;
mod rows_of;

pub use columns::{ColumnFilter, Columns, Subselection};
pub use command::{KeyRange, Position, ReadCommand, TableOf, Target};
pub use digest::DataDigest;
pub use filter::{Expression, Operator};
pub use limits::{Grouping, Limits, Paging};
pub use response::{DIGEST_BYTES, DataReader, DataWriter, ReadResponse, RepairedDigest};
pub use rows_of::{RowChoice, RowsOf};
