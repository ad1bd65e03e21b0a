//! What statements are bound with: times that are fixed once a request, and values that nobody gave
//! before.
//!
//! The coordinator evaluates `uuid()` and `now()` once. The values go as they are to shards, other
//! nodes, rounds of Paxos, the batch log and hints.

use std::rc::Rc;
use std::sync::Arc;

use cql::modify::{CellContext, Modify, Part};
use cql::{Bind, Limits};

use crate::request::Request;
use crate::shard_context::ShardContext;
use crate::values::Bound;

/// The times of a request.
pub(crate) struct Now {
    /// Of what it writes, in microseconds.
    pub timestamp: i64,
    /// For expiry, in seconds.
    pub seconds: i64,
    /// For `now()`, in milliseconds.
    pub millis: i64,
}

/// A modification of a batch, with the values of its markers.
pub(crate) type BatchPart<'a> = (&'a Arc<Modify>, &'a Bound<'a>);

/// Gives a value that it never gave before.
type Fresh<'a> = &'a dyn Fn() -> [u8; 16];

/// Binds statements.
pub(crate) struct Binder {
    shard: Rc<ShardContext>,
    limits: Limits,
}

impl Binder {
    pub fn new(shard: &Rc<ShardContext>) -> Rc<Self> {
        let config = &shard.config;
        let limits = Limits {
            batch_warn_bytes: config.batch_size_warn,
            batch_fail_bytes: config.batch_size_fail,
            unlogged_batch_partitions_warn: config.unlogged_batch_partitions_warn as u32,
            ..Limits::default()
        };
        Rc::new(Self { shard: Rc::clone(shard), limits })
    }

    /// What statements may ask for.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The times of a request, fixed once.
    pub fn now(&self, request: &Request<'_>) -> Now {
        let options = request.options;
        let unique = self.shard.env.unique_micros();
        let seconds = options.now_in_seconds.map_or(unique / 1_000_000, i64::from);
        let timestamp = options.timestamp.unwrap_or(unique);
        if let Some(observed) = &request.observed {
            observed.see_times(timestamp, seconds);
        }
        Now { timestamp, seconds, millis: unique / 1000 }
    }

    fn bind<'a>(
        &'a self,
        values: &'a dyn cql::Values,
        request: &'a Request<'_>,
        now: &Now,
        (time_uuid, random): (Fresh<'a>, Fresh<'a>),
    ) -> Bind<'a> {
        Bind {
            values,
            timestamp: now.timestamp,
            now_seconds: now.seconds,
            now_millis: now.millis,
            protocol_version: request.version.number(),
            time_uuid,
            list_path: time_uuid,
            random,
            limits: &self.limits,
            guard: request.guard(),
            once: cql::Once::default(),
        }
    }

    /// Runs `run` with all that binding needs.
    pub fn with_bind<T>(
        &self,
        values: &dyn cql::Values,
        request: &Request<'_>,
        now: &Now,
        run: impl FnOnce(Bind<'_>) -> T,
    ) -> T {
        run(self.bind(
            values,
            request,
            now,
            (&|| self.shard.time_uuid(), &|| self.shard.random_uuid()),
        ))
    }

    /// Runs `run` with the modifications of a batch, each with all that binding it needs.
    pub fn with_parts<T>(
        &self,
        parts: &[BatchPart<'_>],
        request: &Request<'_>,
        now: &Now,
        run: impl FnOnce(Vec<Part<'_>>) -> T,
    ) -> T {
        let (time_uuid, random) = (|| self.shard.time_uuid(), || self.shard.random_uuid());
        let parts = parts.iter().map(|&(modify, values)| {
            let bind = self.bind(values, request, now, (&time_uuid, &random));
            Part { modify, bind }
        });
        run(parts.collect())
    }

    /// Runs `run` with what the cells of a bound modification are written with.
    pub fn with_cells<T>(
        &self,
        request: &Request<'_>,
        run: impl FnOnce(CellContext<'_>) -> T,
    ) -> T {
        run(CellContext { list_path: &|| self.shard.time_uuid(), guard: request.guard() })
    }
}
