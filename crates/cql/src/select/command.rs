//! A read as CQL (`ReadCommand.toCQLString`): what warnings about it and samples of it show.

use rows::{Bound, ClusteringRef};
use schema::{Column, ColumnKind, Table};
use types::maybe_quote;

use crate::select::keys::{PartitionKey, RangeBound, Target};
use crate::select::limits::NO_LIMIT;
use crate::select::paging::Read;
use crate::select::slices::RowFilter;
use crate::select::{Expr, Select};

impl Select {
    /// The read of one partition, or of a range of them: each is a command of its own.
    pub fn command_text(&self, read: &Read, key: Option<&PartitionKey>) -> String {
        let table = &*self.table;
        let mut conditions = Vec::new();
        let rows = match (key, &read.target) {
            (Some(key), _) => {
                let names = table.partition_key.iter().zip(key_values(table, &key.bytes));
                conditions.extend(names.map(|(column, value)| equals(column, value)));
                let is_first =
                    matches!(&read.target, Target::Keys(keys) if keys.first() == Some(key));
                read.first_rows.as_ref().filter(|_| is_first).unwrap_or(&read.rows)
            }
            (None, Target::Range { from, to }) => {
                conditions.extend(token_condition(table, from, [">=", ">"]));
                conditions.extend(token_condition(table, to, ["<=", "<"]));
                &read.rows
            }
            (None, Target::Keys(_)) => &read.rows,
        };
        row_conditions(table, rows, &mut conditions);
        if let Some(filter) = &read.filter {
            // what finds rows and is asked of an index as well stands there once
            let texts = filter.texts(table).into_iter();
            let new: Vec<String> = texts.filter(|text| !conditions.contains(text)).collect();
            conditions.extend(new);
        }
        let mut text = beginning(table, &self.columns_text(read), &conditions, read.reversed);
        let limit = match self.is_aggregate() {
            // an aggregation is read page after page, of which without paging there is one
            true => read.asked_page.unwrap_or(NO_LIMIT),
            false => read.page_limit(),
        };
        if self.is_aggregate() && limit == NO_LIMIT {
            // limits that say nothing
            text.push(' ');
        }
        end(&mut text, limit, read.per_partition_limit);
        text
    }

    /// The static and regular columns that are asked for or about, in the order of `SELECT *`; `*`
    /// for all of them, and for none.
    fn columns_text(&self, read: &Read) -> String {
        if self.is_wildcard {
            return "*".to_owned();
        }
        let table = &*self.table;
        let mut asked = Vec::new();
        let arguments = self.aggregates.all.iter().filter_map(|one| one.argument.as_ref());
        let exprs = self.outputs.iter().chain(&self.constants).chain(arguments);
        exprs.for_each(|expr| columns_of(expr, table, &mut asked));
        let tested = read.filter.iter().flat_map(|filter| filter.columns(table));
        asked.extend(tested.filter(|column| !column.kind.is_primary_key()));
        asked.sort_unstable_by_key(|column| (column.kind, column.index));
        asked.dedup_by_key(|column| (column.kind, column.index));
        let of = |kind| schema::select_order(asked.iter().copied().filter(move |c| c.kind == kind));
        let columns = of(ColumnKind::Static).into_iter().chain(of(ColumnKind::Regular));
        let names: Vec<_> = columns.map(|column| maybe_quote(&column.name)).collect();
        if names.is_empty() { "*".to_owned() } else { names.join(", ") }
    }
}

/// A read that another node coordinates, as this one knows it.
#[derive(Clone, Debug)]
pub struct ReplicaRead<'a> {
    /// Its table.
    pub table: &'a Table,
    /// The names of the columns that are asked for; none for all of them.
    pub columns: Vec<&'a str>,
    /// The partition that is read.
    pub key: Option<&'a [u8]>,
    /// Or the range of them.
    pub range: [RangeBound; 2],
    /// Which rows of each.
    pub rows: RowFilter,
    /// Are they read from the last to the first?
    pub reversed: bool,
    /// Rows of all, and of a partition.
    pub limits: [u32; 2],
}

impl ReplicaRead<'_> {
    /// Its text.
    pub fn text(&self) -> String {
        let Self { table, range: [from, to], limits: [limit, per_partition], .. } = self;
        let mut conditions = Vec::new();
        match self.key {
            Some(key) => {
                let names = table.partition_key.iter().zip(key_values(table, key));
                conditions.extend(names.map(|(column, value)| equals(column, value)));
            }
            None => {
                conditions.extend(token_condition(table, from, [">=", ">"]));
                conditions.extend(token_condition(table, to, ["<=", "<"]));
            }
        }
        row_conditions(table, &self.rows, &mut conditions);
        let columns: Vec<_> = self.columns.iter().map(|name| maybe_quote(name)).collect();
        let columns = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
        let mut text = beginning(table, &columns, &conditions, self.reversed);
        end(&mut text, *limit, *per_partition);
        text
    }
}

/// A read up to its limits.
fn beginning(table: &Table, columns: &str, conditions: &[String], reversed: bool) -> String {
    let (keyspace, name) = (maybe_quote(&table.keyspace), maybe_quote(&table.name));
    let mut text = format!("SELECT {columns} FROM {keyspace}.{name}");
    if !conditions.is_empty() {
        text.push_str(" WHERE ");
        text.push_str(&conditions.join(" AND "));
    }
    if reversed {
        let order = |column: &Column| {
            let direction = if column.reversed { "ASC" } else { "DESC" };
            format!("{} {direction}", maybe_quote(&column.name))
        };
        let orders: Vec<_> = table.clustering.iter().map(order).collect();
        text.push_str(&format!(" ORDER BY {}", orders.join(", ")));
    }
    text
}

/// Its limits, and what each has behind them.
fn end(text: &mut String, limit: u32, per_partition: u32) {
    if limit != NO_LIMIT {
        text.push_str(&format!(" LIMIT {limit}"));
    }
    if per_partition != NO_LIMIT {
        text.push_str(&format!(" PER PARTITION LIMIT {per_partition}"));
    }
    text.push_str(" ALLOW FILTERING");
}

fn columns_of<'t>(expr: &Expr, table: &'t Table, out: &mut Vec<&'t Column>) {
    match expr {
        Expr::Column(place) => {
            let stored = matches!(place.kind, ColumnKind::Static | ColumnKind::Regular);
            out.extend(place.column(table).filter(|_| stored));
        }
        other => other.for_each_part(&mut |part| columns_of(part, table, out)),
    }
}

fn equals(column: &Column, value: &[u8]) -> String {
    format!("{} = {}", maybe_quote(&column.name), column.ty.to_cql_literal(value))
}

/// The values of a partition key's columns.
pub fn key_values<'k>(table: &Table, key: &'k [u8]) -> Vec<&'k [u8]> {
    let component = |index| super::row::key_component(table, key, index);
    (0..table.partition_key.len()).filter_map(component).collect()
}

fn token_condition(table: &Table, bound: &RangeBound, operators: [&str; 2]) -> Option<String> {
    let names: Vec<_> = table.partition_key.iter().map(|c| maybe_quote(&c.name)).collect();
    let (inclusive, value) = match bound {
        RangeBound::Unbounded => return None,
        RangeBound::Token { token, inclusive } => (*inclusive, token.0.to_string()),
        RangeBound::Key { key, inclusive } => {
            let values = table.partition_key.iter().zip(key_values(table, &key.bytes));
            let values: Vec<_> =
                values.map(|(column, value)| column.ty.to_cql_literal(value)).collect();
            (*inclusive, format!("token({})", values.join(", ")))
        }
    };
    let [closed, open] = operators;
    let operator = if inclusive { closed } else { open };
    Some(format!("token({}) {operator} {value}", names.join(", ")))
}

fn row_conditions(table: &Table, rows: &RowFilter, out: &mut Vec<String>) {
    match rows {
        RowFilter::Names(names) => out.extend(names_condition(table, names)),
        RowFilter::Slices(slices) => {
            for (index, column) in table.clustering.iter().enumerate() {
                if !slice_conditions(column, index, slices, out) {
                    return;
                }
            }
        }
    }
}

fn names_condition(table: &Table, names: &[rows::Clustering]) -> Option<String> {
    if table.clustering.is_empty() || names.is_empty() {
        return None;
    }
    let single = table.clustering.len() == 1;
    let around = |text: String| if single { text } else { format!("({text})") };
    let columns: Vec<_> = table.clustering.iter().map(|c| maybe_quote(&c.name)).collect();
    let columns = around(columns.join(", "));
    let values = |clustering: ClusteringRef<'_>| {
        let parts = table.clustering.iter().zip(clustering.iter());
        let parts: Vec<_> =
            parts.map(|(c, value)| c.ty.to_cql_literal(value.unwrap_or_default())).collect();
        around(parts.join(", "))
    };
    let all: Vec<_> = names.iter().map(|name| values(name.as_ref())).collect();
    Some(match all.as_slice() {
        [one] => format!("{columns} = {one}"),
        _ => format!("{columns} IN ({})", all.join(", ")),
    })
}

/// What slices ask of one column; false if they ask nothing of it or those after it.
fn slice_conditions(
    column: &Column,
    index: usize,
    slices: &[(Bound, Bound)],
    out: &mut Vec<String>,
) -> bool {
    let component = |bound: &Bound| {
        bound.values.as_ref().get(index).map(Option::unwrap_or_default).map(<[u8]>::to_vec)
    };
    let parts: Vec<_> = slices
        .iter()
        .map(|(start, end)| (component(start), component(end)))
        .filter(|(start, end)| start.is_some() || end.is_some())
        .collect();
    let (Some((start, end)), Some((first, last))) = (parts.first(), slices.first()) else {
        return false;
    };
    let name = maybe_quote(&column.name);
    if start == end {
        let mut values: Vec<String> = Vec::new();
        for value in parts.iter().filter_map(|(start, _)| start.as_deref()) {
            let text = column.ty.to_cql_literal(value);
            if !values.contains(&text) {
                values.push(text);
            }
        }
        out.push(match values.as_slice() {
            [one] => format!("{name} = {one}"),
            _ => format!("{name} IN ({})", values.join(", ")),
        });
        return true;
    }
    let inclusive = |bound: &Bound| {
        use rows::BoundKind as K;
        matches!(bound.kind, K::InclStart | K::InclEnd)
    };
    // what comes first in the order of the clustering is the greater value where the order is
    // descending
    let operator = |is_start: bool, inclusive: bool| match (is_start != column.reversed, inclusive)
    {
        (true, true) => ">=",
        (true, false) => ">",
        (false, true) => "<=",
        (false, false) => "<",
    };
    let condition =
        |value: &[u8], operator| format!("{name} {operator} {}", column.ty.to_cql_literal(value));
    out.extend(start.as_deref().map(|v| condition(v, operator(true, inclusive(first)))));
    out.extend(end.as_deref().map(|v| condition(v, operator(false, inclusive(last)))));
    true
}
