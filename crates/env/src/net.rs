//! TCP and unix sockets: non-blocking attempts, and futures of readiness.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};

use crate::env::{Env, Make};
use crate::real::pipe::RealPipe;
use crate::real::ring::Direction;
use crate::real::sockets::{self, RealSocket};
use crate::sim::net::{self as sim_net, SimListener, SimSocket};

/// Connections that the kernel keeps ready for `accept`.
const BACKLOG: i32 = 1024;

/// How to listen.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListenOptions {
    /// Several shards listen on the same address, and the kernel deals the connections out.
    pub reuse_port: bool,
}

enum ListenerKind {
    Real(RealSocket),
    Sim(SimListener),
}

/// A listening socket, TCP or unix.
pub struct TcpListener {
    env: Env,
    kind: ListenerKind,
    local: Option<SocketAddr>,
    unix: Option<PathBuf>,
}

impl TcpListener {
    /// Listens on a TCP address (port 0: the system chooses).
    pub fn bind(env: &Env, addr: SocketAddr, options: ListenOptions) -> io::Result<Self> {
        match &env.0.make {
            Make::Real(_) => {
                let socket = sockets::listen(addr, options.reuse_port, BACKLOG)?;
                let local = socket.local_addr()?.as_socket();
                let kind = ListenerKind::Real(RealSocket::listener(env, socket, true)?);
                Ok(Self { env: env.clone(), kind, local, unix: None })
            }
            Make::Sim(_) => {
                let (listener, local) = SimListener::bind(env, addr, options.reuse_port)?;
                let kind = ListenerKind::Sim(listener);
                Ok(Self { env: env.clone(), kind, local: Some(local), unix: None })
            }
        }
    }

    /// Listens on a unix socket with mode 0600. A file left at `path` is removed first.
    pub fn bind_unix(env: &Env, path: &Path) -> io::Result<Self> {
        match &env.0.make {
            Make::Real(_) => {
                let socket = sockets::listen_unix(path, BACKLOG)?;
                let kind = ListenerKind::Real(RealSocket::listener(env, socket, false)?);
                let unix = Some(path.to_path_buf());
                Ok(Self { env: env.clone(), kind, local: None, unix })
            }
            Make::Sim(_) => {
                let kind = ListenerKind::Sim(SimListener::bind_unix(env, path)?);
                let unix = Some(path.to_path_buf());
                Ok(Self { env: env.clone(), kind, local: None, unix })
            }
        }
    }

    /// The address listened on; None for a unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local
    }

    /// The next connection and the client's address (a placeholder `0.0.0.0:0` over a unix
    /// socket). The port lets a shard-aware client choose its shard. On EMFILE and the like the
    /// error comes back at once again: wait before trying on.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.kind {
            ListenerKind::Real(listener) => loop {
                if let Some((socket, addr)) = listener.try_accept()? {
                    let tcp = self.unix.is_none();
                    if tcp {
                        socket.set_tcp_nodelay(true)?;
                    }
                    let peer = addr.as_socket().unwrap_or(NOWHERE);
                    let socket = RealSocket::new(&self.env, socket, tcp, true)?;
                    return Ok((TcpStream::real(socket), peer));
                }
                listener.ready(Direction::Read).await;
            },
            ListenerKind::Sim(listener) => {
                let socket = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
                let stream = TcpStream::sim(socket);
                let peer = stream.peer.unwrap_or(NOWHERE);
                Ok((stream, peer))
            }
        }
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        if let (Some(path), ListenerKind::Real(_)) = (&self.unix, &self.kind) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl std::fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TcpListener({:?}, {:?})", self.local, self.unix)
    }
}

const NOWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

enum StreamKind {
    Real(RealSocket),
    Sim(SimSocket),
}

/// A connected stream, TCP (with TCP_NODELAY) or unix.
pub struct TcpStream {
    kind: StreamKind,
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
}

/// A stream on its way to another shard of the same node, through the mesh.
#[derive(Debug)]
pub struct StreamHandle(HandleKind);

#[derive(Debug)]
enum HandleKind {
    Real { fd: OwnedFd, tcp: bool },
    Sim { conn: u64, side: usize },
}

impl TcpStream {
    fn real(socket: RealSocket) -> Self {
        let (local, peer) = socket.addresses();
        Self { kind: StreamKind::Real(socket), local, peer }
    }

    fn sim(socket: SimSocket) -> Self {
        let (local, peer) = socket.addresses();
        Self { kind: StreamKind::Sim(socket), local, peer }
    }

    /// Connects to a TCP address.
    pub async fn connect(env: &Env, addr: SocketAddr) -> io::Result<Self> {
        Self::connect_from(env, addr, None).await
    }

    /// Connects to a TCP address from a local one (port 0: the system chooses), as shard-aware
    /// clients do.
    pub async fn connect_from(
        env: &Env,
        addr: SocketAddr,
        local: Option<SocketAddr>,
    ) -> io::Result<Self> {
        match &env.0.make {
            Make::Real(_) => Ok(Self::real(sockets::connect(env, &addr.into(), local).await?)),
            Make::Sim(_) => Ok(Self::sim(sim_net::connect(env, addr, local).await?)),
        }
    }

    /// Connects to a unix socket.
    pub async fn connect_unix(env: &Env, path: &Path) -> io::Result<Self> {
        match &env.0.make {
            Make::Real(_) => {
                let addr = socket2::SockAddr::unix(path)?;
                Ok(Self::real(sockets::connect(env, &addr, None).await?))
            }
            Make::Sim(_) => Ok(Self::sim(sim_net::connect_unix(env, path).await?)),
        }
    }

    /// The connection breaks once the other side does not acknowledge for so long what was sent,
    /// rather than when the system gives up, which takes minutes. In a simulated world that is an
    /// option of the world.
    pub fn set_user_timeout(&self, after: std::time::Duration) -> io::Result<()> {
        match &self.kind {
            StreamKind::Real(socket) => socket.set_user_timeout(after),
            StreamKind::Sim(_) => Ok(()),
        }
    }

    /// Reads what is there: None when nothing is, 0 at the end of the stream.
    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        match &self.kind {
            StreamKind::Real(socket) => socket.try_read(buf),
            StreamKind::Sim(socket) => socket.try_read(buf),
        }
    }

    /// Writes what fits: None when nothing does.
    pub fn try_write(&self, buf: &[u8]) -> io::Result<Option<usize>> {
        match &self.kind {
            StreamKind::Real(socket) => socket.try_write(buf),
            StreamKind::Sim(socket) => socket.try_write(buf),
        }
    }

    /// Writes what fits of several buffers, at most [`MAX_SLICES`] of which are looked at.
    pub fn try_write_vectored(&self, bufs: &[io::IoSlice<'_>]) -> io::Result<Option<usize>> {
        let bufs = bufs.get(..MAX_SLICES).unwrap_or(bufs);
        match &self.kind {
            StreamKind::Real(socket) => socket.try_write_vectored(bufs),
            StreamKind::Sim(socket) => {
                let first = bufs.iter().find(|b| !b.is_empty());
                socket.try_write(first.map_or(&[], |b| b))
            }
        }
    }

    /// Takes what fits of a pipe's bytes: None when nothing does.
    pub(crate) fn try_splice(&self, pipe: &RealPipe, bytes: usize) -> io::Result<Option<usize>> {
        match &self.kind {
            StreamKind::Real(socket) => socket.try_splice(pipe, bytes),
            StreamKind::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Ready when [`TcpStream::try_read`] is worth a try.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.kind {
            StreamKind::Real(socket) => socket.poll_ready(Direction::Read, cx),
            StreamKind::Sim(socket) => socket.poll_ready(Direction::Read, cx),
        }
    }

    /// Ready when [`TcpStream::try_write`] is worth a try.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.kind {
            StreamKind::Real(socket) => socket.poll_ready(Direction::Write, cx),
            StreamKind::Sim(socket) => socket.poll_ready(Direction::Write, cx),
        }
    }

    /// Waits until there is something to read, the end or an error.
    pub async fn readable(&self) {
        std::future::poll_fn(|cx| self.poll_readable(cx)).await;
    }

    /// Waits until there is room to write, or an error.
    pub async fn writable(&self) {
        std::future::poll_fn(|cx| self.poll_writable(cx)).await;
    }

    /// Reads at least one byte; 0 at the end of the stream. Cancelling loses nothing.
    pub async fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(n) = self.try_read(buf)? {
                return Ok(n);
            }
            self.readable().await;
        }
    }

    /// Fills `buf`, or fails with `UnexpectedEof`.
    pub async fn read_exact(&self, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read(buf).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                n => buf = buf.get_mut(n..).unwrap_or_default(),
            }
        }
        Ok(())
    }

    /// Writes all of `buf`. Cancelled, it may have written a part.
    pub async fn write_all(&self, mut buf: &[u8]) -> io::Result<()> {
        while !buf.is_empty() {
            match self.try_write(buf)? {
                Some(n) => buf = buf.get(n..).unwrap_or_default(),
                None => self.writable().await,
            }
        }
        Ok(())
    }

    /// Ends the stream one way or both.
    pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        match &self.kind {
            StreamKind::Real(socket) => socket.shutdown(how),
            StreamKind::Sim(socket) => socket.shutdown(how),
        }
    }

    /// This end's address; None for a unix socket.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.local
    }

    /// The other end's address; None for a unix socket.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Takes the stream off this shard, to be sent to another over the mesh.
    pub fn into_raw(self) -> io::Result<StreamHandle> {
        match self.kind {
            StreamKind::Real(socket) => {
                let tcp = self.peer.is_some() || self.local.is_some();
                Ok(StreamHandle(HandleKind::Real { fd: socket.into_fd()?, tcp }))
            }
            StreamKind::Sim(socket) => {
                let (conn, side) = socket.into_parts();
                Ok(StreamHandle(HandleKind::Sim { conn, side }))
            }
        }
    }

    /// Takes over a stream that another shard gave away.
    pub fn from_raw(env: &Env, handle: StreamHandle) -> io::Result<Self> {
        match handle.0 {
            HandleKind::Real { fd, tcp } => {
                Ok(Self::real(RealSocket::new(env, socket2::Socket::from(fd), tcp, true)?))
            }
            HandleKind::Sim { conn, side } => {
                Ok(Self::sim(SimSocket::from_parts(env, conn, side)?))
            }
        }
    }
}

/// Most buffers that one vectored write takes (Linux's IOV_MAX).
pub const MAX_SLICES: usize = 1024;

impl std::fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TcpStream({:?} -> {:?})", self.local, self.peer)
    }
}
