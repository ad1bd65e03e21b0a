//! Tables of `system_views` that show numbers: caches, pools, latencies, sizes, messages.

use std::net::SocketAddr;

use schema::Schema;

use super::data::{Histogram, Latency, NodeData, TableStats};
use super::sink::{Datum, Sink};

const NANOS_PER_MILLI: f64 = 1e6;
const MEBIBYTE: i64 = 1 << 20;

pub(super) fn caches(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for cache in data.caches.as_ref()? {
        // not a number where nothing was asked, as in Cassandra
        let ratio = cache.hits as f64 / cache.requests as f64;
        let ratio = if cache.requests == 0 { f64::NAN } else { ratio };
        sink.row(&[
            ("name", Datum::Text(cache.name)),
            ("capacity_bytes", Datum::BigInt(cache.capacity)),
            ("entry_count", Datum::Int(cache.entries)),
            ("hit_count", Datum::BigInt(cache.hits)),
            ("hit_ratio", Datum::Double(ratio)),
            ("recent_hit_rate_per_second", Datum::BigInt(cache.hit_rate)),
            ("recent_request_rate_per_second", Datum::BigInt(cache.request_rate)),
            ("request_count", Datum::BigInt(cache.requests)),
            ("size_bytes", Datum::BigInt(cache.size)),
        ]);
    }
    Some(())
}

pub(super) fn thread_pools(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for pool in data.thread_pools.as_ref()? {
        sink.row(&[
            ("name", Datum::Text(&pool.name)),
            ("active_tasks", Datum::Int(pool.active)),
            ("active_tasks_limit", Datum::Int(pool.limit)),
            ("blocked_tasks", Datum::BigInt(pool.blocked)),
            ("blocked_tasks_all_time", Datum::BigInt(pool.all_time_blocked)),
            ("completed_tasks", Datum::BigInt(pool.completed)),
            ("pending_tasks", Datum::Int(pool.pending)),
        ]);
    }
    Some(())
}

pub(super) fn cql_metrics(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    let stats = data.cql.as_ref()?;
    let executed = stats.prepared_executed.saturating_add(stats.regular_executed);
    let ratio = if executed == 0 { 0.0 } else { stats.prepared_executed as f64 / executed as f64 };
    let values = [
        ("prepared_statements_count", stats.prepared as f64),
        ("prepared_statements_evicted", stats.evicted as f64),
        ("prepared_statements_executed", stats.prepared_executed as f64),
        ("prepared_statements_ratio", ratio),
        ("regular_statements_executed", stats.regular_executed as f64),
    ];
    for (name, value) in values {
        sink.row(&[("name", Datum::Text(name)), ("value", Datum::Double(value))]);
    }
    Some(())
}

pub(super) fn batch_metrics(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    let stats = data.batches.as_ref()?;
    let kinds = [
        ("partitions_per_counter_batch", &stats.counter),
        ("partitions_per_logged_batch", &stats.logged),
        ("partitions_per_unlogged_batch", &stats.unlogged),
    ];
    for (name, histogram) in kinds {
        sink.row(&[
            ("name", Datum::Text(name)),
            ("max", Datum::BigInt(histogram.max as i64)),
            ("p50th", Datum::Double(histogram.median)),
            ("p999th", Datum::Double(histogram.p999)),
            ("p99th", Datum::Double(histogram.p99)),
        ]);
    }
    Some(())
}

/// To three places, halves away from zero: more would not be read.
fn rounded(value: f64) -> Datum<'static> {
    Datum::Double((value * 1000.0).round() / 1000.0)
}

fn each_table(
    sink: &mut Sink<'_>,
    data: &NodeData,
    values: impl Fn(&TableStats) -> Vec<(&'static str, Datum<'static>)>,
) -> Option<()> {
    for stats in data.tables.as_ref()? {
        let mut row: Vec<(&str, Datum<'_>)> = vec![
            ("keyspace_name", Datum::Text(&stats.keyspace)),
            ("table_name", Datum::Text(&stats.table)),
        ];
        row.extend(values(stats));
        sink.row(&row);
    }
    Some(())
}

fn latency(sink: &mut Sink<'_>, data: &NodeData, of: fn(&TableStats) -> &Latency) -> Option<()> {
    each_table(sink, data, |stats| {
        let latency = of(stats);
        vec![
            ("count", Datum::BigInt(latency.count)),
            ("max_ms", rounded(latency.max / NANOS_PER_MILLI)),
            ("p50th_ms", rounded(latency.median / NANOS_PER_MILLI)),
            ("p99th_ms", rounded(latency.p99 / NANOS_PER_MILLI)),
            ("per_second", rounded(latency.per_second)),
        ]
    })
}

fn histogram(
    sink: &mut Sink<'_>,
    data: &NodeData,
    of: fn(&TableStats) -> &Histogram,
) -> Option<()> {
    each_table(sink, data, |stats| {
        let histogram = of(stats);
        vec![
            ("count", Datum::BigInt(histogram.count)),
            ("max", rounded(histogram.max)),
            ("p50th", rounded(histogram.median)),
            ("p99th", rounded(histogram.p99)),
        ]
    })
}

fn mebibytes(sink: &mut Sink<'_>, data: &NodeData, of: fn(&TableStats) -> i64) -> Option<()> {
    each_table(sink, data, |stats| {
        let bytes = of(stats).max(0);
        let begun = i64::from(bytes % MEBIBYTE != 0);
        vec![("mebibytes", Datum::BigInt(bytes / MEBIBYTE + begun))]
    })
}

macro_rules! per_table {
    ($($name:ident: $make:ident($of:expr);)*) => {
        $(pub(super) fn $name(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
            $make(sink, data, $of)
        })*
    };
}

per_table! {
    local_read_latency: latency(|stats| &stats.local_read);
    local_scan_latency: latency(|stats| &stats.local_scan);
    local_write_latency: latency(|stats| &stats.local_write);
    coordinator_read_latency: latency(|stats| &stats.coordinator_read);
    coordinator_scan_latency: latency(|stats| &stats.coordinator_scan);
    coordinator_write_latency: latency(|stats| &stats.coordinator_write);
    tombstones_per_read: histogram(|stats| &stats.tombstones_per_read);
    rows_per_read: histogram(|stats| &stats.rows_per_read);
    disk_usage: mebibytes(|stats| stats.disk_usage);
    max_partition_size: mebibytes(|stats| stats.max_partition_size);
    max_sstable_size: mebibytes(|stats| stats.max_sstable_size);
}

pub(super) fn max_sstable_duration(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    each_table(sink, data, |stats| {
        vec![("max_sstable_duration", Datum::BigInt(stats.max_sstable_duration))]
    })
}

fn peer(
    sink: &mut Sink<'_>,
    address: SocketAddr,
    place: (&str, &str),
    numbers: &[(&'static str, i64)],
) {
    let mut row = vec![
        ("address", Datum::Inet(address.ip())),
        ("port", Datum::Int(address.port().into())),
        ("dc", Datum::Text(place.0)),
        ("rack", Datum::Text(place.1)),
    ];
    row.extend(numbers.iter().map(|(name, number)| (*name, Datum::BigInt(*number))));
    sink.row(&row);
}

pub(super) fn internode_inbound(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for own in data.inbound.as_ref()? {
        peer(sink, own.address, (&own.datacenter, &own.rack), &own.numbers);
    }
    Some(())
}

pub(super) fn internode_outbound(sink: &mut Sink<'_>, _: &Schema, data: &NodeData) -> Option<()> {
    for own in data.outbound.as_ref()? {
        peer(sink, own.address, (&own.datacenter, &own.rack), &own.numbers);
    }
    Some(())
}
