//! Guardrails: what an operator keeps ordinary users from, with Cassandra's names, order and words
//! (`db.guardrails.Guardrails`). Pure checks over settings; superusers and the node itself are not
//! guarded.
//!
//! A `Guard` watches over one request of an ordinary user.

mod schema;

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::CqlError;

/// A limit with a warning below it; what is not above 0 is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// Beyond it the client is warned.
    pub warn: i64,
    /// Beyond it the statement fails.
    pub fail: i64,
}

/// Words that are not liked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// With a warning.
    pub warned: Vec<String>,
    /// They are left out, with a warning.
    pub ignored: Vec<String>,
    /// They fail.
    pub disallowed: Vec<String>,
}

/// The settings, by the names of `cassandra.yaml` without `_threshold` and `_enabled`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are named as in cassandra.yaml")]
pub struct Guardrails {
    pub keyspaces: Threshold,
    pub tables: Threshold,
    pub columns_per_table: Threshold,
    pub fields_per_udt: Threshold,
    pub vector_dimensions: Threshold,
    pub minimum_replication_factor: Threshold,
    pub maximum_replication_factor: Threshold,
    pub in_select_cartesian_product: Threshold,
    pub partition_keys_in_select: Threshold,
    pub secondary_indexes_per_table: Threshold,
    pub page_size: Threshold,
    pub items_per_collection: Threshold,
    pub collection_size: Threshold,
    pub column_value_size: Threshold,
    /// Microseconds from now on.
    pub maximum_timestamp: Threshold,
    /// Microseconds before now.
    pub minimum_timestamp: Threshold,
    pub table_properties: Words,
    pub read_consistency_levels: Words,
    pub write_consistency_levels: Words,
    pub allow_filtering: bool,
    pub alter_table: bool,
    pub compact_tables: bool,
    pub drop_keyspace: bool,
    pub drop_truncate_table: bool,
    pub group_by: bool,
    pub intersect_filtering_query: bool,
    pub intersect_filtering_query_warned: bool,
    pub read_before_write_list_operations: bool,
    pub non_partition_restricted_index_query: bool,
    pub secondary_indexes: bool,
    pub simplestrategy: bool,
    pub uncompressed_tables: bool,
    pub user_timestamps: bool,
    pub vector_type: bool,
    pub zero_ttl_on_twcs: bool,
    pub zero_ttl_on_twcs_warned: bool,
}

impl Default for Guardrails {
    /// Cassandra's.
    fn default() -> Self {
        let off = Threshold::default();
        Self {
            keyspaces: off,
            tables: off,
            columns_per_table: off,
            fields_per_udt: off,
            vector_dimensions: off,
            minimum_replication_factor: off,
            maximum_replication_factor: off,
            in_select_cartesian_product: off,
            partition_keys_in_select: off,
            secondary_indexes_per_table: off,
            page_size: off,
            items_per_collection: off,
            collection_size: off,
            column_value_size: off,
            maximum_timestamp: off,
            minimum_timestamp: off,
            table_properties: Words::default(),
            read_consistency_levels: Words::default(),
            write_consistency_levels: Words::default(),
            allow_filtering: true,
            alter_table: true,
            compact_tables: true,
            drop_keyspace: true,
            drop_truncate_table: true,
            group_by: true,
            intersect_filtering_query: true,
            intersect_filtering_query_warned: true,
            read_before_write_list_operations: true,
            non_partition_restricted_index_query: true,
            secondary_indexes: true,
            simplestrategy: true,
            uncompressed_tables: true,
            user_timestamps: true,
            vector_type: true,
            zero_ttl_on_twcs: true,
            zero_ttl_on_twcs_warned: true,
        }
    }
}

/// Why ALLOW FILTERING is not liked.
const FILTERING: &str = "ALLOW FILTERING can potentially visit all the data in the table and have unpredictable performance.";
/// Why filters on several columns that change are not liked.
const INTERSECTION: &str = "Filtering queries involving an intersection on multiple mutable (i.e. non-key) columns over unrepaired data at read consistency levels that would require coordinator reconciliation may violate the guarantees of those consistency levels.";
/// Why a read by an index that may ask every node is not liked.
const WHOLE_INDEX: &str = "Executing a query on secondary indexes without partition key restriction might degrade performance";
/// Why timestamps of the future are not liked.
const FUTURE: &str =
    "Timestamps too far in the future can lead to data that can't be easily overwritten";
/// Why timestamps of the past are not liked.
const PAST: &str = "Timestamps too far in the past can cause writes can be unexpectedly lost";

/// Watches over one request of an ordinary user.
#[derive(Debug)]
pub struct Guard {
    rails: Rc<Guardrails>,
    warnings: RefCell<Vec<String>>,
}

/// Which side of a threshold was passed, and the threshold.
struct Passed {
    is_warning: bool,
    threshold: i64,
}

impl Passed {
    /// As messages name the side.
    fn side(&self) -> &'static str {
        if self.is_warning { "warning" } else { "failure" }
    }
}

/// As clients and the log are told of it.
pub fn violation(name: &str, reason: Option<&str>, message: &str) -> String {
    let mut text = format!("Guardrail {name} violated: {message}");
    if let Some(reason) = reason {
        text.push_str(if message.ends_with('.') { " " } else { ". " });
        text.push_str(reason);
    }
    text
}

impl Guard {
    /// Over a request.
    pub fn new(rails: Rc<Guardrails>) -> Self {
        Self { rails, warnings: RefCell::default() }
    }

    /// What the client is to be warned of, failures included.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    fn warn(&self, name: &str, reason: Option<&str>, message: &str) -> String {
        let text = violation(name, reason, message);
        self.warnings.borrow_mut().push(text.clone());
        text
    }

    fn fail(&self, name: &str, reason: Option<&str>, message: &str) -> CqlError {
        CqlError::Invalid(self.warn(name, reason, message))
    }

    fn threshold(
        &self,
        (name, reason): (&str, Option<&str>),
        threshold: Threshold,
        is_beyond: impl Fn(i64) -> bool,
        message: impl FnOnce(&Passed) -> String,
    ) -> Result<(), CqlError> {
        let passes = |threshold: i64| threshold > 0 && is_beyond(threshold);
        if passes(threshold.fail) {
            let passed = Passed { is_warning: false, threshold: threshold.fail };
            return Err(self.fail(name, reason, &message(&passed)));
        }
        if passes(threshold.warn) {
            let passed = Passed { is_warning: true, threshold: threshold.warn };
            self.warn(name, reason, &message(&passed));
        }
        Ok(())
    }

    fn max(
        &self,
        name: &str,
        threshold: Threshold,
        value: usize,
        message: impl FnOnce(&Passed) -> String,
    ) -> Result<(), CqlError> {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.threshold((name, None), threshold, |limit| value > limit, message)
    }

    fn flag(&self, name: &str, is_enabled: bool, feature: &str) -> Result<(), CqlError> {
        match is_enabled {
            true => Ok(()),
            false => Err(self.fail(name, None, &format!("{feature} is not allowed"))),
        }
    }

    /// Warns of words and fails; gives those that are to be left out.
    fn words(
        &self,
        name: &str,
        words: &Words,
        given: &[&str],
        what: &str,
        shown: impl Fn(&[String]) -> String,
    ) -> Result<Vec<String>, CqlError> {
        let found = |of: &[String]| {
            let mut found: Vec<String> = given
                .iter()
                .filter(|w| of.iter().any(|o| o == *w))
                .map(|w| (*w).to_owned())
                .collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        let disallowed = found(&words.disallowed);
        if !disallowed.is_empty() {
            let (found, all) = (disallowed.join(", "), shown(&words.disallowed));
            return Err(self.fail(
                name,
                None,
                &format!(
                    "Provided values [{found}] are not allowed for {what} (disallowed values are: [{all}])"
                ),
            ));
        }
        let ignored = found(&words.ignored);
        if !ignored.is_empty() {
            let (found, all) = (ignored.join(", "), shown(&words.ignored));
            self.warn(
                name,
                None,
                &format!(
                    "Ignoring provided values [{found}] as they are not supported for {what} (ignored values are: [{all}])"
                ),
            );
        }
        let warned = found(&words.warned);
        if !warned.is_empty() {
            let (found, all) = (warned.join(", "), shown(&words.warned));
            self.warn(
                name,
                None,
                &format!(
                    "Provided values [{found}] are not recommended for {what} (warned values are: [{all}])"
                ),
            );
        }
        Ok(ignored)
    }

    // ---- reads

    /// ALLOW FILTERING.
    ///
    /// # Errors
    /// As all of these: if it is not allowed.
    pub fn allow_filtering(&self) -> Result<(), CqlError> {
        match self.rails.allow_filtering {
            true => Ok(()),
            false => {
                let message = "Querying with ALLOW FILTERING is not allowed";
                Err(self.fail("allow_filtering", Some(FILTERING), message))
            }
        }
    }

    /// GROUP BY.
    #[allow(clippy::missing_errors_doc)]
    pub fn group_by(&self) -> Result<(), CqlError> {
        self.flag("group_by", self.rails.group_by, "GROUP BY functionality")
    }

    /// A read by an index that names no partition.
    #[allow(clippy::missing_errors_doc)]
    pub fn index_query(&self) -> Result<(), CqlError> {
        match self.rails.non_partition_restricted_index_query {
            true => Ok(()),
            false => {
                let name = "non_partition_restricted_index_query_enabled";
                let message = "Non-partition key restricted query is not allowed";
                Err(self.fail(name, Some(WHOLE_INDEX), message))
            }
        }
    }

    /// The level of a read; levels come in the order of their codes.
    #[allow(clippy::missing_errors_doc)]
    pub fn read_level(&self, level: &str) -> Result<(), CqlError> {
        let words = &self.rails.read_consistency_levels;
        let shown = |all: &[String]| all.join(", ");
        let what = "read consistency levels";
        self.words("read_consistency_levels", words, &[level], what, shown).map(drop)
    }

    /// The levels of a write.
    #[allow(clippy::missing_errors_doc)]
    pub fn write_levels(&self, levels: &[&str]) -> Result<(), CqlError> {
        let words = &self.rails.write_consistency_levels;
        let shown = |all: &[String]| all.join(", ");
        let what = "write consistency levels";
        self.words("write_consistency_levels", words, levels, what, shown).map(drop)
    }

    /// Rows of a page.
    #[allow(clippy::missing_errors_doc)]
    pub fn page_size(&self, table: &str, size: usize) -> Result<(), CqlError> {
        self.max("page_size", self.rails.page_size, size, |passed| match passed.is_warning {
            true => format!(
                "Query for table {table} with page size {size} exceeds warning threshold of {}.",
                passed.threshold
            ),
            false => format!(
                "Aborting query for table {table}, page size {size} exceeds fail threshold of {}.",
                passed.threshold
            ),
        })
    }

    /// Partitions that a SELECT names.
    #[allow(clippy::missing_errors_doc)]
    pub fn partition_keys(&self, table: &str, keys: usize) -> Result<(), CqlError> {
        let threshold = self.rails.partition_keys_in_select;
        self.max("partition_keys_in_select", threshold, keys, |passed| match passed.is_warning {
            true => format!(
                "Query with partition keys in IN clause on table {table}, with number of partition keys {keys} exceeds warning threshold of {}.",
                passed.threshold
            ),
            false => format!(
                "Aborting query with partition keys in IN clause on table {table}, number of partition keys {keys} exceeds fail threshold of {}.",
                passed.threshold
            ),
        })
    }

    /// Combinations of the values of IN restrictions.
    #[allow(clippy::missing_errors_doc)]
    pub fn combinations(&self, what: &str, count: usize) -> Result<(), CqlError> {
        let threshold = self.rails.in_select_cartesian_product;
        self.max("in_select_cartesian_product", threshold, count, |passed| {
            match passed.is_warning {
                true => format!(
                    "The cartesian product of the IN restrictions on {what} produces {count} values, this exceeds warning threshold of {}.",
                    passed.threshold
                ),
                false => format!(
                    "Aborting query because the cartesian product of the IN restrictions on {what} produces {count} values, this exceeds fail threshold of {}.",
                    passed.threshold
                ),
            }
        })
    }

    /// A filter on several columns that change, at a level that has replicas put together.
    #[allow(clippy::missing_errors_doc)]
    pub fn intersection(&self) -> Result<(), CqlError> {
        let name = "intersect_filtering_query";
        let feature = "Filtering query with intersection on mutable columns at consistency level requiring coordinator reconciliation";
        if !self.rails.intersect_filtering_query {
            return Err(self.fail(name, Some(INTERSECTION), &format!("{feature} is not allowed")));
        }
        if self.rails.intersect_filtering_query_warned {
            self.warn(name, Some(INTERSECTION), &format!("{feature} is not recommended"));
        }
        Ok(())
    }

    // ---- writes

    /// A write to a disk that holds much, or too much; clients are told of it now and then.
    #[allow(clippy::missing_errors_doc)]
    pub fn disk_usage(&self, is_full: bool, is_told: bool) -> Result<(), CqlError> {
        let message = match is_full {
            true => "Write request failed because disk usage exceeds failure threshold",
            false => "Replica disk usage exceeds warning threshold",
        };
        let text = violation("replica_disk_usage", None, message);
        if is_told {
            self.warnings.borrow_mut().push(text.clone());
        }
        if is_full { Err(CqlError::Invalid(text)) } else { Ok(()) }
    }

    /// USING TIMESTAMP.
    #[allow(clippy::missing_errors_doc)]
    pub fn user_timestamps(&self) -> Result<(), CqlError> {
        let feature = "User provided timestamps (USING TIMESTAMP)";
        self.flag("user_timestamps", self.rails.user_timestamps, feature)
    }

    /// What a statement says of its time, against that of the node, in microseconds.
    #[allow(clippy::missing_errors_doc)]
    pub fn timestamp(&self, table: &str, timestamp: i64, now: i64) -> Result<(), CqlError> {
        let name = ("maximum_timestamp", Some(FUTURE));
        let beyond = |limit: i64| timestamp > now.saturating_add(limit);
        self.threshold(name, self.rails.maximum_timestamp, beyond, |passed| {
            format!(
                "The modification to table {table} has a timestamp {timestamp} after the maximum allowable {} threshold {}",
                passed.side(),
                now.saturating_add(passed.threshold)
            )
        })?;
        let name = ("minimum_timestamp", Some(PAST));
        let beyond = |limit: i64| timestamp < now.saturating_sub(limit);
        self.threshold(name, self.rails.minimum_timestamp, beyond, |passed| {
            format!(
                "The modification to table {table} has a timestamp {timestamp} before the minimum allowable {} threshold {}",
                passed.side(),
                now.saturating_sub(passed.threshold)
            )
        })
    }

    /// An operation on a list that reads it first.
    #[allow(clippy::missing_errors_doc)]
    pub fn list_operation(&self, what: &str) -> Result<(), CqlError> {
        let enabled = self.rails.read_before_write_list_operations;
        let feature = format!("{what} requiring read before write");
        self.flag("read_before_write_list_operations", enabled, &feature)
    }

    /// A value of a column, or of an element of it.
    #[allow(clippy::missing_errors_doc)]
    pub fn value_size(&self, column: &str, size: usize) -> Result<(), CqlError> {
        self.max("column_value_size", self.rails.column_value_size, size, |passed| {
            format!(
                "Value of column '{column}' has size {size}, this exceeds the {} threshold of {}.",
                passed.side(),
                passed.threshold
            )
        })
    }

    /// Elements of a collection that is written.
    #[allow(clippy::missing_errors_doc)]
    pub fn collection_items(&self, column: &str, items: usize) -> Result<(), CqlError> {
        self.max("items_per_collection", self.rails.items_per_collection, items, |passed| {
            format!(
                "Detected collection {column} with {items} items, this exceeds the {} threshold of {}.",
                passed.side(),
                passed.threshold
            )
        })
    }

    /// Bytes of a collection that is written, with what its cells cost beside.
    #[allow(clippy::missing_errors_doc)]
    pub fn collection_size(&self, column: &str, size: usize) -> Result<(), CqlError> {
        self.max("collection_size", self.rails.collection_size, size, |passed| {
            format!(
                "Detected collection {column} of size {size}, this exceeds the {} threshold of {}.",
                passed.side(),
                passed.threshold
            )
        })
    }
}
