//! Snapshots on disk.

use std::path::Path;

use cluster::virtual_tables::Snapshot;
use serde_json::Value;
use types::CqlType;

use crate::node::Node;

/// What Cassandra says of a snapshot in its directory.
const MANIFEST: &str = "manifest.json";
/// No manifest is larger.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

impl Node {
    /// All snapshots of all tables that are or were. What cannot be read is left out.
    pub(super) async fn snapshots(&self) -> Vec<Snapshot> {
        let mut all = Vec::new();
        for directory in &self.config().data_file_directories {
            for keyspace in folders(self, directory).await {
                for table in folders(self, &directory.join(&keyspace)).await {
                    let of = directory.join(&keyspace).join(&table);
                    for tag in folders(self, &of.join("snapshots")).await {
                        all.push(self.describe_snapshot(&keyspace, &table, &of, tag).await);
                    }
                }
            }
        }
        all
    }

    async fn describe_snapshot(
        &self,
        keyspace: &str,
        table: &str,
        of: &Path,
        tag: String,
    ) -> Snapshot {
        let directory = of.join("snapshots").join(&tag);
        let (mut size, mut own) = (0, 0);
        for file in self.env().read_dir(&directory).await.unwrap_or_default() {
            let metadata = self.env().metadata(directory.join(&file.name)).await;
            let bytes = metadata.ok().flatten().map_or(0, |metadata| metadata.len as i64);
            size += bytes;
            // what a live table has still costs nothing
            if !self.env().exists(of.join(&file.name)).await.unwrap_or(false) {
                own += bytes;
            }
        }
        let manifest = self.env().read_file(directory.join(MANIFEST), MANIFEST_BYTES_MAX).await;
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
        }
    }
}

async fn folders(node: &Node, path: &Path) -> Vec<String> {
    let entries = node.env().read_dir(path).await.unwrap_or_default();
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
