//! A socket to another node, with TLS or without.
//!
//! `Serve::encrypts` says with whom. A node that dials uses TLS or does not connect.
//!
//! A node that is connected to looks at the first byte. It refuses plaintext that should be
//! encrypted once the other side has said who it is, before any answer (`Inbound::refuses`).

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Env, TcpStream};
use tls::{Tls, TlsStream};

/// One.
pub(crate) struct Wire {
    socket: TcpStream,
    tls: Option<RefCell<TlsStream>>,
}

impl Wire {
    /// Connects; with TLS, if there is one to connect with.
    pub async fn connect(env: &Env, to: SocketAddr, tls: Option<&Tls>) -> io::Result<Self> {
        let socket = TcpStream::connect(env, to).await?;
        let now = env.unix_micros();
        let session = tls.map(|tls| TlsStream::dialing(tls, to.ip(), now)).transpose()?;
        Ok(Self { socket, tls: session.map(RefCell::new) })
    }

    /// The connection breaks once what was sent is not acknowledged for so long.
    pub fn set_user_timeout(&self, after: Duration) -> io::Result<()> {
        self.socket.set_user_timeout(after)
    }

    /// A connection of another node: it may speak TLS, where that is offered.
    pub fn accepted(env: &Env, socket: TcpStream, tls: Option<&Tls>) -> io::Result<Self> {
        let now = env.unix_micros();
        let session = tls.map(|tls| TlsStream::accepting(tls, now)).transpose()?;
        Ok(Self { socket, tls: session.map(RefCell::new) })
    }

    /// Is what goes over it encrypted? Known once something was read.
    pub fn is_encrypted(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.borrow().is_encrypted())
    }

    /// The socket itself, if what goes over it is not encrypted.
    pub fn plain(&self) -> Option<&TcpStream> {
        self.tls.is_none().then_some(&self.socket)
    }

    /// Has the other side shown a certificate of its address?
    pub fn is_certified_as(&self, address: IpAddr) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.borrow().is_certified_as(address))
    }

    /// Reads what there is; none where that is nothing yet, 0 at the end.
    pub fn try_read(&self, out: &mut [u8]) -> io::Result<Option<usize>> {
        match &self.tls {
            None => self.socket.try_read(out),
            Some(tls) => tls.borrow_mut().try_read(&self.socket, out),
        }
    }

    /// Ready when [`Self::try_read`] is worth a try.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(tls) = &self.tls {
            while !tls.borrow().is_flushed() && self.socket.poll_writable(cx).is_ready() {
                // an error of it comes to who reads
                if tls.borrow_mut().flush(&self.socket).is_err() {
                    break;
                }
            }
        }
        self.socket.poll_readable(cx)
    }

    /// Reads at least one byte; 0 at the end.
    pub async fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(read) = self.try_read(out)? {
                return Ok(read);
            }
            std::future::poll_fn(|cx| self.poll_readable(cx)).await;
        }
    }

    /// Writes all of it.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        let Some(tls) = &self.tls else { return self.socket.write_all(bytes).await };
        loop {
            if !bytes.is_empty() {
                let taken = tls.borrow_mut().try_write(&self.socket, bytes)?.unwrap_or_default();
                bytes = bytes.get(taken..).unwrap_or_default();
            }
            let is_flushed = tls.borrow_mut().flush(&self.socket)?;
            match (is_flushed, bytes.is_empty()) {
                (true, true) => return Ok(()),
                (true, false) => {}
                (false, _) => self.socket.writable().await,
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(tls) = &self.tls {
            tls.borrow_mut().end(&self.socket);
        }
    }
}
