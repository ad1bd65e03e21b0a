//! Metrics under the names that dashboards and alerts ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use protocol::Consistency;

use crate::client::Client;
use crate::node::{Node, Place};
use crate::promql::selectors;

const PREFIX: &str = "org_apache_cassandra_metrics_";

/// Whatever k8ssandra's two modern dashboards ask for below that prefix, and whether this test's
/// load moves it. Not among them: `host_*`, which Vector and the node exporter have.
const ASKED_FOR: &[(&str, bool)] = &[
    ("client_connected_native_clients", true),
    ("client_request_condition_not_met", true),
    ("client_request_contention_histogram_count", true),
    ("client_request_failures_total", false),
    ("client_request_latency_bucket", true),
    ("client_request_latency_count", true),
    ("client_request_timeouts_total", false),
    ("client_request_unavailables_total", true),
    ("client_request_unfinished_commit", false),
    ("compaction_completed_tasks", true),
    ("dropped_message_dropped_total", false),
    ("storage_total_hints", false),
    ("storage_total_hints_in_progress", false),
    ("streaming_total_incoming_bytes", false),
    ("streaming_total_outgoing_bytes", false),
    ("table_compaction_bytes_written", true),
    ("table_coordinator_read_latency_bucket", true),
    ("table_coordinator_scan_latency_bucket", true),
    ("table_coordinator_write_latency_bucket", true),
    ("table_dropped_mutations", false),
    ("table_live_disk_space_used", true),
    ("table_live_ss_table_count", true),
    ("table_memtable_off_heap_size", true),
    ("table_memtable_on_heap_size", false),
    ("table_memtable_switch_count", true),
    ("table_pending_compactions", true),
    ("table_pending_flushes", false),
    ("table_range_latency_bucket", true),
    ("table_read_latency_bucket", true),
    ("table_read_total_latency", true),
    ("table_tombstone_scanned_histogram_count", true),
    ("table_total_disk_space_used", true),
    ("table_write_latency_bucket", true),
    ("thread_pools_active_tasks", false),
    ("thread_pools_completed_tasks", true),
    ("thread_pools_pending_tasks", true),
    ("thread_pools_total_blocked_tasks", false),
];
/// The same without that prefix.
const JVM: &[&str] =
    &["jvm_gc_g1_old_generation_time", "jvm_gc_g1_young_generation_time", "jvm_memory_bytes_used"];
/// What Reaper asks for beside them.
const OF_REAPER: &[&str] = &["client_request_latency", "table_percent_repaired"];
/// Flushes of the table, which is as many SSTables: what its strategy merges at once.
const FLUSHES: i32 = 4;

/// The lines of a text that are not comments, by the name of the metric.
fn by_name(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        by_name.entry(line.split(['{', ' ']).next().unwrap()).or_default().push(line);
    }
    by_name
}

fn value(line: &str) -> f64 {
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// The value of the one line that has all of the labels.
fn one(text: &str, name: &str, labels: &[&str]) -> f64 {
    let all = by_name(text);
    let lines = all.get(name).unwrap_or_else(|| panic!("no {name}"));
    let found = lines.iter().filter(|line| labels.iter().all(|label| line.contains(label)));
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 1, "{name} {labels:?}: {found:?}");
    value(found[0])
}

/// Statements of all kinds, flushes and a compaction; then SSTables that wait for another one.
fn load(node: &Node, client: &mut Client) {
    client.fill(30);
    client.check(30);
    client.query("DELETE FROM ks.t WHERE k = 29");
    client.query("SELECT v FROM ks.t WHERE k = 29");
    client.query("INSERT INTO ks.t (k, v) VALUES (1, 1) IF NOT EXISTS");
    client.error("SELECT v FROM ks.t WHERE k = 1", Consistency::Two);
    node.verb(&["flush", "ks", "t"]);
    node.verb(&["compact", "ks", "t"]);
    node.verb(&["disableautocompaction", "ks", "t"]);
    for k in 0..FLUSHES {
        client.query(&format!("INSERT INTO ks.t (k, v) VALUES ({k}, 7)"));
        client.query(&format!("INSERT INTO ks.t (k, v) VALUES ({}, 7)", k + 10));
        node.verb(&["flush", "ks", "t"]);
    }
    client.query("INSERT INTO ks.t (k, v) VALUES (1, 8)");
}

/// A node that knows its pod, as k8ssandra's operator would start it.
fn serve(place: &Place, more: &[&str]) -> Node {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helenus"));
    command.env("POD_NAME", "pod-1").env("NODE_NAME", "machine \"\u{e4}\"");
    let metrics = format!("metrics_address={}", place.ip());
    let more = [&["--set", metrics.as_str()], more].concat();
    let node = Node::start_by(command, &place.ip(), &place.data(), &more);
    node.line("Starting listening");
    node
}

#[test]
fn dashboards_of_k8ssandra_find_what_they_ask_for() {
    let place = Place::new(21);
    let node = serve(&place, &["--set", "cluster_name=Gr\u{f6}\u{df}e"]);
    let mut client = Client::connect(&node.ip);
    load(&node, &mut client);
    let text = node.page("/metrics/k8ssandra");
    let found = by_name(&text);
    let id = node.verb(&["info"]);
    let id = id.lines().find_map(|line| line.strip_prefix("ID")).unwrap();
    let id = id.trim_start_matches([' ', ':']);
    let labels = format!(
        "host=\"{id}\",instance=\"{}\",cluster=\"Gr\u{f6}\u{df}e\",datacenter=\"datacenter1\",\
         rack=\"rack1\",pod_name=\"pod-1\",node_name=\"machine \\\"\u{e4}\\\"\"",
        node.ip
    );
    for (name, moves) in ASKED_FOR {
        let name = format!("{PREFIX}{name}");
        let lines = found.get(name.as_str()).unwrap_or_else(|| panic!("no {name}"));
        let moved = lines.iter().any(|line| value(line) > 0.0);
        assert!(moved || !moves, "{name} is 0: {lines:?}");
    }
    for name in JVM {
        assert!(found[name].iter().all(|line| value(line) == 0.0), "{name}");
    }
    for name in OF_REAPER {
        assert!(found.contains_key(format!("{PREFIX}{name}").as_str()), "{name}");
    }
    for line in found.values().flatten() {
        let (series, number) = line.rsplit_once(' ').unwrap();
        assert!(series.contains(&labels), "{line} has not {labels}");
        assert!(number.contains('.'), "{line} has no point");
    }
    values_are_true(&node, &text);
    nothing_else_than_asked_for(&node);
    drop(client);
    node.stop();
}

fn values_are_true(node: &Node, text: &str) {
    let name = |of: &str| format!("{PREFIX}{of}");
    let table = ["keyspace=\"ks\"", "table=\"t\""];
    let of_table = |of: &str| one(text, &name(of), &table);
    // each of two shards flushed a memtable of it
    assert_eq!(of_table("table_memtable_switch_count"), f64::from(FLUSHES) + 1.0);
    assert_eq!(of_table("table_pending_flushes"), 0.0);
    assert_eq!(of_table("table_live_ss_table_count"), f64::from(FLUSHES) + 1.0);
    let stats = node.verb(&["compactionstats"]);
    let pending = stats.lines().find_map(|line| line.strip_prefix("pending tasks"));
    let pending: f64 = pending.unwrap().trim().parse().unwrap();
    assert!(pending >= 1.0, "{stats}");
    let pool = ["pool_type=\"internal\"", "pool_name=\"CompactionExecutor\""];
    assert_eq!(one(text, &name("thread_pools_pending_tasks"), &pool), pending);
    assert_eq!(one(text, &name("compaction_pending_tasks"), &[]), pending);
    let line = stats.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        (words.get(..2)? == ["ks", "t"]).then(|| words[2].parse::<f64>().unwrap())
    });
    assert_eq!(Some(of_table("table_pending_compactions")), line, "{stats}");
    let count = of_table("table_read_latency_count");
    assert_eq!(count, one(text, &name("table_read_latency_bucket"), &["+Inf", table[0], table[1]]));
    let compacted = of_table("table_compaction_bytes_written");
    assert!(compacted > 0.0 && compacted < 100_000.0, "{compacted}");
    let read = ["request_type=\"Read\""];
    assert_eq!(one(text, &name("client_request_unavailables_total"), &read), 1.0);
}

/// The filter, and both kinds of names of the same cells.
fn nothing_else_than_asked_for(node: &Node) {
    let wanted = ["thread_pools", "client_request_latency"].map(|name| format!("{PREFIX}{name}"));
    let path = format!("/metrics/k8ssandra?name={}&name={}", wanted[0], wanted[1]);
    let text = node.page(&path);
    let names = by_name(&text);
    assert!(names.keys().all(|name| wanted.iter().any(|wanted| name.starts_with(wanted))));
    for wanted in &wanted {
        assert!(names.keys().any(|name| name.starts_with(wanted)), "{wanted}: {text}");
    }
    assert_eq!(node.page("/metrics/k8ssandra?name=nothing"), "");
    let writes =
        one(&text, &format!("{PREFIX}client_request_latency_count"), &["request_type=\"Write\""]);
    let ours = node.metric("cassandra_clientrequest_latency_seconds_count{scope=\"Write\"}");
    assert_eq!(writes, ours);
}

#[test]
fn tables_have_further_metrics_where_the_operator_wants_them() {
    let place = Place::new(22);
    let further =
        "cassandra_table_caspreparetotallatency_seconds_total{keyspace=\"ks\",scope=\"t\"}";
    let hidden = "cassandra_storage_tablemetricsnotshown";
    let node = place.serve(&[]);
    Client::connect(&node.ip).fill(1);
    assert!(!node.metrics().contains(further));
    assert!(node.metric(hidden) > 0.0);
    node.stop();
    let node = place.serve(&["--set", "metrics_per_table=all"]);
    assert_eq!(node.metric(further), 0.0);
    assert_eq!(node.metric(hidden), 0.0);
}

/// A file of `packaging/grafana`.
fn packaged(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All strings under a key, however deep.
fn strings<'a>(of: &'a serde_json::Value, key: &str, found: &mut Vec<&'a str>) {
    match of {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                if name == key {
                    found.extend(value.as_str());
                }
                strings(value, key, found);
            }
        }
        serde_json::Value::Array(values) => {
            values.iter().for_each(|value| strings(value, key, found));
        }
        _ => {}
    }
}

/// What our own dashboard and alerts ask for is there, with the labels that they name.
#[test]
fn our_dashboard_and_alerts_ask_for_what_there_is() {
    let dashboard: serde_json::Value = serde_json::from_str(&packaged("helenus.json")).unwrap();
    let rules = packaged("alerts.yml");
    let mut expressions = Vec::new();
    strings(&dashboard, "expr", &mut expressions);
    let panels = expressions.len();
    expressions.extend(rules.lines().filter_map(|line| line.trim().strip_prefix("expr: ")));
    assert!(panels > 30 && expressions.len() - panels > 20, "{expressions:?}");
    let mut variables = Vec::new();
    strings(&dashboard, "definition", &mut variables);
    expressions.extend(variables);

    let place = Place::new(36);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    load(&node, &mut client);
    let text = node.metrics();
    let found = by_name(&text);
    let mut missing = BTreeSet::new();
    for expression in expressions {
        for (name, labels) in selectors(expression) {
            // Prometheus has that one itself
            if name == "up" {
                continue;
            }
            let lines = found.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            let has = |label: &str| lines.iter().any(|line| line.contains(&format!("{label}=\"")));
            let lacks =
                |label: &&String| !matches!(label.as_str(), "job" | "instance") && !has(label);
            if lines.is_empty() || labels.iter().any(|label| lacks(&label)) {
                missing.insert(format!("{name} {labels:?} in {expression}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
