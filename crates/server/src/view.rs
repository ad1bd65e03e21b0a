//! What a shard's server tells of its clients and of what it runs for them, as plain data.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use env::Instant;
use protocol::{Consistency, Request};

use crate::shard::connection::{Connection, Stage};

/// Characters of a statement that a running request keeps.
const STATEMENT_CHARS: usize = 512;

/// A client's connection.
#[derive(Clone, Debug)]
pub struct ClientView {
    /// Its address.
    pub remote: SocketAddr,
    /// `established`, `authenticating` or `ready`.
    pub stage: &'static str,
    /// Version of the protocol.
    pub version: u8,
    /// Options of its STARTUP.
    pub options: BTreeMap<String, String>,
    /// The driver's name.
    pub driver_name: Option<String>,
    /// The driver's version.
    pub driver_version: Option<String>,
    /// Who it is, if it had to say.
    pub user: Option<String>,
    /// Protocol and cipher suite, where it is encrypted.
    pub tls: Option<(String, String)>,
    /// The keyspace of its last USE.
    pub keyspace: Option<String>,
    /// Messages so far.
    pub messages: u64,
}

impl ClientView {
    /// Of a connection that was started up.
    pub(crate) fn of(connection: &Connection) -> Option<Self> {
        let session = connection.session()?;
        Some(Self {
            remote: connection.remote,
            stage: match connection.stage() {
                Stage::Established => "established",
                Stage::Authenticating => "authenticating",
                Stage::Ready => "ready",
            },
            version: session.version.number(),
            options: session.options.clone(),
            driver_name: session.driver_name.as_deref().map(str::to_owned),
            driver_version: session.driver_version.as_deref().map(str::to_owned),
            user: session.user().as_deref().map(str::to_owned),
            tls: connection.agreed_tls(),
            keyspace: session.keyspace().as_deref().map(str::to_owned),
            messages: connection.messages.get(),
        })
    }
}

/// A request that is running.
#[derive(Clone, Debug)]
pub struct RunningView {
    /// Where it stands among the shard's.
    pub place: usize,
    /// How long its bytes waited.
    pub queued: Duration,
    /// How long it runs.
    pub running: Duration,
    /// What it is, in Cassandra's words.
    pub task: String,
}

/// A request that did not end in its first turn.
#[derive(Debug)]
struct Running {
    received: Instant,
    started: Instant,
    what: What,
}

/// What a request is, for those who look.
#[derive(Debug)]
pub(crate) enum What {
    Query(Box<str>, i32, Consistency),
    Execute([u8; 16], usize, Consistency),
    Batch(usize, Consistency),
    Prepare(Box<str>),
    Other,
}

fn cut(text: &str) -> Box<str> {
    text.chars().take(STATEMENT_CHARS).collect::<String>().into()
}

impl What {
    pub fn of(request: &Request<'_>) -> Self {
        match request {
            Request::Query { text, options } => {
                Self::Query(cut(text), options.page_size.unwrap_or(-1), options.consistency)
            }
            Request::Execute { id, options, .. } => {
                let id = <[u8; 16]>::try_from(*id).unwrap_or_default();
                Self::Execute(id, options.values.len(), options.consistency)
            }
            Request::Batch(batch) => Self::Batch(batch.len(), batch.options.consistency),
            Request::Prepare { text, .. } => Self::Prepare(cut(text)),
            _ => Self::Other,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Query(text, size, level) => {
                format!("QUERY {text} [pageSize = {size}] at consistency {level}")
            }
            Self::Execute(id, values, level) => {
                let id = types::hex::to_hex(id);
                format!("EXECUTE {id} with {values} values at consistency {level}")
            }
            Self::Batch(len, level) => {
                format!("BATCH of {len} statements at consistency {level}")
            }
            Self::Prepare(text) => format!("PREPARE {text}"),
            Self::Other => "AUTH_RESPONSE".to_owned(),
        }
    }
}

/// The requests of a shard that did not end in their first turn. Places are used again.
#[derive(Debug, Default)]
pub(crate) struct RunningRequests(RefCell<Places>);

#[derive(Debug, Default)]
struct Places {
    all: Vec<Option<Running>>,
    free: Vec<usize>,
}

impl RunningRequests {
    /// Notes a request until the guard goes.
    pub fn enter(self: &Rc<Self>, what: What, received: Instant, started: Instant) -> RunningGuard {
        let running = Some(Running { received, started, what });
        let mut places = self.0.borrow_mut();
        let place = places.free.pop().unwrap_or(places.all.len());
        match places.all.get_mut(place) {
            Some(free) => *free = running,
            None => places.all.push(running),
        }
        RunningGuard { requests: Rc::clone(self), place }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let places = self.0.borrow();
        places.all.len() - places.free.len()
    }

    /// What runs now.
    pub fn view(&self, now: Instant) -> Vec<RunningView> {
        let places = self.0.borrow();
        let view = |(place, running): (usize, &Option<Running>)| {
            let running = running.as_ref()?;
            Some(RunningView {
                place,
                queued: running.started.since(running.received),
                running: now.since(running.started),
                task: running.what.words(),
            })
        };
        places.all.iter().enumerate().filter_map(view).collect()
    }
}

/// A running request's place.
#[derive(Debug)]
pub(crate) struct RunningGuard {
    requests: Rc<RunningRequests>,
    place: usize,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        let mut places = self.requests.0.borrow_mut();
        if let Some(place) = places.all.get_mut(self.place) {
            *place = None;
            places.free.push(self.place);
        }
    }
}
