//! Terms that are calls: which function each means, and so what its result fits.

use types::CqlType;

use crate::ast::{QualifiedName, Term as Raw};
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::assignment::Assignment;
use crate::term::function::{self, Argument, Function};
use crate::term::{literal, raw_type, text};

/// How deep calls may stand in each other's arguments. Each overload is tried on all arguments;
/// what was found of each is kept ([`Scope::verdicts`]), or the work would grow by a factor with
/// each level, as in Cassandra.
pub const MAX_CALL_DEPTH: usize = 64;

/// A term as an argument.
pub struct TermArgument<'a, 's> {
    raw: &'a Raw,
    keyspace: &'a str,
    scope: &'a Scope<'s>,
}

impl<'a, 's> TermArgument<'a, 's> {
    /// In a statement of a keyspace.
    pub fn new(raw: &'a Raw, keyspace: &'a str, scope: &'a Scope<'s>) -> Self {
        Self { raw, keyspace, scope }
    }
}

impl Argument for TermArgument<'_, '_> {
    fn test(&self, receiver: &ColumnSpec) -> Result<Assignment, CqlError> {
        super::test(self.raw, self.keyspace, receiver, self.scope)
    }

    fn text(&self) -> String {
        text::text(self.raw)
    }

    fn known_type(&self) -> Option<CqlType> {
        known_type(self.raw, self.keyspace, self.scope)
    }

    fn is_marker(&self) -> bool {
        matches!(self.raw, Raw::Marker(_))
    }
}

/// The type that a term has by itself: that of its hint or call, or the smallest that a constant
/// fits.
pub fn known_type(term: &Raw, keyspace: &str, scope: &Scope<'_>) -> Option<CqlType> {
    let known = |item: &Raw| known_type(item, keyspace, scope);
    match term {
        Raw::Literal(constant) => literal::preferred_type(constant),
        Raw::TypeHint(hint, _) => raw_type::resolve(hint, keyspace, scope).ok(),
        // one in brackets may be a vector
        Raw::List(_) => None,
        Raw::Set(items) => {
            let element = function::common_type(items.iter().map(known))?.into();
            Some(CqlType::Set { element, frozen: true })
        }
        Raw::Map(entries) => {
            let key = function::common_type(entries.iter().map(|(key, _)| known(key)))?.into();
            let value =
                function::common_type(entries.iter().map(|(_, value)| known(value)))?.into();
            Some(CqlType::Map { key, value, frozen: true })
        }
        Raw::Function(..) | Raw::Cast(..) | Raw::Binary(..) | Raw::Negate(_) => {
            scope.verdicts.known_type(term, || {
                let (name, arguments) = as_call(term)?;
                let receiver = ColumnSpec::new(keyspace, "", "", CqlType::Blob);
                let resolved =
                    resolve_terms_for(&name, &arguments, keyspace, &receiver, None, scope);
                resolved.ok().flatten().map(|function| function.returns().clone())
            })
        }
        _ => None,
    }
}

/// The most calls that stand in each other in a term.
fn call_depth(term: &Raw) -> usize {
    let deepest = |terms: &[Raw]| terms.iter().map(call_depth).max().unwrap_or(0);
    match term {
        Raw::Function(_, arguments) => 1 + deepest(arguments),
        Raw::List(terms) | Raw::Set(terms) | Raw::Tuple(terms) => deepest(terms),
        Raw::Map(entries) => {
            entries.iter().map(|(k, v)| call_depth(k).max(call_depth(v))).max().unwrap_or(0)
        }
        Raw::Udt(fields) => fields.iter().map(|(_, v)| call_depth(v)).max().unwrap_or(0),
        Raw::TypeHint(_, term) => call_depth(term),
        Raw::Cast(term, _) | Raw::Negate(term) => 1 + call_depth(term),
        Raw::Binary(_, left, right) => 1 + call_depth(left).max(call_depth(right)),
        Raw::Literal(_) | Raw::Null | Raw::Marker(_) => 0,
    }
}

/// A term that is a call, operators and CAST among them: its name and its arguments.
pub fn as_call(term: &Raw) -> Option<(QualifiedName, Vec<&Raw>)> {
    let native =
        |name: &str| QualifiedName { keyspace: Some("system".to_owned()), name: name.to_owned() };
    Some(match term {
        Raw::Function(name, arguments) => (name.clone(), arguments.iter().collect()),
        Raw::Binary(operator, left, right) => {
            (native(function::operator_name(*operator)), vec![left, right])
        }
        Raw::Negate(inner) => (native(function::NEGATE), vec![inner]),
        Raw::Cast(inner, target) => (native(&format!("cast_as_{}", target.name())), vec![inner]),
        _ => return None,
    })
}

fn resolve_terms(
    name: &QualifiedName,
    arguments: &[&Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<Option<Function>, CqlError> {
    resolve_terms_for(name, arguments, keyspace, receiver, Some(&receiver.ty), scope)
}

fn resolve_terms_for(
    name: &QualifiedName,
    arguments: &[&Raw],
    keyspace: &str,
    receiver: &ColumnSpec,
    wanted: Option<&CqlType>,
    scope: &Scope<'_>,
) -> Result<Option<Function>, CqlError> {
    if arguments.iter().any(|argument| call_depth(argument) >= MAX_CALL_DEPTH) {
        return Err(CqlError::invalid("Calls of functions are nested too deep"));
    }
    let table = scope.schema.table(&receiver.keyspace, &receiver.table);
    let terms: Vec<_> =
        arguments.iter().map(|raw| TermArgument::new(raw, keyspace, scope)).collect();
    let terms: Vec<&dyn Argument> = terms.iter().map(|term| term as &dyn Argument).collect();
    function::resolve(name, &terms, wanted, table.map(|table| &**table), scope.schema.release())
}

/// Does the result of a call fit a receiver? Calls that cannot be resolved do here: the message
/// that they get later is the better one.
pub fn test(term: &Raw, keyspace: &str, receiver: &ColumnSpec, scope: &Scope<'_>) -> Assignment {
    scope.verdicts.assignment(term, &receiver.ty, || {
        let Some((name, arguments)) = as_call(term) else { return Assignment::Weak };
        match resolve_terms(&name, &arguments, keyspace, receiver, scope) {
            Ok(Some(function)) if !function.is_made() => function.fits(&receiver.ty),
            _ => Assignment::Weak,
        }
    })
}

/// The function that a term calls, checked against what receives its result, and its arguments.
pub fn resolve<'t>(
    term: &'t Raw,
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Result<(Function, Vec<&'t Raw>), CqlError> {
    let Some((name, arguments)) = as_call(term) else {
        return Err(CqlError::invalid("A call is wanted"));
    };
    let function = resolve_terms(&name, &arguments, keyspace, receiver, scope)?;
    let Some(function) = function else {
        return Err(CqlError::invalid(format!(
            "Unknown function {} called",
            function::shown(&name)
        )));
    };
    if function.aggregate().is_some() {
        return Err(CqlError::invalid(
            "Aggregation function are not supported in the where clause",
        ));
    }
    if !function.fits(&receiver.ty).is_assignable() {
        let what = match function::operator_of(function.name()) {
            Some(operator) => format!("operation {operator}"),
            None => format!("function system.{}", function.name()),
        };
        return Err(CqlError::invalid(format!(
            "Type error: cannot assign result of {what} (type {}) to {} (type {})",
            function.returns(),
            receiver.name,
            receiver.ty
        )));
    }
    Ok((function, arguments))
}
