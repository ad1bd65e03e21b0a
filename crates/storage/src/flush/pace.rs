//! How fast a flush writes that nobody waits for: as fast as memory is needed, so that the disk has
//! an even load in place of a burst.
//!
//! A flush should be as far on as the memory that was free at its start is taken. It writes at
//! least 16 MiB/s. A flush that somebody waits for takes no pauses.

use std::cell::Cell;

use crate::engine::Engine;
use crate::io::Throttle;

/// What a flush writes in a second where no memory is needed.
const LEAST_RATE: u64 = 16 << 20;
/// The part of the memtables' memory at which a flush should have written all: the rest is for its
/// syncs. Writes wait when all is taken.
const FULL: f64 = 0.7;
/// Bytes that are written between two looks.
const STEP: u64 = 256 << 10;

/// Of the part that is done is told so often, where it is a flush of at least such a part of the
/// memory: writes go on as it grows.
const PARTS_TOLD: f64 = 256.0;
const TELLING_PART: u64 = 64;

/// Why a flush makes haste, if it does.
#[derive(Default)]
pub(super) struct Haste {
    /// How many wait for a flush that they asked for.
    waiters: Cell<u32>,
    /// Do writes wait for memory?
    is_memory_short: Cell<bool>,
}

/// Counts one who waits for flushes: these do not take their time then.
pub(crate) struct Eager<'a>(&'a Haste);

impl Haste {
    pub fn eager(&self) -> Eager<'_> {
        self.waiters.set(self.waiters.get() + 1);
        Eager(self)
    }

    pub fn memory_is_short(&self) {
        self.is_memory_short.set(true);
    }

    /// A flush has ended, and freed memory.
    pub fn flushed(&self) {
        self.is_memory_short.set(false);
    }

    fn is_needed(&self) -> bool {
        self.waiters.get() > 0 || self.is_memory_short.get()
    }
}

impl Drop for Eager<'_> {
    fn drop(&mut self) {
        self.0.waiters.set(self.0.waiters.get() - 1);
    }
}

/// What part of a flush should be done by now: as much as of the memory that was free at its start
/// is taken.
fn due(used_at_start: f64, used: f64) -> f64 {
    match FULL - used_at_start {
        free if free > 0.0 => ((used - used_at_start) / free).clamp(0.0, 1.0),
        _ => 1.0,
    }
}

/// The pace of a flush.
pub(super) struct FlushPace<'a> {
    haste: &'a Haste,
    engine: &'a Engine,
    throttle: Throttle,
    used_at_start: f64,
    partitions: u64,
    partitions_done: u64,
    /// What the memtables take.
    bytes: u64,
    written: u64,
    /// The part that the shards know to be done.
    told: f64,
}

impl<'a> FlushPace<'a> {
    /// Of a flush of so many partitions, that take so many bytes.
    pub fn new(haste: &'a Haste, engine: &'a Engine, partitions: u64, bytes: u64) -> Self {
        let throttle = Throttle::new(LEAST_RATE);
        let mut pace = Self {
            haste,
            engine,
            throttle,
            used_at_start: 0.0,
            partitions: partitions.max(1),
            partitions_done: 0,
            bytes: bytes.max(1),
            written: 0,
            told: 0.0,
        };
        pace.used_at_start = pace.used();
        pace
    }

    /// The part of this shard's memory that memtables have. Keys are dealt out evenly: so it is on
    /// the others.
    fn used(&self) -> f64 {
        self.engine.memtable_bytes() as f64 / self.engine.memory_lease().max(1) as f64
    }

    /// Has it no time? Somebody waits for a flush, or memory runs out before it is through.
    fn is_late(&self) -> bool {
        if self.engine.env().planted("flush_at_full_speed") {
            return true;
        }
        if self.engine.env().planted("flush_without_haste") {
            return false;
        }
        self.haste.is_needed()
            || self.engine.env().is_terminated()
            || due(self.used_at_start, self.used()) > self.done()
    }

    /// The part that is done. A file takes less than the memtable, so that one partition of many
    /// rows counts as well.
    fn done(&self) -> f64 {
        let partitions = self.partitions_done as f64 / self.partitions as f64;
        partitions.max(self.written as f64 / self.bytes as f64).min(1.0)
    }

    fn tell(&mut self) {
        let (done, shards) = (self.done(), self.engine.shards());
        let memory = self.engine.memory_lease() as u64 * shards.count() as u64;
        if done - self.told < 1.0 / PARTS_TOLD || self.bytes < memory / TELLING_PART {
            return;
        }
        self.told = done;
        for shard in 0..shards.count() {
            shards.send(shard, move |engine| engine.memtables().flush_gets_on(done));
        }
    }

    /// A partition is done.
    pub fn partition_ended(&mut self) {
        self.partitions_done += 1;
        self.tell();
    }

    /// So many bytes are written, from the start on. Waits where there is time.
    pub async fn at(&mut self, written: u64) {
        let step = written.saturating_sub(self.written);
        if step < STEP {
            return;
        }
        self.written = written;
        self.tell();
        if !self.is_late() {
            self.throttle.take(self.engine.env(), step, || self.is_late()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_to_be_done_when_memory_is_full() {
        assert_eq!(due(0.3, 0.3), 0.0);
        assert!((due(0.3, 0.5) - 0.5).abs() < 1e-9);
        assert_eq!(due(0.3, FULL), 1.0);
        assert_eq!(due(0.3, 0.1), 0.0, "memory that other flushes freed is no debt");
        assert_eq!(due(0.95, 0.95), 1.0, "there is no time");
    }
}
