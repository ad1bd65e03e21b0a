//! Options of a table from a statement's properties (`TableAttributes`, `TableParams.validate`).

use std::collections::BTreeMap;

use crate::error::SchemaError;
use crate::jvm;
use crate::params::caching::CachingParams;
use crate::params::compaction::CompactionParams;
use crate::params::compression::CompressionParams;
use crate::params::retry::SpeculativeRetry;
use crate::params::{ReadRepair, TableParams};
use crate::properties::{self, Properties};
use crate::table_id::TableId;

/// The properties that a table or view may have after `WITH` (`TableAttributes.allKeywords`).
/// `extensions` may be named, and is ignored.
pub const TABLE_PROPERTIES: [&str; 21] = [
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

/// The longest time to live, 20 years in seconds (`Attributes.MAX_TTL`).
const MAX_TTL: i32 = 20 * 365 * 24 * 60 * 60;

/// The best rate of false positives that a Bloom filter of 20 buckets an element reaches
/// (`BloomCalculations.minSupportedBloomFilterFpChance`).
const MIN_BLOOM_FILTER_FP_CHANCE: f64 = 6.71e-5;

fn owned(map: &[(String, String)]) -> BTreeMap<String, String> {
    map.iter().cloned().collect()
}

impl TableParams {
    /// The options of a new table. `memtables`: names of `cassandra.yaml`'s memtable
    /// configurations, besides `default`.
    pub fn from_properties(
        properties: &Properties,
        memtables: &[String],
    ) -> Result<Self, SchemaError> {
        properties::check_unique(properties)?;
        properties::check_known(properties, &TABLE_PROPERTIES)?;
        if properties::has(properties, "auto_repair") {
            return SchemaError::config(
                "auto_repair option is not supported unless auto-repair is enabled with \
                 -Dcassandra.autorepair.enable=true",
            );
        }
        let mut params = Self::default().with(properties, memtables)?;
        if !properties::has(properties, "bloom_filter_fp_chance") {
            params.bloom_filter_fp_chance = params.compaction.default_bloom_filter_fp_chance();
        }
        params.validate()?;
        Ok(params)
    }

    /// Refuses values that cannot be read; the rest is for [`TableParams::from_properties`].
    /// Cassandra looks at these before it looks whether the keyspace exists.
    pub(crate) fn check_values(
        properties: &Properties,
        memtables: &[String],
    ) -> Result<(), SchemaError> {
        Self::default().with(properties, memtables).map(|_| ())
    }

    /// These options with some of them altered.
    pub fn altered(
        &self,
        properties: &Properties,
        memtables: &[String],
    ) -> Result<Self, SchemaError> {
        // the properties must do by themselves first
        Self::from_properties(properties, memtables)?;
        if table_id(properties)?.is_some() {
            return SchemaError::config("Cannot alter table id.");
        }
        self.clone().with(properties, memtables)
    }

    fn with(mut self, properties: &Properties, memtables: &[String]) -> Result<Self, SchemaError> {
        let boolean = |name| properties::boolean(properties, name);
        let int = |name| properties::int(properties, name);
        let double = |name| properties::double(properties, name);
        let text = |name| properties::text(properties, name);
        let map = |name| properties::map(properties, name).map(|map| map.map(owned));
        let set = |to: &mut i32, value: Option<i32>| *to = value.unwrap_or(*to);
        if let Some(value) = boolean("allow_auto_snapshot")? {
            self.allow_auto_snapshot = value;
        }
        if let Some(value) = double("bloom_filter_fp_chance")? {
            self.bloom_filter_fp_chance = value;
        }
        if let Some(map) = map("caching")? {
            self.caching = CachingParams::from_map(&map)?;
        }
        if let Some(comment) = text("comment")? {
            self.comment = comment.to_owned();
        }
        if let Some(map) = map("compaction")? {
            self.compaction = CompactionParams::from_map(&map)?;
        }
        if let Some(map) = map("compression")? {
            self.compression = CompressionParams::from_map(&map)?;
        }
        if let Some(name) = text("memtable")? {
            if name != "default" && !memtables.iter().any(|known| known == name) {
                return SchemaError::config(format!(
                    "Memtable configuration \"{name}\" not found."
                ));
            }
            self.memtable = name.to_owned();
        }
        set(&mut self.default_time_to_live, int("default_time_to_live")?);
        set(&mut self.gc_grace_seconds, int("gc_grace_seconds")?);
        if let Some(value) = boolean("incremental_backups")? {
            self.incremental_backups = value;
        }
        set(&mut self.max_index_interval, int("max_index_interval")?);
        set(&mut self.memtable_flush_period_in_ms, int("memtable_flush_period_in_ms")?);
        set(&mut self.min_index_interval, int("min_index_interval")?);
        if let Some(policy) = text("speculative_retry")? {
            self.speculative_retry = SpeculativeRetry::parse(policy)?;
        }
        if let Some(policy) = text("additional_write_policy")? {
            self.additional_write_policy = SpeculativeRetry::parse(policy)?;
        }
        if let Some(value) = double("crc_check_chance")? {
            self.crc_check_chance = value;
        }
        if let Some(value) = boolean("cdc")? {
            self.cdc = value;
        }
        if let Some(name) = text("read_repair")? {
            // Cassandra answers a server error here
            let Some(value) = ReadRepair::parse(name) else {
                return SchemaError::config(format!(
                    "No enum constant org.apache.cassandra.service.reads.repair.ReadRepairStrategy.{}",
                    name.to_uppercase()
                ));
            };
            self.read_repair = value;
        }
        Ok(self)
    }

    /// Do the options do, together?
    pub fn validate(&self) -> Result<(), SchemaError> {
        self.compaction.validate()?;
        let chance = self.bloom_filter_fp_chance;
        let does = chance > MIN_BLOOM_FILTER_FP_CHANCE && chance <= 1.0;
        if !does {
            return SchemaError::config(format!(
                "bloom_filter_fp_chance must be larger than {} and less than or equal to 1.0 (got {})",
                jvm::double(MIN_BLOOM_FILTER_FP_CHANCE),
                jvm::double(chance)
            ));
        }
        let chance = self.crc_check_chance;
        if !(0.0..=1.0).contains(&chance) {
            return SchemaError::config(format!(
                "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got {})",
                jvm::double(chance)
            ));
        }
        at_least("default_time_to_live", self.default_time_to_live, 0)?;
        if self.default_time_to_live > MAX_TTL {
            return SchemaError::config(format!(
                "default_time_to_live must be less than or equal to {MAX_TTL} (got {})",
                self.default_time_to_live
            ));
        }
        at_least("gc_grace_seconds", self.gc_grace_seconds, 0)?;
        at_least("min_index_interval", self.min_index_interval, 1)?;
        if self.max_index_interval < self.min_index_interval {
            return SchemaError::config(format!(
                "max_index_interval must be greater than or equal to min_index_interval ({}) (got {})",
                self.min_index_interval, self.max_index_interval
            ));
        }
        at_least("memtable_flush_period_in_ms", self.memtable_flush_period_in_ms, 0)
    }
}

fn at_least(name: &str, value: i32, least: i32) -> Result<(), SchemaError> {
    if value >= least {
        return Ok(());
    }
    SchemaError::config(format!("{name} must be greater than or equal to {least} (got {value})"))
}

/// The id that a statement asks for.
pub(crate) fn table_id(properties: &Properties) -> Result<Option<TableId>, SchemaError> {
    let Some(text) = properties::text(properties, "id")? else { return Ok(None) };
    match TableId::parse(text) {
        Some(id) => Ok(Some(id)),
        None => SchemaError::config("Invalid table id"),
    }
}
