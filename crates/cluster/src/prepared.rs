//! Prepared statements that a shard keeps.

use std::rc::Rc;
use std::sync::Arc;

use cql::{Plan, Prepared, ResultColumn, Variable};
use protocol::{BindMetadata, Column, Id, ResultMetadata, prepared_id};
use schema::Schema;
use types::hash::HashMap;

use crate::answer::{PreparedInfo, UseWarning};

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
    /// The keyspace that sessions should have, or none, where they are warned of another.
    wants: Option<Option<Rc<str>>>,
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

/// The keyspace that a session should have which runs a statement; nothing where it makes no
/// difference. Of batches Cassandra cannot tell, and what is not about one table has no keyspace.
fn wanted_keyspace(prepared: &Prepared, own: Option<&Rc<str>>) -> Option<Option<Rc<str>>> {
    if prepared.is_qualified || matches!(prepared.plan, Plan::Batch(_)) {
        return None;
    }
    let is_of_a_table =
        matches!(prepared.plan, Plan::Select(_) | Plan::Modify(_) | Plan::Truncate(_));
    Some(own.filter(|_| is_of_a_table).cloned())
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
        let keyspace: Option<Rc<str>> = keyspace.map(Rc::from);
        let wants = wanted_keyspace(&prepared, keyspace.as_ref());
        Self { text: text.into(), keyspace, prepared, epoch, info, wants }
    }

    /// What a session is warned of that runs the statement, and has another keyspace.
    #[inline]
    pub fn use_warning(&self, session: Option<&str>) -> Option<Box<UseWarning>> {
        let statement = self.wants.as_ref()?.as_deref();
        (statement != session).then(|| UseWarning::new(session, statement, &self.info.id))
    }

    /// Are the tables that it was planned for those of a schema?
    pub fn is_of(&self, schema: &Schema) -> bool {
        self.prepared.plan.tables().iter().all(|was| {
            let now = schema.table(&was.keyspace, &was.name);
            now.is_some_and(|now| was.keeps_statements(now))
        })
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
    /// What went since that was last asked.
    gone: Vec<Rc<Entry>>,
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
                self.gone.push(gone);
            }
        }
    }

    /// The statements that went to make room since this was last asked.
    pub fn take_evicted(&mut self) -> Vec<Rc<Entry>> {
        std::mem::take(&mut self.gone)
    }

    /// Takes out the statements whose tables are not in the schema as they were.
    pub fn take_outdated(&mut self, schema: &Schema) -> Vec<Rc<Entry>> {
        // each once, of the ids that find it
        let own = self.entries.iter().filter(|(id, entry)| **id == entry.info.id);
        let outdated = own.map(|(_, entry)| entry).filter(|entry| !entry.is_of(schema));
        let outdated: Vec<_> = outdated.cloned().collect();
        outdated.iter().for_each(|entry| self.remove(entry));
        outdated
    }

    /// Are so many statements, with so many bytes of text, all that is kept?
    pub fn is_full_at(&self, statements: usize, bytes: usize) -> bool {
        bytes + statements * ENTRY_BYTES > self.limit
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
