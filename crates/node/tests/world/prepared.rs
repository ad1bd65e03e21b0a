//! What a client prepared is forgotten when it no longer means what the client thinks, and only
//! then.

use cluster::Answer;
use env::sim::{World, WorldOptions};
use protocol::{ErrorDetail, ErrorResponse, QueryOptions};

use crate::{Client, await_serving, config, start, told};

impl Client {
    async fn prepare(&self, text: &str) -> Vec<u8> {
        let prepared =
            self.node.coordinator().prepare(text, None, false, None, None, &mut Vec::new()).await;
        prepared.unwrap_or_else(|e| panic!("{text}: {}", e.message)).id.to_vec()
    }

    async fn execute(&self, id: &[u8]) -> Result<Answer, ErrorResponse> {
        let options = QueryOptions::default();
        self.node.coordinator().execute(id, self.request(&options)).await.0.result
    }

    async fn is_forgotten(&self, id: &[u8]) -> bool {
        match self.execute(id).await {
            Ok(_) => false,
            Err(error) => {
                assert!(
                    matches!(error.detail, ErrorDetail::Unprepared { .. }),
                    "{}",
                    error.message
                );
                true
            }
        }
    }
}

async fn story(client: Client) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.run(&format!("CREATE KEYSPACE t WITH replication = {replication}")).await;
    client.run("CREATE TYPE t.u (f int)").await;
    client.run("CREATE TABLE t.a (k int PRIMARY KEY, v int, x frozen<u>)").await;
    client.run("CREATE TABLE t.b (k int PRIMARY KEY, v int)").await;
    let select = client.prepare("SELECT * FROM t.a").await;
    assert!(matches!(client.execute(&select).await, Ok(Answer::Rows(_))));

    // what is of no matter to those who hold it
    client.run("ALTER TABLE t.b ADD w int").await;
    client.run("ALTER TABLE t.a WITH comment = 'c'").await;
    assert!(!client.is_forgotten(&select).await);

    // columns, types of columns, what is written without being said, another table of the name
    let changes = [
        "ALTER TABLE t.a ADD w int",
        "ALTER TABLE t.a DROP w",
        "ALTER TYPE t.u ADD g int",
        "ALTER TABLE t.a WITH default_time_to_live = 100",
    ];
    for change in changes {
        client.run(change).await;
        assert!(client.is_forgotten(&select).await, "{change}");
        assert!(client.is_forgotten(&select).await, "{change}: and it stays so");
        client.prepare("SELECT * FROM t.a").await;
        assert!(!client.is_forgotten(&select).await, "{change}: until it is prepared again");
    }
    let insert = client.prepare("INSERT INTO t.b (k, v) VALUES (1, 1)").await;
    let batch = "BEGIN BATCH INSERT INTO t.b (k, v) VALUES (1, 1); APPLY BATCH";
    let batch = client.prepare(batch).await;
    client.run("DROP TABLE t.b").await;
    assert!(client.is_forgotten(&insert).await);
    client.run("CREATE TABLE t.b (k int PRIMARY KEY, v int)").await;
    assert!(client.is_forgotten(&batch).await);
}

#[test]
fn statements_are_forgotten_when_their_tables_change() {
    for shards in 1..3 {
        let world = World::new(7, WorldOptions::default());
        let (_, serving) = start(&world, shards, config());
        told(&world, &serving, story);
    }
}

const OF_A: &str = "SELECT * FROM t.a";
const OF_B: &str = "INSERT INTO t.b (k, v) VALUES (1, 1)";

async fn what_is_prepared(client: Client) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.run(&format!("CREATE KEYSPACE t WITH replication = {replication}")).await;
    client.run("CREATE TABLE t.a (k int PRIMARY KEY, v int)").await;
    client.run("CREATE TABLE t.b (k int PRIMARY KEY, v int)").await;
    client.prepare(OF_A).await;
    client.prepare(OF_B).await;
    client.run("DROP TABLE t.b").await;
    client.run("CREATE TABLE t.b (k int PRIMARY KEY, v int)").await;
}

async fn is_prepared(client: Client) {
    assert!(!client.is_forgotten(&protocol::prepared_id(None, OF_A)).await);
    assert!(client.is_forgotten(&protocol::prepared_id(None, OF_B)).await);
}

#[test]
fn statements_outlive_the_node_unless_their_tables_went() {
    for shards in [1, 3] {
        let world = World::new(8, WorldOptions::default());
        let (id, serving) = start(&world, shards, config());
        told(&world, &serving, what_is_prepared);
        for _ in 0..2 {
            serving.take();
            world.kill(id);
            world.restart(id);
            await_serving(&world, &serving);
            told(&world, &serving, is_prepared);
        }
    }
}
