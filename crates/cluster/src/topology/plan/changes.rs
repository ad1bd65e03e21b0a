//! Rings while a change is under way and after it, and what moves meanwhile: the functions that
//! the operations themselves choose sources with, on rings that are made up. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use ring::{Node, NodeIndex, Ring, RingError, State};
use schema::{Keyspace, Strategy};
use types::{Address, Token, TokenRange};

use crate::topology::fetch::{Fetch, NoSource, Source, Wanted};
use crate::topology::relocation::give;
use crate::topology::sources;

/// What one node sends to another of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub from: Address,
    pub to: Address,
    pub keyspace: String,
    pub ranges: Vec<TokenRange>,
}

/// A node's change.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// It joins.
    Joins(Node),
    /// It leaves by itself.
    Leaves(Address),
    /// It is dead, and is removed.
    IsRemoved(Address),
    /// It goes to another token.
    Moves(Address, Token),
}

/// The ring that a change makes of another.
#[derive(Debug)]
pub(super) struct Changed {
    change: Change,
    /// While it is under way, as whoever asks for data or gives it sees it.
    during: Ring,
    /// Once it is done.
    pub after: Ring,
}

impl Changed {
    /// None where nobody is left.
    pub fn new(
        ring: &Ring,
        keyspaces: &[Arc<Keyspace>],
        change: Change,
    ) -> Result<Option<Self>, RingError> {
        let (mut during, mut after) = (ring.nodes().to_vec(), ring.nodes().to_vec());
        let node = match &change {
            Change::Joins(node) => {
                during.push(Node { state: State::Joining, ..node.clone() });
                after.push(Node { state: State::Normal, ..node.clone() });
                node.address
            }
            Change::Leaves(node) | Change::IsRemoved(node) => {
                after.retain(|other| other.address != *node);
                set(&mut during, *node, |node| node.state = State::Leaving);
                *node
            }
            Change::Moves(node, to) => {
                set(&mut during, *node, |node| node.state = State::Moving(*to));
                set(&mut after, *node, |node| node.tokens = vec![*to]);
                *node
            }
        };
        match &change {
            Change::IsRemoved(_) => set(&mut during, node, |node| node.is_up = false),
            _ => during.iter_mut().for_each(|other| other.is_local = other.address == node),
        }
        if after.iter().all(|node| !node.is_local) {
            let Some(first) = after.first_mut() else { return Ok(None) };
            first.is_local = true;
        }
        let strategies = || keyspaces.iter().map(|keyspace| &keyspace.replication.strategy);
        Ok(Some(Self {
            during: Ring::new(during, strategies())?,
            after: Ring::new(after, strategies())?,
            change,
        }))
    }

    /// What moves of a keyspace.
    ///
    /// # Errors
    /// If the operation could not get it.
    pub fn flows(&self, keyspace: &Keyspace, is_consistent: bool) -> Result<Vec<Flow>, NoSource> {
        let strategy = &keyspace.replication.strategy;
        if *strategy == Strategy::Local || self.during.placement(strategy).is_none() {
            return Ok(Vec::new());
        }
        match &self.change {
            Change::Joins(_) => self.fetched(keyspace, is_consistent),
            Change::Leaves(_) => self.given(keyspace),
            Change::Moves(..) => {
                let mut flows = self.given(keyspace)?;
                flows.extend(self.fetched(keyspace, is_consistent)?);
                Ok(flows)
            }
            Change::IsRemoved(node) => self.restored(keyspace, *node, is_consistent),
        }
    }

    fn fetched(&self, keyspace: &Keyspace, is_consistent: bool) -> Result<Vec<Flow>, NoSource> {
        let from = if is_consistent { Source::Giver } else { Source::Anybody };
        let mut wanted = Wanted::default();
        let of = (&*keyspace.name, &keyspace.replication.strategy);
        Fetch::new(&self.during, from).plan(of, &[], &mut wanted)?;
        let to = self.address(self.during.local());
        let asks = wanted.asks.into_iter();
        let flow = |from, ask: crate::topology::fetch::Ask| {
            let ranges = pieces(&ask.ranges);
            Flow { from, to, keyspace: ask.keyspace, ranges }
        };
        Ok(asks.flat_map(|(from, asks)| asks.into_iter().map(move |ask| flow(from, ask))).collect())
    }

    fn given(&self, keyspace: &Keyspace) -> Result<Vec<Flow>, NoSource> {
        let from = self.address(self.during.local());
        let gives = give::gives(&self.during, keyspace, |_| Vec::new())?;
        let flow = |(to, ranges): (Address, Vec<TokenRange>)| {
            let ranges = pieces(&ranges);
            Flow { from, to, keyspace: keyspace.name.to_string(), ranges }
        };
        Ok(gives.into_iter().map(flow).collect())
    }

    fn restored(
        &self,
        keyspace: &Keyspace,
        gone: Address,
        asks_all: bool,
    ) -> Result<Vec<Flow>, NoSource> {
        let name = || keyspace.name.to_string();
        let ring = &self.during;
        let Some(placement) = ring.placement(&keyspace.replication.strategy) else {
            return Ok(Vec::new());
        };
        let gone = ring.find(gone);
        let mut flows = Vec::new();
        for taker in ring.indexes().filter(|node| Some(*node) != gone && ring.is_up(*node)) {
            let asked = sources::restored(ring, placement, (taker, gone), asks_all);
            let asked = asked.map_err(|range| NoSource::Nobody { range, keyspace: name() })?;
            for (from, ranges) in asked {
                let (from, to) = (self.address(from), self.address(taker));
                flows.push(Flow { from, to, keyspace: name(), ranges: pieces(&ranges) });
            }
        }
        Ok(flows)
    }

    fn address(&self, node: NodeIndex) -> Address {
        self.during.node(node).address
    }
}

fn set(nodes: &mut [Node], of: Address, change: impl Fn(&mut Node)) {
    nodes.iter_mut().filter(|node| node.address == of).for_each(change);
}

/// Ranges as they are shown: none that touches another.
fn pieces(ranges: &[TokenRange]) -> Vec<TokenRange> {
    TokenRange::normalize(ranges.iter().copied())
}

/// What each node replicates of a keyspace, by address.
pub(super) fn shares(ring: &Ring, strategy: &Strategy) -> BTreeMap<Address, f64> {
    let Some(placement) = ring.placement(strategy) else { return BTreeMap::new() };
    let shares = placement.replicated_shares();
    let members = ring.members().iter();
    members.map(|node| (ring.node(*node).address, shares[node.at()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::strategy::Strategy as _;
    use schema::Replication;
    use types::Uuid;

    fn address(number: u8) -> Address {
        Address::new([10, 0, 0, number], 7000)
    }

    fn node(number: u8, center: usize, rack: u8, tokens: &[i64]) -> Node {
        Node {
            address: address(number),
            host_id: Uuid(number.into()),
            data_center: format!("dc{center}").into(),
            rack: format!("r{rack}").into(),
            tokens: tokens.iter().map(|token| Token(*token)).collect(),
            state: State::Normal,
            is_up: true,
            is_local: number == 1,
            accepts_clients: true,
        }
    }

    fn keyspace(replication: Replication) -> Arc<Keyspace> {
        Arc::new(Keyspace::new("ks", true, replication))
    }

    fn keyspaces() -> impl proptest::strategy::Strategy<Value = Arc<Keyspace>> {
        let by_center = (1..4_u32, 0..4_u32).prop_map(|(one, other)| {
            let counts = [("dc0", one), ("dc1", other)];
            let counts = counts.into_iter().filter(|(_, count)| *count > 0);
            let options = counts.map(|(name, count)| (name.to_owned(), count.to_string()));
            Replication::new(
                "org.apache.cassandra.locator.NetworkTopologyStrategy",
                options.collect(),
            )
        });
        prop_oneof![(1..4_u32).prop_map(Replication::simple), by_center].prop_map(keyspace)
    }

    /// Nodes, and one that may join.
    fn nodes() -> impl proptest::strategy::Strategy<Value = (Vec<Node>, Node)> {
        let tokens = prop::collection::btree_set(any::<i64>(), 1..4);
        let one = (0..2_usize, 0..3_u8, tokens);
        prop::collection::vec(one, 3..9).prop_map(|drawn| {
            let mut nodes: Vec<Node> = drawn
                .into_iter()
                .zip(1..)
                .map(|((center, rack, tokens), number)| {
                    node(number, center, rack, &tokens.into_iter().collect::<Vec<_>>())
                })
                .collect();
            let new = nodes.pop().expect("there are three at least");
            (nodes, new)
        })
    }

    /// What a node gains, as any other node of the ring sees it while it happens.
    fn pending(nodes: Vec<Node>, keyspace: &Keyspace, of: Address) -> Vec<TokenRange> {
        let strategy = &keyspace.replication.strategy;
        let ring = Ring::new(nodes, [strategy]).expect("a ring");
        let node = ring.find(of).expect("it is there");
        let placement = ring.placement(strategy).expect("it is served");
        let has = |range: &TokenRange| !placement.at(range.right).natural.is_empty();
        TokenRange::normalize(placement.pending_ranges_of(node).filter(has))
    }

    fn owned(ring: &Ring, keyspace: &Keyspace, of: Address) -> Vec<TokenRange> {
        let placement = ring.placement(&keyspace.replication.strategy).expect("it is served");
        let node = ring.find(of).expect("it is there");
        TokenRange::normalize(placement.ranges_of(node))
    }

    fn moved(flows: &[Flow], to: Address) -> Vec<TokenRange> {
        let its = flows.iter().filter(|flow| flow.to == to);
        TokenRange::normalize(its.flat_map(|flow| flow.ranges.iter().copied()))
    }

    proptest! {
        #[test]
        fn a_newcomer_is_sent_what_is_pending_for_it((nodes, new) in nodes(), of in keyspaces()) {
            let ring = Ring::new(nodes.clone(), [&of.replication.strategy]).unwrap();
            let change = Change::Joins(new.clone());
            let changed = Changed::new(&ring, std::slice::from_ref(&of), change).unwrap().unwrap();
            let flows = changed.flows(&of, true).unwrap();
            let joining = Node { state: State::Joining, ..new.clone() };
            let seen = [nodes, vec![joining]].concat();
            prop_assert_eq!(moved(&flows, new.address), pending(seen, &of, new.address));
            for flow in &flows {
                prop_assert_eq!(flow.to, new.address);
                let has = owned(&ring, &of, flow.from);
                let lacking = flow.ranges.iter().flat_map(|range| range.without(&has));
                prop_assert_eq!(lacking.count(), 0, "it has what it sends");
            }
            // and it owns just that afterwards, but for what nobody had
            let gained = owned(&changed.after, &of, new.address);
            let beyond: Vec<_> = moved(&flows, new.address)
                .into_iter()
                .flat_map(|range| range.without(&gained))
                .collect();
            prop_assert_eq!(beyond, vec![]);
        }

        #[test]
        fn who_leaves_sends_what_is_pending_for_others(
            (nodes, _) in nodes(),
            place in any::<prop::sample::Index>(),
            of in keyspaces(),
            is_dead: bool,
        ) {
            let ring = Ring::new(nodes.clone(), [&of.replication.strategy]).unwrap();
            let mut seen = nodes;
            // this node does not remove itself
            let first = usize::from(is_dead);
            let place = first + place.index(seen.len() - first);
            let gone = seen[place].address;
            seen[place].state = State::Leaving;
            seen[place].is_up = !is_dead;
            let change = if is_dead { Change::IsRemoved(gone) } else { Change::Leaves(gone) };
            let changed = Changed::new(&ring, std::slice::from_ref(&of), change).unwrap().unwrap();
            let flows = match changed.flows(&of, true) {
                Ok(flows) => flows,
                Err(why) => {
                    prop_assert!(is_dead, "{why}");
                    return Ok(());
                }
            };
            prop_assert_eq!(changed.after.find(gone), None);
            let had = owned(&ring, &of, gone);
            for node in ring.nodes().iter().filter(|node| node.address != gone) {
                let pending = pending(seen.clone(), &of, node.address);
                let kept: Vec<_> = pending.iter().flat_map(|range| range.without(&had)).collect();
                let its: Vec<_> = pending.iter().flat_map(|range| range.without(&kept)).collect();
                let sent = moved(&flows, node.address);
                let placement = ring.placement(&of.replication.strategy).unwrap();
                match is_dead && placement.replication_factor() == 1 {
                    true => prop_assert_eq!(sent, vec![], "nobody has what it had alone"),
                    false => prop_assert_eq!(sent, TokenRange::normalize(its)),
                }
                prop_assert!(is_dead || flows.iter().all(|flow| flow.from == gone));
            }
        }
    }

    #[test]
    fn the_last_one_has_nobody_to_leave_to() {
        let of = keyspace(Replication::simple(1));
        let ring = Ring::new(vec![node(1, 0, 0, &[5])], [&of.replication.strategy]).unwrap();
        let left = Changed::new(&ring, std::slice::from_ref(&of), Change::Leaves(address(1)));
        assert!(left.unwrap().is_none());
    }
}
