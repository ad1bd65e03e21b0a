//! How nodes are forgotten.

use types::{Address, Token};

use crate::app_state::AppState;
use crate::assassination::Assassination;
use crate::endpoint::{EndpointState, HeartBeat, Versioned};
use crate::gossiper::{Effect, Gossiper, Now};
use crate::status::Status;
use crate::tokens::read_tokens;

/// How long those that left are remembered, so that all hear of it, in milliseconds.
pub const REMEMBERED: i64 = 3 * 24 * 3600 * 1000;
/// How much longer one that is joining may be silent before it is forgotten.
const JOINING_FACTOR: u64 = 10;
/// The generation of a node that is assassinated and of which nothing is known is so far ahead, in
/// milliseconds.
const UNKNOWN_AHEAD: i64 = 60_000;
/// And that is its version.
const UNKNOWN_VERSION: i32 = 9999;

impl Gossiper {
    /// Once a second: who is down, who may be forgotten.
    pub(crate) fn look_after(&mut self, now: Now) {
        let may_judge = self.detector.may_judge(now.nanos);
        for node in self.peers.keys().copied().collect::<Vec<_>>() {
            if may_judge && self.detector.is_suspect(node, now.nanos) {
                self.convict(now, node);
            }
            self.maybe_forget(now, node);
        }
        self.finish_assassinations(now);
        let quarantine = i64::try_from(self.config.quarantine()).unwrap_or(i64::MAX);
        self.quarantine.retain(|_, since| now.unix_millis.saturating_sub(*since) <= quarantine);
    }

    fn maybe_forget(&mut self, now: Now, node: Address) {
        let Some(peer) = self.peers.get(&node) else { return };
        if self.members.contains(&node) {
            return;
        }
        let status = peer.state.status();
        let patience = match status.is_joining() {
            true => self.config.ring_delay.saturating_mul(JOINING_FACTOR),
            false => self.config.ring_delay,
        };
        let is_guest = !status.is_dead() && !self.quarantine.contains_key(&node);
        let expired = self.expiries.get(&node).is_some_and(|at| now.unix_millis > *at);
        if is_guest && now.millis_since(peer.updated) > patience {
            self.remove(now, node);
            self.evict(now, node);
        } else if !peer.is_up && expired {
            self.evict(now, node);
        }
    }

    /// A node is out of the ring. What it said last stays known for those that have not heard it
    /// yet.
    pub(crate) fn remove(&mut self, now: Now, node: Address) {
        self.effect(Effect::Removed(node));
        self.config.seeds.remove(&node);
        self.echoes.remove(&node);
        self.live.remove(&node);
        self.unreachable.remove(&node);
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.is_up = false;
        }
        self.quarantine.insert(node, now.unix_millis);
    }

    fn evict(&mut self, now: Now, node: Address) {
        self.echoes.remove(&node);
        self.live.remove(&node);
        self.unreachable.remove(&node);
        self.peers.remove(&node);
        self.heard.remove(&node);
        self.expiries.remove(&node);
        self.detector.forget(node);
        self.quarantine.insert(node, now.unix_millis);
    }

    /// Another took its place: it is to be silent for longer.
    pub(crate) fn replaced(&mut self, now: Now, node: Address) {
        self.remove(now, node);
        self.evict(now, node);
        let longer = i64::try_from(self.config.quarantine()).unwrap_or(i64::MAX);
        self.quarantine.insert(node, now.unix_millis.saturating_add(longer));
    }

    pub(crate) fn assassinate(&mut self, now: Now, node: Address, token: Token) {
        if node == self.config.local {
            return;
        }
        match self.peers.get(&node) {
            Some(peer) => self.assassinations.push(Assassination {
                node,
                token,
                heartbeat: peer.state.heartbeat,
                since: now.nanos,
            }),
            None => {
                let generation = (now.unix_millis.saturating_add(UNKNOWN_AHEAD) / 1000) as i32;
                let heartbeat = HeartBeat { generation, version: UNKNOWN_VERSION };
                self.declare_left(now, node, EndpointState::new(heartbeat), token);
            }
        }
    }

    fn finish_assassinations(&mut self, now: Now) {
        let (due, waiting) = std::mem::take(&mut self.assassinations)
            .into_iter()
            .partition(|one| now.millis_since(one.since) >= self.config.ring_delay);
        self.assassinations = waiting;
        let due: Vec<Assassination> = due;
        for one in due {
            let Some(peer) = self.peers.get(&one.node) else { continue };
            if peer.state.heartbeat != one.heartbeat {
                self.effect(Effect::StillAlive(one.node));
                continue;
            }
            let mut state = peer.state.clone();
            state.heartbeat.generation = state.heartbeat.generation.saturating_add(1);
            self.declare_left(now, one.node, state, one.token);
        }
    }

    /// Says in a node's place that it is being removed (`Gossiper.advertiseRemoving`).
    pub(crate) fn say_removing(&mut self, now: Now, node: Address, host: &str, by: &str) {
        let by = self.versioned(format!("REMOVER,{by}"));
        self.say_for(now, node, Status::removing(host), Some((AppState::REMOVAL_COORDINATOR, by)));
    }

    /// Says in a node's place that it was removed (`Gossiper.advertiseTokenRemoved`).
    pub(crate) fn say_removed(&mut self, now: Now, node: Address, host: &str) {
        let expires = now.unix_millis.saturating_add(REMEMBERED);
        self.say_for(now, node, Status::removed(host, expires), None);
    }

    fn say_for(
        &mut self,
        now: Now,
        node: Address,
        status: String,
        more: Option<(AppState, Versioned)>,
    ) {
        let Some(peer) = self.peers.get(&node) else { return };
        let mut state = peer.state.clone();
        state.heartbeat.generation = state.heartbeat.generation.saturating_add(1);
        state.values.extend(more);
        state.values.remove(&AppState::STATUS);
        state.values.insert(AppState::STATUS_WITH_PORT, self.versioned(status));
        // where nothing was heard of it what was saved of it is said
        for (kind, value) in self.saved_of(node) {
            let value = self.versioned(value);
            state.values.entry(kind).or_insert(value);
        }
        self.change_generation(now, node, state);
    }

    /// Says in a node's place that it left the ring.
    fn declare_left(&mut self, now: Now, node: Address, mut state: EndpointState, token: Token) {
        let owned = state.get(AppState::TOKENS).and_then(|value| read_tokens(value).ok());
        let token = owned.and_then(|tokens| tokens.first().copied()).unwrap_or(token);
        let left = Status::left(token.0, now.unix_millis.saturating_add(REMEMBERED));
        state.values.remove(&AppState::STATUS);
        state.values.insert(AppState::STATUS_WITH_PORT, self.versioned(left));
        self.change_generation(now, node, state);
    }
}
