//! Snapshots as Prometheus text under the names that k8ssandra's management agent gives to
//! Cassandra's metrics, which is what its dashboards and Reaper ask for.
//!
//! The unit is Cassandra's, not the base unit: latencies are microseconds. A timer is one family
//! with quantiles and with cumulative buckets, whose bounds are the agent's. A meter ends in
//! `_total`; what Cassandra keeps in a Dropwizard counter or gauge has no suffix, although it only
//! grows. All numbers have a point, as Reaper's expressions want one. `docs/metrics.md` has the
//! rules.

use std::fmt::{self, Write};

use crate::name::{Name, Unit};
use crate::prometheus::{Escaped, QUANTILES};
use crate::snapshot::{Distribution, Reading, Sample, Snapshot};

/// What all names begin with.
const PREFIX: &str = "org_apache_cassandra_metrics_";
/// Upper bounds of a timer's buckets, in microseconds. Each is an offset of Cassandra's, too, so
/// that a bucket is a sum of ours.
const BOUNDS: [u64; 25] = [
    35, 60, 103, 179, 310, 535, 924, 1597, 2759, 4768, 8239, 14237, 24601, 42510, 73457, 126_934,
    219_342, 379_022, 654_949, 1_131_752, 1_955_666, 3_379_391, 5_839_588, 10_090_808, 17_436_917,
];
/// Types whose numbers that only grow are counters or gauges of Dropwizard in Cassandra.
const COUNTERS_OF: &[&str] =
    &["CQL", "ClientMessageSize", "Storage", "Streaming", "Table", "ThreadPools"];
/// The same of other types, one by one.
const COUNTERS: &[(&str, &str)] = &[
    ("ClientRequest", "ConditionNotMet"),
    ("ClientRequest", "UnfinishedCommit"),
    ("CommitLog", "CompletedTasks"),
    ("Compaction", "BytesCompacted"),
    ("Compaction", "CompletedTasks"),
    ("HintsService", "Hints_not_stored"),
];
/// What the dashboards ask of a JVM. This process has none: no collection takes time, and no byte
/// is in a heap of one.
const JVM: &[(&str, Option<(&str, &str)>)] = &[
    ("jvm_gc_g1_old_generation_time", None),
    ("jvm_gc_g1_young_generation_time", None),
    ("jvm_memory_bytes_used", Some(("area", "heap"))),
    ("jvm_memory_bytes_used", Some(("area", "nonheap"))),
];

/// Labels that each line has, by key.
pub type Labels = [(&'static str, String)];

/// The text of a snapshot, a sample at a time: a caller that must not hold its shard for long rests
/// in between. A sample that is not wanted is an empty text.
pub struct Text<'a> {
    node: &'a Labels,
    prefixes: &'a [String],
    samples: Box<dyn Iterator<Item = Shown<'a>> + 'a>,
    family: String,
}

impl<'a> Text<'a> {
    /// Of the families whose names begin with one of `prefixes`; of all, if there are none.
    pub fn new(snapshot: &'a Snapshot, node: &'a Labels, prefixes: &'a [String]) -> Self {
        // they are sorted by type and name: a family's stand together
        let samples = snapshot.samples.iter().map(|(name, sample)| Shown::of(name, sample));
        let totals =
            snapshot.samples.iter().filter_map(|(name, sample)| Shown::total(name, sample));
        let samples = Box::new(samples.chain(totals).chain(JVM.iter().map(Shown::zero)));
        Self { node, prefixes, samples, family: String::new() }
    }
}

impl Iterator for Text<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let sample = self.samples.next()?;
        let mut text = String::new();
        let begins = |prefix: &String| sample.family.starts_with(prefix.as_str());
        if self.prefixes.is_empty() || self.prefixes.iter().any(begins) {
            let is_first = self.family != sample.family;
            // To write to a String cannot fail.
            let _ = sample.write(&mut text, self.node, is_first);
            self.family = sample.family;
        }
        Some(text)
    }
}

/// A sample as this text shows it.
struct Shown<'a> {
    family: String,
    help: &'static str,
    labels: Vec<(&'static str, &'a str)>,
    value: Value<'a>,
}

enum Value<'a> {
    /// A meter.
    Counter(String),
    Gauge(String),
    Timer(&'a Distribution),
    Histogram(&'a Distribution, Unit),
}

impl<'a> Shown<'a> {
    fn of(name: &'a Name, sample: &'a Sample) -> Self {
        let mut family = format!("{PREFIX}{}_{}", snake(name.kind), snake(name.name));
        let value = match &sample.reading {
            Reading::Counter(n) if is_meter(name) => {
                family.push_str("_total");
                Value::Counter(number(*n, sample.unit))
            }
            Reading::Counter(n) | Reading::Peak(n) => Value::Gauge(number(*n, sample.unit)),
            Reading::Gauge(n) => Value::Gauge(number(*n, sample.unit)),
            Reading::Histogram(d) if sample.unit == Unit::Micros => Value::Timer(d),
            Reading::Histogram(d) => Value::Histogram(d, sample.unit),
        };
        Self { family, help: sample.help, labels: labels(name), value }
    }

    /// The sum of a latency of clients' requests, for which Cassandra has a counter
    /// (`LatencyMetrics`).
    fn total(name: &'a Name, sample: &'a Sample) -> Option<Self> {
        let Reading::Histogram(distribution) = &sample.reading else { return None };
        (name.kind == "ClientRequest" && name.name == "Latency").then(|| Self {
            family: format!("{PREFIX}client_request_total_latency"),
            help: sample.help,
            labels: labels(name),
            value: Value::Gauge(whole(distribution.sum)),
        })
    }

    fn zero((family, label): &(&str, Option<(&'static str, &'static str)>)) -> Self {
        Self {
            family: (*family).to_owned(),
            help: "Always 0: this node is not a JVM.",
            labels: label.iter().copied().collect(),
            value: Value::Gauge("0.0".to_owned()),
        }
    }

    fn write(&self, text: &mut String, node: &Labels, is_first: bool) -> fmt::Result {
        let family = &self.family;
        let kind = match &self.value {
            Value::Counter(_) => "counter",
            Value::Gauge(_) => "gauge",
            Value::Timer(_) => "histogram",
            Value::Histogram(..) => "summary",
        };
        if is_first {
            let help = Escaped { text: self.help, quotes: false };
            writeln!(text, "# HELP {family} {help}\n# TYPE {family} {kind}")?;
        }
        let own = Own { node, own: &self.labels };
        match &self.value {
            Value::Counter(number) | Value::Gauge(number) => {
                writeln!(text, "{family}{{{own}}} {number}")
            }
            Value::Timer(distribution) => {
                self.write_quantiles(text, own, distribution, Unit::Micros)?;
                for bound in BOUNDS {
                    let count = whole(distribution.count_to(bound));
                    writeln!(text, "{family}_bucket{{{own},le=\"{bound}\"}} {count}")?;
                }
                let count = whole(distribution.count());
                writeln!(text, "{family}_bucket{{{own},le=\"+Inf\"}} {count}")
            }
            Value::Histogram(distribution, unit) => {
                self.write_quantiles(text, own, distribution, *unit)
            }
        }
    }

    fn write_quantiles(
        &self,
        text: &mut String,
        own: Own<'_>,
        distribution: &Distribution,
        unit: Unit,
    ) -> fmt::Result {
        let family = &self.family;
        for q in QUANTILES {
            let value = whole(unit.lowered(distribution.quantile(q), 1));
            writeln!(text, "{family}{{{own},quantile=\"{q}\"}} {value}")?;
        }
        let count = distribution.count();
        let sum = whole(unit.lowered(distribution.sum, count));
        writeln!(text, "{family}_sum{{{own}}} {sum}\n{family}_count{{{own}}} {}", whole(count))
    }
}

/// Is a number that only grows a meter in Cassandra? What Cassandra does not have is shown as one.
fn is_meter(name: &Name) -> bool {
    !COUNTERS_OF.contains(&name.kind) && !COUNTERS.contains(&(name.kind, name.name))
}

/// The labels that stand for the properties of Cassandra's name.
fn labels(name: &Name) -> Vec<(&'static str, &str)> {
    let key = |key| match (name.kind, key) {
        ("Table", "scope") => "table",
        ("ThreadPools", "path") => "pool_type",
        ("ThreadPools", "scope") => "pool_name",
        ("ClientRequest", "scope") => "request_type",
        ("Cache", "scope") => "cache",
        ("DroppedMessage", "scope") => "message_type",
        ("Streaming" | "Connection" | "InboundConnection", "scope") => "peer_ip",
        (_, key) => key,
    };
    name.properties().map(|(of, value)| (key(of), value)).collect()
}

/// `LiveSSTableCount` as `live_ss_table_count`: a word begins at a capital after what is none, and
/// at the last of several capitals.
fn snake(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut made = String::with_capacity(text.len() + 8);
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let after = chars.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let begins = before.is_some_and(|before| !before.is_ascii_uppercase() || after);
        if c.is_ascii_uppercase() && begins && !made.ends_with('_') {
            made.push('_');
        }
        match c {
            c if c.is_ascii_alphanumeric() => made.push(c.to_ascii_lowercase()),
            _ if made.ends_with('_') => {}
            _ => made.push('_'),
        }
    }
    made
}

/// A number in the unit that Cassandra has, with its point.
fn number(value: impl Into<i128>, unit: Unit) -> String {
    let value: i128 = value.into();
    match unit {
        Unit::Ratio => pointed((value as f64 / 1e6).to_string()),
        Unit::Percent => pointed((value as f64 / 1e4).to_string()),
        _ => whole(value),
    }
}

fn whole(value: impl fmt::Display) -> String {
    format!("{value}.0")
}

fn pointed(number: String) -> String {
    if number.contains('.') { number } else { number + ".0" }
}

#[derive(Clone, Copy)]
struct Own<'a> {
    node: &'a Labels,
    own: &'a [(&'static str, &'a str)],
}

impl fmt::Display for Own<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.node.iter().map(|(key, value)| (*key, value.as_str()));
        for (place, (key, value)) in node.chain(self.own.iter().copied()).enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{key}=\"{}\"", Escaped { text: value, quotes: true })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::buckets::BUCKETS;
    use crate::registry::Registry;

    fn text_of(registry: &Registry, node: &Labels, prefixes: &[&str]) -> String {
        let snapshot = Snapshot::merge([registry.snapshot()]);
        let prefixes: Vec<_> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        Text::new(&snapshot, node, &prefixes).collect()
    }

    fn count(registry: &Registry, name: Name, n: u64) {
        registry.counter(name, Unit::Count, "Help.").add(n);
    }

    #[test]
    fn names_are_snake_case() {
        for (from, to) in [
            ("LiveSSTableCount", "live_ss_table_count"),
            ("SSTablesPerReadHistogram", "ss_tables_per_read_histogram"),
            ("connectedNativeClients", "connected_native_clients"),
            ("ClientRequest", "client_request"),
            ("CQL", "cql"),
            ("TotalCommitLogSize", "total_commit_log_size"),
            ("Hints_not_stored", "hints_not_stored"),
            ("MemtableOnHeapSize", "memtable_on_heap_size"),
            ("EntireSSTablesStreamedIn", "entire_ss_tables_streamed_in"),
            ("a__B-c", "a_b_c"),
            ("", ""),
        ] {
            assert_eq!(snake(from), to);
        }
    }

    #[test]
    fn meters_have_a_suffix_and_counters_have_none() {
        let registry = Registry::new(0);
        count(&registry, Name::of_request("Read", "Timeouts"), 2);
        count(&registry, Name::of_request("CASWrite", "ConditionNotMet"), 3);
        count(&registry, Name::of_table("ks", "t", "MemtableSwitchCount"), 4);
        count(&registry, Name::new("Storage", "TotalHints"), u64::MAX);
        registry
            .gauge(Name::new("Cache", "HitRate").scope("KeyCache"), Unit::Ratio, "")
            .set(250_000);
        assert_eq!(
            text_of(&registry, &[], &[PREFIX]).replace(PREFIX, ""),
            "# HELP cache_hit_rate \n\
             # TYPE cache_hit_rate gauge\n\
             cache_hit_rate{cache=\"KeyCache\"} 0.25\n\
             # HELP client_request_condition_not_met Help.\n\
             # TYPE client_request_condition_not_met gauge\n\
             client_request_condition_not_met{request_type=\"CASWrite\"} 3.0\n\
             # HELP client_request_timeouts_total Help.\n\
             # TYPE client_request_timeouts_total counter\n\
             client_request_timeouts_total{request_type=\"Read\"} 2.0\n\
             # HELP storage_total_hints Help.\n\
             # TYPE storage_total_hints gauge\n\
             storage_total_hints{} 18446744073709551615.0\n\
             # HELP table_memtable_switch_count Help.\n\
             # TYPE table_memtable_switch_count gauge\n\
             table_memtable_switch_count{keyspace=\"ks\",table=\"t\"} 4.0\n"
        );
    }

    #[test]
    fn each_line_has_the_nodes_labels_before_its_own() {
        let registry = Registry::new(0);
        let pool = Name::new("ThreadPools", "PendingTasks").path("request").scope("ReadStage");
        registry.gauge(pool, Unit::Count, "");
        count(&registry, Name::new("DroppedMessage", "Dropped").scope("READ_REQ"), 1);
        count(&registry, Name::new("Streaming", "IncomingBytes").scope("/10.0.0.1.7000"), 1);
        let node = [("host", "id".to_owned()), ("cluster", "a \"b\"\\\n\u{c4}\u{7aef}".to_owned())];
        let text = text_of(&registry, &node, &[]);
        let own = "host=\"id\",cluster=\"a \\\"b\\\"\\\\\\n\u{c4}\u{7aef}\"";
        for (name, labels, value) in [
            ("thread_pools_pending_tasks", "pool_type=\"request\",pool_name=\"ReadStage\"", "0.0"),
            ("dropped_message_dropped_total", "message_type=\"READ_REQ\"", "1.0"),
            ("streaming_incoming_bytes", "peer_ip=\"/10.0.0.1.7000\"", "1.0"),
        ] {
            let line = format!("\n{PREFIX}{name}{{{own},{labels}}} {value}\n");
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        assert!(text.contains(&format!("jvm_memory_bytes_used{{{own},area=\"heap\"}} 0.0\n")));
        let has_own = |line: &str| line.starts_with('#') || line.contains(own);
        assert!(text.lines().all(has_own), "{text}");
    }

    #[test]
    fn names_beyond_ascii_are_shown_whole() {
        let registry = Registry::new(0);
        registry.gauge(
            Name::of_table("schl\u{fc}ssel", "\u{8868}\"", "LiveSSTableCount"),
            Unit::Count,
            "",
        );
        let text = text_of(&registry, &[], &[]);
        assert!(
            text.contains("{keyspace=\"schl\u{fc}ssel\",table=\"\u{8868}\\\"\"} 0.0\n"),
            "{text}"
        );
    }

    #[test]
    fn a_timer_has_quantiles_and_buckets_in_microseconds() {
        let registry = Registry::new(0);
        let latency = registry.timer(Name::of_request("Read", "Latency"), "Time of reads.");
        for micros in [10, 35, 36, 1_000_000_000_000] {
            latency.record(micros);
        }
        let text = text_of(&registry, &[], &["org_apache_cassandra_metrics_client_request"]);
        let family = "org_apache_cassandra_metrics_client_request_latency";
        for line in [
            format!("# TYPE {family} histogram\n"),
            format!("{family}{{request_type=\"Read\",quantile=\"0.5\"}} 35.0\n"),
            format!("{family}_bucket{{request_type=\"Read\",le=\"35\"}} 2.0\n"),
            format!("{family}_bucket{{request_type=\"Read\",le=\"60\"}} 3.0\n"),
            format!("{family}_bucket{{request_type=\"Read\",le=\"17436917\"}} 3.0\n"),
            format!("{family}_bucket{{request_type=\"Read\",le=\"+Inf\"}} 4.0\n"),
            format!("{family}_count{{request_type=\"Read\"}} 4.0\n"),
            format!("{family}_sum{{request_type=\"Read\"}} 1000000000081.0\n"),
            format!(
                "{PREFIX}client_request_total_latency{{request_type=\"Read\"}} 1000000000081.0\n"
            ),
        ] {
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn what_is_counted_with_one_more_is_shown_without() {
        let registry = Registry::new(0);
        let name = Name::of_table("ks", "t", "SSTablesPerReadHistogram");
        let sstables = registry.histogram(name, Unit::OneMore, "");
        [0, 0, 3].into_iter().for_each(|of_read| sstables.record(of_read + 1));
        let text = text_of(&registry, &[], &[]);
        for line in [
            "{keyspace=\"ks\",table=\"t\",quantile=\"0.5\"} 0.0\n",
            "{keyspace=\"ks\",table=\"t\",quantile=\"0.99\"} 3.0\n",
            "histogram_sum{keyspace=\"ks\",table=\"t\"} 3.0\n",
            "histogram_count{keyspace=\"ks\",table=\"t\"} 3.0\n",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_filter_keeps_names_that_begin_with_any_of_its_prefixes() {
        let registry = Registry::new(0);
        count(&registry, Name::of_table("ks", "t", "Reads"), 1);
        count(&registry, Name::of_request("Read", "Timeouts"), 1);
        count(&registry, Name::new("CQL", "RegularStatementsExecuted"), 1);
        let text = text_of(
            &registry,
            &[],
            &["org_apache_cassandra_metrics_table", "org_apache_cassandra_metrics_cql"],
        );
        assert_eq!(text.matches("# TYPE").count(), 2, "{text}");
        assert!(!text.contains("client_request"), "{text}");
        assert!(text_of(&registry, &[], &["table"]).is_empty(), "the start of the name is meant");
        assert_eq!(text_of(&registry, &[], &["jvm_gc"]).matches("# TYPE").count(), 2);
    }

    #[test]
    fn a_bound_is_the_end_of_one_of_our_buckets() {
        for bound in BOUNDS {
            assert!(BUCKETS.offsets.contains(&(bound as i64)), "{bound}");
        }
    }

    proptest! {
        #[test]
        fn buckets_are_cumulative_and_the_last_is_the_count(
            values in prop::collection::vec(0u64..1 << 50, 0..60),
        ) {
            let registry = Registry::new(0);
            let latency = registry.timer(Name::of_request("Write", "Latency"), "");
            values.iter().for_each(|value| latency.record(*value));
            let text = text_of(&registry, &[], &[]);
            let number = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
            let buckets: Vec<f64> =
                text.lines().filter(|line| line.contains("_bucket{")).map(number).collect();
            prop_assert_eq!(buckets.len(), BOUNDS.len() + 1);
            prop_assert!(buckets.is_sorted());
            for (bound, count) in BOUNDS.iter().zip(&buckets) {
                let within = values.iter().filter(|value| *value <= bound).count();
                prop_assert_eq!(*count, within as f64);
            }
            let all = text.lines().find(|line| line.contains("latency_count{")).map(number);
            prop_assert_eq!(buckets.last().copied(), all);
            prop_assert_eq!(all, Some(values.len() as f64));
        }
    }
}
