//! SELECT, prepared.
//!
//! [`Select::prepare`] checks the statement against the schema; [`Select::bind`] turns a request
//! into a [`Read`]: which partitions, which rows of each, how many. Whoever runs it merges rows and
//! hands each live one ([`row_is_live`]) to [`Select::project`]. A partition without live rows
//! whose static row has live data gives one row of its own where [`Select::wants_static_only_row`]
//! says so. Aggregations take the rows in instead and give one at the end.

mod aggregates;
mod aggregation;
mod build;
mod cell;
mod command;
mod expr;
mod filter;
mod group;
pub(crate) mod indexed;
mod keys;
mod limits;
mod operand;
mod order;
mod paging;
mod project;
mod relation;
mod restriction;
mod restrictions;
mod row;
mod selection;
mod slices;

use std::sync::Arc;

use schema::{ColumnKind, Table, TableKind};
use types::{CqlType, Few};

use crate::ast;
use crate::context::Bind;
use crate::error::CqlError;
use crate::guard::Guard;
use crate::metadata::ResultColumn;
use crate::scope::Scope;
use crate::system_keyspaces::{is_local_system, is_system};
use crate::term::Term;
use crate::value::Bound;
use aggregates::Aggregates;
use build::Build;
use expr::{Env, Expr};
use group::GroupBy;
use limits::Limits;
use order::Order;
use project::JsonMembers;
use restrictions::Restrictions;
use row::Place;
use selection::Selected;

pub use aggregation::Aggregation;
pub use command::{ReplicaRead, key_values};
pub use filter::{BoundFilter, Comparison, Test};
pub use group::Group;
pub use keys::{PartitionKey, RangeBound, Target};
pub use limits::NO_LIMIT;
pub use order::PostOrder;
pub use paging::{PageRequest, Position, Read};
pub(crate) use project::put_columns;
pub use row::{ResultRow, row_is_live};
pub use slices::{MAX_COMBINATIONS, RowFilter};

/// A prepared SELECT.
#[derive(Clone, Debug)]
pub struct Select {
    table: Arc<Table>,
    restrictions: Restrictions,
    limits: Limits,
    order: Order,
    distinct: bool,
    /// Is it `SELECT *`?
    is_wildcard: bool,
    outputs: Vec<Expr>,
    /// Terms of the selection.
    terms: Vec<Term>,
    /// Calls with constant arguments; their results are terms too, after the others.
    constants: Vec<Expr>,
    /// Those of them that are arguments of functions.
    arguments: Vec<(usize, String)>,
    fetched: Fetched,
    /// The members of SELECT JSON.
    json: Option<JsonMembers>,
    aggregates: Aggregates,
    group_by: Option<GroupBy>,
    /// Does it say ALLOW FILTERING?
    allows_filtering: bool,
}

/// Which columns must be read, by their indexes in the table. Whether a row is live depends on all
/// its cells, so that the cells of other columns may be left out only if that is known otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Static columns, ascending.
    pub statics: Vec<u16>,
    /// Regular columns, ascending.
    pub regulars: Vec<u16>,
}

/// Makes one column of JSON of the columns of a result: its members.
fn into_json(result: &mut Vec<ResultColumn>) -> JsonMembers {
    let members =
        result.iter().map(|column| (project::json_name(&column.name), column.ty.clone())).collect();
    result.truncate(1);
    for column in result {
        (column.name, column.ty) = ("[json]".into(), CqlType::Text);
    }
    members
}

impl Select {
    /// Checks a SELECT against the schema, and says which columns its result has.
    pub fn prepare(
        select: &ast::Select,
        scope: &mut Scope<'_>,
    ) -> Result<(Self, Arc<[ResultColumn]>), CqlError> {
        let table = scope.table(&select.table)?;
        if table.flags.super_table {
            return Err(CqlError::unsupported("A super column family"));
        }
        let selected = Selected::all(&select.selectors, &table, scope)?;
        let only_statics = selection::only_statics(&table, &selected);
        let ordering = order::columns_of(select, &table)?;
        let restrictions = Restrictions::prepare(select, &table, only_statics, scope)?;
        let is_wildcard = selected.is_empty();
        let selected = if selected.is_empty() { selection::all_columns(&table) } else { selected };
        let mut build = Build {
            table: &table,
            scope,
            terms: Vec::new(),
            columns: Vec::new(),
            aggregates: Vec::new(),
            arguments: Vec::new(),
        };
        let (mut outputs, mut result) = (Vec::new(), Vec::new());
        for (selected, alias) in &selected {
            let (expr, column) = build.output(selected, *alias)?;
            outputs.push(expr);
            result.push(column);
        }
        if select.distinct {
            // What rows are sorted by after they are read is selected too.
            let sorts = if restrictions.key_has_in(&table) { &ordering[..] } else { &[] };
            let sorts = sorts.iter().map(|(place, _)| *place);
            let columns: Vec<Place> = build.columns.iter().copied().chain(sorts).collect();
            check_distinct(select, &table, &restrictions, &columns)?;
        }
        let group_by = match select.group_by.is_empty() {
            true => None,
            false => {
                let groups = Selected::groups(&select.group_by, &table, build.scope)?;
                Some(build.group_by(&groups, &restrictions, select.distinct)?)
            }
        };
        let Build { terms, columns, mut aggregates, arguments, .. } = build;
        let mut constants = Vec::new();
        let mut lift = |expr: Expr| expr.lift_constants(terms.len(), &mut constants);
        outputs = outputs.into_iter().map(&mut lift).collect();
        for one in &mut aggregates {
            one.argument = one.argument.take().map(&mut lift);
        }
        let aggregates_all = !aggregates.is_empty() && group_by.is_none();
        if aggregates_all && select.per_partition_limit.is_some() {
            return Err(CqlError::invalid(
                "PER PARTITION LIMIT is not allowed with aggregate queries.",
            ));
        }
        let mut firsts = 0;
        if aggregates_all || group_by.is_some() {
            outputs = outputs.into_iter().map(|expr| expr.keep_firsts(&mut firsts)).collect();
        }
        let order = Order::prepare(&ordering, &restrictions, &table)?;
        restrictions.check_filtering(select, &table)?;
        let limits = Limits::prepare(select, &table, scope)?;
        scope.partition_key_markers =
            scope.variables.partition_key_markers(table.partition_key.len());
        let fetched = fetched(&table, &restrictions, &columns);
        let json = select.json.then(|| into_json(&mut result));
        let this = Self {
            restrictions,
            limits,
            order,
            distinct: select.distinct,
            is_wildcard,
            outputs,
            terms,
            constants,
            arguments,
            fetched,
            json,
            aggregates: Aggregates { all: aggregates, firsts },
            group_by,
            allows_filtering: select.allow_filtering,
            table,
        };
        Ok((this, result.into()))
    }

    /// What an ordinary user may not ask, whatever the values are.
    ///
    /// # Errors
    /// If this is it.
    pub fn guard(&self, guard: &Guard) -> Result<(), CqlError> {
        if self.group_by.is_some() {
            guard.group_by()?;
        }
        if self.allows_filtering && !is_system(&self.table.keyspace) && !self.table.is_virtual() {
            guard.allow_filtering()?;
        }
        Ok(())
    }

    /// What is to be read for a page.
    pub fn bind(&self, bind: &Bind<'_>, page: &PageRequest<'_>) -> Result<Read, CqlError> {
        let table = &*self.table;
        let limit = self.limits.limit(bind)?;
        if let Some(refused) = self.group_by.as_ref().and_then(|by| by.refused.as_ref()) {
            return Err(CqlError::invalid(refused.as_str()));
        }
        let per_partition_limit = self.limits.per_partition(bind)?;
        let terms = self.bind_terms(bind)?;
        let filter = self.restrictions.filter.as_ref();
        let filter = filter.map(|filter| filter.bind(table, bind)).transpose()?;
        let goes_everywhere = self.uses_index() && self.restrictions.is_range;
        if goes_everywhere && !is_local_system(&table.keyspace) {
            bind.guarded(Guard::index_query)?;
        }
        let post = self.order.post.is_some();
        let per_partition_limit = if self.distinct { 1 } else { per_partition_limit };
        let read = Read {
            target: Target::nothing(),
            rows: RowFilter::all(),
            first_rows: None,
            first_limit: per_partition_limit,
            reversed: self.order.reversed && !self.distinct,
            per_partition_limit,
            limit: if self.is_aggregate() || post { NO_LIMIT } else { limit },
            page_size: page.size.filter(|size| *size > 0 && self.is_paged()),
            asked_page: page.size.filter(|size| *size > 0),
            result_limit: limit,
            filter,
            timeout_nanos: self.limits.timeout_nanos(bind)?,
            now_seconds: bind.now_seconds,
            terms,
        };
        let mut read = self.find(read, bind)?;
        for constant in &self.constants {
            let value = self.env(&read, None, bind).value(constant)?;
            let value = value.map(|value| value.into_owned().into());
            read.terms.push(value);
        }
        let is_nothing = read.target.is_nothing() || self.selects_nothing(&read.rows);
        let is_paged = page.size.is_some_and(|size| size > 0);
        if post && is_paged && !(is_nothing && self.aggregation_warning().is_none()) {
            return Err(CqlError::CannotPage);
        }
        if is_nothing {
            return Ok(read.nothing());
        }
        if let Some(after) = &page.after {
            read = read.resume(after, table)?;
        }
        Ok(read)
    }

    /// Fills in partitions and rows.
    fn find(&self, mut read: Read, bind: &Bind<'_>) -> Result<Read, CqlError> {
        let (table, restrictions) = (&*self.table, &self.restrictions);
        let rows = || match self.distinct {
            true => Ok(RowFilter::all()),
            // what clients see is static
            false if table.is_static_compact() => Ok(RowFilter::Names(Few::new())),
            false => slices::rows_of(&restrictions.clustering, table, bind),
        };
        if restrictions.is_range {
            read.rows = rows()?;
            if !self.selects_nothing(&read.rows) {
                read.target = keys::range_of(restrictions, table, bind)?;
            }
        } else {
            let prefixes = keys::prefixes_of(restrictions, table, bind)?;
            if !prefixes.is_empty() {
                read.rows = rows()?;
            }
            // Where no row is asked for, nobody looks at the keys: an empty one is no error then.
            if !self.selects_nothing(&read.rows) {
                let keys = keys::keys_of(&prefixes, restrictions, table, bind)?;
                bind.guarded(|guard| guard.partition_keys(&table.name, keys.len()))?;
                read.target = Target::Keys(keys);
            }
        }
        Ok(read)
    }

    /// Is nothing of a partition asked for, not even what is static?
    fn selects_nothing(&self, rows: &RowFilter) -> bool {
        rows.is_empty() && !self.table.is_static_compact()
    }

    fn bind_terms(&self, bind: &Bind<'_>) -> Result<Vec<Option<Box<[u8]>>>, CqlError> {
        if self.terms.is_empty() {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        let inputs = self.aggregates.all.iter().filter_map(|one| one.argument.as_ref());
        self.outputs.iter().chain(inputs).for_each(|expr| expr.part_terms(&mut names));
        let mut terms = Vec::with_capacity(self.terms.len());
        for (index, term) in self.terms.iter().enumerate() {
            let part = names.iter().find(|(at, _)| *at == index).map(|(_, what)| *what);
            terms.push(match (term.bind(bind)?, part) {
                (Bound::Bytes(value), _) => Some(value.into_owned().into()),
                (Bound::Null, Some(what)) => {
                    return Err(CqlError::invalid(format!(
                        "Invalid null value for {what} selection on {}",
                        self.part_name(index)
                    )));
                }
                (Bound::Unset, Some("element")) => {
                    return Err(CqlError::invalid(format!(
                        "Invalid unset value for element selection on {}",
                        self.part_name(index)
                    )));
                }
                (Bound::Unset, _) if self.argument_of(index).is_some() => {
                    return Err(CqlError::invalid(format!(
                        "Invalid unset value for argument in call to function {}",
                        self.argument_of(index).unwrap_or_default()
                    )));
                }
                // what is unset by itself is an empty value to Cassandra; an end of a slice is open
                (Bound::Unset, None) => Some(Box::default()),
                (Bound::Null, None) | (Bound::Unset, Some(_)) => None,
            });
        }
        Ok(terms)
    }

    /// The function that a term is an argument of.
    fn argument_of(&self, term: usize) -> Option<&str> {
        let found = self.arguments.iter().find(|(at, _)| *at == term);
        found.map(|(_, function)| function.as_str())
    }

    /// The name of the column that a term takes a part of.
    fn part_name(&self, term: usize) -> &str {
        let inputs = self.aggregates.all.iter().filter_map(|one| one.argument.as_ref());
        let place = self.outputs.iter().chain(inputs).find_map(|expr| expr.part_of(term));
        place.and_then(|place| place.column(&self.table)).map_or("", |column| &column.name)
    }

    /// Appends one row of the result in the native protocol's form. `bind` serves functions such as
    /// `now()`; its values are not asked for.
    pub fn project(
        &self,
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CqlError> {
        if let Some(members) = &self.json {
            let env = self.env(read, Some(row), bind);
            return project::project_json(&env, &self.outputs, members, out);
        }
        project::project(&self.table, &self.outputs, read, row, bind, out)
    }

    fn env<'v>(
        &'v self,
        read: &'v Read,
        row: Option<&'v ResultRow<'v>>,
        bind: &'v Bind<'v>,
    ) -> Env<'v> {
        Env { table: &self.table, row, terms: &read.terms, bind, aggregation: None }
    }

    /// Does a row pass the filter, if the read has one? Rows that do not are not counted by limits.
    pub fn passes(&self, read: &Read, row: &ResultRow<'_>) -> bool {
        read.filter.as_ref().is_none_or(|filter| filter.passes(&self.table, row))
    }

    /// An aggregation before its first row.
    pub fn begin(&self) -> Aggregation {
        self.aggregates.begin()
    }

    /// Takes a row into an aggregation.
    pub fn aggregate(
        &self,
        aggregation: &mut Aggregation,
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
    ) -> Result<(), CqlError> {
        self.aggregates.add(aggregation, &self.outputs, &self.env(read, Some(row), bind))
    }

    /// May parts of the rows be aggregated by several and then merged, in whatever order? Else the
    /// rows' inputs have to come to one place, in order.
    pub fn merges(&self) -> bool {
        self.aggregates.merge()
    }

    /// Appends what an aggregation takes of a row.
    pub fn inputs(
        &self,
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CqlError> {
        self.aggregates.inputs(&self.outputs, &self.env(read, Some(row), bind), out)
    }

    /// Takes a row in by what [`Self::inputs`] appended.
    pub fn aggregate_inputs(
        &self,
        aggregation: &mut Aggregation,
        cells: &mut &[u8],
    ) -> Result<(), CqlError> {
        aggregation.add_inputs(self.aggregates.firsts, cells)
    }

    /// Appends the one row that an aggregation gives.
    pub fn finish(
        &self,
        aggregation: &Aggregation,
        read: &Read,
        bind: &Bind<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CqlError> {
        let env = Env { aggregation: Some(aggregation), ..self.env(read, None, bind) };
        if let Some(members) = &self.json {
            return project::project_json(&env, &self.outputs, members, out);
        }
        for expr in &self.outputs {
            cell::put(out, env.value(expr)?.as_deref());
        }
        Ok(())
    }

    /// Does each group of rows give one row (GROUP BY)? Rows then go into [`Group`]s.
    pub fn is_grouped(&self) -> bool {
        self.group_by.is_some()
    }

    /// A group with its first row.
    pub fn open_group(
        &self,
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
    ) -> Result<Group, CqlError> {
        let env = self.env(read, Some(row), bind);
        let mut aggregation = self.begin();
        self.aggregates.add(&mut aggregation, &self.outputs, &env)?;
        match &self.group_by {
            Some(by) => by.open(aggregation, row.clustering, row.row.is_some(), &env),
            None => Err(CqlError::invalid("There are no groups")),
        }
    }

    /// Takes a row into a group of its partition, if it belongs to it.
    pub fn join_group(
        &self,
        group: &mut Group,
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
    ) -> Result<bool, CqlError> {
        let env = self.env(read, Some(row), bind);
        let Some(by) = &self.group_by else { return Ok(false) };
        if !by.contains(group, &self.table, row.clustering, &env)? {
            return Ok(false);
        }
        self.aggregates.add(&mut group.aggregation, &self.outputs, &env)?;
        group.set_last(row.clustering);
        Ok(true)
    }

    /// Does it say ALLOW FILTERING?
    pub fn allows_filtering(&self) -> bool {
        self.allows_filtering
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Number of columns of the result.
    pub fn width(&self) -> usize {
        if self.json.is_some() { 1 } else { self.outputs.len() }
    }

    /// The columns that must be read.
    pub fn fetched(&self) -> &Fetched {
        &self.fetched
    }

    /// Is the result one row computed of all (`count(*)`)? Its pages are read one after the other
    /// by whoever runs it.
    pub fn is_aggregate(&self) -> bool {
        !self.aggregates.all.is_empty() && self.group_by.is_none()
    }

    /// Has the result pages? One row has none, and groups of whole partitions are read to the end.
    fn is_paged(&self) -> bool {
        !(self.is_aggregate() || (self.distinct && self.is_grouped()))
    }

    /// Is this SELECT DISTINCT: one row a partition?
    pub fn is_distinct(&self) -> bool {
        self.distinct
    }

    /// Does a partition with live static values and no live row give one row, with nulls for the
    /// rest?
    pub fn wants_static_only_row(&self) -> bool {
        self.restrictions.wants_whole_partitions()
    }

    /// Is it a read that Cassandra does by an index? Here the table is scanned.
    pub fn uses_index(&self) -> bool {
        self.restrictions.uses_index
    }

    /// How to sort the rows of several partitions, if they have to be; `LIMIT` applies after that
    /// ([`Read::result_limit`]).
    pub fn post_order(&self) -> Option<&PostOrder> {
        self.order.post.as_ref()
    }

    /// Does only an inserted row count as live, not one with live cells (views)?
    pub fn is_strict(&self) -> bool {
        self.table.kind == TableKind::View
    }

    /// Warnings of an aggregation over more than one partition.
    pub fn aggregation_warning(&self) -> Option<&'static str> {
        if !self.is_aggregate() && !self.is_grouped() {
            return None;
        }
        let restrictions = &self.restrictions;
        if restrictions.keys.is_empty() && restrictions.token.is_none() {
            return Some("Aggregation query used without partition key");
        }
        restrictions
            .key_has_in(&self.table)
            .then_some("Aggregation query used on multiple partition keys (IN restriction)")
    }
}

/// DISTINCT is about partitions.
fn check_distinct(
    select: &ast::Select,
    table: &Table,
    restrictions: &Restrictions,
    columns: &[Place],
) -> Result<(), CqlError> {
    if select.per_partition_limit.is_some() {
        return Err(CqlError::invalid(
            "PER PARTITION LIMIT is not allowed with SELECT DISTINCT queries",
        ));
    }
    let only_statics = restrictions.others.iter().all(|r| r.kind == ColumnKind::Static);
    if !restrictions.clustering.is_empty() || !only_statics {
        return Err(CqlError::invalid(
            "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.",
        ));
    }
    for column in columns.iter().filter_map(|place| place.column(table)) {
        if !matches!(column.kind, ColumnKind::PartitionKey | ColumnKind::Static) {
            return Err(CqlError::invalid(format!(
                "SELECT DISTINCT queries must only request partition key columns and/or static columns (not {})",
                column.name
            )));
        }
    }
    if restrictions.is_range {
        let missing = table.partition_key.iter().find(|c| !columns.contains(&Place::of(c)));
        if let Some(missing) = missing {
            return Err(CqlError::invalid(format!(
                "SELECT DISTINCT queries must request all the partition key columns (missing {})",
                missing.name
            )));
        }
    }
    Ok(())
}

fn fetched(table: &Table, restrictions: &Restrictions, columns: &[Place]) -> Fetched {
    let filtered = restrictions.filter.iter().flat_map(|filter| filter.places());
    let all: Vec<Place> = columns.iter().copied().chain(filtered).collect();
    let of = |kind: ColumnKind| {
        let mut indexes: Vec<u16> =
            all.iter().filter(|place| place.kind == kind).map(|place| place.index).collect();
        indexes.sort_unstable();
        indexes.dedup();
        indexes
    };
    let statics = if restrictions.wants_whole_partitions() {
        table.statics.iter().map(|column| column.index).collect()
    } else {
        of(ColumnKind::Static)
    };
    Fetched { statics, regulars: of(ColumnKind::Regular) }
}
