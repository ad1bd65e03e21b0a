//! The audit log and the full query log as decisions: which requests are logged, how an entry
//! reads, and the bytes of files of Chronicle Queue. It opens no file and knows no clock.
#![forbid(unsafe_code)]

mod entry;
mod filter;
mod kind;
mod options;
mod queue;
mod record;
mod roll_cycle;
mod secret;
mod wire;

pub use entry::{Client, Entry, Failure, FailureKind, Statement};
pub use filter::Filter;
pub use kind::{Category, Kind};
pub use options::{AuditOptions, BadOption, Changes, LISTS, Logger, QueueOptions, Refused};
pub use queue::{Appender, Damaged, FILE_BYTES, Read, Table, Write};
pub use record::{Queried, QueryRecord, audit_record};
pub use roll_cycle::RollCycle;
pub use secret::{conceal, conceal_all};
