//! Tables of the replicated system keyspaces (`auth.AuthKeyspace`, `tracing.TraceKeyspace`,
//! `schema.SystemDistributedKeyspace`).

use crate::system::{Compaction, TableDefinition};

/// `system_auth`: roles and permissions.
pub(super) const SYSTEM_AUTH: &[TableDefinition] = &[
    TableDefinition {
        name: "cidr_groups",
        comment: "cidr groups to cidrs mapping",
        gc_grace_seconds: 7776000,
        columns: &["pk cidr_group text", "cidrs frozen<set<frozen<tuple<inet, smallint>>>>"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "cidr_permissions",
        comment: "user cidr permissions",
        gc_grace_seconds: 7776000,
        columns: &["pk role text", "cidr_groups frozen<set<text>>"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "identity_to_role",
        comment: "mtls authorized identities lookup table",
        gc_grace_seconds: 7776000,
        columns: &["pk identity text", "role text"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "network_permissions",
        comment: "user network permissions",
        gc_grace_seconds: 7776000,
        columns: &["pk role text", "dcs frozen<set<text>>"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "resource_role_permissons_index",
        comment: "index of db roles with permissions granted on a resource",
        gc_grace_seconds: 7776000,
        columns: &["pk resource text", "ck role text"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "role_members",
        comment: "role memberships lookup table",
        gc_grace_seconds: 7776000,
        columns: &["pk role text", "ck member text"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "role_permissions",
        comment: "permissions granted to db roles",
        gc_grace_seconds: 7776000,
        columns: &["pk role text", "ck resource text", "permissions set<text>"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "roles",
        comment: "role definitions",
        gc_grace_seconds: 7776000,
        columns: &[
            "pk role text",
            "can_login boolean",
            "is_superuser boolean",
            "member_of set<text>",
            "salted_hash text",
        ],
        ..TableDefinition::NEW
    },
];

/// `system_distributed`: history of repairs, state of views.
pub(super) const SYSTEM_DISTRIBUTED: &[TableDefinition] = &[
    TableDefinition {
        name: "parent_repair_history",
        comment: "Repair history",
        gc_grace_seconds: 864000,
        default_time_to_live: 2592000,
        compaction: Compaction::TimeWindow,
        columns: &[
            "pk parent_id timeuuid",
            "columnfamily_names set<text>",
            "exception_message text",
            "exception_stacktrace text",
            "finished_at timestamp",
            "keyspace_name text",
            "options map<text, text>",
            "requested_ranges set<text>",
            "started_at timestamp",
            "successful_ranges set<text>",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "partition_denylist",
        comment: "Partition keys which have been denied access",
        gc_grace_seconds: 864000,
        columns: &["pk ks_name text", "pk table_name text", "ck key blob"],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "repair_history",
        comment: "Repair history",
        gc_grace_seconds: 864000,
        default_time_to_live: 2592000,
        compaction: Compaction::TimeWindow,
        columns: &[
            "pk keyspace_name text",
            "pk columnfamily_name text",
            "ck id timeuuid",
            "coordinator inet",
            "coordinator_port int",
            "exception_message text",
            "exception_stacktrace text",
            "finished_at timestamp",
            "parent_id timeuuid",
            "participants set<inet>",
            "participants_v2 set<text>",
            "range_begin text",
            "range_end text",
            "started_at timestamp",
            "status text",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "view_build_status",
        comment: "Materialized View build status",
        gc_grace_seconds: 864000,
        columns: &["pk keyspace_name text", "pk view_name text", "ck host_id uuid", "status text"],
        ..TableDefinition::NEW
    },
];

/// `system_traces`: traced requests.
pub(super) const SYSTEM_TRACES: &[TableDefinition] = &[
    TableDefinition {
        name: "events",
        comment: "tracing events",
        columns: &[
            "pk session_id uuid",
            "ck event_id timeuuid",
            "activity text",
            "source inet",
            "source_elapsed int",
            "source_port int",
            "thread text",
        ],
        ..TableDefinition::NEW
    },
    TableDefinition {
        name: "sessions",
        comment: "tracing sessions",
        columns: &[
            "pk session_id uuid",
            "client inet",
            "command text",
            "coordinator inet",
            "coordinator_port int",
            "duration int",
            "parameters map<text, text>",
            "request text",
            "started_at timestamp",
        ],
        ..TableDefinition::NEW
    },
];
