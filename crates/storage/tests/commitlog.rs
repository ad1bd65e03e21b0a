//! Compressed segments of a Cassandra 5.0.9 that was killed (`testdata/commitlog`), replayed by the engine: what they
//! hold is there, a torn tail is tolerated, and what is damaged ends the start unless the operator wants otherwise.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Env, Mesh};
use rows::Unfiltered;
use schema::{ColumnKind, Keyspace, Replication, Schema, Table, TableId};
use storage::commitlog::SyncMode;
use storage::shards::{Job, Shards};
use storage::{Engine, LogSettings, Options, PartitionKey, Replay, Slices, StorageError};
use types::CqlType;

/// Rows that the segments hold, in partitions `n % 7`: `value-n-`, repeated `1 + n % 5` times.
const ROWS: i32 = 200;
/// The segment, and its number.
type Segment = (i64, Vec<u8>);

fn table() -> Arc<Table> {
    let id = 0x1111_1111_2222_3333_4444_5555_5555_5555u128.to_be_bytes();
    let builder = Table::builder("f", "t", TableId(id))
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
        (1_795_343_203_769, include_bytes!("../testdata/commitlog/lz4.log").to_vec()),
        (1_795_343_245_540, include_bytes!("../testdata/commitlog/snappy.log").to_vec()),
        (1_795_343_283_538, include_bytes!("../testdata/commitlog/deflate.log").to_vec()),
        (1_795_343_321_170, include_bytes!("../testdata/commitlog/zstd.log").to_vec()),
    ]
}

/// Values by partition and clustering, and what the replay said.
type Found = (BTreeMap<(i32, i32), String>, Replay);

async fn shard(
    env: Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    segments: &[Segment],
    log: LogSettings,
) -> Result<Found, StorageError> {
    let sender = mesh.clone();
    let shards = Shards::new(&env, move |to, job| sender.send(to, job));
    let directory = PathBuf::from("/commitlog");
    for (id, bytes) in segments {
        let failed = |e| StorageError::io("cannot write", &directory, e);
        env.create_dir_all(&directory).await.map_err(failed)?;
        let path = directory.join(format!("CommitLog-7-{id}.log"));
        env.write_file_atomically(path, bytes.clone()).await.map_err(failed)?;
    }
    let options = Options {
        data_directories: vec![PathBuf::from("/data")],
        commitlog_directory: directory,
        sync: SyncMode::Batch,
        segment_bytes: 1 << 20,
        log,
        commitlog_bytes: 16 << 20,
        memtable_bytes: 16 << 20,
        cleanup_threshold: 0.5,
        column_index_bytes: 4 << 10,
        chunk_cache_bytes: 64 << 10,
        compaction_bytes_per_second: 0,
        incremental_backups: false,
        concurrent_compactors: 1,
    };
    let engine = Engine::new(&env, options, shards, schema());
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
    let replay = node.replay(&|_| true, &BTreeMap::new()).await?;
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
    Ok((values, replay))
}

fn replay(segments: Vec<Segment>, ignore: bool) -> Result<Found, String> {
    let world = World::new(1, WorldOptions::default());
    let node = world.node(IpAddr::from([10, 0, 0, 1]));
    let result = Rc::new(std::cell::RefCell::new(None));
    let (theirs, segments) = (Rc::clone(&result), Rc::new(segments));
    world.start(node, 1, move |env, mesh| {
        let (theirs, segments) = (Rc::clone(&theirs), Rc::clone(&segments));
        let log = LogSettings { ignore_replay_errors: ignore, ..LogSettings::default() };
        async move {
            let found = shard(env.clone(), mesh, &segments, log).await;
            *theirs.borrow_mut() = Some(found);
            env.terminated().await;
            Ok::<_, StorageError>(())
        }
    });
    let done = || result.borrow().is_some() || !world.is_up(node);
    world.run_until(done, Duration::from_secs(60)).map_err(|failure| failure.to_string())?;
    let found = result.borrow_mut().take().ok_or_else(|| format!("{:?}", world.exits(node)))?;
    found.map_err(|error| error.to_string())
}

fn written(upto: i32) -> BTreeMap<(i32, i32), String> {
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
        assert!(refused.contains("no crash leaves that behind"), "{refused}");
        let (values, found) = replay(vec![cut, later], true).expect("ignored");
        assert_eq!((values, found.damaged.len()), (written(ROWS), 1), "{id}");
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
