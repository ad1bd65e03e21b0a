//! What is said of a log that failed, whichever of its files it was.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{Fault, FileFault, NodeId, World, WorldOptions};
use env::{Env, Mesh};
use storage::commitlog::{Position, SyncMode};
use storage::shards::Job;
use storage::{Engine, LogSettings, StorageError};

use super::{open, open_synced, table, write};

const MINUTE: Duration = Duration::from_secs(60);
/// More rows than two segments have.
const MANY: i32 = 300;

type Said = Rc<RefCell<Option<String>>>;

/// The names of the segments on a node's disk.
fn segments(world: &World, node: NodeId) -> BTreeSet<String> {
    let files = world.disk(node, |disk| disk.files()).unwrap_or_default().into_iter();
    let names = files.filter_map(|(path, _)| path.rsplit('/').next().map(str::to_owned));
    names.filter(|name| name.starts_with("CommitLog-")).collect()
}

fn reach(world: &World, mark: &'static str) {
    world.run_until(|| world.marks().contains_key(mark), MINUTE).expect("it gets there");
}

/// Why the log of a node failed, after `fault`, which is armed while the node runs.
fn failure<F>(shard: F, fault: impl FnOnce(&World, NodeId)) -> String
where
    F: AsyncFn(Env, Mesh<Job<Rc<Engine>>>) -> Result<String, StorageError> + Copy + 'static,
{
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let said = Said::default();
    let theirs = Rc::clone(&said);
    world.start(node, 1, move |env, mesh| {
        let theirs = Rc::clone(&theirs);
        async move {
            theirs.replace(Some(shard(env.clone(), mesh).await?));
            env.terminated().await;
            Ok::<_, StorageError>(())
        }
    });
    fault(&world, node);
    let ended = || said.borrow().is_some() || !world.is_up(node);
    world.run_until(ended, MINUTE).expect("it fails");
    said.take().unwrap_or_else(|| panic!("{:?}", world.exits(node)))
}

async fn until_it_fails(engine: &Engine) -> String {
    loop {
        if let Some(error) = engine.log().and_then(|log| log.failure()) {
            return error.to_string();
        }
        engine.env().sleep(Duration::from_millis(1)).await;
    }
}

/// A segment that was left is synced before the next one is written to: it is the one that fails.
#[test]
fn the_file_that_failed_is_named() {
    let shard = async |env: Env, mesh| {
        let period = Duration::from_secs(30);
        let sync = SyncMode::Periodic { period, lag_block: period };
        let opened = open_synced(&env, mesh, LogSettings::default(), sync).await?;
        opened.node.begin_log().await?;
        env.mark("begun");
        for n in 0..MANY {
            if write(&opened.engine, n).await.is_err() {
                break;
            }
            env.yield_now().await;
        }
        Ok(until_it_fails(&opened.engine).await)
    };
    let first = RefCell::new(String::new());
    let said = failure(shard, |world, node| {
        reach(world, "begun");
        let name = segments(world, node).first().cloned().expect("a segment");
        world.set_fault(Fault::File { node, what: Some((name.clone(), FileFault::Sync)) });
        first.replace(name);
    });
    assert!(said.contains("cannot sync") && said.contains(&*first.borrow()), "{said}");
}

/// A sync of the log's directory may have covered names that are needed, so that its failure is one
/// of the log.
#[test]
fn a_sync_of_the_directory_that_fails_is_not_ignored() {
    let shard = async |env: Env, mesh| {
        let opened = open(&env, mesh, LogSettings::default()).await?;
        opened.node.begin_log().await?;
        for n in 0..MANY {
            write(&opened.engine, n).await?;
        }
        env.mark("written");
        opened.node.flush(table().id).await?;
        Ok(until_it_fails(&opened.engine).await)
    };
    let said = failure(shard, |world, node| {
        reach(world, "written");
        let before = segments(world, node);
        let is_gone = || !before.is_subset(&segments(world, node));
        world.run_until(is_gone, MINUTE).expect("a segment goes");
        let what = Some(("/commitlog".to_owned(), FileFault::SyncNames));
        world.set_fault(Fault::File { node, what });
    });
    assert!(said.contains("cannot sync directory /commitlog"), "{said}");
}

/// Ids above that of what was truncated must last for good.
#[test]
fn a_log_whose_ids_would_not_last_does_not_begin() {
    let shard = async |env: Env, mesh| {
        let opened = open(&env, mesh, LogSettings::default()).await?;
        let last = Position { segment: i64::MAX - 1, offset: 0 };
        opened.node.replay(&|_| true, &BTreeMap::from([(table().id, last)])).await?;
        let begun = opened.node.begin_log().await;
        Ok(begun.expect_err("there are no ids left").to_string())
    };
    let said = failure(shard, |_, _| {});
    assert!(said.contains(&(i64::MAX - 1).to_string()), "{said}");
}
