//! The checksummed segments in which messages travel: those of the native protocol from version 5
//! on (specification, section 2.2), and all between nodes (`net.FrameEncoder`, `net.FrameDecoder`).
//! Pure.
//!
//! Out: a [`Packer`] puts messages into segments. In: [`Segment::find`] checks the segment at the
//! front of a connection's input, in place.
#![forbid(unsafe_code)]

mod block;
mod header;
mod input;
mod packer;

pub use block::{Blocks, decompress};
pub use header::{
    Form, MAX_OVERHEAD, MAX_PAYLOAD, MAX_SEGMENT, Mismatch, SegmentHeader, TRAILER_LENGTH, crc24,
    crc32,
};
pub use input::{Found, Segment};
pub use packer::Packer;

/// Capacity that scratch buffers keep between messages, in bytes.
pub const KEPT_SCRATCH: usize = 256 << 10;

/// Empties a scratch buffer and gives back what a large message made it grow to.
pub fn reset_scratch(scratch: &mut Vec<u8>) {
    scratch.clear();
    if scratch.capacity() > KEPT_SCRATCH {
        *scratch = Vec::new();
    }
}
