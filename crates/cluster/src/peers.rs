//! A shard's way to other nodes of the ring, and what it knows of them.
//!
//! Every shard holds the present `ring::Ring`. A statement keeps the ring that it was planned
//! under, for a `NodeIndex` is a place in one ring.
//!
//! `Peers::encrypts` says which connections must be encrypted. It asks the ring. Before there is
//! one it asks the snitch and what was stored of nodes.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::{InternodeCompression, InternodeEncryption, Timeouts};
use env::Instant;
use internode::Verb;
use messaging::{Job, Messenger, Patience, Settings};
use metrics::{Level, Registry};
use protocol::ErrorResponse;
use ring::{Placement, Ring, Snitch};
use schema::Keyspace;
use storage::shards::Remote;
use types::{Address, Token};

use crate::scope::Scope;
use crate::shard_context::ShardContext;

/// Changes of the ring that are remembered.
const PAST_MAX: usize = 8;
/// How long coordinators write to who was a replica until a change, at least, however short
/// `ring_delay` is.
const FORMER_MIN: Duration = Duration::from_secs(10);

/// What a request is about a key for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concern {
    /// To read: replicas have it.
    Read,
    /// To write: those that are about to be replicas have it too.
    Write,
}

/// Something that the operator should know.
#[derive(Debug)]
pub struct Note {
    /// Where in the sources it is said.
    pub at: &'static Location<'static>,
    /// How grave it is.
    pub level: Level,
    /// What.
    pub text: String,
    /// Is it told each time it happens, rather than once in a while?
    pub is_event: bool,
}

/// What a shard has of the ring.
pub struct Peers {
    shard: Rc<ShardContext>,
    others: Remote<Peers>,
    messenger: OnceCell<Rc<Messenger>>,
    /// All nodes of the ring, once this one is a part of it.
    ring: RefCell<Option<Arc<Ring>>>,
    /// Rings before changes that this shard knows of, the latest last, and when they changed.
    past: RefCell<Vec<(Instant, Arc<Ring>)>>,
    /// Where nodes are that the ring has not.
    places: RefCell<Option<Arc<Places>>>,
    /// Where what the operator should know goes.
    notes: OnceCell<Box<dyn Fn(Note)>>,
    /// On the first shard: who hears gossip.
    gossip: OnceCell<Box<dyn Fn(Gossip)>>,
    /// Who is told of each new ring.
    watchers: RefCell<Vec<Box<dyn Fn(&Ring)>>>,
}

/// What says where nodes are of which nothing was heard yet: the snitch, and what they said before
/// this start.
pub(crate) struct Places {
    pub snitch: Snitch,
    /// Data centre and rack.
    pub said: BTreeMap<Address, (String, String)>,
}

impl Places {
    fn of(&self, node: Address) -> (String, String) {
        let said = self.said.get(&node).map(|(center, rack)| (center.as_str(), rack.as_str()));
        self.snitch.place(node, false, said)
    }
}

/// A message of gossip.
pub(crate) struct Gossip {
    pub from: Address,
    pub verb: Verb,
    pub payload: Vec<u8>,
    /// When it was sent, in milliseconds.
    pub created_at: i64,
}

/// How long to wait for other nodes, where requests may take so long.
pub(crate) fn patience(timeouts: &Timeouts) -> Patience {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Patience {
        timeouts: internode::Timeouts {
            request: millis(timeouts.other),
            write: millis(timeouts.write),
            read: millis(timeouts.read),
            range: millis(timeouts.range),
            counter: millis(timeouts.counter_write),
            truncate: millis(timeouts.truncate),
            ..internode::Timeouts::default()
        },
        connect: timeouts.internode_connect,
        user: timeouts.internode_user,
        ..Patience::default()
    }
}

impl Peers {
    /// Knows of nobody.
    pub(crate) fn new(shard: &Rc<ShardContext>, others: Remote<Peers>) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            others,
            messenger: OnceCell::new(),
            ring: RefCell::default(),
            past: RefCell::default(),
            places: RefCell::default(),
            notes: OnceCell::new(),
            gossip: OnceCell::new(),
            watchers: RefCell::default(),
        })
    }

    /// Gives this shard a way to other nodes: `to_shard` runs a job on the messenger of another
    /// shard, `note` tells the operator something.
    pub fn reach(
        &self,
        mut settings: Settings,
        registry: &Registry,
        to_shard: impl Fn(usize, Job) + 'static,
        note: impl Fn(Note) + 'static,
    ) {
        let streaming_user = self.shard.config.streams.tcp_user;
        settings.patience = Patience { streaming_user, ..patience(&self.shard.timeouts()) };
        let messenger = Messenger::new(&self.shard.env, settings, registry, to_shard);
        let _ = self.messenger.set(messenger);
        let _ = self.notes.set(Box::new(note));
    }

    /// This shard's messenger, once it reaches other nodes.
    pub fn messenger(&self) -> Option<&Rc<Messenger>> {
        self.messenger.get()
    }

    /// The ring, once this node is a part of it.
    pub fn ring(&self) -> Option<Arc<Ring>> {
        self.ring.borrow().clone()
    }

    /// The ring, if there are other nodes in it. Where there are none its count of owners, which
    /// shards share, is left alone.
    pub(crate) fn ring_of_several(&self) -> Option<Arc<Ring>> {
        let ring = self.ring.borrow();
        ring.as_ref().filter(|ring| ring.nodes().len() > 1).cloned()
    }

    /// Is this node the only one that it knows of?
    pub fn is_alone(&self) -> bool {
        self.ring_of_several().is_none()
    }

    /// Lets `watcher` know of each ring that this shard is told of from now on.
    pub(crate) fn watch_ring(&self, watcher: impl Fn(&Ring) + 'static) {
        self.watchers.borrow_mut().push(Box::new(watcher));
    }

    /// Has this shard know the ring, with the strategies of its newest keyspaces.
    pub(crate) fn know_ring_here(&self, ring: &Arc<Ring>) {
        self.ring.replace(Some(Arc::clone(ring)));
    }

    /// Has every shard know the ring.
    pub(crate) fn know_ring(&self, ring: &Arc<Ring>) {
        let ring = Arc::clone(ring);
        self.others.send_to_all(move |peers| {
            peers.know_ring_here(&ring);
            peers.watchers.borrow().iter().for_each(|watcher| watcher(&ring));
        });
    }

    /// Has every shard remember the ring before a change, for as long as there are not many later
    /// ones.
    pub(crate) fn remember(&self, ring: &Arc<Ring>) {
        let ring = Arc::clone(ring);
        self.others.send_to_all(move |peers| peers.remember_here(&ring));
    }

    pub(crate) fn remember_here(&self, ring: &Arc<Ring>) {
        let mut past = self.past.borrow_mut();
        past.push((self.shard.env.now(), Arc::clone(ring)));
        if past.len() > PAST_MAX {
            past.remove(0);
        }
    }

    /// How long this node, as a coordinator, writes to who was a replica until a change.
    pub(crate) fn former_time(&self) -> Duration {
        self.shard.config.ring_delay.max(FORMER_MIN)
    }

    /// Has every shard give up its connections to a node that is down.
    pub(crate) fn interrupt(&self, node: Address) {
        self.others.send_to_all(move |peers| {
            if let Some(messenger) = peers.messenger() {
                messenger.interrupt(node);
            }
        });
    }

    /// Lets `hear` know of gossip; on the first shard.
    pub(crate) fn listen_to_gossip(&self, hear: impl Fn(Gossip) + 'static) {
        let _ = self.gossip.set(Box::new(hear));
    }

    /// Takes a message of gossip to the first shard, and waits until it is heard.
    pub(crate) async fn hear(&self, gossip: Gossip) {
        let hear = move |first: &Rc<Self>| {
            if let Some(hear) = first.gossip.get() {
                hear(gossip);
            }
        };
        let _ = self.others.call(0, hear).await;
    }

    /// Tells the operator something, unless the same was told lately.
    #[track_caller]
    pub(crate) fn note(&self, level: Level, text: String) {
        self.note_at(Location::caller(), level, text);
    }

    /// The same of a place in the sources that handed it on.
    pub(crate) fn note_at(&self, at: &'static Location<'static>, level: Level, text: String) {
        self.tell(Note { at, level, text, is_event: false });
    }

    /// Tells the operator that something happened, each time it does.
    #[track_caller]
    pub(crate) fn note_event(&self, text: String) {
        self.tell(Note { at: Location::caller(), level: Level::Info, text, is_event: true });
    }

    fn tell(&self, note: Note) {
        if let Some(notes) = self.notes.get() {
            notes(note);
        }
    }

    /// Has every shard know where nodes are, before there is a ring.
    pub(crate) fn know_places(&self, places: Places) {
        let places = Arc::new(places);
        self.others.send_to_all(move |peers| {
            peers.places.replace(Some(Arc::clone(&places)));
        });
    }

    /// Data centre and rack of a node, if anything is known of it.
    fn place_of(&self, node: Address) -> Option<(String, String)> {
        let ring = self.ring.borrow();
        let found = ring.as_ref().and_then(|ring| Some(ring.node(ring.find(node)?)));
        if let Some(found) = found {
            return Some((found.data_center.to_string(), found.rack.to_string()));
        }
        self.places.borrow().as_ref().map(|places| places.of(node))
    }

    /// Are connections with a node encrypted (`ServerEncryptionOptions.shouldEncrypt`)? Those with
    /// one of which nobody knows where it is are.
    pub(crate) fn encrypts(&self, with: Address) -> bool {
        let Some(tls) = &self.shard.config.server_tls else { return false };
        let is_far = |by_rack: bool| {
            self.place_of(with).is_none_or(|(center, rack)| {
                center != self.shard.identity.data_center
                    || (by_rack && rack != self.shard.identity.rack)
            })
        };
        match tls.encrypts {
            InternodeEncryption::None => false,
            InternodeEncryption::OtherDataCenters => is_far(false),
            InternodeEncryption::OtherRacks => is_far(true),
            InternodeEncryption::All => true,
        }
    }

    /// Are messages to a node compressed (`internode_compression`)?
    pub(crate) fn compresses(&self, to: Address) -> bool {
        let is_far = || {
            let ring = self.ring.borrow();
            let place = ring.as_ref().and_then(|ring| Some((ring, ring.find(to)?)));
            // who is not known yet is as near as this node
            place.is_some_and(|(ring, node)| !ring.is_near(node))
        };
        match self.shard.config.internode_compression {
            InternodeCompression::None => false,
            InternodeCompression::OtherDataCenters => is_far(),
            InternodeCompression::All => true,
        }
    }

    /// Where the replicas of a keyspace are; none if this node is all there is, or has it for
    /// itself alone.
    ///
    /// # Errors
    /// If nobody here knows how its strategy places replicas.
    pub(crate) fn scope(&self, keyspace: &Keyspace) -> Result<Option<Scope>, ErrorResponse> {
        let Some(ring) = self.ring_of_several() else { return Ok(None) };
        let strategy = &keyspace.replication.strategy;
        if *strategy == schema::Strategy::Local {
            return Ok(None);
        }
        let known = ring.placement(strategy).cloned();
        let (ring, placement) = match known {
            Some(placement) => (ring, placement),
            None => self.placed(&ring, keyspace)?,
        };
        Ok(Some(Scope { ring, placement }))
    }

    /// A ring that knows of a keyspace that is newer than it.
    fn placed(
        &self,
        ring: &Ring,
        keyspace: &Keyspace,
    ) -> Result<(Arc<Ring>, Arc<Placement>), ErrorResponse> {
        let schema = self.shard.schema();
        let own = &keyspace.replication.strategy;
        let all = schema.keyspaces().values().map(|keyspace| &keyspace.replication.strategy);
        let ring = Arc::new(ring.with_strategies(all.chain([own])));
        let Some(placement) = ring.placement(own).cloned() else {
            let name = &keyspace.name;
            let message = format!("The replication strategy of keyspace {name} is not supported");
            let detail = protocol::ErrorDetail::ServerError;
            return Err(ErrorResponse { message, detail });
        };
        self.know_ring_here(&ring);
        Ok((ring, placement))
    }

    /// May this node answer for a keyspace at a token? It says yes as long as it does not know.
    ///
    /// Who asks may have heard less of the ring than this node, or more. Who has heard more finds a
    /// node that is about to be a replica, or one that never was. Who has heard less finds one that
    /// was: for a while after a change that is right, for what is written goes to both. Later it
    /// would be acknowledged by nodes that nobody reads from. Coordinators hear of a change later
    /// than this node, by as long as they go on writing to both at most: so a write is taken for
    /// twice that time.
    pub(crate) fn may_answer(&self, keyspace: &str, token: Token, concern: Concern) -> bool {
        let (schema, ring) = (self.shard.schema(), self.ring());
        let (Some(ring), Some(keyspace)) = (ring, schema.keyspace(keyspace)) else { return true };
        let strategy = &keyspace.replication.strategy;
        let Some(placement) = ring.placement(strategy) else { return true };
        let (replicas, local) = (placement.at(token), ring.local());
        if replicas.natural.contains(&local) || replicas.pending.contains(&local) {
            return true;
        }
        let (now, taken_for) = (self.shard.env.now(), self.former_time() * 2);
        let was_one = |(since, past): &(Instant, Arc<Ring>)| {
            let placement = past.placement(strategy).filter(|_| now >= *since + taken_for);
            placement.is_some_and(|of| of.at(token).natural.contains(&past.local()))
        };
        concern == Concern::Write && !self.past.borrow().iter().any(was_one)
    }
}
