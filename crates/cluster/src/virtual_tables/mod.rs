//! Virtual tables: `system_virtual_schema` and `system_views`. Their partitions are made up here
//! from plain data that whoever reads them has gathered, in the packed form of any other, so that
//! SELECT runs over them as over any table.
//!
//! Pure: no clock, no I/O. What a node does not gather is `None` in [`NodeData`], and its tables
//! are not served; they are never shown empty for want of data.
//!
//! `crates/node/src/views` gathers the data from all shards when a table is read.

mod data;
mod gather;
mod live;
mod schema_rows;
mod sink;
mod stats;
mod streams;

use rows::PartitionUpdate;
use schema::{Schema, Table};

pub use data::{
    BatchStats, Cache, Client, CqlStats, Endpoint, EndpointState, Histogram, Inbound, KeySet,
    Latency, LogLine, NodeData, Outbound, PendingHints, RunningQuery, Snapshot, SsTableTask,
    TableStats, ThreadPool,
};
pub use gather::{Views, VirtualTables};
use sink::Sink;

/// Fills a table; `None` if what it shows was not gathered.
type Provider = fn(&mut Sink<'_>, &Schema, &NodeData) -> Option<()>;

/// Who fills which table.
const PROVIDERS: &[(&str, &str, Provider)] = &[
    ("system_virtual_schema", "columns", schema_rows::columns),
    ("system_virtual_schema", "keyspaces", schema_rows::keyspaces),
    ("system_virtual_schema", "tables", schema_rows::tables),
    ("system_views", "batch_metrics", stats::batch_metrics),
    ("system_views", "caches", stats::caches),
    // nobody is filtered by address
    ("system_views", "cidr_filtering_metrics_counts", nothing),
    ("system_views", "cidr_filtering_metrics_latencies", nothing),
    ("system_views", "clients", live::clients),
    ("system_views", "coordinator_read_latency", stats::coordinator_read_latency),
    ("system_views", "coordinator_scan_latency", stats::coordinator_scan_latency),
    ("system_views", "coordinator_write_latency", stats::coordinator_write_latency),
    ("system_views", "cql_metrics", stats::cql_metrics),
    ("system_views", "credentials_cache_keys", live::credentials_cache_keys),
    ("system_views", "disk_usage", stats::disk_usage),
    ("system_views", "gossip_info", live::gossip_info),
    ("system_views", "internode_inbound", stats::internode_inbound),
    ("system_views", "internode_outbound", stats::internode_outbound),
    ("system_views", "jmx_permissions_cache_keys", live::jmx_permissions_cache_keys),
    ("system_views", "local_read_latency", stats::local_read_latency),
    ("system_views", "local_scan_latency", stats::local_scan_latency),
    ("system_views", "local_write_latency", stats::local_write_latency),
    ("system_views", "max_partition_size", stats::max_partition_size),
    ("system_views", "max_sstable_duration", stats::max_sstable_duration),
    ("system_views", "max_sstable_size", stats::max_sstable_size),
    ("system_views", "network_permissions_cache_keys", live::network_permissions_cache_keys),
    ("system_views", "pending_hints", live::pending_hints),
    ("system_views", "permissions_cache_keys", live::permissions_cache_keys),
    ("system_views", "queries", live::queries),
    // nothing is repaired
    ("system_views", "repair_jobs", nothing),
    ("system_views", "repair_participates", nothing),
    ("system_views", "repair_sessions", nothing),
    ("system_views", "repair_validations", nothing),
    ("system_views", "repairs", nothing),
    ("system_views", "roles_cache_keys", live::roles_cache_keys),
    ("system_views", "rows_per_read", stats::rows_per_read),
    // storage-attached indexes are not served: there are none
    ("system_views", "sai_column_indexes", nothing),
    ("system_views", "sai_sstable_index_segments", nothing),
    ("system_views", "sai_sstable_indexes", nothing),
    ("system_views", "settings", live::settings),
    ("system_views", "snapshots", live::snapshots),
    ("system_views", "sstable_tasks", live::sstable_tasks),
    ("system_views", "streaming", streams::streaming),
    ("system_views", "system_logs", live::system_logs),
    ("system_views", "system_properties", live::system_properties),
    ("system_views", "thread_pools", stats::thread_pools),
    ("system_views", "tombstones_per_read", stats::tombstones_per_read),
];

fn nothing(_: &mut Sink<'_>, _: &Schema, _: &NodeData) -> Option<()> {
    Some(())
}

/// The partitions of a virtual table, in the order in which a range of them is read
/// ([`Table::compare_keys`]); `None` if the table is not served. `now`: timestamp of the cells, in
/// microseconds.
pub fn partitions(
    table: &Table,
    schema: &Schema,
    data: &NodeData,
    now: i64,
) -> Option<Vec<PartitionUpdate>> {
    let (.., provider) = PROVIDERS
        .iter()
        .find(|(keyspace, name, _)| *keyspace == table.keyspace && *name == table.name)?;
    let mut sink = Sink::new(table, now);
    provider(&mut sink, schema, data)?;
    Some(sink.finish())
}

#[cfg(test)]
mod tests;
