//! Streams between nodes: what one missed it fetches from the others, whatever happens meanwhile.
//! What came is there as a whole or not at all.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use admin::Verb;
use env::sim::Fault;
use env::{Class, Rng};
use protocol::Consistency;

use crate::PATIENCE;
use crate::ring::{Members, NODES};

/// Worlds in which a node dies while another fetches.
const WORLDS: u64 = 12;
/// Worlds that are tried for a planted bug.
const WORLDS_OF_BUG: u64 = 80;
const KEYS: i32 = 300;
/// The node that misses what is written.
const LATE: u8 = 3;
/// Longer than a rebuild takes, which is 120 to 250 ms here.
const REBUILD_MICROS: u64 = 300_000;

/// A ring of which one node missed half of what was written.
fn ring_with_a_gap(seed: u64) -> Members {
    // a node that says nothing any more is given up in seconds, not in minutes
    let patience = ["streaming_keep_alive_period=5s", "internode_streaming_tcp_user_timeout=10s"];
    let members = Members::with(seed, &patience);
    members.world.set_fault(Fault::Loss { one_in: 0 });
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    members.statement(1, format!("CREATE KEYSPACE ks WITH replication = {replication}"));
    members.statement(1, "CREATE TABLE ks.a (k int PRIMARY KEY, v text)".to_owned());
    members.statement(
        1,
        "CREATE TABLE ks.b (k int, c int, s int static, PRIMARY KEY (k, c)) \
         WITH compression = {'enabled': 'false'}"
            .to_owned(),
    );
    members.until("tables are everywhere", || (1..=NODES).all(|n| members.has_table(n, "b")));
    members.one_schema();
    for n in 1..=NODES {
        members.out(n, "disablehandoff");
    }
    for k in 0..KEYS {
        if k == KEYS / 2 {
            let [one, two, three] = [1, 2, LATE].map(|n| members.id(n));
            members.world.set_fault(Fault::Partition { a: vec![three], b: vec![one, two] });
            members.until("it is down", || members.seen(1) == (3, 2));
        }
        for text in [
            format!("INSERT INTO ks.a (k, v) VALUES ({k}, 'value {k}')"),
            format!("INSERT INTO ks.b (k, c, s) VALUES ({k}, 1, {k})"),
        ] {
            members.at(1, Consistency::Quorum, &text).unwrap();
        }
        if k == KEYS / 4 {
            members.out(1, "flush ks");
        }
    }
    members.world.set_fault(Fault::Heal);
    members.all_up();
    let [a, b] = counts(&members, LATE);
    assert!(a < KEYS as u32 && b < KEYS as u32);
    members
}

/// How many rows of each table a node has by itself: it is asked when it reaches no other.
fn counts(members: &Members, n: u8) -> [u32; 2] {
    let others = (1..=NODES).filter(|other| *other != n).map(|n| members.id(n)).collect();
    members.world.set_fault(Fault::Partition { a: vec![members.id(n)], b: others });
    members.until("it is alone", || members.seen(n) == (3, 1));
    let counts = ["a", "b"].map(|table| {
        let rows = members.at(n, Consistency::One, &format!("SELECT k FROM ks.{table}"));
        rows.unwrap().0
    });
    members.world.set_fault(Fault::Heal);
    members.all_up();
    counts
}

fn files(members: &Members, n: u8) -> Vec<String> {
    let files = members.world.disk(members.id(n), |disk| disk.files()).unwrap_or_default();
    files.into_iter().map(|(path, _)| path).filter(|path| path.contains("/ks/")).collect()
}

/// From both others, which takes parts of SSTables; or from one, which sends them whole.
fn rebuild_of(members: &Members) -> &'static str {
    match members.world.seed() % 2 {
        0 => "rebuild -ks ks",
        _ => "rebuild -ks ks -ts (-9223372036854775808,-9223372036854775808] -s 10.0.0.1",
    }
}

/// Begins a rebuild, and does not wait for it; its exit code comes.
fn begin(members: &Members, n: u8) -> Rc<RefCell<Option<(u8, String)>>> {
    let ended = Rc::new(RefCell::new(None));
    let theirs = Rc::clone(&ended);
    let client = members.nodes[usize::from(n) - 1].1.borrow().clone().unwrap();
    let words: Vec<String> = rebuild_of(members).split_whitespace().map(str::to_owned).collect();
    client.env.clone().spawn(Class::Background, async move {
        let Some(node) = client.whole.upgrade() else { return };
        let reply = node.carry_out(Verb::parse(&words).unwrap()).await;
        *theirs.borrow_mut() = Some((reply.exit, reply.err + &reply.out));
    });
    ended
}

/// A rebuild that succeeds; else it is said what the nodes said.
fn rebuild(members: &Members, n: u8) {
    let reply = members.verb(n, rebuild_of(members));
    if reply.exit == 0 {
        return;
    }
    let mut said = String::new();
    for n in 1..=NODES {
        let read = "SELECT message FROM system_views.system_logs";
        let (_, cells) = members.at(n, Consistency::One, read).unwrap();
        said.push_str(&format!("{n}: {}\n", String::from_utf8_lossy(&cells)));
    }
    panic!("seed {}: {}{}\n{said}", members.world.seed(), reply.out, reply.err);
}

fn has_all(members: &Members, n: u8) {
    let seed = members.world.seed();
    assert_eq!(counts(members, n), [KEYS as u32; 2], "seed {seed}");
}

#[test]
fn a_node_fetches_what_it_missed() {
    for seed in 1..=3 {
        let members = ring_with_a_gap(seed);
        rebuild(&members, LATE);
        has_all(&members, LATE);
        assert_eq!(no_leftovers(&members, LATE), Ok(()));
        // nothing came twice, and who has all gets the same again
        rebuild(&members, LATE);
        has_all(&members, LATE);
        assert!(members.out(LATE, "netstats").contains("Not sending any streams.\n"));
    }
}

/// A Cassandra takes the end of any connection for the end of the session: whoever sends files to
/// who began it leaves closing to that one.
#[test]
fn who_sends_files_does_not_close_first() {
    for seed in 1..=6 {
        let members = ring_with_a_gap(seed);
        members.world.plant("stream_minds_closed_files");
        rebuild(&members, LATE);
        has_all(&members, LATE);
    }
}

#[test]
fn what_is_asked_for_is_checked_in_cassandras_words() {
    let members = Members::new(7);
    for (line, text) in [
        ("rebuild -ks none", "Keyspace 'none' does not exist"),
        ("rebuild nowhere", "Provided datacenter 'nowhere' is not a valid datacenter"),
        ("rebuild -ks system_auth -ts (1,2]x", "Unexpected string"),
        (
            "rebuild --exclude-local-dc datacenter1",
            "Cannot set source data center to be local data center",
        ),
    ] {
        let reply = members.verb(2, line);
        assert_eq!(reply.exit, 1, "{line}");
        assert!((reply.err + &reply.out).contains(text), "{line}");
    }
}

/// A node dies while another fetches. Whoever it is, the fetch ends, and one that follows succeeds:
/// what does not hold of that.
fn die(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let members = ring_with_a_gap(seed);
    let rng = Rng::new(seed);
    if let Some(bug) = bug {
        members.world.plant(bug);
    }
    let ended = begin(&members, LATE);
    members.world.run_for(Duration::from_micros(rng.below(REBUILD_MICROS))).unwrap();
    let victim = 1 + rng.below(NODES.into()) as u8;
    match rng.below(3) {
        0 => members.world.power_cut(members.id(victim)),
        1 => members.world.kill(members.id(victim)),
        _ => {
            let others = (1..=NODES).filter(|n| *n != victim).map(|n| members.id(n)).collect();
            members.world.set_fault(Fault::Partition { a: vec![members.id(victim)], b: others });
            members.world.run_for(Duration::from_secs(30)).unwrap();
            members.world.set_fault(Fault::Heal);
        }
    }
    if !members.world.is_up(members.id(victim)) {
        let serving = &members.nodes[usize::from(victim) - 1].1;
        serving.borrow_mut().take();
        members.world.restart(members.id(victim));
        let there = members.world.run_until(|| serving.borrow().is_some(), PATIENCE);
        there.map_err(|_| format!("{:?}", members.world.exits(members.id(victim))))?;
    }
    members.all_up();
    if victim != LATE {
        members.until("the rebuild ended", || ended.borrow().is_some());
    }
    no_leftovers(&members, LATE)?;
    rebuild(&members, LATE);
    match counts(&members, LATE) {
        counts if counts == [KEYS as u32; 2] => no_leftovers(&members, LATE),
        counts => Err(format!("{counts:?} rows")),
    }
}

/// What came and is not part of a table, or is being removed.
fn no_leftovers(members: &Members, n: u8) -> Result<(), String> {
    let files = files(members, n);
    let left: Vec<_> = files.iter().filter(|path| path.contains("_txn_")).collect();
    if !left.is_empty() {
        return Err(format!("{left:?} is left"));
    }
    // whatever has data and is not read was left too
    let on_disk = files.iter().filter(|path| path.ends_with("-Data.db")).count();
    let client = members.nodes[usize::from(n) - 1].1.borrow().clone().unwrap();
    let engine = client.node.engine();
    let schema = engine.schema();
    let tables = ["a", "b"].map(|name| schema.table("ks", name).unwrap().id);
    let live: usize =
        tables.map(|id| engine.store(id).unwrap().live().tables().len()).into_iter().sum();
    match on_disk == live {
        true => Ok(()),
        false => Err(format!("{on_disk} SSTables on disk, {live} live: {files:?}")),
    }
}

#[test]
fn a_rebuild_in_which_a_node_dies_can_be_repeated() {
    for seed in 1..=WORLDS {
        assert_eq!(die(seed, None), Ok(()), "seed {seed}");
    }
}

#[test]
fn planted_bugs_of_streams_are_found() {
    for bug in ["stream_published_before_sync", "stream_leftovers_stay"] {
        let found = (1..=WORLDS_OF_BUG).any(|seed| die(seed, Some(bug)).is_err());
        assert!(found, "{bug}");
    }
}
