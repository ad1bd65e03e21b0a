//! LIST ROLES, LIST USERS, LIST PERMISSIONS.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use cql::ResultColumn;
use cql::ast::{ListPermissions, ListRoles, Permission, Resource};
use protocol::{ErrorResponse, ResultMetadata};
use types::{CqlType, java_order};

use super::Auth;
use crate::answer::{Answer, Page, cql_error, invalid};
use crate::auth::statements::Performer;
use crate::auth::unauthorized;
use crate::prepared::{class_name, columns};

/// Rows of a table that does not exist: the keyspace is `system_auth`.
struct Listed {
    columns: Vec<ResultColumn>,
    rows: u32,
    cells: Vec<u8>,
}

impl Listed {
    fn new(table: &str, columns: &[(&str, CqlType)]) -> Self {
        let column = |(name, ty): &(&str, CqlType)| ResultColumn {
            keyspace: Arc::from("system_auth"),
            table: Arc::from(table),
            name: Arc::from(*name),
            ty: ty.clone(),
            reversed: false,
        };
        Self { columns: columns.iter().map(column).collect(), rows: 0, cells: Vec::new() }
    }

    fn row(&mut self, values: &[&[u8]]) {
        self.rows += 1;
        for value in values {
            self.cells.extend((value.len() as i32).to_be_bytes());
            self.cells.extend_from_slice(value);
        }
    }

    fn answer(self) -> Answer {
        let metadata = Arc::new(ResultMetadata::new(&columns(&self.columns), class_name));
        Answer::Rows(Page { metadata, rows: self.rows, cells: self.cells, paging_state: None })
    }
}

/// Every role may connect to every datacenter (`AllowAllNetworkAuthorizer`).
const DATACENTERS: &[u8] = b"ALL";
/// A map without entries.
const NO_OPTIONS: &[u8] = &[0; 4];

impl Auth {
    /// The names that LIST ROLES or LIST USERS shows to who asks, in Java's order.
    async fn listed_roles(
        self: &Rc<Self>,
        of: Option<&str>,
        is_recursive: bool,
        performer: &Performer,
    ) -> Result<Vec<String>, ErrorResponse> {
        let names = self.shown_roles(of, is_recursive, performer).await?;
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_by(|a, b| java_order::strings(a, b));
        Ok(names)
    }

    async fn shown_roles(
        self: &Rc<Self>,
        of: Option<&str>,
        is_recursive: bool,
        performer: &Performer,
    ) -> Result<BTreeSet<String>, ErrorResponse> {
        let principal = performer.named()?;
        if let Some(of) = of {
            self.existing(of, || format!("<role {of}> doesn't exist")).await?;
        }
        let may_see_all = !self.authorizes
            || principal.roles.is_superuser()
            || principal.grants.has(Permission::Describe, &Resource::AllRoles);
        let of = match of {
            None if may_see_all => return self.all_roles().await,
            None => &principal.name,
            Some(of) if may_see_all || principal.roles.contains(of) => of,
            Some(of) => {
                let text = format!("You are not authorized to view roles granted to {of} ");
                return Err(cql_error(unauthorized(text)));
            }
        };
        let roles = self.read_roles(of).await?;
        let direct = roles.0.first().map(|own| own.member_of.clone()).unwrap_or_default();
        let is_listed =
            |name: &&str| is_recursive || *name == of || direct.iter().any(|d| d == name);
        Ok(roles.names().filter(is_listed).map(str::to_owned).collect())
    }

    pub(super) async fn list_roles(
        self: &Rc<Self>,
        list: &ListRoles,
        performer: &Performer,
    ) -> Result<Answer, ErrorResponse> {
        let names = self.listed_roles(list.of.as_deref(), list.recursive, performer).await?;
        let options = CqlType::Map {
            key: Arc::new(CqlType::Text),
            value: Arc::new(CqlType::Text),
            frozen: false,
        };
        let mut listed = Listed::new(
            "roles",
            &[
                ("role", CqlType::Text),
                ("super", CqlType::Boolean),
                ("login", CqlType::Boolean),
                ("options", options),
                ("datacenters", CqlType::Text),
            ],
        );
        for name in &names {
            let role = self.read_role(name).await?.unwrap_or_default();
            let [superuser, login] = [role.is_superuser, role.can_login].map(|is| [u8::from(is)]);
            listed.row(&[name.as_bytes(), &superuser, &login, NO_OPTIONS, DATACENTERS]);
        }
        Ok(if names.is_empty() { Answer::Void } else { listed.answer() })
    }

    pub(super) async fn list_users(
        self: &Rc<Self>,
        performer: &Performer,
    ) -> Result<Answer, ErrorResponse> {
        let names = self.listed_roles(None, false, performer).await?;
        let mut listed = Listed::new(
            "users",
            &[("name", CqlType::Text), ("super", CqlType::Boolean), ("datacenters", CqlType::Text)],
        );
        for name in &names {
            let roles = self.read_roles(name).await?;
            if roles.0.first().is_some_and(|role| role.can_login) {
                let superuser = [u8::from(roles.is_superuser())];
                listed.row(&[name.as_bytes(), &superuser, DATACENTERS]);
            }
        }
        Ok(if names.is_empty() { Answer::Void } else { listed.answer() })
    }

    pub(super) async fn list_permissions(
        self: &Rc<Self>,
        list: &ListPermissions,
        performer: &Performer,
    ) -> Result<Answer, ErrorResponse> {
        let principal = performer.named()?;
        if let Some(resource) = &list.resource
            && !self.resource_exists(resource).await?
        {
            return Err(invalid(format!("{} doesn't exist", resource.shown())));
        }
        if let Some(of) = &list.of {
            self.existing(of, || format!("<role {of}> doesn't exist")).await?;
        }
        if !self.authorizes {
            return Err(invalid(
                "LIST PERMISSIONS operation is not supported by AllowAllAuthorizer",
            ));
        }
        let describes = |resource| principal.grants.has(Permission::Describe, &resource);
        let may_see = principal.roles.is_superuser()
            || describes(Resource::AllRoles)
            || list.of.as_ref().is_some_and(|of| {
                principal.roles.contains(of) || describes(Resource::Role(of.clone()))
            });
        if !may_see {
            let whose = list.of.as_deref().unwrap_or("everyone");
            let text = format!("You are not authorized to view {whose}'s permissions");
            return Err(cql_error(unauthorized(text)));
        }
        let mut roles = vec![None];
        if let Some(of) = &list.of {
            let of = self.read_roles(of).await?;
            roles = of.names().map(|name| Some(name.to_owned())).collect();
        }
        let mut found = BTreeSet::new();
        for role in &roles {
            for (role, resource, permissions) in
                self.read_permissions(role.as_deref(), None).await?
            {
                let listed = permissions.into_iter().filter(|p| list.permissions.contains(p));
                found.extend(listed.map(|p| (role.clone(), resource.clone(), p)));
            }
        }
        if let Some(resource) = &list.resource {
            let chain = chain(resource, list.recursive);
            found.retain(|(_, of, _)| chain.contains(of));
        }
        let mut listed = Listed::new(
            "permissions",
            &["role", "username", "resource", "permission"].map(|name| (name, CqlType::Text)),
        );
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_by(compare_listed);
        for (role, resource, permission) in &found {
            let shown = match Resource::from_stored_name(resource) {
                Some(resource) => resource.shown().to_string(),
                None => resource.clone(),
            };
            let role = role.as_bytes();
            listed.row(&[role, role, shown.as_bytes(), permission.name().as_bytes()]);
        }
        Ok(if found.is_empty() { Answer::Void } else { listed.answer() })
    }
}

/// The order of LIST PERMISSIONS (`PermissionDetails.compareTo`): names as Java compares them.
fn compare_listed(
    (a_role, a_resource, a): &(String, String, Permission),
    (b_role, b_resource, b): &(String, String, Permission),
) -> Ordering {
    java_order::strings(a_role, b_role)
        .then_with(|| java_order::strings(a_resource, b_resource))
        .then_with(|| a.cmp(b))
}

/// The stored names of a resource and of what contains it.
fn chain(resource: &Resource, is_recursive: bool) -> BTreeSet<String> {
    let mut chain = BTreeSet::new();
    let mut next = Some(resource.clone());
    while let Some(resource) = next {
        chain.insert(resource.stored_name());
        next = resource.parent().filter(|_| is_recursive);
    }
    chain
}
