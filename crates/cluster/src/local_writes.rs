//! Mutations applied on the shards of this node that own their keys.

use std::rc::Rc;

use rows::Mutation;
use schema::TableId;
use storage::commitlog::Ticket;
use storage::{Engine, PartitionKey, StorageError, Trace};
use types::Few;

use crate::shard_context::{STATEMENT, ShardContext};

/// Applies mutations on this node.
pub(crate) struct LocalWrites {
    shard: Rc<ShardContext>,
}

impl LocalWrites {
    pub fn new(shard: &Rc<ShardContext>) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard) })
    }

    /// Applies mutations, all of them at once, and waits until all may be acknowledged.
    pub async fn apply_all(
        &self,
        mutations: impl IntoIterator<Item = (bool, Mutation)>,
        trace: &Trace,
    ) -> Result<(), StorageError> {
        let mut tickets = Few::new();
        let mut by_shard: Few<(usize, Few<(bool, Mutation)>)> = Few::new();
        for (durable, mutation) in mutations {
            let owner = self.shard.engine.owner(mutation.token());
            self.shard.count_owner(owner);
            match by_shard.iter_mut().find(|(shard, _)| *shard == owner) {
                Some((_, own)) => own.push((durable, mutation)),
                None => by_shard.push((owner, Few::one((durable, mutation)))),
            }
        }
        by_shard.sort_by_key(|(shard, _)| *shard);
        let is_one = by_shard.len() == 1;
        let mut remote = Vec::new();
        for (shard, mutations) in by_shard {
            if shard == self.shard.env.shard() {
                for (durable, mutation) in &mutations {
                    tickets
                        .push(apply_traced(&self.shard.engine, mutation, *durable, trace).await?);
                }
                continue;
            }
            let (engine, trace) = (Rc::clone(&self.shard.engine), trace.clone());
            trace
                .note(&self.shard.env, || format!("Sending MUTATION_REQ message to shard-{shard}"));
            let applied = apply_on(engine, shard, mutations, trace);
            match is_one {
                true => Box::pin(applied).await?,
                false => remote.push(self.shard.env.spawn_task(STATEMENT, applied)),
            }
        }
        for ticket in tickets {
            ticket.durable().await?;
        }
        for result in remote {
            result.await?;
        }
        Ok(())
    }
}

/// Applies a mutation of this shard, with what there is to say of it.
pub(crate) async fn apply_traced(
    engine: &Engine,
    mutation: &Mutation,
    durable: bool,
    trace: &Trace,
) -> Result<Ticket, StorageError> {
    trace_append(engine, durable, trace);
    let ticket = engine.apply(mutation, durable).await?;
    trace_added(engine, mutation, trace);
    Ok(ticket)
}

/// Notes that a mutation goes to the log.
pub(crate) fn trace_append(engine: &Engine, durable: bool, trace: &Trace) {
    if durable {
        trace.note(engine.env(), || "Appending to commitlog".to_owned());
    }
}

/// Notes the memtables that a mutation reached.
pub(crate) fn trace_added(engine: &Engine, mutation: &Mutation, trace: &Trace) {
    if trace.is_on() {
        let schema = engine.schema();
        let tables =
            mutation.updates().iter().map(|update| schema.table_by_id(&TableId(update.table)));
        for table in tables.flatten() {
            trace.note(engine.env(), || format!("Adding to {} memtable", table.name));
        }
    }
}

/// Applies mutations of another shard there.
async fn apply_on(
    engine: Rc<Engine>,
    shard: usize,
    mutations: Few<(bool, Mutation)>,
    trace: Trace,
) -> Result<(), StorageError> {
    let apply = move |engine: Rc<Engine>| apply_and_wait(engine, mutations, trace);
    engine.shards().call_async(shard, STATEMENT, apply).await?
}

async fn apply_and_wait(
    engine: Rc<Engine>,
    mutations: Few<(bool, Mutation)>,
    trace: Trace,
) -> Result<(), StorageError> {
    let mut tickets = Vec::with_capacity(mutations.len());
    for (durable, mutation) in &mutations {
        tickets.push(apply_traced(&engine, mutation, *durable, &trace).await?);
    }
    for ticket in tickets {
        ticket.durable().await?;
    }
    Ok(())
}

/// A partition's static row and some of its rows, packed.
pub(crate) type Stored = (Option<Vec<u8>>, Vec<Vec<u8>>);

/// Reads rows of a partition of this shard.
pub(crate) async fn read_rows(
    engine: Rc<Engine>,
    id: TableId,
    key: PartitionKey,
    rows: Vec<rows::Clustering>,
) -> Result<Stored, StorageError> {
    let table = engine.store(id)?.table();
    let slice = |clustering: &rows::Clustering| {
        let bound = |kind| rows::Bound::new(kind, clustering.clone());
        (bound(rows::BoundKind::InclStart), bound(rows::BoundKind::InclEnd))
    };
    let slices: Vec<_> = rows.iter().map(slice).collect();
    let slices = storage::Slices::new(slices, false);
    let Some(mut partition) = engine.partition(&table, key.as_ref(), &slices).await? else {
        return Ok((None, Vec::new()));
    };
    let static_row = partition.static_row().map(|row| row.as_packed().to_vec());
    let mut found = Vec::new();
    while let Some(unfiltered) = partition.next().await? {
        if let rows::Unfiltered::Row(row) = unfiltered {
            found.push(row.as_packed().to_vec());
        }
    }
    Ok((static_row, found))
}
