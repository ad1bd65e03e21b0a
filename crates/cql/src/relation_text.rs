//! Relations as error messages show them.

use crate::ast::{InTuples, InValues, Operator, Relation, TupleValue};
use crate::error::CqlError;
use crate::term::text::{text, tuple_text};

/// How Cassandra writes an operator.
pub(crate) fn operator_text(operator: Operator) -> &'static str {
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
pub(crate) fn relation_text(relation: &Relation) -> String {
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

/// `!=` is no relation of a WHERE clause.
pub(crate) fn unsupported_neq(relation: &Relation) -> CqlError {
    CqlError::invalid(format!("Unsupported \"!=\" relation: {}", relation_text(relation)))
}
