//! Which ranges a repair is about, and which other nodes have each of them
//! (`ActiveRepairService.getNeighbors`, `StorageService.getPrimaryRanges`). Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use ring::{NodeIndex, Placement, Ring};
use types::{Address, TokenRange};

/// Ranges that the same other nodes have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommonRange {
    pub nodes: BTreeSet<Address>,
    pub ranges: Vec<TokenRange>,
    /// Nodes that have them and are left out, as they are down (`--force`).
    pub skips: bool,
}

/// Whom a repair may ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Among<'a> {
    /// Data centres; all, if there are none.
    pub centers: &'a BTreeSet<String>,
    /// Nodes by address; all, if there are none.
    pub hosts: &'a BTreeSet<String>,
}

/// The ring, as a repair of a keyspace sees it.
#[derive(Clone, Copy)]
pub(super) struct Neighborhood<'a> {
    pub ring: &'a Ring,
    pub placement: &'a Placement,
}

impl Neighborhood<'_> {
    /// What this node has of the keyspace, cut where replicas change.
    pub fn local_ranges(self) -> Vec<TokenRange> {
        self.placement.ranges_of(self.ring.local()).collect()
    }

    /// What it is the first replica of; within its data centre, where that is asked.
    pub fn primary_ranges(self, within_center: bool) -> Vec<TokenRange> {
        let local = self.ring.local();
        match within_center {
            true => self.placement.primary_ranges_within_center(local).collect(),
            false => self.placement.primary_ranges(local).collect(),
        }
    }

    /// The nodes that have a range too.
    ///
    /// # Errors
    /// In Cassandra's words, if the range is partly this node's, or the hosts do not have it.
    pub fn neighbors(
        self,
        keyspace: &str,
        range: TokenRange,
        among: Among<'_>,
    ) -> Result<BTreeSet<Address>, String> {
        let mut own = None;
        for local in self.placement.ranges_of(self.ring.local()) {
            if holds(local, range) {
                own = Some(local);
                break;
            }
            if meets(local, range) {
                return Err(format!(
                    "Requested range {} intersects a local range ({}) but is not fully contained \
                     in one; this would lead to imprecise repair. keyspace: {keyspace}",
                    shown(range),
                    shown(local)
                ));
            }
        }
        let Some(own) = own else { return Ok(BTreeSet::new()) };
        let natural = self.placement.at(own.right).natural.iter().copied();
        let others: Vec<NodeIndex> = natural.filter(|node| *node != self.ring.local()).collect();
        let address = |node: &NodeIndex| self.ring.node(*node).address;
        if !among.centers.is_empty() {
            let is_in =
                |node: &&NodeIndex| among.centers.contains(&*self.ring.node(**node).data_center);
            return Ok(others.iter().filter(is_in).map(address).collect());
        }
        let all: BTreeSet<Address> = others.iter().map(address).collect();
        if among.hosts.is_empty() {
            return Ok(all);
        }
        self.among_hosts(&all, range, among.hosts)
    }

    fn among_hosts(
        self,
        all: &BTreeSet<Address>,
        range: TokenRange,
        hosts: &BTreeSet<String>,
    ) -> Result<BTreeSet<Address>, String> {
        let local = self.ring.node(self.ring.local()).address;
        let mut named = BTreeSet::new();
        for host in hosts {
            let unknown = || format!("Unknown host specified {host}");
            let address = address_of(host.trim(), local.port).ok_or_else(unknown)?;
            if address == local || all.contains(&address) {
                named.insert(address);
            }
        }
        if !named.remove(&local) {
            return Err("The current host must be part of the repair".to_owned());
        }
        if named.is_empty() {
            let list = |names: Vec<String>| format!("[{}]", names.join(", "));
            return Err(format!(
                "Specified hosts {} do not share range {} needed for repair. Either restrict \
                 repair ranges with -st/-et options, or specify one of the neighbors that share \
                 this range with this node: {}.",
                list(hosts.iter().cloned().collect()),
                shown(range),
                list(all.iter().map(|node| format!("Full(/{node},{})", shown(range))).collect())
            ));
        }
        Ok(named)
    }
}

/// An address, with this node's port where it names none.
fn address_of(host: &str, port: u16) -> Option<Address> {
    let of_ip = |ip: IpAddr| SocketAddr::new(ip, port);
    let address = host.parse().or_else(|_| host.parse().map(of_ip)).ok()?;
    Some(Address::new(address.ip(), address.port()))
}

/// Puts ranges together that the same nodes have.
pub(super) fn common(ranges: Vec<(TokenRange, BTreeSet<Address>)>) -> Vec<CommonRange> {
    let mut by_nodes: BTreeMap<BTreeSet<Address>, Vec<TokenRange>> = BTreeMap::new();
    for (range, nodes) in ranges {
        by_nodes.entry(nodes).or_default().push(range);
    }
    let common = |(nodes, ranges)| CommonRange { nodes, ranges, skips: false };
    by_nodes.into_iter().map(common).collect()
}

/// A range as Cassandra shows it.
pub(super) fn shown(range: TokenRange) -> String {
    format!("({},{}]", range.left, range.right)
}

/// Several of them.
pub(super) fn all_shown(ranges: &[TokenRange]) -> String {
    let each: Vec<_> = ranges.iter().map(|range| shown(*range)).collect();
    format!("[{}]", each.join(", "))
}

/// Is all of a range in another?
fn holds(range: TokenRange, inner: TokenRange) -> bool {
    let whole = TokenRange::normalize([range]);
    inner.unwrap().all(|part| part.without(&whole).is_empty())
}

/// Have two ranges something in common?
fn meets(range: TokenRange, other: TokenRange) -> bool {
    let whole = TokenRange::normalize([range]);
    other.unwrap().any(|part| part.without(&whole) != [part])
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Token;

    fn range(left: i64, right: i64) -> TokenRange {
        TokenRange { left: Token(left), right: Token(right) }
    }

    #[test]
    fn a_range_holds_what_lies_within_it_over_the_end_of_the_ring_too() {
        let wraps = range(50, -50);
        for inner in [range(60, 70), range(-70, -60), range(60, -60), wraps] {
            assert!(holds(wraps, inner), "{inner:?}");
            assert!(meets(wraps, inner), "{inner:?}");
        }
        for outer in [range(40, 60), range(-60, -40), range(40, -60), range(0, 0)] {
            assert!(!holds(wraps, outer), "{outer:?}");
            assert!(meets(wraps, outer), "{outer:?}");
        }
        assert!(!meets(wraps, range(-50, 50)));
        assert!(holds(TokenRange::ALL, wraps));
    }

    #[test]
    fn ranges_of_the_same_nodes_go_together() {
        let node = |last| Address::new([10, 0, 0, last], 7000);
        let (one, two) = (BTreeSet::from([node(1)]), BTreeSet::from([node(1), node(2)]));
        let all = common(vec![
            (range(0, 1), two.clone()),
            (range(1, 2), one.clone()),
            (range(2, 3), two.clone()),
        ]);
        let expected = [(one, vec![range(1, 2)]), (two, vec![range(0, 1), range(2, 3)])];
        let all: Vec<_> = all.into_iter().map(|common| (common.nodes, common.ranges)).collect();
        assert_eq!(all, expected);
    }
}
