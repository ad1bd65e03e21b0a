//! The I/O pattern of a shard: what a block tracer would show, by class, in windows of a tenth of a
//! second.
//!
//! It counts class, kind, size, time in the queue and time at the device of each operation. Windows
//! of the last minute are kept, and totals. `nodetool iostats` merges those of all shards.

use std::cell::RefCell;
use std::time::Duration;

use crate::class::Class;
use crate::io_kind::IoKind;
use crate::time::nanos;

/// Length of a window.
pub const IO_WINDOW: Duration = Duration::from_millis(100);
/// Windows that are kept: the last minute.
pub const IO_WINDOWS: usize = 600;
/// Classes of sizes: up to 512 bytes, up to 1 KiB and so on; the last has all that is larger.
pub const IO_SIZES: usize = 16;
/// Bytes of the smallest class of sizes.
const SMALLEST: u64 = 512;
/// Buckets of times, four for each doubling of microseconds; the last (from 1.8 seconds on) has all
/// that is longer.
pub const IO_TIMES: usize = 80;
/// Buckets for each doubling, as a power of two.
const STEPS_LOG2: u32 = 2;
const STEPS: u64 = 1 << STEPS_LOG2;
const NANOS_PER_MICRO: u64 = 1000;

/// The class of a size.
fn size_class(bytes: u64) -> usize {
    let doublings = bytes.div_ceil(SMALLEST).max(1).next_power_of_two().trailing_zeros();
    (doublings as usize).min(IO_SIZES - 1)
}

/// The largest size of a class, in bytes.
pub fn io_size_limit(class: usize) -> u64 {
    SMALLEST << class.min(IO_SIZES - 1)
}

/// The bucket of a time.
fn time_bucket(nanos: u64) -> usize {
    let micros = nanos / NANOS_PER_MICRO;
    if micros < STEPS {
        return micros as usize;
    }
    let doublings = micros.ilog2();
    let step = (micros >> (doublings - STEPS_LOG2)) - STEPS;
    let bucket = u64::from(doublings - STEPS_LOG2 + 1) * STEPS + step;
    (bucket as usize).min(IO_TIMES - 1)
}

/// The longest time in a bucket, in microseconds.
fn time_limit(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let width = 1 << (bucket / STEPS - 1);
    (STEPS + bucket % STEPS + 1) * width - 1
}

/// A distribution of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoTimes {
    counts: [u64; IO_TIMES],
    /// Sum, in nanoseconds.
    pub sum_ns: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
}

impl Default for IoTimes {
    fn default() -> Self {
        Self { counts: [0; IO_TIMES], sum_ns: 0, longest_ns: 0 }
    }
}

impl IoTimes {
    fn record(&mut self, nanos: u64) {
        self.counts[time_bucket(nanos)] += 1;
        self.sum_ns = self.sum_ns.saturating_add(nanos);
        self.longest_ns = self.longest_ns.max(nanos);
    }

    /// The time that a share `q` (0 to 1) does not exceed, in microseconds, a fifth too long at
    /// most; 0 where there are none.
    pub fn quantile(&self, q: f64) -> u64 {
        let total: u64 = self.counts.iter().sum();
        let wanted = ((total as f64 * q.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let longest = self.longest_ns / NANOS_PER_MICRO;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                let is_last = bucket + 1 == IO_TIMES;
                return if is_last { longest } else { time_limit(bucket).min(longest) };
            }
        }
        0
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// Operations of one class and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoFlow {
    /// What they worked for.
    pub class: Class,
    /// What they did.
    pub kind: IoKind,
    /// Operations ended.
    pub ops: u64,
    /// Of these, failed.
    pub errors: u64,
    /// Bytes moved, or given back.
    pub bytes: u64,
    /// Operations by the class of their size.
    pub sizes: [u64; IO_SIZES],
    /// Times in our queue.
    pub queue: IoTimes,
    /// Times from submission to completion.
    pub device: IoTimes,
}

impl IoFlow {
    fn new(class: Class, kind: IoKind) -> Self {
        let (queue, device) = (IoTimes::default(), IoTimes::default());
        Self { class, kind, ops: 0, errors: 0, bytes: 0, sizes: [0; IO_SIZES], queue, device }
    }

    fn record(&mut self, ended: &Ended) {
        self.ops += 1;
        match ended.bytes {
            Some(bytes) => {
                self.bytes += bytes;
                self.sizes[size_class(bytes)] += 1;
            }
            None => self.errors += 1,
        }
        self.queue.record(ended.queue_ns);
        self.device.record(ended.device_ns);
    }

    /// Adds operations of the same class and kind.
    fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.errors += other.errors;
        self.bytes += other.bytes;
        for (mine, theirs) in self.sizes.iter_mut().zip(&other.sizes) {
            *mine += theirs;
        }
        self.queue.merge(&other.queue);
        self.device.merge(&other.device);
    }
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub class: Class,
    pub kind: IoKind,
    /// Bytes moved; none: it failed.
    pub bytes: Option<u64>,
    pub queue_ns: u64,
    pub device_ns: u64,
}

/// Flows, found by class and kind; few of those that there can be are ever there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Flows(Vec<IoFlow>);

impl Flows {
    fn of(&mut self, class: Class, kind: IoKind) -> &mut IoFlow {
        let found = self.0.iter().position(|flow| flow.class == class && flow.kind == kind);
        let at = found.unwrap_or_else(|| {
            self.0.push(IoFlow::new(class, kind));
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|flow| self.of(flow.class, flow.kind).merge(flow));
    }
}

/// A window as it is filled.
#[derive(Debug, Default)]
struct Slot {
    /// Its number since the start of time.
    number: u64,
    /// Their memory stays when the window is used again.
    flows: Flows,
    in_flight: u64,
    queued: u64,
}

/// What a shard keeps.
#[derive(Debug, Default)]
pub(crate) struct History {
    slots: RefCell<Vec<Slot>>,
    totals: RefCell<Flows>,
}

/// The number of the window that a time is in.
pub(crate) fn window_of(now_ns: u64) -> u64 {
    now_ns / nanos(IO_WINDOW)
}

impl History {
    fn with_slot(&self, now_ns: u64, f: impl FnOnce(&mut Slot)) {
        let number = window_of(now_ns);
        let mut slots = self.slots.borrow_mut();
        let at = (number % IO_WINDOWS as u64) as usize;
        if slots.len() <= at {
            slots.resize_with(at + 1, Slot::default);
        }
        let slot = &mut slots[at];
        if slot.number != number {
            slot.number = number;
            slot.flows.0.clear();
            (slot.in_flight, slot.queued) = (0, 0);
        }
        f(slot);
    }

    /// Counts an operation into the window in which it ended.
    pub fn ended(&self, now_ns: u64, ended: &Ended) {
        self.with_slot(now_ns, |slot| slot.flows.of(ended.class, ended.kind).record(ended));
        self.totals.borrow_mut().of(ended.class, ended.kind).record(ended);
    }

    /// So many operations are at the device and in the queue.
    pub fn depth(&self, now_ns: u64, in_flight: u64, queued: u64) {
        self.with_slot(now_ns, |slot| {
            slot.in_flight = slot.in_flight.max(in_flight);
            slot.queued = slot.queued.max(queued);
        });
    }

    /// The windows from one number up to another.
    pub fn pattern(&self, windows: std::ops::Range<u64>) -> IoPattern {
        let mut pattern = IoPattern::empty(windows);
        for slot in self.slots.borrow().iter() {
            let at = slot.number.checked_sub(pattern.first);
            let at = at.and_then(|at| pattern.windows.get_mut(usize::try_from(at).ok()?));
            let Some(window) = at else { continue };
            window.in_flight = window.in_flight.max(slot.in_flight);
            window.queued = window.queued.max(slot.queued);
            for flow in &slot.flows.0 {
                window.of_mut(flow.class, flow.kind).add(&IoSums::of(flow));
            }
            pattern.flows.merge(&slot.flows);
        }
        pattern.totals = self.totals.borrow().clone();
        pattern
    }
}

/// Sums over the operations of a class and kind in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoSums {
    /// Operations ended.
    pub ops: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of the times in our queue, in nanoseconds.
    pub queue_ns: u64,
    /// Sum of the times from submission to completion, in nanoseconds.
    pub device_ns: u64,
    /// The longest in queue and device together, at most, in nanoseconds.
    pub longest_ns: u64,
}

impl IoSums {
    fn of(flow: &IoFlow) -> Self {
        Self {
            ops: flow.ops,
            bytes: flow.bytes,
            queue_ns: flow.queue.sum_ns,
            device_ns: flow.device.sum_ns,
            longest_ns: flow.queue.longest_ns.saturating_add(flow.device.longest_ns),
        }
    }

    fn add(&mut self, other: &Self) {
        self.ops += other.ops;
        self.bytes += other.bytes;
        self.queue_ns += other.queue_ns;
        self.device_ns += other.device_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// A window of a shard, or of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IoWindow {
    sums: Vec<(Class, IoKind, IoSums)>,
    /// The most operations at the device; of several shards, the sum of theirs.
    pub in_flight: u64,
    /// The most in our queues, likewise.
    pub queued: u64,
}

impl IoWindow {
    fn of_mut(&mut self, class: Class, kind: IoKind) -> &mut IoSums {
        let found = self.sums.iter().position(|(c, k, _)| *c == class && *k == kind);
        let at = found.unwrap_or_else(|| {
            self.sums.push((class, kind, IoSums::default()));
            self.sums.len() - 1
        });
        &mut self.sums[at].2
    }

    /// What there was, by class and kind.
    pub fn sums(&self) -> impl Iterator<Item = (Class, IoKind, &IoSums)> {
        self.sums.iter().map(|(class, kind, sums)| (*class, *kind, sums))
    }

    /// All classes of a kind together.
    pub fn kind(&self, kind: IoKind) -> IoSums {
        let mut all = IoSums::default();
        self.sums().filter(|(_, of, _)| *of == kind).for_each(|(.., sums)| all.add(sums));
        all
    }

    fn merge(&mut self, other: &Self) {
        other.sums().for_each(|(class, kind, sums)| self.of_mut(class, kind).add(sums));
        self.in_flight += other.in_flight;
        self.queued += other.queued;
    }
}

/// The I/O of a stretch of time, of a shard or merged of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoPattern {
    /// The number of the first window: so many lie between it and the start of monotonic time.
    pub first: u64,
    /// The windows, one after the other, those included in which nothing happened.
    pub windows: Vec<IoWindow>,
    flows: Flows,
    totals: Flows,
}

impl IoPattern {
    fn empty(windows: std::ops::Range<u64>) -> Self {
        let count = windows.end.saturating_sub(windows.start).min(IO_WINDOWS as u64) as usize;
        Self {
            first: windows.start,
            windows: vec![IoWindow::default(); count],
            flows: Flows::default(),
            totals: Flows::default(),
        }
    }

    /// Adds another shard's, of the same windows.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.windows.iter_mut().zip(&other.windows) {
            mine.merge(theirs);
        }
        self.flows.merge(&other.flows);
        self.totals.merge(&other.totals);
    }

    /// The operations of these windows, by class and kind.
    pub fn flows(&self) -> Vec<&IoFlow> {
        sorted(&self.flows)
    }

    /// The same since the start.
    pub fn totals(&self) -> Vec<&IoFlow> {
        sorted(&self.totals)
    }

    /// How long the windows are together.
    pub fn period(&self) -> Duration {
        IO_WINDOW.saturating_mul(u32::try_from(self.windows.len()).unwrap_or(u32::MAX))
    }

    /// Operations at the device and in our queues, on average.
    pub fn mean_depth(&self) -> (f64, f64) {
        let period = self.period().as_nanos().max(1) as f64;
        let rings = self.flows.0.iter().filter(|flow| flow.kind.is_queued());
        let (device, queue) = rings.fold((0, 0), |(device, queue), flow| {
            (device + flow.device.sum_ns, queue + flow.queue.sum_ns)
        });
        (device as f64 / period, queue as f64 / period)
    }
}

fn sorted(flows: &Flows) -> Vec<&IoFlow> {
    let mut all: Vec<&IoFlow> = flows.0.iter().collect();
    all.sort_by_key(|flow| (flow.class, flow.kind));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn read(bytes: u64, queue_ns: u64, device_ns: u64) -> Ended {
        let (class, kind) = (Class::Statement, IoKind::Read);
        Ended { class, kind, bytes: Some(bytes), queue_ns, device_ns }
    }

    #[test]
    fn sizes_are_counted_up_to_their_limit() {
        for (bytes, limit) in [(0, 512), (512, 512), (513, 1024), (4096, 4096), (4097, 8192)] {
            assert_eq!(io_size_limit(size_class(bytes)), limit, "{bytes}");
        }
        assert_eq!(size_class(u64::MAX / 2), IO_SIZES - 1);
    }

    #[test]
    fn a_bucket_of_times_holds_what_falls_into_it() {
        let mut last = 0;
        for micros in 0..3_000_000u64 {
            let bucket = time_bucket(micros * NANOS_PER_MICRO);
            assert!(bucket == last || bucket == last + 1, "{micros}");
            last = bucket;
            if bucket + 1 < IO_TIMES {
                let limit = time_limit(bucket);
                assert!(limit >= micros && limit * 4 <= micros * 5 + 4, "{micros} {limit}");
            }
        }
        assert_eq!(last, IO_TIMES - 1);
    }

    #[test]
    fn quantiles_are_no_longer_than_the_longest() {
        let mut times = IoTimes::default();
        assert_eq!(times.quantile(0.99), 0);
        (0..990).for_each(|_| times.record(100_000));
        (0..10).for_each(|_| times.record(40_000_000));
        assert!((100..=125).contains(&times.quantile(0.5)), "{}", times.quantile(0.5));
        assert!((100..=125).contains(&times.quantile(0.99)));
        assert_eq!(times.quantile(0.999), 40_000);
        assert_eq!(times.quantile(1.0), 40_000);
    }

    #[test]
    fn an_operation_counts_in_the_window_in_which_it_ends_until_that_is_used_again() {
        let history = History::default();
        history.ended(SECOND, &read(4096, 1000, 90_000));
        history.ended(SECOND + nanos(IO_WINDOW) / 2, &read(4096, 0, 110_000));
        history.ended(2 * SECOND, &read(8192, 0, 100_000));
        history.depth(2 * SECOND, 7, 3);
        let pattern = history.pattern(10..21);
        let ops = |pattern: &IoPattern| -> Vec<u64> {
            pattern.windows.iter().map(|window| window.kind(IoKind::Read).ops).collect()
        };
        assert_eq!(ops(&pattern), [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!((pattern.windows[10].in_flight, pattern.windows[10].queued), (7, 3));
        let flows = pattern.flows();
        assert_eq!((flows[0].ops, flows[0].bytes, flows[0].sizes[3]), (3, 16_384, 2));
        assert_eq!(flows[0].queue.longest_ns, 1000);
        // a minute later the slot is another window's
        let later = SECOND + IO_WINDOWS as u64 * nanos(IO_WINDOW);
        history.ended(later, &read(512, 0, 1));
        assert_eq!(ops(&history.pattern(10..21))[0], 0);
        let pattern = history.pattern(window_of(later)..window_of(later) + 1);
        assert_eq!((ops(&pattern), pattern.totals()[0].ops), (vec![1], 4));
    }

    #[test]
    fn what_failed_has_no_size() {
        let history = History::default();
        history.ended(0, &Ended { bytes: None, ..read(0, 0, 0) });
        let pattern = history.pattern(0..1);
        let flow = pattern.flows()[0].clone();
        assert_eq!((flow.ops, flow.errors, flow.sizes), (1, 1, [0; IO_SIZES]));
    }

    #[test]
    fn shards_add_up() {
        let (one, other) = (History::default(), History::default());
        one.ended(0, &read(4096, 0, 50_000_000));
        other.ended(0, &read(4096, 25_000_000, 50_000_000));
        one.depth(0, 4, 0);
        other.depth(0, 5, 1);
        let mut all = one.pattern(0..1);
        all.merge(&other.pattern(0..1));
        assert_eq!((all.windows[0].in_flight, all.windows[0].queued), (9, 1));
        assert_eq!(all.windows[0].kind(IoKind::Read).bytes, 8192);
        assert_eq!(all.mean_depth(), (1.0, 0.25));
        assert_eq!((all.flows()[0].ops, all.totals()[0].ops), (2, 2));
    }
}
