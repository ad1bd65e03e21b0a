//! The way out: packs messages into a connection's output.
//!
//! It packs small messages into shared segments, and large ones into several.

use segment::Packer;
use thiserror::Error;
use types::WriteBytes;

use crate::handshake::Framing;
use crate::header::Header;
use crate::param::ParamError;

/// Why a message was not sent; nothing of it is in the output.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// It is larger than `internode_max_message_size`.
    #[error("a message of {size} bytes is larger than internode_max_message_size, {max}")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The setting.
        max: u64,
    },
    /// A parameter cannot be written.
    #[error(transparent)]
    Param(#[from] ParamError),
}

/// Packs what one connection sends. Small messages share segments; a message that is too long for
/// one takes several.
#[derive(Debug)]
pub struct Sender {
    packer: Packer,
    max_message: u64,
}

impl Sender {
    /// For a connection of a framing. `max_message` is `internode_max_message_size`, in bytes.
    pub fn new(framing: Framing, max_message: u64) -> Self {
        Self { packer: Packer::new(framing.form()), max_message }
    }

    /// Appends a message, and says how many bytes it has; the segment that it is in may stay open
    /// for others.
    pub fn push(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, SendError> {
        self.packer.begin(out);
        let start = out.len();
        let result = self.write(header, payload, start, out);
        match result {
            Ok(_) => self.packer.end(out, start),
            Err(_) => out.truncate(start),
        }
        result
    }

    fn write(
        &self,
        header: &Header,
        payload: &[u8],
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, SendError> {
        header.write(out)?;
        out.put_uvint(payload.len() as u64);
        let size = out.len() - start + payload.len();
        if size as u64 > self.max_message {
            return Err(SendError::TooLarge { size, max: self.max_message });
        }
        out.put(payload);
        Ok(size)
    }

    /// Seals the segment that is being filled; after it `out` may be handed to the socket.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        self.packer.flush(out);
    }
}
