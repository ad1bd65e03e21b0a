//! Verbs of compaction.

use super::{MEBIBYTE, keyspaces};
use crate::model::Shown;
use crate::nodetool::CompactionVerb;
use crate::operator::{Answer, CompactionOperator, TablesOperator};

pub(super) async fn ask(
    operator: &(impl CompactionOperator + TablesOperator),
    verb: CompactionVerb,
) -> Answer<Option<Shown>> {
    match verb {
        CompactionVerb::Compact { of, split } => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.compact(&keyspace, &of.tables, split).await?;
            }
        }
        CompactionVerb::CompactFiles(files) => operator.compact_files(&files).await?,
        CompactionVerb::Stop(which) => operator.stop_compactions(which).await?,
        CompactionVerb::SetThreshold { of, thresholds } => {
            operator.set_thresholds(&of, thresholds).await?;
        }
        CompactionVerb::SetThroughput { mebibytes } => {
            operator.set_compaction_throughput(mebibytes.saturating_mul(MEBIBYTE)).await?;
        }
        CompactionVerb::SetConcurrent(count) => operator.set_concurrent_compactors(count).await?,
        CompactionVerb::SetAuto { of, enabled } => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.set_autocompaction(&keyspace, &of.tables, enabled).await?;
            }
        }
        CompactionVerb::History { .. } => {
            return Ok(Some(Shown::CompactionHistory(operator.compaction_history().await?)));
        }
        CompactionVerb::Stats { .. } => {
            return Ok(Some(Shown::Compactions(operator.compaction_stats().await?)));
        }
        CompactionVerb::GetThreshold(of) => {
            return Ok(Some(Shown::CompactionThresholds(operator.thresholds(&of).await?)));
        }
        CompactionVerb::GetThroughput { .. } => {
            let bytes_per_second = operator.compaction_throughput().await?;
            return Ok(Some(Shown::CompactionThroughput { bytes_per_second }));
        }
        CompactionVerb::GetConcurrent => {
            return Ok(Some(Shown::ConcurrentCompactors(operator.concurrent_compactors().await?)));
        }
        CompactionVerb::StatusAuto { of, .. } => {
            let mut all = Vec::new();
            for keyspace in keyspaces(operator, &of).await? {
                all.extend(operator.autocompaction(&keyspace, &of.tables).await?);
            }
            return Ok(Some(Shown::AutoCompaction(all)));
        }
    }
    Ok(None)
}
