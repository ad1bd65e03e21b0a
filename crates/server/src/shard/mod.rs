//! What the connections of one shard share.

pub(crate) mod connection;
pub(crate) mod queue;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use connection::Connection;
use env::Env;
use env::sync::Notify;
use metrics::Registry;
use queue::Queue;

use crate::admission::{ConnectionLimits, InFlight};
use crate::events::EventHub;
use crate::rate::RequestRate;
use crate::seen::SeenClients;
use crate::settings::{KEPT_BODIES, KEPT_BODY, LONG_MOST, READ_CHUNK, Settings, UNDER_WAY_MOST};
use crate::supported::Supported;
use crate::tally::Tally;
use crate::view::RunningRequests;

/// The server's state on one shard.
#[derive(Debug)]
pub(crate) struct Shard {
    pub env: Env,
    pub settings: Settings,
    /// Are versions before 5 served? As the settings say, until the operator does.
    pub allows_older_protocols: Cell<bool>,
    pub tally: Tally,
    pub in_flight: InFlight,
    /// The limit of requests a second, if there is one.
    pub rate: Option<RequestRate>,
    pub supported: Supported,
    pub hub: EventHub,
    /// Requests that wait for their turn.
    pub queue: Queue,
    /// Those requests that did not end in their first turn.
    pub running: Rc<RunningRequests>,
    /// How many of those used up a slice when they ran last, and have more to do.
    pub long: Cell<usize>,
    /// Requests let in and not finished.
    pub requests: Cell<usize>,
    pub draining: Cell<bool>,
    /// Rings when a drain may have got further.
    pub progress: Notify,
    pub connections: RefCell<BTreeMap<u64, Rc<Connection>>>,
    /// Clients that came of late.
    pub seen: SeenClients,
    /// Those that are not ready for statements, by age.
    handshakes: RefCell<BTreeMap<u64, Rc<Connection>>>,
    next_id: Cell<u64>,
    /// Connections with something to write at the turn's end.
    dirty: RefCell<Vec<Rc<Connection>>>,
    /// Connections that wait for bytes in flight to be given back.
    over_limit: RefCell<Vec<Rc<Connection>>>,
    scratch: RefCell<Vec<u8>>,
    bodies: RefCell<Vec<Vec<u8>>>,
}

impl Shard {
    pub fn new(
        env: Env,
        settings: Settings,
        hub: EventHub,
        registry: &Registry,
        limits: &ConnectionLimits,
    ) -> Self {
        let rate = settings.max_requests_per_second;
        Self {
            allows_older_protocols: Cell::new(settings.allow_older_protocols),
            rate: rate.map(|rate| RequestRate::new(limits.next_permit.clone(), rate)),
            tally: Tally::new(registry),
            in_flight: InFlight::new(&settings, env.shards()),
            supported: Supported::new(env.shard(), env.shards()),
            hub,
            queue: Queue::default(),
            running: Rc::default(),
            long: Cell::new(0),
            requests: Cell::new(0),
            draining: Cell::new(false),
            progress: Notify::new(),
            connections: RefCell::default(),
            seen: SeenClients::default(),
            handshakes: RefCell::default(),
            next_id: Cell::new(0),
            dirty: RefCell::default(),
            over_limit: RefCell::default(),
            scratch: RefCell::default(),
            bodies: RefCell::default(),
            env,
            settings,
        }
    }

    pub fn next_id(&self) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        id
    }

    /// A connection was opened. If too many shake hands, the oldest of them has had its time.
    pub fn opened(&self, connection: &Rc<Connection>) {
        self.tally.connected.inc();
        self.connections.borrow_mut().insert(connection.id, Rc::clone(connection));
        let oldest = {
            let mut handshakes = self.handshakes.borrow_mut();
            handshakes.insert(connection.id, Rc::clone(connection));
            match handshakes.len() > self.settings.max_handshakes.max(1) {
                true => handshakes.pop_first(),
                false => None,
            }
        };
        if let Some((_, oldest)) = oldest {
            self.tally.handshakes_evicted.inc();
            oldest.kill();
        }
    }

    /// A connection is ready for statements, or gone.
    pub fn handshake_over(&self, id: u64) {
        let connection = self.handshakes.borrow_mut().remove(&id);
        drop(connection);
    }

    pub fn closed(&self, id: u64) {
        self.handshake_over(id);
        self.hub.forget(id);
        self.tally.answers_dropped.add(self.queue.forget(id) as u64);
        let connection = self.connections.borrow_mut().remove(&id);
        if let Some(connection) = connection {
            self.tally.connected.dec();
            self.over_limit.borrow_mut().retain(|other| other.id != id);
            self.in_flight.forget(connection.remote.ip(), Rc::clone(&connection.account));
        }
        self.progress.notify_all();
    }

    /// Lets go of connections that are closed before their turn's end: each holds the shard that
    /// holds it.
    pub fn forget_dirty(&self) {
        let dirty = self.dirty.take();
        drop(dirty);
    }

    pub fn mark_dirty(&self, connection: Rc<Connection>) {
        self.dirty.borrow_mut().push(connection);
    }

    /// The turn's end: everything queued in it goes to the sockets.
    pub fn flush_dirty(&self) {
        let mut dirty = std::mem::take(&mut *self.dirty.borrow_mut());
        for connection in dirty.drain(..) {
            connection.flush();
        }
        let mut list = self.dirty.borrow_mut();
        if list.is_empty() {
            *list = dirty;
        }
    }

    pub fn wait_for_bytes(&self, connection: Rc<Connection>) {
        self.over_limit.borrow_mut().push(connection);
    }

    /// Bytes were given back: connections that waited for them are read again.
    pub fn bytes_given_back(&self) {
        if self.over_limit.borrow().is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut *self.over_limit.borrow_mut());
        let (free, over): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|it| it.in_flight.get() == 0 || self.in_flight.fits(&it.account, 0));
        self.over_limit.borrow_mut().extend(over);
        for connection in free {
            connection.bytes_free();
        }
    }

    /// The buffer that reads go to; handed back with [`Self::keep_scratch`].
    pub fn scratch(&self) -> Vec<u8> {
        let mut scratch = std::mem::take(&mut *self.scratch.borrow_mut());
        scratch.resize(READ_CHUNK, 0);
        scratch
    }

    pub fn keep_scratch(&self, scratch: Vec<u8>) {
        *self.scratch.borrow_mut() = scratch;
    }

    /// A copy of a request's body for a request that takes longer than its turn.
    pub fn body(self: &Rc<Self>, bytes: &[u8]) -> Body {
        let mut copy = self.bodies.borrow_mut().pop().unwrap_or_default();
        copy.extend_from_slice(bytes);
        Body { bytes: copy, shard: Rc::clone(self) }
    }

    pub fn request_started(&self) {
        self.requests.set(self.requests.get() + 1);
        self.tally.requests_in_flight.inc();
    }

    /// Is so much under way that more would only make all of it slower?
    pub fn is_full(&self) -> bool {
        self.long.get() >= LONG_MOST || self.running.len() >= UNDER_WAY_MOST
    }

    pub fn request_finished(&self) {
        self.queue.may_go_on();
        let left = self.requests.get().saturating_sub(1);
        self.requests.set(left);
        self.tally.requests_in_flight.dec();
        if left == 0 && self.draining.get() {
            self.progress.notify_all();
        }
    }
}

/// A request's body, in a buffer that is used again.
#[derive(Debug)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    shard: Rc<Shard>,
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        let mut kept = self.shard.bodies.borrow_mut();
        if bytes.capacity() <= KEPT_BODY && kept.len() < KEPT_BODIES {
            bytes.clear();
            kept.push(bytes);
        }
    }
}
