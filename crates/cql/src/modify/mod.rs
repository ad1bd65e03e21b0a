//! INSERT, UPDATE, DELETE and BATCH: prepared against the schema, then bound to updates of
//! partitions.
//!
//! `Modify::updates` turns values into `rows::PartitionUpdate`: packed rows in one byte string, no
//! tree. A statement that reads first, or has conditions, becomes a `BoundModify`. Either uses up
//! its `Bind`, so that `uuid()` and `now()` are evaluated once.

mod attributes;
mod batch;
mod bound;
mod cas;
mod compact;
mod condition;
mod filter;
mod indexed;
mod json;
mod operation;
mod source;
mod target;
mod times;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::{
    Bound, ClusteringRef, Deletion, PartitionUpdate, RangeTombstone, RowBuilder, UpdateBuilder,
};
use schema::{ColumnKind, Reason, Table, TableId};
use types::{Few, KeyBytes};

use crate::ast::{self, InsertValues};
use crate::context::{Bind, Once};
use crate::error::CqlError;
use crate::guard::Guard;
use crate::scope::{ColumnSpec, Scope};
use crate::term::{Marker, Term};
use attributes::Attributes;
use condition::Conditions;
use filter::Filter;
use json::Document;
use operation::Operation;
use source::Source;
use times::Times;
use write::CellWriter;

pub use attributes::MAX_TTL;
pub use batch::{Batch, BatchUpdates, Part, check_parts, finish_bound, finish_parts};
pub use bound::{BoundModify, ReadFirst};
pub use cas::{Cas, CasAnswer, Current};
pub use target::{MAX_COMBINATIONS, Target};
pub use write::{Before, CellContext, NothingRead};

/// Which statement a modification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

impl Kind {
    /// As error messages name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// A prepared INSERT, UPDATE or DELETE.
#[derive(Clone, Debug)]
pub struct Modify {
    kind: Kind,
    table: Arc<Table>,
    attributes: Attributes,
    filter: Filter,
    /// Operations on static columns, in textual order.
    statics: Vec<Operation>,
    /// Operations on regular columns, in textual order.
    regulars: Vec<Operation>,
    /// What gives the values of the markers in operations and filter: a JSON document instead of
    /// the request.
    json: Option<Document>,
    /// What must hold for it to be done.
    conditions: Conditions,
}

/// What one modification does.
#[derive(Clone, Debug)]
pub struct Updates {
    /// One update a partition; none that does nothing.
    pub updates: Few<PartitionUpdate>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

impl Modify {
    /// Checks an INSERT against the schema.
    pub fn insert(statement: &ast::Insert, scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        let table = scope.table(&statement.table)?;
        let attributes = &statement.attributes;
        let attributes = Self::attributes(
            attributes.timestamp.as_ref(),
            attributes.ttl.as_ref(),
            &table,
            scope,
        )?;
        if table.is_counter() {
            return Err(CqlError::invalid(
                "INSERT statements are not allowed on counter tables, use UPDATE instead",
            ));
        }
        let (names, values) = match &statement.values {
            InsertValues::Columns(names, values) => (names, values),
            InsertValues::Json(document, default) => {
                let mut modify = Self::empty(Kind::Insert, &table, attributes);
                modify.json = Some(Document::prepare(document, *default, &table, scope)?);
                for (index, column) in table.all_columns_in_json_order().enumerate() {
                    let term = Term::Marker(Marker {
                        index,
                        receiver: ColumnSpec::of_column(&table, column),
                    });
                    if column.kind.is_primary_key() {
                        // one that COMPACT STORAGE hides is known to the document alone
                        let column = Scope::column(&table, &column.name)?;
                        modify.filter.add_equal_term(column, term, &table)?;
                    } else {
                        modify.push(Operation::set_term(column, term));
                    }
                }
                modify.filter.check(&table, Kind::Insert, false)?;
                modify.conditions = insert_condition(statement);
                return modify.finish(scope);
            }
        };
        check_insert_columns(names, values.len())?;
        let mut modify = Self::empty(Kind::Insert, &table, attributes);
        let mut has_clustering = false;
        let mut keys = Vec::new();
        for (name, value) in names.iter().zip(values) {
            let column = Scope::column(&table, name)?;
            has_clustering |= column.kind == ColumnKind::Clustering;
            if column.kind.is_primary_key() {
                keys.push((column, value));
            } else {
                modify.push(Operation::set(column, value, &table, scope)?);
            }
        }
        for (column, value) in keys {
            modify.filter.add_equal(column, value, &table, scope)?;
        }
        let only_statics =
            !has_clustering && !modify.statics.is_empty() && modify.regulars.is_empty();
        modify.filter.check(&table, Kind::Insert, only_statics)?;
        modify.conditions = insert_condition(statement);
        modify.finish(scope)
    }

    /// Checks an UPDATE against the schema.
    pub fn update(statement: &ast::Update, scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        let table = scope.table(&statement.table)?;
        let attributes = &statement.attributes;
        let attributes = Self::attributes(
            attributes.timestamp.as_ref(),
            attributes.ttl.as_ref(),
            &table,
            scope,
        )?;
        let condition = statement.condition.as_ref();
        let conditions = Conditions::prepare(condition, &attributes, &table, scope)?;
        let mut modify = Self::empty(Kind::Update, &table, attributes);
        modify.conditions = conditions;
        for assignment in &statement.assignments {
            let column = Scope::column(&table, &assignment.column)?;
            if column.kind.is_primary_key() {
                return Err(CqlError::invalid(format!(
                    "PRIMARY KEY part {} found in SET part",
                    column.name
                )));
            }
            let operation = &assignment.operation;
            let conditional = modify.is_conditional();
            modify.push(Operation::assign(column, operation, conditional, &table, scope)?);
        }
        modify.filter = Filter::prepare(&statement.filter, &table, Kind::Update, scope)?;
        modify.filter.check(&table, Kind::Update, modify.is_of_statics())?;
        modify.finish(scope)
    }

    /// Checks a DELETE against the schema.
    pub fn delete(statement: &ast::Delete, scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        let table = scope.table(&statement.table)?;
        let attributes = Self::attributes(statement.timestamp.as_ref(), None, &table, scope)?;
        let condition = statement.condition.as_ref();
        let conditions = Conditions::prepare(condition, &attributes, &table, scope)?;
        let mut modify = Self::empty(Kind::Delete, &table, attributes);
        modify.conditions = conditions;
        for target in &statement.targets {
            let column = Scope::column(&table, &target.column)?;
            if column.kind.is_primary_key() {
                return Err(CqlError::invalid(format!(
                    "Invalid identifier {} for deletion (should not be a PRIMARY KEY part)",
                    column.name
                )));
            }
            modify.push(Operation::delete(column, &target.part, &table, scope)?);
        }
        modify.filter = Filter::prepare(&statement.filter, &table, Kind::Delete, scope)?;
        modify.filter.check(&table, Kind::Delete, modify.is_of_statics())?;
        modify.conditions.check(&modify.attributes, &table)?;
        modify.check_conditional_delete()?;
        modify.finish(scope)
    }

    /// A conditional DELETE names rows, unless it is about static columns alone.
    fn check_conditional_delete(&self) -> Result<(), CqlError> {
        // IN is one of equalities here, and refused when the statement is run
        if !self.is_conditional() || self.filter.names_rows(&self.table) {
            return Ok(());
        }
        let what = if !self.regulars.is_empty() || self.statics.is_empty() {
            "delete non static columns"
        } else if self.conditions.of_columns(false).next().is_some() {
            "use IF condition on non static columns"
        } else {
            return Ok(());
        };
        Err(CqlError::invalid(format!(
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in order to {what}"
        )))
    }

    /// Is it about static columns and no others (`appliesOnlyToStaticColumns`)?
    fn is_of_statics(&self) -> bool {
        self.regulars.is_empty()
            && !self.statics.is_empty()
            && self.conditions.of_columns(false).next().is_none()
    }

    /// Must anything hold for it to be done?
    pub fn is_conditional(&self) -> bool {
        self.conditions.are_any()
    }

    fn attributes(
        timestamp: Option<&ast::Term>,
        ttl: Option<&ast::Term>,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<Attributes, CqlError> {
        Attributes::prepare(timestamp, ttl, &table.keyspace, &table.name, scope)
    }

    fn empty(kind: Kind, table: &Arc<Table>, attributes: Attributes) -> Self {
        Self {
            kind,
            table: Arc::clone(table),
            attributes,
            filter: Filter::default(),
            statics: Vec::new(),
            regulars: Vec::new(),
            json: None,
            conditions: Conditions::None,
        }
    }

    fn push(&mut self, operation: Operation) {
        if operation.is_static {
            self.statics.push(operation);
        } else {
            self.regulars.push(operation);
        }
    }

    /// The last checks.
    fn finish(self, scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        let table = &self.table;
        self.conditions.check(&self.attributes, table)?;
        match scope.schema.refuses_writes(&table.id) {
            None => {}
            Some(Reason::BaseOfView) => {
                return Err(CqlError::unsupported("Writing to a table with materialized views"));
            }
            Some(Reason::Trigger) => {
                return Err(CqlError::unsupported("Writing to a table with triggers"));
            }
            Some(Reason::SuperColumns) => {
                return Err(CqlError::unsupported("Writing to a super column family"));
            }
            Some(_) => {
                return Err(CqlError::unsupported("Writing to a table with custom types"));
            }
        }
        let keys = table.partition_key.len();
        scope.partition_key_markers = scope.variables.partition_key_markers(keys);
        Ok(self)
    }

    /// Which statement it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// What Cassandra refuses when it runs a statement, not when it prepares it
    /// (`ModificationStatement.validate`).
    pub fn check(&self) -> Result<(), CqlError> {
        let (table, attributes) = (&self.table, &self.attributes);
        let has_timestamp = attributes.timestamp.is_some();
        let refuse = |message: &str| Err(CqlError::invalid(message));
        match table.kind {
            _ if table.is_counter() && has_timestamp => {
                refuse("Cannot provide custom timestamp for counter updates")
            }
            _ if table.is_counter() && attributes.ttl.is_some() => {
                refuse("Cannot provide custom TTL for counter updates")
            }
            schema::TableKind::View => refuse("Cannot directly modify a materialized view"),
            schema::TableKind::Virtual if has_timestamp => {
                refuse("Custom timestamp is not supported by virtual tables")
            }
            schema::TableKind::Virtual if attributes.ttl.is_some() => {
                refuse("Expiring columns are not supported by virtual tables")
            }
            schema::TableKind::Virtual => Err(CqlError::invalid(format!(
                "Modification is not supported by table {}.{}",
                table.keyspace, table.name
            ))),
            _ => Ok(()),
        }
    }

    /// What an ordinary user may not ask, whatever the values are.
    ///
    /// # Errors
    /// If this is it.
    pub fn guard(&self, guard: &Guard) -> Result<(), CqlError> {
        match self.attributes.timestamp {
            Some(_) => guard.user_timestamps(),
            None => Ok(()),
        }
    }

    /// Must rows be read before it can be bound?
    pub fn needs_read(&self) -> bool {
        self.statics.iter().chain(&self.regulars).any(Operation::needs_read)
    }

    /// What it does. It reads nothing first: otherwise it is bound ([`Modify::bind`]), and done
    /// once rows were read.
    pub fn updates(&self, bind: Bind<'_>) -> Result<Updates, CqlError> {
        self.check()?;
        let mut warnings = Vec::new();
        let mut builders = PartitionBuilders::default();
        self.add_to(&mut builders, &bind, &mut warnings)?;
        Ok(Updates { updates: builders.updates()?, warnings })
    }

    /// Adds what it does to updates in the making, one a table and key. Its terms are evaluated on
    /// the way.
    fn add_to(
        &self,
        builders: &mut PartitionBuilders,
        bind: &Bind<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), CqlError> {
        assert!(!self.needs_read(), "what reads first is bound before it is done");
        let timestamp = self.timestamp(bind)?;
        self.in_document(bind, |of_document| {
            let keys = self.filter.keys(&self.table, of_document)?;
            let target = self.filter.target(&self.table, self.kind, of_document)?;
            if target.names_nothing() {
                return Ok(());
            }
            let times = Times::of(self, bind, timestamp, warnings)?;
            let mut source = Source::Terms(of_document);
            let cells = CellContext { list_path: bind.list_path, guard: bind.guard };
            self.write_to(builders, &keys, &target, times, &mut source, cells, &NothingRead)
        })
    }

    /// The timestamp of what it writes, in the limits that an ordinary user has.
    fn timestamp(&self, bind: &Bind<'_>) -> Result<i64, CqlError> {
        let timestamp = self.attributes.timestamp(bind, bind.timestamp)?;
        if self.attributes.timestamp.is_some() {
            let now = bind.now_millis.saturating_mul(1000);
            bind.guarded(|guard| guard.timestamp(&self.table.name, timestamp, now))?;
        }
        Ok(timestamp)
    }

    /// Runs with the values of a JSON document in place of the request's, if there is one.
    fn in_document<T>(
        &self,
        request: &Bind<'_>,
        run: impl FnOnce(&Bind<'_>) -> Result<T, CqlError>,
    ) -> Result<T, CqlError> {
        match &self.json {
            None => run(request),
            Some(json) => {
                let values = json.values(&self.table, request)?;
                run(&Bind { values: &values, once: Once::default(), ..*request })
            }
        }
    }

    /// Writes to the rows of some partitions.
    fn write_to(
        &self,
        builders: &mut PartitionBuilders,
        keys: &[KeyBytes],
        target: &Target,
        times: Times,
        source: &mut Source<'_>,
        cells: CellContext<'_>,
        before: &dyn Before,
    ) -> Result<(), CqlError> {
        let mut writing = Writing {
            modify: self,
            times,
            source,
            cells,
            before,
            row: RowBuilder::new(),
            scratch: RowBuilder::new(),
        };
        for key in keys {
            let builder = builders.of(&self.table, key);
            writing.partition(key, target, builder)?;
        }
        Ok(())
    }
}

/// The update of one partition in the making.
pub(crate) struct PartitionBuilder {
    table: Arc<Table>,
    update: UpdateBuilder,
}

impl PartitionBuilder {
    /// The update, if no index has anything against it.
    fn finish(self, scratch: &mut RowBuilder) -> Result<PartitionUpdate, CqlError> {
        let update = self.update.finish(scratch);
        if !self.table.indexes.is_empty() {
            indexed::check(&self.table, &update)?;
        }
        Ok(update)
    }
}

/// Up to so many updates are looked through one by one.
const FEW_UPDATES: usize = 8;

/// Updates in the making, one a table and key, in the order in which they were begun.
#[derive(Default)]
pub(crate) struct PartitionBuilders {
    list: Few<PartitionBuilder>,
    /// Where each stands, once they are many.
    places: BTreeMap<(TableId, KeyBytes), usize>,
}

impl PartitionBuilders {
    /// The updates that do something.
    fn updates(self) -> Result<Few<PartitionUpdate>, CqlError> {
        let mut scratch = RowBuilder::new();
        let mut updates = Few::with_capacity(self.list.len());
        for builder in self.list {
            updates.push(builder.finish(&mut scratch)?);
        }
        updates.retain(|update| !update.is_empty());
        Ok(updates)
    }

    /// The update for a key of a table, a new one at need.
    fn of(&mut self, table: &Arc<Table>, key: &[u8]) -> &mut UpdateBuilder {
        let found = if self.list.len() <= FEW_UPDATES {
            self.list.iter().position(|b| b.table.id == table.id && **b.update.key() == *key)
        } else {
            self.places.get(&(table.id, key.into())).copied()
        };
        let at = found.unwrap_or_else(|| self.begin(table, key));
        &mut self.list[at].update
    }

    fn begin(&mut self, table: &Arc<Table>, key: &[u8]) -> usize {
        self.list.push(PartitionBuilder {
            table: Arc::clone(table),
            update: UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), key),
        });
        if self.list.len() > FEW_UPDATES {
            let unplaced = self.list.iter().enumerate().skip(self.places.len());
            self.places.extend(unplaced.map(|(at, b)| ((b.table.id, b.update.key().clone()), at)));
        }
        self.list.len() - 1
    }
}

/// A modification at work.
struct Writing<'w, 's> {
    modify: &'w Modify,
    times: Times,
    source: &'w mut Source<'s>,
    cells: CellContext<'w>,
    before: &'w dyn Before,
    row: RowBuilder,
    scratch: RowBuilder,
}

impl<'w, 's: 'w> Writing<'w, 's> {
    fn deletion(&self) -> Deletion {
        Deletion::new(self.times.timestamp, self.times.now_seconds)
    }

    fn partition(
        &mut self,
        key: &[u8],
        target: &Target,
        update: &mut UpdateBuilder,
    ) -> Result<(), CqlError> {
        let modify = self.modify;
        let changes_columns = !modify.statics.is_empty() || !modify.regulars.is_empty();
        match target {
            Target::Ranges(_) if changes_columns => Err(no_columns_of_ranges()),
            Target::Ranges(ranges) => {
                for range in ranges {
                    update.delete_range(self.range(range));
                }
                Ok(())
            }
            Target::Rows(rows) => {
                for row in rows {
                    self.row(key, row.as_ref(), update)?;
                }
                Ok(())
            }
            Target::Partition if modify.kind == Kind::Delete && !changes_columns => {
                update.delete_partition(self.deletion());
                Ok(())
            }
            Target::Partition if modify.table.clustering.is_empty() => {
                self.row(key, ClusteringRef::EMPTY, update)
            }
            Target::Partition if modify.kind == Kind::Delete && !modify.regulars.is_empty() => {
                Err(no_columns_of_ranges())
            }
            Target::Partition => self.static_row(key, update),
        }
    }

    fn range(&self, (start, end): &(Bound, Bound)) -> RangeTombstone {
        RangeTombstone { start: start.clone(), end: end.clone(), deletion: self.deletion() }
    }

    /// Writes one row, and the static one where the statement is about both.
    fn row(
        &mut self,
        key: &[u8],
        clustering: ClusteringRef<'_>,
        update: &mut UpdateBuilder,
    ) -> Result<(), CqlError> {
        let modify = self.modify;
        if modify.table.flags.is_compact() {
            return self.compact_row(key, clustering, update);
        }
        let deletes_columns = !modify.statics.is_empty() || !modify.regulars.is_empty();
        if modify.kind != Kind::Delete || !deletes_columns || !modify.regulars.is_empty() {
            self.row.start_row(clustering);
            if modify.kind == Kind::Insert {
                self.row.liveness(self.times.liveness());
            }
            if modify.kind == Kind::Delete && !deletes_columns {
                self.row.deletion(self.deletion());
            }
            self.cells(key, Some(clustering), &modify.regulars)?;
            update.add_built(&mut self.row, &mut self.scratch);
        }
        self.static_row(key, update)
    }

    fn static_row(&mut self, key: &[u8], update: &mut UpdateBuilder) -> Result<(), CqlError> {
        let modify = self.modify;
        if modify.statics.is_empty() {
            return Ok(());
        }
        self.row.start_static();
        self.cells(key, None, &modify.statics)?;
        update.add(self.row.finish_row(&modify.table.layout), &mut self.scratch);
        Ok(())
    }

    fn cells(
        &mut self,
        key: &[u8],
        clustering: Option<ClusteringRef<'_>>,
        operations: &'w [Operation],
    ) -> Result<(), CqlError> {
        if let Source::Keeping(..) = self.source {
            return operations.iter().try_for_each(|operation| self.source.keep(operation));
        }
        let reads = operations.iter().any(Operation::needs_read);
        let mut writer = CellWriter {
            row: &mut self.row,
            layout: &self.modify.table.layout,
            columns: match clustering {
                Some(_) => &self.modify.table.regulars,
                None => &self.modify.table.statics,
            },
            times: self.times,
            context: self.cells,
            before: if reads { self.before.row(key, clustering) } else { None },
        };
        for operation in operations {
            let values = self.source.values(operation)?;
            writer.apply(operation, values)?;
        }
        Ok(())
    }
}

fn no_columns_of_ranges() -> CqlError {
    CqlError::invalid("Range deletions are not supported for specific columns")
}

fn check_insert_columns(names: &[String], values: usize) -> Result<(), CqlError> {
    if names.is_empty() {
        return Err(CqlError::invalid("No columns provided to INSERT"));
    }
    if names.len() != values {
        return Err(CqlError::invalid("Unmatched column names/values"));
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort();
    if sorted.is_sorted_by(|a, b| a != b) {
        Ok(())
    } else {
        Err(CqlError::invalid("The column names contains duplicates"))
    }
}

fn insert_condition(statement: &ast::Insert) -> Conditions {
    match statement.if_not_exists {
        true => Conditions::NotExists,
        false => Conditions::None,
    }
}
