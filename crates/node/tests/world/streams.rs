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
pub(crate) const KEYS: i32 = 300;
/// The node that misses what is written.
pub(crate) const LATE: u8 = 3;
/// Longer than a rebuild takes, which is 120 to 250 ms here.
const REBUILD_MICROS: u64 = 300_000;

/// A ring of which one node missed half of what was written.
pub(crate) fn ring_with_a_gap(seed: u64) -> Members {
    ring_with(seed, &[])
}

/// The same with settings.
fn ring_with(seed: u64, more: &[&str]) -> Members {
    // a node that says nothing any more is given up in seconds, not in minutes
    let patience = ["streaming_keep_alive_period=5s", "internode_streaming_tcp_user_timeout=10s"];
    let members = Members::with(seed, &[patience.as_slice(), more].concat());
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
pub(crate) fn counts(members: &Members, n: u8) -> [u32; 2] {
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
    let said: String = (1..=NODES).map(|n| format!("{n}: {}\n", log(members, n))).collect();
    panic!("seed {}: {}{}\n{said}", members.world.seed(), reply.out, reply.err);
}

pub(crate) fn has_all(members: &Members, n: u8) {
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

/// What a node has said.
pub(crate) fn log(members: &Members, n: u8) -> String {
    let read = "SELECT message FROM system_views.system_logs";
    let (_, cells) = members.at(n, Consistency::One, read).unwrap();
    String::from_utf8_lossy(&cells).into_owned()
}

/// The one plan that a node remembers: its status, and bytes done and in all, coming and going.
fn plan(members: &Members, n: u8) -> Option<(&'static str, [u64; 2], [u64; 2])> {
    let mut plans = members.shard(n).streaming().plans();
    let plan = plans.pop()?;
    assert!(plans.is_empty());
    let (coming, going) = (plan.receiving, plan.sending);
    Some((plan.status.name(), [coming.bytes_done, coming.bytes], [going.bytes_done, going.bytes]))
}

#[test]
fn operators_see_how_far_a_rebuild_is_and_hurry_it() {
    for seed in [2, 3] {
        let slow =
            ["stream_throughput_outbound=10B/s", "entire_sstable_stream_throughput_outbound=10B/s"];
        let members = ring_with(seed, &slow);
        let ended = begin(&members, LATE);
        // past the first line of the log, and until some of it came
        let mut waited = 0;
        while waited < 70 || plan(&members, LATE).is_none_or(|(_, coming, _)| coming[0] == 0) {
            members.world.run_for(Duration::from_secs(10)).unwrap();
            waited += 10;
            assert!(waited < 900, "nothing comes");
        }
        let (status, coming, _) = plan(&members, LATE).unwrap();
        assert_eq!(status, "start");
        assert!(coming[0] < coming[1], "{coming:?}");
        let shown = members.out(LATE, "netstats");
        assert!(shown.contains(" MiB/s") && shown.contains("Already received"), "{shown}");
        let said = log(&members, LATE);
        assert!(said.contains("] Received 0.000MiB of ") && said.contains(" MiB/s, "), "{said}");
        let read = "SELECT bytes_to_receive FROM system_views.streaming WHERE id = ";
        let id = members.shard(LATE).streaming().plans().pop().unwrap().id;
        let (rows, cells) = members.at(LATE, Consistency::One, &format!("{read}{id}")).unwrap();
        assert_eq!(rows, 1);
        assert!(cells.ends_with(&coming[1].to_be_bytes()), "{cells:?}");
        // limits hold of sessions that are under way
        assert!(ended.borrow().is_none());
        for n in 1..=NODES {
            members.out(n, "setstreamthroughput 200");
            members.out(n, "setstreamthroughput -e 24");
        }
        members.world.run_for(Duration::from_secs(5)).unwrap();
        assert!(matches!(&*ended.borrow(), Some((0, _))), "{:?}", ended.borrow());
        let (status, coming, going) = plan(&members, LATE).unwrap();
        assert_eq!((status, going), ("success", [0, 0]));
        assert_eq!(coming[0], coming[1]);
        let all: Vec<_> = [1, 2].into_iter().filter_map(|n| plan(&members, n)).collect();
        assert!(all.iter().all(|(status, _, [done, sum])| *status == "success" && done == sum));
        assert_eq!(all.iter().map(|(_, _, [done, _])| done).sum::<u64>(), coming[0]);
        let said = log(&members, LATE);
        assert!(said.contains(" in ") && said.contains("] Received "), "{said}");
        has_all(&members, LATE);
    }
}

#[test]
fn several_sessions_share_a_rebuild() {
    let members = ring_with(4, &["streaming_connections_per_host=3"]);
    let reply = members.verb(LATE, "rebuild");
    assert_eq!(reply.exit, 0, "{}{}", reply.out, reply.err);
    assert!(log(&members, 1).contains(" ID#1] "), "a second session with a node");
    has_all(&members, LATE);
}

#[test]
fn a_file_that_is_not_acknowledged_in_time_ends_its_session() {
    let members = ring_with(5, &["stream_transfer_task_timeout=20s"]);
    members.world.plant("stream_acknowledges_nothing");
    let ended = begin(&members, LATE);
    members.until("the rebuild ended", || ended.borrow().is_some());
    assert!(matches!(&*ended.borrow(), Some((exit, _)) if *exit != 0), "{:?}", ended.borrow());
    assert!(log(&members, 1).contains("Session timed out"), "{}", log(&members, 1));
}

/// Records that a node's first shard has in its commit log.
fn logged(members: &Members, n: u8) -> u64 {
    let node = members.shard(n);
    node.engine().log().unwrap().stats.records.get()
}

/// Does what comes of a table with change data capture go through the log, and is all of it there?
fn captures(seed: u64, bug: Option<&'static str>) -> Result<(), String> {
    let members = ring_with(seed, &["cdc_enabled=true"]);
    for table in ["a", "b"] {
        members.statement(1, format!("ALTER TABLE ks.{table} WITH cdc = true"));
    }
    members.one_schema();
    if let Some(bug) = bug {
        members.world.plant(bug);
    }
    let before = logged(&members, LATE);
    rebuild(&members, LATE);
    has_all(&members, LATE);
    no_leftovers(&members, LATE)?;
    // a partition is one record at least, and the shard has about half of those of two tables
    match logged(&members, LATE) - before {
        records if records >= KEYS as u64 / 2 => Ok(()),
        records => Err(format!("{records} records")),
    }
}

#[test]
fn what_comes_of_captured_tables_goes_through_the_log() {
    for seed in 6..=7 {
        assert_eq!(captures(seed, None), Ok(()), "seed {seed}");
    }
    assert!(captures(6, Some("stream_passes_cdc_by")).is_err());
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
pub(crate) fn no_leftovers(members: &Members, n: u8) -> Result<(), String> {
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
