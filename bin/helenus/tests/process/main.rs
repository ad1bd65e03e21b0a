//! The node as a process: how it starts, refuses to start, tells about itself and ends.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "looks at a process from outside: a client, an operator and a terminal, none of them on a shard"
)]

mod audited;
mod client;
mod configured;
mod dashboards;
mod doctor;
mod full_disk;
mod logs;
mod node;
mod notified;
mod promql;
mod refused;
mod remote;
mod sampled;
mod upkeep;
mod wide;

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::Instant;

use client::Client;
use node::{Node, PATIENCE, Place};
use protocol::{Consistency, ErrorDetail};

/// Bytes of the test's table in memory.
const MEMTABLE: &str = "cassandra_table_memtablelivedatasize_bytes{keyspace=\"ks\",scope=\"t\"}";

#[test]
fn metrics_show_every_layer() {
    let place = Place::new(1);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(10);
    client.check(10);
    let at_least = [
        ("cassandra_clientrequest_latency_seconds_count{scope=\"Write\"}", 10.0),
        ("cassandra_clientrequest_latency_seconds_count{scope=\"Read\"}", 10.0),
        ("cassandra_clientrequest_latency_seconds_count{scope=\"RangeSlice\"}", 1.0),
        ("cassandra_clientrequest_latency_seconds{scope=\"Read\",quantile=\"0.99\"}", 1e-6),
        ("cassandra_table_writes_total{keyspace=\"ks\",scope=\"t\"}", 10.0),
        ("cassandra_table_reads_total{keyspace=\"ks\",scope=\"t\"}", 10.0),
        ("cassandra_table_memtablelivedatasize_bytes{keyspace=\"ks\",scope=\"t\"}", 100.0),
        ("cassandra_commitlog_completedtasks_total", 10.0),
        ("cassandra_commitlog_segments", 2.0),
        ("cassandra_client_connectednativeclients", 1.0),
        ("cassandra_cql_regularstatementsexecuted_total", 20.0),
        ("cassandra_mesh_sent_total", 1.0),
        ("cassandra_eventloop_polls_total{scope=\"statement\"}", 10.0),
        ("cassandra_disk_operations_total{path=\"commit_log\",scope=\"write\"}", 0.0),
        ("cassandra_clock_behind_seconds", 0.0),
        ("cassandra_node_uptime_seconds", 0.0),
    ];
    for (series, least) in at_least {
        let value = node.metric(series);
        assert!(value >= least, "{series} {value}");
    }
    // Each row was written and read once, whatever its shard.
    assert_eq!(node.metric("cassandra_table_writes_total{keyspace=\"ks\",scope=\"t\"}"), 10.0);
    assert_eq!(node.metric("cassandra_clientrequest_timeouts_total{scope=\"Read\"}"), 0.0);
    well_formed(&node.metrics());
    drop(client);
    node.stop();
}

/// No series twice, every value a number, every family with its type.
fn well_formed(text: &str) {
    let mut seen = BTreeSet::new();
    let mut families = BTreeSet::new();
    for line in text.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            assert!(families.insert(family.split(' ').next().unwrap()), "{line}");
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        assert!(seen.insert(series), "{line}");
        let name = series.split('{').next().unwrap();
        let of = |suffix: &str| name.strip_suffix(suffix).is_some_and(|n| families.contains(n));
        assert!(families.contains(name) || of("_sum") || of("_count"), "{line}");
    }
    assert!(seen.len() > 500, "{} series", seen.len());
}

#[test]
fn every_error_of_a_client_is_counted() {
    let place = Place::new(2);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(1);
    for (text, scope) in [
        ("INSERT INTO ks.t (k, v) VALUES (1, 1)", "Write"),
        ("SELECT * FROM ks.t WHERE k = 1", "Read"),
    ] {
        let error = client.error(text, Consistency::Two);
        assert!(matches!(error, ErrorDetail::Unavailable { .. }), "{error:?}");
        let series = |name| format!("cassandra_clientrequest_{name}_total{{scope=\"{scope}\"}}");
        assert_eq!(node.metric(&series("unavailables")), 1.0);
        assert_eq!(node.metric(&series("refused")), 0.0);
    }
    let error = client.error("INSERT INTO ks.t (k, v) VALUES (2, 2)", Consistency::Serial);
    assert_eq!(error, ErrorDetail::Invalid);
    assert_eq!(node.metric("cassandra_clientrequest_refused_total{scope=\"Write\"}"), 1.0);
}

#[test]
fn the_operator_is_answered() {
    let place = Place::new(3);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(20);
    let status = node.verb(&["status", "ks"]);
    assert!(status.contains(&format!("UN  {}", node.ip)), "{status}");
    assert!(status.contains("100.0%"), "{status}");
    let info = node.verb(&["info"]);
    assert!(info.contains("Native Transport active: true"), "{info}");
    assert_eq!(node.verb(&["version"]), "ReleaseVersion: 5.0.9\n");
    let described = node.verb(&["describecluster"]);
    assert!(described.contains("Name: Test Cluster"), "{described}");
    let ks = "ks -> Replication class: SimpleStrategy {replication_factor=1}";
    assert!(described.contains(ks), "{described}");

    let stats = node.verb(&["tablestats", "ks.t"]);
    assert!(
        stats.contains("SSTable count: 0") && stats.contains("Local write count: 20"),
        "{stats}"
    );
    node.verb(&["flush", "ks", "t"]);
    client.fill(20);
    node.verb(&["flush"]);
    let stats = node.verb(&["tablestats", "ks.t"]);
    assert!(
        stats.contains("SSTable count: 2") && stats.contains("Memtable cell count: 0"),
        "{stats}"
    );
    node.verb(&["compact", "ks"]);
    let stats = node.verb(&["tablestats", "ks.t"]);
    assert!(stats.contains("SSTable count: 1"), "{stats}");
    let compactions = node.verb(&["compactionstats"]);
    assert!(compactions.contains("compactions completed"), "{compactions}");
    client.check(20);

    assert_eq!(node.verb(&["gettimeout", "read"]), "Current timeout for type read: 5000 ms\n");
    node.verb(&["settimeout", "read", "7000"]);
    assert_eq!(node.verb(&["gettimeout", "read"]), "Current timeout for type read: 7000 ms\n");

    let (code, _, err) = node.nodetool(&["flush", "ks", "nosuch"]);
    assert_eq!((code, err.as_str()), (2, "error: Unknown keyspace/cf pair (ks.nosuch)\n"));
    let (code, out, _) = node.nodetool(&["flush", "nosuch"]);
    assert_eq!(code, 1);
    assert!(out.contains("Keyspace [nosuch] does not exist."), "{out}");
    let (code, out, _) = node.nodetool(&["status", "nosuch"]);
    assert_eq!((code, out.as_str()), (1, "\nError: The keyspace nosuch, does not exist\n"));
}

/// The files of one kind below the data directory of a place, by directory's name.
fn files(place: &Place, of: &str, kind: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![place.data()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let is_of = path.parent().is_some_and(|parent| parent.ends_with(of));
            match path.is_dir() {
                true => left.push(path),
                false if is_of && path.to_string_lossy().ends_with(kind) => found.push(path),
                false => {}
            }
        }
    }
    found
}

#[test]
fn snapshots_and_backups_are_taken_and_cleared() {
    let place = Place::new(17);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(20);
    let said = node.verb(&["snapshot", "-t", "one", "ks"]);
    assert!(said.ends_with("Snapshot directory: one\n"), "{said}");
    assert_eq!(files(&place, "snapshots/one", "Data.db").len(), 1);
    let manifest = std::fs::read_to_string(&files(&place, "snapshots/one", "manifest.json")[0]);
    assert!(manifest.unwrap().starts_with("{\n  \"files\" : [ \"nb-1-big-Data.db\" ],\n"));
    let schema = std::fs::read_to_string(&files(&place, "snapshots/one", "schema.cql")[0]).unwrap();
    assert!(schema.starts_with("CREATE TABLE IF NOT EXISTS ks.t (\n"), "{schema}");
    assert!(schema.contains(") WITH ID = "), "{schema}");
    let (code, _, err) = node.nodetool(&["snapshot", "-t", "one", "ks"]);
    assert_eq!((code, err.as_str()), (2, "error: Snapshot one already exists.\n"));
    let listed = node.verb(&["listsnapshots"]);
    assert!(listed.contains("\none           ks "), "{listed}");
    assert!(listed.ends_with("Total TrueDiskSpaceUsed: 0 bytes\n\n"), "{listed}");

    // what the table has no more is the snapshot's own
    client.query("TRUNCATE ks.t");
    let listed = node.verb(&["listsnapshots"]);
    assert!(!listed.ends_with("Total TrueDiskSpaceUsed: 0 bytes\n\n"), "{listed}");
    node.verb(&["clearsnapshot", "-t", "one"]);
    assert!(files(&place, "snapshots/one", "").is_empty());
    let listed = node.verb(&["listsnapshots"]);
    assert!(listed.contains("\ntruncated-"), "{listed}");
    node.verb(&["clearsnapshot", "--all"]);
    assert!(node.verb(&["listsnapshots"]).ends_with("There are no snapshots\n"));

    node.verb(&["enablebackup"]);
    assert_eq!(node.verb(&["statusbackup"]), "running\n");
    client.fill(20);
    node.verb(&["flush", "ks"]);
    let backups = || {
        let all = files(&place, "backups", "Data.db").into_iter();
        all.filter(|path| path.to_string_lossy().contains("/ks/")).count()
    };
    assert_eq!(backups(), 1);
    client.query("TRUNCATE ks.t");
    node.stop();
    // a number that a backup has is not given again
    let node = place.serve(&["--set", "incremental_backups=true"]);
    let mut client = Client::connect(&node.ip);
    client.fill(20);
    node.verb(&["flush", "ks"]);
    assert_eq!(backups(), 2);
    node.verb(&["disablebackup"]);
    client.fill(20);
    node.verb(&["flush", "ks"]);
    assert_eq!(backups(), 2);
}

#[test]
fn what_was_truncated_comes_back_from_its_snapshot() {
    let place = Place::new(18);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(200);
    node.verb(&["snapshot", "-t", "one", "ks"]);
    // a Cassandra reads the record of a truncation before its log
    let records = || files(&place, "local-7ad54392bcdd35a684174e047860b377", "Data.db").len();
    let before = records();
    client.query("TRUNCATE ks.t");
    assert!(records() > before);
    let data = files(&place, "snapshots/one", "Data.db").remove(0);
    let snapshot = data.parent().unwrap().to_str().unwrap().to_owned();
    let (code, _, err) = node.nodetool(&["import", "ks", "t", "/nosuch"]);
    assert_eq!((code, err.as_str()), (2, "error: Directory /nosuch does not exist\n"));

    // a copy with one bit turned is refused, and nothing of it is adopted
    let damaged = place.data().join("damaged");
    std::fs::create_dir(&damaged).unwrap();
    for file in std::fs::read_dir(&snapshot).unwrap() {
        let file = file.unwrap();
        let mut bytes = std::fs::read(file.path()).unwrap();
        if file.file_name().to_string_lossy().ends_with("Data.db") {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        std::fs::write(damaged.join(file.file_name()), bytes).unwrap();
    }
    let damaged = damaged.to_str().unwrap().to_owned();
    let (code, _, err) = node.nodetool(&["import", "ks", "t", &damaged]);
    assert_eq!(code, 1, "{err}");
    assert!(err.ends_with(&format!("{damaged}\n")), "{err}");
    assert!(client.query("SELECT k FROM ks.t").is_empty());

    // the files of a table are in use, by whatever path one comes to them
    let own = place.data().join("own");
    let home = data.ancestors().nth(3).unwrap();
    std::os::unix::fs::symlink(home, &own).unwrap();
    let (code, _, err) = node.nodetool(&["import", "ks", "t", own.to_str().unwrap()]);
    assert_eq!(code, 1, "{err}");

    node.verb(&["import", "-cd", "ks", "t", &snapshot]);
    client.check(200);
    assert!(data.exists());
    node.signal("-KILL");
    drop(node);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.check(200);
    node.verb(&["compact", "ks", "t"]);
    client.check(200);
    let history = node.verb(&["compactionhistory"]);
    assert!(history.contains(" ks "), "{history}");
}

#[test]
fn the_operator_stops_and_starts_serving_clients() {
    let place = Place::new(4);
    let node = place.serve(&[]);
    Client::connect(&node.ip).fill(5);
    assert_eq!(node.verb(&["statusbinary"]), "running\n");
    node.verb(&["disablebinary"]);
    assert_eq!(node.verb(&["statusbinary"]), "not running\n");
    assert!(TcpStream::connect((node.ip.as_str(), 9042)).is_err());
    node.verb(&["enablebinary"]);
    node.verb(&["enablebinary"]);
    assert_eq!(node.verb(&["statusbinary"]), "running\n");
    Client::connect(&node.ip).check(5);

    node.verb(&["drain"]);
    node.verb(&["drain"]);
    assert_eq!(node.verb(&["statusbinary"]), "not running\n");
    let (code, out, _) = node.nodetool(&["enablebinary"]);
    assert_eq!(code, 1);
    assert!(out.contains("Unable to start native transport because the node was drained."));
    assert_eq!(node.verb(&["stopdaemon"]), "Cassandra has shutdown.\n");
    let (code, errors) = node.ended();
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    let node = place.serve(&[]);
    Client::connect(&node.ip).check(5);
}

#[test]
fn a_directory_is_one_nodes() {
    let place = Place::new(5);
    let _node = place.serve(&[]);
    let other = Place::new(6);
    let said = Node::start(&other.ip(), &place.data(), &[]).refuses();
    assert!(said.contains("another node runs on it"), "{said}");
}

#[test]
fn a_port_that_is_taken_ends_the_start() {
    let place = Place::new(7);
    let node = place.serve(&[]);
    // Both share their ports among their shards, but not with each other.
    let other = Place::new(8);
    let elsewhere = format!("metrics_address={}", other.ip());
    let said = Node::start_plain(&node.ip, &other.data(), &["--set", &elsewhere]).refuses();
    let taken = format!("helenus: cannot listen on {}:7000: Address already in use", node.ip);
    assert!(said.starts_with(&taken), "{said}");
    let options = ["--set", &elsewhere, "--storage-port", "7001"];
    let said = Node::start_plain(&node.ip, &other.data(), &options).refuses();
    let taken = format!("helenus: cannot listen on {}:9042: Address already in use", node.ip);
    assert!(said.starts_with(&taken), "{said}");
    let of_node = format!("metrics_address={}", node.ip);
    let said = Node::start_plain(&other.ip(), &other.data(), &["--set", &of_node]).refuses();
    let taken = format!("helenus: cannot listen on {}:7070: Address already in use", node.ip);
    assert!(said.starts_with(&taken), "{said}");
}

#[test]
fn the_default_port_of_metrics_may_be_taken() {
    let place = Place::new(9);
    // If this fails, somebody else has it, which is as good.
    let _held = TcpListener::bind("127.0.0.1:7070");
    let node = Node::start_plain(&place.ip(), &place.data(), &[]);
    node.line("not serving metrics: cannot listen on 127.0.0.1:7070");
    node.line("Starting listening");
    node.stop();
    let node = place.serve(&["--set", "metrics_port=0"]);
    assert!(TcpStream::connect((node.ip.as_str(), 7070)).is_err());
}

#[test]
fn a_directory_of_another_cluster_is_refused() {
    let place = Place::new(10);
    place.serve(&[]).stop();
    let said = place.start(&["--set", "cluster_name=Other"]).refuses();
    let wrong = "helenus: Saved cluster name Test Cluster != configured name Other\n";
    assert_eq!(said, wrong);
    place.serve(&[]).stop();
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    let place = Place::new(11);
    // Root may write anywhere: a file in the directory's place stops it too.
    std::fs::write(place.data(), "in the way").unwrap();
    let said = place.start(&[]).refuses();
    assert!(said.starts_with("helenus: cannot create or write "), "{said}");
    assert!(said.contains(&place.data().display().to_string()), "{said}");
}

#[test]
fn files_of_a_newer_format_are_refused() {
    let place = Place::new(15);
    let node = place.serve(&[]);
    Client::connect(&node.ip).fill(3);
    node.stop();
    let keyspace = std::fs::read_dir(place.data().join("data/ks")).unwrap();
    let table = keyspace.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let names = std::fs::read_dir(&table).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    let data = names.iter().find(|name| name.ends_with("-big-Data.db")).unwrap();
    let moved = |from: &str, to: &str| {
        for name in names.iter().filter(|name| name.contains("-big-")) {
            std::fs::rename(
                table.join(name.replacen("nb", from, 1)),
                table.join(name.replacen("nb", to, 1)),
            )
            .unwrap();
        }
    };
    for other in ["me", "oa", "pa"] {
        moved("nb", other);
        let said = place.start(&[]).refuses();
        assert!(said.contains(&data.replacen("nb", other, 1)), "{said}");
        moved(other, "nb");
    }

    let log = place.data().join("commitlog/CommitLog-9-1700000000000.log");
    std::fs::write(&log, [0, 0, 0, 9]).unwrap();
    let said = place.start(&[]).refuses();
    assert!(said.contains("CommitLog-9-1700000000000.log"), "{said}");
    std::fs::remove_file(log).unwrap();
    let node = place.serve(&[]);
    Client::connect(&node.ip).check(3);
    node.stop();
}

#[test]
fn sigterm_leaves_nothing_to_replay() {
    let place = Place::new(12);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.fill(50);
    // with the client still connected
    node.stop();
    let node = place.serve(&[]);
    assert_eq!(node.metric(MEMTABLE), 0.0);
    assert_eq!(node.metric("cassandra_commitlog_replayapplied"), 0.0);
    Client::connect(&node.ip).check(50);
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let place = Place::new(13);
    let yaml = place.dir.join("cassandra.yaml");
    std::fs::write(&yaml, "commitlog_sync: batch\n").unwrap();
    let sync = ["--config", yaml.to_str().unwrap()];
    let node = place.serve(&sync);
    Client::connect(&node.ip).fill(50);
    node.signal("-KILL");
    assert_eq!(node.ended().0, None);
    let node = place.serve(&sync);
    assert!(node.metric("cassandra_commitlog_replayapplied") >= 50.0);
    assert!(node.metric(MEMTABLE) > 0.0);
    Client::connect(&node.ip).check(50);
    // once more: what was replayed is still there
    node.signal("-KILL");
    assert_eq!(node.ended().0, None);
    Client::connect(&place.serve(&sync).ip).check(50);
}

#[test]
fn the_demonstration_writes_rows() {
    let place = Place::new(14);
    let node = place.serve(&["--demo"]);
    let query = node.line("  SELECT at, value FROM demo.machine");
    let query = query.trim().trim_end_matches(';');
    let mut client = Client::connect(&node.ip);
    let end = Instant::now() + PATIENCE;
    // The hour may end between: then the rows are the next one's.
    while client.query(query).is_empty() && client.query("SELECT * FROM demo.machine").is_empty() {
        assert!(Instant::now() < end, "no rows");
    }
}
