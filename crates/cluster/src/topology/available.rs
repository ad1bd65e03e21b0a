//! What this node has fetched already (`system.available_ranges_v2`): what a bootstrap that failed
//! need not fetch again.
//!
//! It holds for one start only. While a node is down others may forget that it was joining, and
//! write past it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use rows::{Deletion, Mutation, RowBuilder, UpdateBuilder};
use schema::Table;
use storage::{Engine, StorageError};
use types::{TokenRange, WriteBytes};

use crate::internal::{self, Internal, Times};

/// What stands before a range of tokens (`AbstractBounds.Type.RANGE`).
const KIND_RANGE: u32 = 0;

const TABLE: &str = "available_ranges_v2";

/// Ranges by keyspace that are here.
pub(super) struct Available {
    engine: Rc<Engine>,
    ranges: RefCell<BTreeMap<String, Vec<TokenRange>>>,
}

impl Available {
    pub fn new(engine: &Rc<Engine>) -> Self {
        Self { engine: Rc::clone(engine), ranges: RefCell::default() }
    }

    /// Those of a keyspace: normalized.
    pub fn of(&self, keyspace: &str) -> Vec<TokenRange> {
        self.ranges.borrow().get(keyspace).cloned().unwrap_or_default()
    }

    /// Forgets all, those of earlier starts too.
    pub async fn clear(&self) -> Result<(), StorageError> {
        self.ranges.borrow_mut().clear();
        forget_all(&self.engine, TABLE).await
    }

    /// Ranges of a keyspace came, whole.
    pub async fn add(&self, keyspace: &str, ranges: &[TokenRange]) -> Result<(), StorageError> {
        if let Some(table) = self.table() {
            let written = ranges.iter().map(|range| range_bytes(*range)).collect();
            let columns = [
                ("full_ranges", Internal::Elements(written)),
                ("transient_ranges", Internal::Elements(Vec::new())),
            ];
            let times = Times::new(self.engine.env().unique_micros());
            let key: &[u8] = keyspace.as_bytes();
            let row = internal::insert(&table, &[key], &[], &columns, &times);
            internal::apply(&self.engine, row).await?;
        }
        let mut all = self.ranges.borrow_mut();
        let of = all.entry(keyspace.to_owned()).or_default();
        *of = TokenRange::normalize(of.iter().chain(ranges).copied());
        Ok(())
    }

    fn table(&self) -> Option<Arc<Table>> {
        self.engine.schema().table("system", TABLE).cloned()
    }
}

/// Deletes all of a small table of the system.
pub(super) async fn forget_all(engine: &Rc<Engine>, name: &str) -> Result<(), StorageError> {
    let Some(table) = engine.schema().table("system", name).cloned() else { return Ok(()) };
    let timestamp = engine.env().unique_micros();
    for stored in internal::read_all(engine, &table).await? {
        for update in stored.updates() {
            let layout = Arc::clone(&table.layout);
            let mut gone = UpdateBuilder::new(table.id.0, layout, &update.key);
            gone.delete_partition(Deletion::new(timestamp, timestamp / 1_000_000));
            let gone = Mutation::new(gone.finish(&mut RowBuilder::new()));
            internal::apply(engine, gone).await?;
        }
    }
    Ok(())
}

/// A range as Cassandra keeps it (`SystemKeyspace.rangeToBytes`): its kind, then both tokens, each
/// behind its length.
pub(super) fn range_bytes(range: TokenRange) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u32(KIND_RANGE);
    range.write(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Token;

    #[test]
    fn a_range_is_kept_as_cassandra_keeps_it() {
        let range = TokenRange { left: Token(-2), right: Token(3) };
        let expected = [
            &[0, 0, 0, 0, 0, 0, 0, 8][..],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
            &[0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 3],
        ];
        assert_eq!(range_bytes(range), expected.concat());
    }
}
