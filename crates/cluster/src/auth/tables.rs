//! The tables of `system_auth`, read and written by CQL that nobody has to be allowed.

use std::collections::BTreeSet;
use std::rc::Rc;

use cql::ast::{Permission, Resource};
use protocol::ErrorResponse;

use super::Auth;
use crate::answer::server_error;
use crate::auth::{Grants, Role, Roles};
use crate::internal;

impl Auth {
    /// Waits until all that any shard wrote is on disk: a right that was taken shall not come back
    /// with a power cut.
    pub(super) async fn sync_roles(&self) -> Result<(), ErrorResponse> {
        for shard in 0..self.shard.env.shards() {
            internal::sync_shard(&self.shard.engine, shard).await.map_err(server_error)?;
        }
        Ok(())
    }

    pub(super) async fn read_role(
        self: &Rc<Self>,
        name: &str,
    ) -> Result<Option<Role>, ErrorResponse> {
        let text =
            "SELECT is_superuser, can_login, member_of FROM system_auth.roles WHERE role = ?";
        let rows = self.own_cql.run(text, &[name]).await?;
        Ok(rows.first().map(|row| Role {
            name: name.to_owned(),
            is_superuser: row.bool(0),
            can_login: row.bool(1),
            member_of: row.texts(2),
        }))
    }

    /// A role and all that were granted to it, directly or not.
    pub(super) async fn read_roles(self: &Rc<Self>, name: &str) -> Result<Roles, ErrorResponse> {
        let mut roles = Vec::new();
        let mut seen = BTreeSet::from([name.to_owned()]);
        let mut next = vec![name.to_owned()];
        while let Some(name) = next.pop() {
            let Some(role) = self.read_role(&name).await? else { continue };
            let more = role.member_of.iter().filter(|of| seen.insert((*of).clone()));
            next.extend(more.cloned());
            roles.push(role);
        }
        Ok(Roles(roles))
    }

    pub(super) async fn all_roles(self: &Rc<Self>) -> Result<BTreeSet<String>, ErrorResponse> {
        let rows = self.own_cql.run("SELECT role FROM system_auth.roles", &[]).await?;
        Ok(rows.iter().filter_map(|row| row.text(0)).collect())
    }

    pub(super) async fn read_grants(
        self: &Rc<Self>,
        roles: &Roles,
    ) -> Result<Grants, ErrorResponse> {
        let mut grants = Grants::default();
        for role in roles.names() {
            let text =
                "SELECT resource, permissions FROM system_auth.role_permissions WHERE role = ?";
            for row in self.own_cql.run(text, &[role]).await? {
                let permissions = row.texts(1);
                let permissions = permissions.iter().filter_map(|name| Permission::by_name(name));
                let all = grants.0.entry(row.text(0).unwrap_or_default()).or_default();
                all.extend(permissions);
            }
        }
        Ok(grants)
    }

    /// Who has which permissions on what: of one role or of all, on one resource or on all.
    pub(super) async fn read_permissions(
        self: &Rc<Self>,
        role: Option<&str>,
        resource: Option<&str>,
    ) -> Result<Vec<(String, String, Vec<Permission>)>, ErrorResponse> {
        let text = match role {
            Some(_) => {
                "SELECT role, resource, permissions FROM system_auth.role_permissions WHERE role = ?"
            }
            None => "SELECT role, resource, permissions FROM system_auth.role_permissions",
        };
        let rows = self.own_cql.run(text, role.as_slice()).await?;
        let all = rows.iter().filter_map(|row| {
            let permissions = row.texts(2);
            let permissions = permissions.iter().filter_map(|name| Permission::by_name(name));
            Some((row.text(0)?, row.text(1)?, permissions.collect()))
        });
        Ok(all.filter(|(_, of, _)| resource.is_none_or(|resource| resource == of)).collect())
    }

    /// Grants what a role has not yet; gives what that was.
    pub(super) async fn grant_permissions(
        self: &Rc<Self>,
        permissions: &[Permission],
        resource: &Resource,
        role: &str,
    ) -> Result<Vec<Permission>, ErrorResponse> {
        let held = self.held(permissions, resource, role).await?;
        let new: Vec<_> = permissions.iter().copied().filter(|p| !held.contains(p)).collect();
        if !new.is_empty() {
            self.change_permissions(&new, '+', resource, role).await?;
            let text = "INSERT INTO system_auth.resource_role_permissons_index (resource, role) VALUES (?, ?)";
            self.own_cql.run(text, &[&resource.stored_name(), role]).await?;
        }
        Ok(new)
    }

    /// Revokes what a role has; gives what that was.
    pub(super) async fn revoke_permissions(
        self: &Rc<Self>,
        permissions: &[Permission],
        resource: &Resource,
        role: &str,
    ) -> Result<Vec<Permission>, ErrorResponse> {
        let held = self.held(permissions, resource, role).await?;
        if held.is_empty() {
            return Ok(held);
        }
        self.change_permissions(&held, '-', resource, role).await?;
        // Other than Cassandra, which forgets in the index what the role keeps: a table that is
        // dropped and made again would have old friends.
        if self.held(&Permission::ALL, resource, role).await?.is_empty() {
            let text = "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ? AND role = ?";
            self.own_cql.run(text, &[&resource.stored_name(), role]).await?;
        }
        Ok(held)
    }

    async fn held(
        self: &Rc<Self>,
        of: &[Permission],
        resource: &Resource,
        role: &str,
    ) -> Result<Vec<Permission>, ErrorResponse> {
        let text =
            "SELECT permissions FROM system_auth.role_permissions WHERE role = ? AND resource = ?";
        let rows = self.own_cql.run(text, &[role, &resource.stored_name()]).await?;
        let names = rows.first().map(|row| row.texts(0)).unwrap_or_default();
        Ok(of.iter().copied().filter(|p| names.iter().any(|name| name == p.name())).collect())
    }

    async fn change_permissions(
        self: &Rc<Self>,
        permissions: &[Permission],
        sign: char,
        resource: &Resource,
        role: &str,
    ) -> Result<(), ErrorResponse> {
        let names: Vec<String> = permissions.iter().map(|p| format!("'{}'", p.name())).collect();
        let text = format!(
            "UPDATE system_auth.role_permissions SET permissions = permissions {sign} {{{}}} WHERE role = ? AND resource = ?",
            names.join(", ")
        );
        self.own_cql.run(&text, &[role, &resource.stored_name()]).await.map(drop)
    }

    /// Takes from everybody what they were granted on a resource that is gone
    /// (`IAuthorizer.revokeAllOn`), and on what was in it.
    pub(super) async fn revoke_all_on(
        self: &Rc<Self>,
        resource: &Resource,
    ) -> Result<(), ErrorResponse> {
        let text = "SELECT resource, role FROM system_auth.resource_role_permissons_index";
        let name = resource.stored_name();
        // a role's name may hold what separates others
        let below = format!("{name}/");
        let has_parts = matches!(resource, Resource::Keyspace(_) | Resource::FunctionsIn(_));
        for row in self.own_cql.run(text, &[]).await? {
            let (Some(resource), Some(role)) = (row.text(0), row.text(1)) else { continue };
            if resource != name && !(has_parts && resource.starts_with(&below)) {
                continue;
            }
            let text = "DELETE FROM system_auth.role_permissions WHERE role = ? AND resource = ?";
            self.own_cql.run(text, &[&role, &resource]).await?;
            let text = "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ?";
            self.own_cql.run(text, &[&resource]).await?;
        }
        Ok(())
    }

    /// Takes all permissions from a role that is gone.
    pub(super) async fn revoke_all_from(self: &Rc<Self>, role: &str) -> Result<(), ErrorResponse> {
        for (_, resource, _) in self.read_permissions(Some(role), None).await? {
            let text = "DELETE FROM system_auth.resource_role_permissons_index WHERE resource = ? AND role = ?";
            self.own_cql.run(text, &[&resource, role]).await?;
        }
        let text = "DELETE FROM system_auth.role_permissions WHERE role = ?";
        self.own_cql.run(text, &[role]).await.map(drop)
    }

    pub(super) async fn role_of_identity(
        self: &Rc<Self>,
        identity: &str,
    ) -> Result<Option<String>, ErrorResponse> {
        let text = "SELECT role FROM system_auth.identity_to_role WHERE identity = ?";
        let rows = self.own_cql.run(text, &[identity]).await?;
        Ok(rows.first().and_then(|row| row.text(0)))
    }

    pub(super) async fn identities_of(
        self: &Rc<Self>,
        role: &str,
    ) -> Result<Vec<String>, ErrorResponse> {
        let text = "SELECT identity, role FROM system_auth.identity_to_role";
        let rows = self.own_cql.run(text, &[]).await?;
        let own = rows.iter().filter(|row| row.text(1).as_deref() == Some(role));
        Ok(own.filter_map(|row| row.text(0)).collect())
    }
}
