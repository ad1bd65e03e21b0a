//! A little replica: it has whole partitions, and gives of them what a read asks for.

use std::borrow::Cow;

use internode::payload::read::{
    ColumnFilter, DataWriter, KeyRange, Limits, Position, ReadCommand, RowsOf, Target,
};
use rows::codec::{PartitionStart, StatsCollector};
use rows::{
    BoundKind, BoundRef, Clustering, Deletion, MarkerRef, PartitionUpdate, RowBuilder, Step,
    Unfiltered, UnfilteredMerger, compare, merge_rows, merge_versions,
};
use schema::Table;
use storage::{PartitionKey, Slices};
use types::Token;

use super::facts::NOW;
use crate::reconcile::Partition;
use crate::reconcile::asked::counter;
use crate::replica_read::fetched::Fetched;
use crate::replica_read::slices::{Stretch, after, slices};

pub fn everything() -> KeyRange {
    KeyRange {
        from: Position::Before(Token::MIN),
        from_inclusive: true,
        to: Position::After(Token::MIN),
        to_inclusive: true,
    }
}

pub fn command(table: &Table, target: Target, limits: Limits) -> ReadCommand {
    ReadCommand {
        table: table.id.0,
        digest: None,
        accepts_transient: false,
        needs_reconciliation: false,
        now: NOW,
        columns: ColumnFilter::all(table),
        filter: Vec::new(),
        limits,
        index: None,
        target,
    }
}

pub fn rows_of(command: &ReadCommand) -> &RowsOf {
    let (Target::Partition { rows, .. } | Target::Range { rows, .. }) = &command.target;
    rows
}

pub fn is_reversed(command: &ReadCommand) -> bool {
    rows_of(command).reversed
}

/// The wanted rows of a partition; none if it is not wanted.
fn wanted(table: &Table, command: &ReadCommand, key: &PartitionKey) -> Option<Slices> {
    let slices = slices(&table.layout, rows_of(command)).expect("in order");
    match &command.target {
        Target::Partition { key: wanted, .. } => (*wanted == key.bytes).then_some(slices),
        Target::Range { keys, after: last, .. } => {
            let stretch = Stretch::new(keys).expect("a range");
            let is_first = matches!(&keys.from, Position::Key(first) if *first == key.bytes);
            let slices = match last.as_ref().filter(|_| is_first) {
                Some(last) => after(&table.layout, &slices, last),
                None => slices,
            };
            stretch.holds(key).then_some(slices)
        }
    }
}

/// The merge of some versions of one partition, of which some may have nothing, as far as its rows
/// are wanted: all of it, whatever the limits.
pub fn merged(
    table: &Table,
    command: &ReadCommand,
    versions: usize,
    updates: &[&PartitionUpdate],
) -> Option<Partition> {
    let layout = &*table.layout;
    let key = PartitionKey::new(updates.first()?.key.clone());
    let slices = wanted(table, command, &key)?;
    let reversed = slices.reversed();
    let fetched = Fetched::new(table, &command.columns);
    let deletion = updates.iter().fold(Deletion::LIVE, |max, update| max.max(update.deletion));
    let [mut row, mut picked] = [const { RowBuilder::new() }; 2];
    let statics = updates.iter().filter_map(|update| update.static_row());
    let statics = merge_versions(layout, statics, deletion, &mut row);
    let statics = statics.and_then(|row| fetched.row(row, &mut picked));
    let statics = statics.map(|row| row.as_packed().to_vec());
    let mut partition = Partition::new(key, deletion, statics);
    let streams = updates.iter().map(|update| stream(update, &slices));
    let mut streams: Vec<_> = streams.map(|stream| stream.into_iter().peekable()).collect();
    streams.resize_with(versions.max(updates.len()), || Vec::new().into_iter().peekable());
    let mut merger = UnfilteredMerger::new(streams.len(), deletion, reversed);
    loop {
        let packed = streams.iter_mut().map(|stream| stream.peek().cloned());
        let packed: Vec<Option<Vec<u8>>> = packed.collect();
        let heads = packed.iter().map(|one| one.as_deref().map(Unfiltered::from_packed));
        let heads: Vec<_> = heads.collect();
        match merger.step(layout, &heads[..], &mut row) {
            Step::End => break,
            Step::Nothing => {}
            Step::Next(Unfiltered::Row(row)) => {
                if let Some(row) = fetched.row(row, &mut picked) {
                    partition.push(Unfiltered::Row(row));
                }
            }
            Step::Next(marker) => partition.push(marker),
        }
        for source in merger.consumed() {
            streams[*source].next();
        }
    }
    Some(partition).filter(|partition| !partition.is_empty())
}

/// What of an update lies in slices, packed.
fn stream(update: &PartitionUpdate, slices: &Slices) -> Vec<Vec<u8>> {
    let (layout, reversed) = (&*update.layout, slices.reversed());
    let mut out = Vec::new();
    for (start, end) in slices.iter_ordered() {
        let inside = |one: &Unfiltered<'_>| {
            compare(layout, start, one.position()).is_lt()
                && compare(layout, one.position(), end).is_lt()
        };
        let rows = update.rows.iter().map(Unfiltered::Row).filter(inside);
        let markers = update.ranges.markers_within(layout, start, end, reversed);
        let mut all: Vec<_> = rows.chain(markers.map(Unfiltered::Marker)).collect();
        all.sort_by(|a, b| {
            let order = compare(layout, a.position(), b.position());
            if reversed { order.reverse() } else { order }
        });
        for one in all {
            let mut packed = Vec::new();
            one.pack(&mut packed);
            out.push(packed);
        }
    }
    out
}

/// A partition without what only a merge drops, though it says nothing more: deletions of columns
/// at the time of the row's. A replica that gives a row of its own keeps them, unless another
/// replica has something of the row.
pub fn settled(table: &Table, partition: &Partition) -> Partition {
    let statics = partition.statics.clone();
    let mut settled = Partition::new(partition.key.clone(), partition.deletion, statics);
    let mut merged = RowBuilder::new();
    for one in partition.unfiltereds() {
        match one {
            Unfiltered::Row(row) => {
                let row = merge_rows(&table.layout, row, row, Deletion::LIVE, &mut merged);
                settled.push(Unfiltered::Row(row.expect("what is not empty")));
            }
            marker => settled.push(marker),
        }
    }
    settled
}

/// A partition up to a row, with the range that is open there closed.
pub fn up_to(table: &Table, partition: &Partition, last: &Clustering, reversed: bool) -> Partition {
    let statics = partition.statics.clone();
    let mut cut = Partition::new(partition.key.clone(), partition.deletion, statics);
    let kind = if reversed { BoundKind::InclStart } else { BoundKind::InclEnd };
    let place = BoundRef::new(kind, last.as_ref());
    let mut open = None;
    for one in partition.unfiltereds() {
        let order = compare(&table.layout, one.position(), place);
        if order.is_eq() || order.is_gt() != reversed {
            break;
        }
        if let Unfiltered::Marker(marker) = one {
            open = marker.opens(reversed);
        }
        cut.push(one);
    }
    if let Some(deletion) = open {
        cut.push(Unfiltered::Marker(MarkerRef::bound(place, deletion)));
    }
    cut
}

/// Partitions, and the row that each was cut at.
pub type Limited = Vec<(Partition, Option<Clustering>)>;

/// What the limits leave of partitions in order. Were as many rows found as are wanted?
pub fn limited(
    table: &Table,
    command: &ReadCommand,
    partitions: Vec<Partition>,
) -> (Limited, bool) {
    let mut counter = counter(table, command);
    let mut out = Vec::new();
    for partition in partitions {
        if counter.stops() {
            break;
        }
        let key = &partition.key.bytes;
        counter.start(key, partition.static_row());
        let (mut taken, mut last) = (0, None);
        for one in partition.unfiltereds() {
            if counter.stops_in_partition() {
                break;
            }
            if let Unfiltered::Row(row) = one {
                if !counter.row(key, row) {
                    break;
                }
                last = Some(row.clustering().to_owned());
            }
            taken += 1;
        }
        let last = last.filter(|_| counter.stops_in_partition());
        counter.end();
        let given = match &last {
            Some(last) => up_to(table, &partition, last, is_reversed(command)),
            None if taken == 0 => {
                Partition::new(partition.key.clone(), partition.deletion, partition.statics.clone())
            }
            None => partition,
        };
        out.push((given, last));
    }
    (out, counter.stops())
}

/// An answer's data with these partitions.
pub fn encoded<'p>(
    table: &Table,
    command: &ReadCommand,
    partitions: impl IntoIterator<Item = &'p Partition>,
) -> Vec<u8> {
    let fetched = command.columns.header();
    let mut writer = DataWriter::new(&table.layout, &fetched, Vec::new());
    for partition in partitions {
        let reversed = is_reversed(command);
        if partition.is_empty() {
            writer.empty_partition(&partition.key.bytes, reversed);
            continue;
        }
        let mut stats = StatsCollector::default();
        stats.deletion(partition.deletion);
        partition.static_row().into_iter().for_each(|row| stats.row(row));
        for one in partition.unfiltereds() {
            match one {
                Unfiltered::Row(row) => stats.row(row),
                Unfiltered::Marker(marker) => {
                    stats.deletion(marker.start);
                    stats.deletion(marker.end);
                }
            }
        }
        let mut header = fetched.clone();
        header.stats = stats.finish();
        let start = PartitionStart {
            key: &partition.key.bytes,
            is_reversed: reversed,
            header: None,
            deletion: partition.deletion,
            static_row: partition.statics.as_deref().map(Cow::Borrowed),
            row_estimate: None,
            consumed: 0,
        };
        writer.start(&header, &start).expect("written");
        for one in partition.unfiltereds() {
            writer.unfiltered(&header, one).expect("written");
        }
        writer.end();
    }
    writer.finish()
}

/// All that replicas have of what was asked for, merged partition by partition.
pub fn all_of(
    table: &Table,
    command: &ReadCommand,
    replicas: &[&[PartitionUpdate]],
) -> Vec<Partition> {
    let updates = || replicas.iter().flat_map(|replica| replica.iter());
    let mut keys: Vec<_> = updates().map(|update| PartitionKey::new(update.key.clone())).collect();
    keys.sort();
    keys.dedup();
    let partition = |key: PartitionKey| {
        let of_key = updates().filter(|update| update.key == key.bytes);
        merged(table, command, replicas.len(), &of_key.collect::<Vec<_>>())
    };
    keys.into_iter().filter_map(partition).collect()
}

/// What a replica answers.
pub fn answer(table: &Table, command: &ReadCommand, updates: &[PartitionUpdate]) -> Vec<u8> {
    let (given, _) = limited(table, command, all_of(table, command, &[updates]));
    encoded(table, command, given.iter().map(|(partition, _)| partition))
}
