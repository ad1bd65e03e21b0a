//! What the operator should know when the node starts: a line each.

use config::Config;
use schema::Schema;
use storage::{Aside, Engine};

use crate::key_stores::tls_notes;
use crate::memory::Memory;

/// What the configuration and the schema ask for, and do not get.
pub(crate) fn notes_of(config: &Config, schema: &Schema) -> Vec<String> {
    let mut notes = config.notes();
    notes.extend(indexes_note(schema));
    notes.extend(Memory::of(config).note());
    notes.extend(config.server_tls.iter().flat_map(tls_notes));
    notes
}

/// Says which indexes there are, since scans stand in for them.
fn indexes_note(schema: &Schema) -> Option<String> {
    let keyspaces = schema.keyspaces().values();
    let tables = keyspaces.flat_map(|keyspace| keyspace.tables.values());
    let names = tables.flat_map(|table| {
        table.legacy_indexes().map(move |(index, _)| format!("{}.{}", table.keyspace, index.name))
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| {
        format!(
            "this release builds no secondary indexes: a read by index scans the whole table; \
             indexes: {}",
            names.join(", ")
        )
    })
}

/// What of tables the start went without.
pub(crate) fn aside_notes(engine: &Engine) -> Vec<String> {
    let Some(storage) = engine.node() else { return Vec::new() };
    let tables = engine.stores().into_iter();
    let aside = tables.flat_map(|(id, store)| {
        let table = store.table();
        let note = move |aside: Aside| {
            let of = format!("{}.{}", table.keyspace, table.name);
            format!(
                "put aside {}: table {of} is served without its data; restore it from a snapshot, \
                 or remove it, and restart the node: {}",
                aside.path.display(),
                aside.why
            )
        };
        storage.failures().aside(id).into_iter().map(note)
    });
    aside.collect()
}
