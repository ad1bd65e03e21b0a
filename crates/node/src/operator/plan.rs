//! What a change of the ring would move, and what keyspaces withstand.

use std::rc::Rc;

use admin::{
    Answer, Failing, FailingUnit, FailureChance, FailureOdds, FailurePlan, FailureRow, MovePlan,
    PlanChange, PlannedOwnership, PlannedRate, PlannedShare, PlannedStream, PlannedTokens, Refusal,
};
use cluster::topology::{
    self, KeyspaceOdds, Missing, OddsRow, PlanError, PlanRequest, PlannedShares, Planner, Rate,
};
use storage::shards::Stopping;
use types::{Token, TokenRange};

use super::{Operations, failed};
use crate::own_keyspaces::is_system;

impl Operations {
    fn planner(&self) -> Answer<&Rc<Planner>> {
        self.shard.planner().ok_or_else(|| failed(Stopping))
    }

    pub(crate) async fn plan_of(&self, change: &PlanChange) -> Answer<MovePlan> {
        let planned = self.planner()?.plan(&request(change)?).await.map_err(refusal)?;
        let streams: Vec<_> = planned.streams.into_iter().map(stream).collect();
        Ok(MovePlan {
            title: planned.title,
            refusals: planned.refusals,
            notes: planned.notes,
            tokens: planned.tokens.into_iter().map(tokens).collect(),
            ownership: planned.shares.into_iter().map(ownership).collect(),
            bytes: streams.iter().map(|stream| stream.bytes).sum(),
            streams,
            seconds: planned.seconds,
            rate: match planned.rate {
                Some(Rate::Measured(rate)) => PlannedRate::MeasuredBytesPerSecond(rate),
                Some(Rate::Limit(rate)) => PlannedRate::LimitBytesPerSecond(rate),
                Some(Rate::Unknown) | None => PlannedRate::Unknown,
            },
            failures: planned.odds.into_iter().map(odds).collect(),
        })
    }

    pub(crate) async fn failures_of(&self, failing: Failing) -> Answer<FailurePlan> {
        let Failing { nodes, racks, num_tokens } = failing;
        let (nodes, racks) = (nodes as usize, racks as usize);
        let failing = topology::Failing { nodes, racks };
        let planned = self.planner()?.failures(failing, num_tokens).await.map_err(refusal)?;
        let failures = planned.odds.into_iter().map(odds).collect();
        Ok(FailurePlan { failures, notes: planned.notes })
    }
}

fn request(of: &PlanChange) -> Answer<PlanRequest> {
    Ok(match of {
        PlanChange::Add(new) => PlanRequest::Add(topology::NewNodes {
            count: new.count,
            data_center: new.data_center.clone(),
            rack: new.rack.clone(),
            num_tokens: new.num_tokens,
        }),
        PlanChange::Decommission { node } => PlanRequest::Decommission(node.clone()),
        PlanChange::RemoveNode { host } => PlanRequest::Remove(host.clone()),
        PlanChange::Move { token } => {
            let read = token.parse().map(Token);
            PlanRequest::Move(read.map_err(|_| failed(format!("For input string: \"{token}\"")))?)
        }
    })
}

/// What cannot be asked is bad use; the rest failed.
fn refusal(error: PlanError) -> Refusal {
    match error {
        PlanError::Nodes(_) | PlanError::UnknownNode(_) | PlanError::NoRack(_) => {
            Refusal::BadUse(error.to_string())
        }
        _ => failed(error),
    }
}

fn tokens(of: topology::PlannedTokens) -> PlannedTokens {
    PlannedTokens {
        node: of.node,
        data_center: of.data_center,
        rack: of.rack,
        tokens: of.tokens.iter().map(Token::to_string).collect(),
        drawn: of.are_drawn,
    }
}

fn ownership(of: PlannedShares) -> PlannedOwnership {
    let node = |node: topology::NodeShare| PlannedShare {
        node: node.node,
        data_center: node.data_center,
        rack: node.rack,
        before_share: node.before,
        after_share: node.after,
    };
    PlannedOwnership {
        system: are_system(&of.keyspaces),
        keyspaces: of.keyspaces,
        nodes: of.nodes.into_iter().map(node).collect(),
    }
}

fn stream(of: topology::PlannedStream) -> PlannedStream {
    let range = |range: &TokenRange| format!("({},{}]", range.left, range.right);
    PlannedStream {
        step: of.step as u64,
        from: of.from,
        to: of.to,
        keyspace: of.keyspace,
        ranges: of.ranges.iter().map(range).collect(),
        bytes: of.bytes,
    }
}

fn odds(of: KeyspaceOdds) -> FailureOdds {
    FailureOdds {
        system: are_system(&of.keyspaces),
        keyspaces: of.keyspaces,
        rings: of.rings,
        rows: of.rows.into_iter().map(row).collect(),
    }
}

fn row(of: OddsRow) -> FailureRow {
    let chance = |of: ring::Chance| FailureChance { share: of.share, exact: of.is_exact };
    FailureRow {
        unit: match of.unit {
            ring::Unit::Nodes => FailingUnit::Nodes,
            ring::Unit::Racks => FailingUnit::Racks,
        },
        failed: of.failed as u64,
        missing: match of.missing {
            Missing::Quorum => "QUORUM".to_owned(),
            Missing::LocalQuorum(center) => format!("LOCAL_QUORUM of {center}"),
            Missing::Everything => "all replicas".to_owned(),
        },
        chances: of.chances.into_iter().map(|of| of.map(chance)).collect(),
    }
}

fn are_system(keyspaces: &[String]) -> bool {
    keyspaces.iter().all(|keyspace| is_system(keyspace))
}
