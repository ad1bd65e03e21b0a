//! What verbs print, against what nodetool 5.0.9 printed.

use crate::common;

use admin::{
    Life, Liveness, PastCompaction, PendingTasks, Reply, RingNode, RunningCompaction,
    SnapshotDetails,
};
use common::{Fake, say_with};

fn say(line: &str) -> (Reply, Vec<String>) {
    say_with(Fake::default(), line)
}

/// Runs a verb that must succeed, and gives its text.
fn out(line: &str) -> String {
    let (reply, _) = say(line);
    assert_eq!((reply.exit, reply.err.as_str()), (0, ""), "{line}: {}", reply.out);
    reply.out
}

#[test]
fn prints_as_cassandra_does() {
    assert_eq!(out("info"), include_str!("../testdata/nodetool/info.txt"));
    assert_eq!(out("info -T"), include_str!("../testdata/nodetool/info_tokens.txt"));
    assert_eq!(out("status"), include_str!("../testdata/nodetool/status.txt"));
    assert_eq!(out("describecluster"), include_str!("../testdata/nodetool/describecluster.txt"));
    assert_eq!(out("compactionstats"), include_str!("../testdata/nodetool/compactionstats.txt"));
    assert_eq!(
        out("compactionstats -H"),
        include_str!("../testdata/nodetool/compactionstats_human.txt")
    );
    assert_eq!(out("version"), "ReleaseVersion: 5.0.9\n");
    assert_eq!(out("version -v"), "ReleaseVersion: 5.0.9\nGitSHA: 0123abc\n");
    assert_eq!(out("gettimeout read"), "Current timeout for type read: 5000 ms\n");
    assert_eq!(out("statusbinary"), "running\n");
    assert_eq!(out("stopdaemon"), "Cassandra has shutdown.\n");
}

#[test]
fn tablestats_as_cassandra_prints_them() {
    assert_eq!(out("tablestats system.local"), include_str!("../testdata/nodetool/tablestats.txt"));
    // Another table had been read once more by then.
    let fake = Fake::default();
    fake.other_reads.set((2, 66_370));
    assert_eq!(
        say_with(fake, "tablestats -H system.local system.peers").0.out,
        include_str!("../testdata/nodetool/tablestats_human.txt")
    );
}

#[test]
fn tablestats_by_a_figure() {
    let names = |line: &str| -> Vec<String> {
        let text = out(line);
        text.lines().filter_map(|l| l.strip_prefix("\tTable: ")).map(str::to_owned).collect()
    };
    let all = ["system.peers", "system.local", "system.IndexInfo"];
    assert_eq!(names("tablestats -s table_name"), all);
    assert_eq!(names("tablestats -s full_name -t 1"), all[..1]);
    let text = out("tablestats -s sstable_count -t 2 system");
    let head = "Total number of tables: 3 (showing top 2 by sstable_count)\n----------------\n";
    assert!(text.starts_with(head) && text.ends_with("\n\n----------------\n"), "{text}");
    assert!(out("tablestats -s writes").starts_with("Total number of tables: 3\n"));
}

#[test]
fn what_has_a_form_of_programs() {
    let json = out("tpstats -F json");
    let begin = "{\n  \"ThreadPools\" : {\n";
    assert!(json.starts_with(begin) && json.contains("\"WaitLatencies\" : { }"), "{json}");
    assert!(json.contains("\"READ_RSP\" : 0"), "{json}");
    let yaml = out("tpstats -F yaml");
    assert!(yaml.starts_with("ThreadPools:\n") && yaml.contains("WaitLatencies: {}"), "{yaml}");
    assert_eq!(out("compactionhistory -F json"), "{ }\n");
    let json = out("tablestats -F json system.local");
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(read["total_number_of_tables"], 1);
    let local = &read["system"]["tables"]["local"];
    assert!(local["space_used_live"].is_string() && local["sstable_count"].is_u64(), "{json}");
    assert!(local["twcs"].is_null() && local["top_size_partitions"].is_object(), "{json}");
    assert_eq!(local.as_object().unwrap().len(), 51);
    let yaml = out("tablestats -F yaml -s table_name -t 1");
    assert!(yaml.contains("\nsystem.peers:\n  ") || yaml.starts_with("system.peers:\n"), "{yaml}");
}

#[test]
fn who_is_let_in() {
    assert!(out("clientstats").starts_with("Total connected clients: 0\n\nUser Connections\n"));
    assert_eq!(out("clientstats --clear-history"), "Clearing connection history\n");
    assert_eq!(out("invalidaterolescache a") + &out("reloadssl"), "");
    assert_eq!(out("getdefaultrf"), "3\n");
    assert_eq!(out("getcolumnindexsize"), "Current value for column_index_size: 64 KiB\n");
    let none = format!("Current snapshot throttle: {} links/s\n", i64::MAX);
    assert_eq!(out("getsnapshotthrottle"), none);
}

#[test]
fn tablestats_of_those_not_named() {
    let shown = |line: &str| -> Vec<String> {
        let text = out(line);
        let tables = text.lines().filter_map(|l| l.strip_prefix("\t\tTable: "));
        tables.map(str::to_owned).collect()
    };
    assert_eq!(shown("tablestats"), ["IndexInfo", "local", "peers"]);
    assert_eq!(shown("tablestats system"), ["IndexInfo", "local", "peers"]);
    assert_eq!(shown("tablestats -i system.local"), ["IndexInfo", "peers"]);
    assert!(shown("tablestats -i system").is_empty());
    assert!(out("tablestats system_auth").is_empty());
}

#[test]
fn refuses_as_cassandra_does() {
    let hint = "See 'nodetool help' or 'nodetool help <command>'.\n";
    let bad = |message: &str| (1, format!("nodetool: {message}\n{hint}"), String::new());
    let refused = |line: &str| {
        let (reply, done) = say(line);
        assert!(done.is_empty());
        (reply.exit, reply.out, reply.err)
    };
    assert_eq!(refused("flush nosuch"), bad("Keyspace [nosuch] does not exist."));
    assert_eq!(
        refused("flush system nosuch"),
        (2, String::new(), "error: Unknown keyspace/cf pair (system.nosuch)\n".to_owned())
    );
    assert_eq!(refused("tablestats nosuch"), bad("Unknown keyspace: nosuch"));
    assert_eq!(
        refused("tablestats system.nosuch"),
        bad("Unknown tables: [nosuch] in keyspace: system")
    );
    assert_eq!(
        refused("setguardrailsconfig keyspaces_threshold 10 20"),
        bad(
            "Error occured when setting the config for setter keyspaces_threshold with arguments [10, 20]: no"
        )
    );
    assert_eq!(refused("getguardrailsconfig nosuch"), bad("Guardrail nosuch not found."));
    let no_keyspace = "\nError: The keyspace nosuch, does not exist\n";
    assert_eq!(refused("status nosuch"), (1, no_keyspace.to_owned(), String::new()));
    let fake = Fake::default();
    fake.drained.set(true);
    assert_eq!(
        say_with(fake, "enablebinary").0.out,
        bad("Unable to start native transport because the node was drained.").1
    );
}

#[test]
fn does_as_it_is_told() {
    let done = |line: &str| {
        let (reply, done) = say(line);
        assert_eq!(reply.exit, 0);
        done
    };
    assert_eq!(done("flush system local peers"), ["flush system [\"local\", \"peers\"]"]);
    let all = ["system_traces", "system_distributed", "system_auth", "system_schema", "system"];
    assert_eq!(done("flush"), all.map(|keyspace| format!("flush {keyspace} []")));
    assert_eq!(done("compact system local"), ["compact system [\"local\"]"]);
    assert_eq!(done("drain"), ["drain"]);
    assert_eq!(done("disablebinary -f"), ["stop native true"]);
    assert_eq!(done("enablebinary"), ["start native"]);
    assert_eq!(done("settimeout write 7"), ["set write 7"]);
    let set = "set [\"keyspaces_warn_threshold=5\", \"keyspaces_fail_threshold=20\"]";
    assert_eq!(done("setguardrailsconfig keyspaces_threshold 20 5"), [set]);
    assert_eq!(out("getguardrailsconfig group_by_enabled"), "true\n");
}

#[test]
fn status_of_several_data_centers() {
    let mut ring = common::ring();
    let node = ring.nodes[0].clone();
    ring.nodes.push(RingNode {
        address: "10.20.30.40:7000".parse().unwrap(),
        liveness: Liveness::Down,
        life: Life::Joining,
        load_bytes: None,
        owns_share: Some(0.3333),
        data_center: "ac0".into(),
        rack: "r".into(),
        ..node
    });
    let fake = Fake::default();
    *fake.ring.borrow_mut() = Some(ring);
    let (reply, _) = say_with(fake, "-pp status");
    assert_eq!(
        reply.out,
        "Datacenter: ac0\n\
         ===============\n\
         Status=Up/Down\n\
         |/ State=Normal/Leaving/Joining/Moving\n\
         --  Address           Load        Tokens  Owns (effective)  Host ID                               Rack \n\
         DJ  10.20.30.40:7000  ?           16      33.3%             7a0ab442-d8a0-4143-a2eb-61643a2b0f1b  r    \n\
         \n\
         Datacenter: datacenter1\n\
         =======================\n\
         Status=Up/Down\n\
         |/ State=Normal/Leaving/Joining/Moving\n\
         --  Address           Load        Tokens  Owns (effective)  Host ID                               Rack \n\
         UN  127.0.0.23:7000   114.69 KiB  16      100.0%            7a0ab442-d8a0-4143-a2eb-61643a2b0f1b  rack1\n\
         \n"
    );
}

#[test]
fn status_of_one_token_and_no_common_replication() {
    let mut ring = common::ring();
    ring.nodes[0].tokens = vec!["42".into()];
    ring.note = Some("Non-system keyspaces don't have the same replication settings".into());
    let fake = Fake::default();
    *fake.ring.borrow_mut() = Some(ring);
    let text = say_with(fake, "status").0.out;
    assert!(text.contains(
        "\n--  Address     Load        Owns  Host ID                               Token  Rack \n\
         UN  127.0.0.23  114.69 KiB  ?     7a0ab442-d8a0-4143-a2eb-61643a2b0f1b  42     rack1\n\n\
         Note: Non-system keyspaces don't"
    ));
}

#[test]
fn compactions_under_way() {
    let mut stats = common::compaction_stats();
    stats.pending = vec![PendingTasks { keyspace: "ks".into(), table: "t".into(), tasks: 3 }];
    stats.running = vec![RunningCompaction {
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
    }];
    let fake = Fake::default();
    *fake.compactions.borrow_mut() = Some(stats);
    let text = say_with(fake, "compactionstats -H").0.out;
    let line = |start: &str| {
        let found = text.lines().find(|l| l.starts_with(start)).unwrap_or_default();
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("pending"), "pending tasks 3");
    assert_eq!(line("ks "), "ks t 3");
    assert_eq!(line("id "), "id compaction type keyspace table completed total unit progress");
    assert_eq!(
        line("b5b2"),
        "b5b2e5c0-0000-11f1-8000-000000000000 Compaction ks t 1 GiB 3 GiB bytes 33.33%"
    );
    assert_eq!(line("active"), "active compaction remaining time 0h00m32s");
}

/// Captured from nodetool 5.0.9, but for the order of the list, which is that of a hash map there.
#[test]
fn snapshots_as_cassandra_prints_them() {
    let (reply, done) = say("snapshot -t two --ttl 1h ks");
    let said = "Requested creating snapshot(s) for [ks] with snapshot name [two] and options {skipFlush=false, ttl=1h}\n";
    assert_eq!(reply.out, format!("{said}Snapshot directory: two\n"));
    let wanted =
        "NewSnapshot { of: Keyspaces([\"ks\"]), name: \"two\", flush: true, ttl: Some(3600) }";
    assert_eq!(done, [wanted]);
    let (reply, _) = say("snapshot -t there -sf -kt ks.t,ks.e");
    assert_eq!(
        reply.out,
        "Requested creating snapshot(s) for [ks.t,ks.e] with snapshot name [there] and options {skipFlush=true}\n"
    );
    assert_eq!((reply.exit, reply.err.as_str()), (2, "error: Snapshot there already exists.\n"));
    let (reply, done) = say("snapshot -t a --ttl 5s ks");
    assert_eq!(
        reply.out,
        "Requested creating snapshot(s) for [ks] with snapshot name [a] and options {skipFlush=false, ttl=5s}\n\
         nodetool: ttl for snapshot must be at least 60 seconds\n\
         See 'nodetool help' or 'nodetool help <command>'.\n"
    );
    assert_eq!((reply.exit, done.len()), (1, 0));

    assert_eq!(out("listsnapshots"), "Snapshot Details: \nThere are no snapshots\n");
    let fake = || {
        let fake = Fake::default();
        let of =
            |name: &str, table: &str, true_size_bytes, size_on_disk_bytes, expires_at_millis| {
                SnapshotDetails {
                    name: name.to_owned(),
                    keyspace: "ks".to_owned(),
                    table: table.to_owned(),
                    true_size_bytes,
                    own_tables_bytes: 0,
                    size_on_disk_bytes,
                    created_at_millis: Some(1_795_333_384_978),
                    expires_at_millis,
                    ephemeral: false,
                }
            };
        let goes = Some(1_795_336_984_978);
        *fake.snapshots.borrow_mut() =
            vec![of("four", "t", 1280, 6370, None), of("two", "t", 1300, 6390, goes)];
        fake
    };
    let listed = |line: &str| say_with(fake(), line).0.out;
    assert_eq!(
        listed("listsnapshots"),
        "Snapshot Details: \n\
         Snapshot name Keyspace name Column family name True size Size on disk Creation time            Expiration time         \n\
         four          ks            t                  1.25 KiB  6.22 KiB     2026-11-22T07:43:04.978Z                         \n\
         two           ks            t                  1.27 KiB  6.24 KiB     2026-11-22T07:43:04.978Z 2026-11-22T08:43:04.978Z\n\
         \nTotal TrueDiskSpaceUsed: 0 bytes\n\n"
    );
    assert!(!listed("listsnapshots -nt").contains("two "));
    assert!(listed("listsnapshots -e").contains("Expiration time          Ephemeral\n"));

    let (reply, done) = say("clearsnapshot -t one ks");
    assert_eq!(reply.out, "Requested clearing snapshot(s) for [ks] with snapshot name [one]\n");
    assert_eq!(done, ["clear [\"ks\"] Some(\"one\") None"]);
    assert_eq!(
        out("clearsnapshot --all --older-than 1h"),
        "Requested clearing snapshot(s) for [all keyspaces] with [all snapshots] older than 3600 seconds.\n"
    );
    let (reply, done) = say("clearsnapshot --all --older-than-timestamp 2022-12-03T10:15:30Z");
    assert_eq!(
        reply.out,
        "Requested clearing snapshot(s) for [all keyspaces] with [all snapshots] older than timestamp 2022-12-03T10:15:30Z\n"
    );
    assert_eq!(done, ["clear [] None Some(1670062530000)"]);
    assert_eq!(out("statusbackup"), "not running\n");
}

/// Captured from nodetool 5.0.9.
#[test]
fn compaction_as_cassandra_prints_it() {
    assert_eq!(out("compactionhistory"), "Compaction History: \nThere is no compaction history");
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
    assert_eq!(
        say_with(fake, "compactionhistory").0.out,
        "Compaction History: \n\
         id                                   keyspace_name columnfamily_name compacted_at            bytes_in bytes_out rows_merged compaction_properties       \n\
         548aeaa0-e648-11f1-a6ec-41098330686a system_schema keyspaces         2026-11-22T07:42:55.904 629      272       {1:5, 4:1}  {compaction_type:Compaction}\n"
    );
    assert_eq!(out("getcompactionthroughput"), "Current compaction throughput: 64 MB/s\n");
    assert_eq!(out("getcompactionthroughput -d"), "Current compaction throughput: 64.0 MiB/s\n");
    assert_eq!(
        out("getconcurrentcompactors"),
        "Current concurrent compactors in the system is: \n2\n"
    );
    assert_eq!(out("statusautocompaction"), "partially running\n");
    assert_eq!(out("statusautocompaction system_auth"), "running\n");
    assert_eq!(out("statusautocompaction system"), "not running\n");
    assert_eq!(
        out("statusautocompaction -a system_auth"),
        "Keyspace    Table Status \nsystem_auth t     running\n"
    );
    assert_eq!(out("getsstables system local 1"), "/data/1/nb-1-big-Data.db\n");
    assert_eq!(out("getsstables -l system local 1"), "2: /data/1/nb-1-big-Data.db\n");
    assert_eq!(
        out("datapaths system.a system.b"),
        "Keyspace: system\n\tTable: a\n\tPaths:\n\t\t/data/system/a-1\n\n\tTable: b\n\tPaths:\n\t\t/data/system/b-1\n\n"
    );
    assert_eq!(say("setcompactionthroughput 16").1, ["throughput 16777216"]);
    assert_eq!(say("invalidatekeycache").1, ["invalidate Keys"]);
    assert_eq!(say("invalidaterowcache").1, ["invalidate Rows"]);
    assert_eq!(
        say("setcachecapacity 3 0 1").1,
        ["capacity Keys 3145728", "capacity Rows 0", "capacity Counters 1048576"]
    );
    let (reply, done) = say("setcachecapacity 3 -1 1");
    assert!(reply.err.contains("capacity should not be negative."), "{reply:?}");
    assert_eq!(done, ["capacity Keys 3145728"]);
    assert_eq!(say("invalidatecountercache").1, ["invalidate Counters"]);
    assert_eq!(
        say("setcachekeystosave 100 0 7").1,
        ["keys to save Keys 100", "keys to save Rows 0", "keys to save Counters 7"]
    );
    for (line, refused, done) in [
        ("-1 2 3", "KeyCacheKeysToSave", &[][..]),
        ("1 -2 3", "RowCacheKeysToSave", &["keys to save Keys 1"]),
        ("1 2 -3", "CounterCacheKeysToSave", &["keys to save Keys 1", "keys to save Rows 2"]),
    ] {
        let (reply, before) = say(&format!("setcachekeystosave {line}"));
        assert!(
            reply.err.starts_with(&format!("error: {refused} must be non-negative.")),
            "{reply:?}"
        );
        assert_eq!(before, done);
    }
    assert_eq!(say("compact -s system").1, ["compact system [] split"]);
    assert_eq!(say("stop COMPACTION").1, ["stop Kind(Some(\"Compaction\"))"]);
}

/// Captured from nodetool 5.0.9.
#[test]
fn import_says_what_was_refused() {
    let (reply, done) = say("import -l ks t /a /bad");
    assert_eq!((reply.exit, reply.out.as_str()), (1, ""));
    assert_eq!(
        reply.err,
        "Some directories failed to import, check server logs for details:\n/bad\n"
    );
    let of = "of: TableName { keyspace: \"ks\", table: \"t\" }, directories: [\"/a\", \"/bad\"]";
    let how = "keep_level: true, copy: false, verify: true";
    assert_eq!(done, [format!("NewImport {{ {of}, {how} }}")]);
    assert!(out("import -q ks t /a").starts_with("Doing a quick import"));
}
