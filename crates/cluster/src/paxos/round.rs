//! One ballot of a coordinator: what it makes of the replicas' answers (`StorageProxy.doPaxos`).
//! Pure: its caller sends, waits and reads.

use crate::paxos::acceptor::{Promise, Proposal};
use crate::paxos::ballot::Ballot;

/// What is to be done next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Wait for more answers.
    Wait,
    /// Most replicas promised, and nothing is left of rounds before: read, then propose.
    Propose,
    /// A round before this one may be decided: propose its update again, commit it, and begin anew.
    Finish(Proposal),
    /// Some replicas do not know the latest decision: let them commit it, and begin anew.
    Teach(Proposal, Vec<usize>),
    /// Another coordinator came between: wait a little and begin anew with a ballot after this one.
    Lost(Ballot),
    /// Most replicas accepted: commit.
    Decided,
    /// Some replicas accepted and most did not: nobody knows what will come of it. So many
    /// accepted.
    Unknown(usize),
}

/// A ballot under way.
#[derive(Clone, Debug)]
pub struct Round {
    ballot: Ballot,
    replicas: usize,
    required: usize,
    promises: Vec<(usize, Promise)>,
    /// Is it another round's update that is proposed?
    finishing: bool,
    accepted: usize,
    refused: usize,
}

impl Round {
    /// A ballot that `required` of `replicas` must promise and accept.
    pub fn new(ballot: Ballot, replicas: usize, required: usize) -> Self {
        let can_decide = (1..=replicas).contains(&required);
        assert!(can_decide, "a ballot needs promises of {required} of {replicas} replicas");
        Self {
            ballot,
            replicas,
            required,
            promises: Vec::new(),
            finishing: false,
            accepted: 0,
            refused: 0,
        }
    }

    /// The ballot.
    pub fn ballot(&self) -> Ballot {
        self.ballot
    }

    /// A replica answered the ballot. What comes after the required number of answers changes
    /// nothing.
    pub fn promised(&mut self, replica: usize, promise: Promise) -> Step {
        if !promise.promised {
            return Step::Lost(promise.refused_for);
        }
        if self.promises.len() >= self.required {
            return Step::Wait;
        }
        let is_first = self.promises.iter().all(|(other, _)| *other != replica);
        assert!(is_first, "a replica promises a ballot once");
        self.promises.push((replica, promise));
        if self.promises.len() < self.required { Step::Wait } else { self.decide() }
    }

    fn decide(&mut self) -> Step {
        let promises = self.promises.len();
        assert_eq!(
            promises, self.required,
            "a proposal starts once enough replicas promised its ballot"
        );
        let committed = self.promises.iter().filter_map(|(_, promise)| promise.committed.as_ref());
        let latest = committed.max_by_key(|proposal| proposal.ballot.ticks());
        let latest_ballot = latest.map_or(Ballot::none(), |latest| latest.ballot);
        let in_progress =
            self.promises.iter().filter_map(|(_, promise)| promise.in_progress.as_ref());
        let in_progress = in_progress.max_by_key(|proposal| proposal.ballot.ticks());
        // What is empty needs no finishing: there is nothing to apply, and nothing before it can
        // come back.
        let unfinished = in_progress.filter(|proposal| {
            proposal.ballot.is_after(latest_ballot) && !proposal.update.is_empty()
        });
        if let Some(proposal) = unfinished {
            let update =
                proposal.update.at(self.ballot.unix_micros(), &mut rows::RowBuilder::new());
            self.finishing = true;
            return Step::Finish(Proposal { ballot: self.ballot, update });
        }
        let Some(latest) = latest else { return Step::Propose };
        let is_behind = |promise: &Promise| {
            let known = promise.committed.as_ref().map_or(Ballot::none(), |known| known.ballot);
            latest.ballot.is_after(known)
        };
        let behind = self.promises.iter().filter(|(_, promise)| is_behind(promise));
        let behind: Vec<usize> = behind.map(|(replica, _)| *replica).collect();
        if behind.is_empty() { Step::Propose } else { Step::Teach(latest.clone(), behind) }
    }

    /// A replica answered the proposal. Of its own proposal a coordinator must know that nobody
    /// accepted it before it tries again; of one that it only finishes it need not.
    pub fn answered(&mut self, accepted: bool) -> Step {
        match accepted {
            true => self.accepted += 1,
            false => self.refused += 1,
        }
        let answers = self.accepted + self.refused;
        assert!(answers <= self.replicas, "a replica answers a proposal once");
        let left = self.replicas - answers;
        if self.accepted == self.required && accepted {
            return Step::Decided;
        }
        if self.accepted >= self.required || self.accepted + left >= self.required {
            return Step::Wait;
        }
        if self.finishing || (left == 0 && self.accepted == 0) {
            return Step::Lost(self.ballot);
        }
        if left == 0 { Step::Unknown(self.accepted) } else { Step::Wait }
    }
}
