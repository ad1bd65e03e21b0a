//! What those who log requests see of one while it runs (crate `audit`).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use audit::{Kind, Statement};
use cql::ast::{Resource, RoleOptions, RoleStatement};
use cql::ddl::DdlKind;
use cql::{Plan, Prepared};

use crate::prepared::Entry;

/// A statement that a request was understood to have.
pub struct ObservedStatement {
    /// Its text.
    pub text: String,
    /// What it is about.
    pub statement: Statement,
    /// The names of its markers.
    pub markers: Vec<Arc<str>>,
}

/// What is seen of a request that is logged. One that is not has none.
#[derive(Default)]
pub struct Observed {
    statements: RefCell<Vec<ObservedStatement>>,
    times: Cell<Option<(i64, i64)>>,
}

impl Observed {
    /// The statements that were understood: several of a BATCH message.
    pub fn statements(&self) -> std::cell::Ref<'_, Vec<ObservedStatement>> {
        self.statements.borrow()
    }

    /// The timestamp in microseconds and the time in seconds that it ran with, if it came so far.
    pub fn times(&self) -> Option<(i64, i64)> {
        self.times.get()
    }

    /// It is planned anew.
    pub(crate) fn forget(&self) {
        self.statements.borrow_mut().clear();
    }

    pub(crate) fn see(&self, text: &str, prepared: &Prepared) {
        let seen = ObservedStatement {
            text: text.to_owned(),
            statement: statement(&prepared.plan),
            markers: prepared.variables.iter().map(|marker| Arc::clone(&marker.name)).collect(),
        };
        self.statements.borrow_mut().push(seen);
    }

    pub(crate) fn see_times(&self, timestamp: i64, seconds: i64) {
        self.times.set(Some((timestamp, seconds)));
    }
}

impl Entry {
    /// What those who log requests want to know of it.
    pub(crate) fn observed(&self) -> Statement {
        statement(&self.prepared.plan)
    }
}

/// What a statement is about, as its class in Cassandra says (`getAuditLogContext`).
fn statement(plan: &Plan) -> Statement {
    let of_table =
        |kind, table: &schema::Table| Statement::within(kind, &table.keyspace, Some(&table.name));
    match plan {
        Plan::Select(select) => of_table(Kind::Select, select.table()),
        Plan::Modify(modify) => {
            let kind = match modify.kind() {
                cql::modify::Kind::Insert | cql::modify::Kind::Update => Kind::Update,
                cql::modify::Kind::Delete => Kind::Delete,
            };
            of_table(kind, modify.table())
        }
        Plan::Batch(_) => Statement::new(Kind::Batch),
        Plan::Schema(ddl) => {
            let (kind, name) = ddl.subject();
            Statement::within(ddl_kind(kind), ddl.keyspace(), name)
        }
        Plan::Use(keyspace) => Statement::within(Kind::UseKeyspace, keyspace, None),
        Plan::Truncate(table) => of_table(Kind::Truncate, table),
        Plan::Role(statement) => role(statement),
        Plan::Describe(_) => Statement::new(Kind::Describe),
    }
}

fn ddl_kind(kind: DdlKind) -> Kind {
    match kind {
        DdlKind::CreateKeyspace => Kind::CreateKeyspace,
        DdlKind::AlterKeyspace => Kind::AlterKeyspace,
        DdlKind::DropKeyspace => Kind::DropKeyspace,
        DdlKind::CreateTable => Kind::CreateTable,
        DdlKind::AlterTable => Kind::AlterTable,
        DdlKind::DropTable => Kind::DropTable,
        DdlKind::CreateType => Kind::CreateType,
        DdlKind::AlterType => Kind::AlterType,
        DdlKind::DropType => Kind::DropType,
        DdlKind::CreateIndex => Kind::CreateIndex,
        DdlKind::DropIndex => Kind::DropIndex,
        DdlKind::CreateView => Kind::CreateView,
        DdlKind::AlterView => Kind::AlterView,
        DdlKind::DropView => Kind::DropView,
        DdlKind::CreateFunction => Kind::CreateFunction,
        DdlKind::DropFunction => Kind::DropFunction,
        DdlKind::CreateAggregate => Kind::CreateAggregate,
        DdlKind::DropAggregate => Kind::DropAggregate,
        DdlKind::CreateTrigger => Kind::CreateTrigger,
        DdlKind::DropTrigger => Kind::DropTrigger,
    }
}

fn role(statement: &RoleStatement) -> Statement {
    let with_password = |kind, options: &RoleOptions| {
        let given = [&options.password, &options.hashed_password].into_iter().flatten();
        let password = given.map(|secret| secret.0.clone()).find(|secret| !secret.is_empty());
        Statement { password, ..Statement::new(kind) }
    };
    match statement {
        RoleStatement::Create(create) => with_password(Kind::CreateRole, &create.options),
        RoleStatement::Alter(alter) => with_password(Kind::AlterRole, &alter.options),
        RoleStatement::Drop(_) => Statement::new(Kind::DropRole),
        // Cassandra has LIST_USERS, and never says it
        RoleStatement::List(_) | RoleStatement::ListUsers => Statement::new(Kind::ListRoles),
        RoleStatement::GrantRole(_) => Statement::new(Kind::Grant),
        RoleStatement::RevokeRole(_) => Statement::new(Kind::Revoke),
        RoleStatement::Grant(grant) => of_resource(Kind::Grant, &grant.resource),
        RoleStatement::Revoke(revoke) => of_resource(Kind::Revoke, &revoke.resource),
        RoleStatement::ListPermissions(_) => Statement::new(Kind::ListPermissions),
        RoleStatement::AddIdentity(_) => Statement::new(Kind::CreateIdentity),
        RoleStatement::DropIdentity(_) => Statement::new(Kind::DropIdentity),
    }
}

/// The keyspace is the name of what the resource is part of, or its own: Cassandra says so.
fn of_resource(kind: Kind, resource: &Resource) -> Statement {
    let (parent, name) = match resource {
        Resource::AllKeyspaces => (None, "data".to_owned()),
        Resource::Keyspace(keyspace) => (Some("data".to_owned()), format!("data/{keyspace}")),
        Resource::AllTables(keyspace) => {
            (Some(format!("data/{keyspace}")), format!("data/{keyspace}/*"))
        }
        Resource::Table(table) => {
            let keyspace = table.keyspace.as_deref().unwrap_or_default();
            (Some(format!("data/{keyspace}/*")), format!("data/{keyspace}/{}", table.name))
        }
        Resource::AllRoles => (None, "roles".to_owned()),
        Resource::Role(role) => (Some("roles".to_owned()), format!("roles/{role}")),
        Resource::AllFunctions => (None, "functions".to_owned()),
        Resource::FunctionsIn(keyspace) => {
            (Some("functions".to_owned()), format!("functions/{keyspace}"))
        }
        Resource::Function(name, _) => {
            let keyspace = name.keyspace.as_deref().unwrap_or_default();
            (Some(format!("functions/{keyspace}")), format!("functions/{keyspace}/{}", name.name))
        }
        Resource::AllMbeans => (None, "mbean".to_owned()),
        Resource::Mbean { name, .. } => (Some("mbean".to_owned()), format!("mbean/{name}")),
    };
    Statement::within(kind, parent.as_deref().unwrap_or(&name), Some(&name))
}
