//! Keyspaces and tables.

use std::sync::Arc;

use admin::{
    Answer, DataFile, Refusal, Replication, TableHistograms, TableName, TablePaths, TableStats,
    TablesOperator,
};
use schema::Keyspace;
use sstable::descriptor::Component;
use storage::PartitionKey;
use types::CqlType;

use super::{Operations, failed};
use crate::histograms::histograms;
use crate::table_stats::table_stats;

impl TablesOperator for Operations {
    async fn keyspaces(&self) -> Answer<Vec<Replication>> {
        let schema = self.engine().schema();
        let show = |keyspace: &Arc<Keyspace>| {
            let replication = &keyspace.replication;
            let class = replication.class.rsplit('.').next().unwrap_or_default();
            let options = replication.options.iter().map(|(key, value)| format!("{key}={value}"));
            let options = options.collect::<Vec<_>>().join(", ");
            Replication {
                keyspace: keyspace.name.clone(),
                replication: format!("{class} {{{options}}}"),
            }
        };
        Ok(schema.keyspaces().values().filter(|ks| !ks.is_virtual).map(show).collect())
    }

    async fn table_stats(&self) -> Answer<Vec<TableStats>> {
        let directories = &self.config.data_file_directories;
        table_stats(&self.shard, directories).await.map_err(failed)
    }

    async fn histograms(&self, table: Option<&TableName>) -> Answer<Vec<TableHistograms>> {
        let wanted = match table {
            None => None,
            Some(name) => Some(self.stored(name).ok_or_else(|| {
                Refusal::BadUse(format!("Unknown table {}.{}", name.keyspace, name.table))
            })?),
        };
        let is_wanted = |id| wanted.is_none_or(|wanted| wanted == id);
        histograms(&self.shard, is_wanted).await.map_err(failed)
    }

    async fn data_paths(&self, keyspace: &str, table: Option<&str>) -> Answer<Vec<TablePaths>> {
        let names: Vec<String> = table.iter().map(|name| (*name).to_owned()).collect();
        let schema = self.engine().schema();
        let mut found = Vec::new();
        // as Cassandra, which looks for names among all that there are
        for id in self.tables(keyspace, &names).unwrap_or_default() {
            let Some(table) = schema.table_by_id(&id) else { continue };
            let directories = self.config.data_file_directories.iter();
            let paths = directories.map(|data| storage::table_directory(data, table));
            let paths = paths.map(|path| path.display().to_string()).collect();
            found.push(TablePaths { table: table.name.clone(), paths });
        }
        Ok(found)
    }

    async fn sstables_of(&self, table: &TableName, key: &str, hex: bool) -> Answer<Vec<DataFile>> {
        let Some(id) = self.stored(table) else {
            return Err(Refusal::UnknownTable(table.clone()));
        };
        let schema = self.engine().schema();
        let Some(table) = schema.table_by_id(&id) else { return Ok(Vec::new()) };
        let key = key_bytes(table, key, hex)?;
        let key = PartitionKey::new(key.as_slice());
        let by_levels = table.params.compaction.class.ends_with("LeveledCompactionStrategy");
        let found = self.engine().sstables_with(id, key.as_ref()).await.map_err(failed)?;
        let line = |sstable: &Arc<storage::SSTable>| {
            let path = sstable.path(&Component::Data).display().to_string();
            DataFile { level: by_levels.then(|| sstable.level() as u64), path }
        };
        Ok(found.iter().map(line).collect())
    }

    async fn refresh_size_estimates(&self) -> Answer<()> {
        self.shard.estimates().refresh().await.map_err(failed)
    }
}

/// The bytes of a partition's key from what the operator wrote: its values, with colons between
/// them, or their digits.
pub(super) fn key_bytes(table: &schema::Table, text: &str, hex: bool) -> Answer<Vec<u8>> {
    // what nodetool's own exceptions come to
    let refused = |what: String| Refusal::Failed(what);
    let unread = |ty: &CqlType, text: &str, what: String| match ty {
        CqlType::Int | CqlType::BigInt | CqlType::SmallInt | CqlType::TinyInt => {
            refused(format!("For input string: \"{text}\""))
        }
        _ => refused(what),
    };
    if hex {
        let digits = CqlType::Blob.parse_text(text, 0);
        return digits.map_err(|e| refused(e.to_string()));
    }
    let texts: Vec<&str> = match table.partition_key.len() {
        1 => vec![text],
        _ => text.split(':').collect(),
    };
    let columns = table.partition_key.iter();
    let values = columns.zip(&texts).map(|(column, text)| {
        let value = column.ty.parse_text(text, 0);
        value.map_err(|e| unread(&column.ty, text, e.to_string()))
    });
    let values = values.collect::<Answer<Vec<_>>>()?;
    let key = table.partition_key_bytes(&values).map_err(|e| refused(e.to_string()))?;
    Ok(key.into())
}
