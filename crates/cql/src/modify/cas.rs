//! Conditional statements and batches of them, bound: which rows they ask for, whether these let
//! them be done, what is written then, and what is answered (`CQL3CasRequest`).
//!
//! Pure: `crates/cluster/src/paxos` takes the request, with its values, to the shard that owns the
//! key.

use std::collections::BTreeSet;
use std::sync::Arc;

use rows::{
    Clustering, ClusteringRef, PartitionUpdate, RowBuilder, RowRef, UpdateBuilder,
    compare_clusterings,
};
use schema::{Column, Table};
use types::CqlType;

use crate::context::Bind;
use crate::error::CqlError;
use crate::metadata::ResultColumn;
use crate::modify::batch::Part;
use crate::modify::condition::{BoundCondition, Conditions};
use crate::modify::write::{Before, CellContext};
use crate::modify::{BoundModify, Modify, PartitionBuilders};
use crate::select::{ResultRow, put_columns};

/// What must hold of a row.
#[derive(Clone, Debug)]
enum Test {
    Exists,
    NotExists,
    Columns(Vec<BoundCondition>),
}

impl Test {
    fn holds(&self, row: Option<RowRef<'_>>, now: i64) -> Result<bool, CqlError> {
        match self {
            Self::Exists => Ok(row.is_some()),
            Self::NotExists => Ok(row.is_none()),
            Self::Columns(conditions) => {
                for condition in conditions {
                    if !condition.holds(row, now)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

/// Columns of one kind that are read: all, or these.
#[derive(Clone, Debug)]
enum Fetched {
    All,
    Some(BTreeSet<u16>),
}

impl Fetched {
    fn has(&self, column: u16) -> bool {
        match self {
            Self::All => true,
            Self::Some(columns) => columns.contains(&column),
        }
    }
}

/// A conditional statement or batch with the values of its conditions.
#[derive(Clone, Debug)]
pub struct Cas {
    table: Arc<Table>,
    key: Vec<u8>,
    of_static: Option<Test>,
    /// By clustering, in the order of the table.
    of_rows: Vec<(Clustering, Test)>,
    statics: Fetched,
    regulars: Fetched,
    /// The columns that it answers with where it is not done.
    columns: Vec<Column>,
    /// What is done where the conditions hold.
    parts: Vec<BoundModify>,
}

/// The rows that a conditional statement sees: what is alive of the columns that it asks for.
#[derive(Clone, Debug)]
pub struct Current {
    now: i64,
    layout: Arc<rows::Layout>,
    static_row: Option<Box<[u8]>>,
    rows: Vec<Box<[u8]>>,
}

/// What a conditional statement answers.
#[derive(Clone, Debug)]
pub struct CasAnswer {
    /// The columns.
    pub columns: Vec<ResultColumn>,
    /// Number of rows.
    pub rows: u32,
    /// Their cells.
    pub cells: Vec<u8>,
}

impl Modify {
    fn updates_rows(&self) -> bool {
        self.table.clustering.is_empty() || !self.filter.clustering.is_empty()
    }
}

impl Cas {
    /// Binds a statement, or the statements of a batch.
    pub fn bind(parts: Vec<Part<'_>>, is_batch: bool) -> Result<Self, CqlError> {
        let Some(first) = parts.first() else {
            return Err(CqlError::invalid("A batch without statements has no conditions"));
        };
        let mut cas = Self {
            table: Arc::clone(&first.modify.table),
            key: Vec::new(),
            of_static: None,
            of_rows: Vec::new(),
            statics: Fetched::Some(BTreeSet::new()),
            regulars: Fetched::Some(BTreeSet::new()),
            columns: Vec::new(),
            parts: Vec::with_capacity(parts.len()),
        };
        for Part { modify, bind } in parts {
            let bound = modify.bind_conditional(&bind)?;
            let key = bound.keys().first().expect("one was named");
            if cas.parts.is_empty() {
                cas.key = key.to_vec();
            } else if *cas.key != **key {
                return Err(CqlError::invalid(
                    "Batch with conditions cannot span multiple partitions",
                ));
            }
            if modify.is_conditional() {
                cas.add(modify, &bind, bound.row())?;
            }
            cas.parts.push(bound);
        }
        cas.fetch();
        cas.columns = cas.answered(is_batch);
        Ok(cas)
    }

    fn add(
        &mut self,
        modify: &Modify,
        bind: &Bind<'_>,
        row: Option<Clustering>,
    ) -> Result<(), CqlError> {
        let bound = |statics: bool| -> Result<Vec<BoundCondition>, CqlError> {
            modify.conditions.of_columns(statics).map(|condition| condition.bind(bind)).collect()
        };
        match &modify.conditions {
            Conditions::None => Ok(()),
            Conditions::Exists => self.test(row, Test::Exists),
            Conditions::NotExists => self.test(row, Test::NotExists),
            Conditions::Columns(_) => {
                let (of_row, of_static) = (bound(false)?, bound(true)?);
                if !of_row.is_empty() {
                    self.test(row, Test::Columns(of_row))?;
                }
                if !of_static.is_empty() {
                    self.test(None, Test::Columns(of_static))?;
                }
                Ok(())
            }
        }
    }

    /// Adds a test of a row beside those that there are.
    fn test(&mut self, row: Option<Clustering>, new: Test) -> Result<(), CqlError> {
        let old = match &row {
            None => self.of_static.as_mut(),
            Some(row) => {
                let layout = &self.table.layout;
                let is_it =
                    |of: &Clustering| compare_clusterings(layout, of.as_ref(), row.as_ref());
                self.of_rows.iter_mut().find(|(of, _)| is_it(of).is_eq()).map(|(_, test)| test)
            }
        };
        let refuse = |message: &str| Err(CqlError::invalid(message));
        match (old, new) {
            (None, new) => {
                match row {
                    None => self.of_static = Some(new),
                    Some(row) => self.of_rows.push((row, new)),
                }
                let layout = &self.table.layout;
                self.of_rows
                    .sort_by(|(a, _), (b, _)| compare_clusterings(layout, a.as_ref(), b.as_ref()));
                Ok(())
            }
            (Some(Test::Columns(old)), Test::Columns(new)) => {
                old.extend(new);
                Ok(())
            }
            (Some(Test::Exists), Test::Exists) | (Some(Test::NotExists), Test::NotExists) => Ok(()),
            (Some(_), Test::Columns(_)) => {
                refuse("Cannot mix IF conditions and IF NOT EXISTS for the same row")
            }
            (Some(Test::Columns(_)), Test::Exists) => {
                refuse("Cannot mix IF conditions and IF EXISTS for the same row")
            }
            (Some(Test::Columns(_)), Test::NotExists) => {
                refuse("Cannot mix IF conditions and IF NOT EXISTS for the same row")
            }
            (Some(_), _) => {
                refuse("Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row")
            }
        }
    }

    /// Which columns are read. Whether a row exists only all of its columns tell.
    fn fetch(&mut self) {
        let (mut statics, mut regulars) = (BTreeSet::new(), BTreeSet::new());
        let mut all_statics = false;
        let modifies = || self.parts.iter().map(|part| &**part.modify());
        for modify in modifies().filter(|modify| modify.is_conditional()) {
            all_statics |= !modify.statics.is_empty();
            statics.extend(modify.conditions.of_columns(true).map(|c| c.column.index));
            regulars.extend(modify.conditions.of_columns(false).map(|c| c.column.index));
            let reading = |operations: &[super::Operation]| -> Vec<u16> {
                let reading = operations.iter().filter(|operation| operation.needs_read());
                reading.map(|operation| operation.column).collect()
            };
            statics.extend(reading(&modify.statics));
            regulars.extend(reading(&modify.regulars));
        }
        let all_regulars = modifies().any(Modify::updates_rows);
        self.statics = if all_statics { Fetched::All } else { Fetched::Some(statics) };
        self.regulars = if all_regulars { Fetched::All } else { Fetched::Some(regulars) };
    }

    /// The columns of the answer: those of the conditions in their order, behind the primary key in
    /// a batch; all where a row as a whole is asked for.
    fn answered(&self, is_batch: bool) -> Vec<Column> {
        let modifies = || self.parts.iter().map(|part| &**part.modify());
        let conditional = || modifies().filter(|modify| modify.is_conditional());
        let whole = |modify: &Modify| !matches!(modify.conditions, Conditions::Columns(_));
        if conditional().any(whole) {
            return self.table.all_columns_in_select_order().cloned().collect();
        }
        let mut columns: Vec<Column> = Vec::new();
        if is_batch {
            columns.extend(self.table.primary_key().cloned());
        }
        for modify in conditional() {
            let conditions = &modify.conditions;
            for condition in conditions.of_columns(false).chain(conditions.of_columns(true)) {
                if !columns.iter().any(|column| column.name == condition.column.name) {
                    columns.push(condition.column.clone());
                }
            }
        }
        columns
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The partition.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The rows to be read beside the static one; `None` for the first that there is, which tells a
    /// partition without static values from none.
    pub fn rows(&self) -> Option<Vec<Clustering>> {
        match self.of_rows.as_slice() {
            [] => None,
            rows => Some(rows.iter().map(|(row, _)| row.clone()).collect()),
        }
    }

    /// Nothing seen yet.
    pub fn nothing(&self, now: i64) -> Current {
        let layout = Arc::clone(&self.table.layout);
        Current { now, layout, static_row: None, rows: Vec::new() }
    }

    /// Looks at a row as it is stored; rows come in order. Is there anything to be seen of it?
    pub fn see(&self, row: RowRef<'_>, current: &mut Current, scratch: &mut RowBuilder) -> bool {
        let now = current.now;
        let fetched = if row.is_static() { &self.statics } else { &self.regulars };
        scratch.start_like(row);
        if let Some(liveness) = row.liveness().filter(|liveness| liveness.is_live(now)) {
            scratch.liveness(liveness);
        }
        let cells = row.cells().filter(|cell| cell.is_live(now) && fetched.has(cell.column));
        cells.for_each(|cell| scratch.cell(cell));
        let seen = scratch.finish_row(&current.layout);
        if seen.is_empty() {
            return false;
        }
        match row.is_static() {
            true => current.static_row = Some(seen.as_packed().into()),
            false => current.rows.push(seen.as_packed().into()),
        }
        true
    }

    /// Does all hold that must?
    pub fn applies(&self, current: &Current) -> Result<bool, CqlError> {
        if let Some(test) = &self.of_static
            && !test.holds(current.static_row(), current.now)?
        {
            return Ok(false);
        }
        for (row, test) in &self.of_rows {
            if !test.holds(current.at(row.as_ref()), current.now)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is written, all of it at `timestamp`; `list_path` gives cells of lists paths of that
    /// time.
    pub fn updates(
        &self,
        current: &Current,
        timestamp: i64,
        list_path: &dyn Fn() -> [u8; 16],
        warnings: &mut Vec<String>,
    ) -> Result<PartitionUpdate, CqlError> {
        let mut builders = PartitionBuilders::default();
        let cells = CellContext { list_path, guard: None };
        for part in &self.parts {
            part.add_to(&mut builders, cells, current, warnings)?;
        }
        let mut scratch = RowBuilder::new();
        let update = match builders.list.into_iter().next_back() {
            Some(builder) => builder.finish(&mut scratch)?,
            None => self.nothing_written(),
        };
        Ok(update.at(timestamp, &mut scratch))
    }

    /// An update that does nothing.
    pub fn nothing_written(&self) -> PartitionUpdate {
        let table = &self.table;
        UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &self.key)
            .finish(&mut RowBuilder::new())
    }

    /// The answer of a statement that was done.
    pub fn applied(&self) -> CasAnswer {
        CasAnswer { columns: vec![self.applied_column()], rows: 1, cells: boolean(true) }
    }

    /// The answer of one that was not: what it saw.
    pub fn refused(&self, current: &Current) -> CasAnswer {
        let table = &self.table;
        let mut cells = Vec::new();
        let mut put = |row: Option<RowRef<'_>>| {
            cells.extend(boolean(false));
            let clustering = row.map_or(ClusteringRef::EMPTY, |row| row.clustering());
            let (key, statics) = (&*self.key, current.static_row());
            let row = ResultRow { key, clustering, statics, row, now_seconds: current.now };
            put_columns(table, &self.columns, &row, &mut cells);
        };
        let rows = match current.rows.len() {
            0 if current.static_row.is_none() => {
                let columns = vec![self.applied_column()];
                return CasAnswer { columns, rows: 1, cells: boolean(false) };
            }
            0 => {
                put(None);
                1
            }
            rows => {
                current.rows.iter().for_each(|row| put(Some(RowRef::from_packed(row))));
                rows
            }
        };
        let columns = self.columns.iter().map(|column| ResultColumn {
            keyspace: table.keyspace.as_str().into(),
            table: table.name.as_str().into(),
            name: Arc::clone(&column.name),
            ty: column.ty.clone(),
            reversed: column.reversed,
        });
        let columns = std::iter::once(self.applied_column()).chain(columns).collect();
        CasAnswer { columns, rows: u32::try_from(rows).unwrap_or(u32::MAX), cells }
    }

    fn applied_column(&self) -> ResultColumn {
        ResultColumn {
            keyspace: self.table.keyspace.as_str().into(),
            table: self.table.name.as_str().into(),
            name: "[applied]".into(),
            ty: CqlType::Boolean,
            reversed: false,
        }
    }
}

/// A cell of the column `[applied]`.
fn boolean(value: bool) -> Vec<u8> {
    vec![0, 0, 0, 1, value.into()]
}

impl Current {
    fn static_row(&self) -> Option<RowRef<'_>> {
        self.static_row.as_deref().map(RowRef::from_packed)
    }

    fn at(&self, clustering: ClusteringRef<'_>) -> Option<RowRef<'_>> {
        let mut rows = self.rows.iter().map(|row| RowRef::from_packed(row));
        rows.find(|row| compare_clusterings(&self.layout, row.clustering(), clustering).is_eq())
    }
}

impl Before for Current {
    fn row(&self, _: &[u8], clustering: Option<ClusteringRef<'_>>) -> Option<RowRef<'_>> {
        match clustering {
            Some(clustering) => self.at(clustering),
            None => self.static_row(),
        }
    }
}
