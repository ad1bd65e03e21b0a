//! Verbs of hints.

use crate::model::Shown;
use crate::nodetool::HintsVerb;
use crate::operator::{Answer, HintsOperator};

pub(super) async fn ask(operator: &impl HintsOperator, verb: HintsVerb) -> Answer<Option<Shown>> {
    match verb {
        HintsVerb::SetHandoff(change) => operator.set_handoff(change).await?,
        HintsVerb::PauseHandoff(is_paused) => operator.pause_handoff(is_paused).await?,
        HintsVerb::TruncateHints(address) => operator.truncate_hints(address.as_deref()).await?,
        HintsVerb::StatusHandoff | HintsVerb::GetMaxHintWindow => {
            return Ok(Some(Shown::Handoff(operator.handoff().await?)));
        }
        HintsVerb::ListPendingHints { .. } => {
            return Ok(Some(Shown::PendingHints(operator.pending_hints().await?)));
        }
    }
    Ok(None)
}
