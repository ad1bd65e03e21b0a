//! Where the values of operations come from.

use std::borrow::Cow;

use crate::context::Bind;
use crate::error::CqlError;
use crate::modify::operation::Operation;
use crate::term::Term;
use crate::value::{Bound, OwnedValue};

/// The values of the two terms that an operation has at most, in the order of [`Operation::terms`].
pub type OperationValues<'a> = (Bound<'a>, Bound<'a>);

/// Where the values of operations come from. A term is evaluated once for each row that it is
/// written to.
pub enum Source<'s> {
    /// From the terms, as they are met.
    Terms(&'s Bind<'s>),
    /// From the terms, and they are kept: nothing is written yet.
    Keeping(&'s Bind<'s>, Vec<OwnedValue>),
    /// What was kept, in the order in which the terms were met.
    Kept(std::slice::Iter<'s, OwnedValue>),
}

impl<'s> Source<'s> {
    /// The values of an operation on the next row.
    #[inline]
    pub fn values<'a>(&mut self, operation: &'a Operation) -> Result<OperationValues<'a>, CqlError>
    where
        's: 'a,
    {
        let (first, second) = operation.terms();
        Ok((self.value(first)?, self.value(second)?))
    }

    fn value<'a>(&mut self, term: Option<&'a Term>) -> Result<Bound<'a>, CqlError>
    where
        's: 'a,
    {
        let Some(term) = term else { return Ok(Bound::Unset) };
        match self {
            Self::Terms(bind) | Self::Keeping(bind, _) => term.bind(bind),
            Self::Kept(values) => {
                let value = values.next().expect("a value was kept for each term");
                Ok(match value {
                    OwnedValue::Null => Bound::Null,
                    OwnedValue::Unset => Bound::Unset,
                    OwnedValue::Bytes(bytes) => Bound::Bytes(Cow::Borrowed(bytes)),
                })
            }
        }
    }

    /// Evaluates the terms of an operation and keeps their values.
    pub fn keep(&mut self, operation: &Operation) -> Result<(), CqlError> {
        let (first, second) = operation.terms();
        for term in [first, second].into_iter().flatten() {
            let value = self.value(Some(term))?.into();
            if let Self::Keeping(_, kept) = self {
                kept.push(value);
            }
        }
        Ok(())
    }
}
