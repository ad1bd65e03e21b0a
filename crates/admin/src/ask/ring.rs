//! Verbs of the ring.

use crate::model::{ClusterView, Outcome, Refusal, RingRanges, Shown};
use crate::nodetool::RingVerb;
use crate::operator::{Answer, RingOperator, TablesOperator};

pub(super) async fn ask(
    operator: &(impl RingOperator + TablesOperator),
    verb: RingVerb,
) -> Outcome {
    match verb {
        RingVerb::DescribeRing { keyspace, .. } => ranges(operator, &keyspace).await,
        verb => plain(operator, verb).await.into(),
    }
}

/// The version is said before the keyspace is looked for.
async fn ranges(operator: &impl RingOperator, keyspace: &str) -> Outcome {
    let schema_version = match operator.schema_version().await {
        Ok(version) => version,
        Err(refusal) => return Outcome::refused(refusal),
    };
    let (ranges, refusal) = match operator.ranges(keyspace).await {
        Ok(ranges) => (ranges, None),
        Err(refusal) => (Vec::new(), Some(refusal)),
    };
    Outcome {
        shown: Some(Shown::Ranges(RingRanges { schema_version, ranges })),
        refusal,
        has_more: false,
    }
}

async fn plain(
    operator: &(impl RingOperator + TablesOperator),
    verb: RingVerb,
) -> Answer<Option<Shown>> {
    Ok(Some(match verb {
        RingVerb::SetGossip(takes_part) => {
            operator.set_gossip(takes_part).await?;
            return Ok(None);
        }
        RingVerb::Assassinate { address } => {
            operator.assassinate(&address).await?;
            return Ok(None);
        }
        RingVerb::Rebuild(order) => {
            operator.rebuild(&order).await?;
            return Ok(None);
        }
        RingVerb::Join => {
            operator.join().await?;
            return Ok(None);
        }
        RingVerb::ResumeBootstrap { force: false } => {
            let text = "'nodetool bootstrap resume' is disabled.";
            return Err(Refusal::Failed(text.to_owned()));
        }
        RingVerb::ResumeBootstrap { force: true } => {
            Shown::ResumedBootstrap { resumed: operator.resume_bootstrap().await? }
        }
        RingVerb::Move { token } => {
            operator.move_to(&token).await?;
            return Ok(None);
        }
        RingVerb::RemoveNode { host } => {
            operator.remove_node(&host).await?;
            return Ok(None);
        }
        RingVerb::Plan(change) => Shown::Plan(Box::new(operator.plan(&change).await?)),
        RingVerb::PlanFailures(failing) => Shown::FailurePlan(operator.failures(failing).await?),
        RingVerb::Removal { force } => {
            let status = operator.removal_status().await?;
            if force {
                operator.force_removal().await?;
            }
            Shown::Removal { status }
        }
        RingVerb::Decommission { force } => {
            Shown::Decommission(operator.decommission(force).await?)
        }
        // it is asked for above
        RingVerb::DescribeRing { .. } => return Ok(None),
        RingVerb::Status { keyspace, .. } | RingVerb::Ring { keyspace, .. } => {
            Shown::Ring(operator.ring(keyspace.as_deref()).await?)
        }
        RingVerb::DescribeCluster { .. } => Shown::Cluster(Box::new(ClusterView {
            cluster: operator.cluster().await?,
            ring: operator.ring(None).await?,
            keyspaces: operator.keyspaces().await?,
        })),
        RingVerb::GetEndpoints { table, key, .. } => {
            Shown::Endpoints(operator.endpoints(&table, &key).await?)
        }
        RingVerb::GossipInfo { .. } | RingVerb::FailureDetector { .. } => {
            Shown::Gossip(operator.gossip().await?)
        }
        RingVerb::StatusGossip => Shown::GossipStatus { running: operator.gossip_active().await? },
        RingVerb::GetSeeds => Shown::Seeds(operator.seeds().await?),
        RingVerb::ReloadSeeds => Shown::ReloadedSeeds(operator.reload_seeds().await?),
    }))
}
