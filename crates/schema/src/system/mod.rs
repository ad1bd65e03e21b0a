//! The system's own keyspaces, as release 5.0.9 defines them: the golden is a live node's
//! description of itself (`conformance/schema_goldens/goldens/system.json`).

mod distributed;
mod gossip_info;
mod local;
mod schema_tables;
mod views;
mod virtual_schema;

use std::sync::Arc;

use types::CqlType;

use crate::column::{Column, ColumnKind, DroppedColumn};
use crate::keyspace::Keyspace;
use crate::params::TableParams;
use crate::params::compaction::CompactionParams;
use crate::params::compaction_class::COMPACTION;
use crate::release::Release;
use crate::replication::Replication;
use crate::stored::encode::{Stamp, create_keyspace};
use crate::stored::{SchemaMutation, SchemaTable};
use crate::table::{Index, Table, TableBuilder, TableKind};
use crate::table_id::TableId;

/// A table of the system.
struct TableDefinition {
    name: &'static str,
    comment: &'static str,
    gc_grace_seconds: i32,
    memtable_flush_period_in_ms: i32,
    default_time_to_live: i32,
    compaction: Compaction,
    /// `name type`, before it `pk` (partition key), `ck` (clustering), `ck-` (descending) or
    /// `static`.
    columns: &'static [&'static str],
}

impl TableDefinition {
    const NEW: Self = Self {
        name: "",
        comment: "",
        gc_grace_seconds: 0,
        memtable_flush_period_in_ms: 0,
        default_time_to_live: 0,
        compaction: Compaction::SizeTiered,
        columns: &[],
    };
}

/// Compaction of a table of the system.
#[derive(Clone, Copy)]
enum Compaction {
    SizeTiered,
    /// Size-tiered, two SSTables being enough.
    MinTwo,
    Leveled,
    /// Time windows of a day.
    TimeWindow,
}

/// Timestamps of the replicated system keyspaces' definitions, fixed so that every node writes the
/// same cells, in microseconds (`GENERATION` of their classes).
const GENERATIONS: [(&str, i64); 3] =
    [("system_traces", 1_577_836_800_000_002), ("system_distributed", 6), ("system_auth", 1)];

/// `system` and `system_schema`, each node's own, as a release has them: a Cassandra of an earlier
/// one does not open files that speak of columns which came later.
pub fn local_keyspaces(release: Release) -> Vec<Arc<Keyspace>> {
    let mut system = keyspace("system", Replication::local(), local::SYSTEM);
    for (name, amend) in [("local", drop_thrift as fn(&mut TableBuilder)), ("paxos", index_paxos)] {
        if let Some(table) = system.tables.get_mut(name) {
            let mut builder = table.to_builder();
            amend(&mut builder);
            *table = Arc::new(builder.build());
        }
    }
    let tables = schema_tables::SYSTEM_SCHEMA;
    let mut schema = keyspace("system_schema", Replication::local(), tables);
    let is_kept = |name: &String| SchemaTable::by_name(name).is_none_or(|table| release.has(table));
    schema.tables.retain(|name, _| is_kept(name));
    for (name, table) in system.tables.iter_mut().chain(&mut schema.tables) {
        let is_known = |column: &Column| match SchemaTable::by_name(name) {
            Some(table) if column.kind == ColumnKind::Regular => {
                release.has_column(table, &column.name)
            }
            Some(_) => true,
            None => release >= Release::V5_0 || &*column.name != COLUMN_OF_5_0,
        };
        if !table.columns().all(is_known) {
            let mut builder = table.to_builder();
            builder.columns.retain(is_known);
            *table = Arc::new(builder.build());
        }
    }
    vec![Arc::new(system), Arc::new(schema)]
}

/// The column of `system.compaction_history` that came with 5.0; no other table of `system` has one
/// of that name.
const COLUMN_OF_5_0: &str = "compaction_properties";

/// `local` once had the version of Thrift, dropped for all time.
fn drop_thrift(builder: &mut TableBuilder) {
    let name = "thrift_version";
    let dropped = DroppedColumn {
        name: name.into(),
        ty: CqlType::Text,
        kind: ColumnKind::Regular,
        dropped_at: i64::MAX,
    };
    builder.dropped.insert(name.to_owned(), dropped);
}

/// Cassandra finds unfinished Paxos rounds by an index of its own kind; it shows in descriptions.
fn index_paxos(builder: &mut TableBuilder) {
    let name = "PaxosUncommittedIndex";
    let class = format!("org.apache.cassandra.service.paxos.uncommitted.{name}");
    let options = [("class_name".to_owned(), class), ("target".to_owned(), String::new())];
    let index = Index { name: name.to_owned(), kind: "CUSTOM".to_owned(), options: options.into() };
    builder.indexes.insert(name.to_owned(), index);
}

/// The virtual table of what the node said: the only one that may be truncated, and that is not
/// filtered unasked.
pub const SYSTEM_LOGS: &str = "system_logs";

/// `system_views` and `system_virtual_schema`, whose rows are made up on demand.
pub fn virtual_keyspaces() -> Vec<Arc<Keyspace>> {
    let made_up = |name, tables| {
        let mut keyspace = keyspace(name, Replication::local(), tables);
        keyspace.is_virtual = true;
        for table in keyspace.tables.values_mut() {
            *table = Arc::new(table.to_builder().kind(TableKind::Virtual).build());
        }
        Arc::new(keyspace)
    };
    vec![
        made_up("system_views", views::SYSTEM_VIEWS),
        made_up("system_virtual_schema", virtual_schema::SYSTEM_VIRTUAL_SCHEMA),
    ]
}

/// Tables of `system_auth` that came with 5.0.
const TABLES_OF_5_0: [&str; 3] = ["cidr_groups", "cidr_permissions", "identity_to_role"];

/// `system_auth`, `system_distributed` and `system_traces`, as a cluster of a release starts with
/// them.
pub fn replicated_keyspaces(release: Release) -> Vec<Arc<Keyspace>> {
    let simple = |name, replicas, tables| {
        let mut keyspace = keyspace(name, Replication::simple(replicas), tables);
        let is_known =
            |name: &String| release >= Release::V5_0 || !TABLES_OF_5_0.contains(&name.as_str());
        keyspace.tables.retain(|name, _| is_known(name));
        Arc::new(keyspace)
    };
    vec![
        simple("system_auth", 1, distributed::SYSTEM_AUTH),
        simple("system_distributed", 3, distributed::SYSTEM_DISTRIBUTED),
        simple("system_traces", 2, distributed::SYSTEM_TRACES),
    ]
}

/// The mutations that define the replicated system keyspaces: what the first node of a cluster
/// writes. A node that joins takes what it is given instead. `now`: seconds since the epoch.
pub fn replicated_mutations(release: Release, now: i64) -> Vec<SchemaMutation> {
    let mutation = |keyspace: &Arc<Keyspace>| {
        let generation = GENERATIONS.iter().find(|(name, _)| *name == keyspace.name);
        let timestamp = generation.map_or(0, |(_, timestamp)| *timestamp);
        create_keyspace(keyspace, Stamp { timestamp, now, cdc: false })
    };
    replicated_keyspaces(release).iter().map(mutation).collect()
}

/// The mutations by which a node describes `system` and `system_schema` to its own clients, in
/// `system_schema`. `timestamp` in microseconds, `now` in seconds.
pub fn local_mutations(release: Release, timestamp: i64, now: i64) -> Vec<SchemaMutation> {
    let stamp = Stamp { timestamp, now, cdc: false };
    let describe = |keyspace: &Arc<Keyspace>| {
        let mut described = create_keyspace(keyspace, stamp);
        release.leave_out(&mut described);
        described
    };
    local_keyspaces(release).iter().map(describe).collect()
}

impl SchemaTable {
    /// Its columns as rows see them.
    pub(crate) fn layout(self) -> Arc<rows::Layout> {
        schema_layout(self.name())
    }
}

/// The columns of a table of `system_schema`, as rows see them.
fn schema_layout(name: &str) -> Arc<rows::Layout> {
    let definition = schema_tables::SYSTEM_SCHEMA.iter().find(|table| table.name == name);
    let nothing = TableDefinition::NEW;
    definition.unwrap_or(&nothing).table("system_schema").layout
}

fn keyspace(name: &str, replication: Replication, tables: &[TableDefinition]) -> Keyspace {
    let mut keyspace = Keyspace::new(name, true, replication);
    for definition in tables {
        let table = Arc::new(definition.table(name));
        keyspace.tables.insert(table.name.clone(), table);
    }
    keyspace
}

impl TableDefinition {
    fn table(&self, keyspace: &str) -> Table {
        let id = TableId::of_system_table(keyspace, self.name);
        let params = TableParams {
            comment: self.comment.to_owned(),
            gc_grace_seconds: self.gc_grace_seconds,
            memtable_flush_period_in_ms: self.memtable_flush_period_in_ms,
            default_time_to_live: self.default_time_to_live,
            compaction: self.compaction.params(),
            ..TableParams::default()
        };
        let mut builder = Table::builder(keyspace, self.name, id).params(params);
        for column in self.columns {
            let mut words = column.splitn(2, ' ');
            let (first, rest) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            let (kind, reversed, column) = match first {
                "pk" => (ColumnKind::PartitionKey, false, rest),
                "ck" => (ColumnKind::Clustering, false, rest),
                "ck-" => (ColumnKind::Clustering, true, rest),
                "static" => (ColumnKind::Static, false, rest),
                _ => (ColumnKind::Regular, false, *column),
            };
            let (name, ty) = column.split_once(' ').unwrap_or((column, "blob"));
            let ty = CqlType::parse_cql_name(ty, &mut |_, _| None).unwrap_or(CqlType::Blob);
            builder.add(name, ty, kind, reversed, None);
        }
        builder.build()
    }
}

impl Compaction {
    fn params(self) -> CompactionParams {
        let mut params = CompactionParams::default();
        let mut set = |name: &str, value: &str| {
            params.options.insert(name.to_owned(), value.to_owned());
        };
        let class = match self {
            Self::SizeTiered => return params,
            Self::MinTwo => {
                set("min_threshold", "2");
                return params;
            }
            Self::Leveled => "LeveledCompactionStrategy",
            Self::TimeWindow => {
                set("compaction_window_size", "1");
                set("compaction_window_unit", "DAYS");
                "TimeWindowCompactionStrategy"
            }
        };
        CompactionParams::new(format!("{COMPACTION}{class}"), params.options)
    }
}
