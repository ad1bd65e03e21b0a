//! Requests that wait for their turn while a shard has as much under way as it can do with.
//!
//! A shard is full while eight requests use up their slices, or 1,024 are under way. Then further
//! requests of a connection that has some under way wait. Requests also wait:
//!
//! - behind a request that has just used up the connection's slice;
//! - if their client has much to read.
//!
//! Each connection has one line, and the lines are served in turn. Requests in a line have been
//! read and counted, so OPTIONS of a driver are still answered. Those of a client that has gone are
//! dropped.
//!
//! A line that has stood for two seconds is no burst. In such a line a request that waits longer
//! than `native_transport_queue_wait` is answered OVERLOADED.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use env::Instant;
use env::sync::Notify;
use protocol::Header;

use crate::parsed::Parsed;
use crate::place::Place;
use crate::session::Context;
use crate::settings::STANDING;
use crate::shard::Shard;

/// A request that was let in and is not started.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub context: Context,
    pub header: Header,
    pub request: Rc<Parsed>,
    pub place: Place,
    pub warning: Option<String>,
}

/// The requests of a connection that wait.
#[derive(Debug)]
struct Line {
    /// Since when some do without a pause.
    since: Instant,
    requests: VecDeque<Waiting>,
}

impl Line {
    fn may_start(&self) -> bool {
        self.requests.front().is_some_and(|first| first.place.connection.may_start())
    }
}

/// The requests of a shard that wait: in a line for each connection, the lines in turn, so that
/// nobody's many requests stand before another one's few.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    lines: RefCell<Lines>,
    pub changed: Notify,
}

#[derive(Debug, Default)]
struct Lines {
    of: BTreeMap<u64, Line>,
    /// Connections that have a line, the next one first.
    turns: VecDeque<u64>,
}

impl Lines {
    /// The oldest request of the connection whose turn it is; then it is the next one's.
    fn next(&mut self) -> Option<Waiting> {
        let Self { of, turns } = self;
        let place = turns.iter().position(|id| of.get(id).is_some_and(Line::may_start))?;
        let id = turns.remove(place)?;
        let line = of.get_mut(&id)?;
        let next = line.requests.pop_front();
        match line.requests.is_empty() {
            true => drop(of.remove(&id)),
            false => turns.push_back(id),
        }
        next
    }

    /// Takes out the requests that have waited for so long: where their line has stood for long,
    /// and else.
    fn late(&mut self, now: Instant, standing: Duration, burst: Duration) -> Vec<Waiting> {
        let mut late = Vec::new();
        for line in self.of.values_mut() {
            let most = if now.since(line.since) > STANDING { standing } else { burst };
            let is_late = |one: &Waiting| now.since(one.context.received) > most;
            while let Some(one) = line.requests.pop_front_if(|one| is_late(one)) {
                late.push(one);
            }
        }
        self.of.retain(|_, line| !line.requests.is_empty());
        let Self { of, turns } = self;
        turns.retain(|id| of.contains_key(id));
        late
    }
}

impl Queue {
    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.lines.borrow().turns.is_empty()
    }

    /// Does a request of this connection wait?
    pub fn has(&self, connection: u64) -> bool {
        self.lines.borrow().of.contains_key(&connection)
    }

    pub fn push(&self, now: Instant, waiting: Waiting) {
        let id = waiting.place.connection.id;
        let Lines { of, turns } = &mut *self.lines.borrow_mut();
        if turns.is_empty() {
            self.changed.notify_one();
        }
        let line = of.entry(id).or_insert_with(|| {
            turns.push_back(id);
            Line { since: now, requests: VecDeque::new() }
        });
        line.requests.push_back(waiting);
    }

    /// Waits until there is something to do.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// A connection has ended: nobody waits for its requests. How many there were.
    pub fn forget(&self, connection: u64) -> usize {
        let line = {
            let Lines { of, turns } = &mut *self.lines.borrow_mut();
            turns.retain(|id| *id != connection);
            of.remove(&connection)
        };
        line.map_or(0, |line| line.requests.len())
    }

    /// A request has ended, or a client has read: another one may start.
    pub fn may_go_on(&self) {
        if !self.is_empty() {
            self.changed.notify_one();
        }
    }

    /// Lets go of all: each request holds the shard that holds it.
    pub fn clear(&self) {
        let lines = self.lines.take();
        drop(lines);
    }

    pub fn next(&self) -> Option<Waiting> {
        self.lines.borrow_mut().next()
    }

    pub fn late(&self, shard: &Shard) -> Vec<Waiting> {
        let burst = shard.settings.request_timeout;
        let standing = shard.settings.queue_wait.min(burst);
        self.lines.borrow_mut().late(shard.env.now(), standing, burst)
    }
}
