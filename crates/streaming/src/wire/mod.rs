//! What goes over connections for streams, at messaging 12 (`streaming.messages`).
//!
//! A message is one byte that says which it is, and its body. Nothing says how long it is, so that
//! a reader must know each of them.
//!
//! ```text
//!  1 PREPARE_SYN     count of requests, requests, count of summaries, summaries
//!  2 STREAM          header of a file, then the file's bytes
//!  3 RECEIVED        table, sequence number of the file
//!  5 COMPLETE        -
//!  6 SESSION_FAILED  -
//!  7 KEEP_ALIVE      -
//!  8 PREPARE_SYNACK  count of summaries, summaries
//!  9 PREPARE_ACK     -
//! 10 STREAM_INIT     who, session, plan, operation, repair it is of, kind of preview
//! ```
//!
//! All integers are big endian, counts 4 bytes, texts modified UTF-8 behind 2 bytes.

mod file;
mod input;
mod message;
mod parts;
mod sections;

pub use file::{Compression, FileHeader, Manifest, Section};
pub use input::{Input, InputError};
pub use message::{Init, Message, Operation, Preview, Request, Summary};
pub use parts::Unwritable;
pub use sections::{BLOCK_BYTES, SectionError, Sections, put_block};
