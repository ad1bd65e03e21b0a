//! Laws: merging schema rows does not care for order or repetition; keys compose and split; nothing
//! that a peer sends panics.

use proptest::prelude::*;
use rows::Liveness;
use schema::{
    ColumnKind, PropertyValue, Release, Schema, SchemaCell, SchemaMutation, SchemaPartition,
    SchemaRow, SchemaRows, SchemaTable, Table, TableId, TableParams, Tombstone, system,
};
use types::CqlType;

fn tombstones() -> impl Strategy<Value = Tombstone> {
    (0..4i64, 0..2i64)
        .prop_map(|(timestamp, local_deletion_time)| Tombstone { timestamp, local_deletion_time })
}

fn cells() -> impl Strategy<Value = SchemaCell> {
    let value = prop::option::of(prop::collection::vec(0..3u8, 0..2));
    (0..4i64, value, 0..2i32, 0..2i64).prop_map(|(timestamp, value, ttl, at)| {
        let ttl = if value.is_some() { ttl } else { 0 };
        let is_live = value.is_some() && ttl == 0;
        let local_deletion_time = if is_live { 0 } else { at };
        SchemaCell { timestamp, value, ttl, local_deletion_time }
    })
}

fn schema_rows() -> impl Strategy<Value = SchemaRow> {
    let cells = prop::collection::btree_map(
        prop::sample::select(vec!["type".to_owned(), "kind".to_owned()]),
        cells(),
        0..3,
    );
    let liveness = (0..4i64, 0..2i32, 0..2i64)
        .prop_map(|(timestamp, ttl, at)| Liveness::expiring(timestamp, ttl, at));
    (prop::option::of(tombstones()), prop::option::of(liveness), cells)
        .prop_map(|(deletion, liveness, cells)| SchemaRow { deletion, liveness, cells })
}

fn keys(lengths: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::sample::select(vec![b"a".to_vec(), b"b".to_vec()]), lengths)
}

fn mutations() -> impl Strategy<Value = SchemaMutation> {
    let rows = prop::collection::btree_map(keys(2..3), schema_rows(), 0..3);
    let prefixes = prop::collection::btree_map(keys(1..2), tombstones(), 0..2);
    (prop::option::of(tombstones()), prefixes, rows).prop_map(|(deletion, prefixes, rows)| {
        let partition = SchemaPartition { deletion, prefixes, rows };
        SchemaMutation {
            keyspace: "ks".into(),
            updates: [(SchemaTable::Columns, partition)].into(),
        }
    })
}

fn merged<'a>(mutations: impl IntoIterator<Item = &'a SchemaMutation>) -> SchemaRows {
    let mut rows = SchemaRows::new();
    for mutation in mutations {
        rows.apply(mutation);
    }
    rows
}

proptest! {
    #[test]
    fn merging_takes_any_order(mutations in prop::collection::vec(mutations(), 0..5)) {
        let once = merged(&mutations);
        prop_assert_eq!(&once, &merged(mutations.iter().rev()));
        prop_assert_eq!(&once, &merged(mutations.iter().chain(&mutations)));
        let again = merged(mutations.iter().rev());
        prop_assert_eq!(once.version(Release::V5_0, 1), again.version(Release::V5_0, 1));
    }

    /// What storage keeps and peers are sent is what is known.
    #[test]
    fn rows_come_back_from_mutations(mutation in mutations()) {
        let schema = Schema::new(system::local_keyspaces(Release::V5_0), Schema::empty_version(), 0);
        let known = merged([&mutation]).mutation("ks").unwrap();
        let sent = known.to_mutation(&schema).unwrap();
        let back = sent.map(|sent| SchemaMutation::from_mutation(&sent).unwrap());
        prop_assert_eq!(merged(&back), merged([&known]));
    }

    #[test]
    fn keys_compose_and_split(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..4)) {
        let mut builder = Table::builder("ks", "t", TableId([0; 16]));
        for i in 0..values.len() {
            builder = builder.column(&format!("k{i}"), CqlType::Blob, ColumnKind::PartitionKey);
        }
        let table = builder.build();
        let key = table.partition_key_bytes(&values).unwrap();
        prop_assert_eq!(table.partition_key_values(&key).unwrap(), values);
    }

    #[test]
    fn any_bytes_are_no_panic(key in prop::collection::vec(any::<u8>(), 0..40), name in "[a-z_]{0,20}", value in ".{0,20}") {
        let table = Table::builder("ks", "t", TableId([0; 16]))
            .column("a", CqlType::Int, ColumnKind::PartitionKey)
            .column("b", CqlType::Int, ColumnKind::PartitionKey)
            .build();
        let _ = table.partition_key_values(&key);
        let _ = TableId::parse(&value);
        for name in [name.as_str(), "speculative_retry", "caching", "compaction", "compression"] {
            for (k, class) in [("class", "UnifiedCompactionStrategy"), ("class", "LZ4Compressor"), ("keys", "ALL")] {
                let map = vec![(k.to_owned(), class.to_owned()), ("target_sstable_size".to_owned(), value.clone()),
                    ("scaling_parameters".to_owned(), value.clone())];
                let _ = TableParams::from_properties(&[(name.to_owned(), PropertyValue::Map(map))], &[]);
            }
            let _ = TableParams::from_properties(&[(name.to_owned(), PropertyValue::Text(value.clone()))], &[]);
        }
    }

    /// A stored cell with any bytes is an error or a keyspace.
    #[test]
    fn any_stored_bytes_are_no_panic(at in 0..1000usize, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        let mut mutation = system::replicated_mutations(Release::V5_0, 0).remove(0);
        let mut cells: Vec<&mut SchemaCell> = mutation.updates.values_mut()
            .flat_map(|p| p.rows.values_mut()).flat_map(|row| row.cells.values_mut()).collect();
        let index = at % cells.len();
        cells[index].value = Some(bytes);
        let _ = merged([&mutation]).keyspace("system_auth", 0);
    }
}
