//! Writes, schema, Paxos and names, against what Cassandra's own classes write.

use crate::common;

use common::{RELEASES, hex, layout_of, vectors};
use internode::FailureReason;
use internode::payload::*;
use rows::codec::{MutationDecoder, MutationEncoder};
use types::hex::to_hex;
use types::{Reader, Uuid};

const ID: Uuid = Uuid(0x5c3b3720_e5dd_11f1_9a15_1b96078e4459);

/// Reads all of `bytes`, and nothing of what is shorter.
fn whole<T, E: std::fmt::Debug>(
    bytes: &[u8],
    mut read: impl FnMut(&mut Reader<'_>) -> Result<T, E>,
) -> T {
    for cut in 0..bytes.len() {
        assert!(read(&mut Reader::new(&bytes[..cut])).is_err(), "cut at {cut}");
    }
    let mut reader = Reader::new(bytes);
    let read = read(&mut reader).expect("well formed");
    assert!(reader.is_empty());
    read
}

/// The words of the vectors of a kind, of every release.
fn each(kind: &str) -> Vec<Vec<&'static str>> {
    RELEASES.iter().flat_map(|release| vectors(release, kind)).collect()
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    to_hex(&out)
}

#[test]
fn mutations() {
    let (mut decoder, mut encoder) = (MutationDecoder::new(), MutationEncoder::new());
    for words in each("mutation") {
        let mutation = whole(&hex(words[1]), |reader| decoder.mutation(reader, &layout_of));
        assert_eq!(written(|out| encoder.mutation(&mutation, out).expect("it")), words[1]);
    }
}

#[test]
fn hints() {
    for words in each("hint") {
        let bytes = hex(words[1]);
        let hint = Hint::read(&mut Reader::new(&bytes)).expect("well formed");
        let mutation = hex(words[0]);
        let wanted =
            Hint { host: ID, created: 1_700_000_000_123, gc_grace: 864_000, mutation: &mutation };
        assert_eq!(hint, wanted);
        assert_eq!(written(|out| hint.write(out)), words[1]);
        for cut in 0..bytes.len() {
            assert!(Hint::read(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }
}

#[test]
fn batches() {
    for words in each("batch") {
        let bytes = hex(words[2]);
        let batch = Batch::read(&mut Reader::new(&bytes)).expect("well formed");
        assert_eq!((batch.id, batch.created), (ID, 1_700_000_000_123_456));
        assert_eq!(batch.mutations, [hex(words[0]), hex(words[1])]);
        assert_eq!(written(|out| batch.write(out)), words[2]);
        for cut in 0..bytes.len() {
            assert!(Batch::read(&mut Reader::new(&bytes[..cut])).is_err());
        }
    }
    let mut claims = vec![0; 24];
    claims.extend([0xff; 9]);
    assert!(Batch::read(&mut Reader::new(&claims)).is_err());
}

#[test]
fn counters() {
    let (mut decoder, mut encoder) = (MutationDecoder::new(), MutationEncoder::new());
    for words in each("counter") {
        let read =
            |reader: &mut Reader<'_>| CounterMutation::read(reader, &mut decoder, &layout_of);
        let counter = whole(&hex(words[1]), read);
        assert_eq!(counter.consistency, words[0]);
        assert_eq!(written(|out| counter.write(&mut encoder, out).expect("it")), words[1]);
    }
}

#[test]
fn paxos() {
    let (mut decoder, mut encoder) = (MutationDecoder::new(), MutationEncoder::new());
    for words in each("commit") {
        let read = |reader: &mut Reader<'_>| Commit::read(reader, &mut decoder, &layout_of);
        let commit = whole(&hex(words[1]), read);
        assert_eq!(commit.ballot, ID);
        assert_eq!(commit.update.is_empty(), words[0] == "prepare");
        assert_eq!(written(|out| commit.write(&mut encoder, out).expect("it")), words[1]);
    }
    for words in each("promise") {
        let read = |reader: &mut Reader<'_>| Promise::read(reader, &mut decoder, &layout_of);
        let promise = whole(&hex(words[1]), read);
        assert_eq!(promise.promised.to_string(), words[0]);
        assert_eq!(promise.committed.update.is_empty(), !promise.promised);
        assert_eq!(written(|out| promise.write(&mut encoder, out).expect("it")), words[1]);
    }
}

#[test]
fn schemas() {
    let (mut decoder, mut encoder) = (MutationDecoder::new(), MutationEncoder::new());
    for words in each("schema") {
        let read = |reader: &mut Reader<'_>| read_schema(reader, &mut decoder, &layout_of);
        let mutations = whole(&hex(words[0]), read);
        assert_eq!(mutations.len(), 2);
        assert_eq!(written(|out| write_schema(&mutations, &mut encoder, out).unwrap()), words[0]);
    }
    for claim in [[0x7f, 0xff, 0xff, 0xff], [0xff; 4]] {
        assert!(read_schema(&mut Reader::new(&claim), &mut decoder, &layout_of).is_err());
    }
}

/// The schema of a fresh Cassandra 5.0.9, as it answered SCHEMA_PULL.
#[test]
fn the_schema_of_a_live_node() {
    let answer = include_bytes!("../testdata/5.0.9-schema-pull.bin");
    let keyspaces = schema::system::local_keyspaces(schema::Release::V5_0);
    let layout_of = |id: &[u8; 16]| {
        let tables = keyspaces.iter().flat_map(|keyspace| keyspace.tables.values());
        tables.into_iter().find(|table| table.id.0 == *id).map(|table| table.layout.clone())
    };
    let (mut decoder, mut encoder) = (MutationDecoder::new(), MutationEncoder::new());
    let read = |bytes: &[u8], decoder: &mut MutationDecoder| {
        let mut reader = Reader::new(bytes);
        let mutations = read_schema(&mut reader, decoder, &layout_of).expect("well formed");
        assert!(reader.is_empty());
        mutations
    };
    let mutations = read(answer, &mut decoder);
    let keys: Vec<_> = mutations.iter().map(|m| String::from_utf8_lossy(m.key())).collect();
    assert_eq!(keys, ["system_traces", "system_auth", "system_distributed"]);
    // times in it are relative to the oldest that Cassandra's memtable has; relative to its own
    // oldest it is shorter
    let mut again = Vec::new();
    write_schema(&mutations, &mut encoder, &mut again).expect("what was read");
    assert!(again.len() <= answer.len());
    let said = |mutations: &[rows::Mutation]| -> Vec<String> {
        let updates = mutations.iter().flat_map(|mutation| mutation.updates());
        let said = updates.map(|update| {
            let unfiltereds = update.unfiltereds(false);
            let packed = unfiltereds.map(|unfiltered| {
                let mut packed = Vec::new();
                unfiltered.pack(&mut packed);
                to_hex(&packed)
            });
            let packed: Vec<_> = packed.collect();
            format!("{} {:?} {:?} {packed:?}", to_hex(&update.table), update.key, update.deletion)
        });
        said.collect()
    };
    assert_eq!(said(&read(&again, &mut decoder)), said(&mutations));
    assert!(said(&mutations).concat().len() > 10_000);
}

#[test]
fn names() {
    let of = Truncate { keyspace: "ks".into(), table: "t\u{e9}".into() };
    for words in each("truncate") {
        assert_eq!(whole(&hex(words[0]), Truncate::read), of);
        assert_eq!(written(|out| of.write(out).unwrap()), words[0]);
    }
    for words in each("truncated") {
        let done = Truncated { of: of.clone(), done: true };
        assert_eq!(whole(&hex(words[0]), Truncated::read), done);
        assert_eq!(written(|out| done.write(out).unwrap()), words[0]);
    }
    for words in each("snapshot") {
        let of = Truncate { keyspace: "ks".into(), table: "t".into() };
        let snapshot = Snapshot { of, name: "now".into(), clear: true };
        assert_eq!(whole(&hex(words[0]), Snapshot::read), snapshot);
        assert_eq!(written(|out| snapshot.write(out).unwrap()), words[0]);
    }
}

#[test]
fn a_write_to_an_unknown_table_says_so() {
    let bytes = hex(vectors("5.0.9", "mutation")[0][1]);
    let read = MutationDecoder::new().mutation(&mut Reader::new(&bytes), &|_| None);
    let error = PayloadError::from(read.unwrap_err());
    assert_eq!(error.reason(), FailureReason::IncompatibleSchema);
}
