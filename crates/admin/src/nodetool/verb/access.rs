//! Verbs of clients, roles and certificates: `tools.nodetool.ClientStats`,
//! `InvalidateCredentialsCache` and its kin, `tools.ReloadSslCertificates`.

use super::args::Args;
use super::{VerbError, refused};
use crate::model::AuthCacheChange;
use crate::operator::RoleCache;

/// A verb of clients, roles and certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessVerb {
    /// `clientstats`: how many clients there are, and which.
    Clients {
        /// Each connection.
        all: bool,
        /// Each connection with its options.
        options: bool,
    },
    /// `clientstats --by-protocol`: which clients came of late.
    RecentClients,
    /// `clientstats --clear-history`: forgets them.
    ForgetRecentClients,
    /// `invalidatecredentialscache`, `invalidatepermissionscache`, `invalidaterolescache`.
    ForgetRoles(RoleCache),
    /// `reloadssl`: reads key stores that have changed.
    ReloadKeyStores,
    /// `getauthcacheconfig`: by what a cache of roles keeps.
    GetAuthCache(RoleCache),
    /// `setauthcacheconfig`: sets that until the next start.
    SetAuthCache(RoleCache, AuthCacheChange),
    /// `enableoldprotocolversions`, `disableoldprotocolversions`: serves versions before 5, or not.
    OldProtocols {
        /// Does it serve them?
        allows: bool,
    },
}

/// Options that name permissions of some resources.
const RESOURCES: &[&str] = &[
    "--all-keyspaces",
    "--keyspace",
    "--all-tables",
    "--table",
    "--all-roles",
    "--role",
    "--all-functions",
    "--functions-in-keyspace",
    "--function",
    "--all-mbeans",
    "--mbean",
];

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<AccessVerb>, VerbError> {
    Ok(Some(match name {
        "clientstats" => clients(args),
        "disableoldprotocolversions" => AccessVerb::OldProtocols { allows: false },
        "enableoldprotocolversions" => AccessVerb::OldProtocols { allows: true },
        "getauthcacheconfig" => {
            let name = args.titled(&["--cache-name"], "cache-name")?;
            AccessVerb::GetAuthCache(auth_cache("getauthcacheconfig", name)?)
        }
        "setauthcacheconfig" => set_auth_cache(args)?,
        "invalidatecredentialscache" => forget(RoleCache::Credentials, args),
        "invalidatepermissionscache" => {
            args.not_served(RESOURCES)?;
            forget(RoleCache::Permissions, args)
        }
        "invalidaterolescache" => forget(RoleCache::Roles, args),
        "reloadssl" => AccessVerb::ReloadKeyStores,
        _ => return Ok(None),
    }))
}

/// The cache of that name. Cassandra has two more.
fn auth_cache(verb: &str, name: Option<String>) -> Result<RoleCache, VerbError> {
    let Some(name) = name else { return refused("Required option '--cache-name' is missing") };
    match name.as_str() {
        "CredentialsCache" => Ok(RoleCache::Credentials),
        "PermissionsCache" => Ok(RoleCache::Permissions),
        "RolesCache" => Ok(RoleCache::Roles),
        "JmxPermissionsCache" | "NetworkPermissionsCache" => {
            Err(VerbError::NotServed(format!("{verb} --cache-name {name}")))
        }
        _ => refused(format!("Unknown cache name: {name}")),
    }
}

fn set_auth_cache(args: &mut Args) -> Result<AccessVerb, VerbError> {
    let name = args.titled(&["--cache-name"], "cache-name")?;
    let mut number = |option: &'static str| {
        let title = option.trim_start_matches('-');
        match args.titled(&[option], title)? {
            None => Ok(None),
            Some(text) => match text.parse::<i32>() {
                Ok(number) => Ok(Some(number)),
                Err(_) => refused(format!("{title}: can not convert \"{text}\" to a Integer")),
            },
        }
    };
    let validity_millis = number("--validity-period")?;
    let update_interval_millis = number("--update-interval")?;
    let max_entries = number("--max-entries")?;
    let enables = args.flag(&["--enable-active-update"]);
    let disables = args.flag(&["--disable-active-update"]);
    if name.is_none() {
        auth_cache("setauthcacheconfig", None)?;
    }
    if enables && disables {
        return refused("enable-active-update and disable-active-update cannot be used together");
    }
    let active_update = (enables || disables).then_some(enables);
    let change =
        AuthCacheChange { validity_millis, update_interval_millis, max_entries, active_update };
    if change == AuthCacheChange::default() {
        return refused("At least one optional parameter need to be passed");
    }
    Ok(AccessVerb::SetAuthCache(auth_cache("setauthcacheconfig", name)?, change))
}

fn clients(args: &mut Args) -> AccessVerb {
    let all = args.flag(&["--all"]);
    let by_protocol = args.flag(&["--by-protocol"]);
    let clear = args.flag(&["--clear-history"]);
    let options = args.flag(&["--client-options"]);
    match (clear, by_protocol) {
        (true, _) => AccessVerb::ForgetRecentClients,
        (false, true) => AccessVerb::RecentClients,
        (false, false) => AccessVerb::Clients { all, options },
    }
}

/// What is remembered of one role goes with that of all.
fn forget(cache: RoleCache, args: &mut Args) -> AccessVerb {
    let _ = args.rest();
    AccessVerb::ForgetRoles(cache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb;

    #[test]
    fn what_is_cleared_is_not_listed() {
        let parse = |line: &str| verb::parse(line).unwrap();
        let all = AccessVerb::Clients { all: true, options: false };
        assert_eq!(parse("clientstats --all"), all.into());
        assert_eq!(parse("clientstats --all --by-protocol"), AccessVerb::RecentClients.into());
        let cleared = parse("clientstats --by-protocol --clear-history");
        assert_eq!(cleared, AccessVerb::ForgetRecentClients.into());
        let forget = AccessVerb::ForgetRoles(RoleCache::Roles);
        assert_eq!(parse("invalidaterolescache a b"), forget.into());
        let refused = verb::parse("invalidatepermissionscache a --table t").unwrap_err();
        assert_eq!(refused.to_string(), "invalidatepermissionscache --table is not supported");
    }
}
