//! A statement, prepared: the plan, its bind markers, its result.

use std::sync::Arc;

use schema::Schema;

use crate::ast::{self, Resource, RoleStatement, Statement};
use crate::ddl::Ddl;
use crate::describe::Describe;
use crate::error::CqlError;
use crate::metadata::{ResultColumn, Variable};
use crate::modify::{Batch, Modify};
use crate::permission::{self, Need};
use crate::scope::{Scope, Variables};
use crate::select::Select;

/// The most markers that a statement may have (`FBUtilities.MAX_UNSIGNED_SHORT`).
pub const MAX_MARKERS: usize = u16::MAX as usize;

/// A prepared statement.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What to do.
    pub plan: Plan,
    /// The markers in textual order.
    pub variables: Vec<Variable>,
    /// Of each column of the partition key, the marker that gives it: where markers give them all,
    /// for token-aware drivers.
    pub partition_key_markers: Vec<u16>,
    /// The columns of the result, for statements that have one.
    pub result: Option<Arc<[ResultColumn]>>,
    /// The keyspace that the statement acts on, where it acts on one.
    pub keyspace: Option<String>,
    /// Does it name the keyspace of every table that it reads or writes, so that it means the same
    /// in every session (`QualifiedStatement.isFullyQualified`)? Statements of other kinds never
    /// do.
    pub is_qualified: bool,
    /// What it must be allowed to do, in the order of asking.
    pub needs: Vec<Need>,
    /// Warnings that go with every answer.
    pub warnings: Vec<String>,
}

/// What a statement does. Each variant's type says how it is bound and run.
#[derive(Clone, Debug)]
pub enum Plan {
    /// SELECT.
    Select(Arc<Select>),
    /// INSERT, UPDATE, DELETE.
    Modify(Arc<Modify>),
    /// BATCH as a statement.
    Batch(Box<Batch>),
    /// A change of the schema.
    Schema(Box<Ddl>),
    /// USE.
    Use(String),
    /// TRUNCATE.
    Truncate(Arc<schema::Table>),
    /// A statement about roles and permissions; the tables that it names are complete where they
    /// can be.
    Role(Arc<RoleStatement>),
    /// DESCRIBE.
    Describe(Box<Describe>),
}

impl Plan {
    /// Must anything hold for it to be done?
    pub fn is_conditional(&self) -> bool {
        match self {
            Self::Modify(modify) => modify.is_conditional(),
            Self::Batch(batch) => batch.is_conditional(),
            _ => false,
        }
    }

    /// The tables that the statement reads or writes, as it was planned; none where it is about the
    /// schema.
    pub fn tables(&self) -> Vec<&Arc<schema::Table>> {
        match self {
            Self::Select(select) => vec![select.table()],
            Self::Modify(modify) => vec![modify.table()],
            Self::Batch(batch) => batch.statements().iter().map(|modify| modify.table()).collect(),
            Self::Schema(_)
            | Self::Use(_)
            | Self::Truncate(_)
            | Self::Role(_)
            | Self::Describe(_) => Vec::new(),
        }
    }
}

/// Checks a statement against the schema, and plans it. `keyspace` is the session's.
pub fn prepare(
    parsed: &ast::Parsed,
    keyspace: Option<&str>,
    schema: &Schema,
) -> Result<Prepared, CqlError> {
    let mut scope = Scope::new(schema, keyspace);
    if parsed.markers.len() > MAX_MARKERS {
        return Err(CqlError::invalid(format!(
            "Too many markers(?). {} markers exceed the allowed maximum of {MAX_MARKERS}",
            parsed.markers.len()
        )));
    }
    scope.variables = Variables::new(parsed.markers.clone());
    let scope_ref = &mut scope;
    let (plan, result) = match &parsed.statement {
        Statement::Select(select) => {
            let (select, result) = Select::prepare(select, scope_ref)?;
            (Plan::Select(Arc::new(select)), Some(result))
        }
        Statement::Insert(insert) => {
            (Plan::Modify(Arc::new(Modify::insert(insert, scope_ref)?)), None)
        }
        Statement::Update(update) => {
            (Plan::Modify(Arc::new(Modify::update(update, scope_ref)?)), None)
        }
        Statement::Delete(delete) => {
            (Plan::Modify(Arc::new(Modify::delete(delete, scope_ref)?)), None)
        }
        Statement::Batch(batch) => (Plan::Batch(Box::new(Batch::prepare(batch, scope_ref)?)), None),
        Statement::Describe(describe) => {
            // its columns come with the rows: Cassandra prepares it as a statement without a result
            (Plan::Describe(Box::new(Describe::prepare(describe))), None)
        }
        Statement::Use(keyspace) => (Plan::Use(keyspace.clone()), None),
        Statement::Truncate(name) => (Plan::Truncate(scope_ref.table(name)?), None),
        Statement::Role(role) => (Plan::Role(Arc::new(complete(role, scope_ref))), None),
        other => {
            let ddl = Ddl::prepare(other, scope_ref)?;
            scope_ref.acts_on = Some(ddl.keyspace().to_owned());
            (Plan::Schema(Box::new(ddl)), None)
        }
    };
    let needs = permission::needs(&parsed.statement, &scope)?;
    let variables = scope.variables.variables();
    let results = result.iter().flat_map(|columns| columns.iter().map(|column| &column.name));
    results.chain(variables.iter().map(|variable| &variable.name)).try_for_each(check_name)?;
    // Clients are told only where all markers belong to one table.
    let one_table = variables.windows(2).all(|pair| match pair {
        [a, b] => (&a.keyspace, &a.table) == (&b.keyspace, &b.table),
        _ => true,
    });
    let markers = if one_table { scope.partition_key_markers } else { Vec::new() };
    Ok(Prepared {
        plan,
        is_qualified: is_qualified(&parsed.statement),
        needs,
        variables,
        partition_key_markers: markers,
        result,
        keyspace: scope.acts_on,
        warnings: scope.warnings,
    })
}

/// The statement with the session's keyspace before the name of a table that has none; without
/// either it fails once it runs (`AuthorizationStatement.maybeCorrectResource`).
fn complete(statement: &RoleStatement, scope: &Scope<'_>) -> RoleStatement {
    let mut statement = statement.clone();
    let resource = match &mut statement {
        RoleStatement::Grant(own) | RoleStatement::Revoke(own) => Some(&mut own.resource),
        RoleStatement::ListPermissions(own) => own.resource.as_mut(),
        _ => None,
    };
    if let Some(Resource::Table(name)) = resource
        && let Ok(keyspace) = scope.keyspace_of(name)
    {
        name.keyspace = Some(keyspace.to_owned());
    }
    statement
}

/// Clients are told of markers and columns by names with two bytes for their length.
fn check_name(name: &Arc<str>) -> Result<(), CqlError> {
    let most = usize::from(u16::MAX);
    match name.len() > most {
        true => Err(CqlError::invalid(format!(
            "A name of {} bytes is longer than the maximum of {most}",
            name.len()
        ))),
        false => Ok(()),
    }
}

fn is_qualified(statement: &Statement) -> bool {
    let of = |modification: &ast::Modification| match modification {
        ast::Modification::Insert(insert) => insert.table.keyspace.is_some(),
        ast::Modification::Update(update) => update.table.keyspace.is_some(),
        ast::Modification::Delete(delete) => delete.table.keyspace.is_some(),
    };
    match statement {
        Statement::Select(select) => select.table.keyspace.is_some(),
        Statement::Insert(insert) => insert.table.keyspace.is_some(),
        Statement::Update(update) => update.table.keyspace.is_some(),
        Statement::Delete(delete) => delete.table.keyspace.is_some(),
        Statement::Batch(batch) => batch.statements.iter().all(of),
        Statement::Truncate(name) => name.keyspace.is_some(),
        _ => false,
    }
}
