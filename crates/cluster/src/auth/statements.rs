//! Statements about roles and permissions, in the order in which Cassandra asks and answers: who
//! may, what makes no sense, what is done.

use std::rc::Rc;
use std::time::Duration;

use cql::ast::{
    Access, AddIdentity, AlterRole, CreateRole, DropIdentity, DropRole, GrantPermissions,
    GrantRole, Permission, Resource, RoleOptions, RoleStatement,
};
use protocol::{Change, ErrorDetail, ErrorResponse, SchemaChange, Target};

use super::Auth;
use crate::answer::{Answer, Outcome, cql_error, invalid};
use crate::auth::password::is_hash;
use crate::auth::{Principal, Roles, insufficient, unauthorized};

/// The name of who did not have to say one.
const ANONYMOUS: &str = "anonymous";
const ROLE_MANAGER: &str = "org.apache.cassandra.auth.CassandraRoleManager";

/// Done, with warnings.
pub(super) type Done = Result<Vec<String>, ErrorResponse>;

fn refused<T>(text: impl Into<String>) -> Result<T, ErrorResponse> {
    Err(cql_error(unauthorized(text)))
}

/// Who runs a statement about roles.
pub(super) struct Performer(pub Option<Principal>);

impl Performer {
    pub fn name(&self) -> &str {
        self.0.as_ref().map_or(ANONYMOUS, |principal| &principal.name)
    }

    pub fn is_superuser(&self) -> bool {
        self.0.as_ref().is_some_and(|principal| principal.roles.is_superuser())
    }

    pub fn has_role(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|principal| principal.roles.contains(name))
    }

    /// Who is logged in.
    pub fn named(&self) -> Result<&Principal, ErrorResponse> {
        let text = "You have to be logged in and not anonymous to perform this request";
        self.0.as_ref().ok_or_else(|| cql_error(unauthorized(text)))
    }
}

/// The options that a statement sets, by name.
fn set_options(options: &RoleOptions) -> impl Iterator<Item = &'static str> {
    [
        ("PASSWORD", options.password.is_some()),
        ("HASHED_PASSWORD", options.hashed_password.is_some()),
        ("OPTIONS", options.custom.is_some()),
        ("SUPERUSER", options.superuser.is_some()),
        ("LOGIN", options.login.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, is_set)| is_set.then_some(name))
}

impl Auth {
    /// Runs a statement about roles; what it needs of permissions alone is there.
    pub(crate) async fn run_role(
        self: &Rc<Self>,
        statement: &RoleStatement,
        user: Option<&Rc<str>>,
    ) -> Outcome {
        let result = match self.performer(user).await {
            Ok(performer) => self.run_role_as(statement, &performer).await,
            Err(error) => Err(error),
        };
        match result {
            Ok((answer, warnings)) => Outcome::new(Ok(answer), warnings),
            Err(error) => error.into(),
        }
    }

    /// With roles and permissions as they stand, not as they are remembered.
    async fn performer(
        self: &Rc<Self>,
        user: Option<&Rc<str>>,
    ) -> Result<Performer, ErrorResponse> {
        Ok(Performer(match user {
            Some(user) => Some(self.read_principal(user).await?),
            None => None,
        }))
    }

    async fn run_role_as(
        self: &Rc<Self>,
        statement: &RoleStatement,
        performer: &Performer,
    ) -> Result<(Answer, Vec<String>), ErrorResponse> {
        let done = match statement {
            RoleStatement::List(list) => {
                return Ok((self.list_roles(list, performer).await?, Vec::new()));
            }
            RoleStatement::ListUsers => {
                return Ok((self.list_users(performer).await?, Vec::new()));
            }
            RoleStatement::ListPermissions(list) => {
                return Ok((self.list_permissions(list, performer).await?, Vec::new()));
            }
            RoleStatement::Create(create) => self.create_role(create, performer).await,
            RoleStatement::Alter(alter) => self.alter_role(alter, performer).await,
            RoleStatement::Drop(drop) => self.drop_role(drop, performer).await,
            RoleStatement::GrantRole(grant) => self.grant_role(grant, performer).await,
            RoleStatement::RevokeRole(revoke) => self.revoke_role(revoke, performer).await,
            RoleStatement::Grant(grant) => self.grant(grant, performer, Giving::Grant).await,
            RoleStatement::Revoke(revoke) => self.grant(revoke, performer, Giving::Revoke).await,
            RoleStatement::AddIdentity(add) => self.add_identity(add, performer).await,
            RoleStatement::DropIdentity(drop) => self.drop_identity(drop, performer).await,
        };
        // also where it failed half-way
        if performer.0.is_some() {
            let synced = self.sync_roles().await;
            self.forget_roles().await;
            synced?;
        }
        Ok((Answer::Void, done?))
    }

    /// The role of that name, or INVALID with the text.
    pub(super) async fn existing(
        self: &Rc<Self>,
        name: &str,
        otherwise: impl FnOnce() -> String,
    ) -> Result<(), ErrorResponse> {
        match self.read_role(name).await? {
            Some(_) => Ok(()),
            None => Err(invalid(otherwise())),
        }
    }

    fn check_options(&self, options: &RoleOptions) -> Result<(), ErrorResponse> {
        for name in set_options(options) {
            let is_served = match name {
                "OPTIONS" => false,
                "PASSWORD" | "HASHED_PASSWORD" => self.authenticates,
                _ => true,
            };
            if !is_served {
                return Err(invalid(format!("{ROLE_MANAGER} doesn't support {name}")));
            }
        }
        match &options.hashed_password {
            Some(hash) if !is_hash(&hash.0) => {
                Err(invalid("Invalid hashed password value. Please use jBcrypt."))
            }
            _ => Ok(()),
        }
    }

    async fn check_access(self: &Rc<Self>, options: &RoleOptions) -> Result<(), ErrorResponse> {
        if let Some(Access::Only(names)) = &options.datacenters
            && names.iter().any(|name| *name != self.shard.identity.data_center)
        {
            return Err(invalid(format!(
                "Invalid value(s) for DATACENTERS '[{}]',All values must be valid datacenters",
                names.join(", ")
            )));
        }
        let Some(Access::Only(names)) = &options.cidr_groups else { return Ok(()) };
        let rows = self.own_cql.run("SELECT cidr_group FROM system_auth.cidr_groups", &[]).await?;
        let known: Vec<String> = rows.iter().filter_map(|row| row.text(0)).collect();
        if names.iter().all(|name| known.contains(name)) {
            return Ok(());
        }
        Err(invalid(format!(
            "Invalid CIDR group(s): [{}]. Available CIDR Groups are: [{}]",
            names.join(", "),
            known.join(", ")
        )))
    }

    /// Keeps from where a role may come, for a node that asks (`AllowAllCIDRAuthorizer` does not).
    async fn write_cidr_groups(
        self: &Rc<Self>,
        role: &str,
        access: Option<&Access>,
    ) -> Result<(), ErrorResponse> {
        let names = match access {
            None => return Ok(()),
            Some(Access::All) => &[][..],
            Some(Access::Only(names)) => names,
        };
        let quoted: Vec<String> =
            names.iter().map(|name| format!("'{}'", name.replace('\'', "''"))).collect();
        let text = format!(
            "UPDATE system_auth.cidr_permissions SET cidr_groups = {{{}}} WHERE role = ?",
            quoted.join(", ")
        );
        self.own_cql.run(&text, &[role]).await.map(drop)
    }

    /// The hash that the options give, of either kind.
    async fn hash_of(
        self: &Rc<Self>,
        options: &RoleOptions,
    ) -> Result<Option<String>, ErrorResponse> {
        match (&options.hashed_password, &options.password) {
            (Some(hash), _) => Ok(Some(hash.0.clone())),
            (None, Some(password)) => Ok(Some(self.hash_password(&password.0).await?)),
            (None, None) => Ok(None),
        }
    }

    async fn create_role(self: &Rc<Self>, create: &CreateRole, performer: &Performer) -> Done {
        let (name, options) = (create.name.as_str(), &create.options);
        if options.superuser == Some(true) && !performer.is_superuser() {
            return refused("Only superusers can create a role with superuser status");
        }
        self.check_options(options)?;
        if name.is_empty() {
            return Err(invalid("Role name can't be an empty string"));
        }
        self.check_access(options).await?;
        let principal = performer.named()?;
        if self.read_role(name).await?.is_some() {
            return match create.if_not_exists {
                true => Ok(Vec::new()),
                false => Err(invalid(format!("{name} already exists"))),
            };
        }
        if !self.identities_of(name).await?.is_empty() {
            return Err(invalid(format!(
                "Cannot create a role '{name}' when identities already exists for it"
            )));
        }
        let hash = self.hash_of(options).await?;
        self.insert_role(name, options, hash.as_deref(), None).await?;
        self.write_cidr_groups(name, options.cidr_groups.as_ref()).await?;
        if self.authorizes {
            let resource = Resource::Role(name.to_owned());
            let all: Vec<_> = resource.applicable().collect();
            self.grant_permissions(&all, &resource, &principal.name).await?;
        }
        Ok(Vec::new())
    }

    async fn insert_role(
        self: &Rc<Self>,
        name: &str,
        options: &RoleOptions,
        hash: Option<&str>,
        timestamp: Option<i64>,
    ) -> Result<(), ErrorResponse> {
        let superuser = options.superuser.unwrap_or_default();
        let login = options.login.unwrap_or_default();
        let using = timestamp.map(|at| format!(" USING TIMESTAMP {at}")).unwrap_or_default();
        let (column, marker) = if hash.is_some() { (", salted_hash", ", ?") } else { ("", "") };
        let text = format!(
            "INSERT INTO system_auth.roles (role, is_superuser, can_login{column}) VALUES (?, {superuser}, {login}{marker}){using}"
        );
        let values: Vec<&str> = std::iter::once(name).chain(hash).collect();
        self.own_cql.run(&text, &values).await.map(drop)
    }

    /// Makes a superuser that can log in, if there is no role at all; whether it did. For the start
    /// of a node.
    ///
    /// # Errors
    /// If the roles can be neither read nor written.
    pub async fn make_first_superuser(
        self: &Rc<Self>,
        name: &str,
        password: &str,
    ) -> Result<bool, ErrorResponse> {
        if self.has_roles().await? {
            return Ok(false);
        }
        let hash = self.hash_password(password).await?;
        let options =
            RoleOptions { superuser: Some(true), login: Some(true), ..RoleOptions::default() };
        // older than all that anybody does to it, as the one that Cassandra makes
        self.insert_role(name, &options, Some(&hash), Some(0)).await?;
        self.sync_roles().await?;
        Ok(true)
    }

    /// Is there any role?
    ///
    /// # Errors
    /// If the roles cannot be read.
    pub async fn has_roles(self: &Rc<Self>) -> Result<bool, ErrorResponse> {
        Ok(!self.all_roles().await?.is_empty())
    }

    async fn alter_role(self: &Rc<Self>, alter: &AlterRole, performer: &Performer) -> Done {
        let (name, options) = (alter.name.as_str(), &alter.options);
        self.may_alter(name, options, performer)?;
        self.check_options(options)?;
        let has_access = options.datacenters.is_some() || options.cidr_groups.is_some();
        if set_options(options).next().is_none() && !has_access {
            return Err(invalid("ALTER [ROLE|USER] can't be empty"));
        }
        self.check_access(options).await?;
        performer.named()?;
        if self.read_role(name).await?.is_none() {
            return match alter.if_exists {
                true => Ok(Vec::new()),
                false => Err(invalid(format!("Role {name} doesn't exist"))),
            };
        }
        if options.password.is_some() {
            self.check_password_interval(name).await?;
        }
        let hash = self.hash_of(options).await?;
        let mut sets = Vec::new();
        sets.extend(options.superuser.map(|is| format!("is_superuser = {is}")));
        sets.extend(options.login.map(|may| format!("can_login = {may}")));
        sets.extend(hash.as_ref().map(|_| "salted_hash = ?".to_owned()));
        if !sets.is_empty() {
            let text = format!("UPDATE system_auth.roles SET {} WHERE role = ?", sets.join(", "));
            let values: Vec<&str> = hash.as_deref().into_iter().chain([name]).collect();
            self.own_cql.run(&text, &values).await?;
        }
        if options.datacenters.is_some() {
            return Err(invalid(
                "ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer",
            ));
        }
        self.write_cidr_groups(name, options.cidr_groups.as_ref()).await?;
        Ok(Vec::new())
    }

    fn may_alter(
        &self,
        name: &str,
        options: &RoleOptions,
        performer: &Performer,
    ) -> Result<(), ErrorResponse> {
        let is_superuser = performer.is_superuser();
        if options.superuser.is_some() && performer.has_role(name) {
            return refused(
                "You aren't allowed to alter your own superuser status or that of a role granted to you",
            );
        }
        for (is_set, text) in [
            (options.superuser.is_some(), "Only superusers are allowed to alter superuser status"),
            (
                options.datacenters.is_some(),
                "Only superusers are allowed to alter access to datacenters.",
            ),
            (
                options.cidr_groups.is_some(),
                "Only superusers are allowed to alter access from CIDR groups.",
            ),
        ] {
            if is_set && !is_superuser {
                return refused(text);
            }
        }
        if is_superuser {
            return Ok(());
        }
        if performer.name() == name {
            let may = |option: &&str| {
                self.authenticates && matches!(*option, "PASSWORD" | "HASHED_PASSWORD")
            };
            return match set_options(options).find(|option| !may(option)) {
                Some(option) => refused(format!("You aren't allowed to alter {option}")),
                None => Ok(()),
            };
        }
        self.may(performer, Permission::Alter, name)
    }

    /// A permission on a role, in whose absence not more is said.
    fn may(
        &self,
        performer: &Performer,
        permission: Permission,
        role: &str,
    ) -> Result<(), ErrorResponse> {
        let has =
            |principal: &Principal| principal.has(permission, &Resource::Role(role.to_owned()));
        match self.authorizes && !performer.0.as_ref().is_some_and(has) {
            true => refused(insufficient(performer.name())),
            false => Ok(()),
        }
    }

    async fn check_password_interval(self: &Rc<Self>, role: &str) -> Result<(), ErrorResponse> {
        let least = self.shard.config.auth.password_update_min_interval;
        let text = "SELECT writetime(salted_hash) FROM system_auth.roles WHERE role = ?";
        let rows = self.own_cql.run(text, &[role]).await?;
        let Some(changed) = rows.first().and_then(|row| row.long(0)) else { return Ok(()) };
        let since = self.shard.env.unix_micros().saturating_sub(changed);
        if least.is_zero() || Duration::from_micros(since.max(0).cast_unsigned()) > least {
            return Ok(());
        }
        let message =
            format!("Password for role {role} can only be changed every {}ms.", least.as_millis());
        Err(ErrorResponse { message, detail: ErrorDetail::Overloaded })
    }

    async fn drop_role(self: &Rc<Self>, drop: &DropRole, performer: &Performer) -> Done {
        let name = drop.name.as_str();
        let role = self.read_roles(name).await?;
        if role.is_superuser() && !performer.is_superuser() {
            return refused("Only superusers can drop a role with superuser status");
        }
        let principal = performer.named()?;
        let exists = !role.0.is_empty();
        if !exists && !drop.if_exists {
            return Err(invalid(format!("{name} doesn't exist")));
        }
        if *principal.name == *name {
            return Err(invalid("Cannot DROP primary role for current login"));
        }
        if !exists {
            return Ok(Vec::new());
        }
        // The role itself last: what is interrupted can be done again.
        let text = "SELECT member FROM system_auth.role_members WHERE role = ?";
        for row in self.own_cql.run(text, &[name]).await? {
            self.change_membership(&row.text(0).unwrap_or_default(), name, '-').await?;
        }
        self.own_cql.run("DELETE FROM system_auth.role_members WHERE role = ?", &[name]).await?;
        for of in role.0.first().map(|role| role.member_of.as_slice()).unwrap_or_default() {
            let text = "DELETE FROM system_auth.role_members WHERE role = ? AND member = ?";
            self.own_cql.run(text, &[of, name]).await?;
        }
        for identity in self.identities_of(name).await? {
            let text = "DELETE FROM system_auth.identity_to_role WHERE identity = ?";
            self.own_cql.run(text, &[&identity]).await?;
        }
        if self.authorizes {
            self.revoke_all_from(name).await?;
            self.revoke_all_on(&Resource::Role(name.to_owned())).await?;
        }
        self.own_cql
            .run("DELETE FROM system_auth.cidr_permissions WHERE role = ?", &[name])
            .await?;
        self.own_cql.run("DELETE FROM system_auth.roles WHERE role = ?", &[name]).await?;
        Ok(Vec::new())
    }

    async fn change_membership(
        self: &Rc<Self>,
        member: &str,
        role: &str,
        sign: char,
    ) -> Result<(), ErrorResponse> {
        let quoted = role.replace('\'', "''");
        let text = format!(
            "UPDATE system_auth.roles SET member_of = member_of {sign} {{'{quoted}'}} WHERE role = ?"
        );
        self.own_cql.run(&text, &[member]).await.map(drop)
    }

    /// Both roles of GRANT or REVOKE, with all that were granted to each.
    async fn both_roles(
        self: &Rc<Self>,
        statement: &GrantRole,
        performer: &Performer,
    ) -> Result<(Roles, Roles), ErrorResponse> {
        performer.named()?;
        let (role, grantee) = (&statement.role, &statement.grantee);
        let roles = (self.read_roles(role).await?, self.read_roles(grantee).await?);
        for (name, found) in [(role, &roles.0), (grantee, &roles.1)] {
            if found.0.is_empty() {
                return Err(invalid(format!("{name} doesn't exist")));
            }
        }
        Ok(roles)
    }

    async fn grant_role(self: &Rc<Self>, grant: &GrantRole, performer: &Performer) -> Done {
        let (of_role, of_grantee) = self.both_roles(grant, performer).await?;
        let (role, grantee) = (&grant.role, &grant.grantee);
        if of_grantee.contains(role) {
            return Err(invalid(format!("{grantee} is a member of {role}")));
        }
        if of_role.contains(grantee) {
            return Err(invalid(format!("{role} is a member of {grantee}")));
        }
        self.change_membership(grantee, role, '+').await?;
        let text = "INSERT INTO system_auth.role_members (role, member) VALUES (?, ?)";
        self.own_cql.run(text, &[role, grantee]).await?;
        Ok(Vec::new())
    }

    async fn revoke_role(self: &Rc<Self>, revoke: &GrantRole, performer: &Performer) -> Done {
        let (_, of_grantee) = self.both_roles(revoke, performer).await?;
        let (role, grantee) = (&revoke.role, &revoke.grantee);
        let direct = of_grantee.0.first().is_some_and(|own| own.member_of.contains(role));
        if !direct && role != grantee {
            return Err(invalid(format!("{grantee} is not a member of {role}")));
        }
        self.change_membership(grantee, role, '-').await?;
        let text = "DELETE FROM system_auth.role_members WHERE role = ? AND member = ?";
        self.own_cql.run(text, &[role, grantee]).await?;
        Ok(Vec::new())
    }

    /// Does a resource exist? Beans of Java are not served: there is none.
    pub(super) async fn resource_exists(
        self: &Rc<Self>,
        resource: &Resource,
    ) -> Result<bool, ErrorResponse> {
        let schema = self.shard.schema();
        Ok(match resource {
            Resource::AllKeyspaces
            | Resource::AllRoles
            | Resource::AllFunctions
            | Resource::AllMbeans => true,
            Resource::FunctionsIn(keyspace) if keyspace == "system" => {
                return Err(invalid("Altering permissions on builtin functions is not supported"));
            }
            Resource::Keyspace(keyspace)
            | Resource::AllTables(keyspace)
            | Resource::FunctionsIn(keyspace) => schema.keyspace(keyspace).is_some(),
            Resource::Table(name) => match &name.keyspace {
                Some(keyspace) => schema.table(keyspace, &name.name).is_some(),
                None => {
                    return Err(invalid(
                        "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
                    ));
                }
            },
            Resource::Role(role) => self.read_role(role).await?.is_some(),
            Resource::Function(..) | Resource::Mbean { .. } => false,
        })
    }

    async fn grant(
        self: &Rc<Self>,
        statement: &GrantPermissions,
        performer: &Performer,
        giving: Giving,
    ) -> Done {
        let GrantPermissions { permissions, resource, grantee } = statement;
        performer.named()?;
        self.existing(grantee, || format!("Role {grantee} doesn't exist")).await?;
        if !self.resource_exists(resource).await? {
            return Err(invalid(format!("Resource {} doesn't exist", resource.shown())));
        }
        if giving == Giving::Grant && !is_grantable(permissions, resource) {
            return refused(
                "Granting permissions on system keyspaces is strictly limited, this operation is not permitted",
            );
        }
        if !self.authorizes {
            return Err(invalid(format!(
                "{} operation is not supported by AllowAllAuthorizer",
                giving.name()
            )));
        }
        let (changed, was) = match giving {
            Giving::Grant => {
                (self.grant_permissions(permissions, resource, grantee).await?, "already granted")
            }
            Giving::Revoke => {
                (self.revoke_permissions(permissions, resource, grantee).await?, "not granted")
            }
        };
        let others: Vec<&str> =
            permissions.iter().filter(|p| !changed.contains(p)).map(|p| p.name()).collect();
        let warning = (!others.is_empty()).then(|| {
            format!("Role '{grantee}' was {was} {} on {}", others.join(", "), resource.shown())
        });
        Ok(warning.into_iter().collect())
    }

    async fn add_identity(self: &Rc<Self>, add: &AddIdentity, performer: &Performer) -> Done {
        let (identity, role) = (add.identity.as_str(), add.role.as_str());
        // other than in Cassandra, also to who is a superuser through another role
        let own = self.read_roles(role).await?;
        if own.is_superuser() && !performer.is_superuser() {
            return refused("Only superusers can bind identities to a role with superuser status");
        }
        performer.named()?;
        if own.0.is_empty() {
            return Err(invalid(format!("Can not add identity for non-existent role '{role}'")));
        }
        if self.role_of_identity(identity).await?.is_some() {
            return match add.if_not_exists {
                true => Ok(Vec::new()),
                false => Err(invalid(format!("{identity} already exists"))),
            };
        }
        let text = "INSERT INTO system_auth.identity_to_role (identity, role) VALUES (?, ?)";
        self.own_cql.run(text, &[identity, role]).await?;
        Ok(Vec::new())
    }

    async fn drop_identity(self: &Rc<Self>, drop: &DropIdentity, performer: &Performer) -> Done {
        let identity = drop.identity.as_str();
        let role = self.role_of_identity(identity).await?;
        match &role {
            Some(role) => {
                self.may(performer, Permission::Drop, role)?;
                if !performer.is_superuser() && self.read_roles(role).await?.is_superuser() {
                    return refused(
                        "Only superusers can remove identity bindings from a role with superuser status",
                    );
                }
            }
            None => {
                let has = |own: &Principal| own.has(Permission::Drop, &Resource::AllRoles);
                if self.authorizes && !performer.0.as_ref().is_some_and(has) {
                    return refused(insufficient(performer.name()));
                }
            }
        }
        performer.named()?;
        if role.is_none() && !drop.if_exists {
            return Err(invalid(format!("identity '{identity}' doesn't exist")));
        }
        let text = "DELETE FROM system_auth.identity_to_role WHERE identity = ?";
        self.own_cql.run(text, &[identity]).await?;
        Ok(Vec::new())
    }

    /// After a change of the schema: who made something may do everything with it, and what is gone
    /// is nobody's (`grantPermissionsOnResource`, `AuthSchemaChangeListener`).
    pub(crate) async fn after_schema_change(
        self: &Rc<Self>,
        change: &SchemaChange,
        user: Option<&Rc<str>>,
    ) -> Result<(), ErrorResponse> {
        if !self.authorizes {
            return Ok(());
        }
        let keyspace = change.keyspace.clone();
        let resources = match change.target {
            Target::Keyspace => {
                vec![Resource::Keyspace(keyspace.clone()), Resource::FunctionsIn(keyspace)]
            }
            Target::Table => {
                let name = change.name.clone();
                let keyspace = Some(keyspace);
                vec![Resource::Table(cql::ast::QualifiedName { keyspace, name })]
            }
            _ => return Ok(()),
        };
        match (change.change, user) {
            (Change::Created, Some(user)) => {
                for resource in &resources {
                    let all: Vec<_> = resource.applicable().collect();
                    self.grant_permissions(&all, resource, user).await?;
                }
            }
            (Change::Dropped, _) => {
                for resource in &resources {
                    self.revoke_all_on(resource).await?;
                }
            }
            _ => return Ok(()),
        }
        self.sync_roles().await?;
        self.forget_roles().await;
        Ok(())
    }
}

/// What is done with permissions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Giving {
    Grant,
    Revoke,
}

impl Giving {
    fn name(self) -> &'static str {
        match self {
            Self::Grant => "GRANT",
            Self::Revoke => "REVOKE",
        }
    }
}

/// On the system's keyspaces, other than those of virtual tables, few permissions can be granted
/// (`Permission.INVALID_FOR_SYSTEM_KEYSPACES`).
fn is_grantable(permissions: &[Permission], resource: &Resource) -> bool {
    use Permission::{Alter, Describe, Select};
    let is_virtual = |keyspace: &str| matches!(keyspace, "system_views" | "system_virtual_schema");
    let is_system = |keyspace: &str| cql::permission::is_system(keyspace) && !is_virtual(keyspace);
    !resource.data_keyspace().is_some_and(is_system)
        || permissions.iter().all(|permission| matches!(permission, Select | Describe | Alter))
}
