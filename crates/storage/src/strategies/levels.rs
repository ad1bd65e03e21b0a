//! The levels of a table's SSTables (`LeveledGenerations`).

use std::collections::BTreeMap;

use super::choice::Candidate;
use crate::memtable::PartitionKey;

/// Levels that there are, with level 0.
pub(crate) const LEVELS: usize = 9;

/// The SSTables by level: those of level 0 by age, the others by first key.
pub(crate) struct Levels<'a> {
    levels: [BTreeMap<(Option<&'a PartitionKey>, u64), &'a Candidate>; LEVELS],
    of: BTreeMap<u64, usize>,
}

impl<'a> Levels<'a> {
    /// Puts SSTables into the levels that their metadata name, the oldest first. One that overlaps
    /// another one there goes to level 0, and one of a level that does not exist too.
    pub fn new(tables: &[&'a Candidate]) -> Self {
        let mut by_age = tables.to_vec();
        by_age.sort_by_key(|table| table.id);
        let mut levels = Self { levels: Default::default(), of: BTreeMap::new() };
        for table in by_age {
            let level = if levels.is_free(table) { table.level } else { 0 };
            levels.of.insert(table.id, level);
            let first = (level > 0).then_some(&table.first);
            let level = levels.levels.get_mut(level).expect("the level of an SSTable exists");
            level.insert((first, table.id), table);
        }
        levels
    }

    fn is_free(&self, table: &'a Candidate) -> bool {
        let Some(level) = self.levels.get(table.level) else { return false };
        let at = (Some(&table.first), table.id);
        let before = level.range(..at).next_back();
        let after = level.range(at..).next();
        before.is_none_or(|(_, before)| before.last < table.first)
            && after.is_none_or(|(_, after)| table.last < after.first)
    }

    /// The level of an SSTable.
    pub fn of(&self, id: u64) -> usize {
        *self.of.get(&id).expect("an SSTable has a level")
    }

    /// SSTables of a level.
    pub fn len(&self, level: usize) -> usize {
        self.levels.get(level).map_or(0, BTreeMap::len)
    }

    /// The SSTables of a level.
    pub fn of_level(&self, level: usize) -> impl Iterator<Item = &'a Candidate> + '_ {
        self.levels.get(level).into_iter().flatten().map(|(_, table)| *table)
    }

    /// Those of a level that no task works on.
    pub fn free(&self, level: usize) -> impl Iterator<Item = &'a Candidate> + '_ {
        self.of_level(level).filter(|table| !table.is_compacting)
    }

    /// The SSTables of a level, beginning with the first one after a key, and around.
    pub fn round(&self, level: usize, after: Option<&PartitionKey>) -> Vec<&'a Candidate> {
        let mut tables: Vec<_> = self.of_level(level).collect();
        let start = tables.iter().position(|table| after.is_some_and(|after| table.first > *after));
        tables.rotate_left(start.unwrap_or_default());
        tables
    }

    /// By level: the last key of the newest SSTable in the next one, where a start takes it that
    /// compaction stood.
    pub fn newest_of_next(&self) -> [Option<PartitionKey>; LEVELS] {
        std::array::from_fn(|level| {
            let next = self.of_level(level + 1);
            next.max_by_key(|table| table.created_millis).map(|table| table.last.clone())
        })
    }

    /// SSTables that are in another level than their metadata name.
    pub fn displaced(&self) -> Vec<u64> {
        let tables = self.levels.iter().flatten().map(|(_, table)| *table);
        tables.filter(|table| table.level != self.of(table.id)).map(|table| table.id).collect()
    }
}
