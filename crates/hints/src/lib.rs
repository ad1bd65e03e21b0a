//! Hints: writes that a replica missed, kept for it in files until it is up again
//! (`org.apache.cassandra.hints`).
//!
//! The files are Cassandra's of messaging 12 (version 2, that of 4.0, 4.1 and of 5.0's default
//! mode), so that a node can go back and forth between the two: `descriptor` is a file's name and
//! header, `record` a hint in it, `block` what a compressed file is made of. `store` keeps the
//! files of all hosts and writes them, `reader` reads one page by page. Who is sent what and when
//! is not known here.
//!
//! Each host has its files. They are synced as the commit log is, and a ticket resolves when that
//! is done. `conformance/hints` writes and reads files with Cassandra's classes.
#![forbid(unsafe_code)]

mod block;
mod descriptor;
mod file;
mod reader;
pub mod record;
mod store;
mod ticket;
mod writer;
mod writing;

pub use descriptor::{Compression, Descriptor, HeaderError, Named};
pub use file::{HintFile, Progress};
pub use reader::{Page, PageHint, Reader};
pub use record::Hint;
pub use store::{Hints, Kept, Options, SyncMode, Tell};
pub use ticket::{HintError, Ticket};
