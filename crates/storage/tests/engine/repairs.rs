//! Whom an anticompaction stops, whom it waits for and who waits for it; and how little it writes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Class, Env, Mesh};
use schema::TableId;
use storage::shards::Job;
use storage::{
    Anticompaction, Engine, NodeStore, Outcome, RepairStatus, RepairedState, StorageError,
};
use types::{Token, TokenRange, Uuid};

use crate::engine::{is_there, options, start, table, write};

const KEYS: i32 = 400;
const VALUE_BYTES: usize = 300;
/// Bytes of an SSTable, about, and of what is read of two in two minutes.
const BYTES: u64 = KEYS as u64 * VALUE_BYTES as u64;
const SLOW: u64 = 2 * BYTES / 120;
const LOWER: TokenRange = TokenRange { left: Token::MIN, right: Token(0) };
const MIDDLE: TokenRange = TokenRange { left: Token(0), right: Token(i64::MAX / 2) };
const ANTICOMPACTION: &str = "Anticompaction after repair";

/// The wanted session on one table, which can be stopped.
fn begin(
    env: &Env,
    node: &Rc<NodeStore>,
    (session, range): (u128, TokenRange),
) -> env::Task<Result<(), StorageError>> {
    let tables = BTreeMap::from([(table(0).id, vec![range])]);
    let wanted = Anticompaction { session: Uuid(session), tables, finalized: Vec::new() };
    let repairs = Rc::clone(node.repairs());
    env.spawn_task(Class::Admin, async move { repairs.anticompact(wanted, Rc::default()).await })
}

async fn until(env: &Env, holds: impl Fn() -> bool) {
    while !holds() {
        env.sleep(Duration::from_millis(10)).await;
    }
}

/// Of the live SSTables: numbers and states.
fn states(node: &NodeStore, id: TableId) -> BTreeMap<u64, RepairStatus> {
    node.live(id).tables().iter().map(|it| (it.number, it.repair_status())).collect()
}

fn running(node: &NodeStore, kind: &str) -> bool {
    let running = node.compactions().running();
    running.iter().any(|running| running.kind == kind && running.written.get() > 0)
}

async fn life(env: Env, mesh: Mesh<Job<Rc<Engine>>>) -> Result<(), StorageError> {
    let (engine, node) = start(&env, mesh, options(), &BTreeMap::new()).await?;
    let (Some(node), id) = (node, table(0).id) else { return Ok(()) };
    node.compactions().set_auto(id, false);
    for _ in 0..2 {
        for key in 0..KEYS {
            write(&engine, &table(0), key, VALUE_BYTES).await?;
        }
        node.flush(id).await?;
    }
    let all = || async {
        for key in 0..KEYS {
            assert!(is_there(&engine, &table(0), key).await?, "key {key} is gone");
        }
        Ok::<_, StorageError>(())
    };

    // what compacts the same SSTables is stopped
    node.compactions().set_throughput(SLOW);
    let theirs = Rc::clone(&node);
    let major =
        env.spawn_task(Class::Admin, async move { theirs.compactions().merge_all(id).await });
    until(&env, || running(&node, "Major compaction")).await;
    let started = env.now();
    let first = begin(&env, &node, (1, LOWER));
    assert!(matches!(major.await, Err(StorageError::Interrupted)), "the compaction is stopped");
    until(&env, || running(&node, ANTICOMPACTION)).await;
    assert!(env.now() - started < Duration::from_secs(30), "at once");

    // another session does not get them in a minute, and does not stop the first
    let second = begin(&env, &node, (2, MIDDLE)).await;
    let refused = matches!(
        second,
        Err(StorageError::AnticompactedElsewhere { session: Uuid(2), other: Uuid(1) })
    );
    assert!(refused, "{second:?}");
    assert!(env.now() - started >= Duration::from_secs(60), "it is tried for a minute");

    // what the operator asks for waits
    let theirs = Rc::clone(&node);
    let major =
        env.spawn_task(Class::Admin, async move { theirs.compactions().merge_all(id).await });
    first.await?;
    assert!(env.now() - started >= Duration::from_secs(100), "it keeps to the throughput");
    node.compactions().set_throughput(0);
    major.await?;
    let pending = RepairStatus::Pending(Uuid(1));
    let found = states(&node, id);
    assert_eq!(found.len(), 2, "one SSTable a state: {found:?}");
    assert!(found.values().any(|status| *status == pending), "{found:?}");
    assert!(found.values().any(|status| *status == RepairStatus::Unrepaired), "{found:?}");
    all().await?;

    // what lies wholly within is stamped, and what lies outside stays
    assert_eq!(node.repairs().pending_in(id, &[LOWER]), [Uuid(1)]);
    assert_eq!(node.repairs().pending_in(id, &[MIDDLE]), []);
    let refused = begin(&env, &node, (3, LOWER)).await;
    let is_pending = matches!(refused, Err(StorageError::PendingElsewhere { other: Uuid(1), .. }));
    assert!(is_pending, "{refused:?}");
    node.repairs().release(Uuid(1), Outcome::Failed).await?;
    assert!(states(&node, id).values().all(|status| *status == RepairStatus::Unrepaired));
    begin(&env, &node, (3, LOWER)).await?;
    let stamped = states(&node, id);
    assert!(stamped.keys().eq(found.keys()), "nothing is rewritten: {stamped:?}, {found:?}");
    chosen(&engine, &node, id).await?;
    let bytes = node.repairs().bytes(id);
    assert!(bytes.pending > 0 && bytes.unrepaired > 0 && bytes.repaired == 0, "{bytes:?}");
    node.repairs().release(Uuid(3), Outcome::Repaired(7)).await?;
    assert!(states(&node, id).values().any(|status| *status == RepairStatus::Repaired(7)));

    // whoever does not wait for it any more has it stopped
    node.compactions().set_throughput(SLOW);
    let fourth = begin(&env, &node, (4, MIDDLE));
    until(&env, || running(&node, ANTICOMPACTION)).await;
    drop(fourth);
    until(&env, || node.compactions().running().is_empty()).await;
    node.compactions().set_throughput(0);
    // which waits for whoever holds SSTables
    node.compactions().merge_these(id, |_| false).await?;
    assert!(states(&node, id).keys().eq(found.keys()), "the table is as it was");
    assert!(node.repairs().pending_sessions().is_empty());

    // the operator knows better
    let count = node.repairs().mark(id, |_| true, 0).await?;
    assert_eq!(count, 1);
    assert!(states(&node, id).values().all(|status| *status == RepairStatus::Unrepaired));
    all().await?;
    env.terminate();
    Ok(())
}

/// A stream or a validation has the SSTables of the state that it asks for.
async fn chosen(engine: &Engine, node: &NodeStore, id: TableId) -> Result<(), StorageError> {
    let mut counts = Vec::new();
    for state in [
        RepairedState::All,
        RepairedState::Unrepaired,
        RepairedState::Repaired,
        RepairedState::Pending(Uuid(3)),
        RepairedState::Pending(Uuid(4)),
    ] {
        counts.push(engine.sstables_in(id, &[TokenRange::ALL], state).await?.len());
    }
    assert_eq!(counts, [2, 2, 0, 1, 0]);
    let pending = node.repairs().pending(Uuid(3));
    let of_table = pending.get(&id).copied().unwrap_or_default();
    assert!(of_table.count == 1 && of_table.bytes > BYTES / 4, "{of_table:?}");
    Ok(())
}

#[test]
fn an_anticompaction_has_its_sstables_alone() {
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    world.start(node, 1, life);
    world.run_until(|| !world.is_up(node), Duration::from_secs(3600)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
}

/// Its compactions go on when a session has ended, however it did.
async fn resumed(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    is_resumed: Rc<Cell<bool>>,
) -> Result<(), StorageError> {
    let (engine, node) = start(&env, mesh, options(), &BTreeMap::new()).await?;
    let (Some(node), id) = (node, table(0).id) else { return Ok(()) };
    node.compactions().set_throughput(SLOW);
    for _ in 0..4 {
        for key in 0..KEYS {
            write(&engine, &table(0), key, VALUE_BYTES).await?;
        }
        node.flush(id).await?;
    }
    until(&env, || running(&node, "Compaction")).await;
    let first = begin(&env, &node, (1, LOWER));
    until(&env, || running(&node, ANTICOMPACTION)).await;
    node.compactions().set_throughput(0);
    first.await?;
    // one that is pending, and one that is not
    let deadline = env.now() + Duration::from_secs(600);
    until(&env, || node.live(id).tables().len() == 2 || env.now() > deadline).await;
    is_resumed.set(node.live(id).tables().len() == 2);
    env.terminate();
    Ok(())
}

#[test]
fn compactions_that_a_repair_stopped_go_on() {
    let goes_on = |bug: Option<&'static str>| {
        let world = World::new(1, WorldOptions::default());
        if let Some(bug) = bug {
            world.plant(bug);
        }
        let node = world.node(IpAddr::from([10, 0, 0, 1]));
        let is_resumed = Rc::<Cell<bool>>::default();
        let theirs = Rc::clone(&is_resumed);
        world.start(node, 1, move |env, mesh| resumed(env, mesh, Rc::clone(&theirs)));
        world.run_until(|| !world.is_up(node), Duration::from_secs(3600)).unwrap();
        assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
        is_resumed.get()
    };
    assert!(goes_on(None));
    assert!(!goes_on(Some("compactions_not_resumed")), "the bug is not found");
}
