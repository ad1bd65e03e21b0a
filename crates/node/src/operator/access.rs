//! Clients of the node, and by what it lets them in.

use std::rc::Rc;
use std::time::Duration;

use admin::{
    AccessOperator, Answer, AuthCacheChange, AuthCacheSettings, ClientConnection, RecentClient,
    Refusal, RoleCache,
};
use cluster::{RolesCache, Shard};
use config::AuthCache;

use super::{Operations, failed};
use crate::all_shards::ask_all;

/// Who is nobody in particular, where nobody logs in.
const ANONYMOUS: &str = "anonymous";

fn cache_of(cache: RoleCache) -> RolesCache {
    match cache {
        RoleCache::Credentials => RolesCache::Credentials,
        RoleCache::Permissions => RolesCache::Permissions,
        RoleCache::Roles => RolesCache::Roles,
    }
}

/// Settings with a change, refused as Cassandra refuses it. An interval that was not set is as long
/// as an entry serves.
fn changed(mut of: AuthCache, change: AuthCacheChange) -> Answer<AuthCache> {
    let refused = |text: &str| Refusal::BadUse(text.to_owned());
    let millis = |millis: i32| match u64::try_from(millis) {
        Ok(millis) => Ok(Duration::from_millis(millis)),
        Err(_) => Err(refused("Invalid duration: value must be non-negative")),
    };
    if change.active_update == Some(true) {
        return Err(failed("--enable-active-update is not supported"));
    }
    let mut follows = of.update_interval == of.validity;
    if let Some(validity) = change.validity_millis {
        of.validity = millis(validity)?;
    }
    match change.update_interval_millis {
        Some(-1) => follows = true,
        Some(interval) => {
            of.update_interval = millis(interval)?;
            follows = false;
        }
        None => {}
    }
    if follows {
        of.update_interval = of.validity;
    }
    if let Some(entries) = change.max_entries {
        let Ok(entries) = usize::try_from(entries) else {
            return Err(refused("max-entries must be non-negative"));
        };
        of.max_entries = entries;
    }
    Ok(of)
}

impl AccessOperator for Operations {
    async fn client_connections(&self) -> Answer<Vec<ClientConnection>> {
        let views = self.clients.ask_all(|server| server.clients()).await.map_err(failed)?;
        let is_open = !self.config.auth.authenticates;
        let connection = |view: server::ClientView| ClientConnection {
            address: view.remote,
            tls: view.tls,
            version: view.version,
            user: view.user.or_else(|| is_open.then(|| ANONYMOUS.to_owned())),
            keyspace: view.keyspace,
            requests: view.messages,
            driver_name: view.driver_name,
            driver_version: view.driver_version,
            options: view.options.into_iter().collect(),
        };
        Ok(views.into_iter().flatten().map(connection).collect())
    }

    async fn recent_clients(&self) -> Answer<Vec<RecentClient>> {
        let seen = self.clients.ask_all(|server| server.seen()).await.map_err(failed)?;
        let recent = |seen: server::SeenClient| RecentClient {
            version: seen.version,
            address: seen.address,
            at_unix_millis: seen.at_unix_micros / 1000,
        };
        let mut all: Vec<_> = seen.into_iter().flatten().map(recent).collect();
        // of one that more than one shard has seen, the last
        all.sort_unstable_by_key(|of| (of.version, of.address, -of.at_unix_millis));
        all.dedup_by_key(|of| (of.version, of.address));
        Ok(all)
    }

    async fn forget_recent_clients(&self) -> Answer<()> {
        let forget = |server: &server::Server| server.forget_seen();
        self.clients.ask_all(forget).await.map(drop).map_err(failed)
    }

    async fn forget_roles(&self, cache: RoleCache) -> Answer<()> {
        self.shard.auth().forget(cache_of(cache)).await;
        Ok(())
    }

    async fn auth_cache(&self, cache: RoleCache) -> Answer<AuthCacheSettings> {
        let of = self.shard.auth().cache_settings(cache_of(cache));
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Ok(AuthCacheSettings {
            validity_millis: millis(of.validity),
            update_interval_millis: millis(of.update_interval),
            max_entries: of.max_entries as u64,
            active_update: false,
        })
    }

    async fn set_auth_cache(&self, cache: RoleCache, change: AuthCacheChange) -> Answer<()> {
        let cache = cache_of(cache);
        let settings = changed(self.shard.auth().cache_settings(cache), change)?;
        let set = move |there: &Rc<Shard>| there.auth().set_cache_settings(cache, settings);
        ask_all(self.shard.others(), set).await.map(drop).map_err(failed)
    }

    async fn allow_older_protocols(&self, allows: bool) -> Answer<()> {
        let set = move |server: &server::Server| server.allow_older_protocols(allows);
        self.clients.ask_all(set).await.map(drop).map_err(failed)
    }

    async fn reload_key_stores(&self) -> Answer<()> {
        self.encryption.look().await.map_err(Refusal::Failed)
    }
}
