//! The one table of every key that is known: Cassandra 5.0.9's and ours.
//!
//! Names, kinds and defaults were read off the running `config.Config` of 5.0.9; nested keys
//! are dotted. A default of `null` means none, or one that the node derives.

mod guardrails;
mod network;
mod node;
pub(crate) mod own;
mod reasons;
mod replication;
mod security;
mod storage;
pub(crate) mod words;

use std::collections::BTreeMap;

use crate::key::Key;

/// All keys, in no particular order.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    [
        guardrails::KEYS,
        network::KEYS,
        node::KEYS,
        own::KEYS,
        replication::KEYS,
        security::KEYS,
        storage::KEYS,
    ]
    .into_iter()
    .flatten()
}

/// The table by name.
pub(crate) struct Index(BTreeMap<&'static str, &'static Key>);

impl Index {
    pub fn new() -> Self {
        Self(keys().map(|k| (k.name, k)).collect())
    }

    pub fn get(&self, name: &str) -> Option<&'static Key> {
        self.0.get(name).copied()
    }

    /// Whether nested keys exist below `name`.
    pub fn is_section(&self, name: &str) -> bool {
        let prefix = format!("{name}.");
        self.0.range(prefix.as_str()..).next().is_some_and(|(k, _)| k.starts_with(&prefix))
    }

    pub fn iter(&self) -> impl Iterator<Item = &'static Key> + '_ {
        self.0.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Value;

    #[test]
    fn names_are_unique_and_defaults_are_of_their_kind() {
        let mut names = std::collections::BTreeSet::new();
        for key in keys() {
            assert!(names.insert(key.name), "{} stands twice", key.name);
            let read = key.default_value();
            assert_eq!(read == Value::Null, key.default == "null", "{}", key.name);
            assert_eq!(read.or_null(), key.default, "{}", key.name);
        }
        assert!(names.len() > 500);
    }
}
