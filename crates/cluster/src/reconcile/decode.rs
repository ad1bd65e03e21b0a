//! A replica's answer, checked against what was asked, and where the replica stopped.

use internode::payload::PayloadError;
use internode::payload::read::{DataReader, ReadCommand};
use rows::Unfiltered;
use schema::Table;
use storage::PartitionKey;

use super::asked::{Asked, counter, holds, page_before};
use super::{End, Given, Partition};
use crate::replica_read::limit::Counter;

fn refused(what: &'static str) -> PayloadError {
    PayloadError::Kind { what, number: -1 }
}

/// Reads the data of an answer.
///
/// What comes after a replica reached the limits is passed over, but for rows of the same
/// partition: it is not known whether all of it came.
///
/// # Errors
/// If it is malformed, or nothing that was asked for.
pub(crate) fn decode(
    table: &Table,
    command: &ReadCommand,
    data: &[u8],
) -> Result<Given, PayloadError> {
    let asked = Asked::new(table, command)?;
    let fetched = command.columns.header();
    let mut reader = DataReader::new(&table.layout, &fetched, data)?;
    let mut counter = asked.counter();
    let mut given = Given::default();
    let mut last: Option<PartitionKey> = None;
    while let Some(start) = reader.next_partition()? {
        let key = PartitionKey::new(start.key);
        if last.as_ref().is_some_and(|last| *last >= key) {
            return Err(refused("order of partitions"));
        }
        if !asked.has(&key) {
            return Err(refused("partition in an answer"));
        }
        if start.is_reversed != asked.is_reversed() {
            return Err(refused("direction of a partition"));
        }
        let statics = start.static_row.map(|row| row.into_owned());
        let mut partition = Partition::new(key.clone(), start.deletion, statics);
        let mut is_wanted = !counter.stops();
        if is_wanted {
            counter.start(&key.bytes, partition.static_row());
            is_wanted = !counter.stops();
        }
        let slices = asked.slices_of(&key);
        while let Some(unfiltered) = reader.next_unfiltered()? {
            if let Unfiltered::Row(row) = unfiltered {
                if !holds(&table.layout, slices, row.clustering()) {
                    return Err(refused("row in an answer"));
                }
                if is_wanted {
                    counter.row(&key.bytes, row);
                }
            }
            if is_wanted {
                partition.push(unfiltered);
            }
        }
        last = Some(key.clone());
        if !is_wanted {
            given.end = given.end.or_else(|| Some(End { row: None, ..page_before(command)? }));
            continue;
        }
        given.add(command, &mut counter, partition);
    }
    Ok(given)
}

/// What this node has to give itself, limited as an answer to others is.
pub(crate) fn own(table: &Table, command: &ReadCommand, partitions: Vec<Partition>) -> Given {
    let mut counter = counter(table, command);
    let mut given = Given::default();
    for partition in partitions {
        if !counter.stops() {
            counter.start(&partition.key.bytes, partition.static_row());
        }
        if counter.stops() {
            given.end = given.end.or_else(|| Some(End { row: None, ..page_before(command)? }));
            continue;
        }
        for unfiltered in partition.unfiltereds() {
            if let Unfiltered::Row(row) = unfiltered {
                counter.row(&partition.key.bytes, row);
            }
        }
        given.add(command, &mut counter, partition);
    }
    given
}

impl Given {
    /// Adds a partition all of which was counted.
    fn add(&mut self, command: &ReadCommand, counter: &mut Counter<'_>, partition: Partition) {
        let (stops, stops_here) = (counter.may_stop(), counter.may_stop_in_partition());
        counter.end();
        self.end = (stops || counter.stops()).then(|| {
            let key = partition.key.clone();
            // who stops before any row has seen that the group of the page before is whole
            let before = || page_before(command).filter(|end| end.key == key)?.row;
            let row = if stops { partition.last_row().or_else(before) } else { None };
            End { key, row }
        });
        if stops_here && !partition.is_empty() {
            self.cut.push(self.partitions.len());
        }
        // nothing is learned from a partition without anything in it, and it takes many times its
        // bytes
        self.partitions.extend(Some(partition).filter(|partition| !partition.is_empty()));
    }
}
