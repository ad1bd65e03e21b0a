//! Rings of gossipers under a network that loses, delays, repeats and parts, by seed; and bugs
//! planted in them, each of which the same laws must find.

use std::collections::{BTreeMap, BTreeSet};

use gossip::*;
use types::{Address, Reader, Token};

const SECOND: u64 = 1_000_000_000;
const START: i64 = 1_700_000_000_000;
/// Seconds of faults, and then without.
const FAULTS: u64 = 150;
const QUIET: u64 = 120;
/// A lost echo is noticed after as many seconds.
const ECHO_TIMEOUT: u64 = 10;
const SEEDS: u64 = 120;

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// None.
    None,
    /// A node starts again without a later generation.
    SameGeneration,
    /// A value changes on its way and keeps its version.
    ReusedVersion,
    /// Who is down answers echoes.
    EchoOfTheDead,
    /// Nobody says that an echo was not answered.
    LostEcho,
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

enum Packet {
    Event(Event),
    /// A message as it travels.
    Bytes(Address, &'static str, Vec<u8>),
    EchoAsked(Address),
}

struct World {
    bug: Bug,
    random: Random,
    nanos: u64,
    nodes: BTreeMap<Address, Gossiper>,
    /// Those that run.
    running: BTreeSet<Address>,
    generations: BTreeMap<Address, i32>,
    queue: BTreeMap<(u64, u64), (Address, Packet)>,
    sent: u64,
    faulty: bool,
    /// Who cannot speak to the others.
    parted: BTreeSet<Address>,
    /// What each said of itself, by generation, kind and version.
    said: BTreeMap<(Address, i32, AppState, i32), String>,
    /// How much each knew of each.
    known: BTreeMap<(Address, Address), (i32, i32)>,
    published: u64,
}

type Law = Result<(), String>;

impl World {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut random = Random(seed);
        let count = 3 + random.below(4) as u8;
        let all: Vec<_> = (1..=count).map(|host| Address::new([127, 0, 0, host], 7000)).collect();
        let seeds = all[..1 + random.below(2) as usize].to_vec();
        let node = |local: &Address| {
            let mut config = Config::new(*local, "Test Cluster", seeds.iter().copied());
            config.ring_delay = 5_000;
            (*local, Gossiper::new(config))
        };
        Self {
            bug,
            random,
            nanos: SECOND,
            nodes: all.iter().map(node).collect(),
            running: BTreeSet::new(),
            generations: BTreeMap::new(),
            queue: BTreeMap::new(),
            sent: 0,
            faulty: true,
            parted: BTreeSet::new(),
            said: BTreeMap::new(),
            known: BTreeMap::new(),
            published: 0,
        }
    }

    fn now(&self) -> Now {
        Now { nanos: self.nanos, unix_millis: START + (self.nanos / 1_000_000) as i64 }
    }

    fn schedule(&mut self, after: u64, to: Address, packet: Packet) {
        self.sent += 1;
        self.queue.insert((self.nanos + after, self.sent), (to, packet));
    }

    /// Over the network: lost, late, or twice.
    fn transmit(&mut self, from: Address, to: Address, mut packet: impl FnMut() -> Packet) -> bool {
        let parted = self.parted.contains(&from) != self.parted.contains(&to);
        let lost = self.faulty && (parted || self.random.one_in(5));
        if lost {
            return false;
        }
        let slowest = if self.faulty { 3 * SECOND } else { SECOND / 10 };
        let copies = if self.faulty && self.random.one_in(10) { 2 } else { 1 };
        for _ in 0..copies {
            let delay = self.random.below(slowest);
            self.schedule(delay, to, packet());
        }
        true
    }

    fn step(&mut self, node: Address, event: Event) -> Law {
        let now = self.now();
        let answered = match &event {
            Event::EchoAnswered(peer) => Some(*peer),
            _ => None,
        };
        let gossiper = self.nodes.get_mut(&node).expect("a node");
        let random = &mut self.random;
        let effects = gossiper.step(now, event, &mut || random.next());
        self.remember(node);
        for effect in effects {
            match effect {
                Effect::Send(to, Message::Echo) => {
                    self.transmit(node, to, || Packet::EchoAsked(node));
                    if self.bug != Bug::LostEcho {
                        let failed = Packet::Event(Event::EchoFailed(to));
                        self.schedule(ECHO_TIMEOUT * SECOND, node, failed);
                    }
                }
                Effect::Send(to, message) => self.send(node, to, &message),
                Effect::Up(peer) if answered != Some(peer) => {
                    return Err(format!("{node} takes {peer} for up unasked"));
                }
                Effect::Up(peer) if !self.faulty && !self.running.contains(&peer) => {
                    return Err(format!("{node} takes {peer} for up, which is not"));
                }
                Effect::Removed(peer) => _ = self.known.remove(&(node, peer)),
                _ => {}
            }
        }
        self.check(node)
    }

    fn send(&mut self, from: Address, to: Address, message: &Message) {
        let mut bytes = Vec::new();
        let kind = match message {
            Message::Syn(syn) => {
                syn.write(&mut bytes).unwrap();
                "syn"
            }
            Message::Ack(ack) => {
                let states = self.spoiled(&ack.states);
                Ack { wanted: ack.wanted.clone(), states }.write(&mut bytes).unwrap();
                "ack"
            }
            Message::Ack2(states) => {
                write_states(&self.spoiled(states), &mut bytes).unwrap();
                "ack2"
            }
            Message::Shutdown { created } => {
                bytes.extend(created.to_be_bytes());
                "shutdown"
            }
            Message::Echo => unreachable!("sent otherwise"),
        };
        self.transmit(from, to, || Packet::Bytes(from, kind, bytes.clone()));
    }

    /// States with a bug in them.
    fn spoiled(&mut self, states: &States) -> States {
        let mut states = states.clone();
        if self.bug == Bug::ReusedVersion && self.faulty && self.random.one_in(20) {
            let values = states.values_mut().filter_map(|s| s.values.get_mut(&AppState::LOAD));
            values.for_each(|value| *value = Versioned::new("0.5", value.version));
        }
        states
    }

    /// Notes what a node says of itself.
    fn remember(&mut self, node: Address) {
        let local = self.nodes[&node].local();
        let generation = local.heartbeat.generation;
        for (kind, value) in &local.values {
            let key = (node, generation, *kind, value.version);
            self.said.entry(key).or_insert_with(|| value.value.to_string());
        }
    }

    /// What a node knows of others is what those said, and never less than it was.
    fn check(&mut self, node: Address) -> Law {
        for (peer, known) in self.nodes[&node].peers() {
            let generation = known.state.heartbeat.generation;
            let now = (generation, known.state.max_version());
            let before = self.known.insert((node, peer), now).unwrap_or(now);
            if now < before {
                return Err(format!("{node} knew {before:?} of {peer}, then {now:?}"));
            }
            for (kind, value) in &known.state.values {
                let is_told_by_others = value.value.starts_with("shutdown")
                    || value.value.starts_with("LEFT")
                    || *kind == AppState::RPC_READY;
                let said = self.said.get(&(peer, generation, *kind, value.version));
                if !is_told_by_others && said.is_none_or(|said| **said != *value.value) {
                    return Err(format!("{node} heard {kind:?} {value:?} of {peer}, not {said:?}"));
                }
            }
        }
        Ok(())
    }

    fn start(&mut self, node: Address) -> Law {
        let seconds = ((START + (self.nanos / 1_000_000) as i64) / 1000) as i32;
        let before = self.generations.get(&node).copied();
        let generation = match before {
            Some(before) if self.bug == Bug::SameGeneration => before,
            // a start takes a second at least
            Some(before) => (seconds + 1).max(before + 1),
            None => seconds,
        };
        self.generations.insert(node, generation);
        let seeds = self.nodes[&node].seeds().iter().copied().chain(Some(node));
        let mut config = Config::new(node, "Test Cluster", seeds.collect::<Vec<_>>());
        config.ring_delay = 5_000;
        self.nodes.insert(node, Gossiper::new(config));
        self.known.retain(|(observer, _), _| *observer != node);
        self.running.insert(node);
        for member in self.nodes.keys().copied().collect::<Vec<_>>() {
            self.step(node, Event::Member(member, true))?;
        }
        let [host, last] = [12, 0].map(|_| node.to_string());
        let states = vec![
            (AppState::HOST_ID, host),
            (AppState::TOKENS, write_tokens(&[Token(generation.into())])),
            (AppState::STATUS_WITH_PORT, "NORMAL,1".to_owned()),
            (AppState::NATIVE_ADDRESS_AND_PORT, last),
        ];
        self.step(node, Event::Start { generation, states })?;
        let first = self.random.below(SECOND);
        self.schedule(first, node, Packet::Event(Event::Tick));
        Ok(())
    }

    /// The node is gone: what it would do next, it does not.
    fn crash(&mut self, node: Address) {
        self.running.remove(&node);
        self.queue.retain(|_, (to, packet)| *to != node || !matches!(packet, Packet::Event(_)));
    }

    fn disturb(&mut self) -> Law {
        let all: Vec<_> = self.nodes.keys().copied().collect();
        let stopped: Vec<_> = all.iter().filter(|node| !self.running.contains(*node)).collect();
        let node = all[self.random.below(all.len() as u64) as usize];
        let is_running = self.running.contains(&node);
        let may_stop = is_running && self.running.len() * 2 > all.len();
        match (self.random.below(16), stopped.first()) {
            (0, _) if may_stop => self.crash(node),
            (1, _) if may_stop => {
                self.step(node, Event::Stop)?;
                self.crash(node);
            }
            (2, _) if !self.parted.remove(&node) => _ = self.parted.insert(node),
            (3, _) => self.parted.clear(),
            (4..6, Some(node)) => self.start(**node)?,
            (6.., _) if is_running => {
                self.published += 1;
                let load = (AppState::LOAD, format!("{}.0", self.published));
                self.step(node, Event::Publish(vec![load]))?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Runs up to a time.
    fn run_until(&mut self, end: u64) -> Law {
        let mut next_disturbance = self.nanos;
        while let Some(((at, _), (to, packet))) = self.queue.pop_first() {
            if at >= end {
                self.schedule(at - self.nanos, to, packet);
                break;
            }
            self.nanos = at;
            if self.faulty && at >= next_disturbance {
                next_disturbance = at + self.random.below(5 * SECOND);
                self.disturb()?;
            }
            self.deliver(to, packet)?;
        }
        self.nanos = end;
        Ok(())
    }

    fn deliver(&mut self, to: Address, packet: Packet) -> Law {
        let is_running = self.running.contains(&to);
        match packet {
            Packet::EchoAsked(from) if is_running || self.bug == Bug::EchoOfTheDead => {
                self.transmit(to, from, || Packet::Event(Event::EchoAnswered(to)));
                Ok(())
            }
            _ if !is_running => Ok(()),
            Packet::EchoAsked(_) => Ok(()),
            Packet::Event(event) => {
                if matches!(event, Event::Tick) {
                    self.schedule(SECOND, to, Packet::Event(Event::Tick));
                }
                self.step(to, event)
            }
            Packet::Bytes(from, kind, bytes) => {
                let mut reader = Reader::new(&bytes);
                let message = match kind {
                    "syn" => Syn::read(&mut reader).map(Message::Syn),
                    "ack" => Ack::read(&mut reader).map(Message::Ack),
                    "ack2" => read_states(&mut reader).map(Message::Ack2),
                    _ => reader.i64().map(|created| Message::Shutdown { created }),
                };
                let message = message.expect("what was written");
                self.step(to, Event::Received { from, message })
            }
        }
    }

    /// Everybody knows of everybody that runs what that says of itself, that it is up, and that the
    /// others are not.
    fn agree(&self) -> Law {
        for node in &self.running {
            let gossiper = &self.nodes[node];
            for peer in self.nodes.keys().filter(|peer| *peer != node) {
                let is_running = self.running.contains(peer);
                if gossiper.is_up(*peer) != is_running {
                    return Err(format!("{node} takes {peer} for {}", !is_running));
                }
                let Some(known) = gossiper.peer(*peer).filter(|_| is_running) else { continue };
                if known.state.values != self.nodes[peer].local().values {
                    return Err(format!("{node} does not know what {peer} says"));
                }
            }
        }
        Ok(())
    }

    fn run(seed: u64, bug: Bug) -> Law {
        let mut world = Self::new(seed, bug);
        for node in world.nodes.keys().copied().collect::<Vec<_>>() {
            world.start(node)?;
        }
        world.run_until(FAULTS * SECOND)?;
        world.faulty = false;
        world.parted.clear();
        // a ring without a seed that runs has nobody to bring its parts together
        let seeds: Vec<_> = world.nodes.values().flat_map(|g| g.seeds().clone()).collect();
        for seed in seeds {
            if !world.running.contains(&seed) {
                world.start(seed)?;
            }
        }
        world.run_until((FAULTS + QUIET) * SECOND)?;
        world.agree()
    }
}

#[test]
fn rings_agree_after_any_faults() {
    for seed in 0..SEEDS {
        World::run(seed, Bug::None).unwrap_or_else(|law| panic!("seed {seed}: {law}"));
    }
}

#[test]
fn planted_bugs_are_found() {
    for bug in [Bug::SameGeneration, Bug::ReusedVersion, Bug::EchoOfTheDead, Bug::LostEcho] {
        let found: Vec<_> = (0..20).filter_map(|seed| World::run(seed, bug).err()).collect();
        assert!(!found.is_empty(), "{bug:?} was not found");
    }
}
