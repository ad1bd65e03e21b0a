//! Prepared statements that a shard keeps.

use std::rc::Rc;
use std::sync::Arc;

use cql::{Prepared, ResultColumn, Variable};
use protocol::{BindMetadata, Column, Id, ResultMetadata, prepared_id};
use types::hash::HashMap;

use crate::answer::PreparedInfo;

/// A statement with all that its executions need.
pub(crate) struct Entry {
    /// The text, for other shards and other epochs.
    pub text: Rc<str>,
    /// The keyspace that it was prepared in.
    pub keyspace: Option<Rc<str>>,
    /// The plan.
    pub prepared: Prepared,
    /// The epoch of the schema that it was planned under.
    pub epoch: u64,
    /// What clients are told.
    pub info: PreparedInfo,
}

/// The columns that the protocol shows.
pub(crate) fn columns(columns: &[ResultColumn]) -> Vec<Column> {
    let column = |column: &ResultColumn| Column {
        keyspace: Arc::clone(&column.keyspace),
        table: Arc::clone(&column.table),
        name: column.name.to_string(),
        cql_type: column.ty.clone(),
        reversed: column.reversed,
    };
    columns.iter().map(column).collect()
}

/// The metadata of a statement's result.
pub(crate) fn result_metadata(prepared: &Prepared) -> Arc<ResultMetadata> {
    Arc::new(match &prepared.result {
        Some(result) => ResultMetadata::new(&columns(result), class_name),
        None => ResultMetadata::none(),
    })
}

/// Class strings of types.
pub fn class_name(ty: &types::CqlType) -> String {
    ty.to_marshal_string()
}

fn variable(variable: &Variable) -> Column {
    Column {
        keyspace: Arc::clone(&variable.keyspace),
        table: Arc::clone(&variable.table),
        name: variable.name.to_string(),
        cql_type: variable.ty.clone(),
        reversed: false,
    }
}

impl Entry {
    /// Around a plan.
    pub fn new(text: &str, keyspace: Option<&str>, prepared: Prepared, epoch: u64) -> Self {
        // A statement that names its keyspace is the same one in every session.
        let own = keyspace.filter(|_| !prepared.is_qualified);
        let info = PreparedInfo {
            id: prepared_id(own, text),
            variables: Arc::new(BindMetadata {
                variables: prepared.variables.iter().map(variable).collect(),
                partition_key: prepared.partition_key_markers.clone(),
            }),
            result: result_metadata(&prepared),
            is_conditional: prepared.plan.is_conditional(),
            warnings: prepared.warnings.clone(),
            use_warning: None,
        };
        Self { text: text.into(), keyspace: keyspace.map(Rc::from), prepared, epoch, info }
    }

    /// The ids that find it: with and without the session's keyspace.
    pub fn ids(&self) -> [Id; 2] {
        [self.info.id, prepared_id(self.keyspace.as_deref(), &self.text)]
    }
}

/// The statements of a shard, the oldest of which go when there are too many bytes of text.
#[derive(Default)]
pub(crate) struct PreparedCache {
    entries: HashMap<Id, Rc<Entry>>,
    order: std::collections::VecDeque<Id>,
    bytes: usize,
    limit: usize,
    evicted: u64,
}

/// What an entry is taken to cost beside its text.
const ENTRY_BYTES: usize = 2048;

impl PreparedCache {
    /// At most about `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Bytes at most, about.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The statement of an id.
    pub fn get(&self, id: &[u8]) -> Option<Rc<Entry>> {
        let id: Id = id.try_into().ok()?;
        self.entries.get(&id).cloned()
    }

    /// Keeps a statement.
    pub fn put(&mut self, entry: &Rc<Entry>) {
        for id in entry.ids() {
            if self.entries.insert(id, Rc::clone(entry)).is_none() {
                self.order.push_back(id);
                self.bytes += entry.text.len() + ENTRY_BYTES;
            }
        }
        while self.bytes > self.limit && self.order.len() > 2 {
            let Some(oldest) = self.order.pop_front() else { return };
            if let Some(gone) = self.entries.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(gone.text.len() + ENTRY_BYTES);
                self.evicted += 1;
            }
        }
    }

    /// Forgets a statement.
    pub fn remove(&mut self, entry: &Rc<Entry>) {
        for id in entry.ids() {
            if self.entries.get(&id).is_some_and(|kept| Rc::ptr_eq(kept, entry)) {
                self.entries.remove(&id);
                self.order.retain(|kept| *kept != id);
                self.bytes = self.bytes.saturating_sub(entry.text.len() + ENTRY_BYTES);
            }
        }
    }

    /// Number of statements, and of those that went.
    pub fn stats(&self) -> (usize, u64) {
        (self.entries.len(), self.evicted)
    }
}
