//! Operations that bring data to the nodes that are to have it: this node's streams, and what it
//! asks for and gives in them.

mod rebuild;
mod sources;
mod streams;

pub use rebuild::{Rebuild, RebuildError, RebuildRequest, parse_ranges};
pub(crate) use streams::{StreamHost, settings as stream_settings};
