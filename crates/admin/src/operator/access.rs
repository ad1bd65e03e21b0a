//! Clients of the node, and by what it lets them in.

use super::Answer;
use crate::model::{AuthCacheChange, AuthCacheSettings, ClientConnection, RecentClient};

/// Clients of the node, and by what it lets them in.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait AccessOperator {
    /// The connections of clients.
    async fn client_connections(&self) -> Answer<Vec<ClientConnection>>;
    /// Clients that came of late, by version and address.
    async fn recent_clients(&self) -> Answer<Vec<RecentClient>>;
    /// Forgets them.
    async fn forget_recent_clients(&self) -> Answer<()>;
    /// Forgets what `system_auth` said.
    async fn forget_roles(&self, cache: RoleCache) -> Answer<()>;
    /// By what that is kept.
    async fn auth_cache(&self, cache: RoleCache) -> Answer<AuthCacheSettings>;
    /// Keeps it by other settings until the next start.
    async fn set_auth_cache(&self, cache: RoleCache, change: AuthCacheChange) -> Answer<()>;
    /// Serves versions of the protocol before 5, or does not, until the next start.
    async fn allow_older_protocols(&self, allows: bool) -> Answer<()>;
    /// Reads the key stores now, where they have changed.
    async fn reload_key_stores(&self) -> Answer<()>;
}

/// What is remembered of roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleCache {
    /// Hashes of passwords.
    Credentials,
    /// What roles may do.
    Permissions,
    /// Roles, with those granted to them.
    Roles,
}
