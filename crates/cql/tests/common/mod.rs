//! A schema and executions for tests.
#![allow(dead_code)] // each test uses a part

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ast::{PropertyValue, Statement};
use cql::modify::{BatchUpdates, Before, CellContext, NothingRead, Updates, finish_bound};
use cql::term::text::type_text;
use cql::{Bind, CqlError, Limits, Plan, Prepared, Value, parse, prepare};
use rows::PartitionUpdate;
use schema::{ColumnKind, Keyspace, Replication, Schema, Strategy, Table, TableId};
use types::{CqlType, UserType, Uuid};

/// The timestamp of the golden mutations.
pub const TS: i64 = 1_700_000_000_000_000;
/// When the golden mutations of interop.md were made, in seconds.
pub const NOW_OF_M1: i64 = 0x1501_4f53 + 1_442_880_000;

/// A schema, and the time of executions.
pub struct Fixture {
    pub schema: Schema,
    pub timestamp: i64,
    pub now_seconds: i64,
}

impl Fixture {
    /// The table of the golden mutations.
    pub fn golden() -> Self {
        let map =
            CqlType::Map { key: CqlType::Text.into(), value: CqlType::Int.into(), frozen: false };
        let frozen = CqlType::List { element: CqlType::Int.into(), frozen: true };
        let id = TableId(Uuid::parse("3c5b3720-e5dd-11f1-9a15-1b96078e4459").unwrap().to_bytes());
        let table = Table::builder("ks", "t", id)
            .column("k", CqlType::Int, ColumnKind::PartitionKey)
            .column("c", CqlType::Text, ColumnKind::Clustering)
            .column("s", CqlType::Int, ColumnKind::Static)
            .column("v", CqlType::Int, ColumnKind::Regular)
            .column("m", map, ColumnKind::Regular)
            .column("f", frozen, ColumnKind::Regular)
            .column("si", CqlType::SmallInt, ColumnKind::Regular)
            .column("d", CqlType::Date, ColumnKind::Regular)
            .build();
        Self::of(vec![table], BTreeMap::new())
    }

    /// The schema of statements in CQL.
    pub fn from_cql(text: &str) -> Self {
        let mut types = BTreeMap::new();
        let mut tables = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match parse(line).expect(line).statement {
                Statement::CreateType(create) => {
                    let fields = create.fields.iter();
                    let fields = fields.map(|(name, ty)| (name.clone(), type_of(ty, &types)));
                    let name = create.name.name.clone();
                    let ty = UserType {
                        keyspace: "ks".into(),
                        name: name.clone(),
                        fields: fields.collect(),
                    };
                    types.insert(name, Arc::new(ty));
                }
                Statement::CreateTable(create) => tables.push(table_of(&create, &types)),
                other => panic!("{other:?}"),
            }
        }
        Self::of(tables, types)
    }

    fn of(tables: Vec<Table>, types: BTreeMap<String, Arc<UserType>>) -> Self {
        let replication = Replication {
            class: "org.apache.cassandra.locator.SimpleStrategy".into(),
            options: BTreeMap::new(),
            strategy: Strategy::Simple(Default::default()),
        };
        let mut keyspace = Keyspace::new("ks", true, replication);
        keyspace.types = types;
        let tables = tables.into_iter().map(|table| (table.name.clone(), Arc::new(table)));
        keyspace.tables = tables.collect();
        let schema = Schema::new([Arc::new(keyspace)], [0; 16], 1);
        Self { schema, timestamp: TS, now_seconds: 1_800_000_000 }
    }

    pub fn prepare(&self, statement: &str) -> Result<Prepared, CqlError> {
        let parsed = parse(statement).map_err(|error| match error {
            cql::ParseError::Invalid(message) => CqlError::Invalid(message),
            other => CqlError::Syntax(other.to_string()),
        })?;
        prepare(&parsed, None, &self.schema)
    }

    /// Calls with an execution.
    pub fn with_bind<R>(&self, values: &[Value<'_>], call: impl FnOnce(Bind<'_>) -> R) -> R {
        let ticks = Cell::new(0);
        let time_uuid = || {
            ticks.set(ticks.get() + 1);
            Uuid::from_unix_micros(self.timestamp + ticks.get(), 7).to_bytes()
        };
        let values = Positional(values);
        let bind = Bind {
            values: &values,
            timestamp: self.timestamp,
            now_seconds: self.now_seconds,
            now_millis: self.now_seconds * 1000,
            protocol_version: 5,
            time_uuid: &time_uuid,
            list_path: &time_uuid,
            random: &|| [9; 16],
            limits: &Limits::default(),
            guard: None,
            once: Default::default(),
        };
        call(bind)
    }

    /// What a prepared modification or batch does, with nothing stored.
    pub fn bind(
        &self,
        prepared: &Prepared,
        values: &[Value<'_>],
    ) -> Result<BatchUpdates, CqlError> {
        self.with_bind(values, |bind| match &prepared.plan {
            Plan::Modify(modify) if modify.needs_read() => {
                let cells = CellContext { list_path: bind.list_path, guard: None };
                let updates = modify.bind(bind)?.updates(cells, &NothingRead)?;
                let Updates { updates, warnings } = updates;
                Ok(BatchUpdates { updates: updates.into(), warnings, needs_log: false })
            }
            Plan::Batch(batch) if batch.statements().iter().any(|modify| modify.needs_read()) => {
                let statements = batch.statements().iter();
                let parts =
                    statements.map(|modify| modify.bind(Bind { once: Default::default(), ..bind }));
                let parts = parts.collect::<Result<Vec<_>, _>>()?;
                let cells = CellContext { list_path: bind.list_path, guard: None };
                let befores: Vec<&dyn Before> = vec![&NothingRead; parts.len()];
                finish_bound(batch.kind(), &parts, &befores, cells, bind.limits)
            }
            Plan::Modify(modify) => modify.updates(bind).map(|updates| BatchUpdates {
                updates: updates.updates.into(),
                warnings: updates.warnings,
                needs_log: false,
            }),
            Plan::Batch(batch) => batch.updates(bind),
            other => panic!("{other:?}"),
        })
    }

    pub fn run(
        &self,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<PartitionUpdate>, CqlError> {
        Ok(self.bind(&self.prepare(statement)?, values)?.updates)
    }
}

struct Positional<'a>(&'a [Value<'a>]);

impl cql::Values for Positional<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, marker: usize) -> Value<'_> {
        self.0.get(marker).copied().unwrap_or(Value::Unset)
    }
}

fn type_of(raw: &cql::ast::RawType, types: &BTreeMap<String, Arc<UserType>>) -> CqlType {
    CqlType::parse_cql_name(&type_text(raw), &mut |_, name| types.get(name).cloned()).unwrap()
}

fn table_of(create: &cql::ast::CreateTable, types: &BTreeMap<String, Arc<UserType>>) -> Table {
    let property = |wanted: &str| {
        let mut properties = create.options.properties.iter();
        let found = properties.rfind(|property| property.name == wanted)?;
        match &found.value {
            PropertyValue::Text(text) => Some(text.clone()),
            PropertyValue::Map(_) => None,
        }
    };
    let id = property("id").and_then(|text| Uuid::parse(&text)).expect("an id");
    let name = create.name.name.clone();
    let mut builder = Table::builder("ks", name, TableId(id.to_bytes()));
    let key = create.primary_key.as_ref().expect("a key");
    let column = |name: &str| create.columns.iter().find(|c| c.name == name).expect("a column");
    for name in &key.partition {
        let ty = type_of(&column(name).data_type, types);
        builder = builder.column(name, ty, ColumnKind::PartitionKey);
    }
    for name in &key.clustering {
        let ty = type_of(&column(name).data_type, types).freeze();
        let order = create.options.clustering_order.iter().find(|order| order.0 == *name);
        let reversed = order.is_some_and(|order| order.1);
        builder.add(name, ty, ColumnKind::Clustering, reversed, None);
    }
    let mut counts = false;
    for column in &create.columns {
        if key.partition.contains(&column.name) || key.clustering.contains(&column.name) {
            continue;
        }
        let kind = if column.is_static { ColumnKind::Static } else { ColumnKind::Regular };
        let ty = type_of(&column.data_type, types);
        counts |= ty == CqlType::Counter;
        builder = builder.column(&column.name, ty, kind);
    }
    builder.flags.counter = counts;
    let number = |name| property(name).and_then(|text| text.parse().ok());
    if let Some(seconds) = number("default_time_to_live") {
        builder.params.default_time_to_live = seconds;
    }
    if let Some(seconds) = number("gc_grace_seconds") {
        builder.params.gc_grace_seconds = seconds;
    }
    builder.build()
}
