//! Changes of the schema, and the other statements that neither read nor write rows.

use crate::ast;
use crate::error::CqlError;
use crate::prepared::Plan;
use crate::scope::Scope;

/// A change of the schema.
#[derive(Clone, Debug)]
pub struct Ddl {}

/// Plans a statement other than SELECT, INSERT, UPDATE, DELETE, BATCH and DESCRIBE.
pub fn plan(statement: &ast::Statement, scope: &mut Scope<'_>) -> Result<Plan, CqlError> {
    match statement {
        ast::Statement::Use(keyspace) => Ok(Plan::Use(keyspace.clone())),
        ast::Statement::Truncate(name) => Ok(Plan::Truncate(scope.table(name)?)),
        _ => Err(CqlError::unsupported("This statement")),
    }
}
