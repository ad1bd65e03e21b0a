//! SSTables as files: opened, read in parts, written, linked, brought and taken away in one step.
//! What is in them is `crate::read`'s and the merge's.

mod files;
mod links;
mod live_set;
mod new;
mod output;
mod sstable;
mod transaction;
mod watch;

pub(crate) use self::files::{Files, IndexFile, TriePages};
pub(crate) use self::links::link_sstable;
pub use self::live_set::LiveSet;
pub(crate) use self::new::NewSSTables;
pub(crate) use self::output::Output;
pub(crate) use self::sstable::{Numbers, refuse_unreadable};
pub use self::sstable::{SSTable, Stamp};
pub(crate) use self::transaction::{
    Place, Transaction, clean_up, named_in_logs, remove_descriptor,
};
pub use self::watch::{Finding, Oversized, SizeLimit, Tell, WriteLimits};
pub(crate) use self::watch::{Watch, Watcher};
