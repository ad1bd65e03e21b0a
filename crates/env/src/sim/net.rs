//! The network of a world: connections whose bytes arrive later, in pieces, or not.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::Inner;
use super::later::later;
use super::machine::{NodeId, State};
use super::port::Port;
use crate::env::Env;
use crate::real::ring::Direction;
use crate::time::nanos;

/// Connections that wait for `accept`; beyond it they are refused.
const BACKLOG: usize = 1024;
/// How often a blocked sender tries again.
const RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));
/// How late a lost packet arrives.
const RESENT: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));

/// Where one can listen on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Tcp(u16),
    Unix(PathBuf),
}

/// What travels.
enum Segment {
    Data(Vec<u8>),
    Fin,
    Reset,
}

/// One end of a connection.
#[derive(Default)]
struct End {
    /// The node that it is at, and which of its lives.
    owner: Option<(NodeId, u64)>,
    inbox: VecDeque<u8>,
    /// The other end sends no more.
    finished: bool,
    error: Option<io::ErrorKind>,
    /// This end sends no more.
    write_closed: bool,
    /// No socket is left at this end.
    closed: bool,
    /// Bytes sent and not yet read by the other end.
    unread: usize,
    /// Segments on their way from here, with their times of arrival.
    wire: VecDeque<(u64, Segment)>,
    pumping: bool,
    blocked_since: Option<u64>,
    readers: Vec<Waker>,
    writers: Vec<Waker>,
}

impl End {
    fn wake(&mut self) -> Vec<Waker> {
        self.readers.drain(..).chain(self.writers.drain(..)).collect()
    }
}

/// A connection.
pub(crate) struct Conn {
    id: u64,
    ends: [RefCell<End>; 2],
    latency: (Duration, Duration),
    addresses: [Option<SocketAddr>; 2],
}

/// A connection that was made, on the way to its `accept`.
struct Arrived {
    conn: Rc<Conn>,
}

#[derive(Default)]
struct Listening {
    owner: Option<(NodeId, u64)>,
    backlog: VecDeque<Arrived>,
    closed: bool,
    reuse: bool,
    wakers: Vec<Waker>,
}

/// All connections and listeners of a world.
#[derive(Default)]
pub(crate) struct Net {
    listeners: RefCell<BTreeMap<(NodeId, Place), Vec<Rc<RefCell<Listening>>>>>,
    conns: RefCell<BTreeMap<u64, Rc<Conn>>>,
    next: Cell<u64>,
    blocked: RefCell<BTreeSet<(NodeId, NodeId)>>,
    latencies: RefCell<BTreeMap<(NodeId, NodeId), (Duration, Duration)>>,
    pub loss: Cell<u64>,
    pub reset: Cell<u64>,
}

impl Net {
    pub fn block(&self, from: &[NodeId], to: &[NodeId]) {
        let pairs = from.iter().flat_map(|a| to.iter().map(|b| (*a, *b)));
        self.blocked.borrow_mut().extend(pairs.filter(|(a, b)| a != b));
    }

    pub fn heal(&self) {
        self.blocked.borrow_mut().clear();
    }

    pub fn set_latency(&self, a: NodeId, b: NodeId, range: (Duration, Duration)) {
        self.latencies.borrow_mut().extend([((a, b), range), ((b, a), range)]);
    }

    pub fn clear(&self) {
        let gone = (self.listeners.take(), self.conns.take());
        drop(gone);
    }

    fn latency(&self, world: &Inner, a: NodeId, b: NodeId) -> (Duration, Duration) {
        if a == b {
            return (Duration::from_micros(2), Duration::from_micros(40));
        }
        self.latencies.borrow().get(&(a, b)).copied().unwrap_or(world.options.latency)
    }

    /// Nothing gets from `a` to `b` now.
    fn is_blocked(&self, world: &Inner, a: NodeId, b: NodeId) -> bool {
        let dark = world.node(b).is_none_or(|n| n.state.get() == State::Off);
        dark || self.blocked.borrow().contains(&(a, b))
    }

    /// A node's life has ended: its listeners are gone, its connections break. Dark, it tells
    /// nobody.
    pub fn node_gone(&self, world: &Rc<Inner>, id: NodeId, life: u64, dark: bool) {
        self.listeners.borrow_mut().retain(|(node, _), _| *node != id);
        let conns: Vec<_> = self.conns.borrow().values().cloned().collect();
        for conn in conns {
            for side in 0..2 {
                let theirs = {
                    let end = conn.ends[side].borrow();
                    end.owner == Some((id, life)) && !end.closed
                };
                if !theirs {
                    continue;
                }
                if dark {
                    let mut end = conn.ends[side].borrow_mut();
                    end.closed = true;
                    end.wire.clear();
                } else {
                    close(world, &conn, side);
                }
            }
        }
    }
}

/// Sends a segment from one side; it arrives after those before it.
fn send(world: &Rc<Inner>, conn: &Rc<Conn>, side: usize, now: u64, segment: Segment) {
    let mut delay = world.dice(conn.latency);
    if world.rng.one_in(world.net.loss.get()) {
        world.fired("loss");
        delay += world.dice(RESENT);
    }
    let segment = match segment {
        Segment::Data(_) if world.rng.one_in(world.net.reset.get()) => {
            world.fired("reset");
            break_end(conn, side, io::ErrorKind::ConnectionReset);
            Segment::Reset
        }
        other => other,
    };
    let mut end = conn.ends[side].borrow_mut();
    let at = (now + delay).max(end.wire.back().map_or(0, |(at, _)| *at));
    end.wire.push_back((at, segment));
    if !end.pumping {
        end.pumping = true;
        drop(end);
        pump_at(world, conn, side, at);
    }
}

fn pump_at(world: &Rc<Inner>, conn: &Rc<Conn>, side: usize, at: u64) {
    let conn = conn.clone();
    world.at(at, None, move |world| pump(world, &conn, side));
}

/// Delivers what is due from `side`, unless something is in the way.
fn pump(world: &Rc<Inner>, conn: &Rc<Conn>, side: usize) {
    let now = world.now.get();
    let node = |side: usize| conn.ends[side].borrow().owner.map(|(node, _)| node);
    let (from, to) = (node(side), node(1 - side));
    let (Some(from), Some(to)) = (from, to) else { return };
    if world.net.is_blocked(world, from, to) || world.net.is_blocked(world, to, from) {
        world.fired("blocked");
        let mut end = conn.ends[side].borrow_mut();
        let since = *end.blocked_since.get_or_insert(now);
        if now - since > nanos(world.options.tcp_timeout) {
            end.wire.clear();
            end.pumping = false;
            drop(end);
            world.fired("tcp_timeout");
            break_end(conn, side, io::ErrorKind::TimedOut);
            return;
        }
        drop(end);
        pump_at(world, conn, side, now + world.dice(RETRY));
        return;
    }
    let mut arrived = Vec::new();
    let next = {
        let mut end = conn.ends[side].borrow_mut();
        end.blocked_since = None;
        while end.wire.front().is_some_and(|(at, _)| *at <= now) {
            arrived.extend(end.wire.pop_front().map(|(_, segment)| segment));
        }
        let next = end.wire.front().map(|(at, _)| *at);
        end.pumping = next.is_some();
        next
    };
    for segment in arrived {
        deliver(world, conn, side, segment);
    }
    match next {
        Some(at) => pump_at(world, conn, side, at),
        None => forget_if_over(world, conn),
    }
}

fn deliver(world: &Rc<Inner>, conn: &Rc<Conn>, side: usize, segment: Segment) {
    let mut to = conn.ends[1 - side].borrow_mut();
    if to.closed {
        drop(to);
        // Nobody there: the sender learns it by a reset.
        if matches!(segment, Segment::Data(_)) && !conn.ends[side].borrow().closed {
            send(world, conn, 1 - side, world.now.get(), Segment::Reset);
        }
        return;
    }
    match segment {
        Segment::Data(bytes) => to.inbox.extend(bytes),
        Segment::Fin => to.finished = true,
        Segment::Reset => {
            to.error.get_or_insert(io::ErrorKind::ConnectionReset);
        }
    }
    let wakers = to.wake();
    drop(to);
    wakers.into_iter().for_each(Waker::wake);
}

/// An end finds its connection broken.
fn break_end(conn: &Conn, side: usize, kind: io::ErrorKind) {
    let wakers = {
        let mut end = conn.ends[side].borrow_mut();
        end.error.get_or_insert(kind);
        end.wake()
    };
    wakers.into_iter().for_each(Waker::wake);
}

/// The socket at one end is closed: with bytes unread that is a reset, otherwise an end of stream.
fn close(world: &Rc<Inner>, conn: &Rc<Conn>, side: usize) {
    let (unread, finished) = {
        let mut end = conn.ends[side].borrow_mut();
        if end.closed {
            return;
        }
        end.closed = true;
        (!end.inbox.is_empty(), end.write_closed || end.error.is_some())
    };
    if unread {
        send(world, conn, side, world.now.get(), Segment::Reset);
    } else if !finished {
        send(world, conn, side, world.now.get(), Segment::Fin);
    }
    forget_if_over(world, conn);
}

fn forget_if_over(world: &Inner, conn: &Conn) {
    let over = conn.ends.iter().all(|end| {
        let end = end.borrow();
        end.closed && end.wire.is_empty()
    });
    if over {
        world.net.conns.borrow_mut().remove(&conn.id);
    }
}

// ---- sockets

/// A socket of one life of a node.
pub(crate) struct SimSocket {
    env: Env,
    conn: Rc<Conn>,
    side: usize,
    /// On its way to another shard: the drop closes nothing.
    given_away: Cell<bool>,
}

impl SimSocket {
    fn new(env: &Env, conn: Rc<Conn>, side: usize) -> Self {
        Self { env: env.clone(), conn, side, given_away: Cell::new(false) }
    }

    fn port(&self) -> io::Result<&Port> {
        self.env.port().ok_or_else(|| io::ErrorKind::Other.into())
    }

    fn end(&self) -> &RefCell<End> {
        &self.conn.ends[self.side]
    }

    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let world = &self.port()?.world;
        if buf.is_empty() {
            return Ok(Some(0));
        }
        let mut end = self.end().borrow_mut();
        if end.inbox.is_empty() {
            return match (end.error, end.finished) {
                (Some(kind), _) => Err(kind.into()),
                (None, true) => Ok(Some(0)),
                (None, false) => Ok(None),
            };
        }
        let mut n = end.inbox.len().min(buf.len());
        if world.rng.one_in(8) {
            n = world.rng.between(1, n as u64) as usize;
        }
        for (to, byte) in buf.iter_mut().zip(end.inbox.drain(..n)) {
            *to = byte;
        }
        drop(end);
        let mut other = self.conn.ends[1 - self.side].borrow_mut();
        other.unread = other.unread.saturating_sub(n);
        let wakers = std::mem::take(&mut other.writers);
        drop(other);
        wakers.into_iter().for_each(Waker::wake);
        Ok(Some(n))
    }

    pub fn try_write(&self, buf: &[u8]) -> io::Result<Option<usize>> {
        let port = self.port()?;
        let world = &port.world;
        let mut n = {
            let end = self.end().borrow();
            if let Some(kind) = end.error {
                return Err(kind.into());
            }
            if end.write_closed {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            world.options.window.saturating_sub(end.unread).min(buf.len())
        };
        if n == 0 {
            return Ok((buf.is_empty()).then_some(0));
        }
        if world.rng.one_in(16) {
            n = world.rng.between(1, n as u64) as usize;
        }
        self.end().borrow_mut().unread += n;
        let data = Segment::Data(buf.get(..n).unwrap_or_default().to_vec());
        send(world, &self.conn, self.side, port.now_ns(), data);
        Ok(Some(n))
    }

    pub fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<()> {
        let window = self.port().map_or(0, |p| p.world.options.window);
        let mut end = self.end().borrow_mut();
        let ready = end.error.is_some()
            || match direction {
                Direction::Read => end.finished || !end.inbox.is_empty(),
                Direction::Write => end.write_closed || end.unread < window,
            };
        if ready {
            return Poll::Ready(());
        }
        let wakers = match direction {
            Direction::Read => &mut end.readers,
            Direction::Write => &mut end.writers,
        };
        if !wakers.iter().any(|w| w.will_wake(cx.waker())) {
            wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    pub fn shutdown(&self, how: std::net::Shutdown) -> io::Result<()> {
        use std::net::Shutdown::{Both, Read, Write};
        let port = self.port()?;
        if matches!(how, Write | Both) {
            let (first, broken) = {
                let mut end = self.end().borrow_mut();
                (!std::mem::replace(&mut end.write_closed, true), end.error.is_some())
            };
            if broken {
                return Err(io::ErrorKind::NotConnected.into());
            }
            if first {
                send(&port.world, &self.conn, self.side, port.now_ns(), Segment::Fin);
            }
        }
        let wakers = {
            let mut end = self.end().borrow_mut();
            end.finished |= matches!(how, Read | Both);
            end.wake()
        };
        wakers.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// (local, peer)
    pub fn addresses(&self) -> (Option<SocketAddr>, Option<SocketAddr>) {
        (self.conn.addresses[self.side], self.conn.addresses[1 - self.side])
    }

    /// Leaves the end of the connection without a socket, for another shard to take.
    pub fn into_parts(self) -> (u64, usize) {
        self.given_away.set(true);
        (self.conn.id, self.side)
    }

    pub fn from_parts(env: &Env, conn: u64, side: usize) -> io::Result<Self> {
        let port = env.port().ok_or(io::ErrorKind::Other)?;
        let conn = port.world.net.conns.borrow().get(&conn).cloned();
        let conn = conn.ok_or(io::ErrorKind::NotConnected)?;
        Ok(Self::new(env, conn, side))
    }
}

impl Drop for SimSocket {
    fn drop(&mut self) {
        if let Some(port) = self.env.port()
            && port.is_alive()
            && !self.given_away.get()
        {
            close(&port.world, &self.conn, self.side);
        }
    }
}

// ---- listeners

/// A listening socket of one life of a node.
pub(crate) struct SimListener {
    env: Env,
    key: (NodeId, Place),
    state: Rc<RefCell<Listening>>,
}

impl SimListener {
    pub fn bind(env: &Env, addr: SocketAddr, reuse: bool) -> io::Result<(Self, SocketAddr)> {
        let port = env.port().ok_or(io::ErrorKind::Other)?;
        let here = port.node.addr;
        if !addr.ip().is_unspecified() && !addr.ip().is_loopback() && addr.ip() != here {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let number = if addr.port() == 0 { free_port(port)? } else { addr.port() };
        let listener = Self::listen(env, port, Place::Tcp(number), reuse)?;
        let ip = if addr.ip().is_unspecified() { here } else { addr.ip() };
        Ok((listener, SocketAddr::new(ip, number)))
    }

    pub fn bind_unix(env: &Env, path: &Path) -> io::Result<Self> {
        let port = env.port().ok_or(io::ErrorKind::Other)?;
        Self::listen(env, port, Place::Unix(path.to_path_buf()), false)
    }

    fn listen(env: &Env, port: &Port, place: Place, reuse: bool) -> io::Result<Self> {
        let key = (port.node.id, place);
        let mut listeners = port.world.net.listeners.borrow_mut();
        let list = listeners.entry(key.clone()).or_default();
        if !(list.is_empty() || reuse && list.iter().all(|l| l.borrow().reuse)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let listening = Listening { owner: port.owner(), reuse, ..Listening::default() };
        let state = Rc::new(RefCell::new(listening));
        list.push(state.clone());
        Ok(Self { env: env.clone(), key, state })
    }

    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<SimSocket> {
        let mut state = self.state.borrow_mut();
        if let Some(arrived) = state.backlog.pop_front() {
            return Poll::Ready(SimSocket::new(&self.env, arrived.conn, 1));
        }
        if !state.wakers.iter().any(|w| w.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let Some(port) = self.env.port() else { return };
        let backlog = {
            let mut state = self.state.borrow_mut();
            state.closed = true;
            std::mem::take(&mut state.backlog)
        };
        let mut listeners = port.world.net.listeners.borrow_mut();
        if let Some(list) = listeners.get_mut(&self.key) {
            list.retain(|l| !Rc::ptr_eq(l, &self.state));
            if list.is_empty() {
                listeners.remove(&self.key);
            }
        }
        drop(listeners);
        if port.is_alive() {
            backlog.iter().for_each(|arrived| close(&port.world, &arrived.conn, 1));
        }
    }
}

fn free_port(port: &Port) -> io::Result<u16> {
    let listeners = port.world.net.listeners.borrow();
    for _ in 0..u16::MAX {
        let next = port.node.next_port.get();
        port.node.next_port.set(if next == u16::MAX { 32_768 } else { next + 1 });
        if !listeners.contains_key(&(port.node.id, Place::Tcp(next))) {
            return Ok(next);
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}

// ---- connecting

/// Connects over the network.
pub(crate) async fn connect(
    env: &Env,
    to: SocketAddr,
    from: Option<SocketAddr>,
) -> io::Result<SimSocket> {
    let port = env.port().ok_or(io::ErrorKind::Other)?;
    let known = |ip: IpAddr| port.world.nodes.borrow().iter().find(|n| n.addr == ip).map(|n| n.id);
    let target = match known(to.ip()) {
        Some(id) => Some(id),
        None if to.ip().is_loopback() || to.ip().is_unspecified() => Some(port.node.id),
        None => None,
    };
    let number = match from.map(|a| a.port()).filter(|p| *p != 0) {
        Some(number) => number,
        None => free_port(port)?,
    };
    let local = SocketAddr::new(from.map_or(port.node.addr, |a| a.ip()), number);
    reach(env, port, target, Place::Tcp(to.port()), [Some(local), Some(to)]).await
}

/// Connects to a unix socket of the same node.
pub(crate) async fn connect_unix(env: &Env, path: &Path) -> io::Result<SimSocket> {
    let port = env.port().ok_or(io::ErrorKind::Other)?;
    let place = Place::Unix(path.to_path_buf());
    reach(env, port, Some(port.node.id), place, [None, None]).await
}

/// Tries until the other machine answers or the time is up.
async fn reach(
    env: &Env,
    port: &Port,
    target: Option<NodeId>,
    place: Place,
    addresses: [Option<SocketAddr>; 2],
) -> io::Result<SimSocket> {
    let world = &port.world;
    let me = port.node.id;
    let give_up = port.now_ns() + nanos(world.options.tcp_timeout);
    loop {
        let range = target.map_or(RETRY, |id| world.net.latency(world, me, id));
        let (fill, there) = later();
        // There and back.
        port.after(world.dice(range), move |world| {
            let blocked = target.is_none_or(|id| {
                world.net.is_blocked(world, me, id) || world.net.is_blocked(world, id, me)
            });
            fill(blocked);
        });
        if !there.await {
            break;
        }
        world.fired("blocked");
        if port.now_ns() > give_up {
            return Err(io::ErrorKind::TimedOut.into());
        }
        env.sleep(Duration::from_nanos(world.dice(RETRY))).await;
    }
    let Some(target) = target else { return Err(io::ErrorKind::HostUnreachable.into()) };
    let conn = establish(port, target, place, addresses)?;
    let socket = SimSocket::new(env, conn, 0);
    let (fill, back) = later();
    port.after(world.dice(socket.conn.latency), move |_| fill(()));
    back.await;
    Ok(socket)
}

fn establish(
    port: &Port,
    target: NodeId,
    place: Place,
    addresses: [Option<SocketAddr>; 2],
) -> io::Result<Rc<Conn>> {
    let (world, net) = (&port.world, &port.world.net);
    let listener = {
        let listeners = net.listeners.borrow();
        let Some(list) = listeners.get(&(target, place)).filter(|l| !l.is_empty()) else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        list[world.rng.below(list.len() as u64) as usize].clone()
    };
    let mut listening = listener.borrow_mut();
    let Some((node, life)) = listening.owner.filter(|_| listening.backlog.len() < BACKLOG) else {
        return Err(io::ErrorKind::ConnectionRefused.into());
    };
    let end = |node, life| RefCell::new(End { owner: Some((node, life)), ..End::default() });
    let id = net.next.get();
    net.next.set(id + 1);
    let conn = Rc::new(Conn {
        id,
        ends: [end(port.node.id, port.life), end(node, life)],
        latency: net.latency(world, port.node.id, target),
        addresses,
    });
    net.conns.borrow_mut().insert(id, conn.clone());
    listening.backlog.push_back(Arrived { conn: conn.clone() });
    let wakers = std::mem::take(&mut listening.wakers);
    drop(listening);
    wakers.into_iter().for_each(Waker::wake);
    Ok(conn)
}
