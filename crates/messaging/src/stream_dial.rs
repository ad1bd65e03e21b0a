//! Opening a connection for streams.

use std::rc::Rc;

use internode::handshake::{ACCEPT_LENGTH, Accept};
use internode::{Connection, Framing, Initiate, Versions};
use tls::Wire;
use types::Address;

use crate::messenger::Messenger;
use crate::stream_socket::StreamSocket;

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
        Ok(StreamSocket::opened(wire, to))
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
