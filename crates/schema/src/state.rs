//! The schema as one owner holds it: stored rows and the snapshot derived from them, in step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::change::{self, Applied, ChangeKind, ChangeOptions, SchemaChange, SchemaEvent, Target};
use crate::error::SchemaError;
use crate::keyspace::Keyspace;
use crate::release::Release;
use crate::schema::Schema;
use crate::stored::{LoadError, SchemaMutation, SchemaRow, SchemaRows, SchemaTable, Tombstone};
use crate::table::Table;
use crate::table_id::TableId;

/// Stored rows and their snapshot.
#[derive(Clone, Debug)]
pub struct SchemaState {
    rows: SchemaRows,
    schema: Arc<Schema>,
    order: TableOrder,
    release: Release,
}

/// The tables of keyspaces that were made or altered since the start, in that order: those of which
/// clients are told last. The others come first, by name, as they were loaded (`Tables`).
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

/// What merging mutations of a peer changed.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The mutations that say something new; the others change nothing.
    pub mutations: Vec<SchemaMutation>,
    /// What clients are told.
    pub events: Vec<SchemaEvent>,
}

/// Why mutations of a peer are not merged. Nothing of them is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// They describe what each node describes for itself.
    #[error("keyspace {0} is local to each node, and another node must not change it")]
    Local(String),
    /// With them, the rows would describe no keyspace that makes sense.
    #[error("the changed schema would not be valid: {0}")]
    Load(#[from] LoadError),
    /// What they describe is not to be had.
    #[error("the changed schema would not be valid: {0}")]
    Check(#[from] SchemaError),
}

impl SchemaState {
    /// Starts from the stored rows. `local`: the keyspaces that no stored row describes to peers
    /// (`system`, `system_schema` and the virtual ones). `release`: the ring's; `now` in seconds.
    pub fn new(
        rows: SchemaRows,
        local: impl IntoIterator<Item = Arc<Keyspace>>,
        release: Release,
        now: i64,
    ) -> Result<Self, LoadError> {
        let mut keyspaces: Vec<Arc<Keyspace>> = local.into_iter().collect();
        for name in rows.keyspaces().filter(|name| !crate::stored::is_local(name)) {
            keyspaces.extend(rows.keyspace(name, now)?.map(Arc::new));
        }
        let schema = Schema::new(keyspaces, rows.version(release, now), 0).of_release(release);
        Ok(Self { rows, schema: Arc::new(schema), order: TableOrder::default(), release })
    }

    /// The stored rows.
    pub fn rows(&self) -> &SchemaRows {
        &self.rows
    }

    /// The snapshot.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Applies a statement. The schema of what it returns is the new snapshot, with its version and
    /// the next epoch; nothing changes on an error.
    pub fn change(
        &mut self,
        change: &SchemaChange,
        timestamp: i64,
        new_id: TableId,
        options: &ChangeOptions,
    ) -> Result<Applied, SchemaError> {
        let mut applied = change::apply(&self.schema, change, timestamp, new_id, options)?;
        let deletion = Tombstone { timestamp, local_deletion_time: options.now };
        for mutation in &mut applied.mutations {
            self.bury(&applied.schema, deletion, mutation);
            self.release.fit(mutation)?;
        }
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
            applied.schema = self.versioned(applied.schema, options.now);
            self.schema = Arc::new(applied.schema.clone());
        }
        Ok(applied)
    }

    /// Merges mutations of a peer, pulled or pushed. `now` in seconds.
    ///
    /// # Errors
    /// If the rows would not be those of a schema then; nothing changes.
    pub fn merge(&mut self, mutations: &[SchemaMutation], now: i64) -> Result<Merged, MergeError> {
        let mut merged = Merged { mutations: Vec::new(), events: Vec::new() };
        let mut rows = self.rows.clone();
        let mut changed = BTreeSet::new();
        for mutation in mutations {
            let name = &mutation.keyspace;
            if crate::stored::is_local(name) {
                return Err(MergeError::Local(name.clone()));
            }
            crate::stored::check_names(mutation)?;
            if rows.apply(mutation) {
                merged.mutations.push(mutation.clone());
                changed.insert(name);
            }
        }
        let mut schema = Schema::clone(&self.schema);
        for name in &changed {
            let after = rows.keyspace(name, now)?;
            if let Some(after) = &after {
                crate::stored::check(&schema, after)?;
            }
            let before = schema.keyspace(name).cloned();
            merged.events.extend(change::events(before.as_deref(), after.as_ref()));
            schema = schema.with_keyspace(name, after.map(Arc::new));
        }
        if !changed.is_empty() {
            self.rows = rows;
            changed.iter().for_each(|name| self.order.forget(name)); // loaded anew
            self.schema = Arc::new(self.versioned(schema, now));
        }
        Ok(merged)
    }

    /// Everything that peers are told who ask for the schema: a mutation of each keyspace,
    /// tombstones included.
    pub fn mutations(&self) -> Vec<SchemaMutation> {
        let names = self.rows.keyspaces().filter(|name| !crate::stored::is_local(name));
        names.filter_map(|name| self.rows.mutation(name)).collect()
    }

    /// Deletes what is left of earlier tables of the names of tables that a change creates: a
    /// column, an index that one node gave to a table while another dropped it. It would be part of
    /// the new one.
    fn bury(&self, after: &Schema, deletion: Tombstone, mutation: &mut SchemaMutation) {
        let name = &mutation.keyspace;
        let tables = after.keyspace(name).into_iter().flat_map(|keyspace| keyspace.tables.values());
        let is_new = |table: &&Arc<Table>| self.schema.table(name, &table.name).is_none();
        let created: BTreeSet<&[u8]> =
            tables.filter(is_new).map(|table| table.name.as_bytes()).collect();
        for part in SchemaTable::PARTS_OF_TABLES.into_iter().filter(|_| !created.is_empty()) {
            let rows = self.rows.partition(name, part).into_iter();
            let rows = rows.flat_map(|partition| partition.live_rows(deletion.local_deletion_time));
            let left = rows.map(|(clustering, _)| clustering).filter(|clustering| {
                clustering.first().is_some_and(|table| created.contains(table.as_slice()))
            });
            for clustering in left {
                let rows = &mut mutation.updates.entry(part).or_default().rows;
                rows.entry(clustering.clone()).or_insert_with(|| SchemaRow {
                    deletion: Some(deletion),
                    ..SchemaRow::default()
                });
            }
        }
    }

    fn versioned(&self, schema: Schema, now: i64) -> Schema {
        schema.versioned(self.rows.version(self.release, now), self.schema.epoch() + 1)
    }
}
