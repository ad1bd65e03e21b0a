//! Which SSTables a table has.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::SSTable;
use crate::memtable::KeyRef;

/// The live SSTables of a table: an immutable snapshot, delivered to every shard by message.
#[derive(Debug, Default)]
pub struct LiveSet {
    tables: Vec<Arc<SSTable>>,
}

impl LiveSet {
    /// Of these tables.
    pub fn new(tables: Vec<Arc<SSTable>>) -> Arc<Self> {
        let numbers: BTreeSet<u64> = tables.iter().map(|table| table.number).collect();
        assert_eq!(numbers.len(), tables.len(), "an SSTable occurs once in a set");
        Arc::new(Self { tables })
    }

    /// All of them.
    pub fn tables(&self) -> &[Arc<SSTable>] {
        &self.tables
    }

    /// Those that may hold a part of a partition.
    pub(crate) fn candidates<'a>(
        &'a self,
        key: KeyRef<'a>,
    ) -> impl Iterator<Item = &'a Arc<SSTable>> {
        self.tables.iter().filter(move |sstable| sstable.table.may_contain(key.token, key.bytes))
    }

    /// This set with some tables replaced by others.
    pub(crate) fn with(
        &self,
        gone: &[u64],
        new: impl IntoIterator<Item = Arc<SSTable>>,
    ) -> Arc<Self> {
        let stay = self.tables.iter().filter(|sstable| !gone.contains(&sstable.number));
        Self::new(stay.cloned().chain(new).collect())
    }
}
