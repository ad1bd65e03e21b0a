//! What statements are bound with: times that are fixed once a request, and values that nobody gave before.

use std::sync::Arc;

use cql::Bind;
use cql::modify::{CellContext, Modify, Part};
use protocol::QueryOptions;

use crate::coordinator::{Coordinator, Request};
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

impl Coordinator {
    /// The times of a request, fixed once.
    pub(crate) fn now(&self, options: &QueryOptions<'_>) -> Now {
        let unique = self.env.unique_micros();
        let seconds = options.now_in_seconds.map_or(unique / 1_000_000, i64::from);
        Now { timestamp: options.timestamp.unwrap_or(unique), seconds, millis: unique / 1000 }
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
    pub(crate) fn with_bind<T>(
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
    pub(crate) fn with_parts<T>(
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
    pub(crate) fn with_cells<T>(
        &self,
        request: &Request<'_>,
        run: impl FnOnce(CellContext<'_>) -> T,
    ) -> T {
        run(CellContext { list_path: &|| self.shard.time_uuid(), guard: request.guard() })
    }
}
