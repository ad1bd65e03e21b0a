//! What guardrails may be set to, in Cassandra's words (`config.GuardrailsOptions`).

use crate::error::{Error, Result};
use crate::get::Get;
use crate::key::Value;
use crate::table::words::CONSISTENCY_LEVEL;

/// What the two sides of a threshold are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// A number, -1 for none.
    Count,
    /// Up to 100, -1 for none.
    Percent,
    /// Bytes.
    Size,
    /// A distance in time, which may be none at all.
    Time,
}

/// Thresholds by the name that their two keys share, in the order in which Cassandra looks at them.
const THRESHOLDS: &[(&str, Measure)] = &[
    ("keyspaces", Measure::Count),
    ("tables", Measure::Count),
    ("columns_per_table", Measure::Count),
    ("secondary_indexes_per_table", Measure::Count),
    ("materialized_views_per_table", Measure::Count),
    ("page_size", Measure::Count),
    ("partition_keys_in_select", Measure::Count),
    ("in_select_cartesian_product", Measure::Count),
    ("partition_size", Measure::Size),
    ("partition_tombstones", Measure::Count),
    ("column_value_size", Measure::Size),
    ("collection_size", Measure::Size),
    ("items_per_collection", Measure::Count),
    ("fields_per_udt", Measure::Count),
    ("vector_dimensions", Measure::Count),
    ("data_disk_usage_percentage", Measure::Percent),
    (LEAST_REPLICAS, Measure::Count),
    (MOST_REPLICAS, Measure::Count),
    ("maximum_timestamp", Measure::Time),
    ("minimum_timestamp", Measure::Time),
    ("sai_sstable_indexes_per_query", Measure::Count),
];

/// The threshold that values should not be below.
const LEAST_REPLICAS: &str = "minimum_replication_factor";
const MOST_REPLICAS: &str = "maximum_replication_factor";

/// Lists of properties of tables.
const PROPERTIES: [&str; 3] =
    ["table_properties_warned", "table_properties_ignored", "table_properties_disallowed"];

/// The properties that a table may have (`TableAttributes.allKeywords`): those that crate `schema`
/// knows, which this one does not depend on. A test of `cluster`, which knows both, compares them.
pub const TABLE_PROPERTIES: &[&str] = &[
    "additional_write_policy",
    "allow_auto_snapshot",
    "auto_repair",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    "crc_check_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "read_repair",
    "speculative_retry",
];

/// Lists of consistency levels.
const LEVELS: [&str; 4] = [
    "read_consistency_levels_warned",
    "read_consistency_levels_disallowed",
    "write_consistency_levels_warned",
    "write_consistency_levels_disallowed",
];

const MAX_DISK: &str = "data_disk_usage_max_disk_size";
const MICRO_NANOS: u64 = 1000;

fn refuse<T>(text: String) -> Result<T> {
    Err(Error::Guardrail(text))
}

/// One side of a threshold.
struct Side {
    key: String,
    value: Value,
}

impl Side {
    /// What it stands at; none: it is off.
    fn amount(&self, measure: Measure) -> Option<i64> {
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        match &self.value {
            Value::Int(-1) => None,
            Value::Int(n) => Some(*n),
            Value::Quantity(q) if measure == Measure::Time => Some(signed(q.base() / MICRO_NANOS)),
            Value::Quantity(q) => Some(signed(q.base())),
            _ => None,
        }
    }

    /// As messages show it.
    fn show(&self, measure: Measure) -> String {
        match measure {
            Measure::Time => self.amount(measure).unwrap_or(-1).to_string(),
            _ => self.value.or_null(),
        }
    }

    fn check(&self, measure: Measure) -> Result<()> {
        let key = &self.key;
        match self.amount(measure) {
            Some(n) if measure == Measure::Percent && n > 100 => {
                refuse(format!("Invalid value {n} for {key}: maximum allowed value is 100"))
            }
            Some(0) if measure == Measure::Size => refuse(format!(
                "Invalid value for {key}: 0 is not allowed; if attempting to disable use an empty value"
            )),
            Some(0) if measure != Measure::Time => refuse(format!(
                "Invalid value for {key}: 0 is not allowed; if attempting to disable use -1"
            )),
            Some(n) if n < 0 => refuse(format!(
                "Invalid value {n} for {key}: negative values are not allowed, outside of -1 which disables the guardrail"
            )),
            _ => Ok(()),
        }
    }
}

/// Whether all guardrails make sense.
pub(crate) fn check(get: &Get<'_>) -> Result<()> {
    for (name, measure) in THRESHOLDS {
        let side = |side: &str| {
            let key = format!("{name}_{side}_threshold");
            Side { value: get.value(&key), key }
        };
        let (warn, fail) = (side("warn"), side("fail"));
        warn.check(*measure)?;
        fail.check(*measure)?;
        let (Some(warns), Some(fails)) = (warn.amount(*measure), fail.amount(*measure)) else {
            continue;
        };
        let (is_wrong, how) = match *name == LEAST_REPLICAS {
            true => (fails > warns, "greater"),
            false => (fails < warns, "lower"),
        };
        if is_wrong {
            return refuse(format!(
                "The warn threshold {} for {} should be {how} than the fail threshold {}",
                warn.show(*measure),
                warn.key,
                fail.show(*measure)
            ));
        }
    }
    check_replicas(get)?;
    if get.some_base(MAX_DISK) == Some(0) {
        return refuse(format!(
            "Invalid value for {MAX_DISK}: 0 is not allowed; if attempting to disable use an empty value"
        ));
    }
    check_words(get)
}

/// New keyspaces must be able to have the factor that they have if nothing is said.
fn check_replicas(get: &Get<'_>) -> Result<()> {
    let default = i64::from(get.count("default_keyspace_rf")?);
    let fail = |name: &str| match get.value(&format!("{name}_fail_threshold")) {
        Value::Int(n) if n > 0 => Some(n),
        _ => None,
    };
    let texts = [
        (fail(LEAST_REPLICAS).filter(|n| *n > default), LEAST_REPLICAS, "greater"),
        (fail(MOST_REPLICAS).filter(|n| *n < default), MOST_REPLICAS, "lesser"),
    ];
    match texts.into_iter().find_map(|(n, name, how)| Some((n?, name, how))) {
        None => Ok(()),
        Some((n, name, how)) => refuse(format!(
            "{name}_fail_threshold to be set ({n}) cannot be {how} than default_keyspace_rf ({default})"
        )),
    }
}

fn check_words(get: &Get<'_>) -> Result<()> {
    for name in PROPERTIES {
        let words = get.list(name).into_iter().map(|word| word.to_lowercase());
        let unknown: Vec<_> =
            words.filter(|word| !TABLE_PROPERTIES.contains(&word.as_str())).collect();
        if !unknown.is_empty() {
            return refuse(format!(
                "Invalid value for {name}: '[{}]' do not parse as valid table properties",
                unknown.join(", ")
            ));
        }
    }
    for name in LEVELS {
        let words = get.list(name);
        if let Some(word) = words.iter().find(|word| !CONSISTENCY_LEVEL.contains(&word.as_str())) {
            return refuse(format!(
                "No enum constant org.apache.cassandra.db.ConsistencyLevel.{word}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn refusal(settings: &[&str]) -> String {
        let mut config = Config::default();
        config.set_all(settings.iter().copied()).unwrap_err().to_string()
    }

    /// As nodetool 5.0.9 showed them.
    #[test]
    fn refuses_in_cassandras_words() {
        let of = |name: &str, warn: &str, fail: &str| {
            let settings =
                [format!("{name}_warn_threshold={warn}"), format!("{name}_fail_threshold={fail}")];
            refusal(&[&settings[0], &settings[1]])
        };
        assert_eq!(
            of("keyspaces", "20", "10"),
            "The warn threshold 20 for keyspaces_warn_threshold should be lower than the fail threshold 10"
        );
        assert_eq!(
            of("keyspaces", "0", "0"),
            "Invalid value for keyspaces_warn_threshold: 0 is not allowed; if attempting to disable use -1"
        );
        assert_eq!(
            of("collection_size", "2KiB", "1KiB"),
            "The warn threshold 2KiB for collection_size_warn_threshold should be lower than the fail threshold 1KiB"
        );
        assert_eq!(
            of("minimum_replication_factor", "1", "2"),
            "The warn threshold 1 for minimum_replication_factor_warn_threshold should be greater than the fail threshold 2"
        );
        assert_eq!(
            of("data_disk_usage_percentage", "1", "101"),
            "Invalid value 101 for data_disk_usage_percentage_fail_threshold: maximum allowed value is 100"
        );
        assert_eq!(
            refusal(&["table_properties_warned=[bogus]"]),
            "Invalid value for table_properties_warned: '[bogus]' do not parse as valid table properties"
        );
        assert_eq!(
            refusal(&["read_consistency_levels_disallowed=[BOGUS]"]),
            "No enum constant org.apache.cassandra.db.ConsistencyLevel.BOGUS"
        );
        assert_eq!(
            refusal(&["minimum_replication_factor_fail_threshold=2"]),
            "minimum_replication_factor_fail_threshold to be set (2) cannot be greater than default_keyspace_rf (1)"
        );
    }

    #[test]
    fn accepts_what_is_in_order() {
        let mut config = Config::default();
        let good = [
            "keyspaces_warn_threshold=5",
            "keyspaces_fail_threshold=5",
            "minimum_replication_factor_warn_threshold=3",
            "minimum_replication_factor_fail_threshold=1",
            "maximum_timestamp_warn_threshold=0s",
            "table_properties_warned=[Comment]",
            "write_consistency_levels_warned=[ANY, EACH_QUORUM]",
        ];
        config.set_all(good).unwrap();
    }
}
