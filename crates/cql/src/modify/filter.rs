//! The WHERE clause of UPDATE and DELETE, and the key columns of INSERT: which restriction each
//! column of the primary key has (`StatementRestrictions` as far as modifications go).

use std::sync::Arc;

use schema::{Column, ColumnKind, Table};
use types::CqlType;

use crate::ast::{InTuples, InValues, Operator, Relation, Term as Raw, TupleValue};
use crate::error::CqlError;
use crate::modify::Kind;
use crate::relation_text::{operator_text, relation_text, unsupported_neq};
use crate::scope::{ColumnSpec, Scope};
use crate::term::{Marker, Term};
use crate::token::TokenRestriction;

/// The restrictions of a modification.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of the partition key, in order of its columns.
    pub key: Vec<Restriction>,
    /// Of the clustering, in order of its columns.
    pub clustering: Vec<Restriction>,
    /// Other columns that relations name: refused at the end.
    others: Vec<(ColumnKind, bool, Arc<str>)>,
    /// Of the token: which of the keys are written.
    pub(super) token: Option<TokenRestriction>,
}

/// What must hold of one column, or of several that follow each other.
#[derive(Clone, Debug)]
pub struct Restriction {
    /// Position of the first column among those of its kind.
    pub first: usize,
    /// Number of columns.
    pub count: usize,
    /// Was it written as a tuple, `(a, b) = ..`?
    pub is_multi: bool,
    /// What must hold.
    pub test: Test,
}

/// What must hold.
#[derive(Clone, Debug)]
pub enum Test {
    /// `=`, or `IN` with one value.
    Equal(Row),
    /// `IN (..)`.
    In(Vec<Row>),
    /// `IN ?`.
    InMarker(Marker),
    /// `<`, `<=`, `>=`, `>`.
    Slice(Slice),
}

/// One value a column.
#[derive(Clone, Debug)]
pub enum Row {
    /// Terms, one a column.
    Terms(Vec<Term>),
    /// A marker for a tuple.
    Marker(Marker),
}

/// The two sides of a slice.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// `>` or `>=`.
    pub lower: Option<Side>,
    /// `<` or `<=`.
    pub upper: Option<Side>,
}

/// One side of a slice.
#[derive(Clone, Debug)]
pub struct Side {
    /// The value.
    pub row: Row,
    /// Is the value itself in the slice?
    pub inclusive: bool,
}

impl Restriction {
    fn is_slice(&self) -> bool {
        matches!(self.test, Test::Slice(_))
    }

    fn is_in(&self) -> bool {
        matches!(self.test, Test::In(_) | Test::InMarker(_))
    }

    pub(super) fn end(&self) -> usize {
        self.first + self.count
    }

    fn meets(&self, other: &Self) -> bool {
        self.first < other.end() && other.first < self.end()
    }
}

impl Filter {
    /// Prepares the relations of a WHERE clause.
    pub fn prepare(
        relations: &[Relation],
        table: &Table,
        kind: Kind,
        scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        if relations.iter().any(|relation| matches!(relation, Relation::Expression(..))) {
            return Err(CqlError::invalid(
                "Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE statements",
            ));
        }
        let mut filter = Self::default();
        for relation in relations {
            filter.add_relation(relation, table, kind, scope)?;
        }
        Ok(filter)
    }

    /// Adds `column = term`.
    pub fn add_equal(
        &mut self,
        column: &Column,
        raw: &Raw,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<(), CqlError> {
        check_operand(column, "=", false)?;
        let spec = ColumnSpec::of_column(table, column);
        let term = Term::prepare(raw, &table.keyspace, &spec, scope)?;
        self.add_equal_term(column, term, table)
    }

    /// A column of the primary key equals a term.
    pub fn add_equal_term(
        &mut self,
        column: &Column,
        term: Term,
        table: &Table,
    ) -> Result<(), CqlError> {
        self.add(column, single(column, Test::Equal(Row::Terms(vec![term]))), table)
    }

    fn add_relation(
        &mut self,
        relation: &Relation,
        table: &Table,
        kind: Kind,
        scope: &mut Scope<'_>,
    ) -> Result<(), CqlError> {
        let keyspace = &table.keyspace;
        match relation {
            Relation::Column(_, operator @ (Operator::Contains | Operator::ContainsKey), _) => {
                Err(CqlError::invalid(format!(
                    "Cannot use {} with {}",
                    kind.name(),
                    operator_text(*operator)
                )))
            }
            Relation::NotNull(name) => Err(CqlError::invalid(format!(
                "Unsupported restriction: {} IS NOT NULL",
                types::maybe_quote(name)
            ))),
            Relation::Column(_, Operator::Neq, _)
            | Relation::Element(_, _, Operator::Neq, _)
            | Relation::Token(_, Operator::Neq, _)
            | Relation::Tuple(_, Operator::Neq, _) => Err(unsupported_neq(relation)),
            Relation::Column(name, Operator::Eq, raw) => {
                let column = Scope::column(table, name)?;
                self.add_equal(column, raw, table, scope)
            }
            Relation::Column(name, Operator::Like, raw) => {
                let column = Scope::column(table, name)?;
                check_operand(column, "LIKE", false)?;
                Term::prepare(raw, keyspace, &ColumnSpec::of_column(table, column), scope)?;
                Err(CqlError::invalid(format!(
                    "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
                    relation_text(relation)
                )))
            }
            Relation::Column(name, operator, raw) => {
                let column = Scope::column(table, name)?;
                refuse_durations(&column.ty)?;
                check_operand(column, operator_text(*operator), false)?;
                let spec = ColumnSpec::of_column(table, column);
                let term = Term::prepare(raw, keyspace, &spec, scope)?;
                let slice = slice_of(*operator, Row::Terms(vec![term]));
                self.add(column, single(column, Test::Slice(slice)), table)
            }
            Relation::In(name, values) => self.add_in(name, values, table, scope),
            Relation::Element(name, key, operator, value) => {
                self.add_element(name, key, *operator, value, table, scope)
            }
            Relation::Token(columns, operator, raw) => {
                let new = TokenRestriction::prepare(table, columns, *operator, raw, scope)?;
                TokenRestriction::add(&mut self.token, new, table)
            }
            Relation::Tuple(names, operator, value) => {
                self.add_tuple(relation, names, *operator, value, table, scope)
            }
            Relation::TupleIn(names, values) => {
                self.add_tuple_in(relation, names, values, table, scope)
            }
            Relation::Expression(..) => Ok(()),
        }
    }

    fn add_in(
        &mut self,
        name: &str,
        values: &InValues,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<(), CqlError> {
        let column = Scope::column(table, name)?;
        check_operand(column, "IN", false)?;
        let spec = ColumnSpec::of_column(table, column);
        let test = match values {
            InValues::Marker(marker) => {
                let list = CqlType::List { element: column.ty.clone().into(), frozen: false };
                let spec = spec.derive(format!("in({name})"), list);
                Test::InMarker(Marker::prepare(*marker, &spec, scope))
            }
            InValues::List(items) => {
                let mut rows = Vec::with_capacity(items.len());
                for item in items {
                    let term = Term::prepare(item, &table.keyspace, &spec, scope)?;
                    rows.push(Row::Terms(vec![term]));
                }
                in_test(rows)
            }
        };
        self.add(column, single(column, test), table)
    }

    fn add_element(
        &mut self,
        name: &str,
        key: &Raw,
        operator: Operator,
        value: &Raw,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<(), CqlError> {
        let column = Scope::column(table, name)?;
        if operator != Operator::Eq {
            refuse_durations(&column.ty)?;
        }
        let refuse = |message: String| Err(CqlError::invalid(message));
        let (key_type, value_type) = match &column.ty {
            CqlType::List { .. } => {
                return refuse(format!(
                    "Indexes on list entries ({name}[index] = value) are not currently supported."
                ));
            }
            CqlType::Map { key, value, frozen: false } => (key, value),
            CqlType::Map { .. } => {
                return refuse(format!(
                    "Map-entry equality predicates on frozen map column {name} are not supported"
                ));
            }
            _ => return refuse(format!("Column {name} cannot be used as a map")),
        };
        if operator != Operator::Eq {
            return refuse("Only EQ relations are supported on map entries".to_owned());
        }
        let spec = ColumnSpec::of_column(table, column);
        let key_spec = spec.derive(format!("key({name})"), (**key_type).clone());
        let value_spec = spec.derive(format!("value({name})"), (**value_type).clone());
        Term::prepare(key, &table.keyspace, &key_spec, scope)?;
        Term::prepare(value, &table.keyspace, &value_spec, scope)?;
        self.others.push((column.kind, column.is_complex(), Arc::clone(&column.name)));
        Ok(())
    }

    fn add_tuple(
        &mut self,
        relation: &Relation,
        names: &[String],
        operator: Operator,
        value: &TupleValue,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<(), CqlError> {
        let columns = tuple_columns(relation, names, table)?;
        let row = tuple_row(value, &columns, table, scope)?;
        let test = match operator {
            Operator::Eq => Test::Equal(row),
            operator => Test::Slice(slice_of(operator, row)),
        };
        self.add_multi(&columns, test, table)
    }

    fn add_tuple_in(
        &mut self,
        relation: &Relation,
        names: &[String],
        values: &InTuples,
        table: &Table,
        scope: &mut Scope<'_>,
    ) -> Result<(), CqlError> {
        let columns = tuple_columns(relation, names, table)?;
        let test = match values {
            InTuples::Marker(marker) => {
                let spec = tuple_spec(&columns, table);
                let list = CqlType::List { element: spec.ty.clone().into(), frozen: false };
                let spec = spec.derive(format!("in{}", spec.name), list);
                Test::InMarker(Marker::prepare(*marker, &spec, scope))
            }
            InTuples::Markers(markers) => {
                let spec = tuple_spec(&columns, table);
                let rows = markers.iter().map(|m| Row::Marker(Marker::prepare(*m, &spec, scope)));
                in_test(rows.collect())
            }
            InTuples::List(tuples) => {
                let mut rows = Vec::with_capacity(tuples.len());
                for tuple in tuples {
                    rows.push(literal_row(tuple, &columns, table, scope)?);
                }
                in_test(rows)
            }
        };
        self.add_multi(&columns, test, table)
    }

    fn add_multi(
        &mut self,
        columns: &[&Column],
        test: Test,
        table: &Table,
    ) -> Result<(), CqlError> {
        let Some(first) = columns.first() else { return Ok(()) };
        let restriction = Restriction {
            first: usize::from(first.index),
            count: columns.len(),
            is_multi: true,
            test,
        };
        self.add(first, restriction, table)
    }

    /// Adds a restriction beside those that there are.
    fn add(&mut self, column: &Column, new: Restriction, table: &Table) -> Result<(), CqlError> {
        match column.kind {
            ColumnKind::PartitionKey => merge(&mut self.key, new, &table.partition_key),
            ColumnKind::Clustering => {
                let before = self.clustering.last().map(|last| (last.first, last.is_slice()));
                let next = self.clustering.iter().map(|r| r.first).find(|first| *first > new.first);
                let (first, is_slice) = (new.first, new.is_slice());
                merge(&mut self.clustering, new, &table.clustering)?;
                check_order(before, next, first, is_slice, &table.clustering)
            }
            kind => {
                self.others.push((kind, column.is_complex(), Arc::clone(&column.name)));
                Ok(())
            }
        }
    }

    /// Checks that rows or partitions are named as the statement needs it. `only_statics`: it
    /// changes static columns and no others.
    pub fn check(&self, table: &Table, kind: Kind, only_statics: bool) -> Result<(), CqlError> {
        let kind_name = kind.name();
        let missing = unrestricted(&self.key, &table.partition_key);
        let has_slice = self.key.iter().any(Restriction::is_slice);
        // beside the whole key the token only says which of the keys are meant
        // (`TokenFilter.isOnToken`)
        if self.token.is_some() && (!missing.is_empty() || has_slice) {
            return Err(CqlError::invalid(format!(
                "The token function cannot be used in WHERE clauses for {kind_name} statements"
            )));
        }
        if !missing.is_empty() {
            return Err(CqlError::invalid(format!(
                "Some partition key parts are missing: {}",
                missing.join(", ")
            )));
        }
        if has_slice {
            return Err(CqlError::invalid(format!(
                "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for {kind_name} statements"
            )));
        }
        if only_statics && !self.clustering.is_empty() && kind != Kind::Insert {
            return Err(CqlError::invalid(format!(
                "Invalid restrictions on clustering columns since the {kind_name} statement modifies only static columns"
            )));
        }
        self.check_clustering(table, kind, only_statics)?;
        self.check_others()
    }

    fn check_clustering(
        &self,
        table: &Table,
        kind: Kind,
        only_statics: bool,
    ) -> Result<(), CqlError> {
        if kind != Kind::Delete {
            if self.clustering.iter().any(Restriction::is_slice) {
                return Err(CqlError::invalid(format!(
                    "Slice restrictions are not supported on the clustering columns in {} statements",
                    kind.name()
                )));
            }
            let missing = unrestricted(&self.clustering, &table.clustering);
            // the first of them are enough WITH COMPACT STORAGE: the others are null then
            let is_prefix = table.flags.is_compact() && !self.clustering.is_empty();
            if !only_statics && !missing.is_empty() && !is_prefix {
                return Err(CqlError::invalid(format!(
                    "Some clustering keys are missing: {}",
                    missing.join(", ")
                )));
            }
        }
        let restricted = self.clustering.iter().flat_map(|r| r.first..r.end());
        for (wanted, found) in restricted.enumerate() {
            if wanted != found {
                return Err(CqlError::invalid(format!(
                    "PRIMARY KEY column \"{}\" cannot be restricted as preceding column \"{}\" is not restricted",
                    name_at(&table.clustering, found),
                    name_at(&table.clustering, wanted)
                )));
            }
        }
        Ok(())
    }

    fn check_others(&self) -> Result<(), CqlError> {
        if self.others.is_empty() {
            return Ok(());
        }
        let mut others = self.others.clone();
        others.sort();
        others.dedup();
        let names: Vec<&str> = others.iter().map(|(_, _, name)| &**name).collect();
        Err(CqlError::invalid(format!(
            "Non PRIMARY KEY columns found in where clause: {} ",
            names.join(", ")
        )))
    }

    /// Is there an IN with any other number of values than one in the partition key?
    pub fn has_key_in(&self) -> bool {
        self.key.iter().any(Restriction::is_in)
    }

    /// In the clustering?
    pub fn has_clustering_in(&self) -> bool {
        self.clustering.iter().any(Restriction::is_in)
    }

    /// Does it name rows one by one, or else ranges of them?
    pub fn names_rows(&self, table: &Table) -> bool {
        let restricted: usize = self.clustering.iter().map(|r| r.count).sum();
        restricted == table.clustering.len() && !self.clustering.iter().any(Restriction::is_slice)
    }
}

/// The name of a key column.
pub fn name_at(columns: &[Column], position: usize) -> &str {
    columns.get(position).map_or("", |column| &column.name)
}

fn unrestricted<'t>(restrictions: &[Restriction], columns: &'t [Column]) -> Vec<&'t str> {
    let restricted = |at| restrictions.iter().any(|r| (r.first..r.end()).contains(&at));
    let columns = columns.iter().enumerate().filter(|(at, _)| !restricted(*at));
    columns.map(|(_, column)| &*column.name).collect()
}

fn single(column: &Column, test: Test) -> Restriction {
    Restriction { first: usize::from(column.index), count: 1, is_multi: false, test }
}

fn in_test(mut rows: Vec<Row>) -> Test {
    match rows.pop() {
        Some(only) if rows.is_empty() => Test::Equal(only),
        Some(last) => {
            rows.push(last);
            Test::In(rows)
        }
        None => Test::In(rows),
    }
}

fn slice_of(operator: Operator, row: Row) -> Slice {
    let inclusive = matches!(operator, Operator::Gte | Operator::Lte);
    let side = Some(Side { row, inclusive });
    match operator {
        Operator::Gt | Operator::Gte => Slice { lower: side, upper: None },
        _ => Slice { lower: None, upper: side },
    }
}

/// Merges a restriction into those of the same key, which stay in order.
fn merge(
    restrictions: &mut Vec<Restriction>,
    mut new: Restriction,
    columns: &[Column],
) -> Result<(), CqlError> {
    while let Some(at) = restrictions.iter().position(|old| old.meets(&new)) {
        let old = restrictions.remove(at);
        new = join(old, new, columns)?;
    }
    let at = restrictions.partition_point(|old| old.first < new.first);
    restrictions.insert(at, new);
    Ok(())
}

/// Two restrictions of common columns: only slices go together.
fn join(old: Restriction, new: Restriction, columns: &[Column]) -> Result<Restriction, CqlError> {
    let common = old.first.max(new.first)..old.end().min(new.end());
    let common: Vec<&str> = common.map(|at| name_at(columns, at)).collect();
    let common = common.join(" ,");
    let refuse = |message: String| Err(CqlError::invalid(message));
    let (old_slice, new_slice) = match (old.test, new.test) {
        (Test::Equal(_), _) => {
            return refuse(format!(
                "{common} cannot be restricted by more than one relation if it includes an Equal"
            ));
        }
        (Test::In(_) | Test::InMarker(_), _) => {
            return refuse(format!(
                "{common} cannot be restricted by more than one relation if it includes a IN"
            ));
        }
        (Test::Slice(old), Test::Slice(new)) => (old, new),
        _ => {
            return refuse(format!(
                "Column \"{common}\" cannot be restricted by both an equality and an inequality relation"
            ));
        }
    };
    if old.first != new.first {
        return refuse(format!(
            "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
            name_at(columns, old.first.max(new.first))
        ));
    }
    for (bound, twice) in [
        ("start", old_slice.lower.is_some() && new_slice.lower.is_some()),
        ("end", old_slice.upper.is_some() && new_slice.upper.is_some()),
    ] {
        if twice {
            return refuse(format!(
                "More than one restriction was found for the {bound} bound on {common}"
            ));
        }
    }
    Ok(Restriction {
        first: old.first,
        count: old.count.max(new.count),
        is_multi: old.is_multi || new.is_multi,
        test: Test::Slice(Slice {
            lower: old_slice.lower.or(new_slice.lower),
            upper: old_slice.upper.or(new_slice.upper),
        }),
    })
}

/// Behind a slice nothing may be restricted. `before`: the last restriction there was, `next`: the
/// first one behind the new.
fn check_order(
    before: Option<(usize, bool)>,
    next: Option<usize>,
    first: usize,
    is_slice: bool,
    columns: &[Column],
) -> Result<(), CqlError> {
    let Some((last, last_is_slice)) = before else { return Ok(()) };
    if last_is_slice && first > last {
        return Err(CqlError::invalid(format!(
            "Clustering column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
            name_at(columns, first),
            name_at(columns, last)
        )));
    }
    if is_slice && first < last {
        return Err(CqlError::invalid(format!(
            "PRIMARY KEY column \"{}\" cannot be restricted (preceding column \"{}\" is restricted by a non-EQ relation)",
            name_at(columns, next.unwrap_or(last)),
            name_at(columns, first)
        )));
    }
    Ok(())
}

/// What a column as a whole cannot be compared with (`SingleColumnRelation.toReceivers`).
fn check_operand(column: &Column, sign: &str, is_entry: bool) -> Result<(), CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    match ty {
        CqlType::Udt { frozen: false, .. } => Err(CqlError::invalid(format!(
            "Non-frozen UDT column '{name}' ({ty}) cannot be restricted by any relation"
        ))),
        _ if ty.is_collection() && ty.is_multicell() && !is_entry => {
            Err(CqlError::invalid(format!(
                "Collection column '{name}' ({ty}) cannot be restricted by a '{sign}' relation"
            )))
        }
        _ => Ok(()),
    }
}

fn refuse_durations(ty: &CqlType) -> Result<(), CqlError> {
    if !ty.any(&mut |ty| *ty == CqlType::Duration) {
        return Ok(());
    }
    let what = match ty {
        CqlType::Tuple(_) => "tuples containing durations",
        CqlType::Udt { .. } => "UDTs containing durations",
        _ if ty.is_collection() => "collections containing durations",
        _ => "duration columns",
    };
    Err(CqlError::invalid(format!("Slice restrictions are not supported on {what}")))
}

/// The columns of `(a, b)`, which must follow each other in the clustering.
fn tuple_columns<'t>(
    relation: &Relation,
    names: &[String],
    table: &'t Table,
) -> Result<Vec<&'t Column>, CqlError> {
    let mut columns: Vec<&Column> = Vec::with_capacity(names.len());
    for name in names {
        let column = Scope::column(table, name)?;
        if column.kind != ColumnKind::Clustering {
            return Err(CqlError::invalid(format!(
                "Multi-column relations can only be applied to clustering columns but was applied to: {name}"
            )));
        }
        if columns.iter().any(|other| other.index == column.index) {
            return Err(CqlError::invalid(format!(
                "Column \"{name}\" appeared twice in a relation: {}",
                relation_text(relation)
            )));
        }
        if columns.last().is_some_and(|last| last.index + 1 != column.index) {
            return Err(CqlError::invalid(format!(
                "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                relation_text(relation)
            )));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// What receives a marker for a whole tuple: `(a,b)`.
fn tuple_spec(columns: &[&Column], table: &Table) -> ColumnSpec {
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    let types: Vec<_> = columns.iter().map(|column| column.ty.clone()).collect();
    let name = format!("({})", names.join(","));
    ColumnSpec::new(&table.keyspace, &table.name, name, CqlType::Tuple(types.into()))
}

fn tuple_row(
    value: &TupleValue,
    columns: &[&Column],
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Row, CqlError> {
    match value {
        TupleValue::Marker(marker) => {
            Ok(Row::Marker(Marker::prepare(*marker, &tuple_spec(columns, table), scope)))
        }
        TupleValue::Literal(items) => literal_row(items, columns, table, scope),
    }
}

fn literal_row(
    items: &[Raw],
    columns: &[&Column],
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Row, CqlError> {
    let specs: Vec<_> = columns.iter().map(|c| ColumnSpec::of_column(table, c)).collect();
    Term::prepare_row(items, &table.keyspace, &specs, scope).map(Row::Terms)
}
