//! What a node that leaves or moves gives, and to whom (`RangeCalculator`, `RangeRelocator`). Pure.

use std::collections::BTreeMap;

use ring::Ring;
use schema::{Keyspace, Strategy};
use types::{Address, TokenRange};

use crate::topology::fetch::NoSource;

/// Ranges of a keyspace by who is given them: those of this node that another is about to have,
/// without what `given` says was given.
pub(in crate::topology) fn gives(
    ring: &Ring,
    keyspace: &Keyspace,
    given: impl Fn(Address) -> Vec<TokenRange>,
) -> Result<BTreeMap<Address, Vec<TokenRange>>, NoSource> {
    let mut gives: BTreeMap<Address, Vec<TokenRange>> = BTreeMap::new();
    let strategy = &keyspace.replication.strategy;
    if *strategy == Strategy::Local {
        return Ok(gives);
    }
    let name = || keyspace.name.to_string();
    let placement = ring.placement(strategy).ok_or_else(|| NoSource::Strategy(name()))?;
    for index in ring.indexes().filter(|index| *index != ring.local()) {
        let is_mine =
            |range: &TokenRange| placement.at(range.right).natural.contains(&ring.local());
        let gained = placement.pending_ranges_of(index).filter(is_mine);
        let gained: Vec<_> = gained.flat_map(TokenRange::unwrap).collect();
        let node = ring.node(index).address;
        let given = if gained.is_empty() { Vec::new() } else { given(node) };
        let left: Vec<_> = gained.into_iter().flat_map(|range| range.without(&given)).collect();
        if left.is_empty() {
            continue;
        }
        if !ring.is_up(index) {
            return Err(NoSource::NoTaker { node, keyspace: name() });
        }
        gives.insert(node, left);
    }
    Ok(gives)
}
