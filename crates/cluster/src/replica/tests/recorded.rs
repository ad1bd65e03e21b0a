//! Against what a replica of Cassandra's answered to the same reads of the same mutations
//! (`conformance/replica` made it).

use std::sync::Arc;

use internode::payload::read::{DataReader, ReadCommand, ReadResponse};
use internode::{Flags, Verb};
use rows::{Deletion, Unfiltered};
use schema::Table;
use types::Reader;
use types::hex::{from_hex, to_hex};

use super::TestNode;
use crate::reconcile::decode;

const RECORDED: &str = include_str!("../../../testdata/replica-5.0.9.txt");
const MERGES: &str = include_str!("../../../testdata/replica-gen_merge-5.0.9.txt");
const ALTERS: &str = include_str!("../../../testdata/replica-alter-5.0.9.txt");
const NAMES: &str = include_str!("../../../testdata/replica-names_rows-5.0.9.txt");
const MANY_NAMES: &str = include_str!("../../../testdata/replica-names_many-5.0.9.txt");
const FILTERS: &str = include_str!("../../../testdata/replica-filtering_replicas-5.0.9.txt");

/// A read with the request for its digest, both answers, and its statement.
struct Recorded {
    cql: &'static str,
    data_request: Vec<u8>,
    digest_request: Vec<u8>,
    data: Vec<u8>,
    digest: Vec<u8>,
}

/// A node that has Cassandra's tables and mutations, and the reads.
struct Both {
    node: TestNode,
    tables: Vec<Arc<Table>>,
    reads: Vec<Recorded>,
    /// The statement of the next read.
    cql: &'static str,
}

fn id_of(number: usize) -> String {
    format!("0000000000001000{:016x}", 0x8000_0000_0000_0000_u64 | number as u64)
}

impl Both {
    /// With all that was recorded of generated mutations.
    fn new(shards: usize) -> Self {
        let mut both = Self::empty(shards);
        RECORDED.lines().for_each(|line| both.take(line));
        assert!(both.reads.len() > 300);
        both
    }

    fn empty(shards: usize) -> Self {
        let node = TestNode::new(shards);
        node.cql(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        Self { node, tables: Vec::new(), reads: Vec::new(), cql: "" }
    }

    /// Does what a line says, or notes its read.
    fn take(&mut self, line: &'static str) {
        let (kind, rest) = line.split_once(' ').expect("a word first");
        let table = |node: &TestNode, name: &str| {
            let schema = node.shard(0).schema();
            Arc::clone(schema.table("ks", name).expect(name))
        };
        match kind {
            "table" => {
                let (_, create) = rest.split_once(' ').expect("a number");
                self.node.cql(&create.replacen("TABLE ", "TABLE ks.", 1));
                self.tables.push(table(&self.node, create.split(' ').nth(2).expect("a name")));
            }
            "cql" => {
                self.node.cql(rest);
                for known in &mut self.tables {
                    *known = table(&self.node, &known.name);
                }
            }
            "mutation" => {
                let payload = self.bytes(rest);
                let answer = self.node.ask(Verb::MutationReq, &payload);
                assert_eq!(answer, Ok(Vec::new()), "{rest}");
            }
            "#" => self.cql = rest,
            "read" => {
                let words: Vec<_> = rest.split(' ').map(|word| self.bytes(word)).collect();
                let [data_request, digest_request, data, digest] = words.try_into().expect("four");
                let cql = self.cql;
                self.reads.push(Recorded { cql, data_request, digest_request, data, digest });
            }
            _ => panic!("{line}"),
        }
    }

    /// Bytes, with the ids of this node's tables in place of Cassandra's.
    fn bytes(&self, text: &str) -> Vec<u8> {
        let mut text = text.to_owned();
        for (at, table) in self.tables.iter().enumerate() {
            text = text.replace(&id_of(at + 1), &to_hex(&table.id.0));
        }
        from_hex(&text).expect("hexadecimal")
    }

    fn command(&self, bytes: &[u8]) -> (ReadCommand, Arc<Table>) {
        let of = |id: &[u8; 16]| self.tables.iter().find(|table| table.id.0 == *id).cloned();
        ReadCommand::read(&mut Reader::new(bytes), &of).expect("a read")
    }

    /// An answer's partitions as text.
    fn decoded(&self, request: &[u8], answer: &[u8]) -> Vec<String> {
        let (command, table) = self.command(request);
        let answer = ReadResponse::read(&mut Reader::new(answer)).expect("an answer");
        let ReadResponse::Data { data, .. } = answer else { panic!("no data") };
        let fetched = command.columns.header();
        let mut reader = DataReader::new(&table.layout, &fetched, data).expect("data");
        let mut lines = Vec::new();
        while let Some(start) = reader.next_partition().expect("a partition") {
            let live = |deletion: Deletion| (!deletion.is_live()).then_some(deletion);
            let statics = start.static_row.as_deref().map(Unfiltered::from_packed);
            let key = to_hex(start.key);
            lines.push(format!(
                "{key} empty {} reversed {} deletion {:?} statics {statics:?}",
                start.header.is_none(),
                start.is_reversed,
                live(start.deletion)
            ));
            loop {
                match reader.next_unfiltered() {
                    Ok(Some(unfiltered)) => lines.push(format!("    {unfiltered:?}")),
                    Ok(None) => break,
                    Err(error) => {
                        lines.push(format!("    {error}"));
                        return lines;
                    }
                }
            }
        }
        lines
    }

    /// The reads that are answered otherwise.
    fn differing(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let shards = self.node.shard(0).others().count();
        for (n, read) in self.reads.iter().enumerate() {
            let verb = match read.data_request[0] {
                0 => Verb::ReadReq,
                _ => Verb::RangeReq,
            };
            let ask = |payload: &[u8]| {
                let answer = self.node.ask_as(n % shards, verb, payload, Flags::NONE);
                answer.map(|answer| answer.expect("in time").payload)
            };
            let data = ask(&read.data_request).map(|data| self.decoded(&read.data_request, &data));
            let theirs = self.decoded(&read.data_request, &read.data);
            if data.as_ref() != Ok(&theirs) {
                wrong.push(format!("{n} {}: {data:#?}\nCassandra: {theirs:#?}", read.cql));
            }
            // what this node gives itself is what it would read of its answer
            let (command, table) = self.command(&read.data_request);
            let answer = ReadResponse::read(&mut Reader::new(&read.data));
            let Ok(ReadResponse::Data { data, .. }) = answer else { panic!("no data") };
            let sent = decode(&table, &command, data).expect("what was asked for");
            let own = self.node.own(n % shards, &table, &command);
            if own.as_ref() != Ok(&sent) {
                wrong.push(format!("{n} {}: {own:#?} of its own", read.cql));
            }
            let digest = ask(&read.digest_request);
            if digest.as_ref() != Ok(&read.digest) {
                wrong.push(format!("{n} {}: another digest", read.cql));
            }
        }
        wrong
    }

    fn compare(&self, of: &str) {
        let wrong = self.differing();
        let some = wrong.iter().take(6).cloned().collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{of}: {} of {}\n{some}", wrong.len(), self.reads.len());
    }
}

#[test]
fn answers_and_digests_are_those_of_cassandra() {
    let both = Both::new(1);
    both.compare("in memory");
    both.node.flush("ks");
    both.compare("in SSTables");
}

#[test]
fn with_several_shards_too() {
    let both = Both::new(3);
    both.compare("of three shards");
}

/// Each read when what stands before it in a file of the corpus was written, out of memory.
fn follow(recorded: &'static str) {
    let (mut both, mut reads, mut wrong) = (Both::empty(1), 0, Vec::new());
    for line in recorded.lines() {
        both.take(line);
        wrong.extend(both.differing());
        reads += both.reads.len();
        both.reads.clear();
    }
    assert!(wrong.is_empty(), "{} of {reads}\n{}", wrong.len(), wrong.join("\n"));
    assert_ne!(reads, 0);
}

#[test]
fn deletions_of_one_timestamp_merge_alike() {
    follow(MERGES);
}

#[test]
fn what_a_dropped_column_leaves_is_alike() {
    follow(ALTERS);
}

/// Digests name columns, and answers tell which of them a row has, in Cassandra's order.
#[test]
fn rows_whose_columns_begin_beyond_ascii_are_alike() {
    follow(NAMES);
    follow(MANY_NAMES);
}

/// With the flag that says that other answers come beside it, a row passes as it is, what is
/// deleted of it and has expired with it.
#[test]
fn what_is_filtered_for_a_coordinator_is_alike() {
    assert_eq!(FILTERS.lines().filter(|line| line.contains(", reconciled: ")).count(), 21);
    follow(FILTERS);
}
