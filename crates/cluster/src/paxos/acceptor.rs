//! What a replica knows of the rounds at one partition of one table, and what it answers
//! (`PaxosState`). Pure: who calls it saves what it says is to be saved before it answers.

use rows::PartitionUpdate;

use crate::paxos::ballot::Ballot;

/// What is proposed under a ballot, or was decided under it (`Commit`).
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The ballot.
    pub ballot: Ballot,
    /// What is to be written; it may be nothing.
    pub update: PartitionUpdate,
}

impl Proposal {
    /// Is it about this partition of a table? One that is not is no proposal of a round there,
    /// whoever has it.
    pub fn is_of(&self, table: &[u8; 16], key: &[u8]) -> bool {
        self.update.table == *table && *self.update.key == *key
    }
}

/// The state of a replica.
#[derive(Clone, Debug)]
pub struct Acceptor {
    /// Nothing before this ballot is heard any more.
    pub promised: Ballot,
    /// Accepted, and as far as known not decided.
    pub accepted: Option<Proposal>,
    /// The latest that was decided.
    pub committed: Option<Proposal>,
}

/// The answer to a ballot (`PrepareResponse`).
#[derive(Clone, Debug)]
pub struct Promise {
    /// Is it promised?
    pub promised: bool,
    /// The later ballot that it is refused for; without a promise only.
    pub refused_for: Ballot,
    /// A proposal that may be decided already.
    pub in_progress: Option<Proposal>,
    /// The latest decided.
    pub committed: Option<Proposal>,
}

impl Acceptor {
    /// Nothing was ever asked of it.
    pub fn new() -> Self {
        Self { promised: Ballot::none(), accepted: None, committed: None }
    }

    /// The latest ballot it knows of.
    fn latest(&self) -> Ballot {
        let known = [&self.accepted, &self.committed].into_iter().flatten();
        let known = known.map(|proposal| proposal.ballot);
        known.fold(self.promised, |a, b| if b.is_after(a) { b } else { a })
    }

    /// A coordinator asks for its promise. A promise is to be saved.
    pub fn prepare(&mut self, ballot: Ballot) -> Promise {
        let latest = self.latest();
        if !ballot.is_after(latest) {
            return Promise {
                promised: false,
                refused_for: latest,
                in_progress: None,
                committed: self.committed.clone(),
            };
        }
        assert!(ballot.is_after(self.promised), "a promise is of a later ballot than the last one");
        self.promised = ballot;
        Promise {
            promised: true,
            refused_for: Ballot::none(),
            in_progress: self.accepted.clone(),
            committed: self.committed.clone(),
        }
    }

    /// A coordinator asks it to accept a proposal. What is accepted is to be saved.
    pub fn propose(&mut self, proposal: &Proposal) -> bool {
        let latest = self.latest();
        let is_heard = proposal.ballot == latest || proposal.ballot.is_after(latest);
        if is_heard {
            let keeps_promise = !self.promised.is_after(proposal.ballot);
            assert!(keeps_promise, "a proposal is accepted at the promised ballot or a later one");
            let before = self.accepted.as_ref();
            let is_latest = before.is_none_or(|before| !before.ballot.is_after(proposal.ballot));
            assert!(is_latest, "a proposal is accepted in place of an earlier one");
            self.accepted = Some(proposal.clone());
        }
        is_heard
    }
}

impl Default for Acceptor {
    fn default() -> Self {
        Self::new()
    }
}
