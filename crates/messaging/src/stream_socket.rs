//! Connections for streams: opened and accepted as all others are, and then handed to whoever
//! streams. What goes over them is not known here.

use std::io;

use env::TcpStream;
use tls::Wire;
use types::Address;

use crate::open::Entered;

/// A connection for streams. It closes when it is dropped.
pub struct StreamSocket {
    wire: Wire,
    peer: Address,
    received: Vec<u8>,
    _entered: Option<Entered>,
}

impl std::fmt::Debug for StreamSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StreamSocket({})", self.peer)
    }
}

impl StreamSocket {
    /// One that another node opened; `received` came behind its handshake.
    pub(crate) fn accepted(wire: Wire, peer: Address, received: Vec<u8>, entered: Entered) -> Self {
        Self { wire, peer, received, _entered: Some(entered) }
    }

    /// One that this node opened.
    pub(crate) fn opened(wire: Wire, peer: Address) -> Self {
        Self { wire, peer, received: Vec::new(), _entered: None }
    }

    /// The other node, as it says.
    pub fn peer(&self) -> Address {
        self.peer
    }

    /// What came before anybody read: once.
    pub fn take_received(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received)
    }

    /// Is what goes over it encrypted?
    pub fn is_encrypted(&self) -> bool {
        self.wire.is_encrypted()
    }

    /// The socket itself, if what goes over it is not encrypted.
    pub fn plain(&self) -> Option<&TcpStream> {
        self.wire.plain()
    }

    /// Reads at least one byte; 0 at the end.
    ///
    /// # Errors
    /// If the connection broke.
    pub async fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        self.wire.read(out).await
    }

    /// Writes all of it. One at a time: what two write at once is mixed.
    ///
    /// # Errors
    /// If the connection broke.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.wire.write_all(bytes).await
    }
}
