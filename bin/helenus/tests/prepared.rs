//! What a client prepared is forgotten when it no longer means what the client thinks, and only then.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Answer, Coordinator, Request};
use config::Config;
use env::sim::{World, WorldOptions};
use env::{Class, Env, Mesh};
use helenus::{Message, run_shard};
use protocol::{ErrorDetail, ErrorResponse, QueryOptions, Version};
use server::ConnectionLimits;

const PATIENCE: Duration = Duration::from_secs(120);

fn config() -> Arc<Config> {
    let mut config = Config::default();
    let address = ["data_dir=/d", "listen_address=10.0.0.1", "rpc_address=10.0.0.1"];
    config.set_all(address).unwrap();
    Arc::new(config)
}

/// A client of one shard.
struct Client {
    env: Env,
    node: Rc<Coordinator>,
}

impl Client {
    fn request<'a>(&self, options: &'a QueryOptions<'a>) -> Request<'a> {
        let deadline = self.env.now() + Duration::from_secs(10);
        Request { keyspace: None, version: Version::V4, options, deadline }
    }

    async fn run(&self, text: &str) {
        let options = QueryOptions::default();
        let outcome = self.node.query(text, self.request(&options)).await;
        outcome.result.unwrap_or_else(|e| panic!("{text}: {}", e.message));
    }

    async fn prepare(&self, text: &str) -> Vec<u8> {
        let prepared = self.node.prepare(text, None, None).await;
        prepared.unwrap_or_else(|e| panic!("{text}: {}", e.message)).id.to_vec()
    }

    async fn execute(&self, id: &[u8]) -> Result<Answer, ErrorResponse> {
        let options = QueryOptions::default();
        self.node.execute(id, self.request(&options)).await.0.result
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
        let node = world.node("10.0.0.1".parse().unwrap());
        let serving: Rc<RefCell<Option<Client>>> = Rc::default();
        let theirs = Rc::clone(&serving);
        world.start(node, shards, move |env: Env, mesh: Mesh<Message>| {
            let serving = Rc::clone(&theirs);
            run_shard(env.clone(), mesh, config(), ConnectionLimits::new(), move |node, _| {
                let client = |it| Client { env, node: Rc::clone(it) };
                *serving.borrow_mut() = node.coordinator().map(client);
            })
        });
        world.run_until(|| serving.borrow().is_some(), PATIENCE).unwrap();
        let client = serving.take().unwrap();
        let done = Rc::new(RefCell::new(false));
        let theirs = Rc::clone(&done);
        client.env.clone().spawn(Class::Statement, async move {
            story(client).await;
            *theirs.borrow_mut() = true;
        });
        world.run_until(|| *done.borrow(), PATIENCE).unwrap();
    }
}
