//! INSERT, UPDATE, DELETE and BATCH, prepared.

use crate::ast;
use crate::error::CqlError;
use crate::scope::Scope;

/// A prepared INSERT, UPDATE or DELETE.
#[derive(Clone, Debug)]
pub struct Modify {}

/// A prepared BATCH.
#[derive(Clone, Debug)]
pub struct Batch {}

impl Modify {
    /// Checks an INSERT against the schema.
    pub fn insert(_statement: &ast::Insert, _scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        Err(CqlError::unsupported("INSERT"))
    }

    /// Checks an UPDATE against the schema.
    pub fn update(_statement: &ast::Update, _scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        Err(CqlError::unsupported("UPDATE"))
    }

    /// Checks a DELETE against the schema.
    pub fn delete(_statement: &ast::Delete, _scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        Err(CqlError::unsupported("DELETE"))
    }
}

impl Batch {
    /// Checks a BATCH against the schema.
    pub fn prepare(_statement: &ast::Batch, _scope: &mut Scope<'_>) -> Result<Self, CqlError> {
        Err(CqlError::unsupported("BATCH"))
    }
}
