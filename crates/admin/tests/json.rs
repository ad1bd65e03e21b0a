//! Values in JSON: each comes back as it was, and its form is stable.

use crate::common;

use admin::{
    HintedNode, Outcome, PartitionHistograms, PastCompaction, PendingHints, PendingTasks,
    Percentiles, Reply, RunningCompaction, Shown, Sizes, SnapshotDetails, TableHistograms, Verb,
    help,
};
use common::{Fake, answer, say_with};

/// A command line for each verb that shows something, and for each of its forms.
const SHOWING: &[&str] = &[
    "bootstrap resume -f",
    "decommission",
    "decommission --force",
    "removenode status",
    "removenode force",
    "clientstats",
    "clientstats --all --client-options",
    "clientstats --by-protocol",
    "compactionhistory",
    "compactionhistory -F yaml",
    "getcolumnindexsize",
    "getdefaultrf",
    "compactionstats",
    "compactionstats -H",
    "compactionstats -V",
    "cleanup -j 3",
    "datapaths system.a system.b",
    "datapaths",
    "datapaths -F json system.a",
    "describecluster",
    "-pp describecluster",
    "describering ks",
    "-pp describering ks",
    "doctor",
    "doctor --json",
    "failuredetector",
    "garbagecollect -j 3",
    "getauditlog",
    "getauthcacheconfig --cache-name RolesCache",
    "getcompactionthreshold ks t",
    "getcompactionthroughput",
    "getcompactionthroughput -d",
    "getconcurrentcompactors",
    "getendpoints ks t 1",
    "getfullquerylog",
    "getguardrailsconfig",
    "getguardrailsconfig --expand",
    "getguardrailsconfig -c flags",
    "getguardrailsconfig keyspaces_threshold",
    "getlogginglevels",
    "getmaxhintwindow",
    "getseeds",
    "getsstables system local 1",
    "getsstables -l system local 1",
    "gettimeout counterwrite",
    "gettraceprobability",
    "gossipinfo",
    "-pp gossipinfo",
    "import ks t /a /bad",
    "import -q ks t /a",
    "info",
    "info -T",
    "iostats",
    "iostats -F json",
    "iostats -s 5 -F json --windows",
    "listpendinghints",
    "-pp listpendinghints",
    "listsnapshots",
    "listsnapshots -e",
    "netstats",
    "getstreamthroughput",
    "getinterdcstreamthroughput -m",
    "plan add --nodes 2 --rack r2 --tokens 4",
    "plan decommission",
    "plan failures --tokens 1",
    "profileload 500",
    "profileload -l",
    "profileload -i 500 k1 t 500",
    "profileload -t k1 t",
    "proxyhistograms",
    "rangekeysample",
    "reloadseeds",
    "repair",
    "repair system",
    "repair_admin",
    "repair_admin list -a",
    "repair_admin cleanup",
    "repair_admin summarize-pending -v",
    "repair_admin summarize-repaired -v",
    "ring",
    "-pp ring ks",
    "scrub -j 3 system",
    "snapshot -t two --ttl 1h ks",
    "status",
    "-pp status",
    "statusautocompaction",
    "statusautocompaction -a",
    "statusbackup",
    "statusbinary",
    "statusgossip",
    "statushandoff",
    "tablehistograms",
    "tablestats",
    "tablestats -H system.local",
    "tablestats -F json",
    "tablestats -s writes -t 2",
    "toppartitions k1 t 500",
    "tpstats",
    "tpstats -F yaml",
    "version",
    "version -v",
];

/// Verbs that only do something.
const DOING: &[&str] = &[
    "assassinate 10.0.0.1",
    "rebuild -ks ks -ts (1,2] dc1",
    "setstreamthroughput -m 10",
    "setinterdcstreamthroughput -e 0",
    "clearsnapshot --all",
    "compact",
    "disableauditlog",
    "disableautocompaction",
    "disablebackup",
    "disablebinary",
    "disablefullquerylog",
    "disablegossip",
    "disablehandoff",
    "disableoldprotocolversions",
    "enableoldprotocolversions",
    "replaybatchlog",
    "setauthcacheconfig --cache-name RolesCache --max-entries 5",
    "setdefaultrf 3",
    "disablehintsfordc dc2",
    "drain",
    "enableauditlog --included-users a --blocking true",
    "enableautocompaction",
    "enablebackup",
    "enablebinary",
    "enablefullquerylog --path /a",
    "enablegossip",
    "enablehandoff",
    "enablehintsfordc dc2",
    "flush",
    "join",
    "move 7",
    "repair_admin cancel -s 00000000-0000-0000-0000-000000000001",
    "removenode 00000000-0000-0000-0000-000000000001",
    "invalidatecountercache",
    "invalidatekeycache",
    "clientstats --clear-history",
    "getsnapshotthrottle",
    "invalidatecredentialscache",
    "invalidatepermissionscache",
    "invalidaterolescache a",
    "reloadssl",
    "invalidaterowcache",
    "pausehandoff",
    "refresh ks t",
    "refreshsizeestimates",
    "relocatesstables",
    "resetfullquerylog",
    "resumehandoff",
    "setcachecapacity 1 2 3",
    "setcachekeystosave 1 2 3",
    "setcompactionthreshold ks t 4 32",
    "setcompactionthroughput 16",
    "setconcurrentcompactors 2",
    "setguardrailsconfig keyspaces_threshold 20 5",
    "sethintedhandoffthrottlekb 2",
    "setlogginglevel org.apache.cassandra.gms DEBUG",
    "setmaxhintwindow 5000",
    "settimeout read 7",
    "settraceprobability 0.5",
    "stop",
    "stopdaemon",
    "truncatehints",
    "upgradesstables",
    "verify -f",
];

/// A node that has something to show to every verb.
fn full() -> Fake {
    let fake = Fake::default();
    fake.past.borrow_mut().push(PastCompaction {
        id: "548aeaa0-e648-11f1-a6ec-41098330686a".to_owned(),
        keyspace: "system_schema".to_owned(),
        table: "keyspaces".to_owned(),
        compacted_at_millis: 1_795_333_375_904,
        in_bytes: 629,
        out_bytes: 272,
        rows_merged: "{1:5, 4:1}".to_owned(),
        properties: "{compaction_type:Compaction}".to_owned(),
    });
    let mut stats = common::compaction_stats();
    stats.pending = vec![PendingTasks { keyspace: "ks".into(), table: "t".into(), tasks: 3 }];
    stats.running.push(RunningCompaction {
        id: "b5b2e5c0-0000-11f1-8000-000000000000".into(),
        kind: "Compaction".into(),
        keyspace: "ks".into(),
        table: "t".into(),
        completed: 1 << 30,
        total: 3 << 30,
        total_compressed: None,
        unit: "bytes".into(),
        sstables: 4,
        directory: "/d".into(),
    });
    *fake.compactions.borrow_mut() = Some(stats);
    let node = HintedNode {
        address: "127.0.0.2:7000".parse().unwrap(),
        data_center: "dc2".into(),
        rack: "r".into(),
        is_up: true,
    };
    let hints = |node| PendingHints {
        host_id: "5c3b3720-e5dd-41f1-9a15-1b96078e4459".into(),
        node,
        files: 2,
        newest_millis: 1_700_000_000_123,
        oldest_millis: 1_700_000_000_000,
    };
    *fake.hints.borrow_mut() = vec![hints(Some(node)), hints(None)];
    let unknown = Percentiles { p50: f64::NAN, ..Percentiles::default() };
    let measured = Percentiles::from([1.5, 2.25, 1.0 / 3.0, 4.0, 5.0, 0.1, 6.0]);
    let of = |table: &str, partitions| TableHistograms {
        keyspace: "ks".into(),
        table: table.into(),
        read_micros: measured,
        write_micros: measured,
        sstables_per_read: measured,
        partitions,
    };
    let partitions = PartitionHistograms {
        bytes: Sizes { percentiles: measured, beyond: None },
        cells: Sizes { percentiles: unknown, beyond: Some(1 << 40) },
    };
    *fake.histograms.borrow_mut() = vec![of("a", Some(partitions)), of("b", None)];
    let snapshot = |name: &str, expires_at_millis| SnapshotDetails {
        name: name.to_owned(),
        keyspace: "ks".to_owned(),
        table: "t".to_owned(),
        true_size_bytes: 1280,
        own_tables_bytes: 1000,
        size_on_disk_bytes: 6370,
        created_at_millis: Some(1_795_333_384_978),
        expires_at_millis,
        ephemeral: false,
    };
    *fake.snapshots.borrow_mut() =
        vec![snapshot("four", None), snapshot("two", Some(1_795_336_984_978))];
    *fake.seeds_after_reload.borrow_mut() = Some(vec![([127, 0, 0, 2], 7000).into()]);
    fake
}

fn json_of(line: &str) -> Reply {
    say_with(full(), &format!("--format json {line}")).0
}

fn verb_of(line: &str) -> Verb {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Verb::parse(&words).unwrap()
}

fn name_of(line: &str) -> &str {
    line.split_whitespace().find(|word| *word != "-pp").unwrap()
}

#[test]
fn every_value_comes_back_from_json_and_prints_the_same() {
    for line in SHOWING {
        let verb = verb_of(line);
        let (outcome, _) = answer(full(), verb.clone());
        let before = Reply::text(&verb, &outcome).unwrap();
        let json = json_of(line);
        let shown: Shown =
            serde_json::from_str(&json.out).unwrap_or_else(|e| panic!("{line}: {e}: {}", json.out));
        let after = Reply::text(&verb, &Outcome::shown(shown)).unwrap();
        assert_eq!(after, before, "{line}: {}", json.out);
        assert!(!before.out.is_empty() || before.exit == 1, "{line} shows nothing");
        assert_eq!((json.err, json.exit), (before.err, before.exit), "{line}");
        assert_eq!(say_with(full(), line).0, after, "{line}: by the way of the socket");
    }
}

#[test]
fn what_shows_nothing_prints_no_json() {
    for line in DOING {
        assert_eq!(json_of(line), Reply::default(), "{line}");
    }
}

#[test]
fn every_verb_either_shows_or_does() {
    let overview = help(None);
    let verbs = overview.lines().skip_while(|line| *line != "The commands are:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty());
    let mut served: Vec<&str> = verbs.filter_map(|line| line.split_whitespace().next()).collect();
    let mut here: Vec<&str> = SHOWING.iter().chain(DOING).map(|line| name_of(line)).collect();
    served.sort_unstable();
    here.sort_unstable();
    here.dedup();
    assert_eq!(here, served);
}

#[test]
fn names_of_fields_are_plain_words() {
    fn look(value: &serde_json::Value, line: &str) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let is_plain =
                        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                    assert!(name.chars().all(is_plain), "{line}: {name}");
                    look(value, line);
                }
            }
            serde_json::Value::Array(all) => all.iter().for_each(|value| look(value, line)),
            _ => {}
        }
    }
    for line in SHOWING {
        let value: serde_json::Value = serde_json::from_str(&json_of(line).out).unwrap();
        assert_eq!(value.as_object().map(|fields| fields.len()), Some(1), "{line}: one kind");
        look(&value, line);
    }
}

#[test]
fn forms_are_stable() {
    let of = |line: &str| say_with(Fake::default(), &format!("--format json {line}")).0.out;
    assert_eq!(of("status"), include_str!("../testdata/nodetool/status.json"));
    assert_eq!(of("info"), include_str!("../testdata/nodetool/info.json"));
    assert_eq!(of("tablestats system.local"), include_str!("../testdata/nodetool/tablestats.json"));
    let stats = json_of("compactionstats").out;
    assert_eq!(stats, include_str!("../testdata/nodetool/compactionstats.json"));
    assert_eq!(of("tpstats"), include_str!("../testdata/nodetool/tpstats.json"));
    assert_eq!(of("plan add"), include_str!("../testdata/nodetool/plan.json"));
}

#[test]
fn what_was_refused_is_said_on_standard_error() {
    let text = say_with(full(), "snapshot -t there ks").0;
    let json = json_of("snapshot -t there ks");
    assert_eq!((json.out.as_str(), json.exit), ("", 2));
    assert_eq!(json.err, text.out + &text.err);
    let json = json_of("getcompactionthreshold ks nosuch");
    assert_eq!((json.exit, json.err.as_str()), (1, "ColumnFamilyStore for ks/nosuch not found.\n"));
}
