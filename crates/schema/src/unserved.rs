//! All of a schema that is not served, by name.

use std::fmt;

use crate::keyspace::Keyspace;
use crate::replication::Strategy;
use crate::schema::Schema;
use crate::served::{Reason, is_foreign, own_refusal};

/// An object that is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unserved {
    /// Its name, with its keyspace.
    pub object: String,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.object, self.reason)
    }
}

/// All that is not served of a schema, keyspace by keyspace. A node joins a ring only where there
/// is none.
pub fn unserved(schema: &Schema) -> Vec<Unserved> {
    let keyspaces = schema.keyspaces().values();
    let of_users = keyspaces.filter(|keyspace| !crate::stored::is_local(&keyspace.name));
    of_users.flat_map(|keyspace| of_keyspace(keyspace)).collect()
}

fn of_keyspace(keyspace: &Keyspace) -> Vec<Unserved> {
    let mut found = Vec::new();
    let qualified =
        |name: &str| format!("{}.{}", types::maybe_quote(&keyspace.name), types::maybe_quote(name));
    let mut note = |object: String, reason| found.push(Unserved { object, reason });
    match keyspace.replication.strategy {
        Strategy::Custom | Strategy::Meta => {
            note(types::maybe_quote(&keyspace.name).into_owned(), Reason::Strategy);
        }
        _ if keyspace.replication.has_transient_replicas() => {
            note(types::maybe_quote(&keyspace.name).into_owned(), Reason::Transient);
        }
        _ => {}
    }
    for table in keyspace.tables.values() {
        // a table with views is named by them
        if let Some(reason) = own_refusal(table) {
            note(qualified(&table.name), reason);
        }
        for index in table.indexes.values().filter(|index| is_foreign(index)) {
            note(qualified(&index.name), Reason::CustomIndex);
        }
    }
    keyspace.views.keys().for_each(|name| note(qualified(name), Reason::View));
    keyspace.functions.keys().for_each(|own| note(qualified(&own.name), Reason::Function));
    keyspace.aggregates.keys().for_each(|own| note(qualified(&own.name), Reason::Aggregate));
    found
}
