//! What other nodes' messages carry: reads and their answers, writes, gossip. What is understood
//! must come back.

use std::sync::{Arc, OnceLock};

use gossip::{Ack, Syn, read_tokens, write_tokens};
use internode::FailureReason;
use internode::payload::read::{ColumnFilter, DataDigest, DataReader, ReadCommand, ReadResponse};
use internode::payload::{
    Batch, Commit, CounterMutation, Hint, Promise, Snapshot, Truncate, Truncated, read_schema,
};
use rows::codec::{MutationDecoder, MutationEncoder};
use schema::{ColumnKind, Table, TableId};
use types::{CqlType, Reader};

/// Of `conformance/internode`'s table `t`, whose vectors are seeds.
fn table() -> &'static Arc<Table> {
    static TABLE: OnceLock<Arc<Table>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let (key, value) = (CqlType::Text.into(), CqlType::Int.into());
        let map = CqlType::Map { key, value, frozen: false };
        let list = CqlType::List { element: CqlType::Int.into(), frozen: true };
        let id = TableId([0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let table = Table::builder("ks", "t", id)
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Text, ColumnKind::Clustering)
            .column("s", CqlType::Int, ColumnKind::Static)
            .column("v", CqlType::Int, ColumnKind::Regular)
            .column("m", map, ColumnKind::Regular)
            .column("f", list, ColumnKind::Regular)
            .column("si", CqlType::SmallInt, ColumnKind::Regular)
            .column("d", CqlType::Date, ColumnKind::Regular);
        Arc::new(table.build())
    })
}

/// The first byte says what the rest is.
pub fn payloads(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let mut reader = Reader::new(bytes);
    let layout_of = |_: &[u8; 16]| Some(Arc::clone(&table().layout));
    let mut decoder = MutationDecoder::new();
    match choice % 10 {
        0 => command(&mut reader),
        1 => {
            if let Ok(response) = ReadResponse::read(&mut reader) {
                let mut again = Vec::new();
                response.write(&mut again);
                let read = ReadResponse::read(&mut Reader::new(&again));
                assert_eq!(read, Ok(response), "an answer read back");
            }
        }
        2 => answer(bytes),
        3 => {
            let _ = read_schema(&mut reader, &mut decoder, &layout_of);
        }
        4 => {
            if let Ok(counter) = CounterMutation::read(&mut reader, &mut decoder, &layout_of) {
                let mut again = Vec::new();
                if counter.write(&mut MutationEncoder::new(), &mut again).is_ok() {
                    let read = &mut Reader::new(&again);
                    CounterMutation::read(read, &mut decoder, &layout_of).expect("as written");
                }
            }
        }
        5 => {
            let _ = Commit::read(&mut reader, &mut decoder, &layout_of);
            let _ = Promise::read(&mut Reader::new(bytes), &mut decoder, &layout_of);
        }
        6 => small(bytes),
        7 => {
            if let Ok(syn) = Syn::read(&mut reader) {
                let mut again = Vec::new();
                syn.write(&mut again).expect("what was read");
                assert_eq!(Syn::read(&mut Reader::new(&again)), Ok(syn), "a SYN read back");
            }
        }
        8 => {
            if let Ok(ack) = Ack::read(&mut reader) {
                let values = ack.states.values().flat_map(|state| state.values.values());
                for tokens in values.filter_map(|value| read_tokens(&value.value).ok()) {
                    assert_eq!(read_tokens(&write_tokens(&tokens)), Ok(tokens), "tokens");
                }
                let mut again = Vec::new();
                ack.write(&mut again).expect("what was read");
                assert_eq!(Ack::read(&mut Reader::new(&again)), Ok(ack), "an ACK read back");
            }
        }
        _ => {
            if let Ok(text) = str::from_utf8(bytes) {
                let _ = gossip::Status::parse(text);
                let _ = read_tokens(text);
            }
        }
    }
}

fn command(reader: &mut Reader<'_>) {
    let Ok((command, table)) = ReadCommand::read(reader, &|_| Some(Arc::clone(table()))) else {
        return;
    };
    let mut again = Vec::new();
    if command.write(&table, &mut again).is_ok() {
        let read = ReadCommand::read(&mut Reader::new(&again), &|_| Some(Arc::clone(&table)));
        // columns that were dropped would not be written; this table has none
        assert_eq!(read.map(|(read, _)| read), Ok(command), "a read read back");
    }
}

/// An answer's data: everything in it is looked at.
fn answer(data: &[u8]) {
    let layout = &*table().layout;
    let fetched = ColumnFilter::all(table()).header();
    let Ok(mut reader) = DataReader::new(layout, &fetched, data) else { return };
    let mut digest = DataDigest::new(layout);
    while let Ok(Some(start)) = reader.next_partition() {
        digest.start(&start, start.header.as_ref());
        while let Ok(Some(unfiltered)) = reader.next_unfiltered() {
            digest.unfiltered(unfiltered);
        }
    }
    let _ = digest.finish();
}

fn small(bytes: &[u8]) {
    if let Ok(batch) = Batch::read(&mut Reader::new(bytes)) {
        let mut again = Vec::new();
        batch.write(&mut again);
        assert_eq!(Batch::read(&mut Reader::new(&again)), Ok(batch), "a batch read back");
    }
    if let Ok(hint) = Hint::read(&mut Reader::new(bytes)) {
        let mut again = Vec::new();
        hint.write(&mut again);
        assert_eq!(Hint::read(&mut Reader::new(&again)), Ok(hint), "a hint read back");
    }
    let _ = Truncate::read(&mut Reader::new(bytes));
    let _ = Truncated::read(&mut Reader::new(bytes));
    let _ = Snapshot::read(&mut Reader::new(bytes));
    let _ = FailureReason::read(&mut Reader::new(bytes));
}
