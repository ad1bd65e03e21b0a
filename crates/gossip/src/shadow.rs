//! The shadow round: before a node takes part it asks what the ring knows, so that it does not
//! start in the place of another, or beside what it was before.

use std::collections::BTreeSet;

use types::Address;

use crate::app_state::AppState;
use crate::endpoint::EndpointState;
use crate::gossiper::{Effect, Gossiper, Now};
use crate::message::{Ack, Message, Syn};
use crate::phase::{Phase, Shadow};

/// Milliseconds after which the seeds are asked again; with Cassandra's five seconds a lost answer
/// would cost a start that long.
const AGAIN: u64 = 1_000;
/// Milliseconds after which others are asked too.
const ALL: u64 = 5_000;

impl Gossiper {
    pub(crate) fn start_shadow_round(&mut self, now: Now, peers: BTreeSet<Address>) {
        if self.config.seeds.is_empty() && peers.is_empty() {
            return self.effect(Effect::ShadowRound(Default::default()));
        }
        let waiting = BTreeSet::new();
        self.phase = Phase::Shadow(Shadow { since: now.nanos, asked: now.nanos, peers, waiting });
        self.ask(BTreeSet::new());
    }

    fn ask(&mut self, peers: BTreeSet<Address>) {
        let (cluster, partitioner) = (self.config.cluster.clone(), self.config.partitioner.clone());
        let syn = Syn { cluster, partitioner, digests: Vec::new() };
        for node in self.config.seeds.union(&peers).copied().collect::<Vec<_>>() {
            self.send(node, Message::Syn(syn.clone()));
        }
    }

    pub(crate) fn shadow_tick(&mut self, now: Now) {
        let ring_delay = self.config.ring_delay;
        let Phase::Shadow(shadow) = &mut self.phase else { return };
        let patience = if self.config.is_seed { ring_delay } else { 2 * ring_delay };
        if now.millis_since(shadow.since) > patience {
            return self.end_shadow_round(match self.config.is_seed {
                true => Effect::ShadowRound(Default::default()),
                false => Effect::ShadowRoundFailed,
            });
        }
        if now.millis_since(shadow.asked) >= AGAIN {
            shadow.asked = now.nanos;
            let asks_all = now.millis_since(shadow.since) >= ALL;
            let peers = if asks_all { shadow.peers.clone() } else { BTreeSet::new() };
            self.ask(peers);
        }
    }

    fn end_shadow_round(&mut self, effect: Effect) {
        self.phase = Phase::Idle;
        self.effect(effect);
    }

    /// Two that are both in their shadow rounds tell each other so.
    pub(crate) fn shadow_syn(&mut self, from: Address, syn: &Syn) {
        if self.is_ours(from, syn) && syn.digests.is_empty() {
            self.send(from, Message::Ack(Ack::default()));
        }
    }

    pub(crate) fn shadow_ack(&mut self, now: Now, from: Address, mut ack: Ack) {
        let is_empty = ack.wanted.is_empty() && ack.states.is_empty();
        self.keep_what_is_possible(now, from, &mut ack.states);
        let Phase::Shadow(shadow) = &mut self.phase else { return };
        if is_empty {
            shadow.waiting.insert(from);
            // to seeds alone this says that the ring is new: a seed that starts again is in its
            // shadow round too, and another node would take a ring for new that has data.
            // (Cassandra lets any node go on here, `Gossiper.maybeFinishShadowRound`.)
            if self.config.is_seed && shadow.waiting.is_superset(&self.config.seeds) {
                self.end_shadow_round(Effect::ShadowRound(Default::default()));
            }
            return;
        }
        // of what is known of this node only from before the others' last stop its identity cannot
        // be told
        let is_enough = ack.states.get(&self.config.local).is_none_or(|own| {
            own.status().is_dead() || own.values.contains_key(&AppState::HOST_ID)
        });
        if is_enough {
            let is_there = |state: &EndpointState| !state.status().is_dead();
            let named = ack.states.iter().filter(|(_, state)| is_there(state));
            self.named = named.map(|(node, _)| *node).collect();
            self.end_shadow_round(Effect::ShadowRound(ack.states));
        }
    }
}
