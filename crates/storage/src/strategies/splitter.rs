//! Where a compaction's outputs end (`CompactionAwareWriter` and its kin).

use types::Token;

use super::choice::Split;
use super::leveled::level_bytes;
use super::ring;

/// Below this share of the whole, in bytes, no further half is made.
const HALF_MIN: u64 = 50_000_000;
const HALVES_MAX: u32 = 20;

/// Decides before each partition whether it begins another output.
#[derive(Clone, Debug)]
pub struct Splitter {
    split: Split,
    level: usize,
    /// `Levels`: bytes of finished outputs of the present level.
    filled: u64,
    /// `Halves`: halves made.
    halves: u32,
    /// `Shards`: the present one.
    shard: u32,
}

impl Splitter {
    /// Of a task.
    pub fn new(split: Split, level: usize) -> Self {
        let level = if matches!(split, Split::Levels { .. }) { 1 } else { level };
        Self { split, level, filled: 0, halves: 1, shard: 0 }
    }

    /// The level of the present output.
    pub fn level(&self) -> usize {
        self.level
    }

    /// About how many outputs there will be, for inputs of so many bytes.
    pub fn outputs(&self, bytes: u64) -> u64 {
        match self.split {
            Split::None => 1,
            Split::Size(most) | Split::Levels { bytes: most, .. } => (bytes / most.max(1)).max(1),
            Split::Halves(_) => 2,
            Split::Shards(shards) => u64::from(shards.max(1)),
        }
    }

    /// Does a partition of this token begin another output? `written` are the bytes of the present
    /// one on disk; `is_empty` says that it has no partition.
    pub fn cuts(&mut self, token: Token, written: u64, is_empty: bool) -> bool {
        match self.split {
            Split::None => false,
            Split::Size(most) => written > most,
            Split::Levels { bytes, fanout } => {
                if written <= bytes {
                    return false;
                }
                self.filled += written;
                if self.filled > level_bytes(bytes, fanout, self.level) {
                    self.filled = 0;
                    self.level += 1;
                }
                true
            }
            Split::Halves(total) => {
                let share = |halves: u32| total >> halves.min(u64::BITS - 1);
                let goes_on = self.halves < HALVES_MAX && share(self.halves) >= HALF_MIN;
                let cuts = goes_on && written > share(self.halves);
                self.halves += u32::from(cuts);
                cuts
            }
            Split::Shards(shards) => {
                let shard = ring::shard_of(token, shards);
                let before = std::mem::replace(&mut self.shard, shard);
                assert!(before <= shard, "outputs are written in the order of the ring");
                before != shard && !is_empty
            }
        }
    }
}
