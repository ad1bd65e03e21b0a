//! Verbs that sample partitions.

use crate::model::Shown;
use crate::nodetool::SamplesVerb;
use crate::operator::{Answer, SamplesOperator};

pub(super) async fn ask(
    operator: &impl SamplesOperator,
    verb: SamplesVerb,
) -> Answer<Option<Shown>> {
    Ok(Some(match verb {
        SamplesVerb::Sample(order) => Shown::Samples(operator.sample(order).await?),
        SamplesVerb::Schedule { order, interval_millis } => Shown::SamplingSchedule {
            done: operator.schedule_sampling(order, interval_millis).await?,
        },
        SamplesVerb::Stop(of) => {
            Shown::SamplingSchedule { done: operator.stop_sampling(of).await? }
        }
        SamplesVerb::List => Shown::Samplings(operator.samplings().await?),
        SamplesVerb::KeyRange => Shown::SampledKeys(operator.sampled_keys().await?),
    }))
}
