//! SELECT, prepared.

use std::sync::Arc;

use crate::ast;
use crate::error::CqlError;
use crate::prepared::ResultColumn;
use crate::scope::Scope;

/// A prepared SELECT.
#[derive(Clone, Debug)]
pub struct Select {}

impl Select {
    /// Checks a SELECT against the schema, and says which columns its result has.
    pub fn prepare(
        _statement: &ast::Select,
        _scope: &mut Scope<'_>,
    ) -> Result<(Self, Arc<[ResultColumn]>), CqlError> {
        Err(CqlError::unsupported("SELECT"))
    }
}
