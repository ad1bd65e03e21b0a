//! Plans whose exact shape counts, on rings made by hand.

use crate::common;

use std::collections::BTreeSet;

use common::{address, index, node, number, numbers, simple, topology, with_down};
use protocol::{Consistency, ErrorDetail, ErrorResponse};
use ring::*;
use schema::{Replication, SpeculativeRetry, Strategy};
use types::Token;

const NEAR: Proximity<'static> = Proximity { by_place: true, scores: None };

/// Six nodes, three in each of two data centres, each in its rack, token by token in turn.
fn six() -> Vec<Node> {
    let place = |number: u16| (if number % 2 == 1 { "east" } else { "west" }, number.div_ceil(2));
    let nodes = (1..=6).map(|number| {
        let (center, rack) = place(number);
        node(number, center, &format!("r{rack}"), &[i64::from(number) * 100])
    });
    nodes.collect()
}

fn both() -> Strategy {
    topology(&[("east", 3), ("west", 3)])
}

fn read(ring: &Ring, strategy: &Strategy, level: Consistency, retry: SpeculativeRetry) -> ReadPlan {
    let placement = ring.placement(strategy).unwrap();
    ReadPlan::new(ring, placement, placement.at(Token(0)), level, retry, NEAR).unwrap()
}

#[test]
fn local_is_the_node_itself_without_a_ring() {
    let local = Replication::local().strategy;
    let mut joining = node(1, "east", "r1", &[5]);
    joining.state = State::Joining;
    for nodes in [vec![joining], six()] {
        let ring = Ring::new(nodes, [&local]).unwrap();
        let placement = ring.placement(&local).unwrap();
        for token in [Token::MIN, Token(0), Token::MAX] {
            assert_eq!(numbers(&ring, placement.at(token).natural), [1]);
            assert!(placement.at(token).pending.is_empty());
        }
        assert_eq!(placement.ranges_of(ring.local()).collect::<Vec<_>>(), [TokenRange::ALL]);
        let all = Consistency::All;
        assert_eq!((placement.block_for(all), placement.block_for(Consistency::Quorum)), (1, 1));
    }
}

#[test]
fn a_ring_without_owners_has_no_replicas() {
    let mut alone = node(1, "east", "r1", &[5]);
    alone.state = State::Joining;
    let strategy = both();
    let ring = Ring::new(vec![alone], [&strategy]).unwrap();
    let placement = ring.placement(&strategy).unwrap();
    assert!(placement.at(Token(0)).natural.is_empty());
    // whoever comes first is written to
    assert_eq!(numbers(&ring, placement.at(Token(0)).pending), [1]);
    assert!(Ring::new(vec![node(1, "east", "r1", &[])], [&strategy]).is_ok());
}

#[test]
fn what_makes_no_ring() {
    let twice = vec![node(1, "a", "r", &[1]), node(2, "a", "r", &[2]), node(2, "a", "r", &[3])];
    assert_eq!(Ring::new(twice, []).unwrap_err(), RingError::Twice(address(2)));
    assert_eq!(Ring::new(vec![node(2, "a", "r", &[2])], []).unwrap_err(), RingError::Local(0));
    let ring = Ring::new(six(), [&simple(1), &simple(1)]).unwrap();
    assert!(ring.placement(&simple(2)).is_none());
    let custom = Replication::new("x.Y", Default::default()).strategy;
    assert!(ring.with_strategies([&custom]).placement(&custom).is_none());
}

#[test]
fn what_is_about_replicas_makes_new_tables_and_nothing_else_does() {
    let strategy = both();
    let ring = Ring::new(six(), [&strategy]).unwrap();
    let table = |ring: &Ring| std::ptr::from_ref(&**ring.placement(&strategy).unwrap());
    let changed = |change: fn(&mut Node)| {
        let mut nodes = ring.nodes().to_vec();
        change(&mut nodes[3]);
        table(&ring.with_nodes(nodes).unwrap()) != table(&ring)
    };
    assert!(changed(|node| node.rack = "r9".into()));
    assert!(changed(|node| node.data_center = "east".into()));
    assert!(changed(|node| node.tokens.push(Token(7))));
    assert!(changed(|node| node.state = State::Leaving));
    assert!(changed(|node| node.address = address(9)));
    assert!(!changed(|node| node.is_up = false));
    assert!(!changed(|node| node.accepts_clients = false));
    assert!(!changed(|node| node.host_id = types::Uuid(99)));
    let more = ring.with_strategies([&simple(1), &strategy]);
    assert_eq!(table(&more), table(&ring));
    assert!(more.with_strategies([&simple(1)]).placement(&strategy).is_none());
}

#[test]
fn of_two_that_claim_a_token_the_later_one_has_it() {
    let claims = |first: u16, second: u16| {
        let nodes = [first, second].map(|number| node(number, "a", "r", &[7]));
        let ring = Ring::new(nodes.to_vec(), []).unwrap();
        number(&ring, ring.tokens()[0].1)
    };
    assert_eq!((claims(1, 2), claims(2, 1)), (2, 1));
    // who joins may not, unless it takes the place of the owner with all that it has
    let mut nodes =
        vec![node(1, "a", "r", &[1]), node(2, "a", "r", &[7, 9]), node(3, "a", "r", &[7])];
    let pending = |nodes: &[Node]| {
        let ring = Ring::new(nodes.to_vec(), [&simple(1)]).unwrap();
        let at = ring.placement(&simple(1)).unwrap().at(Token(7));
        (numbers(&ring, at.natural), numbers(&ring, at.pending))
    };
    nodes[2].state = State::Joining;
    assert_eq!(pending(&nodes), (vec![2], vec![]));
    nodes[2].state = State::Replacing(address(2));
    assert_eq!(pending(&nodes), (vec![2], vec![]));
    nodes[2].tokens = vec![Token(9), Token(7)];
    assert_eq!(pending(&nodes), (vec![2], vec![3]));
    let ring = Ring::new(nodes, []).unwrap();
    let shown = ring.tokens_with_joining();
    assert_eq!(shown.iter().map(|(_, n)| number(&ring, *n)).collect::<Vec<_>>(), [1, 3, 3]);
}

#[test]
fn a_quorum_in_each_data_center() {
    let strategy = both();
    let ring = Ring::new(six(), [&strategy]).unwrap();
    let placement = ring.placement(&strategy).unwrap();
    let replicas = placement.at(Token(0));
    let plan = WritePlan::new(&ring, placement, replicas, Consistency::EachQuorum).unwrap();
    assert_eq!(plan.required(), 4);
    let mut acks = plan.acks::<()>(&ring);
    // three in the east are one too many to count for the west
    for number in [1, 3, 5, 2] {
        assert_eq!(acks.answered(index(&ring, number)), Verdict::Pending, "{number}");
    }
    assert_eq!((acks.received(), acks.received_too_few()), (4, 3));
    // one that answers twice counts once
    assert_eq!(acks.answered(index(&ring, 2)), Verdict::Pending);
    assert_eq!(acks.answered(index(&ring, 4)), Verdict::Enough);
    // as in Cassandra: two of one data centre fail in vain, the third over all is one too many
    let mut acks = plan.acks::<u8>(&ring);
    assert_eq!(acks.failed(index(&ring, 2), 2), Verdict::Pending);
    assert_eq!(acks.failed(index(&ring, 4), 2), Verdict::Pending);
    assert_eq!(acks.failed(index(&ring, 1), 3), Verdict::CannotBeReached);
    assert_eq!(acks.reasons_that_count().copied().collect::<Vec<_>>(), [2, 2, 3]);

    let down = with_down(&ring, &[2, 4]);
    let lack = WritePlan::new(&down, placement, replicas, Consistency::EachQuorum).unwrap_err();
    let answer = ErrorResponse::from(lack);
    assert_eq!(answer.message, "Cannot achieve consistency level EACH_QUORUM in DC west");
    let consistency = Consistency::EachQuorum;
    assert_eq!(answer.detail, ErrorDetail::Unavailable { consistency, required: 2, alive: 0 });
}

#[test]
fn what_is_far_does_not_count_for_what_is_local() {
    let strategy = both();
    let ring = Ring::new(six(), [&strategy]).unwrap();
    let placement = ring.placement(&strategy).unwrap();
    let replicas = placement.at(Token(0));
    let plan = WritePlan::new(&ring, placement, replicas, Consistency::LocalQuorum).unwrap();
    let mut acks = plan.acks::<u8>(&ring);
    for number in [2, 4] {
        assert_eq!(acks.answered(index(&ring, number)), Verdict::Pending);
    }
    assert_eq!(acks.failed(index(&ring, 6), 9), Verdict::Pending);
    assert_eq!(acks.answered(index(&ring, 1)), Verdict::Pending);
    assert_eq!(acks.failed(index(&ring, 3), 1), Verdict::Pending);
    assert_eq!(acks.clone().answered(index(&ring, 5)), Verdict::Enough);
    assert_eq!(acks.failed(index(&ring, 5), 1), Verdict::CannotBeReached);
    assert_eq!((acks.received(), acks.failures().len()), (1, 3));
    assert_eq!(acks.reasons_that_count().copied().collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn who_is_about_to_be_a_replica_is_waited_for() {
    let strategy = both();
    let mut nodes = six();
    let mut joining = node(7, "east", "r1", &[50]);
    joining.state = State::Joining;
    nodes.push(joining);
    let ring = Ring::new(nodes, [&strategy]).unwrap();
    let placement = ring.placement(&strategy).unwrap();
    let replicas = placement.at(Token(0));
    assert_eq!(numbers(&ring, replicas.pending), [7]);
    let required = |level| WritePlan::new(&ring, placement, replicas, level).unwrap().required();
    let levels = [
        (Consistency::Any, 1),
        (Consistency::One, 2),
        (Consistency::Quorum, 5),
        (Consistency::LocalQuorum, 3),
        (Consistency::EachQuorum, 5),
        (Consistency::All, 7),
    ];
    assert!(levels.iter().all(|(level, count)| required(*level) == *count));
    // of its data centre, so many more have to answer
    let plan = WritePlan::new(&ring, placement, replicas, Consistency::EachQuorum).unwrap();
    let mut acks = plan.acks::<()>(&ring);
    for number in [1, 2, 3, 4, 6] {
        assert_eq!(acks.answered(index(&ring, number)), Verdict::Pending, "{number}");
    }
    assert_eq!(acks.answered(index(&ring, 7)), Verdict::Enough);
    // reads neither wait for it nor ask it
    let plan = read(&ring, &strategy, Consistency::All, SpeculativeRetry::DEFAULT);
    assert_eq!(plan.required(), 6);
    assert!(!plan.candidates().contains(&index(&ring, 7)));
    // the figures that Cassandra gives where only it is down
    let down = with_down(&ring, &[3, 5, 7]);
    let lack = WritePlan::new(&down, placement, replicas, Consistency::LocalOne).unwrap_err();
    assert_eq!(
        (lack.message.as_str(), lack.required, lack.alive),
        ("Insufficient full replicas", 1, 1)
    );
}

#[test]
fn whom_a_read_asks() {
    let strategy = both();
    let ring = Ring::new(six(), [&strategy]).unwrap();
    let later = SpeculativeRetry::DEFAULT;
    let mut plan = read(&ring, &strategy, Consistency::Quorum, later);
    // itself, its data centre; there is no node of rack r1 elsewhere but 2
    assert_eq!(numbers(&ring, plan.candidates()), [1, 3, 5, 2, 4, 6]);
    assert_eq!(numbers(&ring, plan.data()), [1]);
    assert_eq!(numbers(&ring, plan.digests()), [3, 5, 2]);
    assert_eq!(plan.speculation, Speculation::Later);
    assert_eq!(plan.speculate().map(|node| number(&ring, node)), Some(4));
    let always = read(&ring, &strategy, Consistency::One, SpeculativeRetry::Always);
    assert_eq!((numbers(&ring, always.data()), always.digests().len()), (vec![1, 3], 0));
    assert_eq!(always.speculation, Speculation::Done);
    let each = read(&ring, &strategy, Consistency::EachQuorum, later);
    assert_eq!(numbers(&ring, each.contacts()), [1, 3, 2, 4]);
    assert_eq!(each.speculation, Speculation::Never { is_missed: false });
    let mut near = read(&with_down(&ring, &[3]), &strategy, Consistency::LocalQuorum, later);
    assert_eq!(near.speculation, Speculation::Never { is_missed: true });
    assert_eq!(near.speculate(), None);
    let all = read(&ring, &strategy, Consistency::All, later);
    assert_eq!(all.speculation, Speculation::Never { is_missed: false });
    let own = read(&ring, &strategy, Consistency::NodeLocal, later);
    assert_eq!(numbers(&ring, own.contacts()), [1]);
}

#[test]
fn what_was_missing_is_written_to_as_few_as_need_be() {
    let strategy = both();
    let ring = with_down(&Ring::new(six(), [&strategy]).unwrap(), &[6]);
    let placement = ring.placement(&strategy).unwrap();
    let to = |level, read: &[u16]| {
        let plan = WritePlan::new(&ring, placement, placement.at(Token(0)), level).unwrap();
        let read: Vec<_> = read.iter().map(|number| index(&ring, *number)).collect();
        numbers(&ring, &plan.repair_contacts(&ring, &read))
    };
    assert_eq!(to(Consistency::Quorum, &[3, 5, 2]), [2, 3, 5, 1]);
    assert_eq!(to(Consistency::LocalQuorum, &[5]), [5, 1]);
    assert_eq!(to(Consistency::EachQuorum, &[1, 3, 5]), [1, 3, 5, 2, 4]);
    assert_eq!(to(Consistency::One, &[1, 6]), [1]);
}

#[test]
fn what_goes_far_goes_once_to_each_data_center() {
    let strategy = both();
    let mut nodes = six();
    nodes.push(node(7, "north", "r1", &[700]));
    let strategy_of_three = topology(&[("east", 3), ("west", 3), ("north", 1)]);
    let ring = Ring::new(nodes, [&strategy, &strategy_of_three]).unwrap();
    let routes = |ring: &Ring, strategy: &Strategy, pick: usize| {
        let placement = ring.placement(strategy).unwrap();
        let at = placement.at(Token(0));
        let plan = WritePlan::new(ring, placement, at, Consistency::One).unwrap();
        let mut random = |below: usize| pick % below;
        let routes = plan.routes(ring, &mut random);
        let routes = routes.iter().map(|r| (number(ring, r.to), numbers(ring, &r.forward)));
        routes.collect::<Vec<_>>()
    };
    let near = [1, 3, 5].map(|number| (number, vec![])).to_vec();
    let with = |far: &[(u16, Vec<u16>)]| [&near[..], far].concat();
    assert_eq!(routes(&ring, &strategy, 0), with(&[(2, vec![4, 6])]));
    assert_eq!(routes(&ring, &strategy, 1), with(&[(4, vec![2, 6])]));
    let far = [(2, vec![4, 6]), (7, vec![])];
    assert_eq!(routes(&ring, &strategy_of_three, 0), with(&far));
    // who is down is sent nothing
    let down = with_down(&ring, &[2, 6, 3]);
    assert_eq!(routes(&down, &strategy, 0), [(1, vec![]), (5, vec![]), (4, vec![])]);
}

#[test]
fn neighbouring_ranges_are_one_scan_where_that_is_no_slower() {
    let strategy = simple(2);
    let nodes: Vec<Node> = (1..=4).map(|n| node(n, "east", "r1", &[i64::from(n) * 100])).collect();
    let ring = Ring::new(nodes, [&strategy]).unwrap();
    let placement = ring.placement(&strategy).unwrap();
    let ends: Vec<_> = ring.cuts(Token::MIN, None).map(Some).chain([None]).collect();
    assert_eq!(ends.len(), 5);
    let scans = |ring: &Ring, level, proximity| {
        let plans = RangePlans::new(ring, placement, level, proximity, ends.iter().copied());
        let plans =
            plans.map(|plan| plan.map(|plan| (plan.ranges, numbers(ring, plan.contacts()))));
        plans.collect::<Result<Vec<_>, _>>()
    };
    // ranges 1-2, 2-3, 3-4, 4-1, and the one over the end, which has the replicas of the first one
    let one = scans(&ring, Consistency::One, NEAR).unwrap();
    assert_eq!(one, [(2, vec![2]), (2, vec![4]), (1, vec![1])]);
    let quorum = scans(&ring, Consistency::Quorum, NEAR).unwrap();
    assert_eq!(quorum.len(), 5);
    let lack = scans(&with_down(&ring, &[3]), Consistency::Quorum, NEAR).unwrap_err();
    assert_eq!((lack.required, lack.alive), (2, 1));

    // one scan that goes far is no better than two that do not
    let mut nodes: Vec<Node> = ring.nodes().to_vec();
    nodes[1].data_center = "west".into();
    let ring = Ring::new(nodes, [&strategy]).unwrap();
    assert_eq!(scans(&ring, Consistency::One, NEAR).unwrap()[0], (1, vec![1]));
    // a piece within: cut before its end, not at it
    let cuts = |from, to| ring.cuts(Token(from), Some(Token(to))).map(|t| t.0).collect::<Vec<_>>();
    assert_eq!((cuts(100, 300), cuts(101, 301)), (vec![100, 200], vec![200, 300]));
    assert!(cuts(400, 400).is_empty() && cuts(500, 100).is_empty());
}

#[test]
fn who_counts() {
    let strategy = both();
    let ring = Ring::new(six(), [&strategy]).unwrap();
    let placement = ring.placement(&strategy).unwrap();
    let leader = |ring: &Ring, level, pick: usize| {
        let replicas = placement.at(Token(0));
        let mut random = |below: usize| pick % below;
        let leader = counter_leader(ring, placement, replicas, level, NEAR, &mut random);
        leader.map(|node| number(ring, node))
    };
    let any: BTreeSet<_> = (0..3).map(|n| leader(&ring, Consistency::One, n).unwrap()).collect();
    assert_eq!(any, [1, 3, 5].into());
    let far = topology(&[("west", 3)]);
    let ring = Ring::new(six(), [&far]).unwrap();
    let placement = ring.placement(&far).unwrap();
    let leader = |ring: &Ring, level| {
        let replicas = placement.at(Token(0));
        let leader = counter_leader(ring, placement, replicas, level, NEAR, &mut |_| 0);
        leader.map(|node| number(ring, node))
    };
    // the one of a rack of this one's name is the nearest
    assert_eq!(leader(&ring, Consistency::One), Ok(2));
    let lack = leader(&ring, Consistency::LocalQuorum).unwrap_err();
    assert_eq!((lack.required, lack.alive), (1, 0));
    let mut nodes = with_down(&ring, &[2]).nodes().to_vec();
    nodes[3].accepts_clients = false;
    assert_eq!(leader(&ring.with_nodes(nodes).unwrap(), Consistency::Quorum), Ok(6));
    let lack = leader(&with_down(&ring, &[2, 4, 6]), Consistency::Quorum).unwrap_err();
    assert_eq!((lack.required, lack.alive), (2, 0));
}

#[test]
fn who_agrees_on_a_condition() {
    let strategy = both();
    let mut nodes = six();
    let ring = Ring::new(nodes.clone(), [&strategy]).unwrap();
    let plan = |ring: &Ring, level| {
        let placement = ring.placement(&strategy).unwrap();
        PaxosPlan::new(ring, placement.at(Token(0)), level)
    };
    let serial = plan(&ring, Consistency::Serial).unwrap();
    assert_eq!((serial.participants().len(), serial.required()), (6, 4));
    let local = plan(&ring, Consistency::LocalSerial).unwrap();
    assert_eq!((numbers(&ring, local.participants()), local.required()), (vec![1, 3, 5], 2));
    let down = with_down(&ring, &[3, 5]);
    assert_eq!(plan(&down, Consistency::Serial).unwrap().contacts().len(), 4);
    let lack = plan(&down, Consistency::LocalSerial).unwrap_err();
    assert_eq!((lack.required, lack.alive), (2, 1));
    assert_eq!(lack.message, "Cannot achieve consistency level LOCAL_SERIAL");
    // one that joins takes part; with two of them no majority is sure to meet every other
    for (number, token) in [(7, 50), (9, 60)] {
        let mut joining = node(number, "east", "r1", &[token]);
        joining.state = State::Joining;
        nodes.push(joining);
    }
    let one = Ring::new(nodes[..7].to_vec(), [&strategy]).unwrap();
    assert_eq!(plan(&one, Consistency::LocalSerial).unwrap().required(), 3);
    assert_eq!(plan(&one, Consistency::Serial).unwrap().required(), 4);
    let lack = plan(&Ring::new(nodes, [&strategy]).unwrap(), Consistency::Serial).unwrap_err();
    assert_eq!((lack.required, lack.alive), (9, 8));
    let text = "Cannot perform LWT operation as there is more than one (8) pending range movement";
    assert_eq!(lack.message, text);
}

#[test]
fn who_keeps_a_batch() {
    let keeps = |ring: &Ring, is_any| {
        let choice = BatchLogChoice::RandomRemote;
        BatchLogPlan::new(ring, is_any, choice, NEAR, &mut |_| 0)
            .map(|plan| (numbers(ring, plan.nodes()), plan.level()))
    };
    let ring = Ring::new(six(), []).unwrap();
    assert_eq!(keeps(&ring, false), Ok((vec![3, 5], Consistency::Two)));
    assert_eq!(keeps(&with_down(&ring, &[3]), false), Ok((vec![5], Consistency::One)));
    let down = with_down(&ring, &[3, 5]);
    assert_eq!(keeps(&down, true), Ok((vec![1], Consistency::One)));
    let lack = keeps(&down, false).unwrap_err();
    let text =
        "Cannot achieve consistency level TWO for batchlog in local DC, required:2, available:0";
    assert_eq!((lack.message.as_str(), lack.required, lack.alive), (text, 2, 0));
    // where there are but two they are it, whoever is down
    let two = with_down(&Ring::new(six()[..3].to_vec(), []).unwrap(), &[3]);
    assert_eq!(keeps(&two, false), Ok((vec![1, 3], Consistency::Two)));
}

#[test]
fn what_does_not_suit() {
    let says = |nodes: Vec<Node>, strategy: &Strategy| {
        fitness(&Ring::new(nodes, []).unwrap(), "ks", strategy)
    };
    assert!(says(six(), &both()).is_empty());
    assert!(says(six()[..1].to_vec(), &simple(1)).is_empty());
    let has = |findings: &[String], words: &[&str]| {
        assert_eq!(findings.len(), words.len(), "{findings:?}");
        let all = findings.iter().zip(words).all(|(finding, words)| finding.contains(words));
        assert!(all, "{findings:?}");
    };
    let text = "Your replication factor 4 for keyspace ks is higher than the number of nodes 3 for datacenter west";
    let racks = "4 replicas in datacenter west, which has 3 racks";
    has(&says(six(), &topology(&[("east", 1), ("west", 4)])), &[text, racks]);
    let none = "replication factor 2 in datacenter north, which has no nodes";
    let far = "no replica in datacenter west";
    has(&says(six(), &topology(&[("east", 3), ("north", 2)])), &[none, far]);
    let mut nodes = six();
    nodes[2].rack = "r1".into();
    let two = "3 replicas in datacenter east, which has 2 racks";
    let uneven = "Racks of datacenter east differ in size, r3 has 1 and r1 has 2 nodes";
    has(&says(nodes, &both()), &[two, uneven]);
    let mut one_rack = six();
    one_rack.iter_mut().for_each(|node| node.rack = "r1".into());
    assert!(says(one_rack, &both()).is_empty());
    let few = "replication factor 7 for keyspace ks is higher than the number of nodes 6";
    has(&says(six(), &simple(7)), &[few, "SimpleStrategy, which ignores datacenters"]);
}
