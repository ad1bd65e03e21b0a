//! What clients' requests took and how they failed, under the names of Cassandra's
//! `ClientRequestMetrics`.

use std::time::Duration;

use cql::ast::BatchKind;
use metrics::{Counter, Histogram, Name, Registry, Unit};
use protocol::{ErrorDetail, ErrorResponse};

/// Requests of one kind: `ClientRequest`, its scope the kind.
#[derive(Debug)]
pub(crate) struct RequestMetrics {
    latency: Histogram,
    timeouts: Counter,
    unavailables: Counter,
    failures: Counter,
    refused: Counter,
}

impl RequestMetrics {
    fn new(registry: &Registry, scope: &str) -> Self {
        let count = |name, help| registry.counter(Name::of_request(scope, name), Unit::Count, help);
        Self {
            latency: registry
                .timer(Name::of_request(scope, "Latency"), "Time from plan to answer."),
            timeouts: count("Timeouts", "Requests whose replicas did not answer in time."),
            unavailables: count("Unavailables", "Requests for which too few replicas were alive."),
            failures: count("Failures", "Requests that failed at a replica."),
            refused: count("Refused", "Requests rejected as invalid or not supported."),
        }
    }

    /// One ended.
    pub fn ended(&self, elapsed: Duration, error: Option<&ErrorResponse>) {
        self.latency.record_duration(elapsed);
        let Some(error) = error else { return };
        match error.detail {
            ErrorDetail::ReadTimeout { .. } | ErrorDetail::WriteTimeout { .. } => {
                self.timeouts.inc();
            }
            ErrorDetail::Unavailable { .. } => self.unavailables.inc(),
            ErrorDetail::ReadFailure { .. } | ErrorDetail::WriteFailure { .. } => {
                self.failures.inc();
            }
            _ => self.refused.inc(),
        }
    }
}

/// Partitions of batches by kind, under the names of Cassandra's `BatchMetrics`.
#[derive(Debug)]
pub(crate) struct Batches {
    counter: Histogram,
    logged: Histogram,
    unlogged: Histogram,
}

impl Batches {
    pub fn new(registry: &Registry) -> Self {
        let of = |name| {
            let help = "Partitions in each batch.";
            registry.histogram(Name::new("Batch", name), Unit::Count, help)
        };
        Self {
            counter: of("PartitionsPerCounterBatch"),
            logged: of("PartitionsPerLoggedBatch"),
            unlogged: of("PartitionsPerUnloggedBatch"),
        }
    }

    pub fn of(&self, kind: BatchKind) -> &Histogram {
        match kind {
            BatchKind::Counter => &self.counter,
            BatchKind::Logged => &self.logged,
            BatchKind::Unlogged => &self.unlogged,
        }
    }
}

/// Rounds of Paxos of one kind (`CASClientRequestMetrics`).
#[derive(Debug)]
pub(crate) struct CasMetrics {
    /// As of all requests.
    pub requests: RequestMetrics,
    /// Ballots that a request lost.
    pub contention: Histogram,
    /// Rounds of others that were finished.
    pub unfinished: Counter,
    /// Conditions that did not hold.
    pub not_met: Counter,
    /// Proposals that some replicas accepted and most did not.
    pub unknown: Counter,
    /// Bytes of what is written.
    pub size: Histogram,
}

impl CasMetrics {
    fn new(registry: &Registry, scope: &str) -> Self {
        let count = |name, help| registry.counter(Name::of_request(scope, name), Unit::Count, help);
        let histogram =
            |name, unit, help| registry.histogram(Name::of_request(scope, name), unit, help);
        Self {
            requests: RequestMetrics::new(registry, scope),
            contention: histogram("ContentionHistogram", Unit::Count, "Ballots lost by a request."),
            unfinished: count(
                "UnfinishedCommit",
                "Paxos rounds of other coordinators that a request finished.",
            ),
            not_met: count(
                "ConditionNotMet",
                "Conditional statements whose condition was not met.",
            ),
            unknown: count("UnknownResult", "Conditional statements with unknown outcome."),
            size: histogram("MutationSizeHistogram", Unit::Bytes, "Sizes of mutations."),
        }
    }
}

/// Reads whose replicas differed (`ReadRepairMetrics`). Of its other names 5.0.9 counts nothing by
/// `Attempted` and `RepairedBackground`, and no further replica is asked here once they differ
/// (`SpeculatedRead`, `SpeculatedWrite`).
#[derive(Debug)]
pub(crate) struct ReadRepairs {
    /// Of tables whose replicas are given what they lack before the answer.
    pub blocking: Counter,
    /// Of others.
    pub reconciled: Counter,
    /// Replicas took too long to give all their data.
    pub timed_out: Counter,
}

impl ReadRepairs {
    pub fn new(registry: &Registry) -> Self {
        let count = |name, help| registry.counter(Name::new("ReadRepair", name), Unit::Count, help);
        Self {
            blocking: count("RepairedBlocking", "Reads whose replicas differed and were repaired."),
            reconciled: count(
                "ReconcileRead",
                "Reads whose replicas differed and were not repaired.",
            ),
            timed_out: count("RepairTimedOut", "Reads whose repair did not end in time."),
        }
    }
}

/// All kinds that are served.
#[derive(Debug)]
pub(crate) struct ClientRequests {
    /// Of partitions.
    pub read: RequestMetrics,
    /// Of ranges of them.
    pub range: RequestMetrics,
    /// INSERT, UPDATE, DELETE, BATCH.
    pub write: RequestMetrics,
    /// Conditional statements.
    pub cas_write: CasMetrics,
    /// Serial reads.
    pub cas_read: CasMetrics,
    /// Pages read by an index, which is to say by a scan.
    pub index_scans: Counter,
}

impl ClientRequests {
    pub fn new(registry: &Registry) -> Self {
        Self {
            read: RequestMetrics::new(registry, "Read"),
            range: RequestMetrics::new(registry, "RangeSlice"),
            write: RequestMetrics::new(registry, "Write"),
            cas_write: CasMetrics::new(registry, "CASWrite"),
            cas_read: CasMetrics::new(registry, "CASRead"),
            index_scans: registry.counter(
                Name::of_request("RangeSlice", "IndexScans"),
                Unit::Count,
                "Pages of reads by secondary index, answered by a scan of the table.",
            ),
        }
    }
}

/// A duration as histograms count it: in microseconds.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
