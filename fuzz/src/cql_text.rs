//! Statements: parsed, planned against a schema, bound.

use std::sync::{Arc, OnceLock};

use cql::modify::{CellContext, Modify, NothingRead};
use cql::select::PageRequest;
use cql::{Bind, Limits, Plan, Value, Values, parse, prepare};
use schema::{ColumnKind, Keyspace, Replication, Schema, Table, TableId};
use types::{CqlType, UserType};

/// Between the text of a statement and values for its markers, and between those.
const SEPARATOR: u8 = 0;

struct Given<'a>(Vec<&'a [u8]>);

impl Values for Given<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, marker: usize) -> Value<'_> {
        match self.0.get(marker) {
            Some(value) if **value == *b"null" => Value::Null,
            Some(value) => Value::Bytes(value),
            None => Value::Unset,
        }
    }
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut keyspace = Keyspace::new("ks", true, Replication::simple(1));
        let udt = Arc::new(UserType {
            keyspace: "ks".to_owned(),
            name: "u".to_owned(),
            fields: vec![("a".to_owned(), CqlType::Int), ("b".to_owned(), CqlType::Text)],
        });
        let list = |inner| CqlType::List { element: Arc::new(inner), frozen: false };
        let t = Table::builder("ks", "t", TableId([1; 16]))
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Int, ColumnKind::Clustering)
            .column("s", CqlType::Text, ColumnKind::Static)
            .column("v", CqlType::Text, ColumnKind::Regular)
            .column("l", list(CqlType::Int), ColumnKind::Regular)
            .column("d", CqlType::Decimal, ColumnKind::Regular)
            .column("i", CqlType::VarInt, ColumnKind::Regular)
            .column("ts", CqlType::Timestamp, ColumnKind::Regular)
            .column(
                "u",
                CqlType::Udt { definition: Arc::clone(&udt), frozen: false },
                ColumnKind::Regular,
            );
        let counters = Table::builder("ks", "n", TableId([2; 16]))
            .column("k", CqlType::Text, ColumnKind::PartitionKey)
            .column("k2", CqlType::Uuid, ColumnKind::PartitionKey)
            .column("c", CqlType::TimeUuid, ColumnKind::Clustering)
            .column("d", CqlType::Double, ColumnKind::Clustering)
            .column("n", CqlType::Counter, ColumnKind::Regular);
        keyspace.types.insert("u".to_owned(), udt);
        for table in [t.build(), counters.build()] {
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
        }
        Schema::new([Arc::new(keyspace)], [0; 16], 1)
    })
}

/// A statement, and values of its markers.
pub fn statement(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == SEPARATOR);
    let Some(Ok(text)) = parts.next().map(str::from_utf8) else { return };
    let Ok(parsed) = parse(text) else { return };
    let Ok(prepared) = prepare(&parsed, Some("ks"), schema()) else { return };
    let values = Given(parts.collect());
    let bind = Bind {
        values: &values,
        timestamp: 1_700_000_000_000_000,
        now_seconds: 1_700_000_000,
        now_millis: 1_700_000_000_000,
        protocol_version: 5,
        time_uuid: &|| [1; 16],
        random: &|| [2; 16],
        list_path: &|| [1; 16],
        limits: &Limits::default(),
        guard: None,
        once: Default::default(),
    };
    match &prepared.plan {
        Plan::Select(select) => {
            let page = PageRequest { size: Some(10), after: None };
            if let Ok(read) = select.bind(&bind, &page) {
                select.command_text(&read, None);
            }
        }
        Plan::Modify(modify) => write(modify, &bind),
        Plan::Batch(batch) => batch.statements().iter().for_each(|modify| write(modify, &bind)),
        _ => {}
    }
}

/// Bound first and at once, where it may be: both come to the same, or are refused.
fn write(modify: &Arc<Modify>, bind: &Bind<'_>) {
    let cells = CellContext { list_path: bind.list_path, guard: None };
    let bound = modify.bind(Bind { once: Default::default(), ..*bind });
    let bound = bound.and_then(|bound| bound.updates(cells, &NothingRead));
    if !modify.needs_read() {
        let at_once = modify.updates(Bind { once: Default::default(), ..*bind });
        assert_eq!(bound.is_ok(), at_once.is_ok(), "bound or at once");
    }
}
