//! Who may do what: roles and permissions as `system_auth` has them, remembered for a while by each
//! shard.
//!
//! What a statement needs is `cql::permission`'s to say; whether it is met is judged here, before
//! anything else is looked at. Passwords are `password`'s, statements about roles `statements`'s.
//!
//! A shard forgets what it remembers when a statement has changed it.

mod cache;
mod listing;
mod password;
mod statements;
mod tables;

use std::collections::BTreeMap;
use std::rc::Rc;

use config::AuthCache;
use cql::CqlError;
use cql::ast::{Permission, Resource};
use cql::permission::{Need, is_system};
use env::Class;
use env::sync::Semaphore;
use metrics::Registry;
use protocol::ErrorResponse;
use storage::shards::Remote;

use crate::answer::cql_error;
use crate::auth::cache::Cache;
use crate::auth::password::Hashing;
use crate::own_cql::OwnCql;
use crate::shard_context::ShardContext;

/// Tells who may do what.
pub struct Auth {
    shard: Rc<ShardContext>,
    others: Remote<Auth>,
    own_cql: Rc<OwnCql>,
    /// Must clients log in?
    authenticates: bool,
    /// Do permissions count?
    authorizes: bool,
    credentials: Cache<Rc<str>>,
    roles: Cache<Rc<Roles>>,
    permissions: Cache<Rc<Grants>>,
    /// Who reads what is missing: those who come meanwhile find it there.
    reading: Semaphore,
    /// The node's, on the first shard.
    hashing: Hashing,
}

/// A role as its row has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Role {
    name: String,
    is_superuser: bool,
    can_login: bool,
    member_of: Vec<String>,
}

/// A role, first, and all that were granted to it, directly or not. None: there is no such role.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roles(Vec<Role>);

impl Roles {
    fn is_superuser(&self) -> bool {
        self.0.iter().any(|role| role.is_superuser)
    }

    fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|role| role.name == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|role| role.name.as_str())
    }
}

/// Permissions by the stored names of resources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grants(BTreeMap<String, Vec<Permission>>);

impl Grants {
    /// Is the permission granted on the resource itself?
    fn has(&self, permission: Permission, resource: &Resource) -> bool {
        let of = self.0.get(&resource.stored_name());
        of.is_some_and(|permissions| permissions.contains(&permission))
    }
}

/// Who asks, logged in.
#[derive(Clone)]
pub(crate) struct Principal {
    name: Rc<str>,
    roles: Rc<Roles>,
    grants: Rc<Grants>,
}

fn unauthorized(text: impl Into<String>) -> CqlError {
    CqlError::Unauthorized(text.into())
}

impl Principal {
    /// Is the permission there, on the resource or on what contains it? What is granted on all
    /// keyspaces is not granted on the system's.
    fn has(&self, permission: Permission, resource: &Resource) -> bool {
        if self.roles.is_superuser() {
            return true;
        }
        let is_of_system = resource.data_keyspace().is_some_and(is_system);
        let mut next = Some(resource.clone());
        while let Some(resource) = next {
            if !(is_of_system && resource == Resource::AllKeyspaces)
                && self.grants.has(permission, &resource)
            {
                return true;
            }
            next = resource.parent();
        }
        false
    }
}

impl Auth {
    pub(crate) fn new(
        shard: &Rc<ShardContext>,
        others: Remote<Self>,
        own_cql: &Rc<OwnCql>,
        registry: &Registry,
    ) -> Rc<Self> {
        let auth = &shard.config.auth;
        Rc::new(Self {
            shard: Rc::clone(shard),
            others,
            own_cql: Rc::clone(own_cql),
            authenticates: auth.authenticates,
            authorizes: auth.authorizes,
            credentials: Cache::new(auth.credentials),
            roles: Cache::new(auth.roles),
            permissions: Cache::new(auth.permissions),
            reading: Semaphore::new(1),
            hashing: Hashing::new(auth.bcrypt_rounds, registry),
        })
    }

    /// Whether a need is met; without a principal, nobody has to say who they are.
    fn judge(&self, need: &Need, principal: Option<&Principal>) -> Result<(), CqlError> {
        need.refused_to_all()?;
        let Some(principal) = principal else { return Ok(()) };
        let has = |permission: Permission, resource: &Resource| {
            !self.authorizes || principal.has(permission, resource)
        };
        let name = &principal.name;
        match need {
            Need::Login | Need::AsRolesStand => Ok(()),
            Need::Superuser(text) if !principal.roles.is_superuser() => Err(unauthorized(*text)),
            Need::Superuser(_) => Ok(()),
            Need::Permission(..) if need.granted_to_all() => Ok(()),
            Need::OnRole(permission, resource) if !has(*permission, resource) => {
                Err(unauthorized(insufficient(name)))
            }
            Need::Permission(permission, resource) | Need::Held(permission, resource)
                if !has(*permission, resource) =>
            {
                Err(unauthorized(format!(
                    "User {name} has no {} permission on {} or any of its parents",
                    permission.name(),
                    resource.shown()
                )))
            }
            Need::Permission(..) | Need::Held(..) | Need::OnRole(..) => Ok(()),
        }
    }

    fn judge_all(
        &self,
        needs: &[Need],
        principal: Option<&Principal>,
    ) -> Result<(), ErrorResponse> {
        let mut needs = needs.iter();
        needs.try_for_each(|need| self.judge(need, principal)).map_err(cql_error)
    }
}

/// What a shard remembers of `system_auth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolesCache {
    /// Hashes of passwords.
    Credentials,
    /// Roles, with those granted to them.
    Roles,
    /// What roles may do.
    Permissions,
}

/// What who may not do something with roles is told.
fn insufficient(name: &str) -> String {
    format!("User {name} does not have sufficient privileges to perform the requested operation")
}

impl Auth {
    /// Must clients log in?
    pub fn authenticates(&self) -> bool {
        self.authenticates
    }

    /// Forgets, on every shard, what `system_auth` said.
    pub async fn forget_roles(&self) {
        for cache in [RolesCache::Credentials, RolesCache::Roles, RolesCache::Permissions] {
            self.forget(cache).await;
        }
    }

    /// Forgets, on every shard, a part of what `system_auth` said.
    pub async fn forget(&self, cache: RolesCache) {
        for shard in 0..self.shard.env.shards() {
            // a shard that has ended remembers nothing
            let _ = self.others.call(shard, move |other| other.forget_here(cache)).await;
        }
    }

    /// By what a part of what `system_auth` said is kept.
    pub fn cache_settings(&self, cache: RolesCache) -> AuthCache {
        match cache {
            RolesCache::Credentials => self.credentials.settings(),
            RolesCache::Roles => self.roles.settings(),
            RolesCache::Permissions => self.permissions.settings(),
        }
    }

    /// Keeps it by these settings from now on, on this shard.
    pub fn set_cache_settings(&self, cache: RolesCache, settings: AuthCache) {
        match cache {
            RolesCache::Credentials => self.credentials.set(settings),
            RolesCache::Roles => self.roles.set(settings),
            RolesCache::Permissions => self.permissions.set(settings),
        }
    }

    fn forget_here(&self, cache: RolesCache) {
        match cache {
            RolesCache::Credentials => self.credentials.forget(),
            RolesCache::Roles => self.roles.forget(),
            RolesCache::Permissions => self.permissions.forget(),
        }
    }

    /// Whether a user may do what a statement needs; none: to be asked of [`Self::authorize`].
    pub(crate) fn authorize_now(
        self: &Rc<Self>,
        needs: &[Need],
        user: Option<&Rc<str>>,
    ) -> Option<Result<(), ErrorResponse>> {
        if !self.authenticates {
            return Some(self.judge_all(needs, None));
        }
        let principal = self.known_principal(user?)?;
        Some(self.judge_all(needs, Some(&principal)))
    }

    /// Whether a user may do what a statement needs.
    pub(crate) async fn authorize(
        self: &Rc<Self>,
        needs: &[Need],
        user: Option<&Rc<str>>,
    ) -> Result<(), ErrorResponse> {
        let Some(user) = user else {
            return Err(cql_error(unauthorized("You have not logged in")));
        };
        let principal = self.principal(user).await?;
        self.judge_all(needs, Some(&principal))
    }

    /// Is a user a superuser, as remembered or read?
    ///
    /// # Errors
    /// If its roles cannot be read.
    pub async fn is_superuser(self: &Rc<Self>, user: &Rc<str>) -> Result<bool, ErrorResponse> {
        Ok(self.principal(user).await?.roles.is_superuser())
    }

    fn known_principal(self: &Rc<Self>, user: &Rc<str>) -> Option<Principal> {
        let now = self.shard.env.turn_now();
        let (roles, old_roles) = self.roles.get(user, now).served()?;
        let (grants, old_grants) = self.permissions.get(user, now).served()?;
        if old_roles || old_grants {
            let (reader, user) = (Rc::clone(self), Rc::clone(user));
            self.shard.env.spawn(Class::Background, async move {
                // what cannot be read now is read when it is no longer valid
                let _ = reader.read_principal(&user).await;
            });
        }
        Some(Principal { name: Rc::clone(user), roles, grants })
    }

    /// A user with roles and permissions, as remembered or read.
    async fn principal(self: &Rc<Self>, user: &Rc<str>) -> Result<Principal, ErrorResponse> {
        if let Some(known) = self.known_principal(user) {
            return Ok(known);
        }
        if !self.roles.is_on() || !self.permissions.is_on() {
            return self.read_principal(user).await;
        }
        let _turn = self.reading.acquire(1).await;
        match self.known_principal(user) {
            Some(known) => Ok(known),
            None => self.read_principal(user).await,
        }
    }

    /// A user with roles and permissions, as they stand.
    async fn read_principal(self: &Rc<Self>, user: &Rc<str>) -> Result<Principal, ErrorResponse> {
        let generations = (self.roles.generation(), self.permissions.generation());
        let roles = Rc::new(self.read_roles(user).await?);
        let grants = match self.authorizes && !roles.is_superuser() {
            true => self.read_grants(&roles).await?,
            false => Grants::default(),
        };
        let grants = Rc::new(grants);
        let now = self.shard.env.turn_now();
        self.roles.put(user, Rc::clone(&roles), generations.0, now);
        self.permissions.put(user, Rc::clone(&grants), generations.1, now);
        Ok(Principal { name: Rc::clone(user), roles, grants })
    }
}
