//! Counters: the owner of a key reads its own shard of a counter, adds to it and writes it anew,
//! one request at a time (`CounterMutation`). Where the counter cache has that shard, nothing is
//! read.

use std::rc::Rc;

use env::Instant;
use protocol::{Consistency, ErrorResponse};
use rows::{
    CellKind, CellRef, Clustering, ClusteringRef, Mutation, PartitionUpdate, RowBuilder, RowRef,
    UpdateBuilder, counter,
};
use schema::TableId;
use storage::shards::Remote;
use storage::{Counted, CounterMark, CounterName, Part, PartitionKey, StorageError, Trace};

use crate::answer::invalid;
use crate::local_writes::{Stored, read_rows, trace_added, trace_append};
use crate::shard_context::{STATEMENT, ShardContext};
use crate::turns::Turns;

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

/// Adds to counters on the shards that own their keys.
pub(crate) struct Counters {
    shard: Rc<ShardContext>,
    others: Remote<Counters>,
    /// Who changes which of this shard's partitions.
    turns: Rc<Turns>,
}

impl Counters {
    pub fn new(shard: &Rc<ShardContext>, others: Remote<Self>, turns: &Rc<Turns>) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard), others, turns: Rc::clone(turns) })
    }

    /// Applies updates of counters on the shards that own their keys.
    pub async fn apply_counters(
        self: &Rc<Self>,
        mutations: Vec<(bool, Mutation)>,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), StorageError> {
        let mut tasks = Vec::with_capacity(mutations.len());
        for (durable, mutation) in mutations {
            self.shard.count_owner(self.shard.engine.owner(mutation.token()));
            let (this, trace) = (Rc::clone(self), trace.clone());
            tasks.push(self.shard.env.spawn_task(STATEMENT, async move {
                this.apply_counter(mutation, durable, deadline, trace).await
            }));
        }
        for task in tasks {
            task.await?;
        }
        Ok(())
    }

    /// Applies an update of counters on the shard that owns its key. What other replicas are to be
    /// told: this node's part of each.
    pub async fn apply_counter(
        self: &Rc<Self>,
        mutation: Mutation,
        durable: bool,
        deadline: Instant,
        trace: Trace,
    ) -> Result<Mutation, StorageError> {
        let shard = self.shard.engine.owner(mutation.token());
        let run = move |owner: Rc<Self>| async move {
            owner.count(mutation, durable, deadline, trace).await
        };
        self.others.call_async(shard, STATEMENT, run).await?
    }

    /// On the owner of its key: makes shards of what a mutation adds, and applies it.
    async fn count(
        self: &Rc<Self>,
        mutation: Mutation,
        durable: bool,
        deadline: Instant,
        trace: Trace,
    ) -> Result<Mutation, StorageError> {
        trace.note(&self.shard.env, || "Acquiring counter locks".to_owned());
        let turn = self.shard.env.timeout_at(deadline, self.turns.take(mutation.key())).await;
        let mut turn = Some(turn.map_err(|_| StorageError::Deadline)?);
        if self.shard.env.planted("counter_out_of_turn") {
            turn = None;
        }
        let mut writes: Option<Mutation> = None;
        let mut counted = Vec::with_capacity(mutation.updates().len());
        for update in mutation.updates() {
            let (update, comes_to) = self.count_update(update, &trace).await?;
            counted.push(comes_to);
            match &mut writes {
                None => writes = Some(Mutation::new(update)),
                Some(writes) => {
                    let is_added = writes.push(update).is_ok();
                    assert!(
                        is_added,
                        "a counted update has the key and table of the update that it counts"
                    );
                }
            }
        }
        let writes = writes.expect("a mutation has at least one update");
        trace_append(&self.shard.engine, durable, &trace);
        let ticket = self.shard.engine.apply_counted(&writes, durable, &counted).await?;
        trace_added(&self.shard.engine, &writes, &trace);
        drop(turn);
        ticket.durable().await?;
        Ok(writes)
    }

    /// An update with what it adds made into shards, and what that comes to, if it does nothing
    /// else.
    async fn count_update(
        &self,
        update: &PartitionUpdate,
        trace: &Trace,
    ) -> Result<(PartitionUpdate, Option<Counted>), StorageError> {
        let store = self.shard.engine.store(TableId(update.table))?;
        // before anything is looked at
        let mark = self.shard.engine.caches().counter_mark(&store);
        let before = self.parts_before(update, mark, trace).await?;
        let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
        let mut counted = Counted::since(mark);
        let mut counts = UpdateBuilder::new(update.table, update.layout.clone(), &update.key);
        counts.delete_partition(update.deletion);
        update.ranges.iter().for_each(|range| counts.delete_range(range.clone()));
        let mut before = before.into_iter();
        for added in rows_of(update) {
            self.count_row(added, &mut before, &mut counted, &mut row);
            counts.add(row.finish_row(&update.layout), &mut scratch);
        }
        Ok((counts.finish(&mut scratch), only_adds(update).then_some(counted)))
    }

    /// This node's part of each counter that an update adds to, in order; none where there is no
    /// such counter, or it is deleted.
    async fn parts_before(
        &self,
        update: &PartitionUpdate,
        mark: CounterMark,
        trace: &Trace,
    ) -> Result<Vec<Option<Part>>, StorageError> {
        let names = || rows_of(update).flat_map(additions);
        let count = names().count();
        let mut parts: Vec<Option<Part>> = vec![None; count];
        if count > 0 && self.shard.engine.caches().keeps_counters() {
            trace.note(&self.shard.env, || format!("Fetching {count} counter values from cache"));
            for (part, name) in parts.iter_mut().zip(names()) {
                *part = self.shard.engine.caches().kept_counter(mark, &update.key, name);
            }
        }
        let missing = parts.iter().filter(|part| part.is_none()).count();
        if missing == 0 {
            return Ok(parts);
        }
        trace.note(&self.shard.env, || format!("Reading {missing} counter values from the CF"));
        let of_missing = parts.iter().zip(names()).filter(|(part, _)| part.is_none());
        let mut rows: Vec<Clustering> =
            of_missing.filter_map(|(_, name)| Some(name.row?.to_owned())).collect();
        rows.dedup();
        let (id, key) = (TableId(update.table), PartitionKey::new(&*update.key));
        let before = read_rows(Rc::clone(&self.shard.engine), id, key, rows).await?;
        for (part, name) in parts.iter_mut().zip(names()).filter(|(part, _)| part.is_none()) {
            let cell = stored(&before, name.row).and_then(|row| row.cell(name.column));
            *part = cell.and_then(|cell| part_of(cell, self.shard.engine.host_id()));
        }
        Ok(parts)
    }

    /// A row whose updates of counters are added to what there was of them.
    fn count_row(
        &self,
        added: RowRef<'_>,
        before: &mut impl Iterator<Item = Option<Part>>,
        counted: &mut Counted,
        out: &mut RowBuilder,
    ) {
        let id = self.shard.engine.host_id();
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
            let alive = before.next().flatten();
            let Part { clock, count } = alive.unwrap_or(Part { clock: 0, count: 0 });
            let clock = match self.shard.env.planted("counter_clock_stands_still") {
                true => clock.max(1),
                false => self.shard.env.unique_micros().max(clock.saturating_add(1)),
            };
            let count = count.wrapping_add(counter::total(cell.value));
            let value = counter::global(id, clock, count);
            out.cell(CellRef { value: &value, ..cell });
            if alive.is_some() || self.shard.env.planted("counter_cache_keeps_what_is_dead") {
                counted.add(name_of(added, cell), Part { clock, count });
            }
        }
    }

    /// Reads a counter in its partition's turn, and keeps this node's part of it.
    pub async fn keep_counter(
        &self,
        table: TableId,
        key: PartitionKey,
        name: CounterName<'_>,
    ) -> Result<(), StorageError> {
        if !self.shard.engine.caches().keeps_counters() {
            return Ok(());
        }
        let is_in_turn = !self.shard.env.planted("counter_cache_filled_out_of_turn");
        let _turn = match is_in_turn {
            true => Some(self.turns.take(&key.bytes).await),
            false => None,
        };
        let store = self.shard.engine.store(table)?;
        let mark = self.shard.engine.caches().counter_mark(&store);
        let rows = name.row.map(|row| row.to_owned()).into_iter().collect();
        let found = read_rows(Rc::clone(&self.shard.engine), table, key.clone(), rows).await?;
        let cell = stored(&found, name.row).and_then(|row| row.cell(name.column));
        if let Some(part) = cell.and_then(|cell| part_of(cell, self.shard.engine.host_id())) {
            let mut counted = Counted::since(mark);
            counted.add(name, part);
            self.shard.engine.caches().keep_counters(&store, &key.bytes, &counted);
        }
        Ok(())
    }
}

/// The rows of an update, the static one first.
fn rows_of(update: &PartitionUpdate) -> impl Iterator<Item = RowRef<'_>> {
    update.static_row().into_iter().chain(update.rows.iter())
}

/// The counters that a row adds to.
fn additions<'a>(row: RowRef<'a>) -> impl Iterator<Item = CounterName<'a>> {
    row.cells().filter(|cell| cell.kind == CellKind::Live).map(move |cell| name_of(row, cell))
}

fn name_of<'a>(row: RowRef<'a>, cell: CellRef<'_>) -> CounterName<'a> {
    let clustering = (!row.is_static()).then(|| row.clustering());
    CounterName { row: clustering, column: cell.column }
}

/// This node's part of a counter that was read: it is alive, or there is none.
pub(crate) fn part_of(cell: CellRef<'_>, host_id: [u8; 16]) -> Option<Part> {
    if cell.kind != CellKind::Live {
        return None;
    }
    let (clock, count) = counter::shard_of(cell.value, host_id)?;
    Some(Part { clock, count })
}

/// Does an update nothing but add to counters?
fn only_adds(update: &PartitionUpdate) -> bool {
    let adds = |row: RowRef<'_>| {
        row.deletion().is_live() && row.cells().all(|cell| cell.kind == CellKind::Live)
    };
    update.deletion.is_live() && update.ranges.is_empty() && rows_of(update).all(adds)
}

/// The stored version of a row, of the static one for none.
pub(crate) fn stored<'a>(
    (static_row, rows): &'a Stored,
    clustering: Option<ClusteringRef<'_>>,
) -> Option<RowRef<'a>> {
    let Some(clustering) = clustering else {
        return static_row.as_deref().map(RowRef::from_packed);
    };
    let mut rows = rows.iter().map(|row| RowRef::from_packed(row));
    rows.find(|row| row.clustering().as_packed() == clustering.as_packed())
}
