//! How a call finds its overload (`FunctionResolver`).

use schema::{Release, Table};
use types::CqlType;

use crate::ast::{QualifiedName, Term as Raw};
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::term::assign::{self, Assignment};
use crate::term::function::Function;
use crate::term::function::registry::{Call, NEGATE, operator_name, operator_of};
use crate::term::{raw_type, text};

/// How deep calls may stand in each other's arguments. Each overload is tried on all arguments;
/// what was found of each is kept ([`Scope::verdicts`]), or the work would grow by a factor with
/// each level, as in Cassandra.
pub const MAX_CALL_DEPTH: usize = 64;

/// An argument of a call whose overload is sought: a term, or something selected.
pub trait Argument {
    /// Does it fit a parameter?
    fn test(&self, receiver: &ColumnSpec) -> Result<Assignment, CqlError>;
    /// As error messages show it.
    fn text(&self) -> String;
    /// The type it would be given without a parameter to meet (`getCompatibleTypeIfKnown`).
    fn known_type(&self) -> Option<CqlType>;
    /// The number of elements, if it is a literal in brackets in a selection, which may be a
    /// vector.
    fn array_size(&self) -> Option<u32> {
        None
    }
    /// Is it a bind marker?
    fn is_marker(&self) -> bool {
        false
    }
}

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
        assign::test(self.raw, self.keyspace, receiver, self.scope)
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
        Raw::Literal(literal) => assign::preferred_type(literal),
        Raw::TypeHint(hint, _) => raw_type::resolve(hint, keyspace, scope).ok(),
        // one in brackets may be a vector
        Raw::List(_) => None,
        Raw::Set(items) => {
            let element = common_type(items.iter().map(known))?.into();
            Some(CqlType::Set { element, frozen: true })
        }
        Raw::Map(entries) => {
            let key = common_type(entries.iter().map(|(key, _)| known(key)))?.into();
            let value = common_type(entries.iter().map(|(_, value)| known(value)))?.into();
            Some(CqlType::Map { key, value, frozen: true })
        }
        Raw::Function(..) | Raw::Cast(..) | Raw::Binary(..) | Raw::Negate(_) => {
            scope.verdicts.known_type(term, || {
                let (name, arguments) = as_call(term)?;
                let receiver = ColumnSpec::new(keyspace, "", "", CqlType::Blob);
                let resolved =
                    resolve_terms_for(&name, &arguments, keyspace, &receiver, None, scope);
                resolved.ok().flatten().map(|function| function.returns)
            })
        }
        _ => None,
    }
}

/// Of the types that are known, the first that can take all others.
pub fn common_type(types: impl Iterator<Item = Option<CqlType>>) -> Option<CqlType> {
    let types: Vec<CqlType> = types.flatten().collect();
    let takes_all = |ty: &&CqlType| types.iter().all(|it| assign::is_value_compatible(ty, it));
    types.iter().find(takes_all).cloned()
}

/// `name` or `keyspace.name`.
fn shown(name: &QualifiedName) -> String {
    match &name.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", name.name),
        None => name.name.clone(),
    }
}

/// The overload that a call means; `None` if there is no function of that name. `receiver` is the
/// type of what takes the result, where that is known, and `table` the one that `token` is asked
/// about.
pub fn resolve(
    name: &QualifiedName,
    arguments: &[&dyn Argument],
    receiver: Option<&CqlType>,
    table: Option<&Table>,
    release: Release,
) -> Result<Option<Function>, CqlError> {
    if name.keyspace.as_deref().is_some_and(|keyspace| keyspace != "system") {
        return Ok(None);
    }
    let call = Call { name: &name.name, arguments, receiver, table, release };
    let candidates = call.overloads()?;
    let (keyspace, table) = table.map_or(("", ""), |t| (t.keyspace.as_str(), t.name.as_str()));
    match candidates.as_slice() {
        [] => return Ok(None),
        [only] => {
            check_arguments(only, arguments, keyspace, table)?;
            return Ok(Some(only.clone()));
        }
        _ => {}
    }
    let mut compatible = Vec::new();
    for candidate in &candidates {
        if receiver.is_some_and(|receiver| !candidate.fits(receiver).is_assignable()) {
            continue;
        }
        match match_arguments(candidate, arguments, keyspace, table)? {
            Assignment::Exact => return Ok(Some(candidate.clone())),
            Assignment::Weak => compatible.push(candidate),
            Assignment::None => {}
        }
    }
    let signatures = |functions: Vec<&Function>| {
        functions.into_iter().map(Function::signature).collect::<Vec<_>>().join(", ")
    };
    let argument = |index: usize| arguments.get(index).map(|a| a.text()).unwrap_or_default();
    match (compatible.as_slice(), operator_of(&name.name)) {
        ([], Some(operator)) => Err(CqlError::invalid(format!(
            "the '{operator}' operation is not supported between {} and {}",
            argument(0),
            argument(1)
        ))),
        ([], None) => Err(CqlError::invalid(format!(
            "Invalid call to function {}, none of its type signatures match (known type signatures: {})",
            shown(name),
            signatures(candidates.iter().collect())
        ))),
        ([only], _) => Ok(Some((*only).clone())),
        (_, Some(operator)) => {
            // in doubt both are of the type that is wanted
            let has_marker = arguments.iter().any(|argument| argument.is_marker());
            let wanted = receiver.filter(|_| !has_marker);
            let both = |function: &&&Function| {
                wanted.is_some_and(|wanted| function.arguments.iter().all(|ty| ty == wanted))
            };
            if let Some(function) = compatible.iter().find(both) {
                return Ok(Some((*function).clone()));
            }
            Err(CqlError::invalid(format!(
                "Ambiguous '{operator}' operation with args {} and {}: use type hint to disambiguate, example '(int) ?'",
                argument(0),
                argument(1)
            )))
        }
        _ if name.name == NEGATE => {
            Err(CqlError::invalid("Ambiguous negation: use type casts to disambiguate"))
        }
        _ => Err(CqlError::invalid(format!(
            "Ambiguous call to function {} (can be matched by following signatures: {}): use type casts to disambiguate",
            shown(name),
            signatures(compatible)
        ))),
    }
}

fn check_arguments(
    function: &Function,
    arguments: &[&dyn Argument],
    keyspace: &str,
    table: &str,
) -> Result<(), CqlError> {
    if arguments.len() != function.arguments.len() {
        return Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function system.{}: {} required but {} provided",
            function.name,
            function.arguments.len(),
            arguments.len()
        )));
    }
    for (index, argument) in arguments.iter().enumerate() {
        let spec = function.argument_spec(keyspace, table, index);
        if !argument.test(&spec)?.is_assignable() {
            return Err(CqlError::invalid(format!(
                "Type error: {} cannot be passed as argument {index} of function system.{} of type {}",
                argument.text(),
                function.name,
                spec.ty
            )));
        }
    }
    Ok(())
}

fn match_arguments(
    function: &Function,
    arguments: &[&dyn Argument],
    keyspace: &str,
    table: &str,
) -> Result<Assignment, CqlError> {
    if arguments.len() != function.arguments.len() {
        return Ok(Assignment::None);
    }
    let mut worst = Assignment::Exact;
    for (index, argument) in arguments.iter().enumerate() {
        worst = worst.max(argument.test(&function.argument_spec(keyspace, table, index))?);
    }
    Ok(worst)
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
        Raw::Binary(operator, left, right) => (native(operator_name(*operator)), vec![left, right]),
        Raw::Negate(inner) => (native(NEGATE), vec![inner]),
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
    resolve(name, &terms, wanted, table.map(|table| &**table), scope.schema.release())
}

/// Does the result of a call fit a receiver? Calls that cannot be resolved do here: the message
/// that they get later is the better one.
pub fn test_call(
    term: &Raw,
    keyspace: &str,
    receiver: &ColumnSpec,
    scope: &Scope<'_>,
) -> Assignment {
    scope.verdicts.assignment(term, &receiver.ty, || {
        let Some((name, arguments)) = as_call(term) else { return Assignment::Weak };
        match resolve_terms(&name, &arguments, keyspace, receiver, scope) {
            Ok(Some(function)) if !function.is_made => function.fits(&receiver.ty),
            _ => Assignment::Weak,
        }
    })
}

/// The function that a term calls, checked against what receives its result, and its arguments.
pub fn resolve_call<'t>(
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
        return Err(CqlError::invalid(format!("Unknown function {} called", shown(&name))));
    };
    if function.aggregate().is_some() {
        return Err(CqlError::invalid(
            "Aggregation function are not supported in the where clause",
        ));
    }
    if !function.fits(&receiver.ty).is_assignable() {
        let what = match operator_of(&function.name) {
            Some(operator) => format!("operation {operator}"),
            None => format!("function system.{}", function.name),
        };
        return Err(CqlError::invalid(format!(
            "Type error: cannot assign result of {what} (type {}) to {} (type {})",
            function.returns, receiver.name, receiver.ty
        )));
    }
    Ok((function, arguments))
}
