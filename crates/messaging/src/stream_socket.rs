//! Connections for streams: opened and accepted as all others are, and then handed to whoever
//! streams. What goes over them is not known here.

use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use internode::handshake::{ACCEPT_LENGTH, Accept};
use internode::{Connection, Framing, Initiate, Versions};
use types::Address;

use crate::messenger::Messenger;
use crate::wire::Wire;

/// One of the connections that others have opened, as long as it is open.
pub(crate) struct Entered {
    messenger: Rc<Messenger>,
    remote: IpAddr,
}

impl Entered {
    /// None where the address has as many as it may have.
    pub fn new(messenger: &Rc<Messenger>, remote: IpAddr) -> Option<Self> {
        if !messenger.open.enter(remote) {
            return None;
        }
        messenger.tally.inbound.add(1);
        Some(Self { messenger: Rc::clone(messenger), remote })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.messenger.tally.inbound.add(-1);
        self.messenger.open.leave(self.remote);
    }
}

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

impl Messenger {
    /// Opens a connection for streams to a node.
    ///
    /// # Errors
    /// If there is none in time, or the node speaks no version that this one does: why.
    pub async fn open_stream(self: &Rc<Self>, to: Address) -> Result<StreamSocket, String> {
        let patience = self.patience();
        let tls = self.encryption(to)?.map(|encryption| &encryption.tls);
        let connect = Wire::connect(&self.env, (to.ip, to.port).into(), tls);
        let wire = match self.env.timeout(patience.connect, connect).await {
            Ok(connected) => connected.map_err(|error| error.to_string())?,
            Err(_) => {
                let limit = patience.connect;
                return Err(format!(
                    "cannot connect within {limit:?} (internode_tcp_connect_timeout)"
                ));
            }
        };
        wire.set_user_timeout(patience.streaming_user).map_err(|error| error.to_string())?;
        match self.env.timeout(patience.handshake(), self.greet(&wire)).await {
            Ok(greeted) => greeted?,
            Err(_) => return Err("it did not answer the handshake in time".to_owned()),
        }
        Ok(StreamSocket { wire, peer: to, received: Vec::new(), _entered: None })
    }

    async fn greet(&self, wire: &Wire) -> Result<(), String> {
        let initiate = Initiate {
            versions: Versions::OURS,
            connection: Connection::Streaming,
            framing: Framing::Unprotected,
            from: self.settings.local,
        };
        let mut out = Vec::new();
        initiate.write(&mut out);
        wire.write_all(&out).await.map_err(|error| tls::explain(&error))?;
        let mut answer = [0; ACCEPT_LENGTH];
        let mut filled = 0;
        loop {
            let room = answer.get_mut(filled..).unwrap_or_default();
            let read = wire.read(room).await.map_err(|error| tls::explain(&error))?;
            if read == 0 {
                return Err("the other node closed it in the handshake".to_owned());
            }
            filled += read;
            let seen = answer.get(..filled).unwrap_or_default();
            let accept = Accept::read(seen, Versions::OURS).map_err(|error| error.to_string())?;
            if let Some(accept) = accept {
                let agreed = accept.agreed(Versions::OURS);
                return agreed.map(drop).map_err(|error| error.to_string());
            }
        }
    }
}
