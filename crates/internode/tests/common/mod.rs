//! What Cassandra's own classes wrote (`conformance/internode` makes it), and what tests share.
#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::Arc;

use schema::{ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;
use types::hex::from_hex;

/// The vectors of a kind: their words. `release` says which Cassandra made them.
pub fn vectors(release: &str, kind: &str) -> Vec<Vec<&'static str>> {
    let text = match release {
        "4.1.10" => include_str!("../../testdata/4.1.10.txt"),
        _ => include_str!("../../testdata/5.0.9.txt"),
    };
    let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    let found = text.lines().map(words).filter(|words| words[0] == kind);
    let found: Vec<_> = found.map(|words| words[1..].to_vec()).collect();
    assert!(!found.is_empty(), "no {kind} of {release}");
    found
}

/// The releases that there are vectors of.
pub const RELEASES: [&str; 2] = ["5.0.9", "4.1.10"];

pub fn hex(text: &str) -> Vec<u8> {
    from_hex(text).unwrap_or_else(|| panic!("no hexadecimal: {text}"))
}

/// The tables of the vectors, by number from 1 on, with the names that the vectors have for them.
pub fn tables() -> Vec<(&'static str, Arc<Table>)> {
    use ColumnKind::{Clustering, PartitionKey, Regular, Static};
    let table = |name: &str, number: u8| {
        let mut id = [0; 16];
        (id[6], id[15]) = (0x10, number);
        Table::builder("ks", name, TableId(id))
    };
    let list = |element: CqlType, frozen| CqlType::List { element: element.into(), frozen };
    let set = |element: CqlType| CqlType::Set { element: element.into(), frozen: false };
    let map = |key: CqlType, value: CqlType| {
        let (key, value) = (key.into(), value.into());
        CqlType::Map { key, value, frozen: false }
    };
    let t = table("t", 1)
        .column("k", CqlType::Int, PartitionKey)
        .column("c", CqlType::Text, Clustering)
        .column("s", CqlType::Int, Static)
        .column("v", CqlType::Int, Regular)
        .column("m", map(CqlType::Text, CqlType::Int), Regular)
        .column("f", list(CqlType::Int, true), Regular)
        .column("si", CqlType::SmallInt, Regular)
        .column("d", CqlType::Date, Regular);
    let mut u = table("u", 2)
        .column("a", CqlType::Int, PartitionKey)
        .column("b", CqlType::Text, PartitionKey)
        .column("c1", CqlType::Int, Clustering)
        .column("c2", CqlType::BigInt, Clustering)
        .column("l", list(CqlType::Text, false), Regular)
        .column("st", set(CqlType::Int), Regular)
        .column("x", CqlType::Blob, Regular);
    u.columns.iter_mut().for_each(|column| column.reversed = &*column.name == "c1");
    let n = table("n", 3)
        .column("k", CqlType::Text, PartitionKey)
        .column("v", CqlType::Timestamp, Regular)
        .column("sm", map(CqlType::Int, CqlType::Text), Regular);
    let mut ct = table("ct", 4).column("k", CqlType::BigInt, PartitionKey).column(
        "n",
        CqlType::Counter,
        Regular,
    );
    ct.flags.counter = true;
    let mut w = table("w", 5).column("k", CqlType::Uuid, PartitionKey);
    for number in 0..70 {
        w = w.column(format!("v{number:02}").as_str(), CqlType::Int, Regular);
    }
    let built = |builder: TableBuilder| Arc::new(builder.build());
    let all = [("t", t), ("u", u), ("n", n), ("ct", ct), ("w", w)];
    all.into_iter().map(|(name, builder)| (name, built(builder))).collect()
}

/// Finds one of those tables by its id.
pub fn table_of(id: &[u8; 16]) -> Option<Arc<Table>> {
    tables().into_iter().map(|(_, table)| table).find(|table| table.id.0 == *id)
}

/// Finds the layout of one of those tables by its id.
pub fn layout_of(id: &[u8; 16]) -> Option<Arc<rows::Layout>> {
    table_of(id).map(|table| Arc::clone(&table.layout))
}
