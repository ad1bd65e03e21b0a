//! Who agrees on a condition (`ReplicaPlans.forPaxos`).

use protocol::Consistency;

use crate::acks::Acks;
use crate::node::NodeIndex;
use crate::placement::Replicas;
use crate::ring::Ring;
use crate::short::Short;
use crate::unavailable::Unavailable;

/// A round of Paxos: all participants that are up are asked, and more than half of all have to
/// agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaxosPlan {
    participants: Short<NodeIndex>,
    contacts: Short<NodeIndex>,
    required: u32,
}

impl PaxosPlan {
    /// Of the replicas of a token: of this data centre alone at LOCAL_SERIAL. Those that are about
    /// to be replicas take part.
    ///
    /// # Errors
    /// If too few are up, or if more than one is about to be a replica: then no majority is sure to
    /// meet every other.
    pub fn new(
        ring: &Ring,
        replicas: Replicas<'_>,
        level: Consistency,
    ) -> Result<Self, Unavailable> {
        let counts = |node: &&NodeIndex| level != Consistency::LocalSerial || ring.is_near(**node);
        let all = replicas.natural.iter().chain(replicas.pending).filter(counts);
        let participants: Short<NodeIndex> = all.copied().collect();
        let alive = participants.iter().copied().filter(|node| ring.is_up(*node));
        let contacts: Short<NodeIndex> = alive.collect();
        let (count, alive) = (participants.len() as u32, contacts.len() as u32);
        let required = count / 2 + 1;
        if alive < required {
            return Err(Unavailable::new(level, required, alive));
        }
        // those that had it until just now take part as well: they meet who has not heard of it
        if replicas.gaining().iter().filter(counts).count() > 1 {
            let message = format!(
                "Cannot perform LWT operation as there is more than one ({count}) pending range movement"
            );
            // more than there are, so that nobody hopes for it
            return Err(Unavailable { message, consistency: level, required: count + 1, alive });
        }
        Ok(Self { participants, contacts, required })
    }

    /// All that take part, up or not.
    pub fn participants(&self) -> &[NodeIndex] {
        &self.participants
    }

    /// Those that are up, and asked.
    pub fn contacts(&self) -> &[NodeIndex] {
        &self.contacts
    }

    /// How many have to agree.
    pub fn required(&self) -> u32 {
        self.required
    }

    /// To count promises or acceptances with.
    pub fn acks<R>(&self, ring: &Ring) -> Acks<R> {
        Acks::new(ring, &self.contacts, self.required, false)
    }
}
