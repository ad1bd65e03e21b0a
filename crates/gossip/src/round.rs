//! A round: whom to speak to each second, and what to answer.

use std::collections::BTreeSet;

use types::Address;

use crate::endpoint::EndpointState;
use crate::gossiper::{Gossiper, Now};
use crate::message::{Ack, Digest, Message, States, Syn};
use crate::status::Status;

/// More than anything that was sent.
const NOTHING: i32 = -1;

/// A random index below `count`.
fn below(count: usize, random: &mut dyn FnMut() -> u64) -> usize {
    (random() % count.max(1) as u64) as usize
}

/// A random number from 0 to below 1.
fn fraction(random: &mut dyn FnMut() -> u64) -> f64 {
    // as many bits as a double holds exactly
    (random() >> 11) as f64 / (1u64 << 53) as f64
}

impl Gossiper {
    /// Once a second.
    pub(crate) fn tick(&mut self, now: Now, random: &mut dyn FnMut() -> u64) {
        self.local.heartbeat.version = self.next_version();
        let syn = self.digests();
        let live = self.live.clone();
        let to_seed = self.speak_to_one(&live, &syn, random);
        self.maybe_speak_to_unreachable(&syn, random);
        if !to_seed || self.live.len() < self.config.seeds.len() {
            self.maybe_speak_to_seed(&syn, random);
        }
        self.tell_unaware();
        self.look_after(now);
    }

    pub(crate) fn digests(&self) -> Syn {
        let digest = |endpoint: Address, state: &EndpointState| Digest {
            endpoint,
            generation: state.heartbeat.generation,
            max_version: state.max_version(),
        };
        let own = digest(self.config.local, &self.local);
        let peers = self.peers.iter().map(|(node, peer)| digest(*node, &peer.state));
        Syn {
            cluster: self.config.cluster.clone(),
            partitioner: self.config.partitioner.clone(),
            digests: std::iter::once(own).chain(peers).chain(self.asked_for()).collect(),
        }
    }

    /// Asks for all that is known of nodes that this one has only heard the names of, while it
    /// hibernates. Others answer what they are asked for, and tell the rest when they speak first;
    /// but nobody speaks to who hibernates (`Gossiper.isDeadState`). A node that took its own place
    /// again, and began anew in the middle, heard of nobody.
    fn asked_for(&self) -> impl Iterator<Item = Digest> {
        let hibernates = self.local.status() == Status::Hibernate;
        let is_unknown = move |node: &&Address| {
            hibernates && !self.peers.contains_key(node) && **node != self.config.local
        };
        let unknown = self.named.iter().filter(is_unknown);
        unknown.map(|node| Digest { endpoint: *node, generation: 0, max_version: 0 })
    }

    /// Speaks to one of some nodes; was it a seed?
    fn speak_to_one(
        &mut self,
        nodes: &BTreeSet<Address>,
        syn: &Syn,
        random: &mut dyn FnMut() -> u64,
    ) -> bool {
        let Some(node) = nodes.iter().nth(below(nodes.len(), random)).copied() else {
            return false;
        };
        self.has_spoken = true;
        self.send(node, Message::Syn(syn.clone()));
        self.config.seeds.contains(&node)
    }

    fn maybe_speak_to_unreachable(&mut self, syn: &Syn, random: &mut dyn FnMut() -> u64) {
        let share = self.unreachable.len() as f64 / (self.live.len() + 1) as f64;
        if self.unreachable.is_empty() || fraction(random) >= share {
            return;
        }
        let is_dead =
            |node: &Address| self.peers.get(node).is_some_and(|peer| peer.state.status().is_dead());
        let nodes = self.unreachable.keys().copied().filter(|node| !is_dead(node)).collect();
        self.speak_to_one(&nodes, syn, random);
    }

    /// So that groups of nodes that know nothing of each other meet.
    fn maybe_speak_to_seed(&mut self, syn: &Syn, random: &mut dyn FnMut() -> u64) {
        let known = self.live.len() + self.unreachable.len();
        let share = self.config.seeds.len() as f64 / known as f64;
        if self.live.is_empty() || fraction(random) <= share {
            let seeds = self.config.seeds.clone();
            self.speak_to_one(&seeds, syn, random);
        }
    }

    pub(crate) fn syn(&mut self, from: Address, syn: &Syn) {
        if !self.is_ours(from, syn) {
            return;
        }
        self.note_heard(from, &syn.digests);
        let ack = match syn.digests.is_empty() {
            true => self.everything(),
            false => self.examine(&syn.digests),
        };
        self.send(from, Message::Ack(ack));
    }

    /// What the other knows better, and what this node does.
    fn examine(&self, digests: &[Digest]) -> Ack {
        let mut ack = Ack::default();
        for digest in digests {
            let node = digest.endpoint;
            if ack.states.contains_key(&node) {
                // said twice, which costs no more than once
                continue;
            }
            let Some(known) = self.state_of(node) else {
                ack.wanted.push(Digest { max_version: 0, ..*digest });
                continue;
            };
            let (generation, version) = (known.heartbeat.generation, known.max_version());
            let theirs = digest.max_version;
            let better = if digest.generation > generation {
                ack.wanted.push(Digest { max_version: 0, ..*digest });
                None
            } else if digest.generation == generation && theirs == version {
                None
            } else if digest.generation < generation || node == self.config.local {
                known.whole()
            } else if theirs > version {
                ack.wanted.push(Digest { max_version: version, ..*digest });
                None
            } else {
                known.newer_than(theirs)
            };
            ack.states.extend(better.map(|state| (node, state)));
        }
        ack
    }

    pub(crate) fn ack(&mut self, now: Now, from: Address, ack: Ack) {
        self.note_heard(from, &ack.wanted);
        if !ack.states.is_empty() {
            if !self.has_spoken {
                return;
            }
            self.learn(now, from, ack.states);
        }
        let wanted = ack.wanted.iter().filter_map(|digest| {
            let node = digest.endpoint;
            let since = if node == self.config.local { NOTHING } else { digest.max_version };
            Some((node, self.state_of(node)?.newer_than(since)?))
        });
        let states: States = wanted.collect();
        self.send(from, Message::Ack2(states));
    }

    pub(crate) fn state_of(&self, node: Address) -> Option<&EndpointState> {
        match node == self.config.local {
            true => Some(&self.local),
            false => self.peers.get(&node).map(|peer| &peer.state),
        }
    }
}
