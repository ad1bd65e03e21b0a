//! All metrics of one shard.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use crate::cells::{Counter, Gauge, Histogram, Probe, Weight};
use crate::name::{Name, Unit};
use crate::snapshot::{Distribution, HALF_LIFE_SECONDS, Reading, Sample, Snapshot};

/// How long weights grow before all are brought down again: 2^30 is the greatest weight.
const RESCALE_AFTER: Duration = Duration::from_secs(30 * 60);

#[derive(Debug, Clone)]
enum Metric {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
    Probe(Rc<ProbeCell>),
}

struct ProbeCell(Probe);

impl std::fmt::Debug for ProbeCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Probe")
    }
}

#[derive(Debug)]
struct Entry {
    unit: Unit,
    help: &'static str,
    metric: Metric,
}

/// The metrics of a shard, by name. Asking twice for a name gives the same metric.
#[derive(Debug)]
pub struct Registry {
    shard: u32,
    entries: RefCell<BTreeMap<Name, Entry>>,
    weight: Weight,
    landmark: Cell<Duration>,
}

impl Registry {
    /// An empty registry of shard number `shard`.
    pub fn new(shard: u32) -> Self {
        Self::sharing(shard, Weight::default())
    }

    /// As [`Self::new`]; nameless histograms of `weight` fade with those of the registry.
    pub fn sharing(shard: u32, weight: Weight) -> Self {
        Self { shard, entries: RefCell::default(), weight, landmark: Cell::new(Duration::ZERO) }
    }

    /// A counter. `help` is one line for the operator.
    ///
    /// # Panics
    /// As all of these: if the name stands for a metric of another kind.
    pub fn counter(&self, name: Name, unit: Unit, help: &'static str) -> Counter {
        match self.entry(name, unit, help, || Metric::Counter(Counter::default())) {
            Metric::Counter(counter) => counter,
            other => mismatch("counter", &other),
        }
    }

    /// A gauge that code sets.
    pub fn gauge(&self, name: Name, unit: Unit, help: &'static str) -> Gauge {
        match self.entry(name, unit, help, || Metric::Gauge(Gauge::default())) {
            Metric::Gauge(gauge) => gauge,
            other => mismatch("gauge", &other),
        }
    }

    /// A gauge that is computed at each snapshot; one registered before under the name goes.
    pub fn probe(
        &self,
        name: Name,
        unit: Unit,
        help: &'static str,
        mut probe: impl FnMut() -> i64 + 'static,
    ) {
        self.read_later(name, unit, help, move || Some(Reading::Gauge(probe())));
    }

    /// As [`Self::probe`], of a number that only grows and is counted elsewhere.
    pub fn count_probe(
        &self,
        name: Name,
        unit: Unit,
        help: &'static str,
        mut probe: impl FnMut() -> u64 + 'static,
    ) {
        self.read_later(name, unit, help, move || Some(Reading::Counter(probe())));
    }

    /// As [`Self::probe`], of the largest value seen: the node's is that of its shards' which is
    /// largest.
    pub fn peak_probe(
        &self,
        name: Name,
        unit: Unit,
        help: &'static str,
        mut probe: impl FnMut() -> u64 + 'static,
    ) {
        self.read_later(name, unit, help, move || Some(Reading::Peak(probe())));
    }

    /// As [`Self::probe`], of a distribution that is counted elsewhere; it is not shown before
    /// there is one.
    pub fn histogram_probe(
        &self,
        name: Name,
        unit: Unit,
        help: &'static str,
        mut probe: impl FnMut() -> Option<Distribution> + 'static,
    ) {
        self.read_later(name, unit, help, move || Some(Reading::Histogram(Box::new(probe()?))));
    }

    fn read_later(
        &self,
        name: Name,
        unit: Unit,
        help: &'static str,
        probe: impl FnMut() -> Option<Reading> + 'static,
    ) {
        let metric = Metric::Probe(Rc::new(ProbeCell(RefCell::new(Box::new(probe)))));
        self.entries.borrow_mut().insert(name, Entry { unit, help, metric });
    }

    /// A histogram.
    pub fn histogram(&self, name: Name, unit: Unit, help: &'static str) -> Histogram {
        let weight = &self.weight;
        let make = || Metric::Histogram(Histogram::new(weight.clone()));
        match self.entry(name, unit, help, make) {
            Metric::Histogram(histogram) => histogram,
            other => mismatch("histogram", &other),
        }
    }

    /// A histogram of durations: Cassandra's timers, which it keeps in microseconds.
    pub fn timer(&self, name: Name, help: &'static str) -> Histogram {
        self.histogram(name, Unit::Micros, help)
    }

    /// Forgets the metrics that `gone` picks, as those of a dropped table. Handles still held
    /// count on without being shown.
    pub fn remove(&self, gone: impl Fn(&Name) -> bool) {
        self.entries.borrow_mut().retain(|name, _| !gone(name));
    }

    /// Says what time it is, on a clock that never steps back; to be called once a second.
    pub fn tick(&self, now: Duration) {
        let age = now.saturating_sub(self.landmark.get());
        if age <= RESCALE_AFTER {
            self.weight.set(weight(age));
            return;
        }
        let divisor = weight(age) as f64;
        for entry in self.entries.borrow().values() {
            if let Metric::Histogram(histogram) = &entry.metric {
                histogram.rescale(divisor);
            }
        }
        self.weight.rescale(divisor);
        self.landmark.set(now);
        self.weight.set(1);
    }

    /// Everything as it is now.
    pub fn snapshot(&self) -> Snapshot {
        let age_weight = self.weight.get();
        let entries = self.entries.borrow();
        let samples = entries.iter().filter_map(|(name, entry)| {
            let reading = match &entry.metric {
                Metric::Counter(counter) => Reading::Counter(counter.get()),
                Metric::Gauge(gauge) => Reading::Gauge(gauge.get()),
                Metric::Probe(probe) => probe.0.borrow_mut()()?,
                Metric::Histogram(histogram) => {
                    Reading::Histogram(Box::new(histogram.read().scaled(age_weight)))
                }
            };
            Some((name.clone(), Sample { unit: entry.unit, help: entry.help, reading }))
        });
        Snapshot { shard: Some(self.shard), samples: samples.collect() }
    }

    fn entry(
        &self,
        name: Name,
        unit: Unit,
        help: &'static str,
        make: impl FnOnce() -> Metric,
    ) -> Metric {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.entry(name).or_insert_with(|| Entry { unit, help, metric: make() });
        entry.metric.clone()
    }
}

/// The weight of a value recorded `age` after the landmark, in whole seconds as Cassandra's.
fn weight(age: Duration) -> u64 {
    let lifetime = HALF_LIFE_SECONDS / std::f64::consts::LN_2;
    (age.as_secs() as f64 / lifetime).exp().round() as u64
}

fn mismatch(wanted: &str, found: &Metric) -> ! {
    panic!("a metric is registered both as a {wanted} and as {found:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(registry: &Registry) -> Histogram {
        registry.timer(Name::of_request("Read", "Latency"), "Reads.")
    }

    #[test]
    fn one_name_is_one_metric() {
        let registry = Registry::new(0);
        let name = || Name::new("CQL", "PreparedStatementsExecuted");
        registry.counter(name(), Unit::Count, "Executed.").inc();
        let again = registry.counter(name(), Unit::Count, "Executed.");
        again.add(2);
        assert_eq!(again.get(), 3);
    }

    #[test]
    #[should_panic(expected = "registered both")]
    fn one_name_is_of_one_kind() {
        let registry = Registry::new(0);
        latency(&registry);
        registry.counter(Name::of_request("Read", "Latency"), Unit::Count, "");
    }

    #[test]
    fn recent_values_fade_by_half_a_minute() {
        let registry = Registry::new(0);
        let reads = latency(&registry);
        for _ in 0..100 {
            reads.record(10);
        }
        registry.tick(Duration::from_secs(120));
        for _ in 0..30 {
            reads.record(1000);
        }
        // 100 of weight 1 against 30 of weight 4.
        let Reading::Histogram(seen) =
            registry.snapshot().samples.into_values().next().unwrap().reading
        else {
            panic!()
        };
        assert_eq!(seen.count(), 130);
        assert_eq!(seen.quantile(0.45), 10);
        assert_eq!(seen.quantile(0.5), 1109);
    }

    #[test]
    fn weights_are_brought_down_after_half_an_hour() {
        let registry = Registry::new(0);
        let reads = latency(&registry);
        registry.tick(Duration::from_secs(1740));
        for _ in 0..8 {
            reads.record(10);
        }
        registry.tick(Duration::from_secs(1801));
        reads.record(1000);
        let seen = reads.read();
        assert_eq!(seen.recent.iter().sum::<u64>(), 5, "eight halves, near enough, and one");
        assert_eq!(seen.count(), 9);
    }

    #[test]
    fn a_dropped_table_is_no_longer_shown() {
        let registry = Registry::new(0);
        registry.gauge(Name::of_table("a", "t", "LiveSSTableCount"), Unit::Count, "");
        registry.gauge(Name::of_table("b", "t", "LiveSSTableCount"), Unit::Count, "");
        registry.remove(|n| n.kind == "Table" && n.keyspace.as_deref() == Some("a"));
        assert_eq!(registry.snapshot().samples.len(), 1);
    }

    #[test]
    fn numbers_counted_elsewhere_add_up_and_peaks_do_not() {
        let shard = |number, value| {
            let registry = Registry::new(number);
            let name = |name| Name::new("EventLoop", name);
            registry.count_probe(name("Turns"), Unit::Count, "", move || value);
            registry.peak_probe(name("LongestPoll"), Unit::Micros, "", move || value);
            registry.snapshot()
        };
        let merged = Snapshot::merge([shard(0, 3), shard(1, 5)]);
        let readings: Vec<_> = merged.samples.into_values().map(|s| s.reading).collect();
        assert_eq!(readings, [Reading::Peak(5), Reading::Counter(8)]);
    }

    #[test]
    fn probes_are_asked_at_each_snapshot() {
        let registry = Registry::new(0);
        let mut calls = 0;
        let name = Name::new("CommitLog", "PendingTasks");
        registry.probe(name.clone(), Unit::Count, "", move || {
            calls += 1;
            calls
        });
        registry.snapshot();
        assert_eq!(registry.snapshot().samples[&name].reading, Reading::Gauge(2));
    }
}
