//! The handles that code on a shard counts with.
//!
//! A handle is one pointer; to count is one or two additions to plain cells. Handles cannot
//! leave their shard, as `Rc` is not `Send`.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use crate::buckets::{BUCKETS, DEFAULT_BUCKETS};
use crate::snapshot::{Distribution, Reading};

/// Buckets of a histogram, the one for what is beyond the last offset included.
const CELLS: usize = DEFAULT_BUCKETS + 1;

/// A number that only grows.
#[derive(Clone, Debug, Default)]
pub struct Counter(Rc<Cell<u64>>);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.set(self.0.get().wrapping_add(n));
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// A number that rises and falls. Merged over shards it is the sum.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Rc<Cell<i64>>);

impl Gauge {
    /// Replaces the value.
    pub fn set(&self, value: i64) {
        self.0.set(value);
    }

    /// Adds `n`, which may be negative.
    pub fn add(&self, n: i64) {
        self.0.set(self.0.get().wrapping_add(n));
    }

    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Takes one off.
    pub fn dec(&self) {
        self.add(-1);
    }

    /// The value.
    pub fn get(&self) -> i64 {
        self.0.get()
    }
}

/// What a value recorded now weighs against earlier ones. A registry has one; histograms without a
/// name share it too.
#[derive(Clone, Debug)]
pub struct Weight(Rc<Weighing>);

#[derive(Debug)]
struct Weighing {
    now: Cell<u64>,
    /// Histograms that no registry holds.
    nameless: RefCell<Vec<Weak<Inner>>>,
}

impl Default for Weight {
    fn default() -> Self {
        Self(Rc::new(Weighing { now: Cell::new(1), nameless: RefCell::default() }))
    }
}

impl Weight {
    /// A histogram that is in no registry.
    pub fn histogram(&self) -> Histogram {
        let histogram = Histogram::new(self.clone());
        self.0.nameless.borrow_mut().push(Rc::downgrade(&histogram.0));
        histogram
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.now.get()
    }

    pub(crate) fn set(&self, weight: u64) {
        self.0.now.set(weight);
    }

    /// Divides the recent weights of nameless histograms, and forgets those that are gone.
    pub(crate) fn rescale(&self, divisor: f64) {
        self.0.nameless.borrow_mut().retain(|histogram| match histogram.upgrade() {
            Some(inner) => {
                Histogram(inner).rescale(divisor);
                true
            }
            None => false,
        });
    }
}

/// A distribution of values in Cassandra's buckets, over all time and over the last minutes.
///
/// As in `metrics.DecayingEstimatedHistogramReservoir` a recorded value weighs
/// `exp(seconds / mean lifetime)`, rounded, so that earlier ones fade; quantiles are of these
/// weights. The weight is the registry's, brought up to date by its `tick`.
#[derive(Clone, Debug)]
pub struct Histogram(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    weight: Weight,
    sum: Cell<u64>,
    counts: [Cell<u64>; CELLS],
    recent: [Cell<u64>; CELLS],
    max: Cell<u64>,
}

impl Histogram {
    pub(crate) fn new(weight: Weight) -> Self {
        let zeros = || std::array::from_fn(|_| Cell::new(0));
        let (counts, recent) = (zeros(), zeros());
        Self(Rc::new(Inner { weight, sum: Cell::new(0), counts, recent, max: Cell::new(0) }))
    }

    /// Counts `value`: microseconds, bytes or things, as the metric's unit says.
    pub fn record(&self, value: u64) {
        let inner = &*self.0;
        let index = BUCKETS.index(value);
        if let (Some(count), Some(recent)) = (inner.counts.get(index), inner.recent.get(index)) {
            count.set(count.get().wrapping_add(1));
            recent.set(recent.get().saturating_add(inner.weight.0.now.get()));
        }
        inner.sum.set(inner.sum.get().wrapping_add(value));
        inner.max.set(inner.max.get().max(value));
    }

    /// Counts a duration in whole microseconds, for a metric of `Unit::Micros`.
    pub fn record_duration(&self, elapsed: std::time::Duration) {
        self.record(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX));
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.0.counts.iter().map(Cell::get).fold(0, u64::wrapping_add)
    }

    /// What was recorded so far.
    pub fn distribution(&self) -> Distribution {
        self.read().scaled(self.0.weight.get())
    }

    /// Divides all recent weights, when the weight itself starts again from one.
    pub(crate) fn rescale(&self, divisor: f64) {
        for cell in &self.0.recent {
            cell.set((cell.get() as f64 / divisor).round() as u64);
        }
    }

    pub(crate) fn read(&self) -> Distribution {
        let inner = &*self.0;
        let copy = |cells: &[Cell<u64>; CELLS]| cells.iter().map(Cell::get).collect();
        Distribution {
            sum: inner.sum.get(),
            max: inner.max.get(),
            counts: copy(&inner.counts),
            recent: copy(&inner.recent),
        }
    }
}

/// A reading that is taken when it is asked for, if there is one.
pub(crate) type Probe = RefCell<Box<dyn FnMut() -> Option<Reading>>>;
