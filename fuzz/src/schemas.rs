//! The schema that another node sends: read, merged into an empty one, and sent on.

use std::sync::{Arc, OnceLock};

use internode::payload::{read_schema, write_schema};
use rows::codec::{MutationDecoder, MutationEncoder};
use schema::{Keyspace, Release, SchemaMutation, SchemaRows, SchemaState};
use types::Reader;

const NOW: i64 = 1_700_000_000;

fn local() -> &'static [Arc<Keyspace>] {
    static LOCAL: OnceLock<Vec<Arc<Keyspace>>> = OnceLock::new();
    LOCAL.get_or_init(|| schema::system::local_keyspaces(Release::V5_0))
}

/// What SCHEMA_PUSH carries, or the answer to SCHEMA_PULL.
pub fn schemas(data: &[u8]) {
    let layout_of = |id: &[u8; 16]| {
        let mut tables = local().iter().flat_map(|keyspace| keyspace.tables.values());
        tables.find(|table| table.id.0 == *id).map(|table| Arc::clone(&table.layout))
    };
    let mut decoder = MutationDecoder::new();
    let Ok(read) = read_schema(&mut Reader::new(data), &mut decoder, &layout_of) else { return };
    let read: Result<Vec<_>, _> = read.iter().map(SchemaMutation::from_mutation).collect();
    let Ok(read) = read else { return };
    let local = local().iter().cloned();
    let state = SchemaState::new(SchemaRows::new(), local, Release::V5_0, NOW);
    let mut state = state.expect("an empty schema");
    let before = state.schema().version();
    if state.merge(&read, NOW).is_err() {
        assert_eq!(state.schema().version(), before, "what is refused changes nothing");
        return;
    }
    let is_word = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    for keyspace in state.schema().keyspaces().values() {
        assert!(is_word(&keyspace.name), "a directory could not have the keyspace's name");
        for (name, table) in &keyspace.tables {
            assert!(is_word(name), "a directory could not have the table's name");
            assert_eq!(table.params.validate(), Ok(()), "options that do");
        }
    }
    let sent: Result<Vec<_>, _> =
        state.mutations().iter().map(|mutation| mutation.to_mutation(state.schema())).collect();
    let sent: Vec<_> = sent.expect("its columns are known").into_iter().flatten().collect();
    let mut out = Vec::new();
    write_schema(&sent, &mut MutationEncoder::new(), &mut out).expect("what was read");
    let again = read_schema(&mut Reader::new(&out), &mut decoder, &layout_of);
    assert_eq!(again.expect("what was written").len(), sent.len());
}
