//! Resources by the names that `system_auth` stores.

use crate::ast::{Permission, QualifiedName, Resource};
use crate::permission::{Shown, permission_name};

impl Resource {
    /// Its name in `system_auth` (`IResource.getName`).
    pub fn stored_name(&self) -> String {
        let full = |name: &QualifiedName| match &name.keyspace {
            Some(keyspace) => format!("{keyspace}/{}", name.name),
            None => name.name.clone(),
        };
        match self {
            Self::AllKeyspaces => "data".to_owned(),
            Self::Keyspace(keyspace) => format!("data/{keyspace}"),
            Self::AllTables(keyspace) => format!("data/{keyspace}/*"),
            Self::Table(name) => format!("data/{}", full(name)),
            Self::AllRoles => "roles".to_owned(),
            Self::Role(role) => format!("roles/{role}"),
            Self::AllFunctions => "functions".to_owned(),
            Self::FunctionsIn(keyspace) => format!("functions/{keyspace}"),
            Self::Function(name, types) => {
                let keyspace = name.keyspace.as_deref().unwrap_or_default();
                let types: Vec<String> =
                    types.iter().map(|ty| crate::ddl::shown_type(ty, keyspace)).collect();
                format!("functions/{}[{}]", full(name), types.join("^"))
            }
            Self::AllMbeans => "mbean".to_owned(),
            Self::Mbean { name, .. } => format!("mbean/{name}"),
        }
    }

    /// The resource of a stored name, other than a function's.
    pub fn from_stored_name(name: &str) -> Option<Self> {
        let (root, rest) = match name.split_once('/') {
            Some((root, rest)) => (root, Some(rest)),
            None => (name, None),
        };
        Some(match (root, rest) {
            ("data", None) => Self::AllKeyspaces,
            ("data", Some(rest)) => match rest.split_once('/') {
                None => Self::Keyspace(rest.to_owned()),
                Some((keyspace, "*")) => Self::AllTables(keyspace.to_owned()),
                Some((keyspace, table)) => Self::Table(QualifiedName {
                    keyspace: Some(keyspace.to_owned()),
                    name: table.to_owned(),
                }),
            },
            ("roles", None) => Self::AllRoles,
            ("roles", Some(role)) => Self::Role(role.to_owned()),
            ("functions", None) => Self::AllFunctions,
            ("functions", Some(rest)) if !rest.contains('/') => Self::FunctionsIn(rest.to_owned()),
            ("mbean", None) => Self::AllMbeans,
            ("mbean", Some(rest)) => Self::Mbean { name: rest.to_owned(), pattern: false },
            _ => return None,
        })
    }

    /// What contains it.
    pub fn parent(&self) -> Option<Self> {
        Some(match self {
            Self::AllKeyspaces | Self::AllRoles | Self::AllFunctions | Self::AllMbeans => {
                return None;
            }
            Self::Keyspace(_) => Self::AllKeyspaces,
            Self::AllTables(keyspace) => Self::Keyspace(keyspace.clone()),
            Self::Table(name) => Self::AllTables(name.keyspace.clone().unwrap_or_default()),
            Self::Role(_) => Self::AllRoles,
            Self::FunctionsIn(_) => Self::AllFunctions,
            Self::Function(name, _) => Self::FunctionsIn(name.keyspace.clone().unwrap_or_default()),
            Self::Mbean { .. } => Self::AllMbeans,
        })
    }

    /// The keyspace whose data it is.
    pub fn data_keyspace(&self) -> Option<&str> {
        match self {
            Self::Keyspace(keyspace) | Self::AllTables(keyspace) => Some(keyspace),
            Self::Table(name) => name.keyspace.as_deref(),
            _ => None,
        }
    }

    /// All permissions that make sense on it.
    pub fn applicable(&self) -> impl Iterator<Item = Permission> + '_ {
        Permission::ALL.into_iter().filter(|permission| self.applies(*permission))
    }

    /// As messages show it.
    pub fn shown(&self) -> Shown<'_> {
        Shown(self)
    }
}

impl Permission {
    /// As messages and `system_auth` name it.
    pub fn name(self) -> &'static str {
        permission_name(self)
    }

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_lead_back() {
        for name in [
            "data",
            "data/ks",
            "data/ks/*",
            "data/ks/t",
            "roles",
            "roles/a/b",
            "functions",
            "functions/ks",
            "mbean",
            "mbean/a:b=c",
        ] {
            let resource = Resource::from_stored_name(name).expect(name);
            assert_eq!(resource.stored_name(), name);
        }
        assert_eq!(Resource::from_stored_name("functions/ks/f[int]"), None);
        assert_eq!(Resource::from_stored_name("other"), None);
    }
}
