//! What is set of tables. Of `memtable.configurations` that is which there are, by the rules of
//! `schema.MemtableParams`: they are all alike here, and tables may name them.

use std::collections::BTreeMap;

use super::{Get, class};
use crate::error::Result;
use crate::key::Value;
use crate::section::{LogCompression, Tables};

const KEY: &str = "memtable.configurations";
/// The one that tables have which name none.
const DEFAULT: &str = "default";
const PACKAGE: &str = "org.apache.cassandra.db.memtable.";
/// The memtables of Cassandra 5.0, and those that 4.1 and 5.0 have for tests of their own.
const CLASSES: [&str; 3] = ["SkipListMemtable", "ShardedSkipListMemtable", "TrieMemtable"];

impl Get<'_> {
    pub fn tables(&self) -> Result<Tables> {
        Ok(Tables {
            default_compaction: self.default_compaction(),
            compact_from_start: self.bool("autocompaction_on_startup_enabled"),
            have_ids_by_name: self.bool("use_deterministic_table_id"),
            memtables: self.memtables()?,
        })
    }

    fn default_compaction(&self) -> Option<BTreeMap<String, String>> {
        let LogCompression { class, mut parameters } = self.compression("default_compaction")?;
        parameters.insert("class".to_owned(), class);
        Some(parameters)
    }

    /// The names of configurations besides `default`.
    fn memtables(&self) -> Result<Vec<String>> {
        let Value::Map(configurations) = self.value(KEY) else { return Ok(Vec::new()) };
        for (name, options) in &configurations {
            self.check_memtable(name, options, &configurations)?;
        }
        let names = configurations.into_iter().map(|(name, _)| name);
        Ok(names.filter(|name| name != DEFAULT).collect())
    }

    fn check_memtable(&self, name: &str, options: &Value, all: &[(String, Value)]) -> Result<()> {
        let of = |options: &Value, key: &str| match options {
            Value::Map(entries) => {
                let found = entries.iter().find(|(name, _)| name == key);
                found.and_then(|(_, value)| value.show())
            }
            _ => None,
        };
        let (own_class, mut inherits) = (of(options, "class_name"), of(options, "inherits"));
        if own_class.is_none() && inherits.is_none() {
            return self.refuse(KEY, format!("{name}: set class_name or inherits"));
        }
        if let Some(own) = own_class.filter(|own| !CLASSES.contains(&class(own, PACKAGE))) {
            let why = format!("{name}: {own} is not one of {}", CLASSES.join(", "));
            return self.refuse(KEY, why);
        }
        // at most as many steps as there are configurations, unless they go in a circle
        for _ in 0..=all.len() {
            let Some(parent) = inherits else { return Ok(()) };
            if parent == name {
                return self.refuse(KEY, format!("Detected loop when processing key {name}"));
            }
            match all.iter().find(|(other, _)| *other == parent) {
                Some((_, options)) => inherits = of(options, "inherits"),
                None if parent == DEFAULT => return Ok(()),
                None => {
                    let why =
                        format!("Configuration entry {name} inherits non-existing entry {parent}.");
                    return self.refuse(KEY, why);
                }
            }
        }
        self.refuse(KEY, format!("Detected loop when processing key {name}"))
    }
}
