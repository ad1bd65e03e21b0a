//! Whether a value of a key that we do not serve may pass: the default may, and so may any
//! value while the switch that gives it a meaning is off.

use crate::error::Error;
use crate::key::{Key, Standing, Value};
use crate::table::Index;
use crate::values::Values;

/// Values besides the default that ask for nothing either: the names of the classes that
/// stand behind an unset key, and switches that repeat what is so anyway.
const SAME_AS_DEFAULT: &[(&str, &[&str])] = &[
    ("cidr_authorizer.class_name", &["AllowAllCIDRAuthorizer"]),
    ("internode_authenticator.class_name", &["AllowAllInternodeAuthenticator"]),
    ("network_authorizer.class_name", &["AllowAllNetworkAuthorizer"]),
    ("paxos_state_purging", &["legacy"]),
    ("role_manager.class_name", &["CassandraRoleManager"]),
];

/// A switch: while `key` has `off`, keys that start with one of `prefixes` mean nothing.
struct Switch {
    key: &'static str,
    off: &'static str,
    prefixes: &'static [&'static str],
}

const SWITCHES: &[Switch] = &[
    Switch {
        key: "audit_logging_options.enabled",
        off: "false",
        prefixes: &["audit_logging_options."],
    },
    Switch {
        key: "authenticator.class_name",
        off: "AllowAllAuthenticator",
        prefixes: &["credentials_", "roles_", "auth_cache_warming_enabled"],
    },
    Switch {
        key: "authorizer.class_name",
        off: "AllowAllAuthorizer",
        prefixes: &["permissions_", "traverse_auth_from_root"],
    },
    Switch { key: "auto_repair.enabled", off: "false", prefixes: &["auto_repair."] },
    Switch { key: "cdc_enabled", off: "false", prefixes: &["cdc_"] },
    Switch {
        key: "client_encryption_options.enabled",
        off: "false",
        prefixes: &["client_encryption_options."],
    },
    Switch { key: "partition_denylist_enabled", off: "false", prefixes: &["denylist_"] },
    Switch {
        key: "transparent_data_encryption_options.enabled",
        off: "false",
        prefixes: &["transparent_data_encryption_options."],
    },
];

/// Whether the node may start with `value` for `key`.
fn serves(index: &Index, values: &Values, key: &Key, value: &Value) -> bool {
    key.standing != Standing::NotYet
        || *value == key.default_value()
        || (key.default == "null" && is_empty(value))
        || is_same(key, value)
        || SWITCHES.iter().any(|s| s.covers(key) && s.is_off(index, values))
}

/// Every value that is known and not served, by name.
pub(crate) fn check_standing(index: &Index, values: &Values) -> Vec<Error> {
    let keys = values.iter().filter_map(|(name, value)| Some((index.get(name)?, value)));
    let refused = keys.filter(|(key, value)| !serves(index, values, key, value));
    let error = |(key, value): (&Key, &Value)| Error::NotServed {
        key: key.name.to_string(),
        value: value.or_null(),
        default: key.default.to_string(),
    };
    refused.map(error).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Map(entries) => entries.is_empty(),
        Value::List(items) => items.is_empty(),
        _ => false,
    }
}

fn is_same(key: &Key, value: &Value) -> bool {
    let shown = value.or_null();
    let name = shown.strip_prefix("org.apache.cassandra.auth.").unwrap_or(&shown);
    SAME_AS_DEFAULT.iter().any(|(k, words)| *k == key.name && words.contains(&name))
}

impl Switch {
    fn covers(&self, key: &Key) -> bool {
        key.name != self.key && self.prefixes.iter().any(|p| key.name.starts_with(p))
    }

    /// Off as set, or by default; a class may stand with its package.
    fn is_off(&self, index: &Index, values: &Values) -> bool {
        let set = values.get(self.key).cloned();
        let value = set.or_else(|| index.get(self.key).map(Key::default_value));
        match value {
            None | Some(Value::Null) => true,
            Some(v) => {
                let shown = v.or_null();
                shown == self.off || shown.rsplit('.').next() == Some(self.off)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_only_known_keys() {
        let index = Index::new();
        for (key, _) in SAME_AS_DEFAULT {
            assert!(index.get(key).is_some(), "{key}");
        }
        for switch in SWITCHES {
            assert!(index.get(switch.key).is_some(), "{}", switch.key);
            for prefix in switch.prefixes {
                assert!(index.iter().any(|k| k.name.starts_with(prefix)), "{prefix}");
            }
        }
    }
}
