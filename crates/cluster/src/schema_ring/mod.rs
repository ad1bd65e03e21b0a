//! The schema as a ring shares it: what other nodes are told of it, and what of theirs becomes ours.
//!
//! [`Agreement`] says whom to ask and tell; the four calls here are what that needs of the node. Sockets are elsewhere.

mod agreement;
#[cfg(test)]
mod tests;

pub use agreement::{
    Agreement, BACK_OFF, Effect, Event, MIGRATION_DELAY, PULL_INTERVAL, PULL_LIMIT,
    PULLS_OF_A_VERSION, Pull, Said, Version,
};

use std::rc::Rc;

use rows::Mutation;
use schema::{MergeError, MutationError, SchemaMutation};
use thiserror::Error;

use crate::coordinator::Coordinator;
use crate::schema_owner::SchemaOwner;
use crate::shard_context::STATEMENT;

/// From where a change came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A statement of a client of this node: the other nodes are sent it.
    Here,
    /// Another node: each tells the others itself.
    Peer,
}

/// A change of the schema, durable and known to all shards.
#[derive(Clone, Debug)]
pub struct News {
    /// From where.
    pub origin: Origin,
    /// The version from now on.
    pub version: Version,
    /// What changed, as it is sent in SCHEMA_PUSH.
    pub mutations: Vec<Mutation>,
}

/// Who is told of changes; on the first shard.
pub type Watcher = Rc<dyn Fn(News)>;

/// Why mutations of another node are not merged. Nothing of them is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchemaRefused {
    /// They are no mutations of `system_schema` as it is known here.
    #[error(transparent)]
    Mutation(#[from] MutationError),
    /// They make no sense.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// They cannot be kept: the commit log failed, or the node starts or stops.
    #[error("{0}")]
    Failed(String),
}

impl SchemaOwner {
    /// Tells whoever wants to know of a change that is done.
    pub(crate) fn tell(&self, origin: Origin, mutations: &[SchemaMutation], sends_cdc: bool) {
        let watchers = self.watchers.borrow().clone();
        if watchers.is_empty() {
            return;
        }
        let schema = std::sync::Arc::clone(self.state.borrow().schema());
        let sent = mutations.iter().filter_map(|mutation| {
            let mutation = mutation.clone();
            let sent = if sends_cdc { mutation } else { mutation.without_cdc() };
            // its columns are those of the schema, or it would not have been written
            sent.to_mutation(&schema).ok().flatten()
        });
        let news = News { origin, version: schema.version(), mutations: sent.collect() };
        watchers.iter().for_each(|watcher| watcher(news.clone()));
    }
}

impl Coordinator {
    /// Has this called after each change of the schema, on the first shard, where the node owns its schema.
    pub fn watch_schema(&self, watcher: impl Fn(News) + 'static) {
        let owner = self.owner.get();
        assert!(owner.is_some(), "the schema is watched where it is owned");
        if let Some(owner) = owner {
            owner.watchers.borrow_mut().push(Rc::new(watcher));
        }
    }

    /// The answer to SCHEMA_PULL: everything of the schema that nodes share, a mutation of each keyspace, its tombstones
    /// included.
    ///
    /// # Errors
    /// If the node is starting or stopping.
    pub async fn schema_to_send(&self) -> Result<Vec<Mutation>, SchemaRefused> {
        let gather = |first: Rc<Self>| async move {
            let Some(owner) = first.owner.get() else {
                return Err(SchemaRefused::Failed("the node is still starting".to_owned()));
            };
            let state = owner.state.borrow();
            let sends_cdc = first.config.cdc.is_some();
            let all = state.mutations().into_iter();
            let all = all.map(|mutation| if sends_cdc { mutation } else { mutation.without_cdc() });
            let all = all.map(|mutation| mutation.to_mutation(state.schema()));
            Ok(all.filter_map(Result::transpose).collect::<Result<_, _>>()?)
        };
        let gathered = self.shards.call_async(0, STATEMENT, gather).await;
        gathered.map_err(|stopping| SchemaRefused::Failed(stopping.to_string()))?
    }

    /// Merges mutations of another node, pulled or pushed: their rows are durable and every shard is under the epoch with
    /// them when this returns. The version then; it may be that from before, and that is no error.
    ///
    /// # Errors
    /// If they make no sense here. Then nothing has changed.
    pub async fn merge_schema(&self, mutations: Vec<Mutation>) -> Result<Version, SchemaRefused> {
        let run = |first: Rc<Self>| async move { first.merge_as_owner(&mutations).await };
        let merged = self.shards.call_async(0, STATEMENT, run).await;
        merged.map_err(|stopping| SchemaRefused::Failed(stopping.to_string()))?
    }

    async fn merge_as_owner(
        self: &Rc<Self>,
        mutations: &[Mutation],
    ) -> Result<Version, SchemaRefused> {
        let Some(owner) = self.owner.get() else {
            return Err(SchemaRefused::Failed("the node is still starting".to_owned()));
        };
        let read: Result<Vec<_>, _> = mutations.iter().map(SchemaMutation::from_mutation).collect();
        let _turn = owner.turn.acquire(1).await;
        // The merge is tried on a copy: until it is durable, it has not happened.
        let mut state = owner.state.borrow().clone();
        let merged = state.merge(&read?, self.env.unix_micros() / 1_000_000)?;
        let version = state.schema().version();
        if !merged.mutations.is_empty() {
            let installed = self.install(owner, state, &merged.mutations, &merged.events).await;
            installed.map_err(|error| SchemaRefused::Failed(error.message))?;
            owner.tell(Origin::Peer, &merged.mutations, self.config.cdc.is_some());
        }
        Ok(version)
    }
}
