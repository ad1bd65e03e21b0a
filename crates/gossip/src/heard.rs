//! Which of the others know what this node said last.
//!
//! Gossip brings news to all in the end, and says to nobody when. A node that is about to own
//! ranges must know: whoever has not heard of it writes past it. Two things that others say anyway
//! tell it. A SYN names the version of this node's state that its sender has. An ACK that wants
//! more of this node names the version from which on.

use types::Address;

use crate::gossiper::Gossiper;
use crate::message::{Digest, Message};

/// Nodes that are told in one tick, besides the one or two that gossip speaks to.
const TOLD_AT_ONCE: usize = 32;

impl Gossiper {
    /// The version of what this node said last.
    pub fn version(&self) -> i32 {
        self.local.values.values().map(|value| value.version).max().unwrap_or_default()
    }

    /// Those that are up and are not known to know what this node said at a version.
    pub fn unaware(&self, version: i32) -> impl Iterator<Item = Address> {
        let knows = move |node: &Address| self.heard.get(node).is_some_and(|had| *had >= version);
        self.live.iter().copied().filter(move |node| !knows(node))
    }

    /// Those that are up and have not asked yet whether this node is: to them it is down.
    pub fn not_seen_by(&self) -> impl Iterator<Item = Address> {
        self.live.iter().copied().filter(|node| !self.asked.contains(node))
    }

    /// How often a node that knew this one wanted all of it again: it had forgotten it, as
    /// Cassandra forgets a node that is not a member yet and is silent.
    pub fn times_forgotten(&self, by: Address) -> u32 {
        self.forgot.get(&by).copied().unwrap_or_default()
    }

    /// Notes what a node says that it knows of this one.
    pub(crate) fn note_heard(&mut self, from: Address, digests: &[Digest]) {
        let (local, generation) = (self.config.local, self.local.heartbeat.generation);
        let own = digests.iter().filter(|digest| digest.endpoint == local);
        for digest in own.filter(|digest| digest.generation == generation) {
            let had = self.heard.entry(from).or_insert(digest.max_version);
            if digest.max_version == 0 && *had > 0 {
                *had = 0;
                let forgot = self.forgot.entry(from).or_default();
                *forgot = forgot.saturating_add(1);
            }
            *had = digest.max_version.max(*had);
        }
    }

    /// Speaks to those that do not know yet what is to be told.
    pub(crate) fn tell_unaware(&mut self) {
        let Some(version) = self.telling else { return };
        let unaware: Vec<_> = self.unaware(version).take(TOLD_AT_ONCE).collect();
        if unaware.is_empty() {
            return;
        }
        let syn = self.digests();
        self.has_spoken = true;
        for node in unaware {
            self.send(node, Message::Syn(syn.clone()));
        }
    }
}
