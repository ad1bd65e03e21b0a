//! Who is sent hints, and how fast.
//!
//! All nodes are sent their hints at once. A node that is in no ring for a minute is gone: its
//! hints go to the replicas that there are (`readdress`).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use env::{Env, Instant};
use hints::Hints;
use metrics::Level;
use types::{Address, Uuid};

use super::Handoff;

/// How long a node must not be in the ring before its hints go to others: it may not be heard of
/// yet.
const GONE: Duration = Duration::from_secs(60);

/// What to do with a node's hints.
pub(super) enum Target {
    /// Send them.
    Up(Address),
    /// Wait.
    Down,
    /// It is in no ring; or it is this node: they are for whoever has the data now.
    Nobody,
}

/// What deliveries ask before they send.
pub(super) struct Targets {
    pub env: Env,
    pub handoff: Weak<Handoff>,
    pub store: Rc<Hints>,
    pub is_paused: Cell<bool>,
    pub is_closing: Cell<bool>,
    /// Whose hints are being delivered.
    pub delivering: RefCell<BTreeSet<Uuid>>,
    /// Since when nodes are not in the ring.
    missing: RefCell<BTreeMap<Uuid, Instant>>,
}

impl Targets {
    pub fn new(env: &Env, handoff: &Rc<Handoff>, store: &Rc<Hints>) -> Rc<Self> {
        Rc::new(Self {
            env: env.clone(),
            handoff: Rc::downgrade(handoff),
            store: Rc::clone(store),
            is_paused: Cell::default(),
            is_closing: Cell::default(),
            delivering: RefCell::default(),
            missing: RefCell::default(),
        })
    }

    pub fn target(&self, host: Uuid) -> Target {
        let ring = self.handoff.upgrade().and_then(|handoff| handoff.peers.ring());
        let Some(ring) = ring else { return Target::Down };
        let node = ring.nodes().iter().find(|node| node.host_id == host);
        if node.is_some() {
            self.missing.borrow_mut().remove(&host);
        }
        match node {
            Some(node) if node.is_local => Target::Nobody,
            Some(node) if node.is_up => Target::Up(node.address),
            Some(_) => Target::Down,
            None => {
                let now = self.env.now();
                let since = *self.missing.borrow_mut().entry(host).or_insert(now);
                if now.since(since) >= GONE { Target::Nobody } else { Target::Down }
            }
        }
    }

    /// Is this node one of the first that are being sent hints, of `max_hints_delivery_threads`?
    /// All are sent theirs at once, so that none waits for another; but so many alone as fast as
    /// they can.
    pub fn may_be_fast(&self, host: Uuid) -> bool {
        let Some(handoff) = self.handoff.upgrade() else { return false };
        let most = handoff.settings.borrow().deliveries as usize;
        self.delivering.borrow().iter().take(most).any(|first| *first == host)
    }

    #[track_caller]
    pub fn note(&self, level: Level, message: String) {
        if let Some(handoff) = self.handoff.upgrade() {
            handoff.peers.note(level, message);
        }
    }

    /// Is nothing delivered any more?
    pub fn has_stopped(&self) -> bool {
        self.is_paused.get() || self.is_closing.get()
    }

    /// Bytes a second that a node is sent, where the operator has set that: its share of what all
    /// are sent, unless it is handed what is for others.
    pub fn throttle(&self, is_hand_over: bool) -> Option<u64> {
        let handoff = self.handoff.upgrade()?;
        let rate = handoff.settings.borrow().throttle.filter(|rate| *rate > 0)?;
        let nodes = handoff.peers.ring().map_or(1, |ring: Arc<ring::Ring>| ring.nodes().len());
        let others = if is_hand_over { 1 } else { nodes.saturating_sub(1).max(1) };
        Some((rate / others as u64).max(1))
    }
}
