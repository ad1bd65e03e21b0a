//! A snapshot of the whole schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::UserType;

use crate::keyspace::Keyspace;
use crate::release::Release;
use crate::served::{Reason, refusals};
use crate::table::Table;
use crate::table_id::{TableId, name_uuid};

/// All keyspaces at one epoch. Immutable: a change makes another one.
#[derive(Clone, Debug)]
pub struct Schema {
    keyspaces: BTreeMap<String, Arc<Keyspace>>,
    by_id: types::hash::HashMap<TableId, Arc<Table>>,
    /// Tables to which no write may be taken; seldom any.
    refusals: types::hash::HashMap<TableId, Reason>,
    version: [u8; 16],
    epoch: u64,
    release: Release,
}

impl Schema {
    /// The version of a schema without keyspaces other than the local system's:
    /// the UUID of the MD5 of no input (`SchemaConstants.emptyVersion`).
    pub fn empty_version() -> [u8; 16] {
        crate::schema::version_of_digest(md5_of_nothing())
    }

    /// A snapshot of these keyspaces. `version` is the digest of the rows of `system_schema`;
    /// `epoch` counts this node's snapshots.
    pub fn new(
        keyspaces: impl IntoIterator<Item = Arc<Keyspace>>,
        version: [u8; 16],
        epoch: u64,
    ) -> Self {
        let keyspaces: BTreeMap<String, Arc<Keyspace>> =
            keyspaces.into_iter().map(|ks| (ks.name.clone(), ks)).collect();
        let mut by_id = types::hash::HashMap::default();
        for keyspace in keyspaces.values() {
            let views = keyspace.views.values().map(|view| &view.table);
            for table in keyspace.tables.values().chain(views) {
                by_id.insert(table.id, Arc::clone(table));
            }
        }
        let refusals = keyspaces.values().flat_map(|keyspace| refusals(keyspace)).collect();
        let release = Release::default();
        Self { keyspaces, by_id, refusals, version, epoch, release }
    }

    /// The schema with another keyspace of a name, or without it. Version and epoch stay.
    pub(crate) fn with_keyspace(&self, name: &str, keyspace: Option<Arc<Keyspace>>) -> Self {
        let others = self.keyspaces.values().filter(|other| other.name != name).cloned();
        Self::new(others.chain(keyspace), self.version, self.epoch).of_release(self.release)
    }

    /// The same in a ring of a release.
    pub(crate) fn of_release(self, release: Release) -> Self {
        Self { release, ..self }
    }

    /// The same with another version and epoch.
    pub(crate) fn versioned(self, version: [u8; 16], epoch: u64) -> Self {
        Self { version, epoch, ..self }
    }

    /// The keyspaces by name, system and virtual ones included.
    pub fn keyspaces(&self) -> &BTreeMap<String, Arc<Keyspace>> {
        &self.keyspaces
    }

    /// The keyspace of this name.
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// The table (or materialized view) of this name.
    pub fn table(&self, keyspace: &str, name: &str) -> Option<&Arc<Table>> {
        self.keyspaces.get(keyspace)?.table_or_view(name)
    }

    /// The table (or materialized view) of this id.
    pub fn table_by_id(&self, id: &TableId) -> Option<&Arc<Table>> {
        self.by_id.get(id)
    }

    /// Why no write to a table may be taken, if so: what it would have to do besides is not served
    /// here.
    pub fn refuses_writes(&self, table: &TableId) -> Option<Reason> {
        if self.refusals.is_empty() { None } else { self.refusals.get(table).copied() }
    }

    /// The user type of this name.
    pub fn user_type(&self, keyspace: &str, name: &str) -> Option<&Arc<UserType>> {
        self.keyspaces.get(keyspace)?.types.get(name)
    }

    /// The schema version that nodes agree on, a version 3 UUID.
    pub fn version(&self) -> [u8; 16] {
        self.version
    }

    /// The ring's release, whose CQL this schema is spoken of in.
    pub fn release(&self) -> Release {
        self.release
    }

    /// This node's count of snapshots.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// The UUID of a digest: version 3, of the digest's own bytes. So it is the MD5 of an MD5.
pub(crate) fn version_of_digest(digest: [u8; 16]) -> [u8; 16] {
    name_uuid(&[&digest])
}

fn md5_of_nothing() -> [u8; 16] {
    use md5::Digest;
    md5::Md5::new().finalize().into()
}
