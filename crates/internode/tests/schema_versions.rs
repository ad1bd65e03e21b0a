//! Families of statements that live nodes of Cassandra executed (`conformance/schema`): from what
//! they answer to SCHEMA_PULL comes the schema version that they say, after every statement, and
//! all of it is sent on as it came.

use std::collections::BTreeSet;
use std::io::Read;

use internode::payload::{read_schema, write_schema};
use rows::Mutation;
use rows::codec::{MutationDecoder, MutationEncoder};
use schema::{
    Reason, Release, Schema, SchemaMutation, SchemaRows, SchemaState, TableId, system, unserved,
};
use serde_json::Value;
use types::Reader;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn lines(recorded: &[u8]) -> Vec<Value> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(recorded).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The tables of `system_schema`, which no peer describes.
struct Wire(Schema);

impl Wire {
    fn new() -> Self {
        Self(Schema::new(system::local_keyspaces(Release::V5_0), Schema::empty_version(), 0))
    }

    fn read(&self, payload: &[u8]) -> Vec<Mutation> {
        let layout = |id: &[u8; 16]| Some(self.0.table_by_id(&TableId(*id))?.layout.clone());
        let mut reader = Reader::new(payload);
        let read = read_schema(&mut reader, &mut MutationDecoder::new(), &layout).unwrap();
        assert_eq!(reader.remaining(), 0);
        read
    }

    /// The mutations that a line says of, as a node sends them.
    fn changed(&self, line: &Value) -> Vec<SchemaMutation> {
        let sent = line["changed"].as_object().unwrap().values().filter_map(Value::as_str);
        let sent: Vec<Vec<u8>> = sent.map(unhex).collect();
        let payload = [&(sent.len() as u32).to_be_bytes()[..], &sent.concat()].concat();
        let read = self.read(&payload);
        read.iter().map(|mutation| SchemaMutation::from_mutation(mutation).unwrap()).collect()
    }
}

fn version_of(rows: &SchemaRows, release: Release, line: &Value) -> String {
    TableId(rows.version(release, line["at"].as_i64().unwrap())).to_string()
}

/// A node that is sent each statement's mutations, and one that joins after it: both say the
/// version that Cassandra says. Why some of that is not served.
fn versions_agree(release: Release, recorded: &[u8], statements: usize) -> BTreeSet<String> {
    let wire = Wire::new();
    let lines = lines(recorded);
    let now = lines[0]["at"].as_i64().unwrap();
    let mut state = SchemaState::new(SchemaRows::new(), [], release, now).unwrap();
    let (mut seen, mut reasons) = (0, BTreeSet::new());
    for line in &lines {
        let (cql, version) = (&line["cql"], line["version"].as_str().unwrap());
        let at = line["at"].as_i64().unwrap();
        let mutations = wire.changed(line);
        state.merge(&mutations, at).unwrap_or_else(|error| panic!("{cql}: {error}"));
        assert_eq!(TableId(state.schema().version()).to_string(), version, "{cql}");
        assert_eq!(version_of(state.rows(), release, line), version, "{cql}");
        // what is told on, through the codec, is the same schema
        let told = state.mutations();
        let told: Vec<Mutation> =
            told.iter().filter_map(|mutation| mutation.to_mutation(&wire.0).unwrap()).collect();
        let mut payload = Vec::new();
        write_schema(&told, &mut MutationEncoder::new(), &mut payload).unwrap();
        let mut joined = SchemaState::new(SchemaRows::new(), [], release, at).unwrap();
        let read: Vec<SchemaMutation> =
            wire.read(&payload).iter().map(|m| SchemaMutation::from_mutation(m).unwrap()).collect();
        let merged = joined.merge(&read, at).unwrap();
        assert_eq!(TableId(joined.schema().version()).to_string(), version, "{cql}");
        assert_eq!(joined.rows(), state.rows(), "{cql}");
        // nothing is new the second time
        assert!(joined.merge(&merged.mutations, at).unwrap().mutations.is_empty());
        seen += 1;
        // what is not served is in the rows nevertheless
        let unserved = unserved(state.schema());
        reasons.extend(unserved.iter().map(|unserved| unserved.reason.to_string()));
        let views = state.schema().keyspaces().values().flat_map(|of| of.views.values());
        for view in views {
            let refused = state.schema().refuses_writes(&view.base_table_id);
            assert!(matches!(refused, Some(Reason::BaseOfView | Reason::Trigger)), "{cql}");
        }
    }
    assert!(seen > statements, "{seen}");
    reasons
}

fn assert_all(reasons: &BTreeSet<String>) {
    for reason in [Reason::View, Reason::Trigger, Reason::Function] {
        assert!(reasons.contains(&reason.to_string()), "{reason:?} in {reasons:?}");
    }
}

/// The version of a Cassandra 4.1.10 that is alone and new.
const FIRST_OF_4_1: &str = "54e17321-3f2e-37ca-9b08-d91ba7bdd369";

#[test]
fn versions_are_those_of_cassandra_5_0_9() {
    let recorded = include_bytes!("../../../conformance/schema/recorded/5.0.9.jsonl.gz");
    assert_all(&versions_agree(Release::V5_0, recorded, 250));
}

#[test]
fn versions_of_names_beyond_ascii_are_those_of_cassandra_5_0_9() {
    let recorded = include_bytes!("../../../conformance/schema/recorded/5.0.9-names.jsonl.gz");
    versions_agree(Release::V5_0, recorded, 80);
}

#[test]
fn versions_are_those_of_cassandra_4_1_10() {
    let recorded = include_bytes!("../../../conformance/schema/recorded/4.1.10.jsonl.gz");
    // before the first statement: what the first node of a ring writes
    let mut first = SchemaRows::new();
    for mutation in system::replicated_mutations(Release::V4_1, 0) {
        first.apply(&mutation);
    }
    assert_eq!(version_of(&first, Release::V4_1, &lines(recorded)[0]), FIRST_OF_4_1);
    assert_eq!(lines(recorded)[0]["version"], FIRST_OF_4_1);
    assert_all(&versions_agree(Release::V4_1, recorded, 200));
}
