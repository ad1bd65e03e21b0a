//! Verbs of clients, roles and certificates.

use crate::model::Shown;
use crate::nodetool::AccessVerb;
use crate::operator::{AccessOperator, Answer};

pub(super) async fn ask(operator: &impl AccessOperator, verb: AccessVerb) -> Answer<Option<Shown>> {
    match verb {
        AccessVerb::Clients { .. } => {
            return Ok(Some(Shown::Clients(operator.client_connections().await?)));
        }
        AccessVerb::RecentClients => {
            return Ok(Some(Shown::RecentClients(operator.recent_clients().await?)));
        }
        AccessVerb::ForgetRecentClients => operator.forget_recent_clients().await?,
        AccessVerb::ForgetRoles(cache) => operator.forget_roles(cache).await?,
        AccessVerb::GetAuthCache(cache) => {
            return Ok(Some(Shown::AuthCache(operator.auth_cache(cache).await?)));
        }
        AccessVerb::SetAuthCache(cache, change) => operator.set_auth_cache(cache, change).await?,
        AccessVerb::OldProtocols { allows } => operator.allow_older_protocols(allows).await?,
        AccessVerb::ReloadKeyStores => operator.reload_key_stores().await?,
    }
    Ok(None)
}
