//! Who fetches what from whom, if each replica is to fetch each version once
//! (`repair.asymmetric`, option `optimiseStreams`).
//!
//! Without it, two replicas that differ send each other the range, and a replica gets the same
//! version from all that have it. Here the ring is cut at each end of a difference. In each piece
//! replicas that do not differ have the same version, and one of them is asked.
//!
//! Cassandra cuts ranges only where two of them meet, and may so ask twice for a version that we
//! ask for once. It asks in the order of addresses as text, and so do we.

use std::collections::{BTreeMap, BTreeSet};

use types::{Address, Token, TokenRange};

use crate::text;

/// What each replica fetches, by whom it is asked of.
pub type Fetches = BTreeMap<Address, BTreeMap<Address, Vec<TokenRange>>>;

/// The ranges that pairs of replicas differ in (`DifferenceHolder`).
#[derive(Clone, Debug, Default)]
pub struct Differences {
    /// By both replicas, the lesser first; ranges are normal.
    pairs: BTreeMap<(Address, Address), Vec<TokenRange>>,
}

impl Differences {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Two replicas differ in these ranges.
    pub fn add(&mut self, one: Address, other: Address, ranges: &[TokenRange]) {
        assert_ne!(one, other, "a replica does not differ from itself");
        let pair = self.pairs.entry((one.min(other), one.max(other))).or_default();
        *pair = TokenRange::normalize(pair.iter().chain(ranges).copied());
    }

    /// What each replica is to fetch so that it has all versions. Of replicas that have the same
    /// version, those are preferred that `prefers(fetching, asked)` says, as those in the same data
    /// centre; then the one whose address comes next.
    pub fn reduce(&self, prefers: impl Fn(Address, Address) -> bool) -> Fetches {
        let mut fetches = Fetches::new();
        let names = Names::of(self.pairs.keys());
        let mut cursors: Vec<Cursor<'_>> =
            self.pairs.iter().map(|(pair, ranges)| Cursor { pair: *pair, ranges }).collect();
        let ends = self.ends();
        for (from, to) in ends.iter().zip(ends.iter().skip(1)) {
            let differing = cursors.iter_mut().filter_map(|cursor| cursor.differing(*from));
            let piece = Piece { differing: differing.collect() };
            for (replica, versions) in piece.versions() {
                for version in versions {
                    if let Some(asked) = names.choose(replica, &version, &prefers) {
                        let of = fetches.entry(replica).or_default().entry(asked).or_default();
                        push(of, *from, *to);
                    }
                }
            }
        }
        fetches
    }

    /// Where a difference begins or ends, in order.
    fn ends(&self) -> Vec<i128> {
        let ranges = self.pairs.values().flatten();
        let ends: BTreeSet<i128> =
            ranges.flat_map(|range| [range.left.0.into(), end_of(*range)]).collect();
        ends.into_iter().collect()
    }
}

/// The end of a range that does not go over the ring's end. One that ends at the least token ends
/// behind the largest.
fn end_of(range: TokenRange) -> i128 {
    if range.right == Token::MIN { i128::from(i64::MAX) + 1 } else { range.right.0.into() }
}

/// Adds a piece behind others, as one with the last if it begins where that ends.
fn push(ranges: &mut Vec<TokenRange>, from: i128, to: i128) {
    let right = i64::try_from(to).map_or(Token::MIN, Token);
    match ranges.last_mut().filter(|last| end_of(**last) == from) {
        Some(last) => last.right = right,
        None => {
            let left = i64::try_from(from).map_or(Token::MIN, Token);
            ranges.push(TokenRange { left, right });
        }
    }
}

/// The ranges of a pair that the pass has not gone by.
struct Cursor<'d> {
    pair: (Address, Address),
    ranges: &'d [TokenRange],
}

impl Cursor<'_> {
    /// The pair, if it differs in the piece that begins there.
    fn differing(&mut self, from: i128) -> Option<(Address, Address)> {
        while let Some((range, rest)) = self.ranges.split_first()
            && end_of(*range) <= from
        {
            self.ranges = rest;
        }
        let range = self.ranges.first()?;
        (i128::from(range.left.0) <= from).then_some(self.pair)
    }
}

/// The pairs that differ in a part of the ring.
struct Piece {
    differing: BTreeSet<(Address, Address)>,
}

impl Piece {
    fn differ(&self, one: Address, other: Address) -> bool {
        self.differing.contains(&(one.min(other), one.max(other)))
    }

    /// For each replica the versions that it lacks: replicas that differ from it, those together
    /// that do not differ from each other. Not to differ need not carry over from one to the next,
    /// as trees have different depths; then they are apart.
    fn versions(&self) -> BTreeMap<Address, Vec<Vec<Address>>> {
        let mut others: BTreeMap<Address, BTreeSet<Address>> = BTreeMap::new();
        for (one, other) in &self.differing {
            others.entry(*one).or_default().insert(*other);
            others.entry(*other).or_default().insert(*one);
        }
        let group = |others: BTreeSet<Address>| {
            let mut versions: Vec<Vec<Address>> = Vec::new();
            for other in others {
                let is_same = |version: &&mut Vec<Address>| {
                    version.iter().all(|member| !self.differ(*member, other))
                };
                match versions.iter_mut().find(is_same) {
                    Some(version) => version.push(other),
                    None => versions.push(vec![other]),
                }
            }
            versions
        };
        others.into_iter().map(|(replica, others)| (replica, group(others))).collect()
    }
}

/// Addresses as text, by which Cassandra orders them.
struct Names(BTreeMap<Address, String>);

impl Names {
    fn of<'a>(pairs: impl Iterator<Item = &'a (Address, Address)>) -> Self {
        let addresses = pairs.flat_map(|(one, other)| [*one, *other]);
        Self(addresses.map(|address| (address, text::address(&address))).collect())
    }

    /// Who of those with the same version is asked: the next behind the replica, or the first.
    fn choose(
        &self,
        replica: Address,
        version: &[Address],
        prefers: impl Fn(Address, Address) -> bool,
    ) -> Option<Address> {
        let preferred: Vec<Address> =
            version.iter().copied().filter(|asked| prefers(replica, *asked)).collect();
        let asked = if preferred.is_empty() { version } else { &preferred };
        let own = self.0.get(&replica);
        asked.iter().copied().min_by_key(|asked| {
            let name = self.0.get(asked);
            (name < own, name)
        })
    }
}
