//! A socket with TLS or without: to another node, or of the operator.
//!
//! Who dials uses TLS or does not connect. Of a connection that is accepted, the [`Tls`] says
//! whether plaintext is taken. Where it is, the caller refuses what should be encrypted.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Env, TcpStream};

use crate::stream::{Tls, TlsStream};

/// A socket, and the TLS session over it, if there is one.
pub struct Wire {
    socket: TcpStream,
    tls: Option<RefCell<TlsStream>>,
}

impl Wire {
    /// Connects; with TLS, if there is one to connect with.
    ///
    /// # Errors
    /// If the socket does not connect, or no session can be begun.
    pub async fn connect(env: &Env, to: SocketAddr, tls: Option<&Tls>) -> io::Result<Self> {
        let socket = TcpStream::connect(env, to).await?;
        let now = env.unix_micros();
        let session = tls.map(|tls| TlsStream::dialing(tls, to.ip(), now)).transpose()?;
        Ok(Self { socket, tls: session.map(RefCell::new) })
    }

    /// The connection breaks once what was sent is not acknowledged for so long.
    ///
    /// # Errors
    /// Of the socket.
    pub fn set_user_timeout(&self, after: Duration) -> io::Result<()> {
        self.socket.set_user_timeout(after)
    }

    /// A connection that another side opened; with TLS, where that is offered.
    ///
    /// # Errors
    /// If no session can be begun.
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
    ///
    /// # Errors
    /// Of the socket, or if it is no TLS or not one that is agreed to.
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
    ///
    /// # Errors
    /// As of [`Self::try_read`].
    pub async fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(read) = self.try_read(out)? {
                return Ok(read);
            }
            std::future::poll_fn(|cx| self.poll_readable(cx)).await;
        }
    }

    /// Writes what fits at once, for who must not wait; none where nothing does.
    ///
    /// # Errors
    /// Of the socket.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        match &self.tls {
            None => self.socket.try_write(bytes),
            Some(tls) => tls.borrow_mut().try_write(&self.socket, bytes),
        }
    }

    /// Says that nothing more is written.
    pub fn finish(&self) {
        if let Some(tls) = &self.tls {
            tls.borrow_mut().end(&self.socket);
        }
        // who has gone needs no farewell
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Where the other side is; none over a unix socket.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.socket.peer_addr()
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// Of the socket.
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

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Wire({:?}, {:?})", self.socket, self.tls)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Some(tls) = &self.tls {
            tls.borrow_mut().end(&self.socket);
        }
    }
}
