//! BATCH: several modifications at once, from one text or from the parts of a BATCH message.

use std::collections::BTreeSet;
use std::sync::Arc;

use rows::{ClusteringRef, NO_TIMESTAMP, NO_TTL, PartitionUpdate, RowBuilder, RowRef};
use schema::{Table, TableKind};
use types::{KeyBytes, maybe_quote};

use crate::ast::{self, BatchKind, Modification};
use crate::context::{Bind, Limits};
use crate::error::CqlError;
use crate::modify::attributes::Attributes;
use crate::modify::write::{Before, CellContext};
use crate::modify::{BoundModify, Modify, PartitionBuilders};
use crate::scope::Scope;

/// A prepared BATCH.
#[derive(Clone, Debug)]
pub struct Batch {
    kind: BatchKind,
    attributes: Attributes,
    statements: Vec<Arc<Modify>>,
}

/// A modification of a batch with the values of its own markers.
pub struct Part<'a> {
    /// The statement.
    pub modify: &'a Arc<Modify>,
    /// Its execution.
    pub bind: Bind<'a>,
}

/// What a batch does.
#[derive(Clone, Debug)]
pub struct BatchUpdates {
    /// One update a table and key; none that does nothing.
    pub updates: Vec<PartitionUpdate>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// Must it go through the batch log: is it logged, and does it write to more than one key?
    pub needs_log: bool,
}

impl Batch {
    /// Checks a BATCH against the schema.
    pub fn prepare(statement: &ast::Batch, scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        let mut statements = Vec::with_capacity(statement.statements.len());
        for modification in &statement.statements {
            statements.push(Arc::new(match modification {
                Modification::Insert(insert) => Modify::insert(insert, scope)?,
                Modification::Update(update) => Modify::update(update, scope)?,
                Modification::Delete(delete) => Modify::delete(delete, scope)?,
            }));
        }
        let raw = &statement.attributes;
        let attributes = Attributes::prepare(
            raw.timestamp.as_ref(),
            raw.ttl.as_ref(),
            "[batch]",
            "[batch]",
            scope,
        )?;
        if attributes.ttl.is_some() {
            return Err(CqlError::invalid("Global TTL on the BATCH statement is not supported."));
        }
        let parts: Vec<&Modify> = statements.iter().map(|modify| &**modify).collect();
        check_parts(statement.kind, attributes.timestamp.is_some(), &parts)?;
        scope.partition_key_markers = match parts.as_slice() {
            [first, rest @ ..] if rest.iter().all(|m| m.table.id == first.table.id) => {
                scope.variables.partition_key_markers(first.table.partition_key.len())
            }
            _ => Vec::new(),
        };
        // A batch acts on no keyspace of its own.
        scope.acts_on = None;
        Ok(Self { kind: statement.kind, attributes, statements })
    }

    /// Its kind.
    pub fn kind(&self) -> BatchKind {
        self.kind
    }

    /// Its statements.
    pub fn statements(&self) -> &[Arc<Modify>] {
        &self.statements
    }

    /// Must anything hold for it to be done?
    pub fn is_conditional(&self) -> bool {
        self.statements.iter().any(|modify| modify.is_conditional())
    }

    /// The timestamp of its statements that give none: its own, else the request's.
    pub fn timestamp(&self, bind: &Bind<'_>) -> Result<i64, CqlError> {
        self.attributes.timestamp(bind, bind.timestamp)
    }

    /// What it does. It reads nothing first: otherwise its statements are bound one by one.
    pub fn updates(&self, bind: Bind<'_>) -> Result<BatchUpdates, CqlError> {
        let timestamp = self.timestamp(&bind)?;
        let bind = Bind { timestamp, ..bind };
        let statements: Vec<&Modify> = self.statements.iter().map(|modify| &**modify).collect();
        finish(self.kind, &statements, bind.limits, |at, builders, warnings| {
            check_timestamp(timestamp)?;
            statements[at].add_to(builders, &bind, warnings)
        })
    }
}

/// Checks the statements of a batch against each other (`BatchStatement.validate`).
/// `has_timestamp`: the batch gives one for all.
pub fn check_parts(
    kind: BatchKind,
    has_timestamp: bool,
    parts: &[&Modify],
) -> Result<(), CqlError> {
    let refuse = |message: &str| Err(CqlError::invalid(message));
    let counters = parts.iter().filter(|modify| modify.table.is_counter()).count();
    let is_virtual = |modify: &&&Modify| modify.table.kind == TableKind::Virtual;
    let virtuals = parts.iter().filter(is_virtual).count();
    let conditional = parts.iter().any(|modify| modify.is_conditional());
    if has_timestamp && conditional {
        return refuse("Cannot provide custom timestamp for conditional BATCH");
    }
    if has_timestamp && kind == BatchKind::Counter {
        return refuse("Cannot provide custom timestamp for counter BATCH");
    }
    if has_timestamp && parts.iter().any(|modify| modify.attributes.timestamp.is_some()) {
        return refuse("Timestamp must be set either on BATCH or individual statements");
    }
    if has_timestamp && counters > 0 {
        return refuse("Cannot provide custom timestamp for a BATCH containing counters");
    }
    if kind == BatchKind::Counter && counters < parts.len() {
        return refuse("Cannot include non-counter statement in a counter batch");
    }
    if counters > 0 && counters < parts.len() {
        return refuse("Counter and non-counter mutations cannot exist in the same batch");
    }
    if kind == BatchKind::Logged && counters > 0 {
        return refuse("Cannot include a counter statement in a logged batch");
    }
    if kind == BatchKind::Logged && virtuals > 0 {
        return refuse("Cannot include a virtual table statement in a logged batch");
    }
    if virtuals > 0 && virtuals < parts.len() {
        return refuse("Mutations for virtual and regular tables cannot exist in the same batch");
    }
    if conditional && virtuals > 0 {
        return refuse("Conditional BATCH statements cannot include mutations for virtual tables");
    }
    let other_table = |pair: &[&Modify]| matches!(pair, [a, b] if a.table.id != b.table.id);
    if conditional && parts.windows(2).any(other_table) {
        return refuse("Batch with conditions cannot span multiple tables");
    }
    Ok(())
}

/// What the parts of a BATCH message do together: each has its own values. They read nothing first.
pub fn finish_parts(kind: BatchKind, parts: &[Part<'_>]) -> Result<BatchUpdates, CqlError> {
    let modifies: Vec<&Modify> = parts.iter().map(|part| &**part.modify).collect();
    check_parts(kind, false, &modifies)?;
    let limits = parts.first().map_or_else(Limits::default, |part| *part.bind.limits);
    finish(kind, &modifies, &limits, |at, builders, warnings| {
        let Part { modify, bind } = &parts[at];
        check_timestamp(bind.timestamp)?;
        modify.add_to(builders, bind, warnings)
    })
}

/// What bound parts do together, each with what was read for it in the same place of `befores`.
pub fn finish_bound(
    kind: BatchKind,
    parts: &[BoundModify],
    befores: &[&dyn Before],
    cells: CellContext<'_>,
    limits: &Limits,
) -> Result<BatchUpdates, CqlError> {
    assert_eq!(parts.len(), befores.len(), "what was read for each");
    let modifies: Vec<&Modify> = parts.iter().map(|part| &**part.modify()).collect();
    finish(kind, &modifies, limits, |at, builders, warnings| {
        parts[at].add_to(builders, cells, befores[at], warnings)
    })
}

fn check_timestamp(timestamp: i64) -> Result<(), CqlError> {
    match timestamp {
        NO_TIMESTAMP => Err(CqlError::invalid("Out of bound timestamp")),
        _ => Ok(()),
    }
}

/// Puts together what the statements do. `add` adds what the one at a place does.
fn finish(
    kind: BatchKind,
    parts: &[&Modify],
    limits: &Limits,
    add: impl Fn(usize, &mut PartitionBuilders, &mut Vec<String>) -> Result<(), CqlError>,
) -> Result<BatchUpdates, CqlError> {
    let mut builders = PartitionBuilders::default();
    let mut warnings = Vec::new();
    for modify in parts {
        modify.check()?;
    }
    for at in 0..parts.len() {
        add(at, &mut builders, &mut warnings)?;
    }
    warn_of_gc_grace(kind, parts, &mut warnings);
    let builders = builders.list;
    let tables: Vec<(Arc<Table>, KeyBytes)> = builders
        .iter()
        .map(|builder| (Arc::clone(&builder.table), builder.update.key().clone()))
        .collect();
    let mut scratch = RowBuilder::new();
    let updates = builders.into_iter().map(|builder| builder.finish(&mut scratch));
    let updates = updates.collect::<Result<Vec<PartitionUpdate>, _>>()?;
    let keyspaces = tables.iter().map(|(table, key)| (&*table.keyspace, key));
    let mut mutations: Vec<_> = keyspaces.collect();
    mutations.sort();
    mutations.dedup();
    check_size(mutations.len(), &tables, &updates, limits, &mut warnings)?;
    if kind != BatchKind::Logged && mutations.len() > 1 {
        warn_of_partitions(&tables, limits, &mut warnings);
    }
    Ok(BatchUpdates {
        updates: updates.into_iter().filter(|update| !update.is_empty()).collect(),
        warnings,
        needs_log: kind == BatchKind::Logged && mutations.len() > 1,
    })
}

/// The names of tables in brackets, each once, in the order of a Java hash set.
fn name_set<'a>(tables: impl Iterator<Item = &'a Table>) -> (usize, String) {
    // a large batch names few tables many times: their texts are made once
    let tables: BTreeSet<_> = tables.map(|table| (&*table.keyspace, &*table.name)).collect();
    let names = schema::hash_order(tables.into_iter().map(shown).collect());
    (names.len(), format!("[{}]", names.join(", ")))
}

/// The name of a table as warnings have it (`TableMetadata.toString`).
fn shown((keyspace, name): (&str, &str)) -> String {
    format!("{}.{}", maybe_quote(keyspace), maybe_quote(name))
}

fn warn_of_gc_grace(kind: BatchKind, parts: &[&Modify], warnings: &mut Vec<String>) {
    if kind != BatchKind::Logged {
        return;
    }
    let tables = parts.iter().map(|modify| &*modify.table);
    let mut hasty = tables.filter(|table| table.params.gc_grace_seconds == 0).peekable();
    if hasty.peek().is_none() {
        return;
    }
    let (count, names) = name_set(hasty);
    let s = if count == 1 { "" } else { "s" };
    warnings.push(format!(
        "Executing a LOGGED BATCH on table{s} {names}, configured with a gc_grace_seconds of 0. The gc_grace_seconds is used to TTL batchlog entries, so setting gc_grace_seconds too low on tables involved in an atomic batch might cause batchlog entries to expire before being replayed."
    ));
}

/// Batches over several mutations have a limit (`BatchStatement.verifyBatchSize`).
fn check_size(
    mutations: usize,
    tables: &[(Arc<Table>, KeyBytes)],
    updates: &[PartitionUpdate],
    limits: &Limits,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    if mutations <= 1 {
        return Ok(());
    }
    let size: u64 = updates.iter().map(data_size).sum();
    if size > limits.batch_warn_bytes && size > limits.batch_fail_bytes {
        return Err(CqlError::invalid("Batch too large"));
    }
    if size > limits.batch_warn_bytes {
        let (_, names) = name_set(tables.iter().map(|(table, _)| &**table));
        let limit = limits.batch_warn_bytes;
        warnings.push(format!(
            "Batch for {names} is of size {size}, exceeding specified threshold of {limit} by {}.",
            size - limit
        ));
    }
    Ok(())
}

/// The bytes of an update as Cassandra counts them for batches (`PartitionUpdate.dataSize`): a
/// fixed size a row, a cell and a range beside what they hold; not the key.
fn data_size(update: &PartitionUpdate) -> u64 {
    /// A row without anything: an empty liveness and no deletion.
    const EMPTY_ROW: usize = 8 + 13;
    let rows: usize = update.rows.iter().map(row_size).sum();
    let static_row = update.static_row().map_or(EMPTY_ROW, row_size);
    let ranges = update.ranges.iter().map(|range| {
        let values = |bound: &rows::Bound| values_size(bound.values.as_ref());
        values(&range.start) + values(&range.end) + 12
    });
    let ranges = if update.ranges.is_empty() { 0 } else { 4 + ranges.sum::<usize>() };
    (rows + static_row + ranges + 8) as u64
}

fn values_size(values: ClusteringRef<'_>) -> usize {
    values.iter().map(|value| value.map_or(0, <[u8]>::len)).sum()
}

fn row_size(row: RowRef<'_>) -> usize {
    let expires = row.liveness().is_some_and(|liveness| liveness.ttl != NO_TTL);
    let mut size = values_size(row.clustering()) + if expires { 20 } else { 8 } + 13;
    let mut complex = None;
    for cell in row.cells() {
        // Every complex column counts a deletion, whether it has one or not.
        if (cell.is_complex_deletion() || cell.path.is_some()) && complex != Some(cell.column) {
            complex = Some(cell.column);
            size += 12;
        }
        if !cell.is_complex_deletion() {
            size += 20 + cell.value.len() + cell.path.map_or(0, <[u8]>::len);
        }
    }
    size
}

fn warn_of_partitions(
    tables: &[(Arc<Table>, KeyBytes)],
    limits: &Limits,
    warnings: &mut Vec<String>,
) {
    let mut keys: Vec<&[u8]> = tables.iter().map(|(_, key)| &**key).collect();
    keys.sort_unstable();
    keys.dedup();
    let limit = limits.unlogged_batch_partitions_warn;
    if keys.len() as u64 > u64::from(limit) {
        let (count, names) = name_set(tables.iter().map(|(table, _)| &**table));
        let s = if count == 1 { "" } else { "s" };
        warnings.push(format!(
            "Unlogged batch covering {} partitions detected against table{s} {names}. You should use a logged batch for atomicity, or asynchronous writes for performance.",
            keys.len()
        ));
    }
}
