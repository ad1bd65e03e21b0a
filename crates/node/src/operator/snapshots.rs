//! Snapshots and backups.

use admin::{Answer, NewSnapshot, SnapshotDetails, SnapshotsOperator};

use super::{Operations, failed};

impl SnapshotsOperator for Operations {
    async fn snapshot(&self, snapshot: NewSnapshot) -> Answer<()> {
        self.snapshots.take(snapshot).await
    }

    async fn snapshots(&self) -> Answer<Vec<SnapshotDetails>> {
        let details = |of: cluster::virtual_tables::Snapshot| SnapshotDetails {
            name: of.name,
            keyspace: of.keyspace,
            table: of.table,
            true_size_bytes: of.true_size.unsigned_abs(),
            own_tables_bytes: of.own_tables.unsigned_abs(),
            size_on_disk_bytes: of.size_on_disk.unsigned_abs(),
            created_at_millis: of.created_at,
            expires_at_millis: of.expires_at,
            ephemeral: of.ephemeral,
        };
        let mut all: Vec<_> = self.snapshots.all().await.into_iter().map(details).collect();
        all.sort_by(|a, b| (&a.name, &a.keyspace, &a.table).cmp(&(&b.name, &b.keyspace, &b.table)));
        Ok(all)
    }

    async fn clear_snapshots(
        &self,
        keyspaces: &[String],
        name: Option<&str>,
        before: Option<i64>,
    ) -> Answer<()> {
        let goes = |of: &cluster::virtual_tables::Snapshot| {
            (keyspaces.is_empty() || keyspaces.contains(&of.keyspace))
                && name.is_none_or(|name| name == of.name)
                && before.is_none_or(|before| of.created_at.is_none_or(|at| at < before))
        };
        self.snapshots.clear(goes).await.map_err(failed)
    }

    async fn backups(&self) -> Answer<bool> {
        Ok(self.storage()?.flushes().backs_up())
    }

    async fn set_backups(&self, kept: bool) -> Answer<()> {
        self.storage()?.flushes().enable_backups(kept);
        Ok(())
    }
}
