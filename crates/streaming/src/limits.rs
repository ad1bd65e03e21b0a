//! How fast a node sends files (`StreamManager.StreamRateLimiter`): what all its shards send counts
//! on the first one.

use std::cell::Cell;

use env::Env;
use storage::Throttle;

/// Limits, in bytes a second; zero for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Parts of SSTables, to all nodes together.
    pub parts: u64,
    /// The same to nodes of other data centres.
    pub far_parts: u64,
    /// Whole SSTables, to all nodes together.
    pub whole: u64,
    /// The same to nodes of other data centres.
    pub far_whole: u64,
}

/// What is sent, by the limits that it counts under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub bytes: u64,
    pub is_whole: bool,
    /// Does it go to another data centre?
    pub is_far: bool,
}

/// Holds what is sent to the limits.
#[derive(Debug)]
pub(crate) struct Pace {
    limits: Cell<Limits>,
    parts: Throttle,
    far_parts: Throttle,
    whole: Throttle,
    far_whole: Throttle,
}

impl Pace {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: Cell::new(limits),
            parts: Throttle::new(limits.parts),
            far_parts: Throttle::new(limits.far_parts),
            whole: Throttle::new(limits.whole),
            far_whole: Throttle::new(limits.far_whole),
        }
    }

    pub fn limits(&self) -> Limits {
        self.limits.get()
    }

    pub fn set(&self, limits: Limits) {
        self.limits.set(limits);
        self.parts.set_rate(limits.parts);
        self.far_parts.set_rate(limits.far_parts);
        self.whole.set_rate(limits.whole);
        self.far_whole.set_rate(limits.far_whole);
    }

    /// Waits until so much may be sent.
    pub async fn take(&self, env: &Env, load: Load) {
        let (all, far) = match load.is_whole {
            true => (&self.whole, &self.far_whole),
            false => (&self.parts, &self.far_parts),
        };
        all.take(env, load.bytes, || env.is_terminated()).await;
        if load.is_far {
            far.take(env, load.bytes, || env.is_terminated()).await;
        }
    }
}
