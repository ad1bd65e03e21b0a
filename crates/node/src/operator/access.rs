//! Clients of the node, and by what it lets them in.

use admin::{AccessOperator, Answer, ClientConnection, RecentClient, Refusal, RoleCache};
use cluster::RolesCache;

use super::{Operations, failed};

/// Who is nobody in particular, where nobody logs in.
const ANONYMOUS: &str = "anonymous";

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
        self.shard
            .auth()
            .forget(match cache {
                RoleCache::Credentials => RolesCache::Credentials,
                RoleCache::Permissions => RolesCache::Permissions,
                RoleCache::Roles => RolesCache::Roles,
            })
            .await;
        Ok(())
    }

    async fn reload_key_stores(&self) -> Answer<()> {
        self.encryption.look().await.map_err(Refusal::Failed)
    }
}
