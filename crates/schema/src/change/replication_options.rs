//! Replication from a statement's options: class, options completed, validated
//! (`AbstractReplicationStrategy` and its kinds).

use std::collections::BTreeMap;

use crate::change::{ChangeOptions, Context};
use crate::error::SchemaError;
use crate::jvm;
use crate::replication::{LOCATOR, ReplicaCount, Replication, Strategy};

const FACTOR: &str = "replication_factor";

impl Context<'_> {
    /// The replication of the statement's map, completed from the previous one.
    pub(super) fn replication(
        &self,
        map: &[(String, String)],
        previous: &BTreeMap<String, String>,
    ) -> Result<Replication, SchemaError> {
        let mut options: BTreeMap<String, String> = map.iter().cloned().collect();
        let class = options.remove("class").unwrap_or_default();
        let class = if class.contains('.') { class } else { format!("{LOCATOR}{class}") };
        if class == format!("{LOCATOR}OldNetworkTopologyStrategy") {
            return SchemaError::config(
                "The support for the OldNetworkTopologyStrategy has been removed in C* version 4.0. \
                 The keyspace strategy should be switch to NetworkTopologyStrategy",
            );
        }
        let known = ["LocalStrategy", "SimpleStrategy", "NetworkTopologyStrategy"];
        let known = class.strip_prefix(LOCATOR).is_some_and(|name| known.contains(&name));
        if !known {
            let text = format!("Unable to find replication strategy class '{class}'");
            return SchemaError::config(text);
        }
        if class.ends_with(".SimpleStrategy") && !options.contains_key(FACTOR) {
            options.insert(FACTOR.to_owned(), self.default_factor(previous));
        }
        if class.ends_with(".NetworkTopologyStrategy") {
            self.expand(&mut options, previous);
        }
        Ok(Replication::new(class, options))
    }

    fn default_factor(&self, previous: &BTreeMap<String, String>) -> String {
        let default = || self.options.default_replication.to_string();
        previous.get(FACTOR).cloned().unwrap_or_else(default)
    }

    /// `replication_factor` stands for every datacenter that is not named; those that were there
    /// stay as they were.
    fn expand(&self, options: &mut BTreeMap<String, String>, previous: &BTreeMap<String, String>) {
        if options.is_empty() {
            options.insert(FACTOR.to_owned(), self.default_factor(previous));
        }
        if let Some(factor) = options.remove(FACTOR) {
            for (name, count) in previous.iter().filter(|(name, _)| *name != FACTOR) {
                options.entry(name.clone()).or_insert_with(|| count.clone());
            }
            // a count that does not parse is refused by the validation that follows
            for name in self.options.datacenters.keys() {
                options.entry(name.clone()).or_insert_with(|| factor.clone());
            }
        }
        options.retain(|_, count| count != "0");
    }

    /// Validates, and warns of more replicas than nodes.
    pub(super) fn check_replication(
        &mut self,
        replication: &Replication,
    ) -> Result<(), SchemaError> {
        let names = replication.options.keys().collect();
        let names: Vec<&String> =
            jvm::string_order(names, jvm::copy_capacity(replication.options.len() + 1));
        let unrecognized = |name: &str, class: &str| {
            SchemaError::config(format!(
                "Unrecognized strategy option {{{name}}} passed to {class} for keyspace {}",
                self.keyspace
            ))
        };
        match &replication.strategy {
            Strategy::Simple(_) => {
                let text = replication.options.get(FACTOR).map_or("", String::as_str);
                let count = replica_count(text, self.options)?;
                if let Some(name) = names.iter().find(|name| name.as_str() != FACTOR) {
                    return unrecognized(name, "SimpleStrategy");
                }
                let nodes = self.options.datacenters.values().sum();
                self.warn_of_few_nodes(count, nodes, None);
            }
            Strategy::NetworkTopology(_) => {
                let mut counts = Vec::new();
                for name in &names {
                    let text = replication.options.get(*name).map_or("", String::as_str);
                    counts.push((*name, replica_count(text, self.options)?));
                }
                if names.is_empty() {
                    let text = "Configuration for at least one datacenter must be present";
                    return SchemaError::config(text);
                }
                let known = |name: &&&String| !self.options.datacenters.contains_key(**name);
                if let Some(name) = names.iter().find(known) {
                    return unrecognized(name, "NetworkTopologyStrategy");
                }
                for (name, count) in counts {
                    let nodes = self.options.datacenters.get(name).copied().unwrap_or(0);
                    self.warn_of_few_nodes(count, nodes, Some(name));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn warn_of_few_nodes(&mut self, count: ReplicaCount, nodes: usize, datacenter: Option<&str>) {
        let full = count.full() as usize;
        let ours = crate::stored::encode::REPLICATED_SYSTEM_KEYSPACES.contains(&self.keyspace);
        if ours || nodes == 0 || full <= nodes {
            return;
        }
        let place = datacenter.map(|dc| format!(" for datacenter {dc}")).unwrap_or_default();
        self.warnings.push(format!(
            "Your replication factor {full} for keyspace {} is higher than the number of nodes {nodes}{place}",
            self.keyspace
        ));
    }
}

/// `ReplicationFactor.fromString`.
fn replica_count(text: &str, options: &ChangeOptions) -> Result<ReplicaCount, SchemaError> {
    let number = |text: &str| {
        let parsed = text.parse::<i32>();
        parsed.map_err(|_| SchemaError::Config(format!("For input string: \"{text}\"")))
    };
    let (all, transient) = match text.split_once('/') {
        None => (number(text)?, 0),
        Some((_, rest)) if rest.contains('/') || rest.is_empty() => {
            let text = "Replication factor format is <replicas> or <replicas>/<transient>";
            return SchemaError::config(text);
        }
        Some((all, transient)) => (number(all)?, number(transient)?),
    };
    if transient != 0 && !options.transient_replication {
        return SchemaError::config("Transient replication is not enabled on this node");
    }
    if all < 0 {
        let text = format!("Replication factor must be non-negative, found {all}");
        return SchemaError::config(text);
    }
    if transient != 0 && transient >= all {
        return SchemaError::config(format!(
            "Transient replicas must be zero, or less than total replication factor. For {all}/{transient}"
        ));
    }
    if transient < 0 {
        return SchemaError::config(format!(
            "Amount of transient nodes should be strictly positive, but was: '{transient}'"
        ));
    }
    Ok(ReplicaCount { all: all.unsigned_abs(), transient: transient.unsigned_abs() })
}
