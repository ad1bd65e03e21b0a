//! What a node wants to get and to give, from all others together (`StreamPlan`).

use std::collections::BTreeMap;

use schema::TableId;
use types::{Address, TokenRange, Uuid};

use crate::only::Only;
use crate::session::SessionId;
use crate::wire::{Operation, Request};

/// What is given to a node of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Give {
    /// The table.
    pub table: TableId,
    /// Its partitions: normalized.
    pub ranges: Vec<TokenRange>,
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What for.
    pub operation: Operation,
    /// What is asked of whom.
    pub requests: BTreeMap<Address, Vec<Request>>,
    /// What is given to whom.
    pub gives: BTreeMap<Address, Vec<Give>>,
    /// Only which SSTables.
    pub only: Only,
}

impl Plan {
    /// One that asks for and gives nothing.
    pub fn new(operation: Operation) -> Self {
        Self { operation, requests: BTreeMap::new(), gives: BTreeMap::new(), only: Only::ALL }
    }

    /// The nodes that it is about.
    pub fn peers(&self) -> Vec<Address> {
        let mut peers: Vec<_> = self.requests.keys().chain(self.gives.keys()).copied().collect();
        peers.sort();
        peers.dedup();
        peers
    }

    /// Its sessions, and what each asks for and gives: one with each node, or up to so many where
    /// the plan fetches all that this node should have (`streaming_connections_per_host`).
    pub(crate) fn sessions(
        &self,
        plan: Uuid,
        connections: usize,
    ) -> Vec<(SessionId, Vec<Request>, Vec<Give>)> {
        let is_many = matches!(self.operation, Operation::Bootstrap | Operation::Rebuild);
        let most = if is_many { connections } else { 1 };
        let mut sessions = Vec::new();
        for peer in self.peers() {
            let requests = self.requests.get(&peer).cloned().unwrap_or_default();
            let gives = self.gives.get(&peer).cloned().unwrap_or_default();
            let count = requests.len().max(gives.len()).clamp(1, most);
            let dealt = deal(requests, count).into_iter().zip(deal(gives, count));
            sessions.extend((0..).zip(dealt).map(|(session, (requests, gives))| {
                (SessionId { plan, peer, session }, requests, gives)
            }));
        }
        sessions
    }
}

/// Deals all out to sessions in turn (`StreamCoordinator`).
fn deal<T>(all: Vec<T>, sessions: usize) -> Vec<Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..sessions).map(|_| Vec::new()).collect();
    for (place, one) in all.into_iter().enumerate() {
        dealt.get_mut(place % sessions).expect("it is a session's").push(one);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(operation: Operation) -> Plan {
        let request = |keyspace: &str| Request {
            endpoint: Address::new([10, 0, 0, 9], 7000),
            keyspace: keyspace.to_owned(),
            ranges: vec![TokenRange::ALL],
            transient_ranges: Vec::new(),
            tables: Vec::new(),
        };
        let mut plan = Plan::new(operation);
        for (peer, keyspaces) in [(1, vec!["a", "b", "c"]), (2, vec!["a"])] {
            let peer = Address::new([10, 0, 0, peer], 7000);
            plan.requests.insert(peer, keyspaces.into_iter().map(request).collect());
        }
        plan
    }

    fn keyspaces(plan: &Plan, connections: usize) -> Vec<(u16, i32, String)> {
        let sessions = plan.sessions(Uuid(1), connections);
        let of = sessions.into_iter().map(|(id, requests, _)| {
            let names: Vec<_> = requests.into_iter().map(|request| request.keyspace).collect();
            (id.peer.to_string().as_bytes()[7].into(), id.session, names.join(" "))
        });
        of.collect()
    }

    #[test]
    fn keyspaces_are_dealt_out_to_several_sessions() {
        let of = |peer: u8, session, names: &str| (u16::from(peer), session, names.to_owned());
        let one = [of(b'1', 0, "a b c"), of(b'2', 0, "a")];
        assert_eq!(keyspaces(&plan(Operation::Rebuild), 1), one);
        let two = [of(b'1', 0, "a c"), of(b'1', 1, "b"), of(b'2', 0, "a")];
        assert_eq!(keyspaces(&plan(Operation::Rebuild), 2), two);
        assert_eq!(keyspaces(&plan(Operation::Bootstrap), 9).len(), 4);
        assert_eq!(keyspaces(&plan(Operation::Relocation), 2), one);
    }
}
