//! A traced request leaves a session and its events in `system_traces`, whatever shards it went
//! over.

use std::time::Duration;

use cluster::Request;
use env::sim::{World, WorldOptions};
use protocol::{Consistency, QueryOptions};

use crate::ring::{Members, NODES};
use crate::{Client, config, start, told};

/// How long drivers poll for a session's duration.
const PATIENCE: Duration = Duration::from_secs(2);

impl Client {
    /// Runs a statement as one whose client asked for a trace; its session.
    async fn trace(&self, text: &str) -> String {
        self.trace_at(Consistency::One, text).await
    }

    async fn trace_at(&self, consistency: Consistency, text: &str) -> String {
        let options = QueryOptions { consistency, ..QueryOptions::default() };
        let tracing = self.node.tracer().start(true, "10.0.0.9".parse().unwrap());
        let request = Request { tracing: tracing.clone(), ..self.request(&options) };
        let outcome = self.node.coordinator().query(text, request).await;
        self.node.tracer().end(tracing.as_ref(), &outcome);
        types::Uuid::from_bytes(tracing.unwrap().id().unwrap()).to_string()
    }

    /// One column of text of what a statement returns.
    async fn texts(&self, text: &str) -> Vec<String> {
        let (rows, mut cells) = self.run(text).await;
        let mut texts = Vec::new();
        for _ in 0..rows {
            let (length, rest) = cells.split_at(4);
            let length = i32::from_be_bytes(length.try_into().unwrap()).max(0) as usize;
            texts.push(String::from_utf8(rest[..length].to_vec()).unwrap());
            cells = rest[length..].to_vec();
        }
        texts
    }

    /// The events of a session, once it has a duration: all are there then.
    async fn events(&self, session: &str) -> Vec<String> {
        let done = format!(
            "SELECT duration FROM system_traces.sessions WHERE session_id = {session} \
             AND duration >= 0 ALLOW FILTERING"
        );
        let deadline = self.env.now() + PATIENCE;
        while self.run(&done).await.0 == 0 {
            assert!(self.env.now() < deadline, "{session} has no duration");
            self.env.sleep(Duration::from_millis(1)).await;
        }
        let events = "SELECT activity FROM system_traces.events WHERE session_id =";
        self.texts(&format!("{events} {session}")).await
    }
}

#[track_caller]
fn in_order(events: &[String], wanted: &[&str]) {
    let mut left = events.iter();
    for wanted in wanted {
        assert!(left.any(|event| event.contains(wanted)), "{wanted} is not in {events:#?}");
    }
}

async fn story(client: Client) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.run(&format!("CREATE KEYSPACE t WITH replication = {replication}")).await;
    client.run("CREATE TABLE t.a (k int PRIMARY KEY, v int)").await;
    let write = ["Parsing INSERT", "Preparing", "Appending to commitlog", "Adding to a memtable"];
    for k in 0..16 {
        let insert = format!("INSERT INTO t.a (k, v) VALUES ({k}, 1)");
        in_order(&client.events(&client.trace(&insert).await).await, &write);
    }
    let id = client.node.schema().table("t", "a").unwrap().id;
    client.node.engine().node().unwrap().flush(id).await.unwrap();
    client.run("UPDATE t.a SET v = 2 WHERE k = 3").await;
    let mut hops = 0;
    for k in 0..16 {
        let select = format!("SELECT * FROM t.a WHERE k = {k}");
        let session = client.trace(&select).await;
        let events = client.events(&session).await;
        let read = [
            "Parsing SELECT",
            "single-partition query on a",
            "entry found for sstable",
            "Merged data from memtables and 1 sstables",
            "Read 1 live rows",
            "with 1 rows",
        ];
        in_order(&events, &read);
        assert_eq!(events.iter().any(|event| event.contains("memtable contents")), k == 3);
        hops += usize::from(events.iter().any(|event| event.contains("READ_REQ message to shard")));
        let ttl = "SELECT ttl(activity) FROM system_traces.events WHERE session_id =";
        let (_, cells) = client.run(&format!("{ttl} {session}")).await;
        let ttl = i32::from_be_bytes(cells[4..8].try_into().unwrap());
        assert!((86_300..=86_400).contains(&ttl), "{ttl}");
    }
    assert!((1..16).contains(&hops), "{hops} of 16 keys are another shard's");
    let failed = client.trace("SELECT * FROM t.none").await;
    in_order(&client.events(&failed).await, &["Parsing", "Answering with an error"]);
    let scanned = client.events(&client.trace("SELECT * FROM t.a").await).await;
    in_order(&scanned, &["Computing ranges", "seq scan across 1 sstables", "with 16 rows"]);

    // by lot: all of them, then none
    assert!(client.node.tracer().start(false, "10.0.0.9".parse().unwrap()).is_none());
    client.node.tracer().set_probability(1.0);
    assert!(client.node.tracer().start(false, "10.0.0.9".parse().unwrap()).is_some());
    client.node.tracer().set_probability(0.0);
    assert!(client.node.tracer().start(false, "10.0.0.9".parse().unwrap()).is_none());
}

#[test]
fn a_trace_is_complete_when_its_session_has_a_duration() {
    let world = World::new(11, WorldOptions::default());
    let (_, serving) = start(&world, 2, config());
    told(&world, &serving, story);
}

/// Each event of a session with the last byte of the address of the node that wrote it.
async fn sources(client: &Client, session: &str) -> Vec<(u8, String)> {
    let text =
        format!("SELECT source, activity FROM system_traces.events WHERE session_id = {session}");
    let Ok(cluster::Answer::Rows(page)) = client.try_at(Consistency::All, &text).await else {
        return Vec::new();
    };
    let mut cells = page.cells.as_slice();
    let mut next = || {
        let (length, rest) = cells.split_at(4);
        let length = i32::from_be_bytes(length.try_into().unwrap()).max(0) as usize;
        let (cell, rest) = rest.split_at(length);
        cells = rest;
        cell.to_vec()
    };
    (0..page.rows).map(|_| (next()[3], String::from_utf8(next()).unwrap())).collect()
}

/// In a ring each replica writes what it did of a session itself, and nothing is told of replicas
/// that do not differ.
#[test]
fn a_session_has_the_events_of_all_replicas() {
    let members = Members::new(5);
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    members.statement(1, format!("CREATE KEYSPACE ks WITH replication = {replication}"));
    members.statement(1, "CREATE TABLE ks.a (k int PRIMARY KEY, v int)".to_owned());
    members.until("the table is everywhere", || (1..=NODES).all(|n| members.has_table(n, "a")));
    members.one_schema();
    members.world.set_fault(env::sim::Fault::Heal);
    let cases = [
        ("INSERT INTO ks.a (k, v) VALUES (1, 1)", "Adding to a memtable"),
        ("SELECT * FROM ks.a WHERE k = 1", "Read 1 live rows"),
        ("SELECT * FROM ks.a", "Executing seq scan"),
        ("UPDATE ks.a SET v = 2 WHERE k = 1 IF v = 1", "Accepting proposal"),
        (
            "BEGIN BATCH INSERT INTO ks.a (k, v) VALUES (2, 1); UPDATE ks.a SET v = 3 WHERE k = 3; APPLY BATCH",
            "Adding to a memtable",
        ),
    ];
    for (text, wanted) in cases {
        told(&members.world, &members.nodes[1].1, async move |client| {
            let session = client.trace_at(Consistency::All, text).await;
            let deadline = client.env.now() + PATIENCE;
            loop {
                let events = sources(&client, &session).await;
                let of = |node: u8, what: &str| {
                    events.iter().any(|(source, event)| *source == node && event.contains(what))
                };
                if (1..=NODES).all(|node| of(node, wanted))
                    && [1, 3].iter().all(|node| of(*node, "REQ message received from"))
                    && [1, 3].iter().all(|node| of(*node, "RSP message to"))
                    && of(2, "RSP message received from")
                {
                    let differs = events.iter().any(|(_, event)| event.contains("mismatch"));
                    assert!(!differs, "{text}: {events:#?}");
                    break;
                }
                assert!(client.env.now() < deadline, "{text}: {events:#?}");
                client.env.sleep(Duration::from_millis(10)).await;
            }
        });
    }
}
