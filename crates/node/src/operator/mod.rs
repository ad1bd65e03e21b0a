//! What `nodetool` asks of the node, answered by its layers.
//!
//! One file a domain, each with a trait of `admin::operator`.

mod access;
mod caches;
mod compaction;
mod hints;
mod network;
mod node;
mod plan;
mod rebuild;
mod repair;
mod request_logs;
mod ring;
mod samples;
mod settings;
mod snapshots;
mod sstables;
mod streams;
mod tables;

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use admin::{Answer, Refusal, TableName};
use cluster::Shard;
use config::Config;
use env::{Env, Instant};
use schema::TableId;
use storage::shards::Stopping;
use storage::{Engine, StorageError};

use crate::caches::Caches;
use crate::client_server::ClientServer;
use crate::drain::Drain;
use crate::encryption::Encryption;
use crate::error::NodeError;
use crate::examination::Examine;
use crate::guardrails::NodeGuardrails;
use crate::journal::Journal;
use crate::metrics_view::MetricsView;
use crate::mode::Mode;
use crate::pools::Pools;
use crate::request_logs::RequestLogs;
use crate::ring_entry::RingEntry;
use crate::samplings::Samplings;
use crate::saved_caches::SavedCaches;
use crate::snapshots::TableSnapshots;
use crate::upkeep::Upkeep;

/// The node of this process, for its operator; on the first shard. One type answers all traits, so
/// it has whatever a verb may be about: more fields than other components.
pub(crate) struct Operations {
    pub(crate) env: Env,
    pub(crate) config: Arc<Config>,
    pub(crate) started: Instant,
    pub(crate) shard: Rc<Shard>,
    pub(crate) journal: Rc<Journal>,
    pub(crate) request_logs: Rc<RequestLogs>,
    pub(crate) mode: Rc<Mode>,
    pub(crate) drain: Rc<Drain>,
    pub(crate) clients: Rc<ClientServer>,
    pub(crate) encryption: Rc<Encryption>,
    pub(crate) metrics: Rc<MetricsView>,
    pub(crate) pools: Rc<Pools>,
    pub(crate) caches: Rc<Caches>,
    pub(crate) saved_caches: Rc<SavedCaches>,
    pub(crate) guardrails: Rc<NodeGuardrails>,
    pub(crate) snapshots: Rc<TableSnapshots>,
    pub(crate) upkeep: Upkeep,
    pub(crate) samplings: Rc<Samplings>,
    /// How to look at the machine, where somebody knows.
    pub(crate) examine: OnceCell<Examine>,
    pub(crate) ring_entry: Rc<RingEntry>,
}

fn failed(error: impl std::fmt::Display) -> Refusal {
    Refusal::Failed(error.to_string())
}

impl Operations {
    fn engine(&self) -> &Rc<Engine> {
        self.shard.engine()
    }

    /// In Cassandra's words (`StorageService.Mode`).
    fn mode_name(&self) -> &'static str {
        match (self.mode.is_ending(), self.shard.join()) {
            (false, Some(join)) => {
                let relocation = self.shard.relocation();
                relocation.and_then(|relocation| relocation.mode()).unwrap_or(join.mode())
            }
            _ => self.mode.name(),
        }
    }

    fn storage(&self) -> Answer<Rc<storage::NodeStore>> {
        self.engine().node().ok_or_else(|| failed(Stopping))
    }

    fn address(&self) -> SocketAddr {
        let identity = self.shard.identity();
        SocketAddr::new(identity.broadcast, identity.storage_port)
    }

    /// Tables of a keyspace by name; all of them for none.
    fn tables(&self, keyspace: &str, names: &[String]) -> Answer<Vec<TableId>> {
        let schema = self.engine().schema();
        let unknown = |what: &str| Refusal::Failed(what.to_owned());
        let Some(of) = schema.keyspace(keyspace) else {
            return Err(unknown(&format!("Keyspace [{keyspace}] does not exist.")));
        };
        if names.is_empty() {
            return Ok(of.tables.values().map(|table| table.id).collect());
        }
        let table = |name: &String| match of.tables.get(name) {
            Some(table) => Ok(table.id),
            None => Err(unknown(&format!("Unknown keyspace/cf pair ({keyspace}.{name})"))),
        };
        names.iter().map(table).collect()
    }

    /// A table with files.
    fn stored(&self, name: &TableName) -> Option<TableId> {
        let schema = self.engine().schema();
        let table = schema.table(&name.keyspace, &name.table);
        table.filter(|table| !table.is_virtual()).map(|table| table.id)
    }
}

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Self {
        failed(error)
    }
}

/// A table that was dropped meanwhile is nothing to complain about.
fn ignore_dropped(result: Result<(), StorageError>) -> Answer<()> {
    match result {
        Ok(()) | Err(StorageError::UnknownTable(_)) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}
