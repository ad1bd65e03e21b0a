//! What becomes of what is heard of nodes, and when they are up and down.

use std::cmp::Ordering;

use types::Address;

use crate::app_state::AppState;
use crate::endpoint::EndpointState;
use crate::gossiper::{Effect, Gossiper, Now, Peer};
use crate::message::{Message, States};
use crate::refusal::Refusal;
use crate::removal::REMEMBERED;
use crate::status::Status;

/// A generation so far ahead of time is none, in seconds.
const MAX_GENERATION_AHEAD: i64 = 365 * 86_400;
/// What is known of all nodes has at most so many bytes: that of 16,000 nodes with 16 tokens, of
/// 10,000 with 256.
pub(crate) const STATES_BYTES_MAX: usize = 64 << 20;
/// What a node counts for at least, in bytes: each costs time once a second.
pub(crate) const STATE_BYTES_MIN: usize = 4 << 10;

impl Gossiper {
    /// States of nodes were heard, by a node.
    pub(crate) fn learn(&mut self, now: Now, from: Address, mut states: States) {
        self.keep_what_is_possible(now, from, &mut states);
        self.keep_what_fits(from, &mut states);
        for (node, heard) in &states {
            self.take_sign_of_life(now, *node, heard);
        }
        let mut states: Vec<_> = states.into_iter().collect();
        // those that are joining last, since they depend on what the others own
        states.sort_by_key(|(node, state)| {
            (state.status().is_joining(), state.heartbeat.generation, *node)
        });
        for (node, heard) in states {
            self.apply(now, node, heard);
        }
    }

    /// Hears nothing of who is said to have started long after now. Cassandra believes that of
    /// nodes that it does not know yet; but the node that is meant could then not be heard again.
    pub(crate) fn keep_what_is_possible(&mut self, now: Now, from: Address, states: &mut States) {
        let latest = now.unix_millis / 1000 + MAX_GENERATION_AHEAD;
        let mut impossible = None;
        states.retain(|node, heard| {
            let generation = heard.heartbeat.generation;
            let is_possible = i64::from(generation) <= latest;
            if !is_possible {
                impossible = Some(Refusal::Generation { node: *node, generation });
            }
            is_possible
        });
        self.effects.extend(impossible.map(|refusal| Effect::Refused(from, refusal)));
    }

    /// Whoever tells of ever more nodes, or ever more of them, does not fill the memory.
    fn keep_what_fits(&mut self, from: Address, states: &mut States) {
        let heard: usize = states.values().map(counted_bytes).sum();
        let known: usize = self.peers.values().map(|peer| counted_bytes(&peer.state)).sum();
        if heard + known <= STATES_BYTES_MAX {
            return;
        }
        let before = states.len();
        let mut left = STATES_BYTES_MAX.saturating_sub(known);
        states.retain(|node, heard| {
            let was = self.peers.get(node).map_or(0, |peer| counted_bytes(&peer.state));
            let more = counted_bytes(heard).saturating_sub(was);
            let fits = more <= left;
            left -= if fits { more } else { 0 };
            fits
        });
        if states.len() < before {
            let nodes = before - states.len();
            self.effect(Effect::Refused(from, Refusal::TooMuch { nodes }));
        }
    }

    fn take_sign_of_life(&mut self, now: Now, node: Address, heard: &EndpointState) {
        let Some(known) = self.peers.get_mut(&node) else { return };
        let (ours, theirs) = (known.state.heartbeat, heard.heartbeat);
        if theirs.generation > ours.generation {
            if !known.is_up {
                self.detector.forget(node);
            }
        } else if theirs.generation < ours.generation || theirs.version <= known.state.max_version()
        {
            return;
        }
        known.updated = now.nanos;
        self.detector.report(node, now.nanos);
    }

    fn apply(&mut self, now: Now, node: Address, mut heard: EndpointState) {
        if node == self.config.local || self.quarantine.contains_key(&node) {
            return;
        }
        heard.drop_superseded();
        let Some(known) = self.peers.get(&node) else {
            self.detector.report(node, now.nanos);
            return self.change_generation(now, node, heard);
        };
        let generation = heard.heartbeat.generation;
        match generation.cmp(&known.state.heartbeat.generation) {
            Ordering::Less => {}
            Ordering::Greater => self.change_generation(now, node, heard),
            Ordering::Equal => {
                if heard.max_version() > known.state.max_version() {
                    self.add_news(now, node, heard);
                }
                let is_candidate = |peer: &Peer| !peer.is_up && !peer.state.status().is_dead();
                if self.peers.get(&node).is_some_and(is_candidate) {
                    self.ask_whether_up(node);
                }
            }
        }
    }

    /// A node that was not known, or started again.
    pub(crate) fn change_generation(&mut self, now: Now, node: Address, heard: EndpointState) {
        let status = heard.status();
        let was = self.peers.insert(node, Peer::new(heard, now));
        if was.as_ref().is_some_and(|peer| peer.is_up) {
            self.live.remove(&node);
            self.unreachable.insert(node, now.nanos);
            self.effect(Effect::Down(node));
        }
        if was.is_some() {
            self.effect(Effect::Restarted(node));
        }
        self.echoes.remove(&node);
        self.heard.remove(&node);
        if status.is_dead() {
            self.silently_down(now, node);
        } else {
            self.unreachable.entry(node).or_insert(now.nanos);
            self.ask_whether_up(node);
        }
        self.note_expiry(now, node, &status);
        self.effect(Effect::Joined(node));
        if status == Status::Shutdown {
            self.mark_shut_down(now, node);
        }
    }

    /// More of what is known already.
    fn add_news(&mut self, now: Now, node: Address, heard: EndpointState) {
        let Some(known) = self.peers.get_mut(&node) else { return };
        known.state.heartbeat = heard.heartbeat;
        known.updated = now.nanos;
        let is_news = |state: &AppState, version: i32, known: &Peer| {
            known.state.values.get(state).is_none_or(|value| value.version < version)
        };
        let mut changed: Vec<AppState> = Vec::new();
        for (state, value) in heard.values {
            if is_news(&state, value.version, known) {
                known.state.values.insert(state, value);
                changed.push(state);
            }
        }
        known.state.drop_superseded();
        changed.retain(|state| known.state.values.contains_key(state));
        // what a node is comes before what else it says
        changed
            .sort_by_key(|state| !matches!(*state, AppState::STATUS | AppState::STATUS_WITH_PORT));
        let status = known.state.status();
        self.note_expiry(now, node, &status);
        if status.is_dead() && self.peers.get(&node).is_some_and(|peer| peer.is_up) {
            // the ring decides what becomes of it, but it is not asked any more whether it is up
            self.echoes.remove(&node);
        }
        for state in changed {
            self.effect(Effect::Changed(node, state));
        }
    }

    fn note_expiry(&mut self, now: Now, node: Address, status: &Status) {
        if let Some(expires) = status.expires() {
            // nobody is remembered for ever because somebody said so
            let latest = now.unix_millis.saturating_add(REMEMBERED);
            self.expiries.insert(node, expires.min(latest));
        }
    }

    /// A node gave a sign of life, but is it reachable?
    fn ask_whether_up(&mut self, node: Address) {
        if self.echoes.insert(node) {
            self.send(node, Message::Echo);
        }
    }

    pub(crate) fn echo_answered(&mut self, now: Now, node: Address) {
        let was_asked = self.echoes.remove(&node);
        let Some(peer) = self.peers.get_mut(&node).filter(|_| was_asked) else { return };
        let status = peer.state.status();
        // one that stopped may still answer: nothing would tell later that it is silent
        if status.is_dead() || status == Status::Shutdown {
            return;
        }
        peer.updated = now.nanos;
        self.expiries.remove(&node);
        self.unreachable.remove(&node);
        self.live.insert(node);
        if !std::mem::replace(&mut peer.is_up, true) {
            self.effect(Effect::Up(node));
        }
    }

    /// A node is silent for too long.
    pub(crate) fn convict(&mut self, now: Now, node: Address) {
        let Some(peer) = self.peers.get(&node).filter(|peer| peer.is_up) else { return };
        match peer.state.status() {
            Status::Shutdown => self.mark_shut_down(now, node),
            _ => self.mark_down(now, node),
        }
    }

    pub(crate) fn mark_down(&mut self, now: Now, node: Address) {
        let was_up = self.peers.get(&node).is_some_and(|peer| peer.is_up);
        self.silently_down(now, node);
        if was_up {
            self.effect(Effect::Down(node));
        }
    }

    pub(crate) fn silently_down(&mut self, now: Now, node: Address) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.is_up = false;
        }
        self.echoes.remove(&node);
        self.live.remove(&node);
        self.unreachable.insert(node, now.nanos);
    }

    /// A node said that it stops, unless that was before its last start.
    pub(crate) fn stopped(&mut self, now: Now, node: Address, created: i64) {
        let started = self.peers.get(&node).map(|peer| peer.state.heartbeat.generation);
        if started.is_some_and(|started| created / 1000 >= i64::from(started)) {
            self.mark_shut_down(now, node);
        }
    }

    /// A node stops. What is still on its way from before is not to make it seem up again: no
    /// version is above the one that it gets.
    pub(crate) fn mark_shut_down(&mut self, now: Now, node: Address) {
        if self.peers.get(&node).is_none_or(|peer| peer.state.values.is_empty()) {
            return;
        }
        let (status, rpc_ready) = (self.versioned(Status::SHUTDOWN), self.versioned("false"));
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.state.values.insert(AppState::STATUS_WITH_PORT, status);
            peer.state.values.insert(AppState::RPC_READY, rpc_ready);
            peer.state.heartbeat.version = i32::MAX;
        }
        self.mark_down(now, node);
        self.effect(Effect::Changed(node, AppState::STATUS_WITH_PORT));
    }
}

/// What a node's state counts for, in bytes.
fn counted_bytes(state: &EndpointState) -> usize {
    // an entry of the map, the value's count of owners and its end
    const VALUE: usize = 64;
    let values: usize = state.values.values().map(|value| value.value.len() + VALUE).sum();
    values.max(STATE_BYTES_MIN)
}
