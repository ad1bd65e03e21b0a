//! What comes over a connection, as messages are read from it.

use std::io;
use std::rc::Rc;

use env::Env;
use messaging::StreamSocket;
use types::Address;

use crate::wire::Input;

/// Room for what is read at once, in bytes.
const READ_BYTES: usize = 256 << 10;

/// The incoming half of a connection.
pub(crate) struct WireInput {
    env: Env,
    socket: Rc<StreamSocket>,
    buffer: Vec<u8>,
    /// Where what is not consumed starts and ends.
    start: usize,
    end: usize,
}

impl WireInput {
    /// Of a connection of which `received` has come.
    pub fn new(env: &Env, socket: &Rc<StreamSocket>, received: Vec<u8>) -> Self {
        let end = received.len();
        Self { env: env.clone(), socket: Rc::clone(socket), buffer: received, start: 0, end }
    }

    /// The other node, as it says.
    pub fn peer(&self) -> Address {
        self.socket.peer()
    }

    /// Passes over so many bytes.
    ///
    /// # Errors
    /// If the connection broke, or ended.
    pub async fn pass_over(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            self.fill(1).await?;
            let passed = bytes.min(self.buffered().len() as u64);
            self.consume(passed as usize);
            bytes -= passed;
        }
        Ok(())
    }
}

impl Input for WireInput {
    fn buffered(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    async fn fill(&mut self, count: usize) -> io::Result<()> {
        self.env.maybe_yield().await;
        while self.end - self.start < count {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            let room = (self.end + 1).max(count).max(READ_BYTES);
            if self.buffer.len() < room {
                self.buffer.resize(room, 0);
            }
            let free = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.socket.read(free).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => self.end += read,
            }
        }
        Ok(())
    }

    fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }
}
