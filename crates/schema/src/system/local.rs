//! Tables of keyspace `system`: what this node knows for itself (`db.SystemKeyspace`).

use crate::system::{Compaction, TableDefinition};

/// `system`.
pub(super) const SYSTEM: &[TableDefinition] = &[
    TableDefinition {
        name: "IndexInfo",
        comment: "built column indexes",
        memtable_flush_period_in_ms: 3600000,
        columns: &["pk table_name text", "ck index_name text", "value blob"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "available_ranges",
        comment: "available keyspace/ranges during bootstrap/replace that are ready to be served",
        memtable_flush_period_in_ms: 3600000,
        columns: &["pk keyspace_name text", "ranges set<blob>"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "available_ranges_v2",
        comment: "available keyspace/ranges during bootstrap/replace that are ready to be served",
        memtable_flush_period_in_ms: 3600000,
        columns: &["pk keyspace_name text", "full_ranges set<blob>", "transient_ranges set<blob>"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "batches",
        comment: "batches awaiting replay",
        memtable_flush_period_in_ms: 3600000,
        compaction: Compaction::MinTwo,
        columns: &["pk id timeuuid", "mutations list<blob>", "version int"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "built_views",
        comment: "built views",
        memtable_flush_period_in_ms: 3600000,
        columns: &["pk keyspace_name text", "ck view_name text", "status_replicated boolean"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "compaction_history",
        comment: "week-long compaction history",
        memtable_flush_period_in_ms: 3600000,
        default_time_to_live: 604800,
        columns: &[
            "pk id timeuuid",
            "bytes_in bigint",
            "bytes_out bigint",
            "columnfamily_name text",
            "compacted_at timestamp",
            "compaction_properties frozen<map<text, text>>",
            "keyspace_name text",
            "rows_merged map<int, bigint>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "local",
        comment: "information about the local node",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk key text",
            "bootstrapped text",
            "broadcast_address inet",
            "broadcast_port int",
            "cluster_name text",
            "cql_version text",
            "data_center text",
            "gossip_generation int",
            "host_id uuid",
            "listen_address inet",
            "listen_port int",
            "native_protocol_version text",
            "partitioner text",
            "rack text",
            "release_version text",
            "rpc_address inet",
            "rpc_port int",
            "schema_version uuid",
            "tokens set<text>",
            "truncated_at map<uuid, blob>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "paxos",
        comment: "in-progress paxos proposals",
        memtable_flush_period_in_ms: 3600000,
        compaction: Compaction::Leveled,
        columns: &[
            "pk row_key blob",
            "ck cf_id uuid",
            "in_progress_ballot timeuuid",
            "in_progress_read_ballot timeuuid",
            "most_recent_commit blob",
            "most_recent_commit_at timeuuid",
            "most_recent_commit_version int",
            "proposal blob",
            "proposal_ballot timeuuid",
            "proposal_version int",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "paxos_repair_history",
        comment: "paxos repair history",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk keyspace_name text",
            "ck table_name text",
            "points frozen<list<frozen<tuple<blob, timeuuid>>>>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "peer_events",
        comment: "events related to peers",
        memtable_flush_period_in_ms: 3600000,
        columns: &["pk peer inet", "hints_dropped map<timeuuid, int>"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "peer_events_v2",
        comment: "events related to peers",
        memtable_flush_period_in_ms: 3600000,
        columns: &["pk peer inet", "ck peer_port int", "hints_dropped map<timeuuid, int>"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "peers",
        comment: "information about known peers in the cluster",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk peer inet",
            "data_center text",
            "host_id uuid",
            "preferred_ip inet",
            "rack text",
            "release_version text",
            "rpc_address inet",
            "schema_version uuid",
            "tokens set<text>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "peers_v2",
        comment: "information about known peers in the cluster",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk peer inet",
            "ck peer_port int",
            "data_center text",
            "host_id uuid",
            "native_address inet",
            "native_port int",
            "preferred_ip inet",
            "preferred_port int",
            "rack text",
            "release_version text",
            "schema_version uuid",
            "tokens set<text>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "prepared_statements",
        comment: "prepared statements",
        memtable_flush_period_in_ms: 3600000,
        columns: &["pk prepared_id blob", "logged_keyspace text", "query_string text"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "repairs",
        comment: "repairs",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk parent_id timeuuid",
            "cfids set<uuid>",
            "coordinator inet",
            "coordinator_port int",
            "last_update timestamp",
            "participants set<inet>",
            "participants_wp set<text>",
            "ranges set<blob>",
            "repaired_at timestamp",
            "started_at timestamp",
            "state int",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "size_estimates",
        comment: "per-table primary range size estimates, table is deprecated in favor of table_estimates",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk keyspace_name text",
            "ck table_name text",
            "ck range_start text",
            "ck range_end text",
            "mean_partition_size bigint",
            "partitions_count bigint",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "sstable_activity",
        comment: "historic sstable read rates",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk keyspace_name text",
            "pk columnfamily_name text",
            "pk generation int",
            "rate_120m double",
            "rate_15m double",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "sstable_activity_v2",
        comment: "historic sstable read rates",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk keyspace_name text",
            "pk table_name text",
            "pk id text",
            "rate_120m double",
            "rate_15m double",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "table_estimates",
        comment: "per-table range size estimates",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk keyspace_name text",
            "ck table_name text",
            "ck range_type text",
            "ck range_start text",
            "ck range_end text",
            "mean_partition_size bigint",
            "partitions_count bigint",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "top_partitions",
        comment: "Stores the top partitions",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk keyspace_name text",
            "ck table_name text",
            "ck top_type text",
            "last_update timestamp",
            "top frozen<list<frozen<tuple<text, bigint>>>>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "transferred_ranges",
        comment: "record of transferred ranges for streaming operation",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk operation text",
            "pk keyspace_name text",
            "ck peer inet",
            "ranges set<blob>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "transferred_ranges_v2",
        comment: "record of transferred ranges for streaming operation",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk operation text",
            "pk keyspace_name text",
            "ck peer inet",
            "ck peer_port int",
            "ranges set<blob>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "view_builds_in_progress",
        comment: "views builds current progress",
        memtable_flush_period_in_ms: 3600000,
        columns: &[
            "pk keyspace_name text",
            "ck view_name text",
            "ck start_token text",
            "ck end_token text",
            "keys_built bigint",
            "last_token text",
        ],
        ..TableDefinition::NEW
    },
];
