//! What files need of the node, whatever is in them: writing past the page cache, a pace, and which
//! blocks were read of late.

mod file_writer;
mod recent;
mod throttle;

pub(crate) use self::file_writer::{FileWriter, WRITE_BYTES};
pub(crate) use self::recent::Recent;
pub use self::throttle::Throttle;
