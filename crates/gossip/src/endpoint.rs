//! A node's state as it travels (`gms.EndpointState`).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::app_state::AppState;
use crate::status::Status;

/// Of a node that only its address is known of.
const EMPTY_VERSION: i32 = -1;

/// A node's start and its last sign of life (`gms.HeartBeatState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeartBeat {
    /// Seconds since 1970 when it started; it grows from start to start.
    pub generation: i32,
    /// Version of the last heartbeat, out of the same counter as those of its values.
    pub version: i32,
}

impl HeartBeat {
    /// Of a node that only its address is known of.
    pub const NONE: Self = Self { generation: 0, version: EMPTY_VERSION };
}

/// A value and when it was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// The value.
    pub value: Arc<str>,
    /// Its version.
    pub version: i32,
}

impl Versioned {
    /// A value set at a version.
    pub fn new(value: impl Into<Arc<str>>, version: i32) -> Self {
        Self { value: value.into(), version }
    }
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointState {
    /// Its heartbeat.
    pub heartbeat: HeartBeat,
    /// Its values.
    pub values: BTreeMap<AppState, Versioned>,
}

impl EndpointState {
    /// Without values.
    pub fn new(heartbeat: HeartBeat) -> Self {
        Self { heartbeat, values: BTreeMap::new() }
    }

    /// The latest version of anything in it.
    pub fn max_version(&self) -> i32 {
        let versions = self.values.values().map(|value| value.version);
        versions.fold(self.heartbeat.version, i32::max)
    }

    /// A value.
    pub fn get(&self, state: AppState) -> Option<&str> {
        self.values.get(&state).map(|value| &*value.value)
    }

    /// What it is in the ring.
    pub fn status(&self) -> Status {
        let text = self.get(AppState::STATUS_WITH_PORT).or_else(|| self.get(AppState::STATUS));
        text.map_or(Status::None, Status::parse)
    }

    /// What is newer than a version; none if nothing is.
    pub fn newer_than(&self, version: i32) -> Option<Self> {
        let newer = self.values.iter().filter(|(_, value)| value.version > version);
        let values: BTreeMap<_, _> = newer.map(|(state, value)| (*state, value.clone())).collect();
        let is_newer = self.heartbeat.version > version || !values.is_empty();
        is_newer.then_some(Self { heartbeat: self.heartbeat, values })
    }

    /// Everything, heartbeat and all.
    pub(crate) fn whole(&self) -> Option<Self> {
        self.newer_than(EMPTY_VERSION)
    }

    /// Drops the values that others say with a port.
    pub(crate) fn drop_superseded(&mut self) {
        let superseded: Vec<_> = self.values.keys().copied().collect();
        let superseded = superseded.into_iter().filter(|state| {
            state.with_port().is_some_and(|with_port| self.values.contains_key(&with_port))
        });
        for state in superseded.collect::<Vec<_>>() {
            self.values.remove(&state);
        }
    }
}
