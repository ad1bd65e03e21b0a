//! A conditional request that meets an altered table where its key is owned is planned anew, as
//! other statements are.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use cluster::{Request, Shard};
use env::Class;
use env::sim::{World, WorldOptions};
use protocol::{ErrorDetail, ErrorResponse, QueryOptions, Version};

use crate::{Client, config, start, told};

/// Conditional statements asked of one shard, and columns that are added meanwhile.
const STATEMENTS: usize = 600;
const COLUMNS: usize = 24;
/// Worlds in which no request may meet an altered table by chance.
const WORLDS: u64 = 20;

fn request<'a>(node: &Shard, options: &'a QueryOptions<'a>) -> Request<'a> {
    Request {
        keyspace: None,
        version: Version::V5,
        options,
        deadline: node.engine().env().now() + Duration::from_secs(10),
        user: None,
        tracing: None,
        guard: OnceCell::new(),
        observed: None,
        is_shard_aware: false,
    }
}

/// Asks a shard for conditional statements, some prepared; the errors.
async fn ask(node: Rc<Shard>) -> Vec<String> {
    let options = QueryOptions::default();
    let text = |k: usize| format!("UPDATE t.a SET v = 1 WHERE k = {k} IF v = 0");
    let mut errors = Vec::new();
    for n in 0..STATEMENTS {
        let text = text(n % 16);
        let result = match n % 2 {
            0 => node.coordinator().query(&text, request(&node, &options)).await.result.map(drop),
            _ => match node
                .coordinator()
                .prepare(&text, None, false, None, None, &mut Vec::new())
                .await
            {
                Ok(info) => node
                    .coordinator()
                    .execute(&info.id, request(&node, &options))
                    .await
                    .0
                    .result
                    .map(drop),
                Err(error) => Err(error),
            },
        };
        // a driver prepares again what is forgotten
        let is_forgotten = |e: &ErrorResponse| matches!(e.detail, ErrorDetail::Unprepared { .. });
        errors.extend(result.err().filter(|e| !is_forgotten(e)).map(|error| error.message));
    }
    errors
}

/// Did a request meet an altered table?
fn story(seed: u64) -> bool {
    let world = World::new(seed, WorldOptions::default());
    let (_, serving) = start(&world, 2, config());
    let errors = told(&world, &serving, async |client: Client| {
        let simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        client.run(&format!("CREATE KEYSPACE t WITH replication = {simple}")).await;
        client.run("CREATE TABLE t.a (k int PRIMARY KEY, v int)").await;
        let other = client.clone();
        let altered = client.env.spawn_task(Class::Statement, async move {
            for n in 0..COLUMNS {
                other.run(&format!("ALTER TABLE t.a ADD c{n} int")).await;
            }
        });
        // the first shard, which owns the schema, is altered before the one that is asked
        let asked = client.node.others().call_async(1, Class::Statement, ask).await.unwrap();
        altered.await;
        asked
    });
    assert!(errors.is_empty(), "{errors:?}");
    world.marks().contains_key("cas.outdated")
}

#[test]
fn conditions_meet_altered_tables() {
    assert!((12..12 + WORLDS).any(story), "no request met an altered table");
}
