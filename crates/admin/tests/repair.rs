//! `repair` and `repair_admin` against what nodetool 5.0.9 printed
//! (`conformance/repair-verbs/recorded`).
#![allow(clippy::disallowed_methods, reason = "reads recordings")]

use crate::common;

use std::path::Path;
use std::rc::Rc;

use admin::{
    Command, PendingRepair, PendingStats, Refusal, RepairCleanup, RepairEnd, RepairEvent,
    RepairEventKind, RepairSession, RepairStats, RepairedSection, Reply, VerbError,
};
use common::repair::{AT_MILLIS, Script, event};
use common::{Fake, say_with};

const FOLDER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/repair-verbs/recorded");
/// What stands in a recording in place of a time.
const TIME: &str = "[TIME] ";
/// How long `[2026-11-22 07:42:55,904] ` is.
const TIME_LEN: usize = 26;
const MILLIS: &str = "MILLIS_OF_NOW";
/// Recordings at least: a folder that is not there is no success.
const RECORDED_MIN: usize = 70;

/// A command line and what came of it.
#[derive(Debug, PartialEq, Eq)]
struct Recorded {
    line: String,
    out: String,
    err: String,
    exit: u8,
}

impl Recorded {
    fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(Path::new(FOLDER).join(name).with_extension("txt"));
        let text = text.unwrap_or_else(|e| panic!("{name}: {e}"));
        let (line, rest) = text.strip_prefix("$ nodetool ").unwrap().split_once('\n').unwrap();
        let (rest, exit) = rest.rsplit_once("--- exit code ").unwrap();
        let (out, err) = rest.split_once("--- standard error\n").unwrap_or((rest, ""));
        // ours prints no stack trace
        let err = err.split("-- StackTrace --\n").next().unwrap();
        Self {
            line: line.to_owned(),
            out: out.to_owned(),
            err: err.to_owned(),
            exit: exit.trim_end().parse().unwrap(),
        }
    }

    fn all(prefix: &str) -> Vec<(String, Self)> {
        let names = std::fs::read_dir(FOLDER).unwrap().map(|of| of.unwrap().path());
        let names = names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        let all = names.map(|name| (name.clone(), Self::read(&name)));
        let mut all: Vec<_> = all.filter(|(_, of)| of.line.starts_with(prefix)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn of(line: &str, reply: Reply) -> Self {
        let out = reply.out.split_inclusive('\n').map(|line| match line.get(TIME_LEN..) {
            Some(message) if line.starts_with("[20") => format!("{TIME}{message}"),
            _ => line.to_owned(),
        });
        Self { line: line.to_owned(), out: out.collect(), err: reply.err, exit: reply.exit }
    }
}

/// What a node said of which nodetool printed these messages: by keyspace, in their order.
fn scripts(recorded: &Recorded) -> Vec<(String, Script)> {
    let mut scripts: Vec<(String, Script)> = Vec::new();
    let mut messages =
        recorded.out.split(TIME).skip(1).map(|of| of.strip_suffix('\n').unwrap()).peekable();
    let keyspaces = ["system_traces", "system_auth", "rf1", "rf2", "empty", "system"];
    while let Some(first) = messages.peek().copied() {
        let mut message = messages.next();
        if first.starts_with("Replication factor is 1") {
            continue;
        }
        let (mut events, mut end) = (Vec::new(), None);
        while let Some(said) = message {
            if said.starts_with("condition satisfied") {
                let state = said.rsplit(' ').next().unwrap();
                let mut ends = vec![messages.next().unwrap().to_owned()];
                if state == "failed." {
                    ends.extend(messages.next().map(str::to_owned));
                }
                end = Some(RepairEnd { has_failed: state == "failed.", messages: ends });
                break;
            }
            events.push(event_of(said));
            message = messages.next();
        }
        let failed = || RepairEnd { has_failed: true, messages: vec!["unseen".to_owned()] };
        let end = end.unwrap_or_else(failed);
        let named = |name: &&str| {
            let ends = [format!("keyspace {name} with"), format!(": {name}")];
            let of = |text: &str| text.contains(&ends[0]) || text.ends_with(&ends[1]);
            events.iter().any(|of_event: &RepairEvent| of(&of_event.message))
        };
        let keyspace = keyspaces.iter().find(|name| named(name)).copied();
        // where nodetool lost the first event, the command line names it
        let keyspace = keyspace.unwrap_or("rf2").to_owned();
        scripts.push((keyspace, Script::Runs(events, Some(end))));
    }
    match recorded.err.strip_prefix("error: ") {
        Some(why) if scripts.is_empty() => {
            let refused = Script::Refused(Refusal::BadUse(why.trim_end().to_owned()));
            vec![("rf1".to_owned(), refused.clone()), ("rf2".to_owned(), refused)]
        }
        _ => scripts,
    }
}

fn event_of(message: &str) -> RepairEvent {
    use RepairEventKind::{Complete, Error, Notification, Progress, Start};
    if let Some((message, progress)) = message.rsplit_once(" (progress: ") {
        assert_eq!(progress, "57%)", "the fourth of seven states");
        return event(Progress, message, 4, 7);
    }
    let kind = match message {
        _ if message.starts_with("Starting repair command") => Start,
        _ if message.starts_with("Repair command #N failed with error") => Error,
        _ if message.starts_with("Repair command #N finished") => Complete,
        _ => Notification,
    };
    event(kind, message, 0, 7)
}

fn fake(scripts: Vec<(String, Script)>) -> Fake {
    let fake = Fake::default();
    *fake.keyspaces.borrow_mut() = vec![
        ("rf1", "NetworkTopologyStrategy {datacenter1=1}"),
        ("rf2", "NetworkTopologyStrategy {datacenter1=2}"),
        ("empty", "NetworkTopologyStrategy {datacenter1=2}"),
    ];
    fake.repairs.scripts.borrow_mut().extend(scripts);
    fake
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn refused(line: &str, error: &VerbError) -> Recorded {
    Recorded {
        line: line.to_owned(),
        out: error.text(),
        err: String::new(),
        exit: error.exit_code(),
    }
}

#[test]
fn repairs_print_what_cassandra_prints() {
    let all = Recorded::all("repair ");
    for (name, recorded) in &all {
        let said = match Command::parse(&words(&recorded.line)) {
            Err(error) => refused(&recorded.line, &error),
            Ok(_) => {
                let fake = fake(scripts(recorded));
                Recorded::of(&recorded.line, say_with(fake, &recorded.line).0)
            }
        };
        assert_eq!(&said, recorded, "{name}");
    }
    assert!(all.len() + Recorded::all("repair_admin").len() >= RECORDED_MIN);
}

/// Those that a node answers without any data, and those that are not asked at all.
#[test]
fn options_of_sessions_are_refused_as_cassandra_does() {
    for (name, recorded) in Recorded::all("repair_admin") {
        if let Err(error) = Command::parse(&words(&recorded.line)) {
            assert_eq!(refused(&recorded.line, &error), recorded, "{name}");
        }
    }
    for name in [
        "admin-bogus",
        "admin-bogus-option",
        "admin-list-arguments",
        "admin-option-before-subcommand",
        "admin-cancel-nothing",
    ] {
        assert!(Command::parse(&words(&Recorded::read(name).line)).is_err(), "{name}");
    }
}

/// What a table of Cassandra's shows, if its masks were figures.
fn table(name: &str, said: impl FnOnce(&Fake)) {
    let recorded = Recorded::read(name);
    let fake = Fake::default();
    said(&fake);
    let (reply, _) = say_with(fake, &recorded.line);
    let out = recorded.out.replace(MILLIS, &AT_MILLIS.to_string());
    assert_eq!((mask_idle(&reply.out), reply.exit), (out, recorded.exit), "{name}");
}

/// The text with `N` for each digit of the seconds since something became of a session.
fn mask_idle(text: &str) -> String {
    let mut masked = String::new();
    for (n, part) in text.split(" (s)").enumerate() {
        masked.push_str(if n == 0 { "" } else { " (s)" });
        let kept = part.trim_end_matches(|c: char| c.is_ascii_digit());
        masked.push_str(kept);
        let is_behind_bar = kept.ends_with("| ");
        let rest = &part[kept.len()..];
        masked.extend(rest.chars().map(|c| if is_behind_bar { 'N' } else { c }));
    }
    masked
}

/// Seconds of as many digits as a recording masked, of each session.
fn idle_of(name: &str) -> Vec<i64> {
    let out = Recorded::read(name).out;
    let masks = out.lines().filter_map(|line| line.split_once(" (s)")).map(|(before, _)| before);
    let digits = masks.map(|mask| mask.chars().rev().take_while(|c| *c == 'N').count());
    digits.map(|digits| 10i64.pow(u32::try_from(digits).unwrap() - 1)).collect()
}

fn session(number: u8, state: &str, idle_seconds: i64) -> RepairSession {
    let node = |last| ([127, 0, 7, last], 7000).into();
    RepairSession {
        id: id(number),
        state: state.to_owned(),
        started_unix_seconds: 1_795_333_375,
        updated_unix_seconds: 1_795_333_375,
        idle_seconds,
        coordinator: node(1),
        participants: vec![node(1), node(2)],
        tables: vec!["rf2.same".to_owned()],
    }
}

fn id(number: u8) -> String {
    format!("00000000-0000-0000-0000-{number:012}")
}

fn section(start: i64, end: i64, repaired_unix_millis: i64) -> RepairedSection {
    RepairedSection { start: start.to_string(), end: end.to_string(), repaired_unix_millis }
}

fn stats(table: &str, min: i64, sections: Vec<RepairedSection>) -> RepairStats {
    RepairStats {
        keyspace: "rf2".to_owned(),
        table: table.to_owned(),
        min_repaired_unix_millis: min,
        max_repaired_unix_millis: AT_MILLIS,
        sections,
    }
}

#[test]
fn sessions_stand_in_cassandras_tables() {
    table("admin-nothing-list", |_| {});
    for (name, states) in [
        ("admin-after-list-all", &["FINALIZED", "FINALIZED"][..]),
        ("admin-running-list", &["PREPARED"]),
        ("admin-cancelled-list-all", &["FINALIZED", "FINALIZED", "FAILED"]),
    ] {
        let idle = idle_of(name);
        assert_eq!(idle.len(), states.len(), "{name}");
        let all = (1..).zip(states.iter().zip(idle));
        let all = all.map(|(number, (state, idle))| session(number, state, idle)).collect();
        table(name, |fake| *fake.repairs.sessions.borrow_mut() = all);
    }
    // the node answers in any order
    let of = |name: &str| PendingStats {
        keyspace: "rf2".to_owned(),
        table: name.to_owned(),
        ..PendingStats::default()
    };
    let both = |fake: &Fake| *fake.repairs.pending.borrow_mut() = vec![of("same"), of("differing")];
    table("admin-after-pending", both);
    table("admin-after-pending-verbose", |fake| fake.repairs.pending.borrow_mut().push(of("same")));
    let whole = section(i64::MIN, i64::MIN, AT_MILLIS);
    let part = vec![section(0, 10i64.pow(18), AT_MILLIS), section(10i64.pow(18), 0, 0)];
    let all = vec![stats("same", AT_MILLIS, vec![whole]), stats("differing", 0, part)];
    let repaired = |fake: &Fake| *fake.repairs.stats.borrow_mut() = all.clone();
    table("admin-after-repaired", repaired);
    table("admin-after-repaired-verbose", repaired);
    let cleaned = |name: &str| RepairCleanup {
        keyspace: "rf2".to_owned(),
        table: name.to_owned(),
        ..RepairCleanup::default()
    };
    let both = |fake: &Fake| {
        *fake.repairs.cleanups.borrow_mut() = vec![cleaned("same"), cleaned("differing")];
    };
    table("admin-after-cleanup", both);
    table("admin-cancelled-cleanup", |fake| {
        let one = RepairCleanup { successful: vec![id(1)], ..cleaned("same") };
        fake.repairs.cleanups.borrow_mut().push(one);
    });
}

#[test]
fn tables_have_each_figure_of_its_own() {
    let fake = Fake::default();
    let waits = |bytes, sessions: &[u8]| PendingRepair {
        bytes,
        sstables: bytes / 100,
        sessions: sessions.iter().copied().map(id).collect(),
    };
    fake.repairs.pending.borrow_mut().push(PendingStats {
        keyspace: "ks".to_owned(),
        table: "t".to_owned(),
        total: waits(600, &[1, 2, 3]),
        pending: waits(100, &[1]),
        finalized: waits(200, &[2]),
        failed: waits(300, &[3]),
    });
    let out = say_with(fake, "repair_admin summarize-pending -v").0.out;
    let row = "ks       | t     | 600 bytes (6 sstables / 3 sessions) | 100 bytes (1 sstables / 1 \
               sessions) | 200 bytes (2 sstables / 1 sessions) \
               | 300 bytes (3 sstables / 1 sessions)\n";
    assert!(out.ends_with(row), "{out}");
    let fake = Fake::default();
    fake.repairs.cleanups.borrow_mut().push(RepairCleanup {
        keyspace: "ks".to_owned(),
        table: "t".to_owned(),
        successful: vec![id(1), id(2)],
        unsuccessful: vec![id(3)],
    });
    let (reply, done) = say_with(fake, "repair_admin cleanup -f -st 1 ks t");
    assert_eq!(
        reply.out,
        "Cleaning up data from completed sessions...\n\
         Some tables couldn't be cleaned up completely\n\
         keyspace | table | successful sessions | unsuccessful sessions\n\
         ks       | t     | 2                   | 1                    \n"
    );
    let scope = "RepairScope { keyspace: Some(\"ks\"), tables: [\"t\"], range: Some(\"1:\") }";
    assert_eq!(done, [format!("clean up {scope} true")]);
    assert_eq!(say_with(Fake::default(), "repair_admin summarize-repaired").0.out, "no stats\n");
    let (reply, done) = say_with(Fake::default(), "repair_admin list --all -st -5 -et 5");
    assert_eq!(
        (reply.out.as_str(), done),
        ("no sessions\n", vec!["sessions true Some(\"-5:5\")".to_owned()])
    );
    let (reply, done) = say_with(Fake::default(), "repair_admin cancel --session abc -f");
    assert_eq!((reply, done), (Reply::default(), vec!["cancel abc true".to_owned()]));
    let (reply, _) = say_with(Fake::default(), "repair_admin cancel -s nosuch");
    assert_eq!(reply.exit, 1);
    assert!(reply.out.starts_with("nodetool: Session {} does not exist [nosuch]\n"));
}

/// The map that the node gets, as `key=value`.
fn options(line: &str) -> String {
    let fake = fake(vec![("rf2".to_owned(), Script::Refused(Refusal::Failed(String::new())))]);
    let said = Rc::new(fake);
    let orders = common::orders(said, line);
    let [order] = orders.as_slice() else { panic!("{line}: {orders:?}") };
    assert_eq!(order.keyspace, "rf2");
    order.options.iter().map(|(key, value)| format!("{key}={value} ")).collect()
}

#[test]
fn options_are_cassandras_own() {
    let plain = "columnFamilies= dataCenters= forceRepair=false hosts= \
                 ignoreUnreplicatedKeyspaces=false incremental=true jobThreads=1 \
                 optimiseStreams=false parallelism=parallel paxosOnly=false previewKind=NONE \
                 primaryRange=false pullRepair=false repairPaxos=true trace=false ";
    assert_eq!(options("repair rf2"), plain);
    let swap = |pairs: &[(&str, &str)]| {
        pairs.iter().fold(plain.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        })
    };
    let full = ("incremental=true", "incremental=false");
    let no_paxos = ("repairPaxos=true", "repairPaxos=false");
    for (line, pairs) in [
        ("-full", &[full][..]),
        ("--sequential -dcpar", &[("=parallel", "=sequential")]),
        ("--dc-parallel", &[("=parallel", "=dc_parallel")]),
        ("-local -dc gr\u{f6}\u{df}e", &[("dataCenters=", "dataCenters=datacenter1")]),
        (
            "-dc gr\u{f6}\u{df}e --in-dc \u{1f40d}",
            &[("dataCenters=", "dataCenters=gr\u{f6}\u{df}e,\u{1f40d}")],
        ),
        ("-hosts a --in-hosts b", &[("hosts=", "hosts=a,b")]),
        ("-pr -force", &[("Range=false", "Range=true"), ("Repair=false", "Repair=true")]),
        ("-prv", &[("NONE", "UNREPAIRED"), no_paxos]),
        ("-prv -full", &[("NONE", "ALL"), no_paxos, full]),
        ("--validate -full -prv", &[("NONE", "REPAIRED"), no_paxos, full]),
        ("-paxos-only", &[("Only=false", "Only=true"), full]),
        ("-paxos-only -prv", &[("NONE", "UNREPAIRED"), no_paxos]),
        ("-skip-paxos", &[no_paxos]),
        ("-tr -os", &[("trace=false", "trace=true"), ("Streams=false", "Streams=true")]),
        ("-iuk -j 3", &[("Keyspaces=false", "Keyspaces=true"), ("Threads=1", "Threads=3")]),
        ("-st 5", &[("repairPaxos", "ranges=5: repairPaxos")]),
        ("-et -7 -st -9", &[("repairPaxos", "ranges=-9:-7 repairPaxos")]),
    ] {
        let expected = match line {
            // two options end alike: only one of them is meant
            "-pr -force" => swap(pairs).replace("pullRepair=true", "pullRepair=false"),
            _ => swap(pairs),
        };
        assert_eq!(options(&format!("repair {line} rf2")), expected, "{line}");
    }
    let pull = "repair rf2 t \u{e4} -pl";
    assert!(options(pull).contains("columnFamilies=t,\u{e4} "), "{}", options(pull));
    assert!(options(pull).contains("pullRepair=true"));
}

#[test]
fn all_keyspaces_but_local_ones_and_one() {
    let orders = common::orders(Rc::new(fake(Vec::new())), "repair -full");
    let names: Vec<_> = orders.iter().map(|of| of.keyspace.as_str()).collect();
    assert_eq!(names, ["system_traces", "system_auth", "rf1", "rf2", "empty"]);
    let orders = common::orders(Rc::new(fake(Vec::new())), "repair system_distributed");
    assert_eq!(orders.len(), 1);
    // the node is not asked for what would leave ranges out
    for line in ["repair -pr -dc datacenter1", "repair -pr -hosts 127.0.7.1 rf2"] {
        assert!(common::orders(Rc::new(fake(Vec::new())), line).is_empty(), "{line}");
    }
    // what comes behind one that fails is not begun
    let fails = Script::Refused(Refusal::BadUse("no".to_owned()));
    let failing = fake(vec![("rf1".to_owned(), fails)]);
    let orders = common::orders(Rc::new(failing), "repair");
    assert_eq!(orders.last().map(|of| of.keyspace.as_str()), Some("rf1"));
}

fn long() -> Vec<RepairEvent> {
    use RepairEventKind::{Complete, Error, Progress, Start, Success};
    vec![
        event(Start, "Starting repair command #1", 0, 7),
        event(Progress, "Repair session 1 for range [gr\u{f6}\u{df}e] finished", 6, 7),
        event(Error, "one", 4, 7),
        event(Success, "so\nfar", 4, 0),
        event(Progress, "nothing of nothing", 3, 0),
        event(Error, "two", 4, 7),
        event(Complete, "Repair command #1 finished with error", 7, 7),
    ]
}

#[test]
fn json_has_the_events_and_the_end_in_however_many_parts() {
    let end = || RepairEnd { has_failed: true, messages: vec!["why".to_owned()] };
    let of = |batch: usize, line: &str| {
        let fake = fake(vec![("rf2".to_owned(), Script::Runs(long(), Some(end())))]);
        fake.repairs.batch.set(batch);
        say_with(fake, line).0
    };
    let text = of(2, "repair rf2");
    assert_eq!(
        text.out,
        "[2026-11-22 07:42:55,904] Starting repair command #1\n\
         [2026-11-22 07:42:55,904] Repair session 1 for range [gr\u{f6}\u{df}e] finished \
         (progress: 85%)\n\
         [2026-11-22 07:42:55,904] one\n\
         [2026-11-22 07:42:55,904] so\nfar\n\
         [2026-11-22 07:42:55,904] nothing of nothing (progress: 0%)\n\
         [2026-11-22 07:42:55,904] two\n\
         [2026-11-22 07:42:55,904] Repair command #1 finished with error\n"
    );
    let error = "error: Repair job has failed with the error message: two. Check the logs on the \
                 repair participants for further details\n";
    assert_eq!((text.exit, text.err.as_str()), (2, error));
    let json = |batch| {
        let reply = of(batch, "--format json repair rf2");
        assert_eq!((reply.exit, reply.err.as_str()), (2, error));
        let mut value: serde_json::Value = serde_json::from_str(&reply.out).unwrap();
        let repair = value["repairs"][0].as_object_mut().unwrap();
        assert!(repair.remove("at_unix_millis").unwrap().is_i64());
        value
    };
    assert_eq!(json(1), json(100));
    let value = json(3);
    assert_eq!(value["repairs"].as_array().map(Vec::len), Some(1));
    assert_eq!(value["repairs"][0]["events"].as_array().map(Vec::len), Some(7));
    assert_eq!(value["repairs"][0]["end"]["messages"][0], "why");
    assert_eq!(value["repairs"][0]["events"][1]["kind"], "progress");
}

#[test]
fn a_failure_that_no_event_tells_is_found_at_the_end() {
    let complete = event(RepairEventKind::Complete, "Repair command #1 finished with error", 7, 7);
    let messages = vec!["Some repair failed".to_owned(), "finished".to_owned()];
    let end = RepairEnd { has_failed: true, messages };
    let fake = fake(vec![("rf2".to_owned(), Script::Runs(vec![complete], Some(end)))]);
    let (reply, _) = say_with(fake, "repair rf2");
    let lines: Vec<_> = reply.out.lines().map(|line| &line[TIME_LEN..]).collect();
    assert_eq!(
        lines,
        [
            "Repair command #1 finished with error",
            "condition satisfied queried for parent session status and discovered repair failed.",
            "Some repair failed",
            "finished"
        ]
    );
    assert_eq!((reply.exit, reply.err.as_str()), (2, "error: Some repair failed\n"));
}

#[test]
fn a_repair_is_watched_again_by_its_number() {
    let (reply, _) = say_with(Fake::default(), "repair --watch 7");
    assert_eq!(reply.exit, 1);
    assert!(reply.out.starts_with("nodetool: There is no repair command #7\n"), "{}", reply.out);
    for (line, why) in [
        ("repair --watch", "Required values for option 'command' not provided"),
        ("repair --watch x", "--watch must be the number of a repair command, not x"),
        ("repair --watch 0", "--watch must be the number of a repair command, not 0"),
        ("repair --watch 7 ks", "Found unexpected parameters: [ks]"),
    ] {
        let error = Command::parse(&words(line)).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().as_str()), (1, why), "{line}");
    }
}
