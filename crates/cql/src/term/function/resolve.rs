//! How a call finds its overload (`FunctionResolver`).

use schema::{Release, Table};
use types::CqlType;

use crate::ast::QualifiedName;
use crate::error::CqlError;
use crate::term::assignment::{Assignment, is_value_compatible};
use crate::term::function::Function;
use crate::term::function::argument::Argument;
use crate::term::function::registry::{Call, NEGATE, operator_of};

/// Of the types that are known, the first that can take all others.
pub fn common_type(types: impl Iterator<Item = Option<CqlType>>) -> Option<CqlType> {
    let types: Vec<CqlType> = types.flatten().collect();
    let takes_all = |ty: &&CqlType| types.iter().all(|it| is_value_compatible(ty, it));
    types.iter().find(takes_all).cloned()
}

/// `name` or `keyspace.name`.
pub fn shown(name: &QualifiedName) -> String {
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
