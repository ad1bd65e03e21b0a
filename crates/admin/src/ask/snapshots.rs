//! Verbs of snapshots.

use env::Env;

use super::MICROS_PER_MILLI;
use crate::model::{Outcome, Shown};
use crate::nodetool::SnapshotsVerb;
use crate::nodetool::verb::check_snapshot;
use crate::operator::{Answer, NewSnapshot, SnapshotsOperator};

pub(super) async fn ask(
    env: &Env,
    operator: &impl SnapshotsOperator,
    verb: SnapshotsVerb,
) -> Outcome {
    let now_millis = env.unix_micros() / MICROS_PER_MILLI;
    match verb {
        SnapshotsVerb::Snapshot { of, name, flush, ttl, .. } => {
            let name = name.unwrap_or_else(|| now_millis.to_string());
            take(operator, NewSnapshot { of, name, flush, ttl }).await
        }
        verb => plain(operator, verb, now_millis).await.into(),
    }
}

/// Its name is said even where it is refused.
async fn take(operator: &impl SnapshotsOperator, snapshot: NewSnapshot) -> Outcome {
    let name = snapshot.name.clone();
    let taken = match check_snapshot(&name, snapshot.ttl) {
        Ok(()) => operator.snapshot(snapshot).await,
        Err(refusal) => Err(refusal),
    };
    let refusal = taken.err();
    let shown = Shown::Snapshot { name, taken: refusal.is_none() };
    Outcome { refusal, ..Outcome::shown(shown) }
}

async fn plain(
    operator: &impl SnapshotsOperator,
    verb: SnapshotsVerb,
    now_millis: i64,
) -> Answer<Option<Shown>> {
    match verb {
        // it is carried out above
        SnapshotsVerb::Snapshot { .. } => {}
        SnapshotsVerb::SetBackup(kept) => operator.set_backups(kept).await?,
        SnapshotsVerb::Clear { keyspaces, name, older_than, before, .. } => {
            let since = older_than.map(|seconds| {
                let age = i64::try_from(seconds).map_or(i64::MAX, |s| s.saturating_mul(1000));
                now_millis.saturating_sub(age)
            });
            operator.clear_snapshots(&keyspaces, name.as_deref(), before.or(since)).await?;
        }
        SnapshotsVerb::List { ttl, ephemeral } => {
            let mut found = operator.snapshots().await?;
            let is_shown = |goes: Option<i64>, of_repair: bool| {
                (ttl || goes.is_none()) && (ephemeral || !of_repair)
            };
            found.retain(|of| is_shown(of.expires_at_millis, of.ephemeral));
            return Ok(Some(Shown::Snapshots(found)));
        }
        SnapshotsVerb::StatusBackup => {
            return Ok(Some(Shown::Backups { kept: operator.backups().await? }));
        }
    }
    Ok(None)
}
