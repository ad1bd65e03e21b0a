//! How far the sessions of a node are, and how fast it sends: on its first shard, where what all
//! shards do comes together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use env::{Class, Env};
use storage::shards::Remote;

use crate::limits::{Limits, Load, Pace};
use crate::measured::{Measured, Meter};
use crate::progress::{FileKey, Progress};
use crate::session::SessionId;

/// Of one shard; that of the first one is the node's.
pub(crate) struct Ledger {
    env: Env,
    pace: Pace,
    sessions: RefCell<BTreeMap<SessionId, Rc<Progress>>>,
    meter: RefCell<Meter>,
}

impl Ledger {
    pub fn new(env: &Env, limits: Limits) -> Rc<Self> {
        let (env, pace) = (env.clone(), Pace::new(limits));
        Rc::new(Self { env, pace, sessions: RefCell::default(), meter: RefCell::default() })
    }

    /// A session begins.
    pub fn begin(&self, id: SessionId) -> Rc<Progress> {
        let progress = Rc::<Progress>::default();
        self.sessions.borrow_mut().insert(id, Rc::clone(&progress));
        self.meter.borrow_mut().begin(self.env.now());
        progress
    }

    /// A session is over.
    pub fn end(&self, id: SessionId) {
        let mut sessions = self.sessions.borrow_mut();
        if sessions.remove(&id).is_some() && sessions.is_empty() {
            self.meter.borrow_mut().end(self.env.now());
        }
    }

    /// All that are under way.
    pub fn all(&self) -> Vec<Rc<Progress>> {
        self.sessions.borrow().values().cloned().collect()
    }

    pub fn limits(&self) -> Limits {
        self.pace.limits()
    }

    /// How fast files went the last time.
    pub fn measured(&self) -> Measured {
        self.meter.borrow().last()
    }

    pub fn set_limits(&self, limits: Limits) {
        self.pace.set(limits);
    }

    /// Part of a file of a session was sent, or came.
    pub fn went_on(&self, id: SessionId, key: FileKey, bytes: u64) {
        if let Some(progress) = self.sessions.borrow().get(&id) {
            progress.went_on(key, bytes);
            self.meter.borrow_mut().went_on(key.direction, bytes);
        }
    }
}

/// Waits until so much more may be sent.
pub(crate) async fn throttle(ledger: &Remote<Ledger>, load: Load) {
    let paid = ledger.call_async(0, Class::Streaming, move |first: Rc<Ledger>| async move {
        first.pace.take(&first.env, load).await;
    });
    // a node that ends is not held up
    let _ = paid.await;
}
