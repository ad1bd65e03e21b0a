//! What the operator sees of streams, and how fast they may be.

use std::collections::BTreeMap;

use admin::{Answer, StreamFile, StreamLimits, StreamPlan, StreamSession, StreamSum};
use streaming::{Direction, FileView, Limits, SessionView, Sum};
use types::Uuid;

use super::Operations;
use crate::addresses::socket;

impl Operations {
    /// Those under way.
    pub(crate) fn streams_now(&self) -> Vec<StreamPlan> {
        let sessions = self.shard.streaming().sessions();
        let mut plans: BTreeMap<Uuid, StreamPlan> = BTreeMap::new();
        for session in sessions.iter().filter(|session| !session.state.is_final()) {
            let plan = plans.entry(session.id.plan).or_insert_with(|| StreamPlan {
                operation: session.operation.name().to_owned(),
                id: session.id.plan.to_string(),
                sessions: Vec::new(),
            });
            plan.sessions.push(view(session));
        }
        plans.into_values().collect()
    }

    pub(crate) fn limits_of_streams(&self) -> Answer<StreamLimits> {
        let Limits { parts, far_parts, whole, far_whole } = self.shard.streaming().limits();
        Ok(StreamLimits { parts, far_parts, whole, far_whole })
    }

    pub(crate) fn limit_streams(&self, limits: StreamLimits) -> Answer<()> {
        let StreamLimits { parts, far_parts, whole, far_whole } = limits;
        self.shard.streaming().set_limits(Limits { parts, far_parts, whole, far_whole });
        Ok(())
    }
}

fn view(session: &SessionView) -> StreamSession {
    let file = |(direction, file): &(Direction, FileView)| StreamFile {
        name: file.name.clone(),
        is_sent: *direction == Direction::Out,
        bytes: file.bytes,
        bytes_done: file.done,
    };
    StreamSession {
        peer: socket(session.id.peer),
        index: session.id.session,
        state: session.state.name().to_owned(),
        receiving: sum(session.receiving),
        sending: sum(session.sending),
        bytes_per_second: session.speed.bytes_per_second,
        seconds_left: session.speed.left.map(|left| left.as_secs()),
        files: session.files.iter().map(file).collect(),
    }
}

fn sum(of: Sum) -> StreamSum {
    let Sum { files, bytes, files_done, bytes_done } = of;
    StreamSum { files, bytes, files_done, bytes_done }
}
