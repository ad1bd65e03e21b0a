//! The engine alone, in a simulated world.

use crate::common;
mod alter;
mod compaction;
mod counters;
mod directories;
mod flush;
mod kept;
mod page_cache;
mod reads;
mod repairs;
mod truncation;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use env::{Class, Env, IO_WINDOWS, IoKind, Mesh};
use rows::{CellRef, Clustering, Liveness, Mutation, RowBuilder, UpdateBuilder};
use schema::{ColumnKind, Keyspace, Replication, Schema, Table, TableId};
use storage::commitlog::Position;
use storage::shards::{Job, Shards};
use storage::{Engine, NodeStore, Options, PartitionKey, Slices, StorageError};
use types::CqlType;

use common::options;

const SHARDS: usize = 2;

/// One of two tables; the third is of counters.
fn table(number: u8) -> Arc<Table> {
    let mut builder = Table::builder("ks", format!("t{number}"), TableId([number + 1; 16]));
    builder.flags.counter = number == 2;
    let value = if number == 2 { CqlType::Counter } else { CqlType::Blob };
    let builder = builder.column("k", CqlType::Int, ColumnKind::PartitionKey).column(
        "v",
        value,
        ColumnKind::Regular,
    );
    Arc::new(builder.build())
}

fn schema() -> Arc<Schema> {
    let tables = (0..3).map(|number| (format!("t{number}"), table(number))).collect();
    let keyspace = Keyspace {
        name: "ks".into(),
        durable_writes: true,
        replication: Replication::simple(1),
        tables,
        types: BTreeMap::new(),
        views: BTreeMap::new(),
        functions: BTreeMap::new(),
        aggregates: BTreeMap::new(),
        is_virtual: false,
    };
    Arc::new(Schema::new([Arc::new(keyspace)], Schema::empty_version(), 1))
}

fn insert(table: &Arc<Table>, key: i32, bytes: usize, timestamp: i64) -> Mutation {
    let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
    row.start_row(Clustering::new([]).as_ref());
    row.liveness(Liveness::new(timestamp));
    let mut value = vec![0; bytes];
    env::Rng::new(key as u64).fill(&mut value);
    row.cell(CellRef::live(0, None, timestamp, &value));
    let layout = Arc::clone(&table.layout);
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&layout), &key.to_be_bytes());
    update.add(row.finish_row(&layout), &mut scratch);
    Mutation::new(update.finish(&mut scratch))
}

/// Writes a value of so many bytes under a key.
async fn write(
    engine: &Rc<Engine>,
    table: &Arc<Table>,
    key: i32,
    bytes: usize,
) -> Result<(), StorageError> {
    let mutation = insert(table, key, bytes, engine.env().unique_micros());
    let owner = engine.owner(mutation.token());
    let apply = move |engine: Rc<Engine>| async move {
        let ticket = engine.apply(&mutation, true).await?;
        Ok::<_, StorageError>(ticket.durable().await?)
    };
    engine.shards().call_async(owner, Class::Statement, apply).await?
}

/// Reads of a class so far, and bytes read.
fn reads(env: &Env, class: Class) -> (u64, u64) {
    let last = env.io_window() + 1;
    let pattern = env.io_pattern(last.saturating_sub(IO_WINDOWS as u64)..last);
    let of = |flow: &&env::IoFlow| flow.class == class && flow.kind == IoKind::Read;
    let flows: Vec<_> = pattern.totals().into_iter().filter(of).collect();
    (flows.iter().map(|flow| flow.ops).sum(), flows.iter().map(|flow| flow.bytes).sum())
}

async fn is_there(engine: &Rc<Engine>, table: &Arc<Table>, key: i32) -> Result<bool, StorageError> {
    let key = PartitionKey::new(key.to_be_bytes());
    let (owner, table) = (engine.owner(key.token), Arc::clone(table));
    let read = move |engine: Rc<Engine>| async move {
        let slices = Slices::all(false);
        match engine.partition(&table, key.as_ref(), &slices).await? {
            Some(mut partition) => Ok::<_, StorageError>(partition.next().await?.is_some()),
            None => Ok(false),
        }
    };
    engine.shards().call_async(owner, Class::Statement, read).await?
}

/// A shard's engine, which serves the others; on the first one with the node's part, the log under
/// way.
async fn start(
    env: &Env,
    mesh: Mesh<Job<Rc<Engine>>>,
    options: Options,
    truncated: &BTreeMap<TableId, Position>,
) -> Result<(Rc<Engine>, Option<Rc<NodeStore>>), StorageError> {
    let sender = mesh.clone();
    let shards = Shards::new(env, move |to, job| sender.send(to, job));
    let (data, commitlog) =
        (options.data_directories[0].clone(), options.commitlog_directory.clone());
    let engine = Engine::new(env, options, shards, schema());
    engine.set_host_id([7; 16]);
    let context = Rc::clone(&engine);
    env.spawn(Class::Statement, async move {
        loop {
            let (_, job) = mesh.recv().await;
            job(&context);
        }
    });
    if env.shard() != 0 {
        return Ok((engine, None));
    }
    for directory in [data, commitlog] {
        let made = env.create_dir_all(&directory).await;
        made.map_err(|e| StorageError::corrupt(&directory, e))?;
        let synced = env.sync_dir("/").await;
        synced.map_err(|e| StorageError::corrupt(&directory, e))?;
    }
    let node = engine.become_first();
    node.set_schema(&schema()).await?;
    node.open_tables(&[table(0), table(1), table(2)]).await?;
    node.replay(&|_| true, truncated).await?;
    node.begin_log().await?;
    Ok((engine, Some(node)))
}
