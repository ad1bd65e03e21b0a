//! The guardrails of `cassandra.yaml`, for the guard of each ordinary user's request.
//!
//! Binding asks the guard where Cassandra asks it. The owner of the schema asks it before a change
//! is tried, and before the change is done. Superusers and the node itself have no guard.
//!
//! `nodetool setguardrailsconfig` gives every shard another configuration.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use cql::guard::{self, Guard, Threshold, Words};
use env::Instant;
use protocol::{Consistency, ErrorResponse};
use schema::Strategy;
use storage::{SizeLimit, WriteLimits};

use crate::answer::{Outcome, cql_error};
use crate::request::Request;
use crate::shard_context::ShardContext;

/// Nanoseconds in a microsecond: durations are configured in the former, timestamps are in the
/// latter.
const NANOS: i64 = 1000;

/// Clients are told of a disk that fills at most once in so long
/// (`cassandra.disk_usage.notify_interval_ms`).
pub const DISK_NOTICES: Duration = Duration::from_mins(30);

/// How much of the disk that data may take is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskUsage {
    /// Nobody wants to know.
    #[default]
    NotAvailable,
    /// Not much.
    Spacious,
    /// More than `data_disk_usage_percentage_warn_threshold`.
    Stuffed,
    /// More than `data_disk_usage_percentage_fail_threshold`.
    Full,
}

impl DiskUsage {
    /// Are clients told of it?
    fn is_told(self) -> bool {
        matches!(self, Self::Stuffed | Self::Full)
    }

    /// As messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotAvailable => "Not available",
            Self::Spacious => "Spacious",
            Self::Stuffed => "Stuffed",
            Self::Full => "Full",
        }
    }
}

/// A shard's guardrails, as they stand.
pub struct Guardrails {
    shard: Rc<ShardContext>,
    /// The settings with what the operator changed since the start.
    config: RefCell<Arc<Config>>,
    settings: RefCell<Rc<guard::Guardrails>>,
    /// Is a setting other than the default?
    are_set: Cell<bool>,
    disk: Cell<DiskUsage>,
    /// When a client of this shard was last warned of the disk, and when one was last refused with
    /// a word about it.
    told: [Cell<Option<Instant>>; 2],
}

impl Guardrails {
    /// Those of the settings.
    pub(crate) fn new(shard: &Rc<ShardContext>) -> Rc<Self> {
        let guardrails = Self {
            shard: Rc::clone(shard),
            config: RefCell::default(),
            settings: RefCell::default(),
            are_set: Cell::default(),
            disk: Cell::default(),
            told: Default::default(),
        };
        guardrails.set_config(&shard.config);
        Rc::new(guardrails)
    }

    /// Is there anything to watch a user for? As long as no setting is other than the default, only
    /// what is warned of all the same is: changes of the schema, and filters.
    pub(crate) fn want(&self, is_warned_anyway: bool) -> bool {
        is_warned_anyway || self.are_set.get() || self.disk.get().is_told()
    }

    /// A guard for a request of a user who is no superuser; nobody else is guarded.
    pub fn new_guard(&self) -> Rc<Guard> {
        Rc::new(Guard::new(Rc::clone(&self.settings.borrow())))
    }

    /// Guards requests of this shard by the settings of a configuration that the operator changed.
    pub fn set_config(&self, config: &Arc<Config>) {
        self.config.replace(Arc::clone(config));
        let settings = settings(config);
        self.are_set.set(settings != guard::Guardrails::default());
        self.settings.replace(Rc::new(settings));
    }

    /// The configuration, with the guardrails and the like that the operator set since the start.
    pub fn current_config(&self) -> Arc<Config> {
        Arc::clone(&self.config.borrow())
    }

    /// Tells this shard how full the disk is.
    pub fn set_disk_usage(&self, usage: DiskUsage) {
        self.disk.set(usage);
    }

    /// Has the guard look at the disk before a write.
    pub(crate) fn guard_disk(&self, request: &Request<'_>) -> Result<(), ErrorResponse> {
        let usage = self.disk.get();
        if !usage.is_told() {
            return Ok(());
        }
        let is_full = usage == DiskUsage::Full;
        request.guarded(|guard| {
            let told = &self.told[usize::from(is_full)];
            let now = self.shard.env.now();
            let is_due = told.get().is_none_or(|at| now.since(at) >= DISK_NOTICES);
            if is_due {
                told.set(Some(now));
            }
            guard.disk_usage(is_full, is_due)
        })
    }

    /// Has the guard look at a filter on several columns that change, where replicas are put
    /// together.
    pub(crate) fn guard_intersection(
        &self,
        keyspace: &str,
        request: &Request<'_>,
    ) -> Result<(), ErrorResponse> {
        use Consistency::{LocalOne, NodeLocal, One};
        let schema = self.shard.schema();
        let replicas = match schema.keyspace(keyspace).map(|ks| &ks.replication.strategy) {
            Some(Strategy::Simple(count)) => count.all,
            Some(Strategy::NetworkTopology(counts)) => counts.values().map(|count| count.all).sum(),
            _ => 1,
        };
        if replicas < 2 || matches!(request.options.consistency, One | LocalOne | NodeLocal) {
            return Ok(());
        }
        request.guarded(Guard::intersection)
    }
}

/// Reads the settings.
fn settings(config: &Config) -> guard::Guardrails {
    let look = config.lookup();
    let threshold = |name: &str| Threshold {
        warn: look.number(&format!("{name}_warn_threshold")),
        fail: look.number(&format!("{name}_fail_threshold")),
    };
    let time = |name: &str| {
        let Threshold { warn, fail } = threshold(name);
        Threshold { warn: warn / NANOS, fail: fail / NANOS }
    };
    let enabled = |name: &str| look.flag(&format!("{name}_enabled"));
    let words = |name: &str, kinds: [&str; 3]| {
        let [warned, ignored, disallowed] = kinds.map(|kind| look.words(&format!("{name}_{kind}")));
        Words { warned, ignored, disallowed }
    };
    let levels = |name: &str| {
        let mut words = words(name, ["warned", "ignored", "disallowed"]);
        let code = |level: &String| Consistency::ALL.iter().position(|one| one.name() == level);
        words.warned.sort_by_key(code);
        words.disallowed.sort_by_key(code);
        words
    };
    guard::Guardrails {
        keyspaces: threshold("keyspaces"),
        tables: threshold("tables"),
        columns_per_table: threshold("columns_per_table"),
        fields_per_udt: threshold("fields_per_udt"),
        vector_dimensions: threshold("vector_dimensions"),
        minimum_replication_factor: threshold("minimum_replication_factor"),
        maximum_replication_factor: threshold("maximum_replication_factor"),
        in_select_cartesian_product: threshold("in_select_cartesian_product"),
        partition_keys_in_select: threshold("partition_keys_in_select"),
        page_size: threshold("page_size"),
        secondary_indexes_per_table: threshold("secondary_indexes_per_table"),
        items_per_collection: threshold("items_per_collection"),
        collection_size: threshold("collection_size"),
        column_value_size: threshold("column_value_size"),
        maximum_timestamp: time("maximum_timestamp"),
        minimum_timestamp: time("minimum_timestamp"),
        table_properties: words("table_properties", ["warned", "ignored", "disallowed"]),
        read_consistency_levels: levels("read_consistency_levels"),
        write_consistency_levels: levels("write_consistency_levels"),
        allow_filtering: enabled("allow_filtering"),
        alter_table: enabled("alter_table"),
        compact_tables: enabled("compact_tables"),
        drop_keyspace: enabled("drop_keyspace"),
        drop_truncate_table: enabled("drop_truncate_table"),
        group_by: enabled("group_by"),
        intersect_filtering_query: enabled("intersect_filtering_query"),
        intersect_filtering_query_warned: look.flag("intersect_filtering_query_warned"),
        read_before_write_list_operations: enabled("read_before_write_list_operations"),
        non_partition_restricted_index_query: enabled("non_partition_restricted_index_query"),
        secondary_indexes: enabled("secondary_indexes"),
        simplestrategy: enabled("simplestrategy"),
        uncompressed_tables: enabled("uncompressed_tables"),
        user_timestamps: enabled("user_timestamps"),
        vector_type: enabled("vector_type"),
        zero_ttl_on_twcs: enabled("zero_ttl_on_twcs"),
        zero_ttl_on_twcs_warned: look.flag("zero_ttl_on_twcs_warned"),
    }
}

/// The limits of what is written to SSTables.
pub fn write_limits(config: &Config) -> WriteLimits {
    let look = config.lookup();
    let limit = |name: &str| {
        let side = |side: &str| look.number(&format!("{name}_{side}_threshold"));
        let [warn, fail] = ["warn", "fail"].map(|one| u64::try_from(side(one)).unwrap_or(0));
        SizeLimit { warn, fail }
    };
    WriteLimits {
        partition_bytes: limit("partition_size"),
        partition_tombstones: limit("partition_tombstones"),
        collection_bytes: limit("collection_size"),
        collection_items: limit("items_per_collection"),
    }
}

impl Request<'_> {
    /// Who watches over it, if it is an ordinary user's.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        self.guard.get().map(|guard| &**guard)
    }

    /// The warnings of the guard come first.
    pub(crate) fn warn(&self, outcome: &mut Outcome) {
        if let Some(guard) = self.guard() {
            outcome.warnings.splice(0..0, guard.take_warnings());
        }
    }

    /// Has the guard check something, if there is one.
    pub(crate) fn guarded(
        &self,
        check: impl FnOnce(&Guard) -> Result<(), cql::CqlError>,
    ) -> Result<(), ErrorResponse> {
        self.guard().map_or(Ok(()), |guard| check(guard).map_err(cql_error))
    }

    /// The consistency levels of a write.
    pub(crate) fn guard_write(&self) -> Result<(), ErrorResponse> {
        let levels = [self.options.consistency.name(), self.options.serial_consistency.name()];
        self.guarded(|guard| guard.write_levels(&levels))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn guardrails_name_the_properties_that_tables_have() {
        assert_eq!(config::TABLE_PROPERTIES, schema::TABLE_PROPERTIES);
    }
}
