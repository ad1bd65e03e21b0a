//! This node in the ring: crate `gossip` on the first shard, driven by the clock and by what other
//! nodes say, and what follows from it - the nodes that every shard knows, `system.peers`, and what
//! clients are told (`gms.Gossiper`, `service.StorageService`).
//!
//! - `join`: how this node takes part in gossip.
//! - `own`: where it stands in the ring.
//! - `node_info`: what a node says of itself, and what two nodes cannot both be.
//! - `peers`: `system.peers` and `system.peers_v2`.
//! - `agree`: one schema for the ring.
//! - `serve`: who serves which verb.
//!
//! Crates `gossip` and `ring` are pure. This folder drives them.

mod agree;
mod fitness;
mod index_status;
mod join;
mod node_info;
mod old_sstables;
mod own;
mod part;
mod peers;
mod removal;
mod serve;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sync::{Notify, OneshotSender};
use env::{Class, Env, Instant};
use gossip::{AppState, Effect, EndpointState, Event, Gossiper, Message, Now, States, Status};
use internode::Verb;
use messaging::Messenger;
use metrics::Level;
use ring::{Ring, Snitch};
use rows::Mutation;
use types::{Address, Reader};

pub(crate) use join::{Asked, Aware};
pub use node_info::{Life, NodeInfo, Nodes};
pub use own::{Place, Stage};
pub use removal::StillAlive;
pub(crate) use serve::PeerServer;

use node_info::{Conflict, Own};

use crate::clients::Clients;
use crate::peers::{Gossip, Peers};
use crate::schema_owner::SchemaOwner;
use crate::schema_ring::{self, Agreement};
use crate::shard_context::ShardContext;

/// How often gossip is taken a step further (`Gossiper.intervalInMillis`).
const TICK: Duration = Duration::from_secs(1);
/// Ticks between two looks at how much this node stores (`LoadBroadcaster`).
const LOAD_TICKS: u64 = 60;
/// How long the others have to hear that this node stops (`cassandra.shutdown_announce_in_ms`).
const ANNOUNCE: Duration = Duration::from_secs(2);

/// What a node that has left says while it takes writes still. Cassandra has this state, says it
/// never and looks at it never; of those with such a name it is the only one that 3.11 knows too.
const TAKES_WRITES: AppState = AppState::X_11_PADDING;
const YES: &str = "takes_writes";
const NO: &str = "";

/// Changes of the ring that are remembered at a time.
const FORMER_MAX: usize = 4;

/// Did a node take other tokens, or give them up, as it had said it would?
fn has_moved_on(was: Option<&NodeInfo>, is: Option<&NodeInfo>) -> bool {
    match (was.map(|node| node.life), is.map(|node| node.life)) {
        (Some(Life::Joining | Life::Replacing(_) | Life::Moving(_)), Some(Life::Normal)) => true,
        (was, is) => was == Some(Life::Leaving) && is.is_none(),
    }
}

/// What a node and its state look like to the operator.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The node.
    pub address: Address,
    /// What it says of itself.
    pub state: EndpointState,
    /// Is it up?
    pub is_up: bool,
    /// How suspicious its silence is; none of this node.
    pub phi: Option<f64>,
}

/// This node's part in the ring, on the first shard.
pub struct Membership {
    env: Env,
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    /// The schema of this node, which is to become the ring's.
    owner: Rc<SchemaOwner>,
    clients: Rc<Clients>,
    messenger: Rc<Messenger>,
    gossiper: RefCell<Gossiper>,
    /// Who waits for the end of the shadow round.
    shadow: RefCell<Option<OneshotSender<Option<States>>>>,
    /// What was stored of nodes that were not heard of since the start.
    saved: RefCell<Nodes>,
    /// The other nodes of the ring.
    nodes: RefCell<Nodes>,
    /// Where this node stands.
    place: RefCell<Place>,
    /// Whose place it took in this start.
    replaced: Cell<Option<Address>>,
    /// The version of what all were told last of where this node stands.
    told_version: Cell<i32>,
    /// Who says where nodes are.
    snitch: Snitch,
    /// All nodes of the ring, this one included.
    ring: RefCell<Option<Arc<Ring>>>,
    /// The rings before changes that not all nodes may have heard of, and until when.
    former: RefCell<Vec<(Instant, Arc<Ring>)>>,
    /// Nodes of which something else is to be stored.
    unsaved: RefCell<BTreeSet<Address>>,
    changed: Notify,
    /// How the ring comes to one schema, once this node takes part.
    agreement: RefCell<Option<Agreement>>,
    /// The change that is being told.
    news: RefCell<Vec<Mutation>>,
    /// The version of the schema that was last published.
    schema: Cell<[u8; 16]>,
    /// What was last said of indexes.
    index_status: RefCell<String>,
    /// Keyspaces that want another ring.
    unfit: RefCell<fitness::Findings>,
    serves_clients: Cell<bool>,
    /// Nodes that were to be assassinated, and are not dead.
    still_alive: RefCell<BTreeSet<Address>>,
    /// Who has not confirmed that it has the replicas of a node that this one removes.
    awaited: RefCell<BTreeSet<Address>>,
    /// Nodes that clients know of, and whether as up.
    told: RefCell<BTreeMap<Address, (std::net::SocketAddr, bool)>>,
}

impl Membership {
    /// Not yet a part of anything.
    pub(crate) fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        owner: &Rc<SchemaOwner>,
        clients: &Rc<Clients>,
        messenger: &Rc<Messenger>,
        mut config: gossip::Config,
        snitch: Snitch,
    ) -> Rc<Self> {
        let env = shard.env.clone();
        config.reuses_versions = env.planted("gossip_reuses_version");
        let membership = Rc::new(Self {
            env: env.clone(),
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            owner: Rc::clone(owner),
            clients: Rc::clone(clients),
            messenger: Rc::clone(messenger),
            gossiper: RefCell::new(Gossiper::new(config)),
            shadow: RefCell::default(),
            saved: RefCell::default(),
            nodes: RefCell::default(),
            place: RefCell::default(),
            replaced: Cell::default(),
            told_version: Cell::default(),
            snitch,
            ring: RefCell::default(),
            former: RefCell::default(),
            unsaved: RefCell::default(),
            changed: Notify::new(),
            agreement: RefCell::default(),
            news: RefCell::default(),
            schema: Cell::default(),
            index_status: RefCell::new(index_status::NONE.to_owned()),
            unfit: RefCell::default(),
            serves_clients: Cell::default(),
            still_alive: RefCell::default(),
            awaited: RefCell::default(),
            told: RefCell::default(),
        });
        let hears = Rc::downgrade(&membership);
        peers.listen_to_gossip(move |gossip| {
            if let Some(membership) = hears.upgrade() {
                membership.receive(gossip);
            }
        });
        let asked = Rc::downgrade(&membership);
        owner.ask_ring(move || asked.upgrade().and_then(|it| it.keeps_compact_storage()));
        env.spawn(Class::Background, Rc::clone(&membership).keep_time());
        env.spawn(Class::Background, Rc::clone(&membership).keep_peers());
        membership
    }

    fn now(&self) -> Now {
        let nanos = self.env.now().since(Instant::ZERO).as_nanos();
        Now {
            nanos: u64::try_from(nanos).unwrap_or(u64::MAX),
            unix_millis: self.env.unix_micros() / 1000,
        }
    }

    /// Takes a step, and does what follows from it.
    fn step(self: &Rc<Self>, event: Event) {
        let now = self.now();
        let effects = {
            let env = &self.env;
            self.gossiper.borrow_mut().step(now, event, &mut || env.random_u64())
        };
        let mut is_changed = false;
        for effect in effects {
            match effect {
                Effect::Send(to, message) => self.send(to, message),
                Effect::ShadowRound(states) => self.end_shadow_round(Some(states)),
                Effect::ShadowRoundFailed => self.end_shadow_round(None),
                Effect::Joined(node) | Effect::Restarted(node) | Effect::Changed(node, _) => {
                    is_changed = true;
                    self.tell_standing(node, &effect);
                    self.heard_of(node);
                }
                Effect::Up(node) => {
                    is_changed = true;
                    // words that tools wait for (`Gossiper`), as are those below
                    self.peers.note_event(format!("InetAddress /{node} is now UP"));
                    self.agree(schema_ring::Event::Up(node));
                }
                Effect::Down(node) => {
                    is_changed = true;
                    self.env.mark("gossip.down");
                    self.peers.note_event(format!("InetAddress /{node} is now DOWN"));
                    self.agree(schema_ring::Event::Down(node));
                    self.interrupt(node);
                }
                Effect::Removed(node) => {
                    is_changed = true;
                    self.agree(schema_ring::Event::Removed(node));
                }
                Effect::StillAlive(node) => {
                    self.still_alive.borrow_mut().insert(node);
                    let text = format!(
                        "did not assassinate /{node}: it still sends gossip; stop it first"
                    );
                    self.note(Level::Warn, text);
                }
                Effect::Refused(from, refusal) => {
                    let text = format!("rejected gossip state from /{from}: {refusal}");
                    self.note(Level::Warn, text);
                }
            }
        }
        if is_changed {
            self.look_around();
        }
    }

    /// Tells of another node that it became a member, in the words that tools wait for
    /// (`StorageService.handleStateNormal`).
    fn tell_standing(&self, node: Address, effect: &Effect) {
        let is_of_status = match effect {
            Effect::Changed(_, state) => *state == AppState::STATUS_WITH_PORT,
            _ => true,
        };
        let gossiper = self.gossiper.borrow();
        let status = gossiper.peer(node).map(|peer| peer.state.status());
        if is_of_status && status == Some(gossip::Status::Normal) {
            self.peers.note_event(format!("Node /{node} state jump to NORMAL"));
        }
    }

    fn send(self: &Rc<Self>, to: Address, message: Message) {
        let mut payload = Vec::new();
        let (verb, written) = match &message {
            Message::Syn(syn) => (Verb::GossipDigestSyn, syn.write(&mut payload)),
            Message::Ack(ack) => (Verb::GossipDigestAck, ack.write(&mut payload)),
            Message::Ack2(states) => {
                (Verb::GossipDigestAck2, gossip::write_states(states, &mut payload))
            }
            Message::Shutdown { .. } => (Verb::GossipShutdown, Ok(())),
            Message::Echo => return self.ask_for_echo(to),
        };
        if let Err(error) = written {
            let text = format!("cannot encode {} to /{to}, did not send it: {error}", verb.name());
            return self.note(Level::Error, text);
        }
        self.messenger.send(to, verb, &payload.into());
    }

    fn ask_for_echo(self: &Rc<Self>, to: Address) {
        let membership = Rc::downgrade(self);
        let empty: Arc<[u8]> = Arc::from([]);
        self.messenger.ask(
            to,
            Verb::EchoReq,
            internode::Flags::NONE,
            internode::Params::NONE,
            &empty,
            move |answer| {
                if let Some(membership) = membership.upgrade() {
                    membership.step(match answer {
                        Ok(_) => Event::EchoAnswered(to),
                        Err(_) => Event::EchoFailed(to),
                    });
                }
            },
        );
    }

    /// A message of gossip came.
    fn receive(self: &Rc<Self>, gossip: Gossip) {
        let Gossip { from, verb, payload, created_at: created } = gossip;
        if verb == Verb::ReplicationDoneReq {
            return self.replicated(from);
        }
        let mut reader = Reader::new(&payload);
        let message = match verb {
            Verb::GossipDigestSyn => gossip::Syn::read(&mut reader).map(Message::Syn),
            Verb::GossipDigestAck => gossip::Ack::read(&mut reader).map(Message::Ack),
            Verb::GossipDigestAck2 => gossip::read_states(&mut reader).map(Message::Ack2),
            Verb::EchoReq => Ok(Message::Echo),
            _ => Ok(Message::Shutdown { created }),
        };
        match message {
            Ok(message) => self.step(Event::Received { from, message }),
            Err(error) => {
                let text = format!("ignored a malformed {} from /{from}: {error}", verb.name());
                self.note(Level::Warn, text);
            }
        }
    }

    async fn keep_time(self: Rc<Self>) {
        let mut ticks = 0u64;
        loop {
            self.env.sleep(TICK).await;
            self.step(Event::Tick);
            self.agree(schema_ring::Event::Tick);
            self.publish_schema();
            self.forget_rings();
            if ticks.is_multiple_of(LOAD_TICKS) && self.gossiper.borrow().is_running() {
                self.publish_load();
                self.publish_index_status();
                self.tell_fitness();
            }
            ticks += 1;
        }
    }

    fn publish(self: &Rc<Self>, states: Vec<(AppState, String)>) {
        self.step(Event::Publish(states));
    }

    /// Says which version of the schema this node has, if it is another than it said.
    pub(crate) fn publish_schema(self: &Rc<Self>) {
        let version = self.shard.schema().version();
        if self.gossiper.borrow().is_running() && self.schema.replace(version) != version {
            let version = types::Uuid::from_bytes(version).to_string();
            self.publish(vec![(AppState::SCHEMA, version)]);
            self.publish_index_status();
            self.make_ring();
        }
    }

    /// Says which indexes this node has not built, if they are others than it said.
    fn publish_index_status(self: &Rc<Self>) {
        let nodes = self.nodes.borrow();
        let releases = nodes.values().map(|node| node.release.as_str());
        let own = self.shard.identity.release;
        let serves_reads = self.shard.config.serves_index_reads;
        let status = index_status::value(&self.shard.schema(), own, serves_reads, releases);
        drop(nodes);
        let Some(status) = status else { return };
        if *self.index_status.borrow() != status {
            self.index_status.replace(status.clone());
            self.publish(vec![(AppState::INDEX_STATUS, status)]);
        }
    }

    fn publish_load(self: &Rc<Self>) {
        self.publish(vec![(AppState::LOAD, self.load().to_string())]);
    }

    /// Says whether clients are served.
    pub fn serves_clients(self: &Rc<Self>, does: bool) {
        if self.serves_clients.replace(does) != does {
            self.publish(vec![(AppState::RPC_READY, does.to_string())]);
        }
    }

    /// Looks at what is known of all nodes, and has every shard, `system.peers` and clients know
    /// it.
    fn look_around(self: &Rc<Self>) {
        let mut nodes: Nodes = {
            let gossiper = self.gossiper.borrow();
            let heard = gossiper.peers().filter_map(|(address, peer)| {
                NodeInfo::of(address, &peer.state, gossiper.is_up(address))
            });
            let placed = heard.map(|mut node| {
                let said = (node.data_center.as_str(), node.rack.as_str());
                (node.data_center, node.rack) =
                    self.snitch.place(node.address, false, Some(said).filter(|s| !s.0.is_empty()));
                (node.address, node)
            });
            placed.collect()
        };
        {
            let gossiper = self.gossiper.borrow();
            let (known, mut saved) = (self.nodes.borrow(), self.saved.borrow_mut());
            // until it says what it is, a member is what it was
            for (address, peer) in gossiper.peers() {
                let before = known.get(&address).or_else(|| saved.get(&address));
                let starting =
                    before.and_then(|before| before.starting(&peer.state, gossiper.is_up(address)));
                nodes.extend(starting.map(|node| (address, node)));
            }
            let is_unheard = |address: &Address| {
                gossiper.peer(*address).is_some_and(|peer| peer.state.values.is_empty())
            };
            saved.retain(|address, _| is_unheard(address));
        }
        let own = Own {
            address: self.local(),
            host_id: self.shard.engine.host_id(),
            tokens: self.place.borrow().owned(),
            replaced: self.replaced.get(),
            members: {
                let (nodes, saved) = (self.nodes.borrow(), self.saved.borrow());
                let all = nodes.values().chain(saved.values());
                all.filter(|node| node.life.is_member()).map(|node| node.address).collect()
            },
        };
        for conflict in node_info::settle(&mut nodes, &own) {
            self.note(conflict.level(), conflict.to_string());
            if let Conflict::Replaced { old, .. } = conflict {
                self.step(Event::Replaced(old));
            }
        }
        let before = self.nodes.replace(nodes.clone());
        let mut has_moved = false;
        let all: BTreeSet<Address> = before.keys().chain(nodes.keys()).copied().collect();
        for address in all {
            let (was, is) = (before.get(&address), nodes.get(&address));
            let is_member = |node: Option<&NodeInfo>| node.is_some_and(|n| n.life.is_member());
            if is_member(was) != is_member(is) {
                self.step(Event::Member(address, is_member(is)));
            }
            has_moved |= has_moved_on(was, is);
            let is_alike = match (was, is) {
                (Some(was), Some(is)) => was.is_stored_alike(is),
                (was, is) => was.is_none() && is.is_none(),
            };
            if !is_alike {
                self.unsaved.borrow_mut().insert(address);
                self.changed.notify_one();
            }
        }
        if has_moved {
            self.remember_ring();
        }
        self.make_ring();
        self.tell_clients();
    }

    /// The present ring is about to be one that was: for a while not all nodes know.
    fn remember_ring(&self) {
        let Some(ring) = self.ring.borrow().clone() else { return };
        if self.env.planted("join_forgets_former") {
            return;
        }
        let until = self.env.now() + self.peers.former_time();
        self.peers.remember(&ring);
        let mut former = self.former.borrow_mut();
        former.push((until, ring));
        if former.len() > FORMER_MAX {
            former.remove(0);
        }
    }

    /// Rings that no node goes by any more are forgotten.
    fn forget_rings(&self) {
        let now = self.env.now();
        let before = self.former.borrow().len();
        self.former.borrow_mut().retain(|(until, _)| *until > now);
        if self.former.borrow().len() < before {
            self.make_ring();
        }
    }

    /// Nodes that have left, and that others may still read from because they have not heard so:
    /// for as long as they say that they take writes. Cassandra's do not say it: they may refuse
    /// writes (`reject_out_of_token_range_requests`), and end without a word.
    fn departed(&self, here: &[ring::Node]) -> Vec<ring::Node> {
        let gossiper = self.gossiper.borrow();
        let is_read_from = |node: &ring::Node| {
            let Some(peer) = gossiper.peer(node.address) else { return false };
            let takes_writes = peer.state.get(TAKES_WRITES) == Some(YES);
            takes_writes && peer.is_up && matches!(peer.state.status(), Status::Left { .. })
        };
        let mut departed: Vec<ring::Node> = Vec::new();
        if self.env.planted("leave_forgets_departed") {
            return departed;
        }
        for node in self.former.borrow().iter().flat_map(|(_, ring)| ring.nodes()) {
            let is_known = |known: &ring::Node| known.address == node.address;
            if here.iter().chain(&departed).any(is_known) || !is_read_from(node) {
                continue;
            }
            let (state, tokens) = (ring::State::Left, Vec::new());
            departed.push(ring::Node { state, tokens, is_up: true, ..node.clone() });
        }
        departed
    }

    /// Has every shard know who owns what, by the nodes and the strategies of the present schema.
    fn make_ring(&self) {
        let schema = self.shard.schema();
        let own = self.own_node();
        let others = self.nodes.borrow();
        let others = others.values().map(NodeInfo::node);
        let mut all: Vec<_> = std::iter::once(own).chain(others).collect();
        let departed = self.departed(&all);
        all.extend(departed);
        let before = self.ring.borrow().clone();
        let made = match before {
            Some(before) => before.with_nodes(all),
            None => Ring::new(all, []),
        };
        let ring = match made {
            Ok(ring) => ring,
            Err(error) => {
                let text =
                    format!("cannot rebuild the token ring, keeping the previous one: {error}");
                return self.note(Level::Error, text);
            }
        };
        let keyspaces = schema.keyspaces().values();
        let strategies = keyspaces.map(|keyspace| &keyspace.replication.strategy);
        let former = self.former.borrow();
        let ring = ring.with_strategies(strategies).with_former(former.iter().map(|(_, r)| &**r));
        let ring = Arc::new(ring);
        drop(former);
        *self.ring.borrow_mut() = Some(Arc::clone(&ring));
        self.peers.know_ring(&ring);
    }

    /// Tells clients what changed since they were last told.
    fn tell_clients(&self) {
        use protocol::{Event, StatusChange, TopologyChange};
        let nodes = self.nodes.borrow();
        let mut told = self.told.borrow_mut();
        let mut events = Vec::new();
        told.retain(|address, (native, _)| {
            let is_there = nodes.contains_key(address);
            if !is_there {
                events.push(Event::Topology(TopologyChange::RemovedNode, *native));
            }
            is_there
        });
        for (address, node) in nodes.iter().filter(|(_, node)| node.life.is_member()) {
            match told.get_mut(address) {
                None if node.is_usable() => {
                    told.insert(*address, (node.native, true));
                    events.push(Event::Topology(TopologyChange::NewNode, node.native));
                    events.push(Event::Status(StatusChange::Up, node.native));
                }
                Some((native, was_up)) if *was_up != node.is_usable() => {
                    (*native, *was_up) = (node.native, node.is_usable());
                    let change = if *was_up { StatusChange::Up } else { StatusChange::Down };
                    events.push(Event::Status(change, *native));
                }
                _ => {}
            }
        }
        drop(told);
        for event in events {
            self.clients.tell_all(&event);
        }
    }

    /// The other nodes of the ring.
    pub fn nodes(&self) -> Nodes {
        self.nodes.borrow().clone()
    }

    /// What is known of all nodes, this one included.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let (gossiper, now) = (self.gossiper.borrow(), self.now());
        let own = Endpoint {
            address: self.messenger.settings().local,
            state: gossiper.local().clone(),
            is_up: true,
            phi: None,
        };
        let others = gossiper.peers().map(|(address, peer)| Endpoint {
            address,
            state: peer.state.clone(),
            is_up: gossiper.is_up(address),
            phi: gossiper.phi(address, now),
        });
        std::iter::once(own).chain(others).collect()
    }

    /// The seeds but this node.
    pub fn seeds(&self) -> BTreeSet<Address> {
        self.gossiper.borrow().seeds().clone()
    }

    /// Does it take part in gossip?
    pub fn is_running(&self) -> bool {
        self.gossiper.borrow().is_running()
    }

    /// Tells the others that this node stops, and gives them time to hear it.
    pub async fn leave(self: &Rc<Self>) {
        if !self.is_running() {
            return;
        }
        let has_others = self.nodes.borrow().values().any(|node| node.is_up);
        self.step(Event::Stop);
        if has_others {
            self.env.sleep(ANNOUNCE).await;
        }
    }

    /// Has every shard give up its connections to a node that is down.
    fn interrupt(&self, node: Address) {
        self.peers.interrupt(node);
    }

    #[track_caller]
    fn note(&self, level: Level, message: String) {
        self.peers.note(level, message);
    }

    /// Bytes that this node stores, as gossip tells it.
    fn load(&self) -> f64 {
        self.shard.engine.disk_bytes() as f64
    }
}
