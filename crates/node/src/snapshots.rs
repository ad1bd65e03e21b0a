//! Snapshots: taken, listed, removed when they are asked to be or their time is over.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use admin::{Answer, NewSnapshot, Refusal, Snapshots};
use cluster::Shard;
use cluster::virtual_tables::Snapshot;
use config::Config;
use env::Env;
use schema::{Keyspace, Table};
use serde_json::Value;
use sstable::descriptor::Descriptor;
use storage::StorageError;
use storage::snapshot::{MANIFEST, SNAPSHOTS};
use types::CqlType;

use crate::context::Context;
use crate::own_keyspaces::is_system;

/// Between two looks for snapshots whose time is over
/// (`cassandra.snapshot.cleanup_period_seconds`).
const CLEANUP_PERIOD: Duration = Duration::from_secs(60);
/// No manifest is larger.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// The snapshots of all tables.
pub(crate) struct TableSnapshots {
    env: Env,
    config: Arc<Config>,
    shard: Rc<Shard>,
}

impl TableSnapshots {
    pub fn new(context: &Context, shard: &Rc<Shard>) -> Rc<Self> {
        let (env, config) = (context.env.clone(), Arc::clone(&context.config));
        Rc::new(Self { env, config, shard: Rc::clone(shard) })
    }

    /// Takes a snapshot of each table that is meant; none, if one of that name is there.
    pub async fn take(&self, wanted: NewSnapshot) -> Answer<()> {
        let failed = |e: &dyn std::fmt::Display| Refusal::Failed(e.to_string());
        let storage = self.shard.engine().node().ok_or_else(|| failed(&"the node is stopping"))?;
        let schema = self.shard.engine().schema();
        let release = self.shard.identity().release;
        let tables = meant(&schema, &wanted.of)?;
        let there = self.all().await;
        let is_there = |table: &Table| {
            there.iter().any(|snapshot| {
                let same = snapshot.keyspace == table.keyspace && snapshot.table == table.name;
                same && snapshot.name == wanted.name
            })
        };
        if tables.iter().any(|(_, table)| is_there(table)) {
            return Err(failed(&format!("Snapshot {} already exists.", wanted.name)));
        }
        let created_at = self.env.unix_micros() / 1000;
        let ttl = wanted.ttl.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
        for (keyspace, table) in tables {
            let snapshot = storage::snapshot::Snapshot {
                name: wanted.name.clone(),
                created_at,
                expires_at: ttl.map(|s| created_at.saturating_add(s.saturating_mul(1000))),
                schema: (!is_system(&table.keyspace)).then(|| table.schema_cql(keyspace, release)),
            };
            match storage.snapshots().take(table.id, &snapshot, wanted.flush).await {
                // It was dropped meanwhile.
                Ok(()) | Err(StorageError::UnknownTable(_)) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }

    /// Removes the snapshots that `goes` picks, but for those of repairs.
    pub async fn clear(&self, goes: impl Fn(&Snapshot) -> bool) -> std::io::Result<()> {
        for (snapshot, directory) in self.directories().await {
            if !snapshot.ephemeral && goes(&snapshot) {
                self.env.remove_dir_all(&directory).await?;
            }
        }
        Ok(())
    }

    /// Removes snapshots whose time is over, from now on.
    pub async fn expire(self: Rc<Self>) {
        loop {
            self.env.sleep(CLEANUP_PERIOD).await;
            let now = self.env.unix_micros() / 1000;
            let is_over = |snapshot: &Snapshot| snapshot.expires_at.is_some_and(|at| at <= now);
            // What cannot be removed now is tried again.
            let _ = self.clear(is_over).await;
        }
    }

    /// All snapshots of all tables that are or were. What cannot be read is left out.
    pub async fn all(&self) -> Vec<Snapshot> {
        self.directories().await.into_iter().map(|(snapshot, _)| snapshot).collect()
    }

    async fn directories(&self) -> Vec<(Snapshot, PathBuf)> {
        let mut all = Vec::new();
        for directory in &self.config.data_file_directories {
            for keyspace in folders(&self.env, directory).await {
                for table in folders(&self.env, &directory.join(&keyspace)).await {
                    let of = directory.join(&keyspace).join(&table);
                    for tag in folders(&self.env, &of.join(SNAPSHOTS)).await {
                        let place = of.join(SNAPSHOTS).join(&tag);
                        all.push((self.describe(&keyspace, &table, &of, tag).await, place));
                    }
                }
            }
        }
        all
    }

    async fn describe(&self, keyspace: &str, table: &str, of: &Path, tag: String) -> Snapshot {
        let directory = of.join(SNAPSHOTS).join(&tag);
        let (mut size, mut own, mut own_tables) = (0, 0, 0);
        for file in self.env.read_dir(&directory).await.unwrap_or_default() {
            let metadata = self.env.metadata(directory.join(&file.name)).await;
            let bytes = metadata.ok().flatten().map_or(0, |metadata| metadata.len as i64);
            size += bytes;
            // what a live table has still costs nothing
            if !self.env.exists(of.join(&file.name)).await.unwrap_or(false) {
                own += bytes;
                own_tables += if Descriptor::parse(&file.name).is_ok() { bytes } else { 0 };
            }
        }
        let manifest = self.env.read_file(directory.join(MANIFEST), MANIFEST_BYTES_MAX).await;
        let manifest = manifest.ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let manifest = manifest.unwrap_or_default();
        let name = table.rsplit_once('-').map_or(table, |(name, _)| name).to_owned();
        Snapshot {
            created_at: moment(&manifest["created_at"]).or_else(|| named_moment(&tag)),
            expires_at: moment(&manifest["expires_at"]),
            ephemeral: manifest["ephemeral"].as_bool().unwrap_or(false),
            name: tag,
            keyspace: keyspace.to_owned(),
            table: name,
            size_on_disk: size,
            true_size: own,
            own_tables,
        }
    }
}

/// The tables that a snapshot is of, but for virtual ones.
fn meant<'a>(schema: &'a schema::Schema, of: &Snapshots) -> Answer<Vec<(&'a Keyspace, &'a Table)>> {
    let keyspace = |name: &str| {
        let found = schema.keyspace(name).filter(|keyspace| !keyspace.is_virtual);
        let unknown = || Refusal::BadUse(format!("Keyspace {name} does not exist"));
        found.map(AsRef::as_ref).ok_or_else(unknown)
    };
    let all = |keyspace: &'a Keyspace| {
        keyspace.tables.values().map(move |table| (keyspace, table.as_ref()))
    };
    match of {
        Snapshots::Keyspaces(names) if names.is_empty() => {
            let real = schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual);
            Ok(real.map(AsRef::as_ref).flat_map(all).collect())
        }
        Snapshots::Keyspaces(names) => {
            let found = names.iter().map(|name| keyspace(name)).collect::<Answer<Vec<_>>>()?;
            Ok(found.into_iter().flat_map(all).collect())
        }
        Snapshots::Tables(names) => {
            let table = |name: &admin::TableName| {
                let keyspace = keyspace(&name.keyspace)?;
                let unknown = || {
                    let text =
                        format!("Unknown keyspace/cf pair ({}.{})", name.keyspace, name.table);
                    Refusal::BadUse(text)
                };
                let table = keyspace.tables.get(&name.table).ok_or_else(unknown)?;
                Ok((keyspace, table.as_ref()))
            };
            names.iter().map(table).collect()
        }
    }
}

async fn folders(env: &Env, path: &Path) -> Vec<String> {
    let entries = env.read_dir(path).await.unwrap_or_default();
    entries.into_iter().filter(|entry| entry.is_dir).map(|entry| entry.name).collect()
}

/// A time as a manifest writes it, in milliseconds since the epoch.
fn moment(value: &Value) -> Option<i64> {
    let bytes = CqlType::Timestamp.parse_text(value.as_str()?, 0).ok()?;
    Some(i64::from_be_bytes(bytes.try_into().ok()?))
}

/// The time in the name of a snapshot that was taken before something was dropped or truncated.
fn named_moment(tag: &str) -> Option<i64> {
    let rest = tag.strip_prefix("dropped-").or_else(|| tag.strip_prefix("truncated-"))?;
    rest.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_names_and_manifests() {
        assert_eq!(named_moment("dropped-1795299008725-comp"), Some(1_795_299_008_725));
        assert_eq!(named_moment("mine-1-2"), None);
        let at = Value::from("2024-05-06T07:08:09.123Z");
        assert_eq!(moment(&at), Some(1_714_979_289_123));
        assert_eq!(moment(&Value::Null), None);
    }
}
