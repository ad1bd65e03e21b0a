//! A schema and data from statements, and the plainest executor of reads there is.

use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ast::{CreateTable, RawType, Statement};
use cql::modify::{Modify, Updates};
use cql::select::{
    Group, PageRequest, PartitionKey, Position, RangeBound, Read, ResultRow, RowFilter, Select,
    Target, row_is_live,
};
use cql::term::raw_type;
use cql::{Bind, CqlError, Limits, Plan, Prepared, Scope, Value, Values, prepare};
use rows::{
    Clustering, ClusteringRef, Deletion, RowBuilder, RowRef, compare_clusterings, merge_rows,
};
use schema::{ChangeOptions, ColumnKind, Keyspace, Replication, Schema, Table, TableId};
use types::{CqlType, KeyBytes, Token, UserType};

pub const NOW: i64 = 1_800_000_000;

/// Owned values of markers; `None` is unset.
pub struct Given(pub Vec<Option<Option<Vec<u8>>>>);

impl Values for Given {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, marker: usize) -> Value<'_> {
        match self.0.get(marker) {
            Some(Some(Some(value))) => Value::Bytes(value),
            Some(Some(None)) => Value::Null,
            _ => Value::Unset,
        }
    }
}

#[derive(Default)]
struct Partition {
    statics: Option<Box<[u8]>>,
    rows: Vec<Box<[u8]>>,
}

pub struct World {
    pub schema: Schema,
    keyspace: Keyspace,
    partitions: BTreeMap<[u8; 16], BTreeMap<(Token, KeyBytes), Partition>>,
    /// A change of the schema after the first read would be lost.
    tables: u8,
}

/// Rows of a result, and where pages ended.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    pub pages: Vec<usize>,
}

impl World {
    pub fn new() -> Self {
        let keyspace = Keyspace::new("sel", true, Replication::simple(1));
        let schema = Self::schema_of(&keyspace);
        Self { schema, keyspace, partitions: BTreeMap::new(), tables: 0 }
    }

    fn schema_of(keyspace: &Keyspace) -> Schema {
        Schema::new([Arc::new(keyspace.clone())], [0; 16], 1)
    }

    /// CREATE TYPE, TABLE and INDEX, DROP INDEX; other statements about keyspaces are taken for
    /// granted.
    pub fn create(&mut self, text: &str) {
        let parsed = cql::parse(text).expect("it parses");
        match &parsed.statement {
            Statement::CreateType(created) => {
                let scope = Scope::new(&self.schema, Some("sel"));
                let field = |(name, ty): &(String, RawType)| {
                    (name.clone(), raw_type::resolve(ty, "sel", &scope).expect("a type"))
                };
                let definition = UserType {
                    keyspace: "sel".to_owned(),
                    name: created.name.name.clone(),
                    fields: created.fields.iter().map(field).collect(),
                };
                self.keyspace.types.insert(created.name.name.clone(), Arc::new(definition));
            }
            Statement::CreateTable(created) if created.options.compact_storage => {
                self.change(text);
            }
            Statement::CreateTable(created) => {
                let table = self.table_of(created);
                self.keyspace.tables.insert(table.name.clone(), Arc::new(table));
            }
            Statement::CreateIndex(_) | Statement::DropIndex(_) => self.change(text),
            _ => {}
        }
        self.schema = Self::schema_of(&self.keyspace);
    }

    /// A change of the schema as the node makes it.
    fn change(&mut self, text: &str) {
        self.tables += 1;
        let prepared = self.prepare(text).expect("it prepares");
        let Plan::Schema(ddl) = &prepared.plan else { panic!("a change of the schema") };
        let options = ChangeOptions::default();
        let change = ddl.change(&self.schema, &options).expect("it is right");
        let change = change.expect("a change");
        let applied = schema::apply(&self.schema, &change, 1, TableId([self.tables; 16]), &options);
        let after = applied.expect("it applies").schema;
        self.keyspace = Keyspace::clone(after.keyspace("sel").expect("it stays"));
    }

    fn table_of(&mut self, created: &CreateTable) -> Table {
        self.tables += 1;
        let scope = Scope::new(&self.schema, Some("sel"));
        let key = created.primary_key.as_ref().expect("a key");
        let mut builder = Table::builder("sel", &created.name.name, TableId([self.tables; 16]));
        let ty = |name: &String| -> CqlType {
            let column = created.columns.iter().find(|c| c.name == *name).expect("a column");
            raw_type::resolve(&column.data_type, "sel", &scope).expect("a type")
        };
        for name in &key.partition {
            builder = builder.column(name, ty(name), ColumnKind::PartitionKey);
        }
        for name in &key.clustering {
            let order = created.options.clustering_order.iter().find(|(c, _)| c == name);
            let descending = order.is_some_and(|(_, descending)| *descending);
            builder.add(name, ty(name), ColumnKind::Clustering, descending, None);
        }
        for column in &created.columns {
            if key.partition.contains(&column.name) || key.clustering.contains(&column.name) {
                continue;
            }
            let kind = if column.is_static { ColumnKind::Static } else { ColumnKind::Regular };
            builder = builder.column(&column.name, ty(&column.name), kind);
        }
        builder.build()
    }

    pub fn prepare(&self, text: &str) -> Result<Prepared, CqlError> {
        let parsed = cql::parse(text).map_err(|error| CqlError::Syntax(error.to_string()))?;
        prepare(&parsed, Some("sel"), &self.schema)
    }

    pub fn with_bind<T>(values: &dyn Values, body: impl FnOnce(&Bind<'_>) -> T) -> T {
        let ticks = std::cell::Cell::new(0_i64);
        let time_uuid = || {
            ticks.set(ticks.get() + 1);
            types::Uuid::from_ticks(139_000_000_000_000_000 + ticks.get(), 1 << 63).to_bytes()
        };
        body(&Bind {
            values,
            timestamp: 1_000_000,
            now_seconds: NOW,
            now_millis: NOW * 1000,
            protocol_version: 5,
            time_uuid: &time_uuid,
            list_path: &time_uuid,
            random: &|| [7; 16],
            limits: &Limits::default(),
            guard: None,
            once: Default::default(),
        })
    }

    /// What a modification does.
    pub fn updates(modify: &Modify) -> Result<Updates, CqlError> {
        Self::with_bind(&Given(Vec::new()), |bind| {
            modify.updates(Bind { once: Default::default(), ..*bind })
        })
    }

    /// Runs a modification.
    pub fn apply(&mut self, text: &str) {
        let prepared = self.prepare(text).expect("it prepares");
        let Plan::Modify(modify) = &prepared.plan else { panic!("a modification") };
        let updates = Self::updates(modify).expect("it binds");
        for update in updates.updates {
            let table = self.partitions.entry(update.table).or_default();
            let partition = table.entry((update.token, update.key.clone())).or_default();
            let mut out = RowBuilder::new();
            if let Some(new) = update.static_row() {
                let old = partition.statics.take();
                let merged = match &old {
                    Some(old) => {
                        let old = RowRef::from_packed(old);
                        merge_rows(&update.layout, old, new, Deletion::LIVE, &mut out)
                    }
                    None => Some(new),
                };
                partition.statics = merged.map(|row| row.as_packed().into());
            }
            for new in update.rows.iter() {
                let at = partition.rows.binary_search_by(|row| {
                    let old = RowRef::from_packed(row).clustering();
                    compare_clusterings(&update.layout, old, new.clustering())
                });
                match at {
                    Err(at) => partition.rows.insert(at, new.as_packed().into()),
                    Ok(at) => {
                        let old = RowRef::from_packed(&partition.rows[at]);
                        let merged = merge_rows(&update.layout, old, new, Deletion::LIVE, &mut out);
                        let merged = merged.expect("not empty").as_packed().into();
                        partition.rows[at] = merged;
                    }
                }
            }
        }
    }

    /// All pages of a SELECT.
    pub fn run(
        &self,
        select: &Select,
        values: &Given,
        size: Option<u32>,
    ) -> Result<Answer, CqlError> {
        Self::with_bind(values, |bind| {
            let mut answer = Answer::default();
            let mut aggregation = select.begin();
            let mut group: Option<(Vec<u8>, Group)> = None;
            let mut position: Option<(Vec<u8>, Option<Clustering>, u32, u32)> = None;
            let mut unsorted: Vec<(Clustering, Vec<Option<Vec<u8>>>)> = Vec::new();
            let result_limit;
            loop {
                let after = position.as_ref().map(|(key, row, remaining, in_partition)| Position {
                    key: Some(key),
                    row: row.clone(),
                    remaining: *remaining,
                    remaining_in_partition: *in_partition,
                });
                let read = select.bind(bind, &PageRequest { size, after })?;
                let mut page = Page { world: self, select, read: &read, bind, size: 0, end: None };
                page.run(&mut |row, out| {
                    if select.is_aggregate() {
                        return select.aggregate(&mut aggregation, &read, row, bind);
                    }
                    if select.is_grouped() {
                        if let Some((key, group)) = &mut group
                            && key == row.key
                            && select.join_group(group, &read, row, bind)?
                        {
                            return Ok(());
                        }
                        let opened = (row.key.to_vec(), select.open_group(&read, row, bind)?);
                        unsorted.extend(end_group(select, &read, bind, group.replace(opened))?);
                        return Ok(());
                    }
                    unsorted.push((row.clustering.to_owned(), out));
                    Ok(())
                })?;
                position = page.end;
                answer.pages.push(page.size as usize);
                assert!(answer.pages.len() < 200, "pages without end");
                if position.is_none() {
                    unsorted.extend(end_group(select, &read, bind, group.take())?);
                    if select.is_aggregate() {
                        let mut out = Vec::new();
                        select.finish(&aggregation, &read, bind, &mut out)?;
                        unsorted = vec![(Clustering::default(), cells(&out))];
                    }
                    result_limit = read.result_limit;
                    break;
                }
            }
            if let Some(order) = select.post_order() {
                unsorted.sort_by(|(a, _), (b, _)| {
                    order.compare(select.table(), a.as_ref(), b.as_ref())
                });
            }
            answer.rows = unsorted.into_iter().map(|(_, row)| row).collect();
            answer.rows.truncate(result_limit as usize);
            Ok(answer)
        })
    }

    /// The partitions of a target, in order.
    fn partitions_of(
        &self,
        table: &Table,
        target: &Target,
    ) -> Vec<(&(Token, KeyBytes), &Partition)> {
        let Some(all) = self.partitions.get(&table.id.0) else { return Vec::new() };
        let after = |key: &(Token, KeyBytes), from: &RangeBound, above: bool| match from {
            RangeBound::Unbounded => true,
            RangeBound::Token { token, inclusive } => {
                (if above { key.0 > *token } else { key.0 < *token })
                    || (*inclusive && key.0 == *token)
            }
            RangeBound::Key { key: PartitionKey { token, bytes }, inclusive } => {
                let order = (key.0, &key.1).cmp(&(*token, bytes));
                (if above { order.is_gt() } else { order.is_lt() }) || (*inclusive && order.is_eq())
            }
        };
        match target {
            Target::Keys(keys) => keys
                .iter()
                .filter_map(|key| all.get_key_value(&(key.token, key.bytes.clone())))
                .collect(),
            Target::Range { from, to } => all
                .iter()
                .filter(|(key, _)| after(key, from, true) && after(key, to, false))
                .collect(),
        }
    }
}

type Sorted = (Clustering, Vec<Option<Vec<u8>>>);

/// The row of a group, and the clustering that it is sorted by.
fn end_group(
    select: &Select,
    read: &Read,
    bind: &Bind<'_>,
    group: Option<(Vec<u8>, Group)>,
) -> Result<Option<Sorted>, CqlError> {
    let Some((_, group)) = group else { return Ok(None) };
    let mut out = Vec::new();
    select.finish(&group.aggregation, read, bind, &mut out)?;
    Ok(Some((group.first, cells(&out))))
}

/// Cells of a projected row.
pub fn cells(mut out: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut cells = Vec::new();
    while let Some((length, rest)) = out.split_first_chunk::<4>() {
        let length = i32::from_be_bytes(*length);
        let Ok(length) = usize::try_from(length) else {
            cells.push(None);
            out = rest;
            continue;
        };
        let (value, rest) = rest.split_at(length);
        cells.push(Some(value.to_vec()));
        out = rest;
    }
    cells
}

type Take<'t> = dyn FnMut(&ResultRow<'_>, Vec<Option<Vec<u8>>>) -> Result<(), CqlError> + 't;

struct Page<'a> {
    world: &'a World,
    select: &'a Select,
    read: &'a Read,
    bind: &'a Bind<'a>,
    size: u32,
    end: Option<(Vec<u8>, Option<Clustering>, u32, u32)>,
}

impl Page<'_> {
    fn run(&mut self, take: &mut Take<'_>) -> Result<(), CqlError> {
        let table = self.select.table();
        let partitions = self.world.partitions_of(table, &self.read.target);
        for (index, (key, partition)) in partitions.into_iter().enumerate() {
            // The first partition that is there may not be the first one wanted.
            let resumed = index == 0 && self.is_first_of_target(&key.1);
            let filter = match &self.read.first_rows {
                Some(rows) if resumed => rows,
                _ => &self.read.rows,
            };
            let limit = if resumed { self.read.first_limit } else { self.read.per_partition_limit };
            let again = resumed && self.read.first_rows.is_some();
            if self.partition(&key.1, partition, filter, limit, again, take)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn is_first_of_target(&self, key: &[u8]) -> bool {
        match &self.read.target {
            Target::Keys(keys) => keys.first().is_some_and(|first| *first.bytes == *key),
            Target::Range { from: RangeBound::Key { key: from, inclusive: true }, .. } => {
                *from.bytes == *key
            }
            Target::Range { .. } => false,
        }
    }

    /// True when the page is full.
    fn partition(
        &mut self,
        key: &[u8],
        partition: &Partition,
        filter: &RowFilter,
        limit: u32,
        again: bool,
        take: &mut Take<'_>,
    ) -> Result<bool, CqlError> {
        let layout = &self.select.table().layout;
        let statics = partition.statics.as_deref().map(RowRef::from_packed);
        let mut rows: Vec<RowRef<'_>> =
            partition.rows.iter().map(|row| RowRef::from_packed(row)).collect();
        rows.retain(|row| filter.selects(layout, &row.clustering().to_owned()));
        rows.retain(|row| row_is_live(*row, NOW, self.select.is_strict()));
        if self.read.reversed {
            rows.reverse();
        }
        let (total, mut count) = (rows.len(), 0);
        for row in rows {
            if count == limit {
                break;
            }
            let result = ResultRow {
                key,
                clustering: row.clustering(),
                statics,
                row: Some(row),
                now_seconds: NOW,
            };
            if self.select.passes(self.read, &result) {
                count += 1;
                if self.give(&result, limit - count, take)? {
                    return Ok(true);
                }
            }
        }
        let live_statics = statics.is_some_and(|row| row.has_live_data(NOW, false));
        if total == 0 && !again && live_statics && self.select.wants_static_only_row() {
            let clustering = ClusteringRef::EMPTY;
            let result = ResultRow { key, clustering, statics, row: None, now_seconds: NOW };
            if self.select.passes(self.read, &result) {
                return self.give(&result, 0, take);
            }
        }
        Ok(false)
    }

    fn give(
        &mut self,
        row: &ResultRow<'_>,
        left: u32,
        take: &mut Take<'_>,
    ) -> Result<bool, CqlError> {
        let mut out = Vec::new();
        if !self.select.is_aggregate() && !self.select.is_grouped() {
            self.select.project(self.read, row, self.bind, &mut out)?;
            assert_eq!(cells(&out).len(), self.select.width());
        }
        take(row, cells(&out))?;
        self.size += 1;
        if self.read.page_size.is_some_and(|size| self.size >= size) && self.size < self.read.limit
        {
            let clustering = row.row.map(|row| row.clustering().to_owned());
            // A table without clustering columns has no row to go on after.
            let clustering = clustering.filter(|_| !self.select.table().clustering.is_empty());
            let left = if clustering.is_none() { 0 } else { left };
            self.end = Some((row.key.to_vec(), clustering, self.read.limit - self.size, left));
            return Ok(true);
        }
        Ok(self.size >= self.read.limit)
    }
}
