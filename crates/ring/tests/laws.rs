//! What holds of every ring, strategy and request.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};

use common::{address, index, node, numbers, simple, topology, with_down};
use proptest::prelude::*;
use protocol::Consistency;
use ring::*;
use schema::{SpeculativeRetry, Strategy as Replicated};
use types::Token;

/// Levels that plain writes have.
const WRITE_LEVELS: [Consistency; 9] = [
    Consistency::Any,
    Consistency::One,
    Consistency::Two,
    Consistency::Three,
    Consistency::Quorum,
    Consistency::All,
    Consistency::LocalQuorum,
    Consistency::EachQuorum,
    Consistency::LocalOne,
];

/// Nodes in up to three data centres with up to four racks, all of them normal.
fn nodes() -> impl Strategy<Value = Vec<Node>> {
    at_least(1)
}

fn at_least(least: usize) -> impl Strategy<Value = Vec<Node>> {
    let tokens = prop::collection::vec(any::<i64>(), 1..4);
    prop::collection::vec((0..3_usize, 0..4_usize, tokens), least..12).prop_map(|drawn| {
        let mut taken = BTreeSet::new();
        let nodes = drawn.into_iter().zip(1..).map(|((center, rack, tokens), number)| {
            let mut tokens: Vec<i64> = tokens.into_iter().filter(|t| taken.insert(*t)).collect();
            if tokens.is_empty() {
                tokens.push(number.into());
            }
            node(number, &format!("dc{center}"), &format!("r{rack}"), &tokens)
        });
        nodes.collect()
    })
}

fn strategies() -> impl Strategy<Value = Replicated> {
    let counts = prop::collection::vec(0..5_u32, 3);
    let by_center = counts.prop_map(|counts| {
        let named = ["dc0", "dc1", "dc2"].into_iter().zip(counts);
        topology(&named.filter(|(_, count)| *count > 0).collect::<Vec<_>>())
    });
    prop_oneof![(1..5_u32).prop_map(simple), by_center]
}

/// What is under way.
#[derive(Clone, Debug)]
enum Change {
    Joins(usize, usize, Vec<i64>),
    Leaves(usize),
    Moves(usize, i64),
    /// In the same rack: elsewhere, replicas of others shift too, which neither Cassandra nor we
    /// write to before.
    Replaces(usize),
}

fn changes() -> impl Strategy<Value = Change> {
    let tokens = prop::collection::vec(any::<i64>(), 1..4);
    prop_oneof![
        (0..3_usize, 0..4_usize, tokens).prop_map(|(c, r, tokens)| Change::Joins(c, r, tokens)),
        (0..12_usize).prop_map(Change::Leaves),
        (0..12_usize, any::<i64>()).prop_map(|(node, to)| Change::Moves(node, to)),
        (0..12_usize).prop_map(Change::Replaces),
    ]
}

impl Change {
    /// Address of the node whose tokens it is about; it is never this node.
    fn target(&self, before: &[Node]) -> Option<types::Address> {
        match self {
            Self::Joins(..) => None,
            Self::Leaves(place) | Self::Moves(place, _) | Self::Replaces(place) => {
                Some(before[1 + place % (before.len() - 1)].address)
            }
        }
    }

    /// What nodes are while it is under way, or once it is done; whoever is new has this number.
    fn apply(&self, before: &[Node], nodes: &mut Vec<Node>, number: u16, is_done: bool) {
        let target = self.target(before);
        let at = nodes.iter().position(|node| Some(node.address) == target);
        let state = |state| if is_done { State::Normal } else { state };
        match (self, at) {
            (Self::Joins(center, rack, tokens), _) => {
                let (center, rack) = (format!("dc{center}"), format!("r{rack}"));
                let new = node(number, &center, &rack, tokens);
                nodes.push(Node { state: state(State::Joining), ..new });
            }
            (Self::Leaves(_), Some(at)) if is_done => drop(nodes.remove(at)),
            (Self::Leaves(_), Some(at)) => nodes[at].state = State::Leaving,
            (Self::Moves(_, to), Some(at)) if is_done => nodes[at].tokens = vec![Token(*to)],
            (Self::Moves(_, to), Some(at)) => nodes[at].state = State::Moving(Token(*to)),
            (Self::Replaces(_), Some(at)) => {
                let old = nodes[at].clone();
                let new = node(number, &old.data_center, &old.rack, &[]);
                nodes[at].is_up = false;
                let state = state(State::Replacing(old.address));
                nodes.push(Node { state, tokens: old.tokens, ..new });
                if is_done {
                    nodes.remove(at);
                }
            }
            (_, None) => {}
        }
    }
}

/// The nodes while it is under way, and after it.
fn under_way(before: &[Node], changes: &[Change]) -> (Vec<Node>, Vec<Node>) {
    let (mut now, mut after) = (before.to_vec(), before.to_vec());
    for (change, number) in changes.iter().zip(100..) {
        change.apply(before, &mut now, number, false);
        change.apply(before, &mut after, number, true);
    }
    (now, after)
}

/// Ends of ranges, and tokens next to them.
fn tokens(rings: &[&Ring]) -> Vec<Token> {
    let ends = rings.iter().flat_map(|ring| ring.tokens_with_joining());
    ends.flat_map(|(token, _)| {
        [token, Token(token.0.wrapping_add(1)), Token(token.0.wrapping_sub(1))]
    })
    .collect()
}

fn set(numbers: &[u16]) -> BTreeSet<u16> {
    numbers.iter().copied().collect()
}

/// Nodes by rack of a data centre.
fn racks<'a>(nodes: impl Iterator<Item = &'a Node>, center: &str) -> BTreeMap<String, usize> {
    let mut racks = BTreeMap::new();
    for node in nodes.filter(|node| &*node.data_center == center) {
        *racks.entry(node.rack.to_string()).or_default() += 1;
    }
    racks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn replicas_are_as_many_and_as_far_apart_as_can_be(nodes in nodes(), strategy in strategies()) {
        let ring = Ring::new(nodes.clone(), [&strategy]).unwrap();
        let placement = ring.placement(&strategy).unwrap();
        for token in tokens(&[&ring]) {
            let replicas = placement.at(token);
            prop_assert!(replicas.pending.is_empty());
            let found = numbers(&ring, replicas.natural);
            prop_assert_eq!(set(&found).len(), found.len());
            let found = || replicas.natural.iter().map(|node| ring.node(*node));
            let Replicated::NetworkTopology(counts) = &strategy else {
                let expected = nodes.len().min(placement.replication_factor() as usize);
                prop_assert_eq!(replicas.natural.len(), expected);
                continue;
            };
            for (center, count) in counts {
                let all = racks(nodes.iter(), center);
                let held = racks(found(), center);
                let expected = all.values().sum::<usize>().min(count.all as usize);
                prop_assert_eq!(held.values().sum::<usize>(), expected);
                prop_assert_eq!(held.len(), all.len().min(expected));
            }
            prop_assert!(found().all(|node| counts.contains_key(&*node.data_center)));
        }
    }

    #[test]
    fn every_token_is_in_one_range(nodes in nodes(), strategy in strategies(), token: i64) {
        let ring = Ring::new(nodes, [&strategy]).unwrap();
        let placement = ring.placement(&strategy).unwrap();
        for token in tokens(&[&ring]).into_iter().chain([Token(token), Token::MIN, Token::MAX]) {
            let inside: Vec<_> = placement.ranges().filter(|r| r.range.contains(token)).collect();
            prop_assert_eq!(inside.len(), 1);
            prop_assert_eq!(inside[0].replicas, placement.at(token).natural);
            let primary = |node: &NodeIndex| placement.primary_ranges(*node).any(|r| r.contains(token));
            let primaries: Vec<_> = ring.indexes().filter(primary).collect();
            prop_assert_eq!(&primaries[..], &inside[0].replicas[..inside[0].replicas.len().min(1)]);
            let having = |node: &NodeIndex| placement.ranges_of(*node).any(|r| r.contains(token));
            let mut replicas = inside[0].replicas.to_vec();
            replicas.sort_unstable();
            prop_assert_eq!(ring.indexes().filter(having).collect::<Vec<_>>(), replicas);
            let firsts = ring.indexes().filter(|node| {
                placement.primary_ranges_within_center(*node).any(|r| r.contains(token))
            });
            let centers: BTreeSet<_> =
                inside[0].replicas.iter().map(|node| ring.center_of(*node)).collect();
            prop_assert_eq!(firsts.count(), centers.len());
        }
    }

    #[test]
    fn shares_are_of_the_whole(nodes in nodes(), strategy in strategies()) {
        let ring = Ring::new(nodes, [&strategy]).unwrap();
        let placement = ring.placement(&strategy).unwrap();
        let replicas = placement.at(Token(0)).natural.len() as f32;
        let sum = |shares: Vec<Option<f32>>| shares.into_iter().flatten().sum::<f32>();
        prop_assert!((sum(ring.ownership()) - 1.0).abs() < 1e-3);
        prop_assert!((sum(placement.effective_ownership()) - replicas).abs() < 1e-3);
    }

    #[test]
    fn who_is_a_replica_after_a_change_is_written_to_before(
        before in at_least(2),
        change in changes(),
        strategy in strategies(),
        level in 0..WRITE_LEVELS.len(),
    ) {
        let (now, after) = under_way(&before, &[change]);
        let [before, now, after] = [before, now, after].map(|n| Ring::new(n, [&strategy]).unwrap());
        let places = [&before, &now, &after].map(|ring| ring.placement(&strategy).unwrap());
        for token in tokens(&[&before, &now, &after]) {
            let natural = |ring: &Ring, place: usize| numbers(ring, places[place].at(token).natural);
            let (was, is, becomes) = (natural(&before, 0), natural(&now, 1), natural(&after, 2));
            prop_assert_eq!(&was, &is);
            let pending = numbers(&now, places[1].at(token).pending);
            prop_assert!(set(&pending).is_disjoint(&set(&is)));
            prop_assert_eq!(set(&pending).len(), pending.len());
            let written: BTreeSet<u16> = is.iter().chain(&pending).copied().collect();
            prop_assert!(set(&becomes).is_subset(&written), "{becomes:?} {written:?}");
            // what a quorum has acknowledged, a quorum has before and after, whoever it was
            let level = WRITE_LEVELS[level];
            let required = places[1].block_for_write(level, places[1].at(token).pending) as usize;
            let quorum = places[1].block_for(Consistency::Quorum) as usize;
            if level == Consistency::Quorum && required <= written.len() && becomes.len() == is.len() {
                let missing = written.len() - required;
                for has in [is.len(), becomes.len()] {
                    prop_assert!(has - missing.min(has) >= quorum.min(has));
                }
            }
        }
        // and what was rebuilt is as what was built
        let rebuilt = before.with_nodes(now.nodes().to_vec()).unwrap();
        for token in tokens(&[&now]) {
            prop_assert_eq!(rebuilt.placement(&strategy).unwrap().at(token), places[1].at(token));
        }
    }

    #[test]
    fn several_changes_at_once_are_prepared_for_too(
        before in at_least(5),
        changes in prop::collection::vec(changes(), 2..4),
        strategy in strategies(),
    ) {
        let mut changed = BTreeSet::new();
        let is_new = |change: &Change| change.target(&before).is_none_or(|node| changed.insert(node));
        let changes: Vec<Change> = changes.into_iter().filter(is_new).collect();
        let (now, after) = under_way(&before, &changes);
        let [now, after] = [now, after].map(|nodes| Ring::new(nodes, [&strategy]).unwrap());
        let places = [&now, &after].map(|ring| ring.placement(&strategy).unwrap());
        for token in tokens(&[&now, &after]) {
            let is = places[0].at(token);
            let written = numbers(&now, &[is.natural, is.pending].concat());
            let becomes = numbers(&after, places[1].at(token).natural);
            prop_assert!(set(&becomes).is_subset(&set(&written)), "{changes:?} {becomes:?} {written:?}");
        }
    }

    #[test]
    fn answers_are_counted_right(
        before in at_least(2),
        change in changes(),
        strategy in strategies(),
        level in 0..WRITE_LEVELS.len(),
        token: i64,
        order in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..24),
    ) {
        let (now, _) = under_way(&before, &[change]);
        let ring = with_down(&Ring::new(now, [&strategy]).unwrap(), &[]);
        let placement = ring.placement(&strategy).unwrap();
        let replicas = placement.at(Token(token));
        let level = WRITE_LEVELS[level];
        let Ok(plan) = WritePlan::new(&ring, placement, replicas, level) else { return Ok(()) };
        prop_assume!(!plan.replicas().is_empty());
        let mut acks = plan.acks::<u8>(&ring);
        let (mut answered, mut failed) = (BTreeSet::new(), BTreeSet::new());
        let is_each = level == Consistency::EachQuorum && matches!(strategy, Replicated::NetworkTopology(_));
        let counts = |node: &&NodeIndex| !level.is_local() || ring.is_near(**node);
        // what the level means, from the beginning
        let is_enough = |answered: &BTreeSet<NodeIndex>| {
            if !is_each {
                return answered.iter().filter(counts).count() >= plan.required() as usize;
            }
            let Replicated::NetworkTopology(wanted) = &strategy else { return false };
            wanted.iter().all(|(center, count)| {
                let here = |node: &&NodeIndex| *ring.node(**node).data_center == **center;
                let pending = plan.pending().iter().filter(here).count();
                answered.iter().filter(here).count() >= count.all as usize / 2 + 1 + pending
            })
        };
        let mut was_enough = is_enough(&answered);
        for (pick, fails) in order {
            let node = *pick.get(plan.replicas());
            let is_new = !answered.contains(&node) && !failed.contains(&node);
            let verdict = match fails {
                true => acks.failed(node, 0),
                false => acks.answered(node),
            };
            if is_new {
                if fails { &mut failed } else { &mut answered }.insert(node);
            }
            was_enough |= is_enough(&answered);
            prop_assert_eq!(verdict == Verdict::Enough, was_enough);
            let all: BTreeSet<NodeIndex> =
                plan.replicas().iter().filter(|node| !failed.contains(node)).copied().collect();
            let can = is_enough(&all);
            if verdict == Verdict::CannotBeReached {
                prop_assert!(!can);
            } else if !is_each {
                prop_assert!(can);
            }
            let silent = acks.silent().count();
            prop_assert_eq!(silent, plan.replicas().len() - answered.len() - failed.len());
            prop_assert_eq!(acks.failures().len(), failed.len());
            prop_assert!(acks.received_too_few() < acks.required());
        }
    }

    #[test]
    fn who_is_asked_is_enough(
        nodes in nodes(),
        strategy in strategies(),
        // neither ANY nor NODE_LOCAL
        level in 1..Consistency::ALL.len() - 1,
        token: i64,
        down in prop::collection::vec(2..12_u16, 0..6),
        retry in 0..3_usize,
    ) {
        let ring = with_down(&Ring::new(nodes, [&strategy]).unwrap(), &down);
        let placement = ring.placement(&strategy).unwrap();
        let replicas = placement.at(Token(token));
        let level = Consistency::ALL[level];
        let retry = [SpeculativeRetry::Never, SpeculativeRetry::Always, SpeculativeRetry::DEFAULT][retry];
        let proximity = Proximity { by_place: true, scores: None };
        let mut nearest = replicas.natural.to_vec();
        proximity.sort(&ring, &mut nearest);
        if nearest.contains(&ring.local()) {
            prop_assert_eq!(nearest[0], ring.local());
        }
        let mut plan = match ReadPlan::new(&ring, placement, replicas, level, retry, proximity) {
            Ok(plan) => plan,
            Err(lack) => {
                prop_assert!(lack.alive < lack.required || lack.required == 0);
                return Ok(());
            }
        };
        prop_assert!(plan.contacts().iter().all(|node| plan.candidates().contains(node)));
        let may = |node: &NodeIndex| {
            let is_near = !level.is_local() || ring.is_near(*node);
            ring.is_up(*node) && replicas.natural.contains(node) && is_near
        };
        prop_assert!(plan.candidates().iter().all(may));
        prop_assert!(plan.contacts().len() >= plan.required() as usize);
        prop_assert!(!plan.data().is_empty());
        prop_assert_eq!(plan.data().len() + plan.digests().len(), plan.contacts().len());
        // digests alone are not enough, data with them is
        let mut acks = plan.acks::<()>(&ring);
        for node in plan.digests() {
            prop_assert_ne!(acks.answered(*node), Verdict::Enough);
        }
        let last = plan.data().iter().map(|node| acks.gave_data(*node)).last();
        prop_assert_eq!(last, Some(Verdict::Enough));
        // one more may take the place of one that is silent
        let contacts = plan.contacts().len();
        let mut acks = plan.acks::<()>(&ring);
        if plan.speculation == Speculation::Later {
            let extra = plan.speculate().unwrap();
            acks.asked(&ring, extra);
            acks.failed(plan.contacts()[0], ());
            prop_assert_eq!(acks.verdict(), Verdict::Pending);
            prop_assert_eq!(plan.contacts().len(), contacts + 1);
        }
    }

    #[test]
    fn a_scan_covers_all_once(
        nodes in nodes(),
        strategy in strategies(),
        level in 0..3_usize,
        down in prop::collection::vec(2..12_u16, 0..3),
        bounds: (i64, i64),
    ) {
        let ring = with_down(&Ring::new(nodes, [&strategy]).unwrap(), &down);
        let placement = ring.placement(&strategy).unwrap();
        let level = [Consistency::One, Consistency::Quorum, Consistency::EachQuorum][level];
        let (first, last) = (bounds.0.min(bounds.1), bounds.0.max(bounds.1));
        let last = (last % 2 == 0).then_some(Token(last));
        let ends: Vec<_> = ring.cuts(Token(first), last).map(Some).chain([last]).collect();
        let plans = RangePlans::new(&ring, placement, level, Proximity { by_place: true, scores: None }, ends.iter().copied());
        let mut left = ends.iter();
        for plan in plans {
            let Ok(plan) = plan else { return Ok(()) };
            for _ in 0..plan.ranges {
                let end = *left.next().unwrap();
                let natural = placement.at(end.unwrap_or(Token::MIN)).natural;
                prop_assert!(plan.contacts().iter().all(|node| natural.contains(node)));
            }
            prop_assert!(plan.contacts().len() >= plan.required() as usize);
            prop_assert!(plan.contacts().iter().all(|node| ring.is_up(*node)));
            let Some(end) = plan.end else { continue };
            prop_assert!(end.0 >= first);
        }
        prop_assert_eq!(left.next(), None);
    }

    #[test]
    fn a_batch_is_kept_on_two_racks(nodes in nodes(), down in prop::collection::vec(2..12_u16, 0..6), seed: u64, choice in 0..4_usize, is_scored: bool) {
        let ring = with_down(&Ring::new(nodes, []).unwrap(), &down);
        let choice = [BatchLogChoice::RandomRemote, BatchLogChoice::PreferLocal, BatchLogChoice::DynamicRemote, BatchLogChoice::Dynamic][choice];
        let mut state = seed;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let scores = Scores::default();
        let proximity = Proximity { by_place: true, scores: is_scored.then_some(&scores) };
        let plan = BatchLogPlan::new(&ring, true, choice, proximity, &mut random).unwrap();
        let near: Vec<_> = ring.indexes().filter(|node| ring.is_near(*node)).collect();
        let up = near.iter().filter(|node| ring.is_up(**node) && **node != ring.local());
        let up: Vec<_> = up.map(|node| ring.node(*node)).collect();
        let kept: Vec<_> = plan.nodes().iter().map(|node| ring.node(*node)).collect();
        prop_assert!(kept.len() < 2 || kept[0].address != kept[1].address);
        prop_assert!(plan.nodes().iter().all(|node| near.contains(node)));
        if near.len() <= 2 {
            prop_assert_eq!(kept.len(), near.len());
        } else if up.is_empty() {
            prop_assert_eq!(plan.nodes(), &[ring.local()]);
        } else {
            prop_assert_eq!(kept.len(), up.len().min(2));
            prop_assert!(kept.iter().all(|node| node.is_up && !node.is_local));
            let racks: BTreeSet<_> = up.iter().map(|node| &node.rack).collect();
            let own = &ring.node(ring.local()).rack;
            let elsewhere = up.iter().filter(|node| node.rack != *own).count();
            let avoids_own = matches!(choice, BatchLogChoice::RandomRemote | BatchLogChoice::DynamicRemote) && up.len() > 2 && elsewhere >= 2;
            let left = racks.len() - usize::from(avoids_own && racks.contains(own));
            if up.len() >= 2 && left >= 2 && up.len() > 2 {
                prop_assert_ne!(&kept[0].rack, &kept[1].rack);
            }
            prop_assert!(!avoids_own || kept.iter().all(|node| node.rack != *own));
            let likes_own = choice == BatchLogChoice::PreferLocal
                || (choice == BatchLogChoice::Dynamic && !is_scored);
            let prefers = likes_own && up.len() > 2 && racks.contains(own);
            prop_assert!(!prefers || kept.iter().any(|node| node.rack == *own));
        }
    }
}

/// Do all quorums of writes in one view of the ring meet all quorums of reads in another?
fn meets(writes: (&Placement, Replicas<'_>), reads: (&Placement, Replicas<'_>)) -> bool {
    let ((writer, to), (reader, from)) = (writes, reads);
    let reached: Vec<_> = to.natural.iter().chain(to.pending).collect();
    let acks = writer.block_for_write(Consistency::Quorum, to.pending) as usize;
    let asked = reader.block_for(Consistency::Quorum) as usize;
    // at worst those acknowledge that are not read from
    let elsewhere = reached.iter().filter(|node| !from.natural.contains(node)).count();
    acks.saturating_sub(elsewhere) + asked > from.natural.len()
}

proptest! {
    #[test]
    fn quorums_before_and_after_a_node_joined_meet(
        (mut nodes, replicas, token) in (at_least(5), 1..5_u32, any::<i64>()),
        tokens in prop::collection::vec(any::<i64>(), 1..4),
    ) {
        let strategy = simple(replicas);
        let number = nodes.len() as u16 + 1;
        let taken: BTreeSet<_> = nodes.iter().flat_map(|node| node.tokens.clone()).collect();
        prop_assume!(!tokens.iter().any(|token| taken.contains(&Token(*token))));
        nodes.push(Node { state: State::Joining, ..node(number, "dc0", "r0", &tokens) });
        let before = Ring::new(nodes.clone(), [&strategy]).unwrap();
        nodes.last_mut().unwrap().state = State::Normal;
        let bare = before.with_nodes(nodes.clone()).unwrap();
        let after = bare.with_former([&before]);
        let views = [&before, &after].map(|ring| {
            let placement = ring.placement(&strategy).unwrap();
            (&**placement, placement.at(Token(token)))
        });
        for (write, read) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            prop_assert!(meets(views[write], views[read]), "{write} {read}: {views:?}");
        }
        // and so do majorities of conditions
        let majority = |ring: &Ring, view: usize| {
            let plan = PaxosPlan::new(ring, views[view].1, Consistency::Serial).unwrap();
            let all: BTreeSet<_> = plan.participants().iter().copied().collect();
            (all, plan.required() as usize)
        };
        let ((old, of_old), (new, of_new)) = (majority(&before, 0), majority(&after, 1));
        prop_assert!(of_old + of_new > old.union(&new).count());
        // who had it until just now is none that is about to have it
        let placement = after.placement(&strategy).unwrap();
        prop_assert!(!placement.has_pending());
        // nothing is left of it once all have heard
        let heard = after.with_former([]);
        prop_assert_eq!(
            heard.placement(&strategy).unwrap().at(Token(token)),
            bare.placement(&strategy).unwrap().at(Token(token))
        );
        // and nobody is written to who is down
        let gone = views[0].1.natural.iter().find(|node| !views[1].1.natural.contains(node));
        if let Some(gone) = gone {
            nodes[gone.at()].is_up = before.node(*gone).is_local;
            let down = before.with_nodes(nodes).unwrap().with_former([&before]);
            let former = down.placement(&strategy).unwrap().at(Token(token)).former;
            prop_assert_eq!(former.is_empty(), !before.node(*gone).is_local);
        }
    }
}

proptest! {
    #[test]
    fn quorums_before_and_after_a_node_left_meet(
        (mut nodes, replicas, token) in (at_least(5), 1..4_u32, any::<i64>()),
        at in any::<prop::sample::Index>(),
    ) {
        let strategy = simple(replicas);
        let leaves = at.index(nodes.len());
        nodes[leaves].state = State::Leaving;
        let before = Ring::new(nodes.clone(), [&strategy]).unwrap();
        let address = nodes[leaves].address;
        nodes[leaves].state = State::Left;
        nodes[leaves].tokens.clear();
        let after = before.with_nodes(nodes).unwrap().with_former([&before]);
        let views = [&before, &after].map(|ring| {
            let placement = ring.placement(&strategy).unwrap();
            (&**placement, placement.at(Token(token)))
        });
        for (write, read) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            prop_assert!(meets(views[write], views[read]), "{write} {read}: {views:?}");
        }
        // it owns nothing, and nobody who has heard reads from it
        let gone = after.find(address).unwrap();
        prop_assert!(!after.members().contains(&gone));
        prop_assert!(!views[1].1.natural.contains(&gone));
    }
}

proptest! {
    #[test]
    fn files_of_snitches_are_read_or_refused(text in "([a-z0-9.:=/#\\\\ \\[\\]]|\n|default|dc|rack){0,60}") {
        if let Ok(topology) = Topology::parse(&text, 7000) {
            let _ = topology.place(address(1));
        }
        let has = |key: &str| text.contains(key);
        prop_assert!(RackDc::parse(&text).is_err() || (has("dc") && has("rack")));
    }
}

#[test]
fn a_large_ring_is_made_at_once() {
    // 100 nodes with 256 tokens each, in two data centres with three racks
    let mut state = 1_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.cast_signed()
    };
    let mut nodes: Vec<Node> = (1..=100_u16)
        .map(|number| {
            let tokens: Vec<i64> = (0..256).map(|_| random()).collect();
            node(number, &format!("dc{}", number % 2), &format!("r{}", number % 3), &tokens)
        })
        .collect();
    nodes[7].state = State::Leaving;
    let mut joining = node(101, "dc0", "r1", &(0..256).map(|_| random()).collect::<Vec<_>>());
    joining.state = State::Joining;
    nodes.push(joining);
    let strategies = [simple(3), topology(&[("dc0", 3), ("dc1", 3)])];
    let ring = Ring::new(nodes, &strategies).unwrap();
    let placement = ring.placement(&strategies[1]).unwrap();
    assert_eq!(placement.ranges().count(), 25_600);
    assert!(placement.ranges().all(|row| row.replicas.len() == 6));
    let joining = index(&ring, 101);
    // its part of what its half of the nodes holds three times, and the rack is as full as others
    let pending = placement.pending_ranges_of(joining).count();
    assert!((256..4_000).contains(&pending), "{pending}");
    assert!(placement.has_pending());
    // who is up changes nothing of it
    let down = with_down(&ring, &[5]);
    assert!(std::ptr::eq(&**placement, &**down.placement(&strategies[1]).unwrap()));
    assert!(!down.is_up(down.find(address(5)).unwrap()));
}
