//! The CQL of the demonstration.

use types::time::{TimestampStyle, format_timestamp};

use super::rates::Measurement;

/// Milliseconds that share a partition.
pub const HOUR_MILLIS: i64 = 3_600_000;

/// What makes the keyspace and the table, if they are missing. A metric has a partition an hour;
/// what is a day old goes, whole SSTables at a time.
pub fn schema() -> Vec<String> {
    vec![
        "CREATE KEYSPACE IF NOT EXISTS demo WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 1}"
            .to_owned(),
        "CREATE TABLE IF NOT EXISTS demo.machine (metric text, hour timestamp, at timestamp, \
         value double, PRIMARY KEY ((metric, hour), at)) WITH CLUSTERING ORDER BY (at DESC) AND \
         compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': \
         'HOURS', 'compaction_window_size': 1} AND default_time_to_live = 86400"
            .to_owned(),
    ]
}

/// Writes one value measured at `at_millis`.
pub fn insert(measurement: &Measurement, at_millis: i64) -> String {
    let Measurement { metric, value } = measurement;
    let hour = hour(at_millis);
    // A double without a point would be an integer's literal, which is fine too.
    format!(
        "INSERT INTO demo.machine (metric, hour, at, value) VALUES ({}, {hour}, {at_millis}, \
         {value:.3})",
        quoted(metric)
    )
}

/// A query for cqlsh: the last sixty values of a metric in the hour of `now_millis`.
pub fn last_minute(metric: &str, now_millis: i64) -> String {
    let hour = format_timestamp(hour(now_millis), TimestampStyle::Literal);
    format!(
        "SELECT at, value FROM demo.machine WHERE metric = {} AND hour = '{hour}' LIMIT 60;",
        quoted(metric)
    )
}

fn hour(millis: i64) -> i64 {
    millis - millis.rem_euclid(HOUR_MILLIS)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements() {
        let m = Measurement { metric: "disk.o'x.busy_percent".into(), value: 12.5 };
        assert_eq!(
            insert(&m, 1_795_298_978_123),
            "INSERT INTO demo.machine (metric, hour, at, value) VALUES ('disk.o''x.busy_percent', \
             1795298400000, 1795298978123, 12.500)"
        );
        assert_eq!(
            last_minute("cpu.busy_percent", 1_795_298_978_123),
            "SELECT at, value FROM demo.machine WHERE metric = 'cpu.busy_percent' AND hour = \
             '2026-11-21T22:00:00.000Z' LIMIT 60;"
        );
    }
}
