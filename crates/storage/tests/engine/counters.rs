//! The counter cache keeps nothing of who looked at a partition before somebody else changed it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Env, Mesh};
use rows::{CellRef, Clustering, Deletion, Mutation, RowBuilder, UpdateBuilder, counter};
use storage::shards::Job;
use storage::{
    CacheKind, Counted, CounterMark, CounterName, Engine, NodeStore, Part, StorageError,
};

use crate::engine::{options, start, table};

const KEY: [u8; 4] = [0; 4];
const PART: Part = Part { clock: 7, count: 3 };

/// What comes between a look at a partition and what is written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    Nothing,
    Deletion,
    DeletionWhileTheCacheIsOff,
    Truncation,
    Emptying,
}

fn name() -> CounterName<'static> {
    CounterName { row: None, column: 0 }
}

fn update() -> UpdateBuilder {
    let table = table(2);
    UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &KEY)
}

fn addition() -> Mutation {
    let (mut row, mut scratch, mut update) = (RowBuilder::new(), RowBuilder::new(), update());
    row.start_row(Clustering::new([]).as_ref());
    let value = counter::global([7; 16], PART.clock, PART.count);
    row.cell(CellRef::live(0, None, 5, &value));
    update.add(row.finish_row(&table(2).layout), &mut scratch);
    Mutation::new(update.finish(&mut scratch))
}

fn deletion() -> Mutation {
    let mut update = update();
    update.delete_partition(Deletion { marked_for_delete_at: 9, local_deletion_time: 1 });
    Mutation::new(update.finish(&mut RowBuilder::new()))
}

async fn count(engine: &Engine, mark: CounterMark) -> Result<(), StorageError> {
    let mut counted = Counted::since(mark);
    counted.add(name(), PART);
    let ticket = engine.apply_counted(&addition(), true, &[Some(counted)]).await?;
    Ok(ticket.durable().await?)
}

async fn come(engine: &Engine, node: &NodeStore, between: Between) -> Result<(), StorageError> {
    let delete =
        async || Ok::<_, StorageError>(engine.apply(&deletion(), true).await?.durable().await?);
    match between {
        Between::Nothing => {}
        Between::Deletion => delete().await?,
        Between::DeletionWhileTheCacheIsOff => {
            engine.caches().set_limit(CacheKind::Counters, 0);
            delete().await?;
            engine.caches().set_limit(CacheKind::Counters, 64 << 10);
        }
        Between::Truncation => {
            node.truncations()
                .truncate(table(2).id, None, async |_| Ok::<_, StorageError>(()))
                .await?;
        }
        Between::Emptying => engine.caches().clear(CacheKind::Counters),
    }
    Ok(())
}

type Found = Rc<RefCell<Vec<Option<Part>>>>;

/// What is kept after a counter was counted while something came between; and what after it came
/// again.
async fn shard(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    between: Between,
    found: Found,
) -> Result<(), StorageError> {
    if let (engine, Some(node)) = start(&env, mesh, options(), &BTreeMap::new()).await? {
        let store = engine.store(table(2).id)?;
        let mark = engine.caches().counter_mark(&store);
        come(&engine, &node, between).await?;
        count(&engine, mark).await?;
        let look =
            || engine.caches().kept_counter(engine.caches().counter_mark(&store), &KEY, name());
        found.borrow_mut().push(look());
        count(&engine, engine.caches().counter_mark(&store)).await?;
        found.borrow_mut().push(look());
        come(&engine, &node, between).await?;
        found.borrow_mut().push(look());
    }
    env.terminate();
    Ok(())
}

fn run(between: Between, bug: Option<&'static str>) -> Vec<Option<Part>> {
    let world = World::new(1, WorldOptions::default());
    if let Some(bug) = bug {
        world.plant(bug);
    }
    let (node, found) = (world.node(IpAddr::from([10, 0, 0, 1])), Found::default());
    let theirs = Rc::clone(&found);
    world.start(node, 1, move |env, mesh| shard(env, mesh, between, Rc::clone(&theirs)));
    world.run_until(|| !world.is_up(node), Duration::from_secs(60)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{between:?}: {:?}", world.exits(node));
    found.take()
}

#[test]
fn nothing_is_kept_of_what_was_changed_meanwhile() {
    assert_eq!(run(Between::Nothing, None), [Some(PART); 3]);
    assert_eq!(run(Between::Emptying, None), [Some(PART), Some(PART), None]);
    for between in [Between::Deletion, Between::DeletionWhileTheCacheIsOff, Between::Truncation] {
        assert_eq!(run(between, None), [None, Some(PART), None], "{between:?}");
    }
}

#[test]
fn a_cache_that_keeps_it_is_found() {
    let bug = Some("counter_cache_keeps_overtaken");
    assert_eq!(run(Between::Deletion, bug)[0], Some(PART));
    let bug = Some("counter_cache_survives_delete");
    assert_eq!(run(Between::Deletion, bug), [Some(PART); 3]);
}
