//! One node's part of gossip: what it knows, and the steps that change it (`gms.Gossiper`).

use std::collections::{BTreeMap, BTreeSet};

use types::{Address, Token};

use crate::app_state::AppState;
use crate::assassination::Assassination;
use crate::config::Config;
use crate::detector::FailureDetector;
use crate::endpoint::{EndpointState, HeartBeat, Versioned};
use crate::message::{Ack, Message, States, Syn};
use crate::phase::Phase;
use crate::refusal::Refusal;
use crate::status::Status;

/// When a step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds of a clock that only goes forward.
    pub nanos: u64,
    /// Milliseconds since 1970.
    pub unix_millis: i64,
}

impl Now {
    /// Milliseconds between two times.
    pub(crate) fn millis_since(self, nanos: u64) -> u64 {
        self.nanos.saturating_sub(nanos) / 1_000_000
    }
}

/// What happens to a gossiper.
#[derive(Clone, Debug)]
pub enum Event {
    /// Ask the ring for all it knows, before starting: seeds, and after a while others that are
    /// known from before.
    ShadowRound {
        /// Those others.
        peers: BTreeSet<Address>,
    },
    /// Take part from now on.
    Start {
        /// Seconds since 1970, above those of earlier starts.
        generation: i32,
        /// What to say of itself.
        states: Vec<(AppState, String)>,
    },
    /// Another second went by.
    Tick,
    /// Speak to all that are up, until each knows what this node said at a version.
    Tell(i32),
    /// Say this of itself from now on.
    Publish(Vec<(AppState, String)>),
    /// A message came.
    Received {
        /// From whom.
        from: Address,
        /// The message; not an echo, which the receiver answers by itself.
        message: Message,
    },
    /// An echo was answered.
    EchoAnswered(Address),
    /// An echo was not answered in time.
    EchoFailed(Address),
    /// A node that was in the ring before the last stop, of which nothing is known yet but this.
    Saved {
        /// The node.
        node: Address,
        /// Its host id and tokens: for itself, should it come back and know nothing.
        values: Vec<(AppState, String)>,
    },
    /// A node that owns tokens from now on, or does not any more.
    Member(Address, bool),
    /// A node is out of the ring: forget it, and hear nothing of it for a while.
    Remove(Address),
    /// A node took the place of this one.
    Replaced(Address),
    /// Other seeds.
    Seeds(BTreeSet<Address>),
    /// Take a node that is down out of the ring.
    Assassinate {
        /// The node.
        node: Address,
        /// A token, should it be known to own none.
        token: Token,
    },
    /// Say in the place of a node that is down that it is being removed.
    Removing {
        /// The node.
        node: Address,
        /// Its host id.
        host: String,
        /// The host id of who removes it.
        by: String,
    },
    /// Say in the place of a node that is down that it was removed.
    RemovedFromRing {
        /// The node.
        node: Address,
        /// Its host id.
        host: String,
    },
    /// Tell the others, and stop.
    Stop,
}

/// What a step is to be followed by.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A message to send. An echo's answer, or its absence, is an event.
    Send(Address, Message),
    /// A node that was not known, or started again.
    Joined(Address),
    /// A node started again.
    Restarted(Address),
    /// A node is up.
    Up(Address),
    /// A node is down.
    Down(Address),
    /// A node says something new of itself.
    Changed(Address, AppState),
    /// A node was forgotten.
    Removed(Address),
    /// The shadow round ended with what the ring knows; nothing, if nobody knows more than this
    /// node.
    ShadowRound(States),
    /// Nobody answered in the shadow round.
    ShadowRoundFailed,
    /// A node that was to be assassinated still gives signs of life.
    StillAlive(Address),
    /// What a node said is not believed, all of it or a part.
    Refused(Address, Refusal),
}

/// What is known of another node.
#[derive(Clone, Debug)]
pub struct Peer {
    /// What it says of itself.
    pub state: EndpointState,
    /// Is it up?
    pub is_up: bool,
    /// When it was last heard of, in nanoseconds.
    pub(crate) updated: u64,
}

impl Peer {
    pub(crate) fn new(state: EndpointState, now: Now) -> Self {
        Self { state, is_up: false, updated: now.nanos }
    }
}

/// One node's part of gossip.
#[derive(Debug)]
pub struct Gossiper {
    pub(crate) config: Config,
    pub(crate) phase: Phase,
    pub(crate) local: EndpointState,
    /// Last version given to anything.
    version: i32,
    pub(crate) peers: BTreeMap<Address, Peer>,
    /// Those that are up.
    pub(crate) live: BTreeSet<Address>,
    /// Those that are down, since when, in nanoseconds.
    pub(crate) unreachable: BTreeMap<Address, u64>,
    /// Who was asked whether it is up, and has not answered.
    pub(crate) echoes: BTreeSet<Address>,
    /// Those that the ring named before this node took part.
    pub(crate) named: BTreeSet<Address>,
    /// What was known before the last stop of those that were not heard of since.
    saved: BTreeMap<Address, Vec<(AppState, String)>>,
    /// Those that own tokens.
    pub(crate) members: BTreeSet<Address>,
    /// What is not heard of, since when, in milliseconds since 1970.
    pub(crate) quarantine: BTreeMap<Address, i64>,
    /// When those that left may be forgotten, in milliseconds since 1970.
    pub(crate) expiries: BTreeMap<Address, i64>,
    pub(crate) assassinations: Vec<Assassination>,
    /// Which version of this node's state others have, as they said.
    pub(crate) heard: BTreeMap<Address, i32>,
    /// Those that asked whether this node is up, since it started.
    pub(crate) asked: BTreeSet<Address>,
    /// How often others forgot this node.
    pub(crate) forgot: BTreeMap<Address, u32>,
    /// The version that all are to know.
    pub(crate) telling: Option<i32>,
    pub(crate) detector: FailureDetector,
    /// Answers from before this node's first word are not heard.
    pub(crate) has_spoken: bool,
    pub(crate) effects: Vec<Effect>,
}

impl Gossiper {
    /// Of a node that has not started.
    pub fn new(config: Config) -> Self {
        Self {
            phase: Phase::Idle,
            local: EndpointState::new(HeartBeat { generation: 0, version: 0 }),
            version: 0,
            peers: BTreeMap::new(),
            live: BTreeSet::new(),
            unreachable: BTreeMap::new(),
            echoes: BTreeSet::new(),
            named: BTreeSet::new(),
            saved: BTreeMap::new(),
            members: BTreeSet::new(),
            quarantine: BTreeMap::new(),
            expiries: BTreeMap::new(),
            assassinations: Vec::new(),
            heard: BTreeMap::new(),
            asked: BTreeSet::new(),
            forgot: BTreeMap::new(),
            telling: None,
            detector: FailureDetector::new(config.phi_threshold),
            has_spoken: false,
            effects: Vec::new(),
            config,
        }
    }

    /// What follows from an event. `random` answers any number.
    pub fn step(&mut self, now: Now, event: Event, random: &mut dyn FnMut() -> u64) -> Vec<Effect> {
        match event {
            Event::ShadowRound { peers } => self.start_shadow_round(now, peers),
            Event::Start { generation, states } => self.start(generation, states),
            Event::Tick => match self.phase {
                Phase::Idle => {}
                Phase::Shadow(_) => self.shadow_tick(now),
                Phase::Running => self.tick(now, random),
            },
            Event::Tell(version) => self.telling = Some(version),
            Event::Publish(states) => self.publish(states),
            Event::Received { from, message } => self.receive(now, from, message),
            Event::EchoAnswered(node) => self.echo_answered(now, node),
            Event::EchoFailed(node) => _ = self.echoes.remove(&node),
            Event::Saved { node, values } => self.add_saved(now, node, values),
            Event::Member(node, true) => _ = self.members.insert(node),
            Event::Member(node, false) => _ = self.members.remove(&node),
            Event::Remove(node) => self.remove(now, node),
            Event::Replaced(node) => self.replaced(now, node),
            Event::Seeds(mut seeds) => {
                self.config.is_seed = seeds.remove(&self.config.local);
                self.config.seeds = seeds;
            }
            Event::Assassinate { node, token } => self.assassinate(now, node, token),
            Event::Removing { node, host, by } => self.say_removing(now, node, &host, &by),
            Event::RemovedFromRing { node, host } => self.say_removed(now, node, &host),
            Event::Stop => self.stop(now),
        }
        std::mem::take(&mut self.effects)
    }

    /// What this node says of itself.
    pub fn local(&self) -> &EndpointState {
        &self.local
    }

    /// What is known of another node.
    pub fn peer(&self, node: Address) -> Option<&Peer> {
        self.peers.get(&node)
    }

    /// All other nodes.
    pub fn peers(&self) -> impl Iterator<Item = (Address, &Peer)> {
        self.peers.iter().map(|(node, peer)| (*node, peer))
    }

    /// Is a node up? This one is.
    pub fn is_up(&self, node: Address) -> bool {
        let is_up = |peer: &Peer| peer.is_up && !peer.state.status().is_dead();
        node == self.config.local || self.peers.get(&node).is_some_and(is_up)
    }

    /// Milliseconds since a node went down; none of one that is up.
    pub fn downtime(&self, node: Address, now: Now) -> Option<u64> {
        self.unreachable.get(&node).map(|since| now.millis_since(*since))
    }

    /// How suspicious a node's silence is (`nodetool failuredetector`).
    pub fn phi(&self, node: Address, now: Now) -> Option<f64> {
        self.detector.phi(node, now.nanos)
    }

    /// Is it out of the ring, and not to be heard of for a while?
    pub fn is_quarantined(&self, node: Address) -> bool {
        self.quarantine.contains_key(&node)
    }

    /// Does it take part?
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Is it a seed itself?
    pub fn is_seed(&self) -> bool {
        self.config.is_seed
    }

    /// The seeds but itself.
    pub fn seeds(&self) -> &BTreeSet<Address> {
        &self.config.seeds
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(crate) fn send(&mut self, to: Address, message: Message) {
        self.effects.push(Effect::Send(to, message));
    }

    pub(crate) fn next_version(&mut self) -> i32 {
        self.version = self.version.saturating_add(1);
        self.version
    }

    /// Sets values of this node's own or, where it speaks for another, of that one's.
    pub(crate) fn versioned(&mut self, value: impl Into<String>) -> Versioned {
        let version = self.next_version();
        Versioned::new(value.into(), version)
    }

    fn start(&mut self, generation: i32, states: Vec<(AppState, String)>) {
        self.phase = Phase::Running;
        self.local.heartbeat.generation = generation;
        self.heard.clear();
        self.asked.clear();
        self.telling = None;
        self.publish(states);
    }

    fn publish(&mut self, states: Vec<(AppState, String)>) {
        for (state, value) in states {
            let said = self.local.values.get(&state).map(|said| said.version);
            let value = match said.filter(|_| self.config.reuses_versions) {
                Some(version) => Versioned::new(value, version),
                None => self.versioned(value),
            };
            self.local.values.insert(state, value);
        }
    }

    fn stop(&mut self, now: Now) {
        let status = self.local.status();
        let is_silent = status.is_dead() || status.is_joining() || status == Status::None;
        if self.is_running() && !is_silent {
            self.publish(vec![
                (AppState::RPC_READY, "false".to_owned()),
                (AppState::STATUS_WITH_PORT, Status::SHUTDOWN.to_owned()),
                (AppState::STATUS, Status::SHUTDOWN.to_owned()),
            ]);
            for node in self.live.clone() {
                self.send(node, Message::Shutdown { created: now.unix_millis });
            }
        }
        self.phase = Phase::Idle;
        self.has_spoken = false;
    }

    fn receive(&mut self, now: Now, from: Address, message: Message) {
        match (&self.phase, message) {
            (Phase::Idle, _) => {}
            (_, Message::Echo) => _ = self.asked.insert(from),
            (Phase::Shadow(_), Message::Syn(syn)) => self.shadow_syn(from, &syn),
            (Phase::Shadow(_), Message::Ack(ack)) => self.shadow_ack(now, from, ack),
            (Phase::Shadow(_), Message::Ack2(_) | Message::Shutdown { .. }) => {}
            (Phase::Running, Message::Syn(syn)) => self.syn(from, &syn),
            (Phase::Running, Message::Ack(ack)) => self.ack(now, from, ack),
            (Phase::Running, Message::Ack2(states)) => self.learn(now, from, states),
            (Phase::Running, Message::Shutdown { created }) => self.stopped(now, from, created),
        }
    }

    /// Is a message of this cluster? The operator is told of one that is not.
    pub(crate) fn is_ours(&mut self, from: Address, syn: &Syn) -> bool {
        let refusal = Refusal::of_another_ring(syn, &self.config);
        let is_ours = refusal.is_none();
        self.effects.extend(refusal.map(|refusal| Effect::Refused(from, refusal)));
        is_ours
    }

    fn add_saved(&mut self, now: Now, node: Address, values: Vec<(AppState, String)>) {
        if node == self.config.local {
            return;
        }
        let unknown = || Peer::new(EndpointState::new(HeartBeat::NONE), now);
        self.peers.entry(node).or_insert_with(unknown).state.heartbeat = HeartBeat::NONE;
        self.saved.insert(node, values);
        self.silently_down(now, node);
    }

    /// What was known of a node before the last stop.
    pub(crate) fn saved_of(&self, node: Address) -> Vec<(AppState, String)> {
        self.saved.get(&node).cloned().unwrap_or_default()
    }

    /// The answer to one that wants to know everything, also what is only known from before the
    /// last stop.
    pub(crate) fn everything(&mut self) -> Ack {
        let states = self.peers.iter().map(|(node, peer)| (*node, peer.state.clone()));
        let mut states: States = states.collect();
        states.insert(self.config.local, self.local.clone());
        for (node, state) in &mut states {
            let is_unheard = state.heartbeat == HeartBeat::NONE && state.status() == Status::None;
            for (kind, value) in self.saved.get(node).filter(|_| is_unheard).into_iter().flatten() {
                self.version = self.version.saturating_add(1);
                state.values.insert(*kind, Versioned::new(value.as_str(), self.version));
            }
        }
        Ack { wanted: Vec::new(), states }
    }
}
