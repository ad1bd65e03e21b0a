//! The same rows as a live Cassandra 5.0.9 (`testdata/capture_virtual_tables.py`), from the same
//! data.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use schema::{Schema, Table};
use serde_json::Value;
use streaming::wire::Operation;
use streaming::{PlanView, Status, Sum};

use super::data::*;
use super::{PROVIDERS, partitions};

type Row = BTreeMap<String, Option<Vec<u8>>>;

fn schema() -> Schema {
    let keyspaces = schema::system::virtual_keyspaces();
    Schema::new(keyspaces, Schema::empty_version(), 0)
}

fn table(schema: &Schema, keyspace: &str, name: &str) -> Arc<Table> {
    Arc::clone(schema.table(keyspace, name).unwrap())
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// What Cassandra showed.
fn theirs(name: &str) -> Vec<Row> {
    let golden = include_str!("../../testdata/virtual_tables.json");
    let golden: Value = serde_json::from_str(golden).unwrap();
    let names: Vec<&str> =
        golden[name]["columns"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    let rows = golden[name]["rows"].as_array().unwrap().iter();
    let cells = |row: &Value| {
        let values = row.as_array().unwrap().iter().map(|v| v.as_str().map(unhex));
        names.iter().map(|name| (*name).to_owned()).zip(values).collect()
    };
    rows.map(cells).collect()
}

/// What we show.
fn ours(name: &str, data: &NodeData) -> Vec<Row> {
    let schema = schema();
    let (keyspace, name) = name.split_once('.').unwrap();
    let table = table(&schema, keyspace, name);
    let mut found = Vec::new();
    for update in partitions(&table, &schema, data, 1_000).unwrap() {
        let key = table.partition_key_values(&update.key).unwrap();
        for packed in update.rows.iter() {
            let mut row = Row::new();
            for (column, value) in table.partition_key.iter().zip(&key) {
                row.insert(column.name.to_string(), Some(value.to_vec()));
            }
            for (column, value) in table.clustering.iter().zip(packed.clustering().iter()) {
                row.insert(column.name.to_string(), value.map(<[u8]>::to_vec));
            }
            for column in &table.regulars {
                let cell = packed.cell(column.index);
                if let Some(cell) = cell {
                    assert_eq!(column.ty.validate(cell.value), Ok(()), "{}", column.name);
                    assert_eq!(cell.timestamp, 1_000);
                }
                row.insert(column.name.to_string(), cell.map(|cell| cell.value.to_vec()));
            }
            found.push(row);
        }
    }
    found
}

fn text(row: &Row, name: &str) -> Option<String> {
    row[name].clone().map(|bytes| String::from_utf8(bytes).unwrap())
}

fn long(row: &Row, name: &str) -> i64 {
    i64::from_be_bytes(row[name].clone().unwrap().try_into().unwrap())
}

fn int(row: &Row, name: &str) -> i32 {
    i32::from_be_bytes(row[name].clone().unwrap().try_into().unwrap())
}

fn double(row: &Row, name: &str) -> f64 {
    f64::from_be_bytes(row[name].clone().unwrap().try_into().unwrap())
}

fn address(row: &Row) -> SocketAddr {
    let octets: [u8; 4] = row["address"].clone().unwrap().try_into().unwrap();
    let port = u16::try_from(int(row, "port")).unwrap();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(octets)), port)
}

fn same(name: &str, data: &NodeData) {
    let (ours, theirs) = (ours(name, data), theirs(name));
    assert_eq!(ours.len(), theirs.len(), "{name}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn the_virtual_schema_is_that_of_cassandra() {
    for name in ["keyspaces", "tables", "columns"] {
        same(&format!("system_virtual_schema.{name}"), &NodeData::default());
    }
}

#[test]
fn settings_with_and_without_values_stand_in_the_order_of_their_names() {
    let name = "system_views.settings";
    let settings = theirs(name);
    assert!(settings.len() > 600);
    let mut settings: Vec<_> =
        settings.iter().map(|row| (text(row, "name").unwrap(), text(row, "value"))).collect();
    settings.reverse();
    same(name, &NodeData { settings: Some(settings), ..NodeData::default() });
}

#[test]
fn caches_and_pools_are_shown_as_by_cassandra() {
    let cache = |row: &Row| Cache {
        name: ["counters", "keys", "rows"]
            .into_iter()
            .find(|name| Some(*name) == text(row, "name").as_deref())
            .unwrap(),
        capacity: long(row, "capacity_bytes"),
        size: long(row, "size_bytes"),
        entries: int(row, "entry_count"),
        requests: long(row, "request_count"),
        hits: long(row, "hit_count"),
        request_rate: long(row, "recent_request_rate_per_second"),
        hit_rate: long(row, "recent_hit_rate_per_second"),
    };
    let pool = |row: &Row| ThreadPool {
        name: text(row, "name").unwrap(),
        active: int(row, "active_tasks"),
        limit: int(row, "active_tasks_limit"),
        pending: int(row, "pending_tasks"),
        completed: long(row, "completed_tasks"),
        blocked: long(row, "blocked_tasks"),
        all_time_blocked: long(row, "blocked_tasks_all_time"),
    };
    let data = NodeData {
        caches: Some(theirs("system_views.caches").iter().map(cache).collect()),
        thread_pools: Some(theirs("system_views.thread_pools").iter().map(pool).collect()),
        ..NodeData::default()
    };
    same("system_views.caches", &data);
    same("system_views.thread_pools", &data);
}

#[test]
fn clients_snapshots_and_queries_are_shown_as_by_cassandra() {
    let client = |row: &Row| Client {
        address: address(row),
        hostname: text(row, "hostname").unwrap(),
        username: text(row, "username"),
        stage: "ready",
        protocol_version: int(row, "protocol_version"),
        options: Some([("CQL_VERSION".to_owned(), "3.0.0".to_owned())].into()),
        driver_name: None,
        driver_version: None,
        requests: long(row, "request_count"),
        tls: None,
        keyspace: None,
    };
    let snapshot = |row: &Row| Snapshot {
        name: text(row, "name").unwrap(),
        keyspace: text(row, "keyspace_name").unwrap(),
        table: text(row, "table_name").unwrap(),
        created_at: Some(long(row, "created_at")),
        expires_at: None,
        ephemeral: false,
        size_on_disk: long(row, "size_on_disk"),
        true_size: long(row, "true_size"),
        own_tables: 0,
    };
    let query = |row: &Row| RunningQuery {
        thread: text(row, "thread_id").unwrap(),
        queued: long(row, "queued_micros"),
        running: long(row, "running_micros"),
        task: text(row, "task").unwrap(),
    };
    let data = NodeData {
        clients: Some(theirs("system_views.clients").iter().map(client).collect()),
        snapshots: Some(theirs("system_views.snapshots").iter().map(snapshot).collect()),
        queries: Some(theirs("system_views.queries").iter().map(query).collect()),
        ..NodeData::default()
    };
    for name in ["clients", "snapshots", "queries"] {
        same(&format!("system_views.{name}"), &data);
    }
}

#[test]
fn gossip_and_messages_are_shown_as_by_cassandra() {
    let schema = schema();
    let numbers: Vec<&'static str> = table(&schema, "system_views", "internode_outbound")
        .regulars
        .iter()
        .map(|column| &*column.name.to_string().leak())
        .collect();
    let states: Vec<&'static str> = table(&schema, "system_views", "gossip_info")
        .regulars
        .iter()
        .filter_map(|column| column.name.strip_suffix("_version"))
        .filter(|name| !matches!(*name, "release" | "net"))
        .chain(["release_version", "net_version"])
        .map(|name| &*name.to_owned().leak())
        .collect();
    let endpoint = |row: &Row| Endpoint {
        address: address(row),
        hostname: text(row, "hostname").unwrap(),
        generation: int(row, "generation"),
        heartbeat: int(row, "heartbeat"),
        states: states
            .iter()
            .filter_map(|name| {
                let version = format!("{name}_version");
                row.get(&version)?.as_ref()?;
                let value = row.get(*name).and_then(|_| text(row, name)).unwrap_or_default();
                Some(EndpointState { name: (*name).to_owned(), value, version: int(row, &version) })
            })
            .collect(),
    };
    let outbound = |row: &Row| Outbound {
        address: address(row),
        datacenter: text(row, "dc").unwrap(),
        rack: text(row, "rack").unwrap(),
        numbers: numbers.iter().map(|name| (*name, long(row, name))).collect(),
    };
    let data = NodeData {
        gossip: Some(theirs("system_views.gossip_info").iter().map(endpoint).collect()),
        outbound: Some(theirs("system_views.internode_outbound").iter().map(outbound).collect()),
        ..NodeData::default()
    };
    same("system_views.gossip_info", &data);
    same("system_views.internode_outbound", &data);
}

#[test]
fn numbers_of_tables_are_shown_as_by_cassandra() {
    let latencies = theirs("system_views.local_read_latency");
    let sizes = theirs("system_views.disk_usage");
    let both = latencies.iter().zip(&sizes);
    let tables = both.map(|(row, size)| TableStats {
        keyspace: text(row, "keyspace_name").unwrap(),
        table: text(row, "table_name").unwrap(),
        local_read: Latency {
            count: long(row, "count"),
            max: double(row, "max_ms") * 1e6,
            median: double(row, "p50th_ms") * 1e6,
            p99: double(row, "p99th_ms") * 1e6,
            per_second: double(row, "per_second"),
        },
        disk_usage: long(size, "mebibytes") << 20,
        ..TableStats::default()
    });
    let cql: BTreeMap<String, f64> = theirs("system_views.cql_metrics")
        .iter()
        .map(|row| (text(row, "name").unwrap(), double(row, "value")))
        .collect();
    let count = |name: &str| cql[name] as u64;
    let data = NodeData {
        tables: Some(tables.collect()),
        cql: Some(CqlStats {
            prepared: count("prepared_statements_count"),
            evicted: count("prepared_statements_evicted"),
            prepared_executed: count("prepared_statements_executed"),
            regular_executed: count("regular_statements_executed"),
        }),
        batches: Some(BatchStats::default()),
        ..NodeData::default()
    };
    for name in ["local_read_latency", "disk_usage", "cql_metrics", "batch_metrics"] {
        same(&format!("system_views.{name}"), &data);
    }
    let part = NodeData {
        tables: Some(vec![TableStats { disk_usage: 1, ..TableStats::default() }]),
        ..NodeData::default()
    };
    assert_eq!(long(&ours("system_views.disk_usage", &part)[0], "mebibytes"), 1);
}

#[test]
fn what_was_not_gathered_is_not_served() {
    let schema = schema();
    let data = NodeData::default();
    let mut unserved = Vec::new();
    for (keyspace, name, _) in PROVIDERS {
        let table = table(&schema, keyspace, name);
        match partitions(&table, &schema, &data, 0) {
            None => unserved.push(*name),
            Some(found) => {
                assert!(found.is_empty() || *keyspace == "system_virtual_schema", "{name}");
            }
        }
    }
    // three tables of the schema, and those that are empty whatever was gathered
    assert_eq!(unserved.len(), PROVIDERS.len() - 13);
    assert_eq!(
        PROVIDERS.len(),
        schema.keyspaces().values().map(|ks| ks.tables.len()).sum::<usize>()
    );
}

/// A plan of which a third is done.
fn plan() -> PlanView {
    let sum = |files, bytes, files_done, bytes_done| Sum { files, bytes, files_done, bytes_done };
    PlanView {
        id: types::Uuid(7 << 64 | 1 << 76),
        is_follower: true,
        operation: Operation::Rebuild,
        peers: vec![types::Address::new([127, 0, 0, 2], 7000)],
        status: Status::Start,
        progress: 0.3399,
        updated_at: 1_000_500,
        duration: Duration::from_millis(750),
        failure: None,
        reached: vec![(Status::Init, 1_000_000), (Status::Start, 1_000_001)],
        receiving: sum(8, 3000, 2, 1000),
        sending: sum(1, 7, 0, 5),
    }
}

fn float(row: &Row, name: &str) -> f32 {
    f32::from_be_bytes(row[name].clone().unwrap().try_into().unwrap())
}

#[test]
fn streams_are_shown_in_cassandras_columns() {
    let shown = |plan: PlanView| {
        let data = NodeData { streams: Some(vec![plan]), ..NodeData::default() };
        ours("system_views.streaming", &data).remove(0)
    };
    let row = shown(plan());
    for (name, value) in [
        ("bytes_received", 1000),
        ("bytes_sent", 5),
        ("bytes_to_receive", 3000),
        ("bytes_to_send", 7),
        ("files_received", 2),
        ("files_sent", 0),
        ("files_to_receive", 8),
        ("files_to_send", 1),
        ("duration_millis", 750),
        ("last_updated_at", 1_000_500),
        ("status_init_timestamp", 1_000_000),
        ("status_start_timestamp", 1_000_001),
    ] {
        assert_eq!(long(&row, name), value, "{name}");
    }
    assert_eq!(text(&row, "operation").as_deref(), Some("Rebuild"));
    assert_eq!(text(&row, "status").as_deref(), Some("start"));
    assert_eq!(row["follower"], Some(vec![1]));
    assert_eq!(float(&row, "progress_percentage"), 33.0, "as Cassandra cuts it off");
    assert_eq!(row["peers"], Some(b"\0\0\0\x01\0\0\0\x0f/127.0.0.2:7000".to_vec()));
    let none = ["failure_cause", "success_message", "status_success_timestamp"];
    assert!(none.iter().all(|name| row[*name].is_none()), "{row:?}");
    let nothing = PlanView { receiving: Sum::default(), sending: Sum::default(), ..plan() };
    assert!(shown(nothing)["bytes_to_receive"].is_none());
}

#[test]
fn keys_compare_component_by_component() {
    let schema = schema();
    let table = table(&schema, "system_views", "disk_usage");
    let key = |parts: [&str; 2]| -> Vec<u8> {
        let part = |text: &str| {
            let length = u16::try_from(text.len()).unwrap().to_be_bytes();
            [&length, text.as_bytes(), &[0]].concat()
        };
        parts.map(part).concat()
    };
    // a longer component is not greater for its length
    assert!(table.compare_keys(&key(["aa", "z"]), &key(["b", "a"])).is_lt());
    assert!(table.compare_keys(&key(["b", "a"]), &key(["b", "b"])).is_lt());
    assert!(table.compare_keys(&key(["b", "a"]), &key(["b", "a"])).is_eq());
    for cut in 0..6 {
        let whole = key(["b", "a"]);
        assert!(table.compare_keys(&whole[..cut], &whole).is_ne());
    }
}
