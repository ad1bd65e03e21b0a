//! Which nodes to ask first: the near ones, unless they were slow of late
//! (`DynamicEndpointSnitch`). Each shard goes by the answers that it waits for itself.

use std::cell::RefCell;
use std::rc::Rc;

use config::Config;
use env::{Env, Instant};
use ring::{Dynamic, DynamicSettings, Proximity, Scores};
use types::Address;

/// What a shard knows of it.
pub(crate) struct DynamicSnitch {
    by_place: bool,
    /// None where `dynamic_snitch` is off.
    latencies: Option<RefCell<Latencies>>,
    began: Instant,
}

struct Latencies {
    dynamic: Dynamic,
    scores: Rc<Scores>,
}

/// What puts nodes in order, as it is now.
pub(crate) struct Order {
    by_place: bool,
    scores: Option<Rc<Scores>>,
}

impl Order {
    pub fn proximity(&self) -> Proximity<'_> {
        Proximity { by_place: self.by_place, scores: self.scores.as_deref() }
    }
}

impl DynamicSnitch {
    /// Nothing is known of any node yet.
    pub fn new(env: &Env, config: &Config) -> Self {
        let settings = config.dynamic_snitch.map(|of| DynamicSettings {
            update_nanos: nanos(of.update_interval),
            reset_nanos: nanos(of.reset_interval),
            badness_threshold: of.badness_threshold,
        });
        let latencies = settings.map(|settings| {
            let (dynamic, scores) = (Dynamic::new(0, settings), Rc::default());
            RefCell::new(Latencies { dynamic, scores })
        });
        Self { by_place: config.snitch != "SimpleSnitch", latencies, began: env.now() }
    }

    /// A node answered a read that was sent at a time, or did not in all the time that it had.
    pub fn answered(&self, env: &Env, node: Address, sent_at: Instant) {
        let Some(latencies) = &self.latencies else { return };
        latencies.borrow_mut().dynamic.received(node, nanos(env.now() - sent_at));
    }

    /// The order of now.
    pub fn order(&self, env: &Env) -> Order {
        let scores = self.latencies.as_ref().map(|latencies| {
            let mut latencies = latencies.borrow_mut();
            if let Some(scores) = latencies.dynamic.step(nanos(env.now() - self.began)) {
                latencies.scores = Rc::new(scores);
            }
            Rc::clone(&latencies.scores)
        });
        Order { by_place: self.by_place, scores }
    }
}

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
