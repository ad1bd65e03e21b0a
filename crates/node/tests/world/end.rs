//! Nothing of a node stays in memory when it is gone, however it went.

use std::rc::Rc;

use env::sim::{World, WorldOptions};

use crate::{all, await_serving, config, start};

#[test]
fn a_world_that_ends_leaves_nothing() {
    let world = World::new(1, WorldOptions::default());
    let (id, serving) = start(&world, 3, config());
    let schema =
        "CREATE KEYSPACE t WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let table = "CREATE TABLE t.a (k int PRIMARY KEY)".to_owned();
    all(&world, &serving, vec![schema.to_owned(), table]);
    for kill in [true, false] {
        // virtual tables gather from all shards
        all(&world, &serving, vec!["SELECT * FROM system_views.caches".to_owned()]);
        let gone = Rc::downgrade(&serving.take().unwrap().node);
        match kill {
            true => world.kill(id),
            false => world.power_cut(id),
        }
        assert_eq!(gone.strong_count(), 0, "a shard outlives its node");
        world.restart(id);
        await_serving(&world, &serving);
    }
    drop(serving);
    assert_eq!(world.end(), 0, "shards are still in memory");
}
