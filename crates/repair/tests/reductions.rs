//! Laws of who fetches what from whom.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use proptest::prelude::*;
use repair::Differences;
use types::{Address, Token, TokenRange};

/// Pieces of the ring in these worlds.
const PIECES: usize = 6;

fn node(number: usize) -> Address {
    // as text 10.0.0.10 comes before 10.0.0.9
    Address::new(Ipv4Addr::new(10, 0, 0, 7 + number as u8), 7000)
}

fn number(node: Address) -> usize {
    (0..10).find(|number| self::node(*number) == node).expect("a node of these worlds")
}

fn range(left: i64, right: i64) -> TokenRange {
    TokenRange { left: Token(left), right: Token(right) }
}

/// A ring in pieces, the last of which goes over its end, and the version that each node has of
/// each piece.
#[derive(Clone, Debug)]
struct World {
    pieces: Vec<TokenRange>,
    versions: Vec<Vec<u8>>,
}

impl World {
    fn differences(&self) -> Differences {
        let mut differences = Differences::new();
        for (one, mine) in self.versions.iter().enumerate() {
            for (other, theirs) in self.versions.iter().enumerate().skip(one + 1) {
                let differs = |piece: &usize| mine[*piece] != theirs[*piece];
                let pieces = (0..PIECES).filter(differs).map(|piece| self.pieces[piece]);
                // in the order of the ring or not, the lesser node first or not
                match one % 2 {
                    0 => differences.add(node(one), node(other), &pieces.collect::<Vec<_>>()),
                    _ => pieces.for_each(|p| differences.add(node(other), node(one), &[p])),
                }
            }
        }
        differences
    }
}

fn worlds() -> impl Strategy<Value = World> {
    let ends = proptest::collection::btree_set(
        prop_oneof![4 => any::<i64>(), 1 => Just(i64::MAX), 1 => Just(i64::MIN), 2 => -5..5_i64],
        PIECES,
    );
    let versions = proptest::collection::vec(proptest::collection::vec(0..3_u8, PIECES), 2..6);
    (ends, versions).prop_map(|(ends, versions)| {
        let ends: Vec<i64> = ends.into_iter().collect();
        let next = ends.iter().cycle().skip(1);
        let pieces = ends.iter().zip(next).map(|(left, right)| range(*left, *right));
        World { pieces: pieces.collect(), versions }
    })
}

proptest! {
    /// Each replica gets each version that it has not, once, and nothing else; from a node that is
    /// preferred, if one has it.
    #[test]
    fn each_version_comes_once(world in worlds(), centre in proptest::collection::vec(0..2, 6)) {
        let prefers = |one: Address, other: Address| centre[number(one)] == centre[number(other)];
        let fetches = world.differences().reduce(prefers);
        for (piece, tokens) in world.pieces.iter().enumerate() {
            // a token of each piece: its last one, and none of an empty piece behind the largest
            let token = tokens.right;
            if token == Token::MIN {
                continue;
            }
            for (own, versions) in world.versions.iter().enumerate() {
                let of_piece = |number: usize| world.versions[number][piece];
                let others = || (0..world.versions.len()).filter(|other| *other != own);
                let lacking: BTreeSet<u8> =
                    others().map(of_piece).filter(|other| *other != versions[piece]).collect();
                let mut got = Vec::new();
                for (from, ranges) in fetches.get(&node(own)).into_iter().flatten() {
                    let from = number(*from);
                    prop_assert_ne!(from, own);
                    let times = ranges.iter().filter(|range| range.contains(token)).count();
                    prop_assert!(times <= 1);
                    if times == 1 {
                        got.push(of_piece(from));
                        let of_version = others().filter(|o| of_piece(*o) == of_piece(from));
                        let near = of_version.filter(|o| prefers(node(own), node(*o))).count();
                        prop_assert!(near == 0 || prefers(node(own), node(from)));
                    }
                }
                got.sort_unstable();
                prop_assert_eq!(got, lacking.into_iter().collect::<Vec<_>>());
            }
        }
    }

    /// Ranges are in order, and none touches the next.
    #[test]
    fn ranges_are_as_few_as_can_be(world in worlds()) {
        let fetches = world.differences().reduce(|_, _| true);
        for ranges in fetches.values().flat_map(BTreeMap::values) {
            prop_assert_eq!(&TokenRange::normalize(ranges.iter().copied()), ranges);
        }
    }
}

#[test]
fn the_next_address_as_text_is_asked() {
    // 10.0.0.7 lacks what the others have: as text the next is 10.0.0.8, and of 10.0.0.10 it is
    // 10.0.0.7's
    let versions = |versions: [u8; 4]| World {
        pieces: vec![range(0, 10); PIECES],
        versions: versions.map(|version| vec![version; PIECES]).to_vec(),
    };
    let asked = |world: World, of: usize| {
        let fetches = world.differences().reduce(|_, _| true);
        fetches[&node(of)].keys().copied().map(number).collect::<Vec<_>>()
    };
    assert_eq!(asked(versions([0, 1, 1, 1]), 0), [1]);
    assert_eq!(asked(versions([1, 1, 1, 0]), 3), [0]);
    // 10.0.0.9 comes last as text, and the first is 10.0.0.10
    assert_eq!(asked(versions([1, 1, 0, 1]), 2), [3]);
    assert_eq!(asked(versions([0, 1, 2, 1]), 0), [1, 2]);
}

#[test]
fn ranges_over_the_end_of_the_ring() {
    let mut differences = Differences::new();
    differences.add(node(0), node(1), &[range(100, -100)]);
    differences.add(node(0), node(2), &[range(50, i64::MIN)]);
    let fetches = differences.reduce(|_, _| true);
    // from 50 to 100 only one differs; from 100 on both do, and are alike
    let of = |node: usize, from: usize| &fetches[&self::node(node)][&self::node(from)];
    assert_eq!(*of(0, 2), [range(50, 100)]);
    assert_eq!(*of(0, 1), [range(i64::MIN, -100), range(100, i64::MIN)]);
    assert_eq!(*of(2, 0), [range(50, i64::MIN)]);
    // all of the ring
    let mut differences = Differences::new();
    differences.add(node(0), node(1), &[TokenRange::ALL]);
    assert_eq!(differences.reduce(|_, _| true)[&node(0)][&node(1)], [TokenRange::ALL]);
}
