//! What a statement must be allowed to do: one exhaustive match over all statements.
//!
//! What is listed is asked in order (`CQLStatement.authorize`), after the statement was prepared
//! and before anything else is looked at. [`Need::refused_to_all`] comes before any role is asked;
//! [`Need::granted_to_all`] spares asking.

use std::fmt;

use schema::Schema;

use crate::ast::{
    self, Modification, Permission, QualifiedName, Resource, RoleStatement, Statement,
};
use crate::error::CqlError;
use crate::scope::Scope;

pub use crate::system_keyspaces::{is_local_system, is_system};

/// Keyspaces that only the node writes to; traces may be truncated, and virtual tables say
/// themselves what they take.
const UNWRITABLE: [&str; 4] = ["system", "system_schema", "system_auth", "system_distributed"];
/// Tables of `system` that any client may read.
const READABLE: [&str; 5] = ["local", "peers", "peers_v2", "size_estimates", "table_estimates"];

/// Something that a statement needs. All of its needs must be met.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    /// To be logged in, anonymously if the node asks for no more.
    Login,
    /// To be a superuser, where the node tells users apart; with the text for others.
    Superuser(&'static str),
    /// A permission on data, or on what contains them. Names are complete.
    Permission(Permission, Resource),
    /// A permission that one may only give or take who has it.
    Held(Permission, Resource),
    /// A permission on roles; who has it not is told no more than that.
    OnRole(Permission, Resource),
    /// What depends on who is asking and on the roles as they stand: for whoever runs the
    /// statement.
    AsRolesStand,
}

impl Need {
    /// What not even a superuser may do: change the schema of the system's own keyspaces
    /// (`ClientState.preventSystemKSSchemaModification`), or, other than in Cassandra, their
    /// contents.
    pub fn refused_to_all(&self) -> Result<(), CqlError> {
        let Self::Permission(permission, resource) = self else { return Ok(()) };
        if *permission == Permission::Modify {
            return match resource.data_keyspace() {
                Some(keyspace) if UNWRITABLE.contains(&keyspace) => Err(unmodifiable(keyspace)),
                _ => Ok(()),
            };
        }
        if !matches!(permission, Permission::Create | Permission::Alter | Permission::Drop) {
            return Ok(());
        }
        let Some(keyspace) = resource.data_keyspace() else { return Ok(()) };
        if is_local_system(keyspace) {
            return Err(unmodifiable(keyspace));
        }
        let replication =
            *permission == Permission::Alter && matches!(resource, Resource::Keyspace(_));
        if is_system(keyspace) && !replication {
            let text = format!("Cannot {} {}", permission_name(*permission), Shown(resource));
            return Err(CqlError::Unauthorized(text));
        }
        Ok(())
    }

    /// What drivers and tools live on, and so nobody is asked for
    /// (`ClientState.READABLE_SYSTEM_RESOURCES`).
    pub fn granted_to_all(&self) -> bool {
        let Self::Permission(Permission::Select, Resource::Table(name)) = self else {
            return false;
        };
        match name.keyspace.as_deref() {
            Some("system") => READABLE.contains(&name.name.as_str()),
            Some("system_traces") => matches!(name.name.as_str(), "events" | "sessions"),
            Some("system_schema" | "system_virtual_schema") => true,
            _ => false,
        }
    }
}

fn unmodifiable(keyspace: &str) -> CqlError {
    CqlError::Unauthorized(format!("{keyspace} keyspace is not user-modifiable."))
}

/// As messages and `system_auth` name it.
pub fn permission_name(permission: Permission) -> &'static str {
    match permission {
        Permission::Create => "CREATE",
        Permission::Alter => "ALTER",
        Permission::Drop => "DROP",
        Permission::Select => "SELECT",
        Permission::Modify => "MODIFY",
        Permission::Authorize => "AUTHORIZE",
        Permission::Describe => "DESCRIBE",
        Permission::Execute => "EXECUTE",
        Permission::Unmask => "UNMASK",
        Permission::SelectMasked => "SELECT_MASKED",
    }
}

/// A resource as messages show it.
pub struct Shown<'a>(pub &'a Resource);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = |name: &QualifiedName| match &name.keyspace {
            Some(keyspace) => format!("{keyspace}.{}", name.name),
            None => name.name.clone(),
        };
        match self.0 {
            Resource::AllKeyspaces => f.write_str("<all keyspaces>"),
            Resource::Keyspace(keyspace) => write!(f, "<keyspace {keyspace}>"),
            Resource::AllTables(keyspace) => write!(f, "<all tables in {keyspace}>"),
            Resource::Table(name) => write!(f, "<table {}>", full(name)),
            Resource::AllRoles => f.write_str("<all roles>"),
            Resource::Role(role) => write!(f, "<role {role}>"),
            Resource::AllFunctions => f.write_str("<all functions>"),
            Resource::FunctionsIn(keyspace) => write!(f, "<all functions in {keyspace}>"),
            Resource::Function(name, types) => {
                let keyspace = name.keyspace.as_deref().unwrap_or_default();
                let types: Vec<String> =
                    types.iter().map(|ty| crate::ddl::shown_type(ty, keyspace)).collect();
                write!(f, "<function {}({})>", full(name), types.join(", "))
            }
            Resource::AllMbeans => f.write_str("<all mbeans>"),
            Resource::Mbean { name, .. } => write!(f, "<mbean {name}>"),
        }
    }
}

/// What a statement needs. Its names resolve as when it was prepared.
pub fn needs(statement: &Statement, scope: &Scope<'_>) -> Result<Vec<Need>, CqlError> {
    use Permission as P;
    let one = |permission, resource| Ok(vec![Need::Permission(permission, resource)]);
    let keyspace = |name: &QualifiedName| scope.keyspace_of(name).map(str::to_owned);
    let table = |permission, name: &QualifiedName| {
        Ok(vec![Need::Permission(permission, Resource::Table(qualified(name, scope)?))])
    };
    match statement {
        Statement::Use(_) => Ok(vec![Need::Login]),
        Statement::Describe(_) => Ok(Vec::new()),
        Statement::Select(select) => {
            let name = qualified(&select.table, scope)?;
            let base = base_of_view(scope.schema, &name).unwrap_or(name);
            let unmask = unmask(scope.schema, &base);
            let mut needs = one(P::Select, Resource::Table(base))?;
            needs.extend(unmask);
            Ok(needs)
        }
        Statement::Insert(insert) => modification(&insert.table, insert.if_not_exists, scope),
        Statement::Update(update) => modification(&update.table, update.condition.is_some(), scope),
        Statement::Delete(delete) => modification(&delete.table, delete.condition.is_some(), scope),
        Statement::Batch(batch) => {
            let parts = batch.statements.iter().map(|part| match part {
                Modification::Insert(own) => modification(&own.table, own.if_not_exists, scope),
                Modification::Update(own) => {
                    modification(&own.table, own.condition.is_some(), scope)
                }
                Modification::Delete(own) => {
                    modification(&own.table, own.condition.is_some(), scope)
                }
            });
            Ok(parts.collect::<Result<Vec<_>, CqlError>>()?.concat())
        }
        Statement::Truncate(name) => table(P::Modify, name),
        Statement::CreateKeyspace(_) => one(P::Create, Resource::AllKeyspaces),
        Statement::AlterKeyspace(own) => one(P::Alter, Resource::Keyspace(own.name.clone())),
        Statement::DropKeyspace(own) => one(P::Drop, Resource::Keyspace(own.name.clone())),
        Statement::CreateTable(own) => one(P::Create, Resource::AllTables(keyspace(&own.name)?)),
        Statement::AlterTable(own) => table(P::Alter, &own.name),
        Statement::DropTable(own) => table(P::Drop, &own.name),
        Statement::CreateType(own) => one(P::Create, Resource::AllTables(keyspace(&own.name)?)),
        Statement::AlterType(own) => one(P::Alter, Resource::AllTables(keyspace(&own.name)?)),
        Statement::DropType(own) => one(P::Drop, Resource::AllTables(keyspace(&own.name)?)),
        Statement::CreateIndex(own) => table(P::Alter, &own.table),
        Statement::DropIndex(own) => Ok(drop_index(scope.schema, &qualified(&own.name, scope)?)),
        Statement::CreateView(own) => {
            // the base table is in the view's keyspace
            let keyspace = Some(keyspace(&own.name)?);
            let base = QualifiedName { keyspace, name: own.base.name.clone() };
            one(P::Alter, Resource::Table(base))
        }
        Statement::AlterView(ast::AlterView { name, .. })
        | Statement::DropView(ast::DropObject { name, .. }) => {
            let base = base_of_view(scope.schema, &qualified(name, scope)?);
            let need = |base| Need::Permission(P::Alter, Resource::Table(base));
            Ok(base.map(need).into_iter().collect())
        }
        Statement::CreateFunction(own) => {
            one(P::Create, Resource::FunctionsIn(keyspace(&own.name)?))
        }
        Statement::CreateAggregate(own) => create_aggregate(own, keyspace(&own.name)?),
        Statement::DropFunction(own) | Statement::DropAggregate(own) => {
            let name = qualified(&own.name, scope)?;
            if !has_callable(scope.schema, &name) {
                return Ok(Vec::new());
            }
            match &own.arguments {
                Some(types) => one(P::Drop, Resource::Function(name, types.clone())),
                None => one(P::Drop, Resource::FunctionsIn(name.keyspace.unwrap_or_default())),
            }
        }
        Statement::CreateTrigger(_) => Ok(vec![Need::Superuser(
            "Only superusers are allowed to perform CREATE TRIGGER queries",
        )]),
        Statement::DropTrigger(_) => Ok(vec![Need::Superuser(
            // Cassandra's spelling
            "Only superusers are allowed to perfrom DROP TRIGGER queries",
        )]),
        Statement::Role(role) => Ok(role_statement(role, scope)),
    }
}

fn qualified(name: &QualifiedName, scope: &Scope<'_>) -> Result<QualifiedName, CqlError> {
    let keyspace = Some(scope.keyspace_of(name)?.to_owned());
    Ok(QualifiedName { keyspace, name: name.name.clone() })
}

fn base_of_view(schema: &Schema, view: &QualifiedName) -> Option<QualifiedName> {
    let keyspace = schema.keyspace(view.keyspace.as_deref()?)?;
    let name = keyspace.views.get(&view.name)?.base_table_name.clone();
    Some(QualifiedName { keyspace: view.keyspace.clone(), name })
}

/// Conditions tell what is there, and so do updates of views: both need SELECT too.
fn modification(
    name: &QualifiedName,
    conditional: bool,
    scope: &Scope<'_>,
) -> Result<Vec<Need>, CqlError> {
    let name = qualified(name, scope)?;
    let keyspace = name.keyspace.as_deref().and_then(|keyspace| scope.schema.keyspace(keyspace));
    let views: Vec<String> = keyspace.map_or_else(Vec::new, |keyspace| {
        let views = keyspace.views.values().filter(|view| view.base_table_name == name.name);
        views.map(|view| view.table.name.clone()).collect()
    });
    let mut needs = vec![Need::Permission(Permission::Modify, Resource::Table(name.clone()))];
    if conditional || !views.is_empty() {
        needs.push(Need::Permission(Permission::Select, Resource::Table(name.clone())));
        needs.extend(unmask(scope.schema, &name));
    }
    needs.extend(views.into_iter().map(|view| {
        let view = QualifiedName { keyspace: name.keyspace.clone(), name: view };
        Need::Permission(Permission::Modify, Resource::Table(view))
    }));
    Ok(needs)
}

/// To read a table with masked columns one must be allowed to see behind the masks: where Cassandra
/// shows others the masked values, this node shows them nothing.
fn unmask(schema: &Schema, name: &QualifiedName) -> Option<Need> {
    let table = schema.table(name.keyspace.as_deref()?, &name.name)?;
    let masked = table.columns().any(|column| column.mask.is_some());
    masked.then(|| Need::Permission(Permission::Unmask, Resource::Table(name.clone())))
}

/// Is there a function or an aggregate of that name? What is not there takes no permission to be
/// dropped.
fn has_callable(schema: &Schema, name: &QualifiedName) -> bool {
    let keyspace = name.keyspace.as_deref().and_then(|keyspace| schema.keyspace(keyspace));
    keyspace.is_some_and(|keyspace| {
        let mut all = keyspace.functions.keys().chain(keyspace.aggregates.keys());
        all.any(|signature| signature.name == name.name)
    })
}

fn drop_index(schema: &Schema, index: &QualifiedName) -> Vec<Need> {
    let keyspace = index.keyspace.as_deref().and_then(|keyspace| schema.keyspace(keyspace));
    let mut tables = keyspace.into_iter().flat_map(|keyspace| keyspace.tables.values());
    let table = tables.find(|table| table.indexes.contains_key(&index.name));
    let need = table.map(|table| {
        let table =
            QualifiedName { keyspace: Some(table.keyspace.clone()), name: table.name.clone() };
        Need::Permission(Permission::Alter, Resource::Table(table))
    });
    need.into_iter().collect()
}

fn create_aggregate(
    create: &ast::CreateAggregate,
    keyspace: String,
) -> Result<Vec<Need>, CqlError> {
    let function = |name: &String, types| {
        let name = QualifiedName { keyspace: Some(keyspace.clone()), name: name.clone() };
        Need::Permission(Permission::Execute, Resource::Function(name, types))
    };
    let state = std::iter::once(&create.state_type).chain(&create.arguments).cloned().collect();
    let mut needs = vec![
        Need::Permission(Permission::Create, Resource::FunctionsIn(keyspace.clone())),
        function(&create.state_function, state),
    ];
    if let Some(last) = &create.final_function {
        needs.push(function(last, vec![create.state_type.clone()]));
    }
    Ok(needs)
}

/// What can be said of statements about roles without knowing the roles.
fn role_statement(statement: &RoleStatement, scope: &Scope<'_>) -> Vec<Need> {
    use Permission as P;
    match statement {
        RoleStatement::Create(_) | RoleStatement::AddIdentity(_) => {
            vec![Need::OnRole(P::Create, Resource::AllRoles)]
        }
        RoleStatement::Drop(own) => vec![Need::OnRole(P::Drop, Resource::Role(own.name.clone()))],
        RoleStatement::GrantRole(own) | RoleStatement::RevokeRole(own) => {
            vec![Need::OnRole(P::Authorize, Resource::Role(own.role.clone()))]
        }
        RoleStatement::Grant(own) | RoleStatement::Revoke(own) => {
            let resource = match &own.resource {
                // without a name to be known by, the keyspace does not matter
                Resource::Table(name) => match qualified(name, scope) {
                    Ok(name) => Resource::Table(name),
                    Err(_) => Resource::Table(name.clone()),
                },
                other => other.clone(),
            };
            let all = std::iter::once(&P::Authorize).chain(&own.permissions);
            all.map(|permission| Need::Held(*permission, resource.clone())).collect()
        }
        // one's own role, those granted to one, that of an identity
        RoleStatement::Alter(_)
        | RoleStatement::DropIdentity(_)
        | RoleStatement::List(_)
        | RoleStatement::ListUsers
        | RoleStatement::ListPermissions(_) => vec![Need::AsRolesStand],
    }
}
