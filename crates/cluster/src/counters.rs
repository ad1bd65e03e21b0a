//! Counters: the owner of a key reads its own shard of a counter, adds to it and writes it anew, one request at a
//! time (`CounterMutation`).

use std::rc::Rc;

use env::Instant;
use protocol::{Consistency, ErrorResponse};
use rows::{
    CellKind, CellRef, Clustering, Mutation, PartitionUpdate, RowBuilder, RowRef, UpdateBuilder,
    counter,
};
use schema::TableId;
use storage::{PartitionKey, StorageError, Trace};

use crate::answer::invalid;
use crate::coordinator::{Coordinator, STATEMENT};
use crate::write::{Stored, apply_traced, read_rows};

/// Consistency levels that counters refuse (`ConsistencyLevel.validateCounterForWrite`).
pub(crate) fn check_consistency(
    consistency: Consistency,
    table: &str,
) -> Result<(), ErrorResponse> {
    match consistency {
        Consistency::Any => Err(invalid(format!(
            "Consistency level ANY is not yet supported for counter table {table}"
        ))),
        _ if consistency.is_serial() => {
            Err(invalid("Counter operations are inherently non-serializable"))
        }
        _ => Ok(()),
    }
}

impl Coordinator {
    /// Applies updates of counters on the shards that own their keys.
    pub(crate) async fn apply_counters(
        self: &Rc<Self>,
        mutations: Vec<(bool, Mutation)>,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), StorageError> {
        let mut tasks = Vec::with_capacity(mutations.len());
        for (durable, mutation) in mutations {
            let shard = self.engine.owner(mutation.token());
            self.count_hop(shard);
            let (coordinator, trace) = (Rc::clone(self), trace.clone());
            tasks.push(self.env.spawn_task(STATEMENT, async move {
                let run = move |owner: Rc<Self>| async move {
                    owner.count(mutation, durable, deadline, trace).await
                };
                coordinator.shards.call_async(shard, STATEMENT, run).await
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok(())
    }

    /// On the owner of its key: makes shards of what a mutation adds, and applies it.
    async fn count(
        self: &Rc<Self>,
        mutation: Mutation,
        durable: bool,
        deadline: Instant,
        trace: Trace,
    ) -> Result<(), StorageError> {
        trace.note(&self.env, || "Acquiring counter locks".to_owned());
        let turn = self.env.timeout_at(deadline, self.turns.take(mutation.key())).await;
        let mut turn = Some(turn.map_err(|_| StorageError::Deadline)?);
        if self.env.planted("counter_out_of_turn") {
            turn = None;
        }
        trace.note(&self.env, || "Reading counter values".to_owned());
        let mut counted: Option<Mutation> = None;
        for update in mutation.updates() {
            let update = self.count_update(update).await?;
            match &mut counted {
                None => counted = Some(Mutation::new(update)),
                // of the same key, as it was before
                Some(counted) => drop(counted.push(update)),
            }
        }
        let Some(counted) = counted else { return Ok(()) };
        let ticket = apply_traced(&self.engine, &counted, durable, &trace).await?;
        drop(turn);
        Ok(ticket.durable().await?)
    }

    async fn count_update(
        &self,
        update: &PartitionUpdate,
    ) -> Result<PartitionUpdate, StorageError> {
        let rows: Vec<Clustering> =
            update.rows.iter().map(|row| row.clustering().to_owned()).collect();
        let key = PartitionKey::new(&*update.key);
        let id = TableId(update.table);
        let before = read_rows(Rc::clone(&self.engine), id, key, rows).await?;
        let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
        let mut counted = UpdateBuilder::new(update.table, update.layout.clone(), &update.key);
        counted.delete_partition(update.deletion);
        update.ranges.iter().for_each(|range| counted.delete_range(range.clone()));
        for added in update.static_row().into_iter().chain(update.rows.iter()) {
            self.count_row(added, stored(&before, added), &mut row);
            counted.add(row.finish_row(&update.layout), &mut scratch);
        }
        Ok(counted.finish(&mut scratch))
    }

    /// A row whose updates of counters are added to what is stored of them.
    fn count_row(&self, added: RowRef<'_>, stored: Option<RowRef<'_>>, out: &mut RowBuilder) {
        let id = self.identity.host_id;
        out.start_like(added);
        if let Some(liveness) = added.liveness() {
            out.liveness(liveness);
        }
        out.deletion(added.deletion());
        for cell in added.cells() {
            if cell.kind != CellKind::Live {
                out.cell(cell);
                continue;
            }
            let stored = stored.and_then(|row| row.cell(cell.column));
            let (clock, count) = stored
                .filter(|stored| stored.kind == CellKind::Live)
                .and_then(|stored| counter::shard_of(stored.value, id))
                .unwrap_or((0, 0));
            let clock = match self.env.planted("counter_clock_stands_still") {
                true => clock.max(1),
                false => self.env.unique_micros().max(clock.saturating_add(1)),
            };
            let count = count.wrapping_add(counter::total(cell.value));
            let value = counter::global(id, clock, count);
            out.cell(CellRef { value: &value, ..cell });
        }
    }
}

/// The stored version of a row.
fn stored<'a>((static_row, rows): &'a Stored, of: RowRef<'_>) -> Option<RowRef<'a>> {
    if of.is_static() {
        return static_row.as_deref().map(RowRef::from_packed);
    }
    let mut rows = rows.iter().map(|row| RowRef::from_packed(row));
    rows.find(|row| row.clustering().as_packed() == of.clustering().as_packed())
}
