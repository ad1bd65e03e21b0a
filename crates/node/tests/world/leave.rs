//! Nodes that leave a ring, move in it, and are removed from it: what was acknowledged stays there.

use std::collections::BTreeSet;
use std::time::Duration;

use cluster::Standing;
use env::Rng;
use env::sim::Fault;
use protocol::Consistency;

use crate::ring::{NODES, ip};
use crate::story::{KEYS, Story};

/// Worlds in which all goes well.
const WORLDS: u64 = 4;
/// Worlds in which a node dies.
const WORLDS_OF_DEATH: u64 = 12;
/// Worlds that are tried for a planted bug.
const WORLDS_OF_BUG: u64 = 40;
/// The node that joined last, so that three are left.
const FOURTH: u8 = NODES + 1;
/// The node that leaves: none that is a seed.
const LEAVES: u8 = 2;
const STAY: [u8; 3] = [1, 3, FOURTH];
/// A decommission takes two times `ring_delay` and less than two seconds here.
const LEAVE_MICROS: u64 = 6_000_000;

/// A ring of four.
fn four(seed: u64, bug: Option<&'static str>) -> Story {
    let mut story = Story::new(seed, &[]);
    story.join(FOURTH);
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    story
}

/// A node leaves while nothing goes wrong: what does not hold of that.
fn leave(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let story = four(seed, bug);
    story.write_at(1);
    story.write_at(3);
    STAY.iter().for_each(|n| story.read_at(*n));
    let ended = story.begin(LEAVES, "decommission");
    if matches!(bug, None | Some("news_are_slow")) {
        story.until("it is seen leaving", || {
            let ring = story.members.shard(1).peers().ring().unwrap();
            ring.nodes().iter().any(|node| node.state == ring::State::Leaving)
        })?;
        assert_eq!(story.letters(1, LEAVES), "UL", "seed {seed}");
        assert!(story.members.out(LEAVES, "netstats").starts_with("Mode: LEAVING\n"));
        let again = story.members.out(LEAVES, "decommission");
        assert_eq!(again, "This node is still decommissioning.\n");
    }
    story.until("it left", || ended.borrow().is_some())?;
    assert_eq!(*ended.borrow(), Some((0, String::new())), "seed {seed}: {}", story.said());
    assert!(story.members.out(LEAVES, "netstats").starts_with("Mode: DECOMMISSIONED\n"));
    let again = story.members.out(LEAVES, "decommission");
    assert_eq!(again, "Node was already decommissioned.\n");
    story.settles(&STAY)?;
    assert_eq!(story.letters(1, LEAVES), "");
    story.went_well()?;
    // it does not come back
    let (id, serving) = &story.members.nodes[usize::from(LEAVES) - 1];
    story.members.world.kill(*id);
    serving.borrow_mut().take();
    story.members.world.restart(*id);
    let exits = || format!("{:?}", story.members.world.exits(*id));
    story.until("it is refused", || exits().contains("Decommissioned"))
}

#[test]
fn a_node_leaves_and_its_data_stays() {
    for seed in 1..=WORLDS {
        assert_eq!(leave(seed, None), Ok(()), "seed {seed}");
    }
}

/// While some have heard that a node has left and others have not, they write and read by two
/// rings.
#[test]
fn a_node_leaves_while_news_are_slow() {
    for seed in 1..=WORLDS {
        assert_eq!(leave(seed, Some("news_are_slow")), Ok(()), "seed {seed}");
    }
}

/// The node that leaves, or one that it gives to, dies: what does not hold of that.
fn die(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let story = four(seed, bug);
    let rng = Rng::new(seed);
    story.write_at(1);
    let members = &story.members;
    let mut ended = story.begin(LEAVES, "decommission");
    members.world.run_for(Duration::from_micros(rng.below(LEAVE_MICROS))).unwrap();
    let victim = 2 + rng.below(u64::from(FOURTH) - 1) as u8;
    let id = members.id(victim);
    match rng.below(3) {
        0 => members.world.power_cut(id),
        1 => members.world.kill(id),
        _ => {
            let others = (1..=FOURTH).filter(|n| *n != victim).map(|n| members.id(n)).collect();
            members.world.set_fault(Fault::Partition { a: vec![id], b: others });
            members.world.run_for(Duration::from_secs(30)).unwrap();
            members.world.set_fault(Fault::Heal);
        }
    }
    members.world.run_for(Duration::from_micros(rng.below(LEAVE_MICROS))).unwrap();
    let was_killed = !members.world.is_up(id);
    if was_killed {
        members.nodes[usize::from(victim) - 1].1.borrow_mut().take();
        members.world.restart(id);
    }
    let left = || format!("{:?}", members.world.exits(members.id(LEAVES))).contains("Decomm");
    if was_killed && victim == LEAVES {
        let is_back = || story.standing(LEAVES) == Some(Standing::Member);
        story.until("it is back, or has left", || is_back() || left())?;
    }
    for _ in 0..20 {
        if left() {
            break;
        }
        if was_killed && victim == LEAVES {
            let up = || members.seen(LEAVES) == (4, 4);
            story.until("all are up", up)?;
            ended = story.begin(LEAVES, "decommission");
        }
        story.until("it comes to an end", || ended.borrow().is_some())?;
        if matches!(&*ended.borrow(), Some((0, _))) {
            break;
        }
        story.until("all are up", || members.seen(LEAVES).1 == 4)?;
        ended = story.begin(LEAVES, "decommission");
    }
    if left() {
        // it gave all it had, and died before all had heard: the others remove it
        let gone = || members.seen(1).0 == 3;
        if members.world.run_until(gone, Duration::from_secs(40)).is_err() {
            let ring = members.shard(1).peers().ring().unwrap();
            let host = ring.nodes().iter().find(|node| node.state == ring::State::Leaving);
            let host = host.map(|node| node.host_id.to_string()).unwrap_or_default();
            let removed = story.begin(1, &format!("removenode {host}"));
            story.until("it is removed", || removed.borrow().is_some())?;
        }
    }
    story.until("who died is back", || {
        STAY.iter().all(|n| members.nodes[usize::from(*n) - 1].1.borrow().is_some())
    })?;
    story.settles(&STAY)
}

#[test]
fn a_decommission_in_which_a_node_dies_ends_well() {
    for seed in 1..=WORLDS_OF_DEATH {
        assert_eq!(die(seed, None), Ok(()), "seed {seed}");
    }
}

/// What was kept for a node that was down is handed over.
fn hand_over(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let story = four(seed, bug);
    let members = &story.members;
    members.out(LEAVES, "pausehandoff");
    let others = [1, 2, FOURTH].map(|n| members.id(n)).to_vec();
    members.world.set_fault(Fault::Partition { a: vec![members.id(3)], b: others });
    story.until("it is down", || members.seen(LEAVES) == (4, 3))?;
    for k in 0..KEYS {
        let text = format!("INSERT INTO r3.t (k, v) VALUES ({k}, 7)");
        members.at(LEAVES, Consistency::Quorum, &text)?;
    }
    members.world.set_fault(Fault::Heal);
    story.until("it is back", || members.seen(LEAVES) == (4, 4))?;
    story.until("all see it", || members.seen(3) == (4, 4))?;
    let ended = story.begin(LEAVES, "decommission");
    story.until("it left", || ended.borrow().is_some())?;
    story.agree(&STAY)?;
    let [one, four, three] = [1, FOURTH, 3].map(|n| members.id(n));
    // with three nodes left each has all of it, once it has its hints
    story.until("hints are delivered", || {
        [1, FOURTH].iter().all(|n| members.out(*n, "listpendinghints").contains(NO_HINTS))
    })?;
    members.world.set_fault(Fault::Partition { a: vec![three], b: vec![one, four] });
    story.until("it is alone", || members.seen(3).1 == 1)?;
    let stale = (0..KEYS).filter_map(|k| story.stale(3, Consistency::One, (3, k), 7));
    match stale.count() {
        0 => Ok(()),
        lost => Err(format!("{lost} hints were lost")),
    }
}

const NO_HINTS: &str = "This node does not have any pending hints";

#[test]
fn a_leaving_node_hands_its_hints_over() {
    for seed in 1..=2 {
        assert_eq!(hand_over(seed, None), Ok(()), "seed {seed}");
    }
}

/// A node dies for good and is removed: what does not hold of that.
fn remove(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let story = four(seed, bug);
    let members = &story.members;
    let (dead, stay) = (3, [1, 2, FOURTH]);
    let host = members.shard(dead).engine().host_id();
    let host = types::Uuid::from_bytes(host).to_string();
    assert!(members.verb(1, &format!("removenode {host}")).err.contains("is alive and owns"));
    members.world.kill(members.id(dead));
    story.until("it is down", || stay.iter().all(|n| members.seen(*n) == (4, 3)))?;
    // what has one replica went with the node
    story.written.borrow_mut().retain(|(replicas, _), _| *replicas > 1);
    let status = "RemovalStatus: No token removals in process.\n";
    assert_eq!(members.out(1, "removenode status"), status);
    let unknown = "removenode 00000000-0000-4000-8000-000000000001";
    assert!(members.verb(1, unknown).err.contains("Host ID not found."));
    let ended = story.begin(1, &format!("removenode {host}"));
    if bug.is_none() {
        story.until("it is seen leaving", || {
            let ring = members.shard(2).peers().ring().unwrap();
            ring.nodes().iter().any(|node| node.state == ring::State::Leaving)
        })?;
        assert_eq!(story.letters(2, dead), "DL", "seed {seed}");
        let status = members.out(1, "removenode status");
        assert!(status.contains("Waiting for replication confirmation from [10.0.0."), "{status}");
    }
    story.until("it is removed", || ended.borrow().is_some())?;
    assert_eq!(*ended.borrow(), Some((0, String::new())), "seed {seed}: {}", story.said());
    story.settles(&stay)
}

#[test]
fn a_dead_node_is_removed_and_its_replicas_are_made_anew() {
    for seed in 1..=WORLDS {
        assert_eq!(remove(seed, None), Ok(()), "seed {seed}");
    }
}

/// A write that was acknowledged by the node that dies and by one other alone is not on the third
/// replica. Whoever takes the place of the dead one must have it.
fn remove_with_a_gap(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let story = four(seed, bug);
    let members = &story.members;
    for n in 1..=FOURTH {
        members.out(n, "disablehandoff");
    }
    let (dead, late) = (3, FOURTH);
    let others = [1, 2, dead].map(|n| members.id(n)).to_vec();
    members.world.set_fault(Fault::Partition { a: vec![members.id(late)], b: others });
    story.until("it is down", || members.seen(1) == (4, 3))?;
    for k in 0..KEYS {
        let text = format!("INSERT INTO r3.t (k, v) VALUES ({k}, 7)");
        members.at(1, Consistency::Quorum, &text)?;
    }
    members.world.set_fault(Fault::Heal);
    story.until("all are up", || [1, late].iter().all(|n| members.seen(*n) == (4, 4)))?;
    let host = types::Uuid::from_bytes(members.shard(dead).engine().host_id());
    members.world.kill(members.id(dead));
    story.until("it is down", || [1, 2, late].iter().all(|n| members.seen(*n) == (4, 3)))?;
    let ended = story.begin(1, &format!("removenode {host}"));
    story.until("it is removed", || ended.borrow().is_some())?;
    story.agree(&[1, 2, late])?;
    let reads = [late, 2].into_iter().flat_map(|n| (0..KEYS).map(move |k| (n, k)));
    let stale = reads.filter_map(|(n, k)| story.stale(n, Consistency::Quorum, (3, k), 7));
    let lost = stale.count();
    if lost == 0 { Ok(()) } else { Err(format!("{lost} writes were lost")) }
}

#[test]
fn what_a_dead_node_and_one_other_have_alone_stays() {
    for seed in 1..=WORLDS {
        assert_eq!(remove_with_a_gap(seed, None), Ok(()), "seed {seed}");
    }
}

#[test]
fn planted_bugs_of_leaving_are_found() {
    type Tale = fn(u64, Option<&'static str>) -> Result<(), String>;
    let tales: [(&'static str, Tale); 7] = [
        ("leave_forgets_departed", leave),
        ("leave_gives_unannounced", leave),
        ("leave_gives_nothing", leave),
        ("leave_counts_what_failed", die),
        ("leave_drops_hints", hand_over),
        ("removal_confirmed_unfetched", remove),
        ("removal_fetches_from_one", remove_with_a_gap),
    ];
    for (bug, tale) in tales {
        let found = (1..=WORLDS_OF_BUG).any(|seed| tale(seed, Some(bug)).is_err());
        assert!(found, "{bug}");
    }
}

#[test]
fn a_node_moves_to_another_token() {
    for seed in 1..=WORLDS {
        let mut story = Story::new(seed, &["num_tokens=1"]);
        story.launch(FOURTH, &["num_tokens=1"]);
        story.until("it joined", || story.standing(FOURTH) == Some(Standing::Member)).unwrap();
        let all: Vec<u8> = (1..=FOURTH).collect();
        story.agree(&all).unwrap();
        story.write_at(1);
        story.write_at(3);
        story.read_at(1);
        let members = &story.members;
        let owned = members.shard(1).peers().ring().unwrap().tokens()[0].0;
        assert!(members.verb(LEAVES, &format!("move {owned}")).err.contains("already owned"));
        let to = i64::from(seed as i32) * 1_000_000_007;
        let ended = story.begin(LEAVES, &format!("move {to}"));
        story
            .until("it is seen moving", || {
                let ring = members.shard(1).peers().ring().unwrap();
                ring.nodes().iter().any(|node| node.state == ring::State::Moving(types::Token(to)))
            })
            .unwrap();
        assert_eq!(story.letters(1, LEAVES), "UM", "seed {seed}");
        story.until("it moved", || ended.borrow().is_some()).unwrap();
        assert_eq!(*ended.borrow(), Some((0, String::new())), "seed {seed}: {}", story.said());
        story.settles(&all).unwrap();
        assert_eq!(story.went_well(), Ok(()), "seed {seed}");
        // and is there after a start
        let (id, serving) = &members.nodes[usize::from(LEAVES) - 1];
        members.world.kill(*id);
        serving.borrow_mut().take();
        members.world.restart(*id);
        story.until("it is back", || story.standing(LEAVES) == Some(Standing::Member)).unwrap();
        let tokens = members.shard(LEAVES).membership().unwrap().place().tokens;
        assert_eq!(tokens, BTreeSet::from([types::Token(to)]));
        story.settles(&all).unwrap();
    }
}

#[test]
fn a_node_that_may_not_leave_is_told_why() {
    let story = Story::new(1, &[]);
    let members = &story.members;
    let refused = members.verb(2, "decommission");
    let text = "Unsupported operation: Not enough live nodes to maintain replication factor in \
                keyspace r3 (RF = 3, N = 3). Perform a forceful decommission to ignore.";
    assert_eq!(refused.exit, 1);
    assert!(refused.err.contains(text) || refused.out.contains(text), "{}", refused.err);
    let many = members.verb(2, "move 5");
    assert!(many.err.contains("This node has more than one token and cannot be moved thusly."));
    let own = types::Uuid::from_bytes(members.shard(2).engine().host_id());
    assert!(members.verb(2, &format!("removenode {own}")).err.contains("Cannot remove self"));
    assert_eq!(members.out(2, "decommission --force"), "");
    story.settles(&[1, 3]).unwrap();
}

#[test]
fn a_node_that_is_up_is_not_assassinated() {
    let story = Story::new(1, &[]);
    let members = &story.members;
    let reply = members.verb(1, &format!("assassinate {}", ip(2)));
    assert_eq!(reply.exit, 2);
    assert!(reply.err.contains("Endpoint still alive: /10.0.0.2:7000"), "{}", reply.err);
    members.world.kill(members.id(2));
    story.until("it is down", || members.seen(1) == (3, 2)).unwrap();
    assert_eq!(members.out(1, &format!("assassinate {}", ip(2))), "");
    story.agree(&[1, 3]).unwrap();
}

#[test]
fn cleanup_drops_what_is_no_replicas() {
    let mut story = Story::new(1, &[]);
    for n in 1..=NODES {
        story.members.out(n, "flush");
    }
    story.launch(FOURTH, &[]);
    story.until("it joined", || story.standing(FOURTH) == Some(Standing::Member)).unwrap();
    let four: Vec<u8> = (1..=FOURTH).collect();
    story.agree(&four).unwrap();
    let members = &story.members;
    let at_once = members.verb(1, "cleanup r1");
    assert!(at_once.err.contains("Not safe to run cleanup."), "{}", at_once.err);
    members.world.run_for(Duration::from_secs(20)).unwrap();
    let holds = |k: i32| !members.out(1, &format!("getsstables r1 t {k}")).is_empty();
    let is_own = |k: i32| members.out(1, &format!("getendpoints r1 t {k}")).trim() == ip(1);
    let held: Vec<i32> = (0..KEYS).filter(|k| holds(*k)).collect();
    assert!(held.iter().any(|k| !is_own(*k)), "nothing went to the new node");
    assert_eq!(members.out(1, "cleanup"), "");
    for k in held {
        assert_eq!(holds(k), is_own(k), "{k}");
    }
    let all: Vec<u8> = (1..=FOURTH).collect();
    story.settles(&all).unwrap();
}
