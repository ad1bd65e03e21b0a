//! The schema as one owner holds it: stored rows and the snapshot derived from them, in step.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::change::{self, Applied, ChangeKind, ChangeOptions, SchemaChange, SchemaEvent, Target};
use crate::error::SchemaError;
use crate::keyspace::Keyspace;
use crate::schema::Schema;
use crate::stored::{LoadError, SchemaMutation, SchemaRows};
use crate::table_id::TableId;

/// Stored rows and their snapshot.
#[derive(Clone, Debug)]
pub struct SchemaState {
    rows: SchemaRows,
    schema: Arc<Schema>,
    order: TableOrder,
}

/// The tables of keyspaces that were made or altered since the start, in that order: those of which clients are told last.
/// The others come first, by name, as they were loaded (`Tables`).
#[derive(Clone, Debug, Default)]
struct TableOrder(BTreeMap<String, Vec<String>>);

impl TableOrder {
    fn place(&self, event: &SchemaEvent) -> usize {
        let Target::Table(name) = &event.target else { return 0 };
        let changed = self.0.get(&event.keyspace);
        let at = changed.and_then(|changed| changed.iter().position(|other| other == name));
        at.map_or(0, |at| at + 1)
    }

    /// Takes note of what a statement did itself; what else changed by it stays in its place.
    fn note(&mut self, own: &SchemaEvent) {
        match (&own.target, own.kind) {
            (Target::Keyspace, ChangeKind::Dropped) => self.forget(&own.keyspace),
            (Target::Table(name), kind) => {
                let changed = self.0.entry(own.keyspace.clone()).or_default();
                changed.retain(|other| other != name);
                if kind != ChangeKind::Dropped {
                    changed.push(name.clone());
                }
            }
            _ => {}
        }
    }

    fn forget(&mut self, keyspace: &str) {
        self.0.remove(keyspace);
    }
}

/// What merging mutations of peers changed.
#[derive(Clone, Debug)]
pub struct Merged {
    /// What clients are told.
    pub events: Vec<SchemaEvent>,
    /// Keyspaces whose rows could not be read: they stay as they were in the snapshot, their rows are kept.
    pub failures: Vec<LoadError>,
}

impl SchemaState {
    /// Starts from the stored rows. `local`: the keyspaces that no stored row describes to peers (`system`,
    /// `system_schema` and the virtual ones).
    pub fn new(
        rows: SchemaRows,
        local: impl IntoIterator<Item = Arc<Keyspace>>,
    ) -> Result<Self, LoadError> {
        let mut keyspaces: Vec<Arc<Keyspace>> = local.into_iter().collect();
        for name in rows.keyspaces().filter(|name| !crate::stored::is_local(name)) {
            keyspaces.extend(rows.keyspace(name)?.map(Arc::new));
        }
        let schema = Arc::new(Schema::new(keyspaces, rows.version(), 0));
        Ok(Self { rows, schema, order: TableOrder::default() })
    }

    /// The stored rows.
    pub fn rows(&self) -> &SchemaRows {
        &self.rows
    }

    /// The snapshot.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Applies a statement. The schema of what it returns is the new snapshot, with its version and the next
    /// epoch; nothing changes on an error.
    pub fn change(
        &mut self,
        change: &SchemaChange,
        timestamp: i64,
        new_id: TableId,
        options: &ChangeOptions,
    ) -> Result<Applied, SchemaError> {
        let mut applied = change::apply(&self.schema, change, timestamp, new_id, options)?;
        let stays = applied.schema.keyspace(&change.keyspace).is_some();
        let place = |event: &SchemaEvent| (change::turn(event, stays), self.order.place(event));
        applied.events.sort_by_cached_key(place);
        if let Some(own) = &applied.event {
            self.order.note(own);
        }
        if !applied.mutations.is_empty() {
            for mutation in &applied.mutations {
                self.rows.apply(mutation);
            }
            applied.schema = applied.schema.versioned(self.rows.version(), self.schema.epoch() + 1);
            self.schema = Arc::new(applied.schema.clone());
        }
        Ok(applied)
    }

    /// Merges mutations of a peer, pulled or pushed.
    pub fn merge(&mut self, mutations: &[SchemaMutation]) -> Merged {
        let mut merged = Merged { events: Vec::new(), failures: Vec::new() };
        for mutation in mutations {
            self.rows.apply(mutation);
        }
        let mut schema = Schema::clone(&self.schema);
        for mutation in mutations.iter().filter(|m| !crate::stored::is_local(&m.keyspace)) {
            let name = &mutation.keyspace;
            self.order.forget(name); // loaded anew
            match self.rows.keyspace(name) {
                Ok(after) => {
                    let before = schema.keyspace(name).cloned();
                    merged.events.extend(change::events(before.as_deref(), after.as_ref()));
                    schema = schema.with_keyspace(name, after.map(Arc::new));
                }
                Err(failure) => merged.failures.push(failure),
            }
        }
        self.schema = Arc::new(schema.versioned(self.rows.version(), self.schema.epoch() + 1));
        merged
    }
}
