//! Terms: what stands where a value is wanted.

use crate::ast;
use crate::context::Bind;
use crate::error::CqlError;
use crate::scope::{ColumnSpec, Scope};
use crate::value::Bound;

/// A prepared term: it gives a value once bound.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A constant.
    Constant(Vec<u8>),
}

impl Term {
    /// Checks a term against what receives it, and notes its markers.
    pub fn prepare(
        _raw: &ast::Term,
        _receiver: &ColumnSpec,
        _scope: &mut Scope<'_>,
    ) -> Result<Self, CqlError> {
        Err(CqlError::unsupported("A term"))
    }

    /// The value.
    pub fn bind<'a>(&'a self, _bind: &Bind<'a>) -> Result<Bound<'a>, CqlError> {
        match self {
            Self::Constant(value) => Ok(Bound::Bytes(value.into())),
        }
    }
}
