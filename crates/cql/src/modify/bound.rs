//! A modification with its values: bound once, by the coordinator of its request, and from then on
//! the same on every shard, in every round of Paxos, before and after a read.

use std::sync::Arc;

use rows::Clustering;
use types::{Few, KeyBytes};

use crate::context::Bind;
use crate::error::CqlError;
use crate::modify::operation::Operation;
use crate::modify::source::Source;
use crate::modify::target::Target;
use crate::modify::times::Times;
use crate::modify::write::{Before, CellContext, NothingRead};
use crate::modify::{Kind, Modify, PartitionBuilders, Updates};
use crate::value::OwnedValue;

/// A modification with the values that its terms had when it was bound.
#[derive(Clone, Debug)]
pub struct BoundModify {
    modify: Arc<Modify>,
    keys: Few<KeyBytes>,
    target: Target,
    /// What is to be written; an error that counts only if it is to be done.
    work: Result<Work, CqlError>,
}

/// What a bound modification writes.
#[derive(Clone, Debug)]
struct Work {
    times: Times,
    /// Of all terms of its operations, in the order in which rows are written.
    values: Vec<OwnedValue>,
    warnings: Vec<String>,
}

/// Rows that must be read before a modification can be done: those that operations on lists depend
/// on.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadFirst {
    /// The partitions.
    pub keys: Vec<Vec<u8>>,
    /// The rows of each of them.
    pub rows: Vec<Clustering>,
    /// Is the static row needed too?
    pub static_row: bool,
    /// The columns by index in the layout, with true for static ones.
    pub columns: Vec<(u16, bool)>,
}

impl Modify {
    /// Evaluates all its terms.
    pub fn bind(self: &Arc<Self>, bind: Bind<'_>) -> Result<BoundModify, CqlError> {
        self.check()?;
        for operation in self.statics.iter().chain(&self.regulars) {
            operation.guard(&bind)?;
        }
        let timestamp = self.timestamp(&bind)?;
        self.in_document(&bind, |of_document| {
            let keys = self.filter.keys(&self.table, of_document)?;
            let target = self.filter.target(&self.table, self.kind, of_document)?;
            let work = self.work(&keys, &target, of_document, &bind, timestamp);
            Ok(BoundModify { modify: Arc::clone(self), keys, target, work })
        })
    }

    /// [`Modify::bind`] as a part of a conditional request, which writes to one partition at a time
    /// of its own.
    pub(super) fn bind_conditional(
        self: &Arc<Self>,
        bind: &Bind<'_>,
    ) -> Result<BoundModify, CqlError> {
        self.check()?;
        self.in_document(bind, |of_document| {
            let keys = self.filter.keys(&self.table, of_document)?;
            let what = if self.kind == Kind::Update { "updates" } else { "deletions" };
            if self.filter.has_key_in() {
                return Err(CqlError::invalid(format!(
                    "IN on the partition key is not supported with conditional {what}"
                )));
            }
            if keys.is_empty() {
                return Err(CqlError::invalid("Some partition key parts are missing"));
            }
            if self.filter.has_clustering_in() {
                return Err(CqlError::invalid(format!(
                    "IN on the clustering key columns is not supported with conditional {what}"
                )));
            }
            self.check_names_something()?;
            let target = self.filter.target(&self.table, self.kind, of_document)?;
            let work = self.work(&keys, &target, of_document, bind, bind.timestamp);
            Ok(BoundModify { modify: Arc::clone(self), keys, target, work })
        })
    }

    /// Evaluates what it writes. `bind` has the values of the operations, `request` those of the
    /// attributes.
    fn work(
        &self,
        keys: &[KeyBytes],
        target: &Target,
        bind: &Bind<'_>,
        request: &Bind<'_>,
        timestamp: i64,
    ) -> Result<Work, CqlError> {
        let mut warnings = Vec::new();
        let times = Times::of(self, request, timestamp, &mut warnings)?;
        let mut source = Source::Keeping(bind, Vec::new());
        if !target.names_nothing() {
            let cells = CellContext { list_path: request.list_path, guard: None };
            let mut unused = PartitionBuilders::default();
            self.write_to(&mut unused, keys, target, times, &mut source, cells, &NothingRead)?;
        }
        let Source::Keeping(_, values) = source else { unreachable!("it was made above") };
        Ok(Work { times, values, warnings })
    }
}

impl BoundModify {
    /// The statement.
    pub fn modify(&self) -> &Arc<Modify> {
        &self.modify
    }

    /// The partitions.
    pub fn keys(&self) -> &[KeyBytes] {
        &self.keys
    }

    /// The row, where it names one; `None` for the static row.
    pub(super) fn row(&self) -> Option<Clustering> {
        match &self.target {
            Target::Rows(rows) => rows.first().cloned(),
            Target::Partition if self.modify.table.clustering.is_empty() => {
                Some(Clustering::default())
            }
            Target::Partition | Target::Ranges(_) => None,
        }
    }

    /// The rows to read before [`BoundModify::updates`]; `None` if there are none.
    pub fn read_first(&self) -> Option<ReadFirst> {
        let modify = &self.modify;
        if !modify.needs_read() {
            return None;
        }
        let rows = match &self.target {
            Target::Rows(rows) => rows.to_vec(),
            Target::Partition if modify.table.clustering.is_empty() => vec![Clustering::default()],
            Target::Partition | Target::Ranges(_) => Vec::new(),
        };
        let operations = modify.statics.iter().chain(&modify.regulars);
        let reading = operations.filter(|operation| operation.needs_read());
        let mut columns: Vec<_> = reading.map(|o| (o.column, o.is_static)).collect();
        columns.sort_unstable();
        columns.dedup();
        Some(ReadFirst {
            keys: self.keys.iter().map(|key| key.to_vec()).collect(),
            rows,
            static_row: modify.statics.iter().any(Operation::needs_read),
            columns,
        })
    }

    /// What it does. `before` has the rows that [`BoundModify::read_first`] asked for.
    pub fn updates(
        &self,
        cells: CellContext<'_>,
        before: &dyn Before,
    ) -> Result<Updates, CqlError> {
        let mut warnings = Vec::new();
        let mut builders = PartitionBuilders::default();
        self.add_to(&mut builders, cells, before, &mut warnings)?;
        Ok(Updates { updates: builders.updates()?, warnings })
    }

    /// Adds what it does to updates in the making, one a table and key.
    pub(super) fn add_to(
        &self,
        builders: &mut PartitionBuilders,
        cells: CellContext<'_>,
        before: &dyn Before,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        if self.target.names_nothing() {
            return Ok(());
        }
        let work = self.work.as_ref().map_err(CqlError::clone)?;
        warnings.extend(work.warnings.iter().cloned());
        let (keys, target) = (&self.keys, &self.target);
        let mut source = Source::Kept(work.values.iter());
        self.modify.write_to(builders, keys, target, work.times, &mut source, cells, before)?;
        let Source::Kept(rest) = source else { unreachable!("it was made above") };
        assert!(rest.as_slice().is_empty(), "a value was kept for no term");
        Ok(())
    }
}
