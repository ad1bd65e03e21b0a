//! What `nodetool` asks of the node, answered by its layers.
//!
//! One file a domain, each with a trait of `admin::operator`.

mod caches;
mod compaction;
mod hints;
mod network;
mod node;
mod ring;
mod settings;
mod snapshots;
mod sstables;
mod tables;

use std::net::SocketAddr;
use std::rc::Rc;

use admin::{Answer, Refusal, Reply, TableName};
use cluster::{Identity, Shard};
use schema::TableId;
use storage::shards::Stopping;
use storage::{Engine, StorageError};

use crate::error::NodeError;
use crate::node::Node;
pub(crate) use tables::key_bytes;

/// The node of this process, for its operator; on the first shard.
pub(crate) struct Operations(pub Rc<Node>);

impl Node {
    /// What the node answers to a verb of nodetool, as it does at its socket; on the first shard.
    pub async fn carry_out(self: &Rc<Self>, verb: admin::Verb) -> Reply {
        let outcome = admin::ask(self.env(), &Operations(Rc::clone(self)), verb.clone()).await;
        Reply::text(&verb, &outcome).unwrap_or_else(|e| Reply {
            out: String::new(),
            err: format!("error: {e}\n"),
            exit: 2,
        })
    }
}

pub(crate) fn failed(error: impl std::fmt::Display) -> Refusal {
    Refusal::Failed(error.to_string())
}

impl Operations {
    pub(crate) fn shard(&self) -> Answer<&Rc<Shard>> {
        self.0.shard().ok_or_else(|| failed(Stopping))
    }

    pub(crate) fn identity(&self) -> Answer<&Identity> {
        Ok(self.shard()?.identity())
    }

    pub(crate) fn engine(&self) -> &Rc<Engine> {
        self.0.engine()
    }

    fn storage(&self) -> Answer<Rc<storage::NodeStore>> {
        self.engine().node().ok_or_else(|| failed(Stopping))
    }

    pub(crate) fn address(&self) -> Answer<SocketAddr> {
        let identity = self.identity()?;
        Ok(SocketAddr::new(identity.broadcast, identity.storage_port))
    }

    /// Tables of a keyspace by name; all of them for none.
    pub(crate) fn tables(&self, keyspace: &str, names: &[String]) -> Answer<Vec<TableId>> {
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
