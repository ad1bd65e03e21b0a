//! [`Server`]: the native transport of one shard.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use env::{Class, Env, HookGuard, Instant, StreamHandle, Task, TcpStream};
use metrics::Registry;
use protocol::Version;

use crate::admission::{ConnectionLimits, Refused};
use crate::coordinator::Coordinator;
use crate::driver::Driver;
use crate::events::EventHub;
use crate::listener::listen;
use crate::seen::SeenClient;
use crate::settings::Settings;
use crate::shard::Shard;
use crate::shard::connection::Connection;
use crate::turns;
use crate::view::{ClientView, RunningView};

/// Gives a connection to the shard of this number; its [`Server::adopt`] takes it.
pub type HandOver = Rc<dyn Fn(usize, StreamHandle)>;

/// The native transport of one shard. [`Server::drain`] is the way to end it; dropped, it stops
/// listening and closes what is open.
pub struct Server {
    shard: Rc<Shard>,
    listeners: RefCell<Vec<Task<()>>>,
    /// Where clients connect.
    address: SocketAddr,
    shard_aware_address: Option<SocketAddr>,
    adopt: Rc<dyn Fn(TcpStream, SocketAddr)>,
    _flush: HookGuard,
    _queue: Task<()>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Server({} on shard {})", self.address, self.shard.env.shard())
    }
}

impl Server {
    /// Starts listening on this shard. `limits` is the same on every shard; `hand_over` gives
    /// connections of the shard-aware port to the shard that their client chose (none: they stay).
    pub fn start<C: Coordinator>(
        env: &Env,
        settings: Settings,
        coordinator: Rc<C>,
        hub: EventHub,
        registry: &Registry,
        limits: ConnectionLimits,
        hand_over: Option<HandOver>,
    ) -> io::Result<Self> {
        let (address, shard_aware) = (settings.listen, settings.shard_aware);
        let shard = Rc::new(Shard::new(env.clone(), settings, hub, registry, &limits));
        let waiting = turns::serve(Rc::clone(&shard), Rc::clone(&coordinator));
        let queue = env.spawn_task(Class::Statement, waiting);
        let adopt = adopter(&shard, coordinator, limits);
        let mut listeners = Vec::new();
        let take = Rc::clone(&adopt);
        let (address, task) = listen(&shard, address, move |stream, remote| take(stream, remote))?;
        listeners.push(task);
        let mut shard_aware_address = None;
        if let Some(wanted) = shard_aware {
            let take = by_source_port(&shard, Rc::clone(&adopt), hand_over);
            let (bound, task) = listen(&shard, wanted, take)?;
            shard.supported.announce(bound.port());
            shard_aware_address = Some(bound);
            listeners.push(task);
        }
        let flushed = Rc::clone(&shard);
        let flush = env.at_turn_end(move || flushed.flush_dirty());
        let listeners = RefCell::new(listeners);
        Ok(Self {
            shard,
            listeners,
            address,
            shard_aware_address,
            adopt,
            _flush: flush,
            _queue: queue,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where a client's source port chooses its shard.
    pub fn shard_aware_address(&self) -> Option<SocketAddr> {
        self.shard_aware_address
    }

    /// Connections open on this shard.
    pub fn connections(&self) -> usize {
        self.shard.connections.borrow().len()
    }

    /// The clients of this shard that were started up.
    pub fn clients(&self) -> Vec<ClientView> {
        let connections = self.shard.connections.borrow();
        connections.values().filter_map(|connection| ClientView::of(connection)).collect()
    }

    /// The clients that began connections of this shard of late.
    pub fn seen(&self) -> Vec<SeenClient> {
        self.shard.seen.all()
    }

    /// Forgets them.
    pub fn forget_seen(&self) {
        self.shard.seen.forget();
    }

    /// Requests of this shard that did not end in their first turn.
    pub fn running(&self) -> Vec<RunningView> {
        self.shard.running.view(self.shard.env.now())
    }

    /// Requests of this shard that were started and are not finished.
    pub fn in_flight(&self) -> usize {
        self.shard.requests.get()
    }

    /// Takes over a connection that another shard accepted.
    pub fn adopt(&self, handle: StreamHandle) -> io::Result<()> {
        let stream = TcpStream::from_raw(&self.shard.env, handle)?;
        let remote = stream.peer_addr().ok_or(io::ErrorKind::NotConnected)?;
        (self.adopt)(stream, remote);
        Ok(())
    }

    /// Serves versions before 5, or ends connections that speak them.
    pub fn allow_older_protocols(&self, allows: bool) {
        self.shard.allows_older_protocols.set(allows);
        if allows {
            return;
        }
        let connections: Vec<_> = self.shard.connections.borrow().values().cloned().collect();
        let is_old = |of: &Rc<Connection>| {
            ClientView::of(of).is_some_and(|view| view.version < Version::CURRENT.number())
        };
        connections.iter().filter(|of| is_old(of)).for_each(|of| of.close_politely());
    }

    /// Closes every connection now.
    fn kill_all(&self) {
        let connections: Vec<_> = self.shard.connections.borrow().values().cloned().collect();
        connections.iter().for_each(|connection| connection.kill());
    }

    /// Stops listening, answers new requests OVERLOADED, waits for those in flight and closes all
    /// connections; what is not done after `patience` is cut off.
    pub async fn drain(&self, patience: Duration) {
        let shard = &self.shard;
        let deadline = shard.env.now() + patience;
        self.listeners.borrow_mut().clear();
        shard.draining.set(true);
        self.wait(deadline, |shard| shard.requests.get() == 0).await;
        let connections: Vec<_> = shard.connections.borrow().values().cloned().collect();
        connections.iter().for_each(|connection| connection.close_politely());
        self.wait(deadline, |shard| shard.connections.borrow().is_empty()).await;
        self.kill_all();
    }

    async fn wait(&self, deadline: Instant, done: impl Fn(&Shard) -> bool) {
        let shard = &self.shard;
        while !done(shard) {
            if shard.env.timeout_at(deadline, shard.progress.notified()).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shard.draining.set(true);
        self.kill_all();
        self.shard.queue.clear();
        self.shard.forget_dirty();
    }
}

/// What makes a served connection of a socket, if there is room for one.
fn adopter<C: Coordinator>(
    shard: &Rc<Shard>,
    coordinator: Rc<C>,
    limits: ConnectionLimits,
) -> Rc<dyn Fn(TcpStream, SocketAddr)> {
    let shard = Rc::clone(shard);
    Rc::new(move |stream, remote| {
        if shard.draining.get() {
            return;
        }
        let permit = match limits.admit(remote.ip(), &shard.settings) {
            Ok(permit) => permit,
            Err(Refused::Node) => return shard.tally.refused.inc(),
            Err(Refused::Ip) => return shard.tally.refused_per_ip.inc(),
        };
        let connection = match Connection::new(Rc::clone(&shard), stream, remote, permit) {
            Ok(connection) => Rc::new(connection),
            Err(_) => return shard.tally.unknown_errors.inc(),
        };
        shard.opened(&connection);
        shard.env.spawn(Class::Statement, Driver::new(connection, Rc::clone(&coordinator)));
    })
}

/// Keeps a connection whose source port is this shard's, and gives others away.
fn by_source_port(
    shard: &Rc<Shard>,
    keep: Rc<dyn Fn(TcpStream, SocketAddr)>,
    hand_over: Option<HandOver>,
) -> impl Fn(TcpStream, SocketAddr) + 'static {
    let shard = Rc::clone(shard);
    move |stream, remote| {
        let target = usize::from(remote.port()) % shard.env.shards();
        match &hand_over {
            Some(hand_over) if target != shard.env.shard() => match stream.into_raw() {
                Ok(handle) => {
                    shard.tally.handed_over.inc();
                    hand_over(target, handle);
                }
                Err(_) => shard.tally.accept_errors.inc(),
            },
            _ => keep(stream, remote),
        }
    }
}
