//! Nodes that become a part of a ring that has data: what was acknowledged stays there, whoever
//! dies meanwhile, and what must not happen at the same time does not.

use std::cell::Cell;
use std::time::Duration;

use cluster::Standing;
use env::Rng;
use env::sim::Fault;
use protocol::Consistency;

use crate::ring::{NODES, ip};
use crate::story::{KEYS, Story};

/// Worlds in which all goes well.
const WORLDS: u64 = 6;
/// Worlds in which a node dies.
const WORLDS_OF_DEATH: u64 = 12;
/// Worlds that are tried for a planted bug.
const WORLDS_OF_BUG: u64 = 40;
/// The node that joins.
const NEW: u8 = NODES + 1;
/// A join takes two times `ring_delay` and less than two seconds here.
const JOIN_MICROS: u64 = 6_000_000;

/// A node joins while nothing goes wrong: what does not hold of that.
fn join(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    (1..=NODES).for_each(|n| story.write_at(n));
    (1..=NODES).for_each(|n| story.read_at(n));
    story.launch(NEW, &[]);
    if matches!(bug, None | Some("join_is_unseen" | "news_are_slow")) {
        let is_held_for_down = Cell::new(false);
        story.until("it is seen joining", || {
            let joining = |n| {
                let ring = story.members.shard(n).peers().ring().unwrap();
                let is_joining = |node: &&ring::Node| node.state == ring::State::Joining;
                ring.nodes().iter().find(is_joining).map(|node| node.is_up)
            };
            let seen: Vec<_> = (1..=NODES).map(joining).collect();
            is_held_for_down.set(is_held_for_down.get() || seen.contains(&Some(false)));
            seen.iter().all(Option::is_some)
        })?;
        if is_held_for_down.get() {
            return Err("a coordinator hears of it before it knows that it is up".to_owned());
        }
        assert_eq!(story.letters(1, NEW), "UJ", "seed {seed}");
    }
    story.until("it joined", || story.standing(NEW) == Some(Standing::Member))?;
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all)?;
    story.went_well()
}

#[test]
fn a_node_joins_with_the_data_of_its_ranges() {
    for seed in 1..=WORLDS {
        assert_eq!(join(seed, None), Ok(()), "seed {seed}");
    }
}

/// While some have heard that a node joins, or has joined, and others have not.
#[test]
fn a_node_joins_while_news_are_slow() {
    for seed in 1..=WORLDS {
        assert_eq!(join(seed, Some("news_are_slow")), Ok(()), "seed {seed}");
    }
}

/// One of three replicas missed writes and gets no hints. Whoever takes a range over from one of
/// the other two must have them: else it and the late one are a quorum without them.
fn join_with_a_gap(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    let (late, all) = (NODES, usize::from(NODES));
    (1..=NODES).for_each(|n| _ = story.members.out(n, "disablehandoff"));
    let others = (1..late).map(|n| story.members.id(n)).collect();
    let cut = Fault::Partition { a: vec![story.members.id(late)], b: others };
    story.members.world.set_fault(cut);
    story.until("it is down", || story.members.seen(1) == (all, all - 1))?;
    for k in 0..KEYS {
        let text = format!("INSERT INTO r3.t (k, v) VALUES ({k}, 7)");
        story.members.at(1, Consistency::Quorum, &text)?;
    }
    story.members.world.set_fault(Fault::Heal);
    let is_whole = |n: u8| story.members.seen(n) == (all, all);
    story.until("all are up", || (1..=NODES).all(is_whole))?;
    story.launch(NEW, &[]);
    story.until("it joined", || story.standing(NEW) == Some(Standing::Member))?;
    story.agree(&(1..=NEW).collect::<Vec<_>>())?;
    let reads = [late, NEW].into_iter().flat_map(|n| (0..KEYS).map(move |k| (n, k)));
    let stale = reads.filter_map(|(n, k)| story.stale(n, Consistency::Quorum, (3, k), 7));
    let lost = stale.count();
    if lost == 0 { Ok(()) } else { Err(format!("{lost} writes were lost")) }
}

#[test]
fn who_joins_has_what_a_late_replica_lacks() {
    for seed in 1..=WORLDS {
        assert_eq!(join_with_a_gap(seed, None), Ok(()), "seed {seed}");
    }
}

/// The node that joins, or one that it fetches from, dies: what does not hold of that.
fn die(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    let rng = Rng::new(seed);
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    // who writes lives: node 1 is the seed
    story.write_at(1);
    story.launch(NEW, &[]);
    let members = &story.members;
    members.world.run_for(Duration::from_micros(rng.below(JOIN_MICROS))).unwrap();
    let victim = 2 + rng.below(u64::from(NODES)) as u8;
    let id = members.id(victim);
    match rng.below(3) {
        0 => members.world.power_cut(id),
        1 => members.world.kill(id),
        _ => {
            let others = (1..=NEW).filter(|n| *n != victim).map(|n| members.id(n)).collect();
            members.world.set_fault(Fault::Partition { a: vec![id], b: others });
            members.world.run_for(Duration::from_secs(30)).unwrap();
            members.world.set_fault(Fault::Heal);
        }
    }
    members.world.run_for(Duration::from_micros(rng.below(JOIN_MICROS))).unwrap();
    for n in [victim, NEW] {
        let (id, serving) = &members.nodes[usize::from(n) - 1];
        if !members.world.is_up(*id) {
            serving.borrow_mut().take();
            members.world.restart(*id);
        }
    }
    // until it is in, it is told to go on, and begun again where it gave up
    let rounds = 20;
    for round in 0.. {
        let (id, serving) = &members.nodes[usize::from(NEW) - 1];
        let stands = || matches!(story.standing(NEW), Some(Standing::Member | Standing::Broken));
        let ended = || !members.world.is_up(*id) || stands();
        story.until("it comes to an end", ended)?;
        if members.world.is_up(*id) && story.standing(NEW) == Some(Standing::Member) {
            break;
        }
        if round == rounds {
            return Err(format!("it does not join: {}", story.said()));
        }
        // whoever died is coming back
        members.world.run_for(Duration::from_secs(2)).unwrap();
        if members.world.is_up(*id) {
            members.verb(NEW, "bootstrap resume -f");
        } else {
            serving.borrow_mut().take();
            members.world.restart(*id);
        }
    }
    story.until("who died is back", || {
        members.nodes.iter().all(|(_, serving)| serving.borrow().is_some())
    })?;
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all)
}

#[test]
fn a_join_in_which_a_node_dies_ends_well() {
    for seed in 1..=WORLDS_OF_DEATH {
        assert_eq!(die(seed, None), Ok(()), "seed {seed}");
    }
}

#[test]
fn planted_bugs_of_joins_are_found() {
    for bug in
        ["join_fetches_unannounced", "join_serves_empty", "join_forgets_former", "join_is_unseen"]
    {
        let found = (1..=WORLDS_OF_BUG).any(|seed| join(seed, Some(bug)).is_err());
        assert!(found, "{bug}");
    }
    type Tale = fn(u64, Option<&'static str>) -> Result<(), String>;
    let tales: [(&'static str, Tale); 2] =
        [("join_fetches_from_anybody", join_with_a_gap), ("join_counts_what_failed", die)];
    for (bug, tale) in tales {
        let found = (1..=WORLDS_OF_BUG).any(|seed| tale(seed, Some(bug)).is_err());
        assert!(found, "{bug}");
    }
}

/// The last node dies, and another takes its place: what does not hold of that.
fn replace(seed: u64, is_same_address: bool) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    let old = NODES;
    story.write_at(1);
    story.members.world.kill(story.members.id(old));
    story.until("it is down", || [1, 2].iter().all(|n| story.members.seen(*n) == (3, 2)))?;
    // what has one replica went with the node
    story.written.borrow_mut().retain(|(replicas, _), _| *replicas > 1);
    let new = if is_same_address { old } else { NEW };
    let setting = format!("replace_address_first_boot={}", ip(old));
    let host = |story: &Story, n: u8| {
        let ring = story.members.shard(1).peers().ring().unwrap();
        let address = ip(n).parse::<std::net::IpAddr>().unwrap();
        ring.nodes().iter().find(|node| node.address.ip == address).map(|node| node.host_id)
    };
    let before = host(&story, old);
    // a directory of its own, as that of the dead one is lost
    story.launch(new, &[setting.as_str(), "data_dir=/d2"]);
    if !is_same_address {
        let address = types::Address::new([10, 0, 0, old], 7000);
        story.until("it is seen replacing", || {
            let ring = story.members.shard(1).peers().ring().unwrap();
            ring.nodes().iter().any(|node| node.state == ring::State::Replacing(address))
        })?;
        assert_eq!(story.letters(1, new), "UJ", "seed {seed}");
    }
    story.until("it took the place", || story.standing(new) == Some(Standing::Member))?;
    let all: Vec<u8> = (1..old).chain([new]).collect();
    story.settles(&all)?;
    let after = host(&story, new);
    assert_eq!(before == after, is_same_address, "who takes its own place is the same host");
    if !is_same_address {
        assert_eq!(host(&story, old), None, "who was replaced is gone");
        assert_eq!(story.letters(1, old), "");
    }
    // what was written while it was silent comes as hints where it is the same host
    story.until("it has all", || story.lost(&[new]).is_empty())?;
    // it may keep the setting, for it has its data now
    let (id, serving) = &story.members.nodes[usize::from(new) - 1];
    story.members.world.kill(*id);
    serving.borrow_mut().take();
    story.members.world.restart(*id);
    story.until("it is back", || story.standing(new) == Some(Standing::Member))?;
    story.settles(&all)
}

#[test]
fn a_node_takes_the_place_of_a_dead_one() {
    for seed in 1..=3 {
        assert_eq!(replace(seed, false), Ok(()), "seed {seed}");
        assert_eq!(replace(seed, true), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_node_waits_until_it_is_told_to_join() {
    let mut story = Story::new(1, &[]);
    story.launch(NEW, &["join_ring=false"]);
    story.until("it waits", || story.standing(NEW) == Some(Standing::Apart)).unwrap();
    let members = &story.members;
    assert!(members.out(NEW, "netstats").starts_with("Mode: STARTING\n"));
    assert!(members.out(NEW, "info").contains("Bootstrap state        : NEEDS_BOOTSTRAP\n"));
    assert_eq!(story.letters(1, NEW), "");
    // it passes on what it is asked
    assert_eq!(members.at(NEW, Consistency::Quorum, "SELECT v FROM r1.t").unwrap().0, KEYS as u32);
    assert_eq!(members.out(NEW, "join"), "");
    assert!(members.out(NEW, "netstats").starts_with("Mode: NORMAL\n"));
    assert!(members.out(NEW, "info").contains("Bootstrap state        : COMPLETED\n"));
    assert_eq!(members.verb(NEW, "join").exit, 1);
    assert_eq!(members.out(NEW, "bootstrap resume -f"), "Node is already bootstrapped.\n");
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all).unwrap();
}

#[test]
fn a_survey_takes_writes_and_owns_nothing() {
    let mut story = Story::new(2, &[]);
    story.write_at(1);
    story.launch(NEW, &["write_survey=true"]);
    story.until("it surveys", || story.standing(NEW) == Some(Standing::Surveying)).unwrap();
    assert_eq!(story.letters(1, NEW), "UJ");
    assert!(story.members.out(NEW, "info").contains("Bootstrap state        : IN_PROGRESS\n"));
    assert_eq!(story.members.out(NEW, "join"), "");
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all).unwrap();
}

/// Of two that begin at the same time the second gives up, or begins where the first has ended.
#[test]
fn of_two_that_join_at_the_same_time_one_waits() {
    let mut refused = 0;
    for seed in 1..=6 {
        let mut story = Story::new(seed, &[]);
        story.write_at(1);
        story.launch(NEW, &[]);
        story.launch(NEW + 1, &[]);
        let world = &story.members.world;
        let is_out = |n: u8| !world.exits(story.members.id(n)).is_empty();
        let is_in = |n: u8| story.standing(n) == Some(Standing::Member);
        let both = [NEW, NEW + 1];
        let done = || both.iter().all(|n| is_out(*n) || is_in(*n));
        story.until("both come to an end", done).unwrap();
        assert!(both.iter().any(|n| is_in(*n)), "seed {seed}: {}", story.said());
        if let Some(late) = both.into_iter().find(|n| is_out(*n)) {
            refused += 1;
            let exits = format!("{:?}", world.exits(story.members.id(late)));
            assert!(exits.contains("OthersMove"), "{exits}");
            // later it does: once the other is in
            while !is_in(late) {
                world.run_for(Duration::from_secs(2)).unwrap();
                if !world.is_up(story.members.id(late)) {
                    story.members.nodes[usize::from(late) - 1].1.borrow_mut().take();
                    world.restart(story.members.id(late));
                }
            }
        }
        let five: Vec<u8> = (1..=NEW + 1).collect();
        assert_eq!(story.settles(&five), Ok(()), "seed {seed}");
    }
    assert!(refused > 0, "none was refused");
}

/// A node that cannot fetch all stays, says so, serves nobody, and goes on when it is told to.
#[test]
fn a_join_that_failed_can_go_on() {
    let mut story = Story::new(3, &[]);
    let gone = story.members.id(2);
    story.launch(NEW, &[]);
    let members = &story.members;
    story
        .until("it is seen joining", || {
            let ring = members.shard(1).peers().ring().unwrap();
            ring.nodes().iter().any(|node| node.state == ring::State::Joining)
        })
        .unwrap();
    members.world.kill(gone);
    story.until("it failed", || story.standing(NEW) == Some(Standing::Broken)).unwrap();
    assert!(members.out(NEW, "netstats").starts_with("Mode: JOINING_FAILED\n"));
    let info = members.out(NEW, "info");
    assert!(info.contains("Bootstrap state        : IN_PROGRESS\n"), "{info}");
    assert!(info.contains("Bootstrap failed       : true\n"), "{info}");
    let reply = members.verb(NEW, "enablebinary");
    assert!(reply.err.contains("Node is not yet bootstrapped completely"), "{}", reply.err);
    assert_eq!(members.verb(NEW, "bootstrap resume -f").exit, 2, "it cannot be fetched still");
    assert_eq!(members.verb(NEW, "bootstrap resume").exit, 2);
    members.nodes[1].1.borrow_mut().take();
    members.world.restart(gone);
    let is_back = || members.nodes[1].1.borrow().is_some() && members.seen(NEW) == (4, 4);
    story.until("it is back", is_back).unwrap();
    let out = members.out(NEW, "bootstrap resume -f");
    assert_eq!(out, "Resuming bootstrap\nResume bootstrap complete\n");
    let all: Vec<u8> = (1..=NEW).collect();
    story.settles(&all).unwrap();
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let cases: &[(&[&str], &str)] = &[
        (&["replace_address=10.0.0.77"], "ReplaceUnknown"),
        (&["replace_address=10.0.0.2"], "ReplaceLive"),
        (&["replace_address=10.0.0.2", "join_ring=false"], "ReplaceApart"),
        (&["replace_address=10.0.0.2", "auto_bootstrap=false"], "ReplaceWithoutData"),
    ];
    let mut story = Story::new(5, &[]);
    for (n, (settings, expected)) in (NEW..).zip(cases) {
        story.launch(n, settings);
        let id = story.members.id(n);
        story.until("it ends", || !story.members.world.exits(id).is_empty()).unwrap();
        let exits = format!("{:?}", story.members.world.exits(id));
        assert!(exits.contains(expected), "{settings:?}: {exits}");
    }
    let token = story.members.shard(2).peers().ring().unwrap().tokens()[0].0;
    let (n, setting) = (NEW + cases.len() as u8, format!("initial_token={token}"));
    story.launch(n, &["num_tokens=1", setting.as_str()]);
    let id = story.members.id(n);
    story.until("it ends", || !story.members.world.exits(id).is_empty()).unwrap();
    let exits = format!("{:?}", story.members.world.exits(id));
    assert!(exits.contains("TokenTaken"), "{exits}");
    // none of them is left behind
    assert_eq!(story.letters(1, NEW), "");
    // a member that is not what it was
    let id = story.members.id(NODES);
    for (setting, expected) in [
        ("data_dir=/another", "AddressTaken"),
        ("num_tokens=7", "TokenCount"),
        ("replace_address=10.0.0.2", "ReplaceBootstrapped"),
    ] {
        if story.members.world.is_up(id) {
            story.members.world.kill(id);
        }
        story.launch(NODES, &[setting]);
        let exits = || format!("{:?}", story.members.world.exits(id));
        story.until(setting, || exits().contains(expected)).unwrap();
    }
}
