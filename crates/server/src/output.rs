//! What waits to be written to one connection.

use std::io;
use std::rc::Rc;

use protocol::{Framer, Started};

use crate::settings::{KEPT_BUFFER, WRITTEN_AT_ONCE};

/// An event, encoded; shared by the connections that get it.
pub(crate) type EncodedEvent = Rc<[u8]>;

/// How far writing came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Nothing is left.
    All,
    /// The socket takes no more now.
    Blocked,
    /// It might take more; others shall have their turn.
    Piece,
}

/// Responses and events on their way out, framed in the order in which they were queued.
#[derive(Debug, Default)]
pub(crate) struct Output {
    framer: Framer,
    bytes: Vec<u8>,
    /// Bytes of `bytes` that the socket has taken.
    sent: usize,
}

impl Output {
    pub fn start(&mut self, started: Started) {
        self.framer.flush(&mut self.bytes);
        self.framer.start(started);
    }

    /// Appends one message; its length before framing.
    pub fn write(&mut self, message: impl FnOnce(&mut Vec<u8>)) -> usize {
        self.framer.write(&mut self.bytes, |out| {
            let start = out.len();
            message(out);
            out.len() - start
        })
    }

    /// Bytes that the socket has not taken yet.
    pub fn unsent(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub fn is_empty(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// Appends an event.
    pub fn event(&mut self, event: &EncodedEvent) {
        self.framer.push(&mut self.bytes, event);
    }

    /// Seals what was queued and writes what the socket takes, a piece at most.
    pub fn flush(
        &mut self,
        mut write: impl FnMut(&[u8]) -> io::Result<Option<usize>>,
    ) -> io::Result<Flushed> {
        self.framer.flush(&mut self.bytes);
        let piece = self.bytes.len().min(self.sent + WRITTEN_AT_ONCE);
        while let Some(rest) = self.bytes.get(self.sent..piece).filter(|rest| !rest.is_empty()) {
            match write(rest)? {
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(n) => self.sent += n,
                None => {
                    self.compact();
                    return Ok(Flushed::Blocked);
                }
            }
        }
        if !self.is_empty() {
            // answers that follow each other may never leave it empty
            self.compact();
            return Ok(Flushed::Piece);
        }
        self.bytes.clear();
        self.sent = 0;
        if self.bytes.capacity() > KEPT_BUFFER {
            self.bytes = Vec::new();
        }
        Ok(Flushed::All)
    }

    /// Moves what is unsent to the front once that is the lesser part.
    fn compact(&mut self) {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Drops everything: the connection has ended.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_never_empty_does_not_grow() {
        let mut output = Output::default();
        let answer = vec![7; WRITTEN_AT_ONCE];
        output.write(|out| out.extend_from_slice(&answer));
        let mut sent = 0;
        for _ in 0..100 {
            output.write(|out| out.extend_from_slice(&answer));
            let flushed = output.flush(|bytes| {
                sent += bytes.len();
                Ok(Some(bytes.len()))
            });
            assert_eq!(flushed.expect("the socket takes all"), Flushed::Piece);
        }
        assert_eq!((sent, output.unsent()), (100 * answer.len(), answer.len()));
        assert!(output.bytes.len() <= 4 * answer.len(), "{} bytes", output.bytes.len());
    }
}
