//! Compressed segments of a Cassandra 5.0.9 that was killed (`testdata/commitlog`), replayed by the
//! engine: what they hold is there, a torn tail is tolerated, and what is damaged ends the start
//! unless the operator wants otherwise. And our own: archived and restored to a point in time,
//! captured for a consumer, and refused where they are too large.

use crate::common;
mod faults;
mod missing;
mod pages;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{Fault, World, WorldOptions};
use env::{Env, Mesh};
use rows::{CellRef, Clustering, Mutation, RowBuilder, Unfiltered, UpdateBuilder};
use schema::{ColumnKind, Keyspace, Replication, Schema, Table, TableId, TableParams};
use storage::commitlog::{
    Archiving, CdcOptions, Compression, LogEvent, SyncMode, parse_file_name, read_segment,
    segment_files, survey,
};
use storage::shards::{Job, Shards};
use storage::{
    Engine, LogSettings, NodeStore, Options, PartitionKey, Replay, Slices, StorageError,
};
use types::CqlType;

/// Bytes of our own segments.
const SEGMENT_BYTES: u32 = 4 << 10;
/// Microseconds in a second: row `n` is written at second `n`.
const MICROS: i64 = 1_000_000;
/// Rows that the segments hold, in partitions `n % 7`: `value-n-`, repeated `1 + n % 5` times.
const ROWS: i32 = 200;
/// Rows that are written while syncs fail.
const FAILING_ROWS: i32 = 200;
/// The segment, and its number.
type Segment = (i64, Vec<u8>);

fn table() -> Arc<Table> {
    let id = 0x1111_1111_2222_3333_4444_5555_5555_5555u128.to_be_bytes();
    let params = TableParams { cdc: true, ..TableParams::default() };
    let builder = Table::builder("f", "t", TableId(id))
        .params(params)
        .column("k", CqlType::Int, ColumnKind::PartitionKey)
        .column("c", CqlType::Int, ColumnKind::Clustering)
        .column("v", CqlType::Text, ColumnKind::Regular);
    Arc::new(builder.build())
}

fn schema() -> Arc<Schema> {
    let keyspace = Keyspace {
        name: "f".into(),
        durable_writes: true,
        replication: Replication::simple(1),
        tables: [("t".to_owned(), table())].into(),
        types: BTreeMap::new(),
        views: BTreeMap::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    };
    Arc::new(Schema::new([Arc::new(keyspace)], Schema::empty_version(), 1))
}

fn segments() -> [Segment; 4] {
    [
        (1_795_343_203_769, include_bytes!("../../testdata/commitlog/lz4.log").to_vec()),
        (1_795_343_245_540, include_bytes!("../../testdata/commitlog/snappy.log").to_vec()),
        (1_795_343_283_538, include_bytes!("../../testdata/commitlog/deflate.log").to_vec()),
        (1_795_343_321_170, include_bytes!("../../testdata/commitlog/zstd.log").to_vec()),
    ]
}

/// Values by partition and clustering.
type Values = BTreeMap<(i32, i32), String>;
/// Values, and what the replay said.
type Found = (Values, Replay);

/// A node of one shard, replayed; its log has not begun.
struct Opened {
    engine: Rc<Engine>,
    node: Rc<NodeStore>,
    replay: Replay,
}

fn directory() -> PathBuf {
    PathBuf::from("/commitlog")
}

async fn make(env: &Env, directory: &Path) -> Result<(), StorageError> {
    let failed = |e| StorageError::io("cannot make", directory, e);
    env.create_dir_all(directory).await.map_err(failed)?;
    env.sync_dir("/").await.map_err(failed)
}

async fn open(
    env: &Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    log: LogSettings,
) -> Result<Opened, StorageError> {
    open_synced(env, mesh, log, SyncMode::Batch).await
}

async fn open_synced(
    env: &Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    log: LogSettings,
    sync: SyncMode,
) -> Result<Opened, StorageError> {
    open_in(env, mesh, Path::new("/"), log, sync).await
}

async fn open_in(
    env: &Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    root: &Path,
    log: LogSettings,
    sync: SyncMode,
) -> Result<Opened, StorageError> {
    let sender = mesh.clone();
    let shards = Shards::new(env, move |to, job| sender.send(to, job));
    let directory = root.join("commitlog");
    make(env, &directory).await?;
    if let Some(cdc) = &log.cdc {
        make(env, &cdc.directory).await?;
    }
    let options = Options {
        data_directories: vec![root.join("data")],
        commitlog_directory: directory,
        sync,
        segment_bytes: SEGMENT_BYTES,
        log,
        concurrent_compactors: 1,
        ..common::options()
    };
    let engine = Engine::new(env, options, shards, schema());
    engine.set_host_id([7; 16]);
    let context = Rc::clone(&engine);
    env.spawn(env::Class::Statement, async move {
        loop {
            let (_, job) = mesh.recv().await;
            job(&context);
        }
    });
    let node = engine.become_first();
    node.set_schema(&schema()).await?;
    node.open_tables([&table()]).await?;
    node.restore_log().await?;
    let replay = node.replay(&|_| true, &BTreeMap::new()).await?;
    Ok(Opened { engine, node, replay })
}

async fn values(engine: &Rc<Engine>) -> Result<Values, StorageError> {
    let mut values = BTreeMap::new();
    for k in 0..7i32 {
        let key = PartitionKey::new(k.to_be_bytes());
        let found = engine.partition(&table(), key.as_ref(), &Slices::all(false)).await?;
        let Some(mut partition) = found else { continue };
        while let Some(Unfiltered::Row(row)) = partition.next().await? {
            let c = row.clustering().get(0).flatten().and_then(|c| c.first_chunk::<4>());
            let c = i32::from_be_bytes(*c.expect("a clustering"));
            let cell = row.cells().next().expect("a cell");
            values.insert((k, c), String::from_utf8(cell.value.to_vec()).expect("text"));
        }
    }
    Ok(values)
}

async fn write(engine: &Rc<Engine>, n: i32) -> Result<(), StorageError> {
    let (table, value) = (table(), written(n + 1)[&(n % 7, n)].clone());
    let mut row = RowBuilder::new();
    row.start_row(Clustering::new([Some(&n.to_be_bytes()[..])]).as_ref());
    row.cell(CellRef::live(0, None, i64::from(n) * MICROS, value.as_bytes()));
    let mut update =
        UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &(n % 7).to_be_bytes());
    update.add(row.finish_row(&table.layout), &mut RowBuilder::new());
    let mutation = Mutation::new(update.finish(&mut RowBuilder::new()));
    Ok(engine.apply(&mutation, true).await?.durable().await?)
}

/// What a node does in one life.
type Life<T> = Box<dyn Fn(Env, Mesh<Job<Rc<Engine>>>) -> LifeEnd<T>>;
type LifeEnd<T> = std::pin::Pin<Box<dyn Future<Output = Result<T, StorageError>>>>;

/// Writes rows until the power is cut, then starts again: the rows that are there.
fn after_power_cut(seed: u64, planted: Option<&'static str>) -> Values {
    let world = World::new(seed, WorldOptions::default());
    if let Some(bug) = planted {
        world.plant(bug);
    }
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let found = Rc::new(RefCell::new(None));
    let (theirs, begun) = (Rc::clone(&found), Rc::new(Cell::new(false)));
    let (period, lag_block) = (Duration::from_millis(5), Duration::from_millis(7));
    let started = Rc::clone(&begun);
    world.start(node, 1, move |env, mesh| {
        let (theirs, started) = (Rc::clone(&theirs), Rc::clone(&started));
        async move {
            let sync = SyncMode::Periodic { period, lag_block };
            let opened = open_synced(&env, mesh, LogSettings::default(), sync).await?;
            if started.get() {
                theirs.replace(Some(values(&opened.engine).await?));
                env.terminated().await;
                return Ok(());
            }
            opened.node.begin_log().await?;
            started.set(true);
            for n in 0.. {
                write(&opened.engine, n).await?;
                env.yield_now().await;
            }
            Ok::<_, StorageError>(())
        }
    });
    world.run_until(|| begun.get(), Duration::from_secs(60)).expect("it begins");
    let time = Duration::from_micros(1 + world.rng().below(80_000));
    world.run_for(time).expect("it writes");
    world.power_cut(node);
    world.restart(node);
    let done = || found.borrow().is_some() || !world.is_up(node);
    world.run_until(done, Duration::from_secs(60)).expect("it ends");
    let found = found.take();
    found.unwrap_or_else(|| panic!("seed {seed}: {:?}", world.exits(node)))
}

/// Is it what was written first, all of it up to some row?
fn is_a_beginning(found: &Values) -> bool {
    *found == written(i32::try_from(found.len()).expect("few"))
}

/// While a section is on its way, records gather for the next: however slow the disk is, no line of
/// short ones grows, behind which none would be written at once again. And writes wait where the
/// files are far behind: what is acknowledged and in no file goes with the process.
#[test]
fn records_gather_while_a_section_is_on_its_way() {
    const WRITES: i32 = 500;
    const ROW_BYTES_MAX: u64 = 200;
    let disk = (Duration::from_millis(1), Duration::from_millis(2));
    let world = World::new(3, WorldOptions { disk, ..WorldOptions::default() });
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let most = Rc::new(Cell::new(None));
    let seen = Rc::clone(&most);
    world.start(node, 1, move |env, mesh| {
        let seen = Rc::clone(&seen);
        async move {
            let (period, lag_block) = (Duration::from_secs(10), Duration::from_secs(10));
            let sync = SyncMode::Periodic { period, lag_block };
            let opened = open_synced(&env, mesh, LogSettings::default(), sync).await?;
            opened.node.begin_log().await?;
            let log = opened.engine.log().expect("it has begun");
            let mut most = (0, 0);
            for n in 0..WRITES {
                write(&opened.engine, n).await?;
                env.yield_now().await;
                let pending = log.pending();
                most = (most.0.max(pending.sections), most.1.max(pending.unwritten));
            }
            seen.set(Some(most));
            env.terminated().await;
            Ok::<_, StorageError>(())
        }
    });
    world.run_until(|| most.get().is_some(), Duration::from_secs(60)).expect("it writes");
    let (sections, unwritten) = most.get().expect("it has written");
    assert!(sections <= 1, "{sections} sections in line");
    let most = u64::from(SEGMENT_BYTES) / 2 + ROW_BYTES_MAX;
    assert!(unwritten <= most, "{unwritten} bytes in no file");
}

/// A sync of what is in the files says nothing of what is not: where writes to them hang, the log
/// is overdue, and nothing more is acknowledged.
#[test]
fn writes_wait_where_those_of_the_log_hang() {
    const HANGS: Duration = Duration::from_secs(1);
    let (period, lag_block) = (Duration::from_millis(100), Duration::from_millis(100));
    let pause = Duration::from_millis(30);
    let world = World::new(3, WorldOptions { disk: (HANGS, HANGS), ..WorldOptions::default() });
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let (written, is_over) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let (acked, over) = (Rc::clone(&written), Rc::clone(&is_over));
    world.start(node, 1, move |env, mesh| {
        let (acked, over) = (Rc::clone(&acked), Rc::clone(&over));
        async move {
            let sync = SyncMode::Periodic { period, lag_block };
            let opened = open_synced(&env, mesh, LogSettings::default(), sync).await?;
            opened.node.begin_log().await?;
            let end = env.now() + HANGS - pause;
            let some = async {
                for n in 0.. {
                    write(&opened.engine, n).await?;
                    acked.set(n + 1);
                    env.sleep(pause).await;
                }
                Ok::<_, StorageError>(())
            };
            let _ = env.timeout_at(end, some).await;
            over.set(true);
            env.terminated().await;
            Ok::<_, StorageError>(())
        }
    });
    world.run_until(|| is_over.get(), Duration::from_secs(3600)).expect("it writes");
    let most = (period * 2 + lag_block).as_millis() / pause.as_millis() + 1;
    let written = written.get();
    assert!((1..=most as i32).contains(&written), "{written} rows, of which none is on the disk");
}

/// Whoever runs the node is to know why writes wait.
#[test]
fn a_sync_that_takes_long_is_told_of() {
    // a sync takes ten times as long
    const DISK: Duration = Duration::from_millis(600);
    let (period, lag_block) = (Duration::from_millis(100), Duration::from_millis(100));
    let world = World::new(3, WorldOptions { disk: (DISK, DISK), ..WorldOptions::default() });
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let told = Rc::new(RefCell::new(Vec::new()));
    let ours = Rc::clone(&told);
    world.start(node, 1, move |env, mesh| {
        let told = Rc::clone(&told);
        async move {
            let sync = SyncMode::Periodic { period, lag_block };
            let opened = open_synced(&env, mesh, LogSettings::default(), sync).await?;
            opened.engine.watch_log(Rc::new(move |event| match event {
                LogEvent::Late(what) => told.borrow_mut().push(what.to_owned()),
                other => panic!("{other:?}"),
            }));
            opened.node.begin_log().await?;
            for n in 0.. {
                write(&opened.engine, n).await?;
                env.yield_now().await;
            }
            Ok::<_, StorageError>(())
        }
    });
    let said = "A sync of the commit log took 6 s and 1 writes waited for it; check the load of the disk of commitlog_directory";
    let is_told = || ours.borrow().iter().any(|what| what == said);
    let done = world.run_until(is_told, Duration::from_secs(600));
    done.unwrap_or_else(|error| panic!("{error:?}, {:?}", ours.borrow()));
}

#[test]
fn what_a_power_cut_leaves_of_a_log_is_its_beginning() {
    let found: Vec<Values> = (0..40).map(|seed| after_power_cut(seed, None)).collect();
    for (seed, found) in found.iter().enumerate() {
        assert!(is_a_beginning(found), "seed {seed}: {:?}", found.keys());
    }
    assert!(found.iter().any(|found| found.len() > 500), "several segments");
    let holes = (0..40)
        .filter(|seed| !is_a_beginning(&after_power_cut(*seed, Some("segments_written_at_once"))));
    assert!(holes.count() > 0, "segments written at once leave holes");
}

/// Writes rows that are acknowledged once they are synced, while some syncs fail; then cuts the
/// power and starts again. True if all that was acknowledged is there.
fn keeps_its_word(seed: u64, planted: Option<&'static str>) -> bool {
    let world = World::new(seed, WorldOptions::default());
    if let Some(bug) = planted {
        world.plant(bug);
    }
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let found = Rc::new(RefCell::new(None));
    let (acked, ended) = (Rc::new(Cell::new(-1)), Rc::new(Cell::new(false)));
    let (theirs, count, over) = (Rc::clone(&found), Rc::clone(&acked), Rc::clone(&ended));
    world.start(node, 1, move |env, mesh| {
        let (theirs, acked, ended) = (Rc::clone(&theirs), Rc::clone(&count), Rc::clone(&over));
        async move {
            let opened = open(&env, mesh, LogSettings::default()).await?;
            if acked.get() < 0 {
                opened.node.begin_log().await?;
                acked.set(0);
                for n in 0..FAILING_ROWS {
                    if write(&opened.engine, n).await.is_err() {
                        break;
                    }
                    acked.set(n + 1);
                }
                ended.set(true);
            } else {
                theirs.replace(Some(values(&opened.engine).await?));
            }
            env.terminated().await;
            Ok::<_, StorageError>(())
        }
    });
    world.run_until(|| acked.get() >= 0, Duration::from_secs(60)).expect("it begins");
    world.set_fault(Fault::SyncError { node, one_in: 20 });
    world.run_until(|| ended.get(), Duration::from_secs(60)).expect("it writes");
    world.set_fault(Fault::SyncError { node, one_in: 0 });
    world.power_cut(node);
    world.restart(node);
    let done = || found.borrow().is_some() || !world.is_up(node);
    world.run_until(done, Duration::from_secs(60)).expect("it ends");
    let wanted = written(acked.get());
    found
        .take()
        .is_some_and(|found| wanted.iter().all(|(key, value)| found.get(key) == Some(value)))
}

#[test]
fn a_sync_that_failed_acknowledges_nothing() {
    assert_eq!((0..40).find(|seed| !keeps_its_word(*seed, None)), None);
    let broken = (0..40).filter(|seed| !keeps_its_word(*seed, Some("sync_retried"))).count();
    assert!(broken > 0, "a sync that is done again after it failed is none");
}

/// Lets a node live several times; between lives it is killed.
fn lives<T: 'static>(lives: Vec<Life<T>>) -> Vec<Result<T, String>> {
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let results = Rc::new(RefCell::new(Vec::new()));
    let count = lives.len();
    let (theirs, lives) = (Rc::clone(&results), Rc::new(lives));
    world.start(node, 1, move |env, mesh| {
        let (theirs, lives) = (Rc::clone(&theirs), Rc::clone(&lives));
        async move {
            let life = theirs.borrow().len();
            let found = lives[life](env.clone(), mesh).await;
            theirs.borrow_mut().push(found.map_err(|error| error.to_string()));
            env.terminated().await;
            Ok::<_, StorageError>(())
        }
    });
    for life in 1..=count {
        let done = || results.borrow().len() == life || !world.is_up(node);
        world.run_until(done, Duration::from_secs(60)).expect("it ends");
        assert_eq!(results.borrow().len(), life, "{:?}", world.exits(node));
        world.kill(node);
        world.restart(node);
    }
    results.take()
}

fn replay(segments: Vec<Segment>, ignore: bool) -> Result<Found, String> {
    let log = LogSettings { ignore_replay_errors: ignore, ..LogSettings::default() };
    let life: Life<Found> = Box::new(move |env, mesh| {
        let (segments, log) = (segments.clone(), log.clone());
        Box::pin(async move {
            make(&env, &directory()).await?;
            for (id, bytes) in segments {
                let path = directory().join(format!("CommitLog-7-{id}.log"));
                let failed = |e| StorageError::io("cannot write", directory(), e);
                env.write_file_atomically(path, bytes).await.map_err(failed)?;
            }
            let opened = open(&env, mesh, log).await?;
            Ok((values(&opened.engine).await?, opened.replay))
        })
    });
    lives(vec![life]).remove(0)
}

fn written(upto: i32) -> Values {
    let value = |n: i32| format!("value-{n}-").repeat(1 + (n % 5) as usize);
    (0..upto).map(|n| ((n % 7, n), value(n))).collect()
}

#[test]
fn what_cassandra_wrote_is_replayed() {
    for segment in segments() {
        let id = segment.0;
        let (values, replay) = replay(vec![segment], false).expect("replays");
        assert_eq!(values, written(ROWS), "{id}");
        assert_eq!((replay.applied, replay.torn.len()), (ROWS as u64, 0), "{id}");
    }
}

/// A segment of version 8, of a Cassandra 5.0.9 with `storage_compatibility_mode: NONE` that was
/// killed: the rows of the others, and in partitions 7 and 8 times beyond 2038, and deletions.
#[test]
fn a_segment_of_version_8_is_replayed_to_the_second() {
    const ID: i64 = 1_795_371_086_742;
    /// Within these seconds it was written.
    const WRITTEN: std::ops::Range<i64> = 1_795_371_100..1_795_371_140;
    /// `USING TTL`.
    const TWENTY_YEARS: i64 = 630_720_000;
    let life: Life<Vec<String>> = Box::new(move |env, mesh| {
        Box::pin(async move {
            make(&env, &directory()).await?;
            let path = directory().join(format!("CommitLog-8-{ID}.log"));
            let bytes = include_bytes!("../../testdata/commitlog/version8.log").to_vec();
            let failed = |e| StorageError::io("cannot write", directory(), e);
            env.write_file_atomically(&path, bytes).await.map_err(failed)?;
            let opened = open(&env, mesh, LogSettings::default()).await?;
            assert_eq!((opened.replay.torn.len(), opened.replay.damaged.len()), (0, 0));
            assert_eq!(values(&opened.engine).await?, written(ROWS));
            let mut seen = Vec::new();
            let at = |seconds: i64| match seconds {
                seconds if WRITTEN.contains(&seconds) => "then",
                seconds if WRITTEN.contains(&(seconds - TWENTY_YEARS)) => "in twenty years",
                seconds if WRITTEN.contains(&(seconds - 3600)) => "in an hour",
                _ => "at another time",
            };
            for k in [7i32, 8] {
                let key = PartitionKey::new(k.to_be_bytes());
                let (table, all) = (table(), Slices::all(false));
                let found = opened.engine.partition(&table, key.as_ref(), &all).await?;
                let mut partition = found.expect("a partition");
                let whole = partition.deletion();
                if !whole.is_live() {
                    let seconds = at(whole.local_deletion_time);
                    seen.push(format!("{k} deleted {} {seconds}", whole.marked_for_delete_at));
                }
                while let Some(unfiltered) = partition.next().await? {
                    let row = match unfiltered {
                        Unfiltered::Row(row) => row,
                        Unfiltered::Marker(marker) => {
                            let deletion = marker.start.max(marker.end);
                            let seconds = at(deletion.local_deletion_time);
                            seen.push(format!("range {} {seconds}", deletion.marked_for_delete_at));
                            continue;
                        }
                    };
                    let c = row.clustering().get(0).flatten().and_then(|c| c.first_chunk::<4>());
                    let mut text = format!("{k} {}", i32::from_be_bytes(*c.expect("a clustering")));
                    if !row.deletion().is_live() {
                        text += &format!(" deleted {}", at(row.deletion().local_deletion_time));
                    }
                    if let Some(liveness) = row.liveness() {
                        text += &format!(" lives {}", at(liveness.expires_at));
                    }
                    for cell in row.cells() {
                        let value = String::from_utf8_lossy(cell.value);
                        text += &format!(" {value:?} {}", at(cell.local_deletion_time));
                    }
                    seen.push(text);
                }
            }
            // it goes when what it held is flushed
            opened.node.begin_log().await?;
            opened.node.flush(table().id).await?;
            while env.exists(&path).await.expect("looked at") {
                env.sleep(Duration::from_millis(10)).await;
            }
            Ok(seen)
        })
    });
    let seen = lives(vec![life]).remove(0).expect("replays");
    assert_eq!(
        seen,
        [
            "7 1 lives in twenty years \"until 2046\" in twenty years",
            "7 2 \"cell alone\" in twenty years",
            "7 3 lives in an hour \"x\" in an hour",
            "7 4 deleted then",
            "7 5 \"\" then",
            "range 9 then",
            "range 9 then",
            "8 deleted 10 then",
            "8 1 lives in twenty years \"after\" in twenty years",
            "8 2 deleted then",
        ]
    );
}

/// Of a Cassandra 5.0.9 that was killed: the rows of the others, and then `DELETE FROM t WHERE k =
/// 1 AND c > null`, another with `c <= null`, and a batch of an INSERT and one with `c >= null`. To
/// each it answered WRITE_TIMEOUT, and read on as if it had not been; what it logs so, it cannot
/// replay itself.
#[test]
fn a_range_from_a_null_that_cassandra_logged_deletes_nothing() {
    let bytes = include_bytes!("../../testdata/commitlog/null-bound.log").to_vec();
    let (values, replay) = replay(vec![(1_795_371_820_866, bytes)], false).expect("replays");
    assert_eq!(values, written(ROWS));
    assert_eq!(replay.applied, ROWS as u64);
    assert!(
        replay.notes[0].contains("skipped 3 updates that delete a range with a null bound"),
        "{:?}",
        replay.notes
    );
}

#[test]
fn a_torn_tail_is_tolerated_in_the_last_segment_alone() {
    for (id, bytes) in segments() {
        let cut = (id, bytes[..bytes.len() - 1].to_vec());
        let (values, found) = replay(vec![cut.clone()], false).expect("replays");
        assert_eq!(found.torn.len(), 1, "{id}");
        let rows = i32::try_from(values.len()).expect("few");
        assert!((100..ROWS).contains(&rows), "{id}: {rows}");
        assert_eq!(values, written(rows), "the last section is missing as a whole");

        let (after, lz4) = (id + 1, &segments()[0].1);
        let later = (after, renumbered(lz4, after));
        let refused = replay(vec![cut.clone(), later.clone()], false).expect_err("not the last");
        assert!(refused.contains("in a way that no crash explains"), "{refused}");
        let (values, found) = replay(vec![cut, later], true).expect("ignored");
        assert_eq!((values, found.damaged.len()), (written(rows), 1), "{id}");
    }
}

/// A segment under another number: no marker fits any more, but it is not empty.
fn renumbered(segment: &[u8], id: i64) -> Vec<u8> {
    let n = usize::from(u16::from_be_bytes([segment[12], segment[13]]));
    let mut bytes = segment.to_vec();
    bytes[4..12].copy_from_slice(&id.to_be_bytes());
    let mut crc = crc32fast::Hasher::new();
    for part in [7, id as i32, (id >> 32) as i32, n as i32] {
        crc.update(&part.to_be_bytes());
    }
    crc.update(&segment[14..14 + n]);
    bytes[14 + n..18 + n].copy_from_slice(&crc.finalize().to_be_bytes());
    // the one marker that a reader looks at
    let at = (18 + n) as i32;
    let mut crc = crc32fast::Hasher::new();
    for part in [id as i32, (id >> 32) as i32, at] {
        crc.update(&part.to_be_bytes());
    }
    bytes[22 + n..26 + n].copy_from_slice(&crc.finalize().to_be_bytes());
    let next = i32::from_be_bytes(bytes[18 + n..22 + n].try_into().expect("four"));
    bytes.truncate(next as usize);
    bytes
}

#[test]
fn damage_before_the_end_stops_the_start() {
    for (id, bytes) in segments() {
        let mut damaged = bytes.clone();
        let middle = bytes.len() / 2;
        damaged[middle] ^= 1;
        let refused = replay(vec![(id, damaged.clone())], false).expect_err("damaged");
        assert!(refused.contains(&format!("CommitLog-7-{id}.log")), "{refused}");
        let (values, found) = replay(vec![(id, damaged)], true).expect("ignored");
        assert_eq!(found.damaged.len(), 1);
        assert!(values.len() < ROWS as usize);
    }
}

fn lz4() -> Option<Compression> {
    Compression::new("LZ4Compressor", BTreeMap::new()).ok()
}

/// Writes rows, flushing now and then, so that segments go.
async fn fill(opened: &Opened, rows: std::ops::Range<i32>) -> Result<(), StorageError> {
    for n in rows {
        write(&opened.engine, n).await?;
        if n % 50 == 49 {
            opened.node.flush(table().id).await?;
        }
    }
    Ok(())
}

fn archiving_life(text: &'static str, compressed: bool, rows: i32) -> Life<Found> {
    Box::new(move |env, mesh| {
        Box::pin(async move {
            make(&env, Path::new("/archive")).await?;
            let archiving = Archiving::parse(text).expect("good");
            let compression = lz4().filter(|_| compressed);
            let log = LogSettings { archiving, compression, ..LogSettings::default() };
            let opened = open(&env, mesh, log).await?;
            let found = values(&opened.engine).await?;
            if rows > 0 {
                opened.node.begin_log().await?;
                fill(&opened, 0..rows).await?;
                opened.node.drain().await?;
                // the node is lost, but for its archive
                for directory in ["/data", "/commitlog"] {
                    let failed = |e| StorageError::io("cannot remove", directory, e);
                    env.remove_dir_all(directory).await.map_err(failed)?;
                }
            }
            Ok((found, opened.replay))
        })
    })
}

#[test]
fn an_archived_log_is_restored_up_to_a_point_in_time() {
    let archive = "archive_command=/bin/cp %path /archive/%name";
    let restore = "restore_command=/bin/cp %from %to\nrestore_directories=/archive";
    let point = "restore_command=/bin/cp %from %to\nrestore_directories=/archive\n\
                 restore_point_in_time=1970:01:01 00:02:03";
    for compressed in [false, true] {
        let found = lives(vec![
            archiving_life(archive, compressed, ROWS),
            archiving_life(restore, compressed, 0),
        ]);
        let (values, _) = found[1].as_ref().expect("restored");
        assert_eq!(*values, written(ROWS));
        let found = lives(vec![
            archiving_life(archive, compressed, ROWS),
            archiving_life(point, compressed, 0),
        ]);
        let (values, replay) = found[1].as_ref().expect("restored");
        assert_eq!(*values, written(124));
        assert_eq!(replay.too_late, (ROWS - 124) as u64);
    }
}

#[test]
fn a_segment_that_cannot_be_archived_stays() {
    let life: Life<usize> = Box::new(|env, mesh| {
        Box::pin(async move {
            let archiving = Archiving::parse("archive_command=/bin/false %path").expect("good");
            let log = LogSettings { archiving, ..LogSettings::default() };
            let opened = open(&env, mesh, log).await?;
            let told = Rc::new(RefCell::new(0));
            let theirs = Rc::clone(&told);
            opened.engine.watch_log(Rc::new(move |_| *theirs.borrow_mut() += 1));
            opened.node.begin_log().await?;
            fill(&opened, 0..ROWS).await?;
            opened.node.drain().await?;
            let files = segment_files(&env, &directory()).await?;
            assert!(*told.borrow() >= 3, "the operator is told");
            Ok(files.len())
        })
    });
    let left = lives(vec![life]).remove(0).expect("drained");
    assert!(left >= 3, "{left}");
}

fn cdc(total: u64, blocks_writes: bool) -> CdcOptions {
    let check_interval = Duration::from_millis(250);
    CdcOptions {
        directory: "/cdc_raw".into(),
        total_bytes: Some(total),
        blocks_writes,
        captures_streams: true,
        check_interval,
    }
}

/// What a consumer finds: the rows of all captured segments, and the segments that are complete.
async fn consume(opened: &Opened) -> Result<(BTreeSet<i32>, usize, usize), StorageError> {
    let (env, directory) = (opened.engine.env(), Path::new("/cdc_raw"));
    let files = segment_files(env, directory).await?;
    let (survey, mut rows, mut complete) =
        (survey(env, directory, &files).await?, BTreeSet::new(), 0);
    for file in &files {
        let index = directory.join(format!("CommitLog-7-{}_cdc.idx", file.id));
        let failed = |e| StorageError::io("cannot read", &index, e);
        let text = env.read_file(&index, 64).await.map_err(failed)?;
        let text = String::from_utf8(text).expect("text");
        let (offset, rest) = text.split_once('\n').unwrap_or((&text, ""));
        complete += usize::from(rest == "COMPLETED");
        let upto: u32 = offset.parse().expect("an offset");
        let mut decoder = rows::codec::MutationDecoder::new();
        read_segment(env, file, &survey, |position, bytes| {
            assert!(position.offset <= upto, "{position:?} is beyond {upto}");
            let layout = |_: &[u8; 16]| Some(Arc::clone(&table().layout));
            let mutation = decoder.mutation(&mut types::Reader::new(bytes), &layout);
            for update in mutation.expect("a mutation").updates() {
                for row in update.rows.iter() {
                    let c = row.clustering().get(0).flatten().and_then(|c| c.first_chunk::<4>());
                    rows.insert(i32::from_be_bytes(*c.expect("a clustering")));
                }
            }
        })
        .await?;
    }
    Ok((rows, files.len(), complete))
}

#[test]
fn what_is_written_is_captured_whatever_becomes_of_the_log() {
    for compression in [None, lz4()] {
        let log =
            LogSettings { compression, cdc: Some(cdc(1 << 20, true)), ..LogSettings::default() };
        let last = log.clone();
        let first: Life<()> = Box::new(move |env, mesh| {
            let log = log.clone();
            Box::pin(async move {
                let opened = open(&env, mesh, log).await?;
                opened.node.begin_log().await?;
                fill(&opened, 0..ROWS - 20).await?;
                fill(&opened, ROWS - 20..ROWS).await
            })
        });
        let second: Life<()> = Box::new(move |env, mesh| {
            let log = last.clone();
            Box::pin(async move {
                let opened = open(&env, mesh, log).await?;
                opened.node.begin_log().await?;
                let (rows, _, _) = consume(&opened).await.unwrap_or_default();
                assert_eq!(rows.len(), 0, "the new segment has a link and no index");
                opened.node.drain().await?;
                let (rows, files, complete) = consume(&opened).await?;
                assert_eq!(rows, (0..ROWS).collect(), "after a kill");
                assert!(files >= 3 && files == complete, "{files} {complete}");
                Ok(())
            })
        });
        for ended in lives(vec![first, second]) {
            ended.expect("a life without an error");
        }
    }
}

#[test]
fn a_write_that_cannot_be_captured_is_refused_until_there_is_space() {
    let life: Life<()> = Box::new(|env, mesh| {
        Box::pin(async move {
            let cdc = Some(cdc(u64::from(SEGMENT_BYTES) * 4, true));
            let opened = open(&env, mesh, LogSettings { cdc, ..LogSettings::default() }).await?;
            opened.node.begin_log().await?;
            let mut n = 0;
            let refused = loop {
                match write(&opened.engine, n).await {
                    Ok(()) => n += 1,
                    Err(error) => break error.to_string(),
                }
                assert!(n < 1000, "{n}");
            };
            let used = u64::from(SEGMENT_BYTES) * 4;
            assert_eq!(
                refused,
                format!(
                    "Rejecting mutation to keyspace f. Free up space in /cdc_raw by processing CDC logs. \
                     Total CDC bytes on disk is {used}."
                )
            );
            opened.node.flush(table().id).await?;
            for entry in env.read_dir("/cdc_raw").await.expect("a directory") {
                if parse_file_name(&entry.name).is_some() {
                    env.remove_file(Path::new("/cdc_raw").join(entry.name)).await.expect("gone");
                }
            }
            assert!(write(&opened.engine, n).await.is_err(), "not before it is looked at again");
            env.sleep(Duration::from_millis(300)).await;
            write(&opened.engine, n).await
        })
    });
    lives(vec![life]).remove(0).expect("a life without an error");
}

#[test]
fn the_oldest_captured_segments_go_where_writes_are_never_refused() {
    let life: Life<usize> = Box::new(|env, mesh| {
        Box::pin(async move {
            let cdc = Some(cdc(u64::from(SEGMENT_BYTES) * 4, false));
            let opened = open(&env, mesh, LogSettings { cdc, ..LogSettings::default() }).await?;
            opened.node.begin_log().await?;
            fill(&opened, 0..ROWS).await?;
            Ok(segment_files(&env, Path::new("/cdc_raw")).await?.len())
        })
    });
    let left = lives(vec![life]).remove(0).expect("a life without an error");
    assert!((2..=5).contains(&left), "{left}");
}

#[test]
fn a_mutation_that_is_too_large_is_refused_in_cassandras_words() {
    let life: Life<()> = Box::new(|env, mesh| {
        Box::pin(async move {
            let log = LogSettings { mutation_bytes_max: Some(70), ..LogSettings::default() };
            let opened = open(&env, mesh, log).await?;
            opened.node.begin_log().await?;
            write(&opened.engine, 0).await?;
            let refused = write(&opened.engine, 4).await.expect_err("too large").to_string();
            assert_eq!(
                refused,
                "Rejected an oversized mutation (100/70) for keyspace: f. Top keys are: t.4"
            );
            Ok(())
        })
    });
    lives(vec![life]).remove(0).expect("a life without an error");
}
