//! Partitions of virtual tables: made up when they are read.

use cql::select::{RangeBound, Read, RowFilter, Target};
use rows::{RowRef, Unfiltered};
use schema::Table;
use storage::PartitionKey;

use crate::read::shard::{PartitionRows, ReadError};

/// The made-up partitions that a read wants, in its order, each with its place among those that it
/// names.
pub(super) fn wanted(
    table: &Table,
    target: &Target,
    mut partitions: Vec<rows::PartitionUpdate>,
) -> Vec<(usize, PartitionKey, rows::PartitionUpdate)> {
    let key_of = |update: &rows::PartitionUpdate| PartitionKey {
        token: update.token,
        bytes: update.key.clone(),
    };
    match target {
        Target::Keys(keys) => {
            let find = |(place, key): (usize, &cql::select::PartitionKey)| {
                let at = partitions.iter().position(|update| update.key == key.bytes)?;
                let update = partitions.swap_remove(at);
                Some((place, key_of(&update), update))
            };
            keys.iter().enumerate().filter_map(find).collect()
        }
        // Ranges of virtual tables go by the order of keys, in which the partitions come.
        Target::Range { from, to } => {
            let order = |update: &rows::PartitionUpdate, bound: &RangeBound| match bound {
                RangeBound::Key { key: end, inclusive } => {
                    Some((table.compare_keys(&update.key, &end.bytes), *inclusive))
                }
                RangeBound::Token { token, inclusive } => {
                    Some((update.token.cmp(token), *inclusive))
                }
                RangeBound::Unbounded => None,
            };
            partitions.retain(|update| {
                let (start, end) = (order(update, from), order(update, to));
                start.is_none_or(|(order, with)| order.is_gt() || (with && order.is_eq()))
                    && end.is_none_or(|(order, with)| order.is_lt() || (with && order.is_eq()))
            });
            let placed = |(place, update)| (place, key_of(&update), update);
            partitions.into_iter().enumerate().map(placed).collect()
        }
    }
}

/// Did the page before end in this partition? The one that it ended in may be gone.
pub(super) fn is_resumed(read: &Read, key: &PartitionKey) -> bool {
    let begun = match &read.target {
        Target::Keys(keys) => keys.first(),
        Target::Range { from: RangeBound::Key { key, inclusive: true }, .. } => Some(key),
        Target::Range { .. } => None,
    };
    read.first_rows.is_some() && begun.is_some_and(|begun| begun.bytes == key.bytes)
}

/// The rows of a made-up partition that a filter selects.
pub(super) struct MadeUp {
    rows: std::vec::IntoIter<Vec<u8>>,
    static_row: Option<Vec<u8>>,
    current: Vec<u8>,
}

impl MadeUp {
    pub fn new(
        table: &Table,
        update: &rows::PartitionUpdate,
        filter: &RowFilter,
        reversed: bool,
    ) -> Self {
        let selected =
            |row: &RowRef<'_>| filter.selects(&table.layout, &row.clustering().to_owned());
        let mut rows: Vec<Vec<u8>> =
            update.rows.iter().filter(selected).map(|row| row.as_packed().to_vec()).collect();
        if reversed {
            rows.reverse();
        }
        let static_row = update.static_row().map(|row| row.as_packed().to_vec());
        Self { rows: rows.into_iter(), static_row, current: Vec::new() }
    }
}

impl PartitionRows for MadeUp {
    fn static_row(&self) -> Option<Vec<u8>> {
        self.static_row.clone()
    }

    async fn next(&mut self) -> Result<Option<Unfiltered<'_>>, ReadError> {
        match self.rows.next() {
            Some(row) => {
                self.current = row;
                Ok(Some(Unfiltered::from_packed(&self.current)))
            }
            None => Ok(None),
        }
    }
}
