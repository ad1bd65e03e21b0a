//! What becomes of what is heard of nodes, and when they are up and down.

use std::cmp::Ordering;

use types::Address;

use crate::app_state::AppState;
use crate::endpoint::EndpointState;
use crate::gossiper::{Effect, Gossiper, Now, Peer};
use crate::message::{Message, States};
use crate::status::Status;

/// A generation so far ahead of time is none, in seconds.
const MAX_GENERATION_AHEAD: i64 = 365 * 86_400;

impl Gossiper {
    /// States of nodes were heard.
    pub(crate) fn learn(&mut self, now: Now, states: States) {
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
        if i64::from(generation) > now.unix_millis / 1000 + MAX_GENERATION_AHEAD {
            return;
        }
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
        if status.is_dead() {
            self.silently_down(now, node);
        } else {
            self.unreachable.entry(node).or_insert(now.nanos);
            self.ask_whether_up(node);
        }
        self.note_expiry(node, &status);
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
        self.note_expiry(node, &status);
        if status.is_dead() && self.peers.get(&node).is_some_and(|peer| peer.is_up) {
            // the ring decides what becomes of it, but it is not asked any more whether it is up
            self.echoes.remove(&node);
        }
        for state in changed {
            self.effect(Effect::Changed(node, state));
        }
    }

    fn note_expiry(&mut self, node: Address, status: &Status) {
        if let Some(expires) = status.expires() {
            self.expiries.insert(node, expires);
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
        if peer.state.status().is_dead() {
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

    /// A node stops. What is still on its way from before is not to make it seem up again: no version is
    /// above the one that it gets.
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
