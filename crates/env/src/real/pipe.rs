//! A pipe of the kernel between a file and a socket.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};

use super::sys;

/// Both ends.
pub(crate) struct RealPipe {
    reader: PipeReader,
    writer: PipeWriter,
    capacity: usize,
}

impl RealPipe {
    /// With room for so many bytes, or for as many as the system allows.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let capacity = sys::grow_pipe(&writer, bytes)?;
        Ok(Self { reader, writer, capacity })
    }

    /// Bytes that it takes at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The end that takes.
    pub fn writer(&self) -> RawFd {
        self.writer.as_raw_fd()
    }

    /// Gives bytes to a socket that does not block: `WouldBlock` where it takes none now.
    pub fn give(&self, to: &impl AsRawFd, bytes: usize) -> io::Result<usize> {
        sys::splice_now(&self.reader, to, bytes)
    }
}
