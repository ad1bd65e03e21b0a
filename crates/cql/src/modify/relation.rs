//! Relations as error messages show them.

use crate::ast::{InTuples, Operator, Relation, Term as Raw, TupleValue};
use crate::error::CqlError;
use crate::term::text;

/// `!=` is no relation of a WHERE clause.
pub fn unsupported_neq(relation: &str) -> CqlError {
    CqlError::invalid(format!("Unsupported \"!=\" relation: {relation}"))
}

/// An operator as written.
pub fn operator_sign(operator: Operator) -> &'static str {
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

/// The operator of a relation as written.
pub fn operator_text(relation: &Relation) -> &'static str {
    match relation {
        Relation::Column(_, operator, _)
        | Relation::Element(_, _, operator, _)
        | Relation::Tuple(_, operator, _) => operator_sign(*operator),
        Relation::In(..) | Relation::TupleIn(..) => "IN",
        _ => "=",
    }
}

/// A relation of one column as error messages show it.
pub fn relation_text(name: &str, relation: &Relation) -> String {
    let name = types::maybe_quote(name);
    match relation {
        Relation::Column(_, operator, raw) => {
            format!("{name} {} {}", operator_sign(*operator), text::text(raw))
        }
        Relation::Element(_, key, operator, raw) => {
            format!("{name}[{}] {} {}", text::text(key), operator_sign(*operator), text::text(raw))
        }
        _ => name.into_owned(),
    }
}

/// A relation of a tuple as error messages show it.
pub fn tuple_relation_text(names: &[String], relation: &Relation) -> String {
    let names = text::tuple_text(names.iter().map(|name| types::maybe_quote(name).into_owned()));
    let tuple = |items: &[Raw]| text::tuple_text(items.iter().map(text::text));
    let right = match relation {
        Relation::Tuple(_, _, TupleValue::Literal(items)) => tuple(items),
        Relation::TupleIn(_, InTuples::Markers(markers)) => {
            text::tuple_text(markers.iter().map(|_| "?".to_owned()))
        }
        Relation::TupleIn(_, InTuples::List(tuples)) => {
            text::tuple_text(tuples.iter().map(|items| tuple(items)))
        }
        _ => "?".to_owned(),
    };
    format!("{names} {} {right}", operator_text(relation))
}
