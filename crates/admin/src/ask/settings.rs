//! Verbs of settings.

use crate::model::Shown;
use crate::nodetool::{SettingsVerb, guardrails};
use crate::operator::{Answer, SettingsOperator};

pub(super) async fn ask(
    operator: &impl SettingsOperator,
    verb: SettingsVerb,
) -> Answer<Option<Shown>> {
    match verb {
        SettingsVerb::SetTimeout { timeout, millis } => {
            operator.set_timeout(timeout, millis).await?;
        }
        SettingsVerb::SetGuardrails(arguments) => {
            let settings = guardrails::settings(&arguments)?;
            let set = operator.set_guardrails(&settings).await;
            set.map_err(|refusal| guardrails::not_set(&arguments, refusal))?;
        }
        SettingsVerb::SetTraceProbability(share) => {
            operator.set_trace_probability(share.0).await?;
        }
        SettingsVerb::SetLoggingLevel { target, level } => {
            let unheard = operator.set_logging_level(&target, &level).await?;
            return Ok((!unheard.is_empty()).then_some(Shown::UnheardLoggers(unheard)));
        }
        SettingsVerb::GetLoggingLevels => {
            return Ok(Some(Shown::LoggingLevels(operator.logging_levels().await?)));
        }
        SettingsVerb::GetTimeout(timeout) => {
            let millis = operator.timeout(timeout).await?;
            return Ok(Some(Shown::Timeout { timeout, millis }));
        }
        SettingsVerb::GetGuardrails(filter) => {
            let found = guardrails::select(&operator.settings().await?, &filter)?;
            return Ok(Some(Shown::Guardrails(found)));
        }
        SettingsVerb::GetColumnIndexSize => {
            let kibibytes = operator.column_index_bytes().await?.map(|bytes| bytes >> 10);
            return Ok(Some(Shown::ColumnIndexSize { kibibytes }));
        }
        SettingsVerb::GetDefaultReplication => {
            let factor = operator.default_replication().await?;
            return Ok(Some(Shown::DefaultReplication { factor }));
        }
        SettingsVerb::SetDefaultReplication(factor) => {
            operator.set_default_replication(factor).await?;
        }
        SettingsVerb::ReplayBatches => operator.replay_batches().await?,
        SettingsVerb::GetSnapshotThrottle => {}
        SettingsVerb::GetTraceProbability => {
            let share = operator.trace_probability().await?;
            return Ok(Some(Shown::TraceProbability { share }));
        }
    }
    Ok(None)
}
