//! Unified choice (`UnifiedCompactionStrategy`): levels of density, compacted where enough SSTables
//! meet at a key.

use std::cell::Cell;

use super::choice::{Candidate, Choice, Given, Reason, Split, View};
use super::overlaps::{Inclusion, Set, groups, overlap_sets, pull_last};
use super::ring;
use super::size_tiered::ids;
use super::tombstones::TombstoneOptions;

const MIB: u64 = 1 << 20;
/// The most that the base number of shards is shifted.
const SHIFT_MAX: u32 = 20;

/// Into how many shards outputs are split.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharding {
    /// `base_shard_count`.
    pub base: u32,
    /// `target_sstable_size`, in bytes.
    pub target_bytes: f64,
    /// `min_sstable_size`, in bytes.
    pub min_bytes: i64,
    /// `sstable_growth`.
    pub growth: f64,
}

impl Sharding {
    pub(crate) fn new(given: Given<'_>) -> Self {
        let growth = given.text("sstable_growth").and_then(|text| {
            let text = text.trim();
            match text.strip_suffix('%') {
                Some(percent) => percent.trim().parse().ok().map(|percent: f64| percent / 100.0),
                None => text.parse().ok(),
            }
        });
        Self {
            base: given.number("base_shard_count", 4i32).max(1).cast_unsigned(),
            target_bytes: given.bytes("target_sstable_size", 1024 * MIB) as f64,
            min_bytes: given.bytes("min_sstable_size", 100 * MIB).cast_signed(),
            growth: growth.unwrap_or(0.333),
        }
    }

    /// The number of shards for data of a density: between the root of a half and that of two of
    /// the target's size each, but not below the least size.
    pub fn shards(&self, density: f64) -> u32 {
        if self.min_bytes > 0 {
            let count = density / self.min_bytes as f64;
            if count.is_nan() || count < f64::from(self.base) {
                let divisor = self.base & self.base.wrapping_neg();
                return highest_bit(count).min(divisor);
            }
        }
        let base = f64::from(self.base);
        if self.growth == 1.0 {
            self.base
        } else if self.growth == 0.0 {
            let count = density / (self.target_bytes * 0.5f64.sqrt() * base);
            let count = count.min(f64::from(1u32 << SHIFT_MAX));
            self.base.saturating_mul(highest_bit(count))
        } else {
            let count = density / (self.target_bytes * base);
            let shift = count.ln() * (1.0 / 2f64.ln()) * (1.0 - self.growth) + 0.5;
            // not a number counts as nothing
            let shift = (shift.max(0.0) as u32).min(SHIFT_MAX);
            self.base.saturating_mul(1 << shift)
        }
    }
}

/// The highest power of two in a count, at least one.
fn highest_bit(count: f64) -> u32 {
    let count = (count as i32 | 1).cast_unsigned();
    1 << (u32::BITS - 1 - count.leading_zeros())
}

/// The strategy, with what it remembers from choice to choice.
#[derive(Clone, Debug)]
pub struct Unified {
    /// `scaling_parameters`: `L10` is -8, `N` is 0, `T4` is 2.
    scaling: Vec<i32>,
    pub(crate) sharding: Sharding,
    /// `flush_size_override`, in bytes; 0 for none.
    flush_override: u64,
    /// `max_sstables_to_compact`.
    inputs_max: usize,
    inclusion: Inclusion,
    /// `expired_sstable_check_frequency_seconds`, in milliseconds.
    check_millis: i64,
    tombstones: TombstoneOptions,
    last_check_millis: i64,
    flush_bytes: Cell<u64>,
}

struct Level<'a> {
    index: usize,
    tables: Vec<&'a Candidate>,
}

/// What a level would do.
struct Pick {
    overlap: usize,
    inputs: Option<Vec<u64>>,
    pending: usize,
}

fn scaling_parameter(text: &str) -> Option<i32> {
    let text = text.trim();
    match text.split_at_checked(1)? {
        ("N", "") => Some(0),
        ("L", factor) => factor.parse().ok().map(|factor: i32| 2 - factor),
        ("T", factor) => factor.parse().ok().map(|factor: i32| factor - 2),
        _ => text.parse().ok(),
    }
}

impl Unified {
    pub(crate) fn new(given: Given<'_>, now_millis: i64) -> Self {
        let text = given.text("scaling_parameters").unwrap_or("T4");
        let mut scaling: Vec<i32> = text.split(',').filter_map(scaling_parameter).collect();
        if scaling.is_empty() {
            scaling.push(2);
        }
        let inputs_max: i32 = given.number("max_sstables_to_compact", 0);
        let method = given.text("overlap_inclusion_method").unwrap_or_default();
        let seconds: i64 = given.number("expired_sstable_check_frequency_seconds", 600);
        Self {
            scaling,
            sharding: Sharding::new(given),
            flush_override: given.bytes("flush_size_override", 0),
            inputs_max: if inputs_max <= 0 { usize::MAX } else { inputs_max as usize },
            inclusion: match method.to_ascii_uppercase().as_str() {
                "NONE" => Inclusion::None,
                "SINGLE" => Inclusion::Single,
                _ => Inclusion::Transitive,
            },
            check_millis: seconds.saturating_mul(1000),
            tombstones: TombstoneOptions::new(given),
            last_check_millis: now_millis,
            flush_bytes: Cell::new(0),
        }
    }

    fn scaling(&self, level: usize) -> i32 {
        self.scaling.get(level).or(self.scaling.last()).copied().unwrap_or_default()
    }

    fn fanout(&self, level: usize) -> usize {
        2 + self.scaling(level).unsigned_abs() as usize
    }

    fn threshold(&self, level: usize) -> usize {
        2 + self.scaling(level).max(0) as usize
    }

    /// What a flush writes: as it was seen, in steps, so that levels do not move all the time.
    fn flush_bytes(&self, view: &View<'_>) -> u64 {
        if self.flush_override > 0 {
            return self.flush_override;
        }
        let known = self.flush_bytes.get();
        if known == 0 || (1.0 - known as f64 / view.flush_bytes).abs() > 0.5 {
            let megabytes = (view.flush_bytes / MIB as f64).ceil() as u64;
            self.flush_bytes.set(megabytes.saturating_mul(MIB));
        }
        self.flush_bytes.get()
    }

    /// The greatest density of the first level.
    fn first_max(&self, view: &View<'_>) -> f64 {
        let fanout = self.fanout(0) as f64;
        let base = self.flush_bytes(view).max(MIB) as f64 * (1.0 - 0.9 / fanout);
        (base * fanout).floor()
    }

    fn levels<'a>(&self, mut tables: Vec<&'a Candidate>, view: &View<'_>) -> Vec<Level<'a>> {
        tables.sort_by(|a, b| ring::density(a).total_cmp(&ring::density(b)));
        let mut max = self.first_max(view);
        let mut levels = Vec::new();
        let mut level = Level { index: 0, tables: Vec::new() };
        for table in tables {
            while ring::density(table) >= max {
                let index = level.index + 1;
                levels.push(std::mem::replace(&mut level, Level { index, tables: Vec::new() }));
                max = (max * self.fanout(index) as f64).floor();
            }
            level.tables.push(table);
        }
        levels.push(level);
        levels
    }

    fn pick(&self, level: &Level<'_>, view: &View<'_>) -> Pick {
        let sets = overlap_sets(&level.tables);
        let overlap = sets.iter().map(Set::len).max().unwrap_or_default();
        let threshold = self.threshold(level.index);
        if overlap < threshold {
            return Pick { overlap, inputs: None, pending: 0 };
        }
        let mut pending = 0;
        let mut matching = 0;
        let mut selected = None;
        for group in groups(&sets, threshold, self.inclusion) {
            let group = sets.get(group).unwrap_or_default();
            let of = group.iter().map(Set::len).max().unwrap_or_default();
            pending += of / threshold;
            if of == overlap {
                matching += 1;
                if (view.random)(matching) == 0 {
                    selected = Some(group);
                }
            }
        }
        let inputs = selected.map(|group| self.inputs(level, group, overlap));
        Pick { overlap, inputs, pending }
    }

    /// Of a group of sets, what is to be compacted.
    fn inputs(&self, level: &Level<'_>, sets: &[Set], overlap: usize) -> Vec<u64> {
        let all: Set = sets.iter().flatten().copied().collect();
        let mut order: Vec<usize> = all.into_iter().collect();
        let newest = |at: &usize| level.tables.get(*at).map(|table| table.max_timestamp);
        order.sort_by_key(|at| std::cmp::Reverse(newest(at)));
        let fanout = self.fanout(level.index);
        let most = self.inputs_max.max(fanout);
        let limit = if overlap <= fanout {
            usize::MAX
        } else if overlap <= fanout * self.fanout(level.index + 1) || most == fanout {
            if overlap <= most { usize::MAX } else { most }
        } else {
            self.steps(level.index, most.min(overlap))
        };
        let order = pull_last(&order, sets, limit);
        order.iter().filter_map(|at| level.tables.get(*at)).map(|table| table.id).collect()
    }

    /// How many overlapping tables to compact where compaction is so late that several levels would
    /// have been made of them.
    fn steps(&self, level: usize, limit: usize) -> usize {
        let mut size = self.fanout(level);
        let mut index = level + 1;
        loop {
            let next = size.saturating_mul(self.fanout(index));
            if next > limit {
                break;
            }
            size = next;
            index += 1;
        }
        if self.scaling(level) < 0 { size * (limit / size).max(1) } else { size }
    }

    fn free<'a>(mine: &[&'a Candidate]) -> Vec<&'a Candidate> {
        mine.iter().copied().filter(|table| !table.is_compacting).collect()
    }

    pub(crate) fn next(&mut self, mine: &[&Candidate], view: &View<'_>) -> Option<Choice> {
        let mut free = Self::free(mine);
        let mut expired = Vec::new();
        if view.now_millis - self.last_check_millis > self.check_millis {
            self.last_check_millis = view.now_millis;
            expired = self.tombstones.expired(view, &free, &view.overlapping(&free));
            free.retain(|table| !expired.contains(&table.id));
        }
        let mut best: Option<Pick> = None;
        for level in self.levels(free, view) {
            let pick = self.pick(&level, view);
            if !level.tables.is_empty() && best.as_ref().is_none_or(|b| pick.overlap > b.overlap) {
                best = Some(pick);
            }
        }
        let mut inputs = best.and_then(|pick| pick.inputs).unwrap_or_default();
        let reason = if inputs.is_empty() { Reason::Expired } else { Reason::Tier };
        inputs.extend(expired);
        (!inputs.is_empty()).then(|| self.task(inputs, view, reason))
    }

    /// A task over these inputs, with its outputs split by their density.
    pub(crate) fn task(&self, inputs: Vec<u64>, view: &View<'_>, reason: Reason) -> Choice {
        let is_input = |table: &&Candidate| inputs.contains(&table.id);
        let tables: Vec<_> = view.tables.iter().filter(is_input).collect();
        let expired = self.tombstones.expired(view, &tables, &view.overlapping(&tables));
        let left: Vec<_> = tables.into_iter().filter(|t| !expired.contains(&t.id)).collect();
        let shards = self.sharding.shards(ring::combined_density(&left));
        Choice { split: Split::Shards(shards), ..Choice::merge(inputs, reason) }
    }

    pub(crate) fn pending(&self, mine: &[&Candidate], view: &View<'_>) -> usize {
        let levels = self.levels(Self::free(mine), view);
        levels.iter().map(|level| self.pick(level, view).pending).sum()
    }

    /// One task for each part of the table whose keys lie apart.
    pub(crate) fn major(&self, mine: &[&Candidate], view: &View<'_>) -> Vec<Choice> {
        let sets = overlap_sets(mine);
        let mut parts: Vec<Set> = Vec::new();
        for set in sets {
            match parts.last_mut() {
                Some(part) if !part.is_disjoint(&set) => part.extend(set),
                _ => parts.push(set),
            }
        }
        let tables = |part: Set| part.into_iter().filter_map(|at| mine.get(at).copied()).collect();
        let task = |tables: Vec<&Candidate>| self.task(ids(&tables), view, Reason::Major);
        parts.into_iter().map(tables).map(task).collect()
    }
}
