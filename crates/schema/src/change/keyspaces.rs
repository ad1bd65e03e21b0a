//! CREATE, ALTER and DROP KEYSPACE.

use std::collections::BTreeMap;

use crate::change::{Context, Outcome};
use crate::error::SchemaError;
use crate::keyspace::Keyspace;
use crate::properties::{self, Properties};
use crate::replication::{Replication, Strategy};

const KNOWN: [&str; 2] = ["durable_writes", "replication"];

/// The options of replication if they are given and name a class.
fn replication_map(properties: &Properties) -> Result<Option<&[(String, String)]>, SchemaError> {
    properties::check_unique(properties)?;
    properties::check_known(properties, &KNOWN)?;
    let Some(map) = properties::map(properties, "replication")? else { return Ok(None) };
    if !map.iter().any(|(name, _)| name == "class") && !map.is_empty() {
        return SchemaError::config("Missing replication strategy class");
    }
    Ok(Some(map))
}

fn refuse_local(replication: &Replication) -> Result<(), SchemaError> {
    if replication.strategy != Strategy::Local {
        return Ok(());
    }
    SchemaError::invalid(
        "Unable to use given strategy class: LocalStrategy is reserved for internal use.",
    )
}

impl Context<'_> {
    pub(super) fn create_keyspace(
        &mut self,
        if_not_exists: bool,
        properties: &Properties,
    ) -> Result<Outcome, SchemaError> {
        let Some(map) = replication_map(properties)? else {
            return SchemaError::invalid("Missing mandatory option 'replication'");
        };
        if self.current().is_some() {
            if if_not_exists {
                return Ok(Outcome::Unchanged);
            }
            let keyspace = self.keyspace.to_owned();
            return Err(SchemaError::AlreadyExists { keyspace, table: String::new() });
        }
        let durable_writes = properties::boolean(properties, "durable_writes")?.unwrap_or(true);
        if map.is_empty() {
            // a server error on Cassandra
            return SchemaError::config("Missing replication strategy class");
        }
        let replication = self.replication(map, &BTreeMap::new())?;
        refuse_local(&replication)?;
        self.check_replication(&replication)?;
        let keyspace = Keyspace::new(self.keyspace, durable_writes, replication);
        Ok(Outcome::Changed(Box::new(keyspace)))
    }

    pub(super) fn alter_keyspace(
        &mut self,
        if_exists: bool,
        properties: &Properties,
    ) -> Result<Outcome, SchemaError> {
        let map = replication_map(properties)?;
        let Some(current) = self.current() else {
            if if_exists {
                return Ok(Outcome::Unchanged);
            }
            let text = format!("Keyspace '{}' doesn't exist", self.keyspace);
            return SchemaError::invalid(text);
        };
        let mut keyspace = Keyspace::clone(current);
        if let Some(durable) = properties::boolean(properties, "durable_writes")? {
            keyspace.durable_writes = durable;
        }
        if let Some(map) = map.filter(|map| !map.is_empty()) {
            keyspace.replication = self.replication(map, &keyspace.replication.options)?;
        }
        refuse_local(&keyspace.replication)?;
        self.check_replication(&keyspace.replication)?;
        Ok(Outcome::Changed(Box::new(keyspace)))
    }

    pub(super) fn drop_keyspace(&mut self, if_exists: bool) -> Result<Outcome, SchemaError> {
        match self.current() {
            Some(_) => Ok(Outcome::Gone),
            None if if_exists => Ok(Outcome::Unchanged),
            None => SchemaError::invalid(format!("Keyspace '{}' doesn't exist", self.keyspace)),
        }
    }
}

fn full_replicas(replication: &Replication) -> u32 {
    match &replication.strategy {
        Strategy::Simple(count) => count.full(),
        Strategy::NetworkTopology(counts) => counts.values().map(|count| count.full()).sum(),
        _ => 1,
    }
}

/// What a client is told whose statement adds replicas.
pub(super) fn growth_warning(before: &Keyspace, after: &Keyspace) -> Option<String> {
    let grew = full_replicas(&before.replication) < full_replicas(&after.replication);
    grew.then(|| {
        "When increasing replication factor you need to run a full (-full) repair to distribute the data."
            .to_owned()
    })
}
