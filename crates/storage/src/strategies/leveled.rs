//! Leveled choice (`LeveledCompactionStrategy`, `LeveledManifest`): above level 0 the SSTables of a
//! level do not overlap, and each level holds so many times more than the one below.

use std::collections::BTreeSet;

use types::Token;

use super::choice::{Candidate, Choice, Given, Reason, Split, View};
use super::levels::{LEVELS, Levels};
use super::size_tiered::{BucketOptions, Thresholds, buckets, ids, most_interesting};
use super::tombstones::TombstoneOptions;
use crate::memtable::PartitionKey;

/// With more SSTables than this, level 0 is compacted by sizes before anything else.
const LEVEL_0_MAX: usize = 32;
/// After so many rounds without a compaction of the highest level, SSTables of it join those of
/// lower ones.
const ROUNDS_MAX: u32 = 25;
/// A level is full when it has this much more than it should.
const FULL: f64 = 1.001;

/// The strategy, with what it remembers from choice to choice.
#[derive(Clone, Debug)]
pub struct Leveled {
    /// `sstable_size_in_mb`, in bytes.
    sstable_bytes: u64,
    /// `fanout_size`.
    fanout: u32,
    /// `single_sstable_uplevel`.
    moves_single: bool,
    buckets: BucketOptions,
    thresholds: Thresholds,
    tombstones: TombstoneOptions,
    /// By level: the last key that was compacted out of it; the next compaction goes on after it.
    last: Option<[Option<PartitionKey>; LEVELS]>,
    /// By level: rounds since it was compacted into.
    rounds: [u32; LEVELS],
}

/// The range of the tokens of tables, if there are any.
fn tokens(tables: &[&Candidate]) -> Option<(Token, Token)> {
    let first = tables.iter().map(|table| table.first.token).min()?;
    let last = tables.iter().map(|table| table.last.token).max()?;
    Some((first, last))
}

fn bytes(tables: &[&Candidate]) -> u64 {
    tables.iter().map(|table| table.data_bytes).sum()
}

/// The level that tables go to.
fn next_level(tables: &[&Candidate], sstable_bytes: u64, levels: &Levels<'_>) -> usize {
    let of = |table: &&Candidate| levels.of(table.id);
    let lowest = tables
        .iter()
        .map(of)
        .min()
        .expect("a compaction to the next level has at least one SSTable");
    let highest = tables
        .iter()
        .map(of)
        .max()
        .expect("a compaction to the next level has at least one SSTable");
    match (lowest, highest) {
        (0, 0) if bytes(tables) < sstable_bytes => 0,
        (low, high) if low == high => high + 1,
        (_, high) => high,
    }
}

impl Leveled {
    pub(crate) fn new(given: Given<'_>) -> Self {
        Self {
            sstable_bytes: u64::from(given.number("sstable_size_in_mb", 160u32)) << 20,
            fanout: given.number("fanout_size", 10u32),
            moves_single: given.flag("single_sstable_uplevel"),
            buckets: BucketOptions::new(given),
            thresholds: Thresholds::new(given),
            tombstones: TombstoneOptions::new(given),
            last: None,
            rounds: [0; LEVELS],
        }
    }

    /// What a level should hold at most, in bytes.
    pub fn level_bytes(&self, level: usize) -> u64 {
        level_bytes(self.sstable_bytes, self.fanout, level)
    }

    /// The levels of a table's SSTables: those that overlap others of their level count for
    /// level 0.
    pub(crate) fn levels<'a>(mine: &[&'a Candidate]) -> Levels<'a> {
        Levels::new(mine)
    }

    pub(crate) fn next(&mut self, mine: &[&Candidate], view: &View<'_>) -> Option<Choice> {
        let levels = Self::levels(mine);
        self.last.get_or_insert_with(|| levels.newest_of_next());
        if let Some((tables, level, split)) = self.by_size(&levels) {
            let moves = self.moves_single && tables.len() == 1;
            let inputs = ids(&tables);
            return Some(Choice { inputs, level, split, reason: Reason::Level, moves });
        }
        let table = self.droppable(&levels, view)?;
        Some(Choice {
            inputs: vec![table.id],
            level: levels.of(table.id),
            split: Split::Size(self.sstable_bytes),
            reason: Reason::Tombstones,
            moves: false,
        })
    }

    fn by_size<'a>(&mut self, levels: &Levels<'a>) -> Option<(Vec<&'a Candidate>, usize, Split)> {
        let tiered = self.tiered(levels).map(|tables| (tables, 0, Split::None));
        let split = Split::Size(self.sstable_bytes);
        for level in (1..LEVELS).rev() {
            let free: Vec<_> = levels.free(level).collect();
            let score = bytes(&free) as f64 / self.level_bytes(level) as f64;
            if score <= FULL || level + 1 == LEVELS {
                continue;
            }
            if tiered.is_some() {
                return tiered;
            }
            let tables = self.one_of_level(levels, level);
            if !tables.is_empty() {
                let next = next_level(&tables, self.sstable_bytes, levels);
                let tables = self.with_starved(levels, next, tables);
                return Some((tables, next, split));
            }
        }
        let tables = self.oldest_of_level_0(levels);
        if tables.is_empty() {
            return tiered;
        }
        let next = next_level(&tables, self.sstable_bytes, levels);
        Some((tables, next, split))
    }

    /// Where level 0 is far behind: SSTables of it to be compacted by sizes.
    fn tiered<'a>(&self, levels: &Levels<'a>) -> Option<Vec<&'a Candidate>> {
        if levels.len(0) <= LEVEL_0_MAX {
            return None;
        }
        let free: Vec<_> = levels.free(0).collect();
        most_interesting(buckets(&free, &self.buckets), self.thresholds)
    }

    /// One SSTable of a level above 0, and those of the next that it overlaps; none if all are
    /// being compacted.
    fn one_of_level<'a>(&self, levels: &Levels<'a>, level: usize) -> Vec<&'a Candidate> {
        let after = self.last.as_ref().and_then(|last| last.get(level)?.as_ref());
        for table in levels.round(level, after) {
            let mut tables = vec![table];
            tables.extend(levels.of_level(level + 1).filter(|other| table.overlaps(other)));
            if tables.iter().all(|table| !table.is_compacting) {
                return tables;
            }
        }
        Vec::new()
    }

    /// The oldest SSTables of level 0 and those that overlap them, and if that is enough, those of
    /// level 1 that they overlap.
    fn oldest_of_level_0<'a>(&self, levels: &Levels<'a>) -> Vec<&'a Candidate> {
        let busy: Vec<_> = levels.of_level(0).filter(|table| table.is_compacting).collect();
        let busy_span = tokens(&busy);
        let mut remaining: Vec<_> = levels.of_level(0).collect();
        remaining.sort_by_key(|table| (table.max_timestamp, table.id));
        let by_age = remaining.clone();
        let mut tables: Vec<&Candidate> = Vec::new();
        let mut chosen = BTreeSet::new();
        for table in by_age {
            if chosen.contains(&table.id) {
                continue;
            }
            let meets = |other: &&Candidate| other.id == table.id || other.overlaps(table);
            let mut together: Vec<_> = remaining.iter().copied().filter(meets).collect();
            if together.iter().all(|other| other.id != table.id) {
                together.push(table);
            }
            if together.iter().any(|other| other.is_compacting) {
                continue;
            }
            let is_free = |table: &&Candidate| {
                busy_span.is_none_or(|(first, last)| !table.covers(first, last))
            };
            let fresh = together.iter().copied().filter(is_free);
            let fresh: Vec<_> = fresh.filter(|other| chosen.insert(other.id)).collect();
            tables.extend(fresh);
            remaining.retain(|other| together.iter().all(|gone| gone.id != other.id));
            if tables.len() > self.thresholds.max {
                tables.sort_by_key(|table| (table.max_timestamp, table.id));
                tables.truncate(self.thresholds.max);
                break;
            }
        }
        if bytes(&tables) > self.sstable_bytes
            && let Some((first, last)) = tokens(&tables)
        {
            let above: Vec<_> = levels.of_level(1).filter(|t| t.covers(first, last)).collect();
            let is_busy = above.iter().any(|table| table.is_compacting);
            if is_busy || busy.iter().any(|table| table.covers(first, last)) {
                return Vec::new();
            }
            tables.extend(above);
        }
        if tables.len() < 2 { Vec::new() } else { tables }
    }

    /// The tables, with one of the highest level that lies within their range where that level was
    /// not compacted for long.
    fn with_starved<'a>(
        &mut self,
        levels: &Levels<'a>,
        target: usize,
        mut tables: Vec<&'a Candidate>,
    ) -> Vec<&'a Candidate> {
        self.rounds.iter_mut().skip(1).for_each(|rounds| *rounds += 1);
        if let Some(rounds) = self.rounds.get_mut(target) {
            *rounds = 0;
        }
        let highest = (1..LEVELS).rev().find(|level| levels.len(*level) > 0);
        let starved = |level: &usize| self.rounds.get(*level).is_some_and(|n| *n > ROUNDS_MAX);
        let Some(level) = highest.filter(starved) else { return tables };
        let first = tables.iter().map(|table| &table.first).min().cloned();
        let last = tables.iter().map(|table| &table.last).max().cloned();
        let Some((first, last)) = first.zip(last).filter(|(first, last)| first < last) else {
            return tables;
        };
        let lies_within = |table: &&Candidate| {
            table.first < table.last && first <= table.first && table.last <= last
        };
        let joins = levels.of_level(level).filter(|t| !t.is_compacting).find(lies_within);
        if let Some(joins) = joins.filter(|joins| tables.iter().all(|t| t.id != joins.id)) {
            tables.push(joins);
        }
        tables
    }

    /// The SSTable that is most worth being rid of its tombstones, of the highest level that has
    /// one.
    fn droppable<'a>(&self, levels: &Levels<'a>, view: &View<'_>) -> Option<&'a Candidate> {
        (0..LEVELS).rev().find_map(|level| {
            let mut tables: Vec<_> = levels.free(level).collect();
            tables.sort_by(|a, b| b.droppable_ratio.total_cmp(&a.droppable_ratio));
            tables.into_iter().find(|table| self.tombstones.is_worth(view, table))
        })
    }

    /// Notes that tables of a level were replaced: the next compaction of it goes on after these.
    pub(crate) fn replaced(&mut self, lowest: usize, added: &[Candidate]) {
        let newest = added.iter().max_by(|a, b| a.first.cmp(&b.first));
        let place = self.last.as_mut().and_then(|last| last.get_mut(lowest));
        if let Some((place, newest)) = place.zip(newest) {
            *place = Some(newest.last.clone());
        }
    }

    pub(crate) fn pending(&self, mine: &[&Candidate]) -> usize {
        let levels = Self::levels(mine);
        let mut tasks = 0;
        for level in 0..LEVELS {
            let bytes: u64 = levels.of_level(level).map(|table| table.data_bytes).sum();
            let most = (self.level_bytes(level) as f64 * FULL) as u64;
            tasks += bytes.saturating_sub(most).div_ceil(self.sstable_bytes.max(1)) as usize;
        }
        let max = self.thresholds.max.max(1);
        if levels.len(0) > max { tasks + levels.len(0) / max } else { tasks }
    }

    pub(crate) fn major(&self, mine: &[&Candidate]) -> Choice {
        let split = Split::Levels { bytes: self.sstable_bytes, fanout: self.fanout };
        Choice { split, ..Choice::merge(ids(mine), Reason::Major) }
    }

    pub(crate) fn user_defined(&self, tables: &[&Candidate]) -> Choice {
        let level = match tables {
            [table] => table.level,
            _ => 0,
        };
        let split = if level == 0 { Split::None } else { Split::Size(self.sstable_bytes) };
        Choice { level, split, ..Choice::merge(ids(tables), Reason::UserDefined) }
    }
}

/// What a level should hold at most, in bytes.
pub(crate) fn level_bytes(sstable_bytes: u64, fanout: u32, level: usize) -> u64 {
    match level {
        0 => 4 * sstable_bytes,
        _ => (f64::from(fanout).powi(level as i32) * sstable_bytes as f64) as u64,
    }
}
