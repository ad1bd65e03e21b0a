//! What a seed decides before its world begins.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use env::Rng;
use storage::commitlog::{CdcOptions, Compression, SyncMode};
use storage::{FlushCompression, LogSettings, Options, SSTableVersion};

/// How one life of the node ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process is killed.
    Kill,
    /// The power goes.
    PowerCut,
    /// SIGTERM.
    Drain,
}

/// One life of the node.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    /// Its shards.
    pub shards: usize,
    /// Operations that all clients together have done when it ends, counted from the world's
    /// beginning.
    pub until: u64,
    /// How it ends.
    pub end: End,
    /// How long after `until` that is.
    pub linger: Duration,
    /// From `until` on syncs of the disk fail, some of them at first.
    pub bad_syncs: bool,
    /// It ends once more in the middle of the start that follows, after so long.
    pub stumble: Option<Duration>,
}

/// What a seed decides.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The node's lives.
    pub lives: Vec<Life>,
    /// When an acknowledgement is given.
    pub sync: SyncMode,
    /// Settings of the engine.
    pub options: Options,
    /// Clock jumps, in microseconds, after so many operations.
    pub jumps: Vec<(u64, i64)>,
    /// The disk is slower by a factor, after so many operations and for so many.
    pub slow: Option<(u64, u64, u64)>,
    /// TRUNCATE takes a snapshot before (`auto_snapshot`).
    pub auto_snapshot: bool,
    /// Compactions begin by themselves.
    pub compacts: bool,
}

/// Operations of a world.
pub const OPERATIONS: u64 = 600;

/// Where the node keeps its files in its world.
pub fn directories() -> (PathBuf, PathBuf) {
    ("/var/data".into(), "/var/commitlog".into())
}

/// One data directory, or three.
fn data_directories(seed: u64, first: PathBuf) -> Vec<PathBuf> {
    match seed % 5 {
        2 => ["", "2", "3"].map(|n| PathBuf::from(format!("{}{n}", first.display()))).into(),
        _ => vec![first],
    }
}

impl Plan {
    /// The plan that follows from a seed.
    pub fn new(seed: u64) -> Self {
        let rng = Rng::new(seed ^ 0x706c_616e);
        let sync = match rng.below(3) {
            0 => SyncMode::Batch,
            1 => SyncMode::Group { window: Duration::from_micros(rng.between(500, 15_000)) },
            _ => SyncMode::Periodic {
                period: Duration::from_millis(rng.between(20, 300)),
                lag_block: Duration::from_millis(rng.between(10, 150)),
            },
        };
        let (data, commitlog) = directories();
        let options = Options {
            data_directories: data_directories(seed, data),
            disk: storage::DiskSettings::default(),
            commitlog_directory: commitlog,
            sync,
            segment_bytes: 1 << rng.between(14, 16),
            log: LogSettings::default(),
            commitlog_bytes: rng.between(128, 512) << 10,
            memtable_bytes: rng.between(16, 64) << 10,
            keeps_flushed: seed % 3 < 2,
            cleanup_threshold: 0.2 + rng.below(50) as f64 / 100.0,
            column_index_bytes: 1 << rng.between(9, 13),
            chunk_cache_bytes: rng.between(16, 256) << 10,
            key_cache_bytes: rng.between(0, 16) << 10,
            row_cache_bytes: rng.between(0, 64) << 10,
            counter_cache_bytes: (seed % 4) << 13,
            concurrent_compactors: 2,
            compaction_bytes_per_second: if rng.one_in(2) { 0 } else { 4 << 20 },
            incremental_backups: false,
            flush_compression: FlushCompression::Fast,
            passes_page_cache: !seed.is_multiple_of(5),
            page_cache_bytes: [Some(256 << 10), Some(32 << 10), Some(8 << 10), None]
                [seed as usize % 4],
            sstable_version: SSTableVersion::NB,
            uuid_identifiers: seed.is_multiple_of(3),
        };
        let (lives, jumps, slow) = (lives(&rng), jumps(&rng), slow(&rng));
        let mut plan =
            Self { lives, sync, options, jumps, slow, auto_snapshot: false, compacts: true };
        plan.options.log.compression = compression(&rng);
        plan.options.log.cdc = cdc(&rng);
        // where writes are acknowledged early, nothing is promised of those before a failure
        plan.options.log.goes_on_after_failure =
            !matches!(sync, SyncMode::Periodic { .. }) && rng.one_in(3);
        plan
    }

    /// How long before a crash a write may have been acknowledged and still be lost.
    pub fn window(&self, end: End) -> Duration {
        /// What writing a turn's records to the file takes at most on a healthy disk.
        const WRITE_MAX: Duration = Duration::from_millis(20);
        /// What the sync of two segments takes at most on a healthy disk, with the write before it.
        const SYNC_MAX: Duration = Duration::from_millis(100);
        let factor = self.slow.map_or(1, |(_, _, factor)| factor as u32);
        match self.sync {
            // what is in the file, synced or not, survives its process
            SyncMode::Periodic { .. } if end == End::Kill => WRITE_MAX * factor,
            SyncMode::Periodic { period, .. } => period + SYNC_MAX * factor,
            SyncMode::Batch | SyncMode::Group { .. } => Duration::ZERO,
        }
    }
}

/// Change data capture, in one of three worlds. Nobody consumes: where writes may be refused there
/// is space for all.
fn cdc(rng: &Rng) -> Option<CdcOptions> {
    let blocks_writes = rng.one_in(2);
    let small = rng.between(64, 256) << 10;
    rng.one_in(3).then(|| CdcOptions {
        directory: "/var/cdc_raw".into(),
        total_bytes: Some(if blocks_writes { 1 << 30 } else { small }),
        blocks_writes,
        captures_streams: true,
        check_interval: Duration::from_millis(250),
    })
}

/// Half of all logs are compressed.
fn compression(rng: &Rng) -> Option<Compression> {
    let class = [
        "LZ4Compressor",
        "SnappyCompressor",
        "DeflateCompressor",
        "ZstdCompressor",
        "",
        "",
        "",
        "",
    ][rng.below(8) as usize];
    Compression::new(class, BTreeMap::new()).ok()
}

fn lives(rng: &Rng) -> Vec<Life> {
    // one kill, one power cut, in either order, and an end in peace
    let mut ends = [End::Kill, End::PowerCut];
    if rng.one_in(2) {
        ends.reverse();
    }
    if rng.one_in(4) {
        ends = [End::PowerCut, End::PowerCut];
    }
    let shards = rng.between(1, 4) as usize;
    let life = |until: u64, end: End| Life {
        shards: if rng.one_in(2) { shards } else { rng.between(1, 4) as usize },
        until,
        end,
        linger: Duration::from_micros(rng.below(20_000)),
        // A process that is killed leaves pages that no sync will ever write: not even a start sees
        // that.
        bad_syncs: end == End::PowerCut && rng.one_in(5),
        stumble: (end != End::Drain && rng.one_in(3))
            .then(|| Duration::from_micros(rng.between(100, 40_000))),
    };
    let first = rng.between(OPERATIONS / 6, OPERATIONS / 2);
    let second = rng.between(first + OPERATIONS / 8, OPERATIONS * 5 / 6);
    vec![life(first, ends[0]), life(second, ends[1]), life(OPERATIONS, End::Drain)]
}

fn jumps(rng: &Rng) -> Vec<(u64, i64)> {
    let jump = |back: bool| {
        let micros = rng.between(1_000, 40_000_000) as i64;
        (rng.below(OPERATIONS), if back { -micros } else { micros })
    };
    let mut jumps = vec![jump(false), jump(true)];
    jumps.extend((0..rng.below(3)).map(|_| jump(rng.one_in(2))));
    jumps.sort_unstable();
    jumps
}

fn slow(rng: &Rng) -> Option<(u64, u64, u64)> {
    let from = rng.below(OPERATIONS);
    rng.one_in(4).then(|| (from, from + rng.between(20, 100), rng.between(2, 5)))
}
