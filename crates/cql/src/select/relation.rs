//! From relations as written to restrictions: columns that exist, operators that their types allow.

use schema::{Column, ColumnKind, Table};
use types::CqlType;

use crate::ast::{Operator, Relation, Term as Raw};
use crate::error::CqlError;
use crate::relation_text::{operator_text, relation_text, unsupported_neq};
use crate::scope::{ColumnSpec, Scope};
use crate::select::operand::{Choices, Operand};
use crate::select::restriction::{Ask, Containing, Restriction, SliceEnd};
use crate::term::{Term, part};
use crate::token::TokenRestriction;

/// A relation that was understood.
pub(super) enum Understood {
    /// About columns.
    Columns(Restriction),
    /// About the token of the partition key.
    Token(TokenRestriction),
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
            TokenRestriction::prepare(table, names, *operator, value, scope).map(Understood::Token)
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

/// What receives the right side of a relation about a column, if the column's type allows the
/// operator (`SingleColumnRelation.toReceivers`).
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
