//! What a ring would be after a change, and what it withstands.

use crate::common;

use std::collections::BTreeMap;

use common::{node, simple, topology};
use proptest::prelude::*;
use ring::*;
use schema::Strategy as Replicated;

/// Nodes with so many tokens each, racks in turn, as the even way places them.
fn nodes(count: u16, racks: u16, num_tokens: u32, replicas: u32) -> Vec<Node> {
    let nodes: Vec<Node> =
        (1..=count).map(|n| node(n, "dc1", &format!("r{}", n % racks), &[i64::from(n)])).collect();
    resized(&nodes, num_tokens, |_| replicas).unwrap().nodes
}

fn failures(nodes: Vec<Node>, strategy: &Replicated) -> (Ring, Failures) {
    let ring = Ring::new(nodes, [strategy]).unwrap();
    let failures = Failures::new(&ring, ring.placement(strategy).unwrap());
    (ring, failures)
}

fn exact(share: f64) -> Option<Chance> {
    Some(Chance { share, is_exact: true })
}

#[test]
fn three_nodes() {
    let (_, three) = failures(nodes(3, 1, 4, 3), &simple(3));
    let nodes_fail = |loss, count| three.chance(loss, Unit::Nodes, count);
    assert_eq!(nodes_fail(Loss::Quorum, 1), exact(0.0));
    assert_eq!(nodes_fail(Loss::Quorum, 2), exact(1.0));
    assert_eq!(nodes_fail(Loss::Everything, 2), exact(0.0));
    assert_eq!(nodes_fail(Loss::Everything, 3), exact(1.0));
    assert_eq!(nodes_fail(Loss::Quorum, 0), None);
    assert_eq!(nodes_fail(Loss::Quorum, 4), None, "there are three");
    // all are in one rack
    assert_eq!(three.count(Unit::Racks), 1);
    assert_eq!(three.chance(Loss::Everything, Unit::Racks, 1), exact(1.0));

    // of two replicas a quorum is both
    let (_, two) = failures(nodes(3, 1, 4, 2), &simple(2));
    assert_eq!(two.chance(Loss::Quorum, Unit::Nodes, 1), exact(1.0));
    assert_eq!(two.chance(Loss::Everything, Unit::Nodes, 1), exact(0.0));
    assert_eq!(two.chance(Loss::Everything, Unit::Nodes, 2), exact(1.0));
    // and where there are fewer nodes than replicas, what is missing is missing now
    let (_, alone) = failures(nodes(1, 1, 4, 1), &simple(3));
    assert_eq!(alone.chance(Loss::Quorum, Unit::Nodes, 1), exact(1.0));
}

#[test]
fn neighbours_count() {
    // six nodes with one token each: a node shares ranges with two on each side
    let ring: Vec<Node> = (1..=6).map(|n| node(n, "dc1", "r1", &[i64::from(n) << 56])).collect();
    let (_, six) = failures(ring, &simple(3));
    assert_eq!(six.chance(Loss::Quorum, Unit::Nodes, 2), exact(12.0 / 15.0));
    assert_eq!(six.chance(Loss::Everything, Unit::Nodes, 3), exact(6.0 / 20.0));
    assert_eq!(six.chance(Loss::Quorum, Unit::Nodes, 3), exact(1.0));
    // nine of them: three that are not neighbours can fail
    let ring: Vec<Node> = (1..=9).map(|n| node(n, "dc1", "r1", &[i64::from(n) << 56])).collect();
    let (_, nine) = failures(ring, &simple(3));
    assert_eq!(nine.chance(Loss::Quorum, Unit::Nodes, 3), exact(81.0 / 84.0));
}

#[test]
fn racks_and_data_centres() {
    let strategy = topology(&[("dc1", 3)]);
    let (_, racks) = failures(nodes(9, 3, 4, 3), &strategy);
    assert_eq!(racks.count(Unit::Racks), 3);
    assert_eq!(racks.chance(Loss::Quorum, Unit::Racks, 1), exact(0.0));
    assert_eq!(racks.chance(Loss::Quorum, Unit::Racks, 2), exact(1.0));
    assert_eq!(racks.chance(Loss::Everything, Unit::Racks, 2), exact(0.0));
    // nodes of one rack have no range in common: 9 of 36 pairs are of one rack
    let pairs = racks.chance(Loss::Quorum, Unit::Nodes, 2).unwrap();
    assert!(pairs.is_exact && pairs.share <= 27.0 / 36.0, "{pairs:?}");

    // two racks of three replicas: one of them has two of each key
    let (_, two) = failures(nodes(8, 2, 4, 3), &strategy);
    assert_eq!(two.chance(Loss::Quorum, Unit::Racks, 1), exact(1.0));
    assert_eq!(two.chance(Loss::Everything, Unit::Racks, 1), exact(0.0));

    // a quorum of both data centres is four of six
    let mut both = nodes(3, 3, 4, 3);
    let far = |n: u16| node(10 + n, "dc2", &format!("r{n}"), &[i64::from(n) << 50]);
    both.extend((0..3).map(far));
    let strategy = topology(&[("dc1", 3), ("dc2", 3)]);
    let (ring, both) = failures(both, &strategy);
    let centers: Vec<_> = both.centers().collect();
    assert_eq!(centers.len(), 2);
    assert_eq!(both.chance(Loss::Quorum, Unit::Nodes, 2), exact(0.0));
    assert_eq!(both.chance(Loss::Quorum, Unit::Nodes, 3), exact(1.0));
    // two of the three pairs of each data centre, of fifteen
    for center in centers {
        let local = both.chance(Loss::LocalQuorum(center), Unit::Nodes, 2);
        assert_eq!(local, exact(3.0 / 15.0), "{}", ring.center_name(center));
    }
    assert_eq!(both.chance(Loss::Everything, Unit::Nodes, 6), exact(1.0));
    assert_eq!(both.chance(Loss::Everything, Unit::Nodes, 5), exact(0.0));
}

/// What docs/tokens.md says of neighbours, as a chance: more tokens, more pairs that hurt.
#[test]
fn more_tokens_have_more_neighbours() {
    let of = |num_tokens| {
        let (_, failures) = failures(nodes(24, 1, num_tokens, 3), &simple(3));
        failures.chance(Loss::Quorum, Unit::Nodes, 2).unwrap().share
    };
    let (one, four, sixteen) = (of(1), of(4), of(16));
    assert!(one < four && four < sixteen, "{one} {four} {sixteen}");
}

#[test]
fn many_nodes_are_sampled_or_counted() {
    let (_, many) = failures(nodes(300, 1, 16, 3), &simple(3));
    let lost = many.chance(Loss::Everything, Unit::Nodes, 3).unwrap();
    assert!(lost.is_exact, "each range names its own");
    // 4800 ranges, nearly all with replicas of their own, of 4,455,100 choices
    assert!((4_000.0..=4_800.0).contains(&(lost.share * 4_455_100.0).round()), "{lost:?}");
    assert!(many.chance(Loss::Quorum, Unit::Nodes, 2).unwrap().is_exact);
    let quorum = many.chance(Loss::Quorum, Unit::Nodes, 3).unwrap();
    assert!(!quorum.is_exact && quorum.share > 0.3, "{quorum:?}");
    assert_eq!(many.chance(Loss::Quorum, Unit::Nodes, 3), Some(quorum), "it says the same twice");
}

#[test]
fn another_number_of_tokens() {
    let before = nodes(6, 3, 16, 3);
    let after = resized(&before, 4, |_| 3).unwrap();
    assert!(after.is_even);
    let place = |node: &Node| (node.address, node.rack.clone(), node.data_center.clone());
    let sorted = |nodes: &[Node]| {
        let mut all: Vec<_> = nodes.iter().map(place).collect();
        all.sort();
        all
    };
    assert_eq!(sorted(&before), sorted(&after.nodes));
    assert!(after.nodes.iter().all(|node| node.tokens.len() == 4));
    assert!(!resized(&nodes(40, 1, 1, 3), 256, |_| 3).unwrap().is_even, "it takes too long");
    assert!(matches!(resized(&before, 1_000_000, |_| 3), Err(ResizeError::TooMany(6, _))));
    assert!(matches!(resized(&before, 0, |_| 3), Err(ResizeError::Allocation(_))));
    // who joins counts among those that are there when it has joined
    let mut joining = before.clone();
    joining[0].state = State::Joining;
    assert_eq!(resized(&joining, 4, |_| 3).unwrap().nodes.len(), 5);
}

#[test]
fn a_newcomer_chooses_what_it_would() {
    let nodes = nodes(5, 1, 8, 3);
    let newcomer =
        Newcomer { address: common::address(77), data_center: "dc1", rack: "r0", num_tokens: 8 };
    let chosen = choose_tokens(&nodes, &newcomer, Some((Method::Even, 3))).unwrap();
    assert!(!chosen.is_drawn);
    let mut never = || unreachable!("nothing is drawn");
    let real = allocate(&nodes, &newcomer, 3, Method::Even, &mut never).unwrap();
    assert_eq!(chosen.tokens, real);
    let drawn = choose_tokens(&nodes, &newcomer, None).unwrap();
    assert!(drawn.is_drawn && drawn.tokens.len() == 8);
    // of three that replicate everything, the places are drawn
    let few = choose_tokens(&nodes[..2], &newcomer, Some((Method::Even, 3))).unwrap();
    assert!(few.is_drawn);
    let none = Newcomer { num_tokens: 0, ..newcomer };
    assert_eq!(choose_tokens(&nodes, &none, None), Err(AllocationError::None));
}

fn tokens() -> impl Strategy<Value = std::collections::BTreeSet<i64>> {
    prop::collection::btree_set(any::<i64>(), 1..4)
}

proptest! {
    /// A data centre replicates as much as it has replicas, or nodes.
    #[test]
    fn shares_are_those_of_the_replicas(
        drawn in prop::collection::vec((0..2_usize, 0..3_u8, tokens()), 1..10),
        counts in (1..5_u32, 1..5_u32),
        leaves in 0..10_usize,
    ) {
        let mut nodes: Vec<Node> = drawn
            .into_iter()
            .zip(1..)
            .map(|((center, rack, tokens), n)| {
                let tokens: Vec<i64> = tokens.into_iter().collect();
                node(n, ["dc0", "dc1"][center], &format!("r{rack}"), &tokens)
            })
            .collect();
        let strategy = topology(&[("dc0", counts.0), ("dc1", counts.1)]);
        // before and after one has left
        for is_after in [false, true] {
            if is_after && nodes.len() > 1 {
                let gone = 1 + leaves % (nodes.len() - 1);
                nodes.remove(gone);
            }
            let ring = Ring::new(nodes.clone(), [&strategy]).unwrap();
            let placement = ring.placement(&strategy).unwrap();
            let shares = placement.replicated_shares();
            let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
            for (node, share) in ring.nodes().iter().zip(&shares) {
                *sums.entry(&*node.data_center).or_default() += share;
                prop_assert!(*share < 1.0 + 1e-9);
            }
            for (center, count) in [("dc0", counts.0), ("dc1", counts.1)] {
                let owning = ring.tokens().iter().map(|(_, node)| *node);
                let here: std::collections::BTreeSet<_> = owning
                    .filter(|node| *ring.node(*node).data_center == *center)
                    .collect();
                let expected = f64::from(count.min(here.len() as u32));
                let sum = sums.get(center).copied().unwrap_or(0.0);
                prop_assert!((sum - expected).abs() < 1e-9, "{center}: {sum} {expected}");
            }
            // the same as nodetool status has, but for its rounding
            for (share, owned) in shares.iter().zip(placement.effective_ownership()) {
                let owned = owned.map_or(0.0, f64::from);
                prop_assert!((share - owned).abs() < 1e-4, "{share} {owned}");
            }
        }
    }
}
