//! DESCRIBE.

use std::sync::Arc;

use crate::ast;
use crate::error::CqlError;
use crate::prepared::ResultColumn;
use crate::scope::Scope;

/// A prepared DESCRIBE.
#[derive(Clone, Debug)]
pub struct Describe {}

impl Describe {
    /// Plans a DESCRIBE, and says which columns its result has.
    pub fn prepare(
        _statement: &ast::Describe,
        _scope: &mut Scope<'_>,
    ) -> Result<(Self, Arc<[ResultColumn]>), CqlError> {
        Err(CqlError::unsupported("DESCRIBE"))
    }
}
