//! What all components of a shard have in common.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use config::{Config, Timeouts};
use env::{Class, Env};
use internode::FailureReason;
use metrics::{Counter, Name, Registry, Unit};
use schema::Schema;
use storage::{Engine, StorageError};
use types::Uuid;

use crate::identity::Identity;

/// The class of a statement's tasks.
pub(crate) const STATEMENT: Class = Class::Statement;

/// Counts the partitions that clients of a shard work on, by who owns them.
#[derive(Debug)]
pub(crate) struct OwnerCounts {
    own: Counter,
    /// What a shard-aware driver avoids.
    other: Counter,
}

impl OwnerCounts {
    fn new(registry: &Registry) -> Self {
        let count =
            |name, help| registry.counter(Name::new("Coordinator", name), Unit::Count, help);
        Self {
            own: count("OwnPartitions", "Partitions requested from the shard that owns them."),
            other: count("OtherPartitions", "Partitions requested from another shard."),
        }
    }
}

/// The shard that a component belongs to.
pub(crate) struct ShardContext {
    pub env: Env,
    pub engine: Rc<Engine>,
    pub config: Arc<Config>,
    pub identity: Arc<Identity>,
    /// The configuration's, until the operator sets others.
    timeouts: Cell<Timeouts>,
    /// Of the last time-UUID.
    ticks: Cell<i64>,
    /// This shard's node id in time-UUIDs.
    node_id: u64,
    owner_counts: OwnerCounts,
    /// Parts of batches that were kept here and cannot be read.
    pub unread_parts: Counter,
}

impl ShardContext {
    pub fn new(
        engine: &Rc<Engine>,
        config: Arc<Config>,
        identity: Arc<Identity>,
        registry: &Registry,
    ) -> Rc<Self> {
        let env = engine.env().clone();
        Rc::new(Self {
            timeouts: Cell::new(config.timeouts),
            ticks: Cell::new(0),
            node_id: env.random_u64(),
            owner_counts: OwnerCounts::new(registry),
            unread_parts: registry.counter(
                Name::new("Batch", "UnreadableParts"),
                Unit::Count,
                "Damaged parts of batches in system.batches: not replayed, and lost.",
            ),
            env,
            engine: Rc::clone(engine),
            config,
            identity,
        })
    }

    /// The present schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.engine.schema()
    }

    /// The time, in milliseconds of Unix.
    pub fn unix_millis(&self) -> i64 {
        self.env.unix_micros() / 1000
    }

    /// How long requests may take.
    pub fn timeouts(&self) -> Timeouts {
        self.timeouts.get()
    }

    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.timeouts.set(timeouts);
    }

    /// A version 1 UUID that nobody else gives, later than the one before.
    pub fn time_uuid(&self) -> [u8; 16] {
        let ticks = Uuid::from_unix_micros(self.env.unique_micros(), self.node_id).ticks();
        let ticks = ticks.expect("a UUID that is made of a time has one").max(self.ticks.get() + 1);
        self.ticks.set(ticks);
        Uuid::from_ticks(ticks, self.node_id).to_bytes()
    }

    /// A version 1 UUID of a time in microseconds. Unlike those of `time_uuid`, two of one time are
    /// equal.
    pub fn time_uuid_at(&self, unix_micros: i64) -> Uuid {
        Uuid::from_unix_micros(unix_micros, self.node_id)
    }

    /// A version 4 UUID.
    pub fn random_uuid(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.env.fill_random(&mut bytes);
        Uuid::from_random(bytes).to_bytes()
    }

    /// A number below another, by chance.
    pub fn any_below(&self) -> impl FnMut(usize) -> usize + '_ {
        |below| (self.env.random_u64() % below.max(1) as u64) as usize
    }

    /// Counts a partition that a client of this shard works on, by its owner.
    pub fn count_owner(&self, owner: usize) {
        match owner == self.env.shard() {
            true => self.owner_counts.own.inc(),
            false => self.owner_counts.other.inc(),
        }
    }

    /// What another node is told of an error.
    pub fn reason_of(&self, error: &StorageError) -> FailureReason {
        match error {
            StorageError::UnknownTable(_) => FailureReason::IncompatibleSchema,
            StorageError::Deadline => FailureReason::Timeout,
            error => {
                self.engine.inspect(error);
                FailureReason::Unknown
            }
        }
    }
}
