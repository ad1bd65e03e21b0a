//! A write that was made before an ALTER and is applied after it is one of the columns that it
//! names.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sim::{World, WorldOptions};
use env::{Env, Mesh};
use schema::{ColumnKind, Schema, Table, TableId};
use storage::shards::Job;
use storage::{Engine, PartitionKey, Slices, StorageError};
use types::CqlType;

use crate::engine::{insert, options, schema, start, table};

/// The first table with a column whose index is that of the only one before.
fn altered() -> Arc<Schema> {
    let builder = Table::builder("ks", "t0", TableId([1; 16]))
        .column("k", CqlType::Int, ColumnKind::PartitionKey)
        .column("a", CqlType::Blob, ColumnKind::Regular)
        .column("v", CqlType::Blob, ColumnKind::Regular);
    let mut keyspace = (**schema().keyspace("ks").expect("there")).clone();
    keyspace.tables.insert("t0".into(), Arc::new(builder.build()));
    Arc::new(Schema::new([Arc::new(keyspace)], Schema::empty_version(), 2))
}

type Found = Rc<RefCell<Vec<(String, usize)>>>;

async fn shard(env: Env, mesh: Mesh<Job<Rc<Engine>>>, found: Found) -> Result<(), StorageError> {
    let (engine, _node) = start(&env, mesh, options(), &BTreeMap::new()).await?;
    let before = insert(&table(0), 1, 10, 5);
    engine.set_schema(&altered());
    engine.apply(&before, true).await?.durable().await?;
    let now = engine.store(table(0).id)?.table();
    let key = PartitionKey::new(1_i32.to_be_bytes());
    let all = Slices::all(false);
    let mut partition = engine.partition(&now, key.as_ref(), &all).await?.expect("written");
    while let Some(unfiltered) = partition.next().await? {
        if let rows::Unfiltered::Row(row) = unfiltered {
            let columns = now.layout.columns(false);
            let name = |cell: rows::CellRef<'_>| columns[usize::from(cell.column)].name.to_string();
            let cells = row.cells().map(|cell| (name(cell), cell.value.len()));
            found.borrow_mut().extend(cells);
        }
    }
    env.terminate();
    Ok(())
}

#[test]
fn a_write_keeps_its_columns() {
    let world = World::new(1, WorldOptions::default());
    let (node, found) = (world.node(IpAddr::from([10, 0, 0, 1])), Found::default());
    let theirs = Rc::clone(&found);
    world.start(node, 1, move |env, mesh| shard(env, mesh, Rc::clone(&theirs)));
    world.run_until(|| !world.is_up(node), Duration::from_secs(60)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
    assert_eq!(found.take(), [("v".to_owned(), 10)]);
}
