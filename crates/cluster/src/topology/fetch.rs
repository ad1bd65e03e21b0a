//! What a node that joins fetches, and from whom (`RangeStreamer`). Pure.
//!
//! Where a range has all its replicas, the newcomer takes the place of one of them. It must have
//! what that one has: a write that was acknowledged by a quorum of the old replicas would else be
//! on less than a quorum of the new ones. So that one is the source, and no other will do, unless
//! `consistent_rangemovement` is false.

use std::collections::{BTreeMap, BTreeSet};

use ring::{NodeIndex, Placement, Ring, State};
use schema::Strategy;
use streaming::wire::Request;
use types::{Address, TokenRange};

use super::sources;

/// Ranges of a keyspace that a node is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub keyspace: String,
    pub ranges: Vec<TokenRange>,
}

impl Ask {
    /// As it is sent by the node at this address.
    pub fn request(&self, endpoint: Address) -> Request {
        Request {
            keyspace: self.keyspace.clone(),
            endpoint,
            ranges: self.ranges.clone(),
            transient_ranges: Vec::new(),
            tables: Vec::new(),
        }
    }
}

/// Why sessions failed, as one line.
pub(super) fn failures(failed: &[(Address, String)]) -> String {
    let each = failed.iter().map(|(node, why)| format!("/{node}: {why}"));
    each.collect::<Vec<_>>().join("; ")
}

/// From whom a range is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Who gives it up to this node, where one does; else anybody.
    Giver,
    /// All replicas that are left, in place of a node that is gone.
    Survivors,
    /// The nearest replica: it may lack what others have.
    Anybody,
}

/// What is to be fetched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// By who is asked.
    pub asks: BTreeMap<Address, Vec<Ask>>,
    /// What nobody else has and has one replica: the node that had it is gone.
    pub lost: Vec<Ask>,
    /// Replicas that would be asked, and are down.
    pub absent: BTreeSet<Address>,
}

/// Why it cannot be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSource {
    /// Who gives a range up is down.
    #[error(
        "A node required to move the data consistently is down (/{node}, keyspace {keyspace}): \
         start it, and then resume; or set consistent_rangemovement to false to take the data of \
         any replica, and repair afterwards"
    )]
    Down {
        /// The node.
        node: Address,
        /// The keyspace.
        keyspace: String,
    },
    /// Nobody who has a range is up.
    #[error(
        "Unable to find sufficient sources for streaming range ({},{}] in keyspace {keyspace}: \
         no replica of it is up; start one, and then resume",
        range.left, range.right
    )]
    Nobody {
        /// The range.
        range: TokenRange,
        /// The keyspace.
        keyspace: String,
    },
    /// Who is to be given a range is down.
    #[error(
        "/{node} is down and would gain ranges of keyspace {keyspace}: start it, and try again"
    )]
    NoTaker {
        /// The node.
        node: Address,
        /// The keyspace.
        keyspace: String,
    },
    /// The ring does not know where its replicas are.
    #[error("The replication strategy of keyspace {0} is not supported")]
    Strategy(String),
}

/// The ring as this node sees it, and what of it counts for a fetch.
pub(super) struct Fetch<'a> {
    ring: &'a Ring,
    /// The ring once this node has joined, or moved.
    after: Option<Ring>,
    from: Source,
}

impl<'a> Fetch<'a> {
    pub fn new(ring: &'a Ring, from: Source) -> Self {
        let mut nodes = ring.nodes().to_vec();
        let state = ring.node(ring.local()).state;
        for node in nodes.iter_mut().filter(|node| node.is_local) {
            node.state = State::Normal;
            if let State::Moving(to) = state {
                node.tokens = vec![to];
            }
        }
        let gains = matches!(state, State::Joining | State::Moving(_));
        let after = ring.with_nodes(nodes).ok().filter(|_| gains && from == Source::Giver);
        Self { ring, after, from }
    }

    /// What of a keyspace this node lacks; `has` is here already.
    pub fn plan(
        &self,
        (name, strategy): (&str, &Strategy),
        has: &[TokenRange],
        wanted: &mut Wanted,
    ) -> Result<(), NoSource> {
        let name = name.to_owned();
        if *strategy == Strategy::Local {
            return Ok(());
        }
        let placement = self.ring.placement(strategy);
        let placement = placement.ok_or_else(|| NoSource::Strategy(name.clone()))?;
        let mut lost = Vec::new();
        let mut asks: BTreeMap<Address, Vec<TokenRange>> = BTreeMap::new();
        let mut ask = |node: NodeIndex, range| {
            asks.entry(self.ring.node(node).address).or_default().push(range);
        };
        let mut anybody = Vec::new();
        for range in self.lacks(placement, has) {
            if self.from == Source::Survivors {
                let all = sources::survivors(
                    self.ring,
                    placement,
                    range,
                    (self.ring.local(), self.replaced()),
                );
                let (up, down): (Vec<_>, Vec<_>) =
                    all.into_iter().partition(|node| self.ring.is_up(*node));
                let down = down.into_iter().map(|node| self.ring.node(node).address);
                wanted.absent.extend(down);
                if !up.is_empty() {
                    up.into_iter().for_each(|node| ask(node, range));
                    continue;
                }
            }
            let givers = self.givers(strategy, placement, range);
            if let Some(node) = givers.iter().find(|node| !self.ring.is_up(**node)) {
                let node = self.ring.node(*node).address;
                return Err(NoSource::Down { node, keyspace: name });
            }
            givers.iter().for_each(|node| ask(*node, range));
            if givers.is_empty() {
                anybody.push(range);
            }
        }
        let is_up = |node: NodeIndex| self.ring.is_up(node);
        let picked = sources::pick(self.ring, placement, &anybody, is_up);
        // what has no replica at all nobody ever had
        let nowhere = picked.nowhere.into_iter();
        for range in nowhere.filter(|range| !placement.at(range.right).natural.is_empty()) {
            let has_others = self.others_have(placement, range);
            // nobody else has what has one replica, which is gone
            if has_others || self.from == Source::Giver || placement.replication_factor() > 1 {
                return Err(NoSource::Nobody { range, keyspace: name });
            }
            lost.push(range);
        }
        for (node, ranges) in picked.of {
            ranges.into_iter().for_each(|range| ask(node, range));
        }
        for (node, ranges) in asks {
            let ask = Ask { keyspace: name.clone(), ranges };
            wanted.asks.entry(node).or_default().push(ask);
        }
        if !lost.is_empty() {
            wanted.lost.push(Ask { keyspace: name, ranges: lost });
        }
        Ok(())
    }

    /// What this node is about to have, or has to have, and has not: pieces with one set of
    /// replicas each.
    fn lacks(&self, placement: &Placement, has: &[TokenRange]) -> Vec<TokenRange> {
        let local = self.ring.local();
        let wanted: Vec<TokenRange> = match self.ring.node(local).state {
            State::Normal => placement.ranges_of(local).collect(),
            _ => placement.pending_ranges_of(local).collect(),
        };
        let whole = wanted.into_iter().flat_map(TokenRange::unwrap);
        whole.flat_map(|range| range.without(has)).collect()
    }

    /// Who gives a range up to this node, where it has all its replicas.
    fn givers(
        &self,
        strategy: &Strategy,
        placement: &Placement,
        range: TokenRange,
    ) -> Vec<NodeIndex> {
        let Some(after) = self.after.as_ref().and_then(|after| after.placement(strategy)) else {
            return Vec::new();
        };
        let natural = placement.at(range.right).natural;
        if natural.len() < placement.replication_factor() as usize {
            return Vec::new();
        }
        let later = after.at(range.right).natural;
        natural.iter().copied().filter(|node| !later.contains(node)).collect()
    }

    fn others_have(&self, placement: &Placement, range: TokenRange) -> bool {
        let (local, replaced) = (self.ring.local(), self.replaced());
        let natural = placement.at(range.right).natural.iter();
        natural.copied().any(|node| node != local && Some(node) != replaced)
    }

    /// Whose place this node takes: it has its ranges, and is down for good.
    fn replaced(&self) -> Option<NodeIndex> {
        match self.ring.node(self.ring.local()).state {
            State::Replacing(node) => self.ring.find(node),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Node;
    use schema::Replication;
    use types::{Token, Uuid};

    fn address(number: u8) -> Address {
        Address::new([10, 0, 0, number], 7000)
    }

    /// Node 1 is this one, and has token 15.
    fn nodes(state: State) -> Vec<Node> {
        let node = |number: u8, token: i64, state| Node {
            address: address(number),
            host_id: Uuid(number.into()),
            data_center: "dc1".into(),
            rack: "r1".into(),
            tokens: vec![Token(token)],
            state,
            is_up: true,
            is_local: number == 1,
            accepts_clients: true,
        };
        let others = [(2, 10), (3, 20), (4, 30)].map(|(n, token)| node(n, token, State::Normal));
        std::iter::once(node(1, 15, state)).chain(others).collect()
    }

    fn wanted(
        nodes: Vec<Node>,
        replicas: u32,
        from: Source,
        has: &[TokenRange],
    ) -> Result<Wanted, NoSource> {
        let strategy = Replication::simple(replicas).strategy;
        let ring = Ring::new(nodes, [&strategy]).expect("a ring");
        let mut wanted = Wanted::default();
        Fetch::new(&ring, from).plan(("ks", &strategy), has, &mut wanted)?;
        Ok(wanted)
    }

    fn range(left: i64, right: i64) -> TokenRange {
        TokenRange { left: Token(left), right: Token(right) }
    }

    fn asked(wanted: &Wanted) -> Vec<(u8, Vec<TokenRange>)> {
        let number = |node: &Address| match node.ip {
            std::net::IpAddr::V4(four) => four.octets()[3],
            std::net::IpAddr::V6(_) => 0,
        };
        let ranges = |asks: &Vec<Ask>| asks.iter().flat_map(|ask| ask.ranges.clone()).collect();
        wanted.asks.iter().map(|(node, asks)| (number(node), ranges(asks))).collect()
    }

    #[test]
    fn who_gives_a_range_up_is_asked_for_it() {
        let joins = || nodes(State::Joining);
        // before, (10, 15] was 3 and 4, and (30, 10] was 2 and 3
        let two = wanted(joins(), 2, Source::Giver, &[]).expect("sources");
        let wraps = [range(30, i64::MIN), range(i64::MIN, 10)];
        assert_eq!(asked(&two), [(3, wraps.to_vec()), (4, vec![range(10, 15)])]);
        // what is here already is not asked for
        let rest = wanted(joins(), 2, Source::Giver, &[range(12, 15)]).expect("sources");
        assert_eq!(asked(&rest), [(3, wraps.to_vec()), (4, vec![range(10, 12)])]);
        let mut down = joins();
        down[3].is_up = false;
        let gone = NoSource::Down { node: address(4), keyspace: "ks".to_owned() };
        assert_eq!(wanted(down.clone(), 2, Source::Giver, &[]), Err(gone));
        // anybody will do, where that is allowed
        let any = wanted(down, 2, Source::Anybody, &[]).expect("sources");
        assert!(asked(&any).iter().all(|(node, _)| *node != 4), "{any:?}");
    }

    #[test]
    fn who_returns_to_its_place_asks_the_others() {
        let two = wanted(nodes(State::Normal), 2, Source::Anybody, &[]).expect("sources");
        let all: Vec<_> = asked(&two).into_iter().flat_map(|(_, ranges)| ranges).collect();
        assert_eq!(
            TokenRange::normalize(all),
            [range(i64::MIN, 15), range(30, i64::MIN)],
            "all that it is a replica of"
        );
        // all that are left are asked, so that nothing is missing that only one of them has
        let three = wanted(nodes(State::Normal), 3, Source::Survivors, &[]).expect("sources");
        let asked_of = |range: TokenRange| {
            let has = |(_, ranges): &&(u8, Vec<TokenRange>)| ranges.contains(&range);
            asked(&three).iter().filter(has).count()
        };
        assert_eq!(asked_of(range(10, 15)), 2);
        let mut down = nodes(State::Normal);
        down[1].is_up = false;
        let less = wanted(down, 3, Source::Survivors, &[]).expect("sources");
        assert_eq!(less.absent, [address(2)].into());
        let one = wanted(nodes(State::Normal), 1, Source::Survivors, &[]).expect("nothing to ask");
        assert!(one.asks.is_empty());
        assert_eq!(one.lost.len(), 1, "it is lost with the node");
    }
}
