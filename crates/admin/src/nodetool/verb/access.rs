//! Verbs of clients, roles and certificates: `tools.nodetool.ClientStats`,
//! `InvalidateCredentialsCache` and its kin, `tools.ReloadSslCertificates`.

use super::VerbError;
use super::args::Args;
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
