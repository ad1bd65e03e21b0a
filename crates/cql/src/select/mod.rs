//! SELECT, prepared.
//!
//! [`Select::prepare`] checks the statement against the schema; [`Select::bind`] turns a request into a [`Read`]:
//! which partitions, which rows of each, how many. Whoever runs it merges rows and hands each live one
//! ([`row_is_live`]) to [`Select::project`]. A partition without live rows whose static row has live data
//! gives one row of its own where [`Select::wants_static_only_row`] says so. Aggregations take the rows in
//! instead and give one at the end.

mod command;
mod expr;
mod filter;
mod keys;
mod limits;
mod operand;
mod order;
mod paging;
mod project;
mod relation;
mod restriction;
mod restrictions;
mod selection;
mod slices;

use std::sync::Arc;

use schema::{ColumnKind, Table, TableKind};

use crate::ast;
use crate::context::Bind;
use crate::error::CqlError;
use crate::prepared::ResultColumn;
use crate::scope::Scope;
use crate::term::Term;
use crate::value::Bound;
use expr::{Expr, Place};
use limits::Limits;
use order::Order;
use restrictions::Restrictions;
use selection::{Build, Selected};

pub use filter::BoundFilter;
pub use keys::{PartitionKey, RangeBound, Target};
pub use limits::NO_LIMIT;
pub use order::PostOrder;
pub use paging::{PageRequest, Position, Read};
pub use project::{Aggregation, ResultRow, row_is_live};
pub use slices::{MAX_COMBINATIONS, RowFilter};

/// A prepared SELECT.
#[derive(Clone, Debug)]
pub struct Select {
    table: Arc<Table>,
    restrictions: Restrictions,
    limits: Limits,
    order: Order,
    distinct: bool,
    aggregates: bool,
    /// Is it `SELECT *`?
    is_wildcard: bool,
    outputs: Vec<Expr>,
    /// Terms of the selection.
    terms: Vec<Term>,
    fetched: Fetched,
}

/// Which columns must be read, by their indexes in the table. Whether a row is live depends on all its
/// cells, so that the cells of other columns may be left out only if that is known otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Static columns, ascending.
    pub statics: Vec<u16>,
    /// Regular columns, ascending.
    pub regulars: Vec<u16>,
}

impl Select {
    /// Checks a SELECT against the schema, and says which columns its result has.
    pub fn prepare(
        select: &ast::Select,
        scope: &mut Scope<'_>,
    ) -> Result<(Self, Arc<[ResultColumn]>), CqlError> {
        let table = scope.table(&select.table)?;
        if table.flags.is_compact() {
            return Err(CqlError::unsupported("A table of COMPACT STORAGE"));
        }
        selection::refuse_unserved(select)?;
        let selected = Selected::all(&select.selectors, &table, scope)?;
        let only_statics = selection::only_statics(&table, &selected);
        let ordering = order::columns_of(select, &table)?;
        let restrictions = Restrictions::prepare(select, &table, only_statics, scope)?;
        let is_wildcard = selected.is_empty();
        let selected = if selected.is_empty() { selection::all_columns(&table) } else { selected };
        let (selection, result) = Self::outputs(&selected, &table, scope)?;
        if select.distinct {
            check_distinct(select, &table, &restrictions, &selection.columns)?;
        }
        if selection.aggregates && select.per_partition_limit.is_some() {
            return Err(CqlError::invalid(
                "PER PARTITION LIMIT is not allowed with aggregate queries.",
            ));
        }
        let order = Order::prepare(&ordering, &restrictions, &table)?;
        restrictions.check_filtering(select, &table)?;
        let limits = Limits::prepare(select, &table, scope)?;
        scope.partition_key_markers =
            scope.variables.partition_key_markers(table.partition_key.len());
        let fetched = fetched(&table, &restrictions, &selection.columns);
        let this = Self {
            restrictions,
            limits,
            order,
            distinct: select.distinct,
            aggregates: selection.aggregates,
            is_wildcard,
            outputs: selection.outputs,
            terms: selection.terms,
            fetched,
            table,
        };
        Ok((this, result))
    }

    fn outputs(
        selected: &[(Selected<'_>, Option<&str>)],
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<(Selection, Arc<[ResultColumn]>), CqlError> {
        let mut build =
            Build { table, scope, terms: Vec::new(), columns: Vec::new(), aggregates: false };
        let (mut outputs, mut columns) = (Vec::new(), Vec::new());
        for (selected, alias) in selected {
            let (expr, column) = build.output(selected, *alias)?;
            outputs.push(expr);
            columns.push(column);
        }
        let Build { terms, columns: places, aggregates, .. } = build;
        Ok((Selection { outputs, terms, columns: places, aggregates }, columns.into()))
    }

    /// What is to be read for a page.
    pub fn bind(&self, bind: &Bind<'_>, page: &PageRequest<'_>) -> Result<Read, CqlError> {
        let table = &*self.table;
        let limit = self.limits.limit(bind)?;
        let per_partition_limit = self.limits.per_partition(bind)?;
        let terms = self.bind_terms(bind)?;
        let filter = self.restrictions.filter.as_ref();
        let filter = filter.map(|filter| filter.bind(table, bind)).transpose()?;
        let post = self.order.post.is_some();
        let per_partition_limit = if self.distinct { 1 } else { per_partition_limit };
        let read = Read {
            target: Target::nothing(),
            rows: RowFilter::all(),
            first_rows: None,
            first_limit: per_partition_limit,
            reversed: self.order.reversed && !self.distinct,
            per_partition_limit,
            limit: if self.aggregates || post { NO_LIMIT } else { limit },
            page_size: page.size.filter(|size| *size > 0),
            result_limit: limit,
            filter,
            timeout_nanos: self.limits.timeout_nanos(bind)?,
            now_seconds: bind.now_seconds,
            terms,
        };
        let mut read = self.find(read, bind)?;
        if read.target.is_nothing() || read.rows.is_empty() {
            return Ok(read.nothing());
        }
        if post && read.page_size.is_some() {
            return Err(CqlError::invalid(
                "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove the ORDER BY or the IN and sort client side, or disable paging for this query",
            ));
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
            false => slices::rows_of(&restrictions.clustering, table, bind),
        };
        if restrictions.is_range {
            read.rows = rows()?;
            if !read.rows.is_empty() {
                read.target = keys::range_of(restrictions, table, bind)?;
            }
        } else {
            let keys = keys::keys_of(restrictions, table, bind)?;
            if !keys.is_empty() {
                read.rows = rows()?;
            }
            read.target = Target::Keys(keys);
        }
        Ok(read)
    }

    fn bind_terms(&self, bind: &Bind<'_>) -> Result<Vec<Option<Box<[u8]>>>, CqlError> {
        let mut names = Vec::new();
        self.outputs.iter().for_each(|expr| expr.part_terms(&mut names));
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
                (Bound::Null | Bound::Unset, _) => None,
            });
        }
        Ok(terms)
    }

    /// The name of the column that a term takes a part of.
    fn part_name(&self, term: usize) -> &str {
        let place = self.outputs.iter().find_map(|expr| expr.part_of(term));
        place.and_then(|place| place.column(&self.table)).map_or("", |column| &column.name)
    }

    /// Appends one row of the result in the native protocol's form. `bind` serves functions such as `now()`;
    /// its values are not asked for.
    pub fn project(
        &self,
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CqlError> {
        project::project(&self.table, &self.outputs, read, row, bind, out)
    }

    /// Does a row pass the filter, if the read has one? Rows that do not are not counted by limits.
    pub fn passes(
        &self,
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
    ) -> Result<bool, CqlError> {
        match &read.filter {
            Some(filter) => filter.passes(&self.table, row, bind),
            None => Ok(true),
        }
    }

    /// Takes a row into an aggregation.
    pub fn aggregate(
        &self,
        aggregation: &mut Aggregation,
        read: &Read,
        row: &ResultRow<'_>,
        bind: &Bind<'_>,
    ) -> Result<(), CqlError> {
        aggregation.add(&self.table, &self.outputs, read, row, bind)
    }

    /// Appends the one row that an aggregation gives.
    pub fn finish(
        &self,
        aggregation: &Aggregation,
        read: &Read,
        bind: &Bind<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), CqlError> {
        aggregation.finish(&self.table, &self.outputs, read, bind, out)
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Number of columns of the result.
    pub fn width(&self) -> usize {
        self.outputs.len()
    }

    /// The columns that must be read.
    pub fn fetched(&self) -> &Fetched {
        &self.fetched
    }

    /// Is the result one row computed of all (`count(*)`)? Its pages are read one after the other by whoever
    /// runs it.
    pub fn is_aggregate(&self) -> bool {
        self.aggregates
    }

    /// Is this SELECT DISTINCT: one row a partition?
    pub fn is_distinct(&self) -> bool {
        self.distinct
    }

    /// Does a partition with live static values and no live row give one row, with nulls for the rest?
    pub fn wants_static_only_row(&self) -> bool {
        self.restrictions.wants_whole_partitions()
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
        if !self.aggregates {
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

/// The SELECT clause, built.
struct Selection {
    outputs: Vec<Expr>,
    terms: Vec<Term>,
    columns: Vec<Place>,
    aggregates: bool,
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
