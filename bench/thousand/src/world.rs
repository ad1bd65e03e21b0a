//! Nodes that gossip, and the network between them.

use std::collections::{BTreeMap, VecDeque};

use gossip::{
    Ack, AppState, Config, Effect, Event, Gossiper, Message, Now, Syn, read_states, write_states,
    write_tokens,
};
use types::{Address, Reader, Token};

use crate::{address, random};

const SECOND: u64 = 1_000_000_000;
/// How long a message takes.
const DELAY: u64 = SECOND / 1000;
const START_MILLIS: i64 = 1_700_000_000_000;
/// Tokens of a node.
const TOKENS: usize = 16;
/// Seeds: the first nodes.
const SEEDS: usize = 3;
const SEED: u64 = 1;

enum Packet {
    Tick,
    Bytes(Address, Kind, Vec<u8>),
    EchoAsked(Address),
    EchoAnswered(Address),
}

#[derive(Clone, Copy)]
enum Kind {
    Syn,
    Ack,
    Ack2,
}

pub struct World {
    nanos: u64,
    nodes: BTreeMap<Address, Gossiper>,
    /// Messages, in the order in which they arrive; each takes as long.
    under_way: VecDeque<(u64, Address, Packet)>,
    ticks: BTreeMap<(u64, Address), ()>,
    random: Box<dyn FnMut() -> u64>,
    pub messages: u64,
    pub bytes: u64,
}

impl World {
    /// So many nodes, which start within a second.
    pub fn new(count: usize) -> Self {
        let seeds: Vec<Address> = (1..=SEEDS).map(address).collect();
        let mut world = Self {
            nanos: SECOND,
            nodes: BTreeMap::new(),
            under_way: VecDeque::new(),
            ticks: BTreeMap::new(),
            random: Box::new(random(SEED)),
            messages: 0,
            bytes: 0,
        };
        for number in 1..=count {
            let node = address(number);
            let gossiper = Gossiper::new(Config::new(node, "Thousand", seeds.iter().copied()));
            world.nodes.insert(node, gossiper);
            let tokens: Vec<Token> =
                (0..TOKENS).map(|_| Token((world.random)().cast_signed())).collect();
            let states = vec![
                (AppState::HOST_ID, uuid(number)),
                (AppState::DC, "dc1".to_owned()),
                (AppState::RACK, format!("rack{}", number % 3)),
                (AppState::RELEASE_VERSION, "5.0.9".to_owned()),
                (AppState::NET_VERSION, "12".to_owned()),
                (AppState::SCHEMA, uuid(0)),
                (AppState::LOAD, "1073741824.0".to_owned()),
                (AppState::SSTABLE_VERSIONS, "big-nb".to_owned()),
                (AppState::NATIVE_ADDRESS_AND_PORT, format!("{node}")),
                (AppState::INTERNAL_ADDRESS_AND_PORT, format!("{node}")),
                (AppState::RPC_READY, "true".to_owned()),
                (AppState::TOKENS, write_tokens(&tokens)),
                (AppState::STATUS_WITH_PORT, format!("NORMAL,{}", tokens[0].0)),
            ];
            world.step(node, Event::Start { generation: 1_700_000_000, states });
            let first = world.nanos + (world.random)() % SECOND;
            world.ticks.insert((first, node), ());
        }
        world
    }

    pub fn second(&self) -> u64 {
        self.nanos / SECOND
    }

    pub fn nodes(&self) -> impl Iterator<Item = (&Address, &Gossiper)> {
        self.nodes.iter()
    }

    /// A node says something.
    pub fn publish(&mut self, node: Address, kind: AppState, value: String) {
        self.step(node, Event::Publish(vec![(kind, value)]));
    }

    /// All that happens in so many milliseconds.
    pub fn run(&mut self, millis: u64) {
        let end = self.nanos + millis * (SECOND / 1000);
        loop {
            let tick = self.ticks.first_key_value().map(|(key, ())| *key);
            let message = self.under_way.front().map(|(at, ..)| *at);
            let is_tick = match (tick, message) {
                (Some((tick, _)), Some(message)) => tick <= message,
                (tick, _) => tick.is_some(),
            };
            let (at, to, packet) = match (is_tick, tick) {
                (true, Some((at, node))) if at < end => {
                    self.ticks.pop_first();
                    self.ticks.insert((at + SECOND, node), ());
                    (at, node, Packet::Tick)
                }
                (false, _) if message.is_some_and(|at| at < end) => {
                    let Some(packet) = self.under_way.pop_front() else { return };
                    packet
                }
                _ => break,
            };
            self.nanos = at;
            self.deliver(to, packet);
        }
        self.nanos = end;
    }

    fn deliver(&mut self, to: Address, packet: Packet) {
        match packet {
            Packet::Tick => self.step(to, Event::Tick),
            Packet::EchoAsked(from) => self.send(from, Packet::EchoAnswered(to)),
            Packet::EchoAnswered(from) => {
                self.step(to, Event::EchoAnswered(from));
                self.step(to, Event::Member(from, true));
            }
            Packet::Bytes(from, kind, bytes) => {
                let mut reader = Reader::new(&bytes);
                let message = match kind {
                    Kind::Syn => Syn::read(&mut reader).map(Message::Syn),
                    Kind::Ack => Ack::read(&mut reader).map(Message::Ack),
                    Kind::Ack2 => read_states(&mut reader).map(Message::Ack2),
                };
                let message = message.expect("what was written is read");
                self.step(to, Event::Received { from, message });
            }
        }
    }

    fn send(&mut self, to: Address, packet: Packet) {
        self.messages += 1;
        self.under_way.push_back((self.nanos + DELAY, to, packet));
    }

    fn step(&mut self, node: Address, event: Event) {
        let unix_millis = START_MILLIS + (self.nanos / 1_000_000).cast_signed();
        let now = Now { nanos: self.nanos, unix_millis };
        let gossiper = self.nodes.get_mut(&node).expect("a node of the world");
        for effect in gossiper.step(now, event, &mut *self.random) {
            let Effect::Send(to, message) = effect else { continue };
            let mut bytes = Vec::new();
            let kind = match message {
                Message::Syn(syn) => syn.write(&mut bytes).map(|()| Kind::Syn),
                Message::Ack(ack) => ack.write(&mut bytes).map(|()| Kind::Ack),
                Message::Ack2(states) => write_states(&states, &mut bytes).map(|()| Kind::Ack2),
                Message::Echo => {
                    self.send(to, Packet::EchoAsked(node));
                    continue;
                }
                Message::Shutdown { .. } => continue,
            };
            let kind = kind.expect("states of this size are written");
            self.bytes += bytes.len() as u64;
            self.send(to, Packet::Bytes(node, kind, bytes));
        }
    }
}

pub fn uuid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012x}")
}
