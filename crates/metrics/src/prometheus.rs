//! Snapshots as Prometheus text (exposition format 0.0.4).
//!
//! A metric of type `T` and name `N` is `cassandra_t_n`, lower-cased, which is what the JMX
//! exporter's own configuration for Cassandra makes of it, with the unit and `_total` that
//! Prometheus asks for; its properties become labels. `docs/metrics.md` has the rules.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::name::{Name, Unit};
use crate::snapshot::{Distribution, Reading, Sample, Snapshot};

/// What `Content-Type` the text has.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The quantiles shown of each histogram.
pub(crate) const QUANTILES: [f64; 6] = [0.5, 0.75, 0.95, 0.98, 0.99, 0.999];

/// Writes all snapshots as one text, each family once. Samples of a shard's snapshot carry the
/// label `shard`, those of a merged one do not; give the one or the others, as a sum over both
/// would count twice.
pub fn write(snapshots: &[Snapshot]) -> String {
    families(snapshots).collect()
}

/// The same text a family at a time: a caller that must not hold its shard for long rests in
/// between.
pub fn families(snapshots: &[Snapshot]) -> impl Iterator<Item = String> {
    let mut families: BTreeMap<String, Vec<(Option<u32>, &Name, &Sample)>> = BTreeMap::new();
    for snapshot in snapshots {
        for (name, sample) in &snapshot.samples {
            let family = families.entry(family(name, sample)).or_default();
            family.push((snapshot.shard, name, sample));
        }
    }
    families.into_iter().map(|(family, samples)| {
        let mut text = String::new();
        // To write to a String cannot fail.
        let _ = write_family(&mut text, &family, &samples);
        text
    })
}

fn family(name: &Name, sample: &Sample) -> String {
    let mut family = format!("cassandra_{}_{}", clean(name.kind), clean(name.name));
    family.push_str(match sample.unit {
        Unit::Count | Unit::OneMore => "",
        Unit::Micros => "_seconds",
        Unit::Bytes => "_bytes",
        Unit::Ratio | Unit::Percent => "_ratio",
    });
    if matches!(sample.reading, Reading::Counter(_)) {
        family.push_str("_total");
    }
    family
}

/// Lower case, and `_` for what a metric's name cannot hold.
fn clean(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().map(|c| if fits(c) { c.to_ascii_lowercase() } else { '_' }).collect()
}

fn write_family(
    text: &mut String,
    family: &str,
    samples: &[(Option<u32>, &Name, &Sample)],
) -> fmt::Result {
    let Some((_, _, first)) = samples.first() else { return Ok(()) };
    let kind = match first.reading {
        Reading::Counter(_) => "counter",
        Reading::Gauge(_) | Reading::Peak(_) => "gauge",
        Reading::Histogram(_) => "summary",
    };
    writeln!(text, "# HELP {family} {}", Escaped { text: first.help, quotes: false })?;
    writeln!(text, "# TYPE {family} {kind}")?;
    for (shard, name, sample) in samples {
        let labels = Labels { name, shard: *shard, quantile: None };
        match &sample.reading {
            Reading::Counter(v) | Reading::Peak(v) => {
                writeln!(text, "{family}{labels} {}", show(*v as f64, *v, sample.unit))?;
            }
            Reading::Gauge(v) => {
                writeln!(text, "{family}{labels} {}", show(*v as f64, *v, sample.unit))?;
            }
            Reading::Histogram(d) => write_summary(text, family, labels, sample.unit, d)?,
        }
    }
    Ok(())
}

fn write_summary(
    text: &mut String,
    family: &str,
    labels: Labels<'_>,
    unit: Unit,
    distribution: &Distribution,
) -> fmt::Result {
    for q in QUANTILES {
        let at = Labels { quantile: Some(q), ..labels };
        let value = unit.lowered(distribution.quantile(q), 1);
        writeln!(text, "{family}{at} {}", show(value as f64, value, unit))?;
    }
    let count = distribution.count();
    let sum = unit.lowered(distribution.sum, count);
    writeln!(text, "{family}_sum{labels} {}", show(sum as f64, sum, unit))?;
    writeln!(text, "{family}_count{labels} {count}")
}

/// In base units; what has no unit stays whole, however large.
fn show(value: f64, whole: impl fmt::Display, unit: Unit) -> String {
    match unit {
        Unit::Count | Unit::OneMore | Unit::Bytes => whole.to_string(),
        Unit::Micros | Unit::Ratio | Unit::Percent => (value / 1e6).to_string(),
    }
}

#[derive(Clone, Copy)]
struct Labels<'a> {
    name: &'a Name,
    shard: Option<u32>,
    quantile: Option<f64>,
}

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = '{';
        for (key, value) in self.name.properties() {
            write!(f, "{separator}{key}=\"{}\"", Escaped { text: value, quotes: true })?;
            separator = ',';
        }
        if let Some(shard) = self.shard {
            write!(f, "{separator}shard=\"{shard}\"")?;
            separator = ',';
        }
        if let Some(quantile) = self.quantile {
            write!(f, "{separator}quantile=\"{quantile}\"")?;
            separator = ',';
        }
        if separator == ',' { f.write_char('}') } else { Ok(()) }
    }
}

/// Backslashes and line ends escaped, and quotes where the text stands in some.
pub(crate) struct Escaped<'a> {
    pub text: &'a str,
    pub quotes: bool,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.text.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' if self.quotes => f.write_str("\\\"")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn registry(shard: u32) -> Registry {
        let registry = Registry::new(shard);
        let reads = registry.timer(Name::of_request("Read", "Latency"), "Time of reads.");
        reads.record(1_500_000);
        registry
            .gauge(Name::new("Client", "connectedNativeClients"), Unit::Count, "Clients.")
            .set(3);
        registry.counter(Name::of_request("Read", "Timeouts"), Unit::Count, "Timed out.").add(2);
        registry
    }

    #[test]
    fn writes_each_family_once_with_help_and_type() {
        let text = write(&[registry(0).snapshot()]);
        assert_eq!(
            text,
            "# HELP cassandra_client_connectednativeclients Clients.\n\
             # TYPE cassandra_client_connectednativeclients gauge\n\
             cassandra_client_connectednativeclients{shard=\"0\"} 3\n\
             # HELP cassandra_clientrequest_latency_seconds Time of reads.\n\
             # TYPE cassandra_clientrequest_latency_seconds summary\n\
             cassandra_clientrequest_latency_seconds{scope=\"Read\",shard=\"0\",quantile=\"0.5\"} 1.629722\n\
             cassandra_clientrequest_latency_seconds{scope=\"Read\",shard=\"0\",quantile=\"0.75\"} 1.629722\n\
             cassandra_clientrequest_latency_seconds{scope=\"Read\",shard=\"0\",quantile=\"0.95\"} 1.629722\n\
             cassandra_clientrequest_latency_seconds{scope=\"Read\",shard=\"0\",quantile=\"0.98\"} 1.629722\n\
             cassandra_clientrequest_latency_seconds{scope=\"Read\",shard=\"0\",quantile=\"0.99\"} 1.629722\n\
             cassandra_clientrequest_latency_seconds{scope=\"Read\",shard=\"0\",quantile=\"0.999\"} 1.629722\n\
             cassandra_clientrequest_latency_seconds_sum{scope=\"Read\",shard=\"0\"} 1.5\n\
             cassandra_clientrequest_latency_seconds_count{scope=\"Read\",shard=\"0\"} 1\n\
             # HELP cassandra_clientrequest_timeouts_total Timed out.\n\
             # TYPE cassandra_clientrequest_timeouts_total counter\n\
             cassandra_clientrequest_timeouts_total{scope=\"Read\",shard=\"0\"} 2\n"
        );
    }

    #[test]
    fn a_merged_snapshot_has_no_shard() {
        let text = write(&[Snapshot::merge([registry(0).snapshot(), registry(1).snapshot()])]);
        assert!(text.contains("\ncassandra_client_connectednativeclients 6\n"));
        assert!(text.contains("\ncassandra_clientrequest_timeouts_total{scope=\"Read\"} 4\n"));
        assert!(!text.contains("shard="));
        let both = write(&[registry(0).snapshot(), registry(1).snapshot()]);
        assert_eq!(both.matches("# TYPE").count(), 3);
        assert!(both.contains("shard=\"1\""));
    }

    #[test]
    fn escapes_labels_and_help() {
        let registry = Registry::new(0);
        let name = Name::of_table("k\"s", "a\\b\nc", "LiveSSTableCount");
        registry.gauge(name, Unit::Count, "two\nlines \\ \"q\"");
        let text = write(&[registry.snapshot()]);
        assert!(text.contains("{keyspace=\"k\\\"s\",scope=\"a\\\\b\\nc\",shard=\"0\"} 0"));
        assert!(text.contains("# HELP cassandra_table_livesstablecount two\\nlines \\\\ \"q\"\n"));
    }

    #[test]
    fn ratios_and_bytes_are_in_base_units() {
        let registry = Registry::new(0);
        registry.gauge(Name::new("Cache", "HitRate"), Unit::Ratio, "").set(250_000);
        registry.counter(Name::new("CommitLog", "Written"), Unit::Bytes, "").add(u64::MAX);
        let text = write(&[registry.snapshot()]);
        assert!(text.contains("cassandra_cache_hitrate_ratio{shard=\"0\"} 0.25\n"));
        assert!(text.contains(
            "cassandra_commitlog_written_bytes_total{shard=\"0\"} 18446744073709551615\n"
        ));
    }
}
