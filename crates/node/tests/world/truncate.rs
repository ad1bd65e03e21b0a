//! TRUNCATE keeps to its time.

use std::time::Duration;

use env::sim::{World, WorldOptions};
use protocol::ErrorDetail;

use crate::{Client, config, start, told};

async fn story(client: Client) {
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    client.run(&format!("CREATE KEYSPACE t WITH replication = {replication}")).await;
    client.run("CREATE TABLE t.a (k int PRIMARY KEY)").await;
    client.run("INSERT INTO t.a (k) VALUES (1)").await;
    let Err(error) = client.try_run("TRUNCATE t.a").await else { panic!("in no time") };
    assert!(matches!(error.detail, ErrorDetail::TruncateError), "{error:?}");
    let text = "Error during truncate: Truncate timed out - received only 0 responses";
    assert_eq!(error.message, text);
    // It goes on nevertheless.
    while client.run("SELECT k FROM t.a").await.0 > 0 {
        client.env.sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn who_waits_for_a_truncation_gives_up_in_time() {
    let world = World::new(1, WorldOptions::default());
    let mut config = config();
    config.timeouts.truncate = Duration::from_nanos(1);
    let (_, serving) = start(&world, 2, config);
    told(&world, &serving, story);
}
