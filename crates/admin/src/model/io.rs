//! The pattern of I/O, as a block tracer would show it.

use doctor::Baseline;
use env::{IO_SIZES, IO_WINDOW, IoKind, IoPattern, IoTimes, io_size_limit};
use serde::{Deserialize, Serialize};

const NANOS_PER_MICRO: u64 = 1000;
/// In the order to show them in, with the plural of each: the first three move bytes.
const KINDS: [(IoKind, &str); 5] = [
    (IoKind::Read, "reads"),
    (IoKind::Write, "writes"),
    (IoKind::Discard, "discards"),
    (IoKind::Sync, "syncs"),
    (IoKind::WriteBack, "write-backs"),
];

/// For `iostats`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoStats {
    /// All windows together.
    pub period_seconds: f64,
    /// One of them.
    pub window_millis: u64,
    /// When the first window began, since 1970.
    pub starts_at_millis: i64,
    /// What was read, written, discarded, synced and written back, whatever for.
    pub volumes: Vec<IoVolume>,
    /// What was under way at a time.
    pub depth: IoDepth,
    /// What was done in these windows, by class and operation.
    pub flows: Vec<IoFlow>,
    /// The same since the start.
    pub since_start: Vec<IoFlow>,
    /// Each window, if asked for.
    pub windows: Option<Vec<IoWindow>>,
    /// What this machine was measured to do, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// Operations of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoVolume {
    /// `reads`, `writes`, ...
    pub name: String,
    /// How many.
    pub count: u64,
    /// That failed.
    pub errors: u64,
    /// Moved, or given back.
    pub bytes: u64,
    /// Operations in the window that has the most.
    pub window_peak_count: u64,
    /// Moved in the window that has the most.
    pub window_peak_bytes: u64,
    /// How large they were.
    pub sizes: Vec<IoSize>,
}

/// Operations of a class of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoSize {
    /// The largest of the class; the last class has all that is larger than the one before.
    pub limit_bytes: u64,
    /// How many.
    pub count: u64,
}

/// Operations under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IoDepth {
    /// That all shards may have at the device.
    pub bound: u64,
    /// At the device, on average.
    pub mean: f64,
    /// At most.
    pub max: u64,
    /// In our queue, on average.
    pub queue_mean: f64,
    /// At most.
    pub queue_max: u64,
}

/// Operations of a class and a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoFlow {
    /// What they worked for.
    pub class: String,
    /// `read`, `write`, ...
    pub operation: String,
    /// How many.
    pub count: u64,
    /// That failed.
    pub errors: u64,
    /// Moved, or given back.
    pub bytes: u64,
    /// How large they were.
    pub sizes: Vec<IoSize>,
    /// How long they waited in our queue.
    pub queue_micros: IoLatencies,
    /// How long they took at the device.
    pub device_micros: IoLatencies,
}

/// Times of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLatencies {
    /// A half took no longer.
    pub p50: u64,
    /// 99 of 100 took no longer.
    pub p99: u64,
    /// 999 of 1000 took no longer.
    pub p999: u64,
    /// The longest.
    pub max: u64,
    /// All together.
    pub sum: u64,
}

/// A stretch of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoWindow {
    /// What was done.
    pub flows: Vec<IoSum>,
    /// The most at the device.
    pub in_flight: u64,
    /// The most in our queue.
    pub queued: u64,
}

/// Operations of a class and a kind in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoSum {
    /// What they worked for.
    pub class: String,
    /// `read`, `write`, ...
    pub operation: String,
    /// How many.
    pub count: u64,
    /// Moved, or given back.
    pub bytes: u64,
    /// In our queue, all together.
    pub queue_micros: u64,
    /// At the device, all together.
    pub device_micros: u64,
    /// The longest.
    pub longest_micros: u64,
}

impl IoStats {
    /// Of what all shards did; the first window began at a time, so many operations may be at the
    /// device.
    pub fn of(pattern: &IoPattern, starts_at_millis: i64, bound: u64) -> Self {
        let (mean, queue_mean) = pattern.mean_depth();
        let most = |of: fn(&env::IoWindow) -> u64| pattern.windows.iter().map(of).max();
        Self {
            period_seconds: pattern.period().as_secs_f64(),
            window_millis: IO_WINDOW.as_millis() as u64,
            starts_at_millis,
            volumes: KINDS.iter().map(|(kind, name)| volume(pattern, *kind, name)).collect(),
            depth: IoDepth {
                bound,
                mean,
                max: most(|window| window.in_flight).unwrap_or(0),
                queue_mean,
                queue_max: most(|window| window.queued).unwrap_or(0),
            },
            flows: pattern.flows().into_iter().map(flow).collect(),
            since_start: pattern.totals().into_iter().map(flow).collect(),
            windows: Some(pattern.windows.iter().map(window).collect()),
            baseline: None,
        }
    }
}

/// All classes of a kind together.
fn volume(pattern: &IoPattern, kind: IoKind, name: &str) -> IoVolume {
    let (mut count, mut errors, mut bytes) = (0, 0, 0);
    let mut all = [0; IO_SIZES];
    for flow in pattern.flows().into_iter().filter(|flow| flow.kind == kind) {
        count += flow.ops;
        errors += flow.errors;
        bytes += flow.bytes;
        all.iter_mut().zip(&flow.sizes).for_each(|(mine, theirs)| *mine += theirs);
    }
    let windows = || pattern.windows.iter().map(|window| window.kind(kind));
    IoVolume {
        name: name.to_owned(),
        count,
        errors,
        bytes,
        window_peak_count: windows().map(|sums| sums.ops).max().unwrap_or(0),
        window_peak_bytes: windows().map(|sums| sums.bytes).max().unwrap_or(0),
        sizes: sizes(&all),
    }
}

/// Those that there are.
fn sizes(counts: &[u64; IO_SIZES]) -> Vec<IoSize> {
    let there = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    there
        .map(|(class, count)| IoSize { limit_bytes: io_size_limit(class), count: *count })
        .collect()
}

fn flow(of: &env::IoFlow) -> IoFlow {
    IoFlow {
        class: of.class.name().to_owned(),
        operation: of.kind.name().to_owned(),
        count: of.ops,
        errors: of.errors,
        bytes: of.bytes,
        sizes: sizes(&of.sizes),
        queue_micros: latencies(&of.queue),
        device_micros: latencies(&of.device),
    }
}

fn latencies(of: &IoTimes) -> IoLatencies {
    IoLatencies {
        p50: of.quantile(0.5),
        p99: of.quantile(0.99),
        p999: of.quantile(0.999),
        max: of.longest_ns / NANOS_PER_MICRO,
        sum: of.sum_ns / NANOS_PER_MICRO,
    }
}

fn window(of: &env::IoWindow) -> IoWindow {
    let sum = |(class, kind, sums): (env::Class, IoKind, &env::IoSums)| IoSum {
        class: class.name().to_owned(),
        operation: kind.name().to_owned(),
        count: sums.ops,
        bytes: sums.bytes,
        queue_micros: sums.queue_ns / NANOS_PER_MICRO,
        device_micros: sums.device_ns / NANOS_PER_MICRO,
        longest_micros: sums.longest_ns / NANOS_PER_MICRO,
    };
    IoWindow { flows: of.sums().map(sum).collect(), in_flight: of.in_flight, queued: of.queued }
}
