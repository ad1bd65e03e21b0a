//! How the nodes of a ring come to one schema (`schema.MigrationCoordinator` of 4.1 and 5.0): which
//! version each says by gossip, who is asked for the schema behind one that is not ours, when, and
//! who is sent a change of ours.
//!
//! Pure: `step(now, event) -> effects`, of one task. Each pull that it asks for ends by
//! [`Event::Ended`], or is given up after a while.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use schema::Release;
use types::Address;

/// How long to wait before a pull, in milliseconds: a push is on its way, most likely
/// (`cassandra.migration_delay_ms`). A node that has no schema, or started less than this ago, does
/// not wait.
pub const MIGRATION_DELAY: u64 = 60_000;
/// Versions that are not ours are looked at so often, in milliseconds
/// (`cassandra.schema_pull_interval_ms`).
pub const PULL_INTERVAL: u64 = 60_000;
/// A node of which the last pull failed is left alone for so long, in milliseconds.
pub const BACK_OFF: u64 = 1_000;
/// A pull without an end is given up after so long, in milliseconds; messaging says so sooner.
pub const PULL_LIMIT: u64 = 60_000;
/// Pulls of one version at a time.
pub const PULLS_OF_A_VERSION: usize = 3;

/// A version of the schema.
pub type Version = [u8; 16];

/// What a node says of itself by gossip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// SCHEMA.
    pub schema: Option<Version>,
    /// RELEASE_VERSION.
    pub release: String,
    /// NET_VERSION, once it is known.
    pub messaging: Option<u8>,
    /// Is it a member: does it own tokens, and is it in no dead state?
    pub is_member: bool,
}

/// A question for a node's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull {
    /// Whom to ask.
    pub node: Address,
    /// The version that it says.
    pub version: Version,
    /// Of this pull alone.
    pub number: u64,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node says this of itself; whenever it changes.
    Heard(Address, Said),
    /// Gossip holds a node to be up.
    Up(Address),
    /// Gossip holds a node to be down.
    Down(Address),
    /// A node is out of the ring.
    Removed(Address),
    /// The schema of this node has this version now: at its start, and after each change, from
    /// whomever.
    Local(Version),
    /// A statement here changed the schema.
    Changed,
    /// A pull has ended: what was answered is merged, or there is no answer, or it cannot be
    /// merged.
    Ended {
        /// Which.
        pull: Pull,
        /// Is it merged (or was it no longer wanted)?
        is_done: bool,
    },
    /// A second went by.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Ask a node for its schema (SCHEMA_PULL), and merge what it answers if it [is
    /// wanted](Agreement::wants) then.
    Pull(Pull),
    /// Send what changed to these nodes (SCHEMA_PUSH).
    Push(Vec<Address>),
    /// Say this version by gossip (SCHEMA).
    Announce(Version),
}

/// What is known of another node.
#[derive(Clone, Debug)]
struct Peer {
    said: Said,
    /// Did the last pull from it fail?
    has_failed: bool,
}

/// A pull under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    /// When it is sent; none: it was.
    due: Option<u64>,
    /// When it is given up.
    until: u64,
}

/// A version that some node says.
#[derive(Clone, Debug, Default)]
struct Known {
    nodes: BTreeSet<Address>,
    /// Whom to ask next.
    queue: VecDeque<Address>,
    pulls: BTreeMap<Address, Pending>,
    /// Do we have what is behind it?
    is_received: bool,
}

/// One node's part of the agreement.
#[derive(Clone, Debug)]
pub struct Agreement {
    release: Release,
    messaging: u8,
    local: Option<Version>,
    started: u64,
    looked: u64,
    /// Since when a version that is said is missed, one or another.
    differs_since: Option<u64>,
    numbers: u64,
    peers: BTreeMap<Address, Peer>,
    /// Nodes that are up, heard of or not.
    up: BTreeSet<Address>,
    versions: BTreeMap<Version, Known>,
}

impl Agreement {
    /// Of a node of a ring of this release, that speaks this messaging version. `now` in
    /// milliseconds of a clock that only goes forward.
    pub fn new(now: u64, release: Release, messaging: u8) -> Self {
        Self {
            release,
            messaging,
            local: None,
            started: now,
            looked: now,
            differs_since: None,
            numbers: 0,
            peers: BTreeMap::new(),
            up: BTreeSet::new(),
            versions: BTreeMap::new(),
        }
    }

    /// Takes a step.
    pub fn step(&mut self, now: u64, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        match event {
            Event::Heard(node, said) => self.heard(now, node, said),
            Event::Up(node) => self.is_up(now, node),
            Event::Down(node) => drop(self.up.remove(&node)),
            Event::Removed(node) => self.remove(node),
            Event::Local(version) => {
                self.local = Some(version);
                if let Some(known) = self.versions.get_mut(&version) {
                    known.is_received = true;
                }
                effects.push(Effect::Announce(version));
            }
            Event::Changed => effects.push(Effect::Push(self.whom_to_push())),
            Event::Ended { pull, is_done } => self.ended(now, pull, is_done),
            Event::Tick => self.tick(now),
        }
        self.send_due(now, &mut effects);
        let differs = self.versions.keys().any(|version| self.misses(version));
        self.differs_since = differs.then(|| self.differs_since.unwrap_or(now));
        effects
    }

    /// Is the answer to a pull to be merged? Not if it was given up, or if we came by that schema
    /// meanwhile.
    pub fn wants(&self, pull: &Pull) -> bool {
        let known = self.versions.get(&pull.version);
        let pending = known.and_then(|known| known.pulls.get(&pull.node));
        pending.is_some_and(|pending| pending.number == pull.number) && self.misses(&pull.version)
    }

    /// Is the schema behind each version that was heard of here? What a start waits for before it
    /// joins.
    pub fn is_ready(&self) -> bool {
        self.is_ready_without(None)
    }

    /// The same but for what a node alone says that is dead for good: nobody gives its schema any
    /// more.
    pub fn is_ready_without(&self, dead: Option<Address>) -> bool {
        let is_of = |known: &Known, dead| known.nodes.iter().all(|node| *node == dead);
        let counts = |known: &&Known| !dead.is_some_and(|dead| is_of(known, dead));
        self.versions.values().filter(counts).all(|known| known.is_received)
    }

    /// The versions that are said, and by whom, this node's aside: what `nodetool describecluster`
    /// shows, and the warning of a start that waited in vain.
    pub fn said(&self) -> impl Iterator<Item = (Version, &BTreeSet<Address>)> {
        self.versions.iter().map(|(version, known)| (*version, &known.nodes))
    }

    fn misses(&self, version: &Version) -> bool {
        let is_received = |known: &Known| known.is_received;
        self.local.as_ref() != Some(version) && !self.versions.get(version).is_some_and(is_received)
    }

    fn heard(&mut self, now: u64, node: Address, said: Said) {
        let before = self.peers.get(&node).and_then(counted);
        let is_known = self.peers.get(&node).is_some_and(|peer| peer.said == said);
        if is_known {
            return;
        }
        let has_failed = self.peers.get(&node).is_some_and(|peer| peer.has_failed);
        let peer = Peer { said, has_failed };
        let version = counted(&peer);
        self.peers.insert(node, peer);
        if before != version {
            self.leave(node, before);
            if let Some(version) = version {
                let known = self.versions.entry(version).or_default();
                known.nodes.insert(node);
                known.queue.push_front(node);
                known.is_received |= self.local == Some(version);
            }
        }
        if let Some(version) = version {
            self.plan(now, version);
        }
    }

    fn is_up(&mut self, now: u64, node: Address) {
        self.up.insert(node);
        if let Some(version) = self.peers.get(&node).and_then(counted) {
            self.plan(now, version);
        }
    }

    fn remove(&mut self, node: Address) {
        self.up.remove(&node);
        let version = self.peers.remove(&node).as_ref().and_then(counted);
        self.leave(node, version);
    }

    /// A node does not say a version any more; one that nobody says is forgotten.
    fn leave(&mut self, node: Address, version: Option<Version>) {
        let Some(version) = version else { return };
        let Some(known) = self.versions.get_mut(&version) else { return };
        known.nodes.remove(&node);
        known.queue.retain(|queued| *queued != node);
        known.pulls.remove(&node);
        if known.nodes.is_empty() {
            self.versions.remove(&version);
        }
    }

    fn ended(&mut self, now: u64, pull: Pull, is_done: bool) {
        let Some(known) = self.versions.get_mut(&pull.version) else { return };
        if known.pulls.get(&pull.node).is_none_or(|pending| pending.number != pull.number) {
            return;
        }
        known.pulls.remove(&pull.node);
        known.queue.push_back(pull.node);
        known.is_received |= is_done;
        if let Some(peer) = self.peers.get_mut(&pull.node) {
            peer.has_failed = !is_done;
        }
        self.plan(now, pull.version);
    }

    fn tick(&mut self, now: u64) {
        let overdue = self.versions.iter().flat_map(|(version, known)| {
            let late = known.pulls.iter().filter(|(_, pending)| pending.until <= now);
            late.map(|(node, pending)| Pull {
                node: *node,
                version: *version,
                number: pending.number,
            })
        });
        for pull in overdue.collect::<Vec<_>>() {
            self.ended(now, pull, false);
        }
        if now.saturating_sub(self.looked) >= PULL_INTERVAL {
            self.looked = now;
            self.look(now);
        }
    }

    /// Asks for every version that is not ours and for which nobody is asked, had it been here
    /// before or not: deletions do not count in a version, so that two nodes may have come by one
    /// with and without what deletes rows of a third. (Cassandra does not ask for a version twice,
    /// and stays of two minds then until a restart.)
    fn look(&mut self, now: u64) {
        let local = self.local;
        let idle = self
            .versions
            .iter_mut()
            .filter(|(version, known)| local.as_ref() != Some(*version) && known.pulls.is_empty());
        let mut versions = Vec::new();
        for (version, known) in idle {
            known.is_received = false;
            versions.push(*version);
        }
        versions.into_iter().for_each(|version| self.plan(now, version));
    }

    /// Lets one more node be asked for a version, if it is missed and there is one to ask.
    fn plan(&mut self, now: u64, version: Version) {
        let is_new = self.local.is_none_or(|local| local == schema::Schema::empty_version());
        let is_young = now.saturating_sub(self.started) < MIGRATION_DELAY;
        // a pull goes with its version: where the schema changes more often than that, none would
        // ever be sent. (Cassandra sends what it has postponed, whatever became of the version.)
        let was_behind = |since| now.saturating_sub(since) >= MIGRATION_DELAY;
        let at_once = is_new || is_young || self.differs_since.is_some_and(was_behind);
        if self.local.is_none() || !self.misses(&version) {
            return;
        }
        let Some(known) = self.versions.get(&version) else { return };
        if known.pulls.len() >= PULLS_OF_A_VERSION {
            return;
        }
        let is_free = |node: &&Address| !known.pulls.contains_key(node) && self.answers(node);
        let Some(node) = known.queue.iter().find(is_free).copied() else { return };
        let has_failed = self.peers.get(&node).is_some_and(|peer| peer.has_failed);
        let delay = match (at_once, has_failed) {
            (true, false) => 0,
            (true, true) => BACK_OFF,
            (false, _) => MIGRATION_DELAY,
        };
        let due = now.saturating_add(delay);
        self.numbers += 1;
        let until = due.saturating_add(PULL_LIMIT);
        let pending = Pending { number: self.numbers, due: Some(due), until };
        if let Some(known) = self.versions.get_mut(&version) {
            known.queue.retain(|queued| *queued != node);
            known.pulls.insert(node, pending);
        }
    }

    /// Sends the pulls whose time has come; those of versions that are here by now, and to nodes
    /// that do not answer any more, are not.
    fn send_due(&mut self, now: u64, effects: &mut Vec<Effect>) {
        let due = self.versions.iter().flat_map(|(version, known)| {
            let due =
                known.pulls.iter().filter(|(_, pending)| pending.due.is_some_and(|at| at <= now));
            due.map(|(node, pending)| Pull {
                node: *node,
                version: *version,
                number: pending.number,
            })
        });
        for pull in due.collect::<Vec<_>>() {
            let answers = self.answers(&pull.node);
            let misses = self.misses(&pull.version);
            let Some(known) = self.versions.get_mut(&pull.version) else { continue };
            if answers && misses {
                if let Some(pending) = known.pulls.get_mut(&pull.node) {
                    pending.due = None;
                }
                effects.push(Effect::Pull(pull));
            } else {
                known.pulls.remove(&pull.node);
                known.queue.push_back(pull.node);
            }
        }
    }

    fn whom_to_push(&self) -> Vec<Address> {
        self.up.iter().filter(|node| self.speaks(node).is_some()).copied().collect()
    }

    /// The node, if its schema is written as ours.
    fn speaks(&self, node: &Address) -> Option<&Peer> {
        let is_alike = |said: &Said| {
            said.release.split('.').next() == Some(self.release.major())
                && said.messaging == Some(self.messaging)
        };
        self.peers.get(node).filter(|peer| is_alike(&peer.said))
    }

    /// Does it make sense to ask it?
    fn answers(&self, node: &Address) -> bool {
        self.up.contains(node) && self.speaks(node).is_some_and(|peer| peer.said.is_member)
    }
}

/// The version of a node, if it is one that counts.
fn counted(peer: &Peer) -> Option<Version> {
    peer.said.schema.filter(|_| peer.said.is_member)
}
