//! Sockets: plain non-blocking calls, with readiness from the ring.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::task::{Context, Poll};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::pipe::RealPipe;
use super::ring::{Direction, PollKey, Ring};
use crate::env::{Env, Make};

/// A socket under the ring's watch.
pub(crate) struct RealSocket {
    env: Env,
    /// None only while it is being taken apart.
    socket: Option<Socket>,
    key: PollKey,
    /// A short read of TCP means drained; of a unix socket it does not.
    tcp: bool,
    listens: bool,
}

fn ring(env: &Env) -> io::Result<&Ring> {
    match &env.0.make {
        Make::Real(driver) => Ok(&driver.ring),
        Make::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn would_block(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::WouldBlock
}

impl RealSocket {
    pub fn new(env: &Env, socket: Socket, tcp: bool, ready: bool) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let key = ring(env)?.watch(socket.as_raw_fd(), ready);
        Ok(Self { env: env.clone(), socket: Some(socket), key, tcp, listens: false })
    }

    pub fn listener(env: &Env, socket: Socket, tcp: bool) -> io::Result<Self> {
        let mut listener = Self::new(env, socket, tcp, true)?;
        listener.listens = true;
        Ok(listener)
    }

    fn socket(&self) -> io::Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    /// Runs a call when the socket is ready; None when it is not.
    fn attempt<T>(
        &self,
        direction: Direction,
        mut call: impl FnMut(&Socket) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        let ring = ring(&self.env)?;
        if !ring.is_ready(self.key, direction) {
            return Ok(None);
        }
        loop {
            match call(self.socket()?) {
                Ok(value) => return Ok(Some(value)),
                Err(e) if would_block(&e) => {
                    ring.not_ready(self.key, direction, false);
                    return Ok(None);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let len = buf.len();
        let n = self.attempt(Direction::Read, |mut socket| socket.read(buf))?;
        if let Some(n) = n
            && n > 0
            && n < len
            && self.tcp
        {
            ring(&self.env)?.not_ready(self.key, Direction::Read, true);
        }
        Ok(n)
    }

    pub fn try_write(&self, buf: &[u8]) -> io::Result<Option<usize>> {
        self.attempt(Direction::Write, |socket| socket.send_with_flags(buf, libc::MSG_NOSIGNAL))
    }

    pub fn try_write_vectored(&self, bufs: &[io::IoSlice<'_>]) -> io::Result<Option<usize>> {
        self.attempt(Direction::Write, |mut socket| socket.write_vectored(bufs))
    }

    pub fn try_splice(&self, pipe: &RealPipe, bytes: usize) -> io::Result<Option<usize>> {
        self.attempt(Direction::Write, |socket| pipe.give(socket, bytes))
    }

    pub fn try_accept(&self) -> io::Result<Option<(Socket, SockAddr)>> {
        loop {
            match self.attempt(Direction::Read, Socket::accept) {
                // The client went away while it waited in the backlog.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                other => return other,
            }
        }
    }

    pub fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<()> {
        match ring(&self.env) {
            Ok(ring) => ring.poll_ready(self.key, direction, cx),
            Err(_) => Poll::Ready(()),
        }
    }

    pub async fn ready(&self, direction: Direction) {
        std::future::poll_fn(|cx| self.poll_ready(direction, cx)).await;
    }

    /// The connection breaks once what was sent is not acknowledged for so long
    /// (`TCP_USER_TIMEOUT`).
    pub fn set_user_timeout(&self, after: std::time::Duration) -> io::Result<()> {
        self.socket()?.set_tcp_user_timeout(Some(after))
    }

    pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        self.socket()?.shutdown(how)
    }

    pub fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        let Ok(socket) = self.socket() else { return (None, None) };
        let local = socket.local_addr().ok().and_then(|a| a.as_socket());
        let peer = socket.peer_addr().ok().and_then(|a| a.as_socket());
        (local, peer)
    }

    /// Takes the socket off this shard's ring.
    pub fn into_fd(mut self) -> io::Result<OwnedFd> {
        ring(&self.env)?.unwatch(self.key);
        self.socket
            .take()
            .map(OwnedFd::from)
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }
}

impl Drop for RealSocket {
    fn drop(&mut self) {
        if let (Some(socket), Ok(ring)) = (self.socket.take(), ring(&self.env)) {
            ring.unwatch(self.key);
            // The watch ends with the next hand-over to the kernel, and keeps the socket open until
            // then: a listener must not take another connection.
            if self.listens {
                let _ = socket.shutdown(std::net::Shutdown::Both);
            }
            drop(socket);
        }
    }
}

/// A listening TCP socket.
pub(crate) fn listen(addr: SocketAddr, reuse_port: bool, backlog: i32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if reuse_port {
        socket.set_reuse_port(true)?;
    }
    if addr.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&addr.into())?;
    socket.listen(backlog)?;
    Ok(socket)
}

/// A listening unix socket that only its owner may connect to. A socket file left behind by a dead
/// node is replaced; the caller holds the lock of the directory.
pub(crate) fn listen_unix(path: &Path, backlog: i32) -> io::Result<Socket> {
    use std::os::unix::fs::PermissionsExt;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    socket.bind(&SockAddr::unix(path)?)?;
    // Nobody can connect before `listen`, so the mode is there in time.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    socket.listen(backlog)?;
    Ok(socket)
}

/// Starts a connection; it is made when the socket is writable and shows no error.
pub(crate) async fn connect(
    env: &Env,
    addr: &SockAddr,
    local: Option<SocketAddr>,
) -> io::Result<RealSocket> {
    let tcp = !addr.is_unix();
    let socket = if tcp {
        Socket::new(addr.domain(), Type::STREAM, Some(Protocol::TCP))?
    } else {
        Socket::new(Domain::UNIX, Type::STREAM, None)?
    };
    socket.set_nonblocking(true)?;
    if tcp {
        socket.set_tcp_nodelay(true)?;
    }
    if let Some(local) = local {
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
    }
    match socket.connect(addr) {
        Ok(()) => return RealSocket::new(env, socket, tcp, true),
        Err(e) if e.raw_os_error() == Some(libc::EINPROGRESS) => {}
        Err(e) => return Err(e),
    }
    let socket = RealSocket::new(env, socket, tcp, false)?;
    socket.ready(Direction::Write).await;
    match socket.socket()?.take_error()? {
        Some(e) => Err(e),
        None => Ok(socket),
    }
}
