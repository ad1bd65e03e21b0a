//! Rows by column names, put together into partitions.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use rows::{CellRef, Clustering, Liveness, PartitionUpdate, RowBuilder, UpdateBuilder};
use schema::{Column, Table};

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Datum<'a> {
    Null,
    Text(&'a str),
    Int(i32),
    BigInt(i64),
    Double(f64),
    Float(f32),
    Boolean(bool),
    Blob(&'a [u8]),
    Inet(IpAddr),
    Uuid([u8; 16]),
    /// Milliseconds since the epoch.
    Timestamp(i64),
    /// A frozen `map<text, text>`.
    TextMap(&'a BTreeMap<String, String>),
    /// A frozen `list<text>`.
    TextList(&'a [String]),
}

impl<'a> From<Option<&'a str>> for Datum<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Datum::Text)
    }
}

impl Datum<'_> {
    /// Serialized; `None` for null.
    fn serialize(&self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Null => return None,
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Int(value) => value.to_be_bytes().to_vec(),
            Self::BigInt(value) | Self::Timestamp(value) => value.to_be_bytes().to_vec(),
            Self::Double(value) => value.to_be_bytes().to_vec(),
            Self::Float(value) => value.to_be_bytes().to_vec(),
            Self::Boolean(value) => vec![u8::from(*value)],
            Self::Blob(bytes) => bytes.to_vec(),
            Self::Inet(IpAddr::V4(address)) => address.octets().to_vec(),
            Self::Inet(IpAddr::V6(address)) => address.octets().to_vec(),
            Self::Uuid(bytes) => bytes.to_vec(),
            Self::TextMap(map) => {
                texts(map.len(), map.iter().flat_map(|(key, value)| [key, value]))
            }
            Self::TextList(list) => texts(list.len(), list.iter()),
        })
    }
}

/// A collection of so many elements, made of these texts.
fn texts<'a>(count: usize, texts: impl Iterator<Item = &'a String>) -> Vec<u8> {
    let length = |length: usize| i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes();
    let mut out = length(count).to_vec();
    for text in texts {
        out.extend(length(text.len()));
        out.extend(text.as_bytes());
    }
    out
}

fn composite(values: &[Vec<u8>]) -> Vec<u8> {
    if let [value] = values {
        return value.clone();
    }
    let mut out = Vec::new();
    for value in values {
        // names and addresses: far below the limit of a component
        out.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend(value);
        out.push(0);
    }
    out
}

/// Takes the rows of one table.
pub(super) struct Sink<'a> {
    table: &'a Table,
    now: i64,
    partitions: BTreeMap<Vec<u8>, UpdateBuilder>,
    row: RowBuilder,
    scratch: RowBuilder,
}

impl<'a> Sink<'a> {
    pub(super) fn new(table: &'a Table, now: i64) -> Self {
        let (row, scratch) = (RowBuilder::new(), RowBuilder::new());
        Self { table, now, partitions: BTreeMap::new(), row, scratch }
    }

    /// Adds a row: values by the names of their columns. Columns that are not named are null; a
    /// name that the table has not is passed over, and trips an assertion in tests.
    pub(super) fn row(&mut self, values: &[(&str, Datum<'_>)]) {
        let table = self.table;
        debug_assert!(values.iter().all(|(name, _)| table.column(name).is_some()), "{values:?}");
        let value = |column: &Column| {
            let found = values.iter().find(|(name, _)| *name == &*column.name);
            found.and_then(|(_, value)| value.serialize())
        };
        let key: Vec<Vec<u8>> =
            table.partition_key.iter().map(|column| value(column).unwrap_or_default()).collect();
        let key = composite(&key);
        let clustering: Vec<Option<Vec<u8>>> =
            table.clustering.iter().map(|column| Some(value(column).unwrap_or_default())).collect();
        let clustering = Clustering::new(clustering.iter().map(Option::as_deref));
        self.row.start_row(clustering.as_ref());
        self.row.liveness(Liveness::new(self.now));
        for column in &table.regulars {
            if let Some(value) = value(column) {
                self.row.cell(CellRef::live(column.index, None, self.now, &value));
            }
        }
        let partition = self.partitions.entry(key).or_insert_with_key(|key| {
            UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), key)
        });
        partition.add(self.row.finish_row(&table.layout), &mut self.scratch);
    }

    /// The partitions in order.
    pub(super) fn finish(self) -> Vec<PartitionUpdate> {
        let Self { table, mut scratch, partitions, .. } = self;
        let updates = partitions.into_values().map(|builder| builder.finish(&mut scratch));
        let mut updates: Vec<PartitionUpdate> = updates.collect();
        updates.sort_by(|a, b| table.compare_keys(&a.key, &b.key));
        updates
    }
}
