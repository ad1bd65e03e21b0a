//! What `nodetool plan` says of a change is what the change then does.

use std::collections::{BTreeMap, BTreeSet};

use admin::{Decommission, MovePlan, Shown, Verb};
use cluster::Standing;
use protocol::Consistency;
use types::{Token, TokenRange};

use crate::ring::{NODES, ip};
use crate::story::Story;
use crate::told;

/// The node that joins.
const NEW: u8 = NODES + 1;
/// The node that leaves: none that is a seed.
const LEAVES: u8 = 2;
const KEYSPACES: [&str; 3] = ["r1", "r2", "r3"];

/// Ranges by keyspace and node.
type Ranges = BTreeMap<(String, String), Vec<TokenRange>>;

fn shown(story: &Story, n: u8, line: &str) -> Shown {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let verb = Verb::parse(&words).unwrap();
    let (_, serving) = &story.members.nodes[usize::from(n) - 1];
    let outcome = told(&story.members.world, serving, async move |client| {
        client.whole.upgrade().unwrap().outcome(verb).await
    });
    assert_eq!(outcome.refusal, None, "{line}");
    outcome.shown.unwrap()
}

fn plan(story: &Story, n: u8, line: &str) -> MovePlan {
    match shown(story, n, line) {
        Shown::Plan(plan) => *plan,
        other => panic!("{line}: {other:?}"),
    }
}

/// What nodes have of the keyspaces of users.
fn owned(story: &Story, at: u8) -> Ranges {
    let ring = story.members.shard(at).peers().ring().unwrap();
    let schema = story.members.shard(at).schema();
    let mut owned = Ranges::new();
    for keyspace in KEYSPACES {
        let strategy = &schema.keyspace(keyspace).unwrap().replication.strategy;
        let placement = ring.placement(strategy).unwrap();
        for index in ring.indexes() {
            let key = (keyspace.to_owned(), ring.node(index).address.ip.to_string());
            owned.insert(key, TokenRange::normalize(placement.ranges_of(index)));
        }
    }
    owned
}

/// What nodes have now and had not before.
fn gained(before: &Ranges, after: &Ranges) -> Ranges {
    let new = after.iter().map(|(key, ranges)| {
        let had = before.get(key).cloned().unwrap_or_default();
        let ranges = ranges.iter().flat_map(|range| range.without(&had));
        (key.clone(), TokenRange::normalize(ranges))
    });
    new.filter(|(_, ranges)| !ranges.is_empty()).collect()
}

/// What the plan sends to each node; a new one has this address.
fn sent(plan: &MovePlan, new: &str) -> Ranges {
    let mut sent = Ranges::new();
    for stream in plan.streams.iter().filter(|of| KEYSPACES.contains(&of.keyspace.as_str())) {
        let to = if stream.to == "new-1" { new } else { &stream.to };
        let of = sent.entry((stream.keyspace.clone(), to.to_owned())).or_default();
        of.extend(stream.ranges.iter().map(|range| {
            let (left, right) = range.trim_matches(['(', ']']).split_once(',').expect("two tokens");
            TokenRange { left: Token(left.parse().unwrap()), right: Token(right.parse().unwrap()) }
        }));
    }
    sent.values_mut().for_each(|ranges| *ranges = TokenRange::normalize(std::mem::take(ranges)));
    sent
}

/// Is what the plan says that nodes will replicate what they replicate now?
fn owns_as_planned(story: &Story, plan: &MovePlan, new: &str) -> Result<(), String> {
    let ring = story.members.shard(1).peers().ring().unwrap();
    let schema = story.members.shard(1).schema();
    for of in plan.ownership.iter().filter(|of| !of.system) {
        let strategy = &schema.keyspace(&of.keyspaces[0]).unwrap().replication.strategy;
        let shares = ring.placement(strategy).unwrap().replicated_shares();
        let mut real: BTreeMap<String, f64> = BTreeMap::new();
        for index in ring.members() {
            real.insert(ring.node(*index).address.ip.to_string(), shares[index.at()]);
        }
        let planned = of.nodes.iter().filter_map(|node| {
            let name = if node.node == "new-1" { new } else { &node.node };
            Some((name.to_owned(), node.after_share?))
        });
        same("ownership", &planned.collect::<BTreeMap<_, _>>(), &real)?;
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, planned: &T, real: &T) -> Result<(), String> {
    match planned == real {
        true => Ok(()),
        false => Err(format!("{what}: planned {planned:?}, is {real:?}")),
    }
}

/// With whom a node had sessions.
fn peers(story: &Story, n: u8) -> BTreeSet<String> {
    let sessions = story.members.shard(n).streaming().sessions();
    sessions.iter().map(|session| session.id.peer.ip.to_string()).collect()
}

/// A node joins: what is not as it was planned.
fn bootstrap(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    for n in 1..=NODES {
        story.members.out(n, "flush");
    }
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    let plan = plan(&story, 2, "plan add");
    assert_eq!(plan.refusals, Vec::<String>::new());
    let before = owned(&story, 1);
    story.join(NEW);
    let tokens = &plan.tokens[0];
    // one of four nodes is placed
    same("tokens by chance", &tokens.drawn, &false)?;
    let place = story.members.shard(NEW).membership().unwrap().place();
    same("tokens", &tokens.tokens, &place.tokens.iter().map(Token::to_string).collect())?;
    let moved = sent(&plan, &ip(NEW));
    assert!(moved.keys().all(|(_, node)| *node == ip(NEW)), "nobody else gains");
    same("ranges", &moved, &gained(&before, &owned(&story, 1)))?;
    owns_as_planned(&story, &plan, &ip(NEW))?;
    let sources: BTreeSet<String> = plan.streams.iter().map(|of| of.from.clone()).collect();
    same("sources", &sources, &peers(&story, NEW))?;
    assert!(plan.bytes > 0 && plan.seconds.is_some(), "{} {:?}", plan.bytes, plan.seconds);
    Ok(())
}

#[test]
fn a_bootstrap_is_as_planned() {
    assert_eq!(bootstrap(1, None), Ok(()));
}

/// What was fetched is what was planned, by the node's own record of it.
#[test]
fn a_bootstrap_records_the_ranges_that_were_planned() {
    let mut story = Story::new(2, &[]);
    let plan = plan(&story, 1, "plan add");
    story.launch(NEW, &["write_survey=true"]);
    story.until("it surveys", || story.standing(NEW) == Some(Standing::Surveying)).unwrap();
    let moved = sent(&plan, &ip(NEW));
    for keyspace in KEYSPACES {
        let read = format!(
            "SELECT full_ranges FROM system.available_ranges_v2 WHERE keyspace_name = '{keyspace}'"
        );
        let (rows, cells) = story.members.at(NEW, Consistency::One, &read).unwrap();
        assert_eq!(rows, 1);
        assert_eq!(ranges(&cells), moved[&(keyspace.to_owned(), ip(NEW))], "{keyspace}");
    }
}

/// A cell with a set of ranges as Cassandra keeps them: kind, then both tokens behind their length.
fn ranges(cell: &[u8]) -> Vec<TokenRange> {
    let number = |at: usize| i32::from_be_bytes(cell[at..at + 4].try_into().unwrap());
    let token = |at: usize| Token(i64::from_be_bytes(cell[at..at + 8].try_into().unwrap()));
    let (count, each) = (number(4) as usize, 4 + 28);
    let of = |n: usize| {
        let at = 8 + n * each + 4 + 4;
        TokenRange { left: token(at + 4), right: token(at + 16) }
    };
    TokenRange::normalize((0..count).map(of))
}

/// A node leaves: what is not as it was planned.
fn decommission(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let mut story = Story::new(seed, &[]);
    story.join(NEW);
    if let Some(bug) = bug {
        story.members.world.plant(bug);
    }
    // asked of itself and of another
    let own = plan(&story, LEAVES, "plan decommission");
    let plan = plan(&story, 1, &format!("plan decommission {}", ip(LEAVES)));
    let moves = |plan: &MovePlan| -> Vec<_> {
        let streams = plan.streams.iter();
        streams.map(|of| (of.from.clone(), of.to.clone(), of.ranges.clone())).collect()
    };
    assert_eq!(moves(&own), moves(&plan));
    assert_eq!((own.title.as_str(), &own.refusals), ("decommission of 10.0.0.2", &plan.refusals));
    assert_eq!(plan.refusals, Vec::<String>::new());
    let before = owned(&story, 1);
    assert_eq!(shown(&story, LEAVES, "decommission"), Shown::Decommission(Decommission::Done));
    story.agree(&[1, 3, NEW])?;
    same("ranges", &sent(&plan, ""), &gained(&before, &owned(&story, 1)))?;
    owns_as_planned(&story, &plan, "")?;
    let takers: BTreeSet<String> = plan.streams.iter().map(|of| of.to.clone()).collect();
    same("takers", &takers, &peers(&story, LEAVES))
}

#[test]
fn a_decommission_is_as_planned() {
    assert_eq!(decommission(3, None), Ok(()));
}

#[test]
fn planted_bugs_of_plans_are_found() {
    let found = |end: Result<(), String>, what: &str| {
        let why = end.expect_err("it is found");
        assert!(why.starts_with(what), "{why}");
    };
    found(bootstrap(1, Some("plan_counts_other_replicas")), "tokens");
    found(bootstrap(1, Some("plan_forgets_a_stream")), "ranges");
    found(decommission(3, Some("plan_forgets_a_stream")), "ranges");
}

#[test]
fn a_plan_says_what_would_refuse_it_and_changes_nothing() {
    let mut story = Story::new(4, &[]);
    let text = story.members.out(1, "plan decommission");
    let refused = "It would be refused now:\n  Not enough live nodes to maintain replication \
                   factor in keyspace r3 (RF = 3, N = 3). Perform a forceful decommission to \
                   ignore.\n";
    assert!(text.contains(refused), "{text}");
    let host = |n: u8| types::Uuid::from_bytes(story.members.shard(n).engine().host_id());
    let (two, one) = (host(2), host(1));
    let text = story.members.out(1, &format!("plan removenode {two}"));
    assert!(text.contains("Node /10.0.0.2:7000 is alive and owns this ID."), "{text}");
    assert!(story.members.out(1, &format!("plan removenode {one}")).contains("Cannot remove self"));
    let unknown = story.members.verb(1, "plan decommission 10.0.0.77");
    assert!(unknown.out.contains("10.0.0.77 is no node of the ring"), "{}", unknown.out);
    assert_eq!(unknown.exit, 1);
    let many = story.members.verb(1, "plan move 5");
    assert!(many.err.contains("This node has more than one token"), "{}", many.err);
    assert_eq!(story.members.verb(1, "plan add --nodes 33").exit, 1);
    assert_eq!(story.members.verb(1, "plan add --dc nowhere").exit, 1);
    // three that join one after the other, in a rack of another data centre
    let three = plan(&story, 1, "plan add --nodes 3 --dc dc9 --rack r9 --tokens 4");
    assert_eq!(three.title, "add 3 nodes with 4 tokens each to data center dc9");
    assert_eq!(three.tokens.iter().map(|of| of.tokens.len()).collect::<Vec<_>>(), [4, 4, 4]);
    // while another joins
    story.launch(NEW, &[]);
    story
        .until("it is seen joining", || {
            let ring = story.members.shard(1).peers().ring().unwrap();
            ring.nodes().iter().any(|node| node.state == ring::State::Joining)
        })
        .unwrap();
    let text = story.members.out(1, "plan add");
    assert!(text.contains("Other bootstrapping/leaving/moving nodes detected (/10.0.0.4:7000)"));
    story.until("it joined", || story.standing(NEW) == Some(Standing::Member)).unwrap();
    let all: Vec<u8> = (1..=NEW).collect();
    assert_eq!(story.settles(&all), Ok(()), "nothing was changed");
}

#[test]
fn what_a_ring_of_three_withstands() {
    let story = Story::new(5, &[]);
    let text = story.members.out(1, "plan failures --tokens 1 --racks 1");
    let row = |of: &str, what: &str, when: &str| {
        let part = text.split(&format!("some range of {of} lacks\n")).nth(1).unwrap();
        let part = part.split("\n\n").next().unwrap();
        let line = part.lines().find(|line| line.contains(what) && line.contains(when)).unwrap();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        words[words.len() - 2..].to_vec()
    };
    assert_eq!(row("r3", "QUORUM", "1 node"), ["0%", "0%"]);
    assert_eq!(row("r3", "QUORUM", "2 nodes"), ["100%", "100%"]);
    assert_eq!(row("r3", "all replicas", "2 nodes"), ["0%", "0%"]);
    assert_eq!(row("r1", "all replicas", "1 node"), ["100%", "100%"]);
    assert_eq!(row("r2", "all replicas", "1 node"), ["0%", "0%"]);
    assert_eq!(row("r2", "QUORUM", "1 node"), ["100%", "100%"]);
    assert_eq!(row("r3", "all replicas", "1 rack"), ["100%", "100%"]);
    assert!(text.contains("now (16 tokens)"), "{text}");
    assert!(!text.contains("system_auth"), "keyspaces of users, where there are any: {text}");
}
