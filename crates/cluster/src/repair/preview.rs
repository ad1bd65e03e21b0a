//! What a preview says at its end (`PreviewRepairTask`).

use repair::wire::PreviewKind;
use repair::{SyncStat, SyncStatSummary};

use super::job::JobDone;

/// Its text.
pub(super) fn text(
    kind: PreviewKind,
    keyspace: &str,
    done: &[JobDone],
    is_counter: impl Fn(&str) -> bool,
) -> String {
    let mut summary = SyncStatSummary::new(true);
    for job in done {
        let stats: Vec<_> = job
            .differences
            .iter()
            .map(|of| SyncStat {
                differences: of.ranges.clone(),
                summaries: Some(of.summaries.clone()),
            })
            .collect();
        summary.add(keyspace, &job.table, is_counter(&job.table), &stats);
    }
    let is_repaired = kind == PreviewKind::Repaired;
    match (summary.is_empty(), is_repaired) {
        (true, true) => "Repaired data is in sync".to_owned(),
        (true, false) => "Previewed data was in sync".to_owned(),
        (false, true) => format!("Repaired data is inconsistent\n{summary}"),
        (false, false) => format!("Preview complete\n{summary}"),
    }
}
