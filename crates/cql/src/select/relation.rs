//! From relations as written to restrictions: columns that exist, operators that their types allow.

use schema::{Column, ColumnKind, Table};
use types::CqlType;

use crate::ast::{InTuples, InValues, Operator, Relation, Term as Raw, TupleValue};
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::select::operand::{Choices, Operand};
use crate::select::restriction::{Ask, Containing, Restriction, SliceEnd};
use crate::term::text::{text, tuple_text};
use crate::term::{Term, part};

/// A relation that was understood.
pub(super) enum Understood {
    /// About columns.
    Columns(Restriction),
    /// About the token of the partition key.
    Token(TokenAsk),
}

/// What is asked of the token.
#[derive(Clone, Debug)]
pub(super) struct TokenAsk {
    /// Lower end.
    pub start: Option<SliceEnd>,
    /// Upper end.
    pub end: Option<SliceEnd>,
    /// Written as an equality, which is both ends?
    pub equal: bool,
}

/// How Cassandra writes an operator.
pub(super) fn operator_text(operator: Operator) -> &'static str {
    match operator {
        Operator::Eq => "=",
        Operator::Lt => "<",
        Operator::Lte => "<=",
        Operator::Gt => ">",
        Operator::Gte => ">=",
        Operator::Neq => "!=",
        Operator::Like => "LIKE",
        Operator::Contains => "CONTAINS",
        Operator::ContainsKey => "CONTAINS KEY",
    }
}

fn column_list(columns: &[String]) -> String {
    tuple_text(columns.iter().map(|name| types::maybe_quote(name).into_owned()))
}

/// A relation as error messages show it (`Relation.toCQLString`).
pub(super) fn relation_text(relation: &Relation) -> String {
    let compare = |left: String, operator: Operator, right: String| {
        format!("{left} {} {right}", operator_text(operator))
    };
    let quoted = |name: &String| types::maybe_quote(name).into_owned();
    match relation {
        Relation::Column(name, operator, value) => compare(quoted(name), *operator, text(value)),
        Relation::NotNull(name) => format!("{} IS NOT NULL", quoted(name)),
        Relation::In(name, values) => format!(
            "{} IN {}",
            quoted(name),
            match values {
                InValues::Marker(_) => "?".to_owned(),
                InValues::List(items) => tuple_text(items.iter().map(text)),
            }
        ),
        Relation::Element(name, key, operator, value) => {
            compare(format!("{}[{}]", quoted(name), text(key)), *operator, text(value))
        }
        Relation::Token(names, operator, value) => {
            compare(format!("token{}", column_list(names)), *operator, text(value))
        }
        Relation::Tuple(names, operator, value) => {
            let value = match value {
                TupleValue::Marker(_) => "?".to_owned(),
                TupleValue::Literal(items) => tuple_text(items.iter().map(text)),
            };
            compare(column_list(names), *operator, value)
        }
        Relation::TupleIn(names, values) => format!(
            "{} IN {}",
            column_list(names),
            match values {
                InTuples::Marker(_) => "?".to_owned(),
                InTuples::Markers(markers) => tuple_text(markers.iter().map(|_| "?".to_owned())),
                InTuples::List(rows) => {
                    tuple_text(rows.iter().map(|row| tuple_text(row.iter().map(text))))
                }
            }
        ),
        Relation::Expression(index, value) => format!("expr({index},{})", text(value)),
    }
}

fn unsupported_neq(relation: &Relation) -> CqlError {
    CqlError::invalid(format!("Unsupported \"!=\" relation: {}", relation_text(relation)))
}

/// Understands a relation; expressions of indexes are for the caller.
pub(super) fn understand(
    relation: &Relation,
    table: &Table,
    scope: &mut Scope<'_>,
) -> Result<Understood, CqlError> {
    match relation {
        Relation::NotNull(_) => {
            Err(CqlError::invalid(format!("Unsupported restriction: {}", relation_text(relation))))
        }
        Relation::Column(_, Operator::Neq, _)
        | Relation::Element(_, _, Operator::Neq, _)
        | Relation::Token(_, Operator::Neq, _)
        | Relation::Tuple(_, Operator::Neq, _) => Err(unsupported_neq(relation)),
        Relation::Column(name, operator, value) => {
            let column = Scope::column(table, name)?;
            if *operator == Operator::Like {
                let spec = receiver(table, column, *operator)?;
                Term::prepare(value, &table.keyspace, &spec, scope)?;
                return Err(CqlError::invalid(format!(
                    "LIKE restriction is only supported on properly indexed columns. {} is not valid.",
                    relation_text(relation)
                )));
            }
            of_column(table, column, *operator, value, scope).map(Understood::Columns)
        }
        Relation::In(name, values) => {
            let column = Scope::column(table, name)?;
            let spec = check_receiver(table, column, "IN", false)?;
            let choices = Choices::of_values(values, &table.keyspace, &spec, scope)?;
            Ok(Understood::Columns(restriction(column, in_or_equal(choices))))
        }
        Relation::Element(name, key, operator, value) => {
            let column = Scope::column(table, name)?;
            of_entry(table, column, key, *operator, value, scope).map(Understood::Columns)
        }
        Relation::Token(names, operator, value) => {
            of_token(table, names, *operator, value, scope).map(Understood::Token)
        }
        Relation::Tuple(names, operator, value) => {
            let (columns, specs) = tuple_receivers(table, names, relation)?;
            let operand = Operand::of_tuple(value, &table.keyspace, &specs, scope)?;
            Ok(Understood::Columns(Restriction {
                kind: ColumnKind::Clustering,
                columns,
                multi: true,
                ask: compare(*operator, operand),
            }))
        }
        Relation::TupleIn(names, values) => {
            let (columns, specs) = tuple_receivers(table, names, relation)?;
            let choices = Choices::of_rows(values, &table.keyspace, &specs, scope)?;
            Ok(Understood::Columns(Restriction {
                kind: ColumnKind::Clustering,
                columns,
                multi: true,
                ask: in_or_equal(choices),
            }))
        }
        Relation::Expression(..) => Err(CqlError::unsupported("An expression of an index")),
    }
}

fn restriction(column: &Column, ask: Ask) -> Restriction {
    Restriction { kind: column.kind, columns: vec![column.index], multi: false, ask }
}

/// IN of one value is an equality.
fn in_or_equal(choices: Choices) -> Ask {
    match choices {
        Choices::List(mut operands) if operands.len() == 1 => match operands.pop() {
            Some(operand) => Ask::Equal(operand),
            None => Ask::In(Choices::List(operands)),
        },
        choices => Ask::In(choices),
    }
}

fn compare(operator: Operator, operand: Operand) -> Ask {
    let end = |inclusive| SliceEnd { operand: operand.clone(), inclusive };
    match operator {
        Operator::Gt => Ask::Slice(Some(end(false)), None),
        Operator::Gte => Ask::Slice(Some(end(true)), None),
        Operator::Lt => Ask::Slice(None, Some(end(false))),
        Operator::Lte => Ask::Slice(None, Some(end(true))),
        _ => Ask::Equal(operand),
    }
}

/// What receives the right side of a relation about a column, if the column's type allows the operator
/// (`SingleColumnRelation.toReceivers`).
fn receiver(table: &Table, column: &Column, operator: Operator) -> Result<ColumnSpec, CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    match operator {
        Operator::ContainsKey if !matches!(ty, CqlType::Map { .. }) => {
            return Err(CqlError::invalid(format!(
                "Cannot use CONTAINS KEY on non-map column {name}"
            )));
        }
        Operator::Contains if !ty.is_collection() => {
            return Err(CqlError::invalid(format!(
                "Cannot use CONTAINS on non-collection column {name}"
            )));
        }
        _ => {}
    }
    let about_parts = matches!(operator, Operator::Contains | Operator::ContainsKey);
    let spec = check_receiver(table, column, operator_text(operator), about_parts)?;
    Ok(match (operator, ty) {
        (Operator::ContainsKey, CqlType::Map { key, .. }) => part::key(&spec, key),
        (Operator::Contains, CqlType::Map { value, .. }) => part::value(&spec, value),
        (Operator::Contains, CqlType::List { element, .. } | CqlType::Set { element, .. }) => {
            part::value(&spec, element)
        }
        _ => spec,
    })
}

fn check_receiver(
    table: &Table,
    column: &Column,
    operator: &str,
    about_parts: bool,
) -> Result<ColumnSpec, CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    if ty.is_multicell() && !about_parts {
        return Err(CqlError::invalid(match ty {
            CqlType::Udt { .. } => format!(
                "Non-frozen UDT column '{name}' ({ty}) cannot be restricted by any relation"
            ),
            _ => format!(
                "Collection column '{name}' ({ty}) cannot be restricted by a '{operator}' relation"
            ),
        }));
    }
    Ok(ColumnSpec::of_column(table, column))
}

fn of_column(
    table: &Table,
    column: &Column,
    operator: Operator,
    value: &Raw,
    scope: &mut Scope<'_>,
) -> Result<Restriction, CqlError> {
    if matches!(operator, Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte) {
        check_no_duration(column)?;
    }
    let spec = receiver(table, column, operator)?;
    let term = Term::prepare(value, &table.keyspace, &spec, scope)?;
    let ask = match operator {
        Operator::Contains => Ask::Contains(vec![Containing::Value(term)]),
        Operator::ContainsKey => Ask::Contains(vec![Containing::Key(term)]),
        _ => compare(operator, Operand::One(term)),
    };
    Ok(restriction(column, ask))
}

fn check_no_duration(column: &Column) -> Result<(), CqlError> {
    if !column.ty.any(&mut |ty| *ty == CqlType::Duration) {
        return Ok(());
    }
    Err(CqlError::invalid(match &column.ty {
        ty if ty.is_collection() => {
            "Slice restrictions are not supported on collections containing durations"
        }
        // A user type is a tuple to Cassandra, here.
        CqlType::Tuple(_) | CqlType::Udt { .. } => {
            "Slice restrictions are not supported on tuples containing durations"
        }
        _ => "Slice restrictions are not supported on duration columns",
    }))
}

/// `column[key] = value`.
fn of_entry(
    table: &Table,
    column: &Column,
    key: &Raw,
    operator: Operator,
    value: &Raw,
    scope: &mut Scope<'_>,
) -> Result<Restriction, CqlError> {
    if operator != Operator::Eq {
        check_no_duration(column)?;
    }
    let name = &column.name;
    let refuse = |message: String| Err(CqlError::invalid(message));
    let (key_type, value_type) = match &column.ty {
        CqlType::List { .. } => {
            return refuse(format!(
                "Indexes on list entries ({name}[index] = value) are not currently supported."
            ));
        }
        CqlType::Map { frozen: true, .. } => {
            return refuse(format!(
                "Map-entry equality predicates on frozen map column {name} are not supported"
            ));
        }
        CqlType::Map { key, value, .. } => (key, value),
        _ => return refuse(format!("Column {name} cannot be used as a map")),
    };
    if operator != Operator::Eq {
        return refuse("Only EQ relations are supported on map entries".to_owned());
    }
    let spec = ColumnSpec::of_column(table, column);
    let key = Term::prepare(key, &table.keyspace, &part::key(&spec, key_type), scope)?;
    let value = Term::prepare(value, &table.keyspace, &part::value(&spec, value_type), scope)?;
    Ok(restriction(column, Ask::Contains(vec![Containing::Entry(key, value)])))
}

/// The columns of a relation of several (`MultiColumnRelation.receivers`).
fn tuple_receivers(
    table: &Table,
    names: &[String],
    relation: &Relation,
) -> Result<(Vec<u16>, Vec<ColumnSpec>), CqlError> {
    let (mut columns, mut specs) = (Vec::<u16>::new(), Vec::new());
    for name in names {
        let column = Scope::column(table, name)?;
        let name = &column.name;
        if column.kind != ColumnKind::Clustering {
            return Err(CqlError::invalid(format!(
                "Multi-column relations can only be applied to clustering columns but was applied to: {name}"
            )));
        }
        if columns.contains(&column.index) {
            return Err(CqlError::invalid(format!(
                "Column \"{name}\" appeared twice in a relation: {}",
                relation_text(relation)
            )));
        }
        if columns.last().is_some_and(|last| column.index != last + 1) {
            return Err(CqlError::invalid(format!(
                "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                relation_text(relation)
            )));
        }
        columns.push(column.index);
        specs.push(ColumnSpec::of_column(table, column));
    }
    Ok((columns, specs))
}

fn of_token(
    table: &Table,
    names: &[String],
    operator: Operator,
    value: &Raw,
    scope: &mut Scope<'_>,
) -> Result<TokenAsk, CqlError> {
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        columns.push(Scope::column(table, name)?);
    }
    check_token_columns(table, &columns)?;
    let spec =
        ColumnSpec::new(&table.keyspace, &table.name, "partition key token", table.token_type());
    let term = Term::prepare(value, &table.keyspace, &spec, scope)?;
    Ok(match compare(operator, Operand::One(term)) {
        Ask::Slice(start, end) => TokenAsk { start, end, equal: false },
        Ask::Equal(operand) => {
            let end = Some(SliceEnd { operand, inclusive: true });
            TokenAsk { start: end.clone(), end, equal: true }
        }
        _ => TokenAsk { start: None, end: None, equal: false },
    })
}

fn check_token_columns(table: &Table, columns: &[&Column]) -> Result<(), CqlError> {
    let key = &table.partition_key;
    if columns.iter().copied().eq(key) {
        return Ok(());
    }
    let refuse = |message: String| Err(CqlError::invalid(message));
    if !key.iter().all(|column| columns.contains(&column)) {
        return refuse(
            "The token() function must be applied to all partition key components or none of them"
                .to_owned(),
        );
    }
    let duplicate =
        columns.iter().enumerate().any(|(i, c)| columns.iter().skip(i + 1).any(|d| c == d));
    if duplicate {
        return refuse(
            "The token() function contains duplicate partition key components".to_owned(),
        );
    }
    if columns.iter().any(|column| column.kind != ColumnKind::PartitionKey) {
        return refuse(
            "The token() function must contains only partition key components".to_owned(),
        );
    }
    let names: Vec<&str> = key.iter().map(|column| &*column.name).collect();
    refuse(format!(
        "The token function arguments must be in the partition key order: {}",
        names.join(", ")
    ))
}
