//! The guardrails of `cassandra.yaml`, for the guard of each ordinary user's request.

use std::rc::Rc;

use config::Config;
use cql::guard::{Guard, Guardrails, Threshold, Words};
use protocol::{Consistency, ErrorResponse};

use crate::answer::{Outcome, cql_error};
use crate::coordinator::{Coordinator, Request};

/// Nanoseconds in a microsecond: durations are configured in the former, timestamps are in the latter.
const NANOS: i64 = 1000;

/// Reads the settings.
pub(crate) fn guardrails(config: &Config) -> Guardrails {
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
    Guardrails {
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
        read_before_write_list_operations: enabled("read_before_write_list_operations"),
        secondary_indexes: enabled("secondary_indexes"),
        simplestrategy: enabled("simplestrategy"),
        uncompressed_tables: enabled("uncompressed_tables"),
        user_timestamps: enabled("user_timestamps"),
        vector_type: enabled("vector_type"),
        zero_ttl_on_twcs: enabled("zero_ttl_on_twcs"),
        zero_ttl_on_twcs_warned: look.flag("zero_ttl_on_twcs_warned"),
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

impl Coordinator {
    /// Is there anything to watch a user for? Superusers are not watched, nor is anybody where nobody has to say who it
    /// is; and as long as no setting is other than the default, only changes of the schema are.
    pub(crate) async fn is_guarded(
        self: &Rc<Self>,
        user: &Rc<str>,
        is_schema: bool,
    ) -> Result<bool, ErrorResponse> {
        if !self.authenticates() || !(is_schema || *self.guardrails != Guardrails::default()) {
            return Ok(false);
        }
        Ok(!self.is_superuser(user).await?)
    }

    /// Gives a request of an ordinary user its guard.
    pub(crate) async fn watch(
        self: &Rc<Self>,
        request: &Request<'_>,
        is_schema: bool,
    ) -> Result<(), ErrorResponse> {
        if let Some(user) = &request.user
            && self.is_guarded(user, is_schema).await?
        {
            let _ = request.guard.set(self.new_guard());
        }
        Ok(())
    }

    /// A guard for a request of a user who is no superuser; nobody else is guarded.
    pub fn new_guard(&self) -> Rc<Guard> {
        Rc::new(Guard::new(Rc::clone(&self.guardrails)))
    }
}
