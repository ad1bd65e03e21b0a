//! The values of a request in the order of a statement's markers.

use cql::{Value, Values, Variable};
use protocol::ErrorResponse;

use crate::answer::invalid;

/// Values by marker.
pub(crate) enum Bound<'a> {
    /// As they came.
    Positional(protocol::Values<'a>),
    /// Named ones, put in order.
    Ordered(Vec<Option<protocol::Value<'a>>>),
}

impl<'a> Bound<'a> {
    /// Checks the number of values, and puts named ones in order.
    pub fn new(
        values: protocol::Values<'a>,
        variables: &[Variable],
    ) -> Result<Self, ErrorResponse> {
        let invalid_amount = || Err(invalid("Invalid amount of bind variables"));
        if !values.is_named() {
            return match values.len() == variables.len() {
                true => Ok(Self::Positional(values)),
                false => invalid_amount(),
            };
        }
        // values that no marker asks for are passed over, one that two ask for goes to both
        let ordered: Vec<_> = variables.iter().map(|v| values.by_name(&v.name)).collect();
        if ordered.iter().any(Option::is_none) {
            return invalid_amount();
        }
        Ok(Self::Ordered(ordered))
    }
}

/// Are there as many values as markers? EXECUTE and BATCH say so in words of their own; `there`
/// begins them.
pub(crate) fn check_count(
    values: &protocol::Values<'_>,
    variables: &[Variable],
    there: &str,
) -> Result<(), ErrorResponse> {
    let (markers, given) = (variables.len(), values.len());
    if markers == given || values.is_named() {
        return Ok(());
    }
    Err(invalid(format!("{there} were {markers} markers(?) in CQL but {given} bound variables")))
}

impl Values for Bound<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Positional(values) => values.len(),
            Self::Ordered(values) => values.len(),
        }
    }

    fn get(&self, marker: usize) -> Value<'_> {
        let value = match self {
            Self::Positional(values) => values.get(marker),
            Self::Ordered(values) => values.get(marker).copied().flatten(),
        };
        match value {
            Some(protocol::Value::Null) => Value::Null,
            Some(protocol::Value::Unset) | None => Value::Unset,
            Some(protocol::Value::Bytes(bytes)) => Value::Bytes(bytes),
        }
    }
}
