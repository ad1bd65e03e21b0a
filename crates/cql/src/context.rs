//! What binding needs beside the statement.

use crate::error::CqlError;
use crate::guard::Guard;
use crate::value::Values;

/// What becomes of a time to live that ends past the last time that can be stored
/// (`cassandra.expiration_date_overflow_policy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpirationOverflow {
    /// An error.
    #[default]
    Reject,
    /// The last time there is, with a warning.
    Cap,
    /// The last time there is.
    CapSilently,
}

/// Limits that the operator sets (guardrails and thresholds of `cassandra.yaml`).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `batch_size_warn_threshold`, in bytes.
    pub batch_warn_bytes: u64,
    /// `batch_size_fail_threshold`, in bytes.
    pub batch_fail_bytes: u64,
    /// `unlogged_batch_across_partitions_warn_threshold`.
    pub unlogged_batch_partitions_warn: u32,
    /// The last local deletion time, in seconds since the epoch, that formats of the storage
    /// compatibility mode hold (`Cell.getVersionedMaxDeletiontionTime`).
    pub max_deletion_time: i64,
    /// What becomes of expirations past it.
    pub expiration_overflow: ExpirationOverflow,
}

impl Limits {
    /// The last deletion time of mode `CASSANDRA_4`: 2038-01-19T03:14:06Z.
    pub const MAX_DELETION_TIME_CASSANDRA_4: i64 = i32::MAX as i64 - 1;
}

/// The defaults of Cassandra 5.0.
impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_warn_bytes: 5 * 1024,
            batch_fail_bytes: 50 * 1024,
            unlogged_batch_partitions_warn: 10,
            max_deletion_time: Self::MAX_DELETION_TIME_CASSANDRA_4,
            expiration_overflow: ExpirationOverflow::Reject,
        }
    }
}

/// One execution of a statement.
pub struct Bind<'a> {
    /// The values of its markers.
    pub values: &'a dyn Values,
    /// The timestamp of what it writes, in microseconds: the request's, else one unique to this
    /// node. `USING TIMESTAMP` comes before it.
    pub timestamp: i64,
    /// "Now", in seconds since the epoch: fixed by the coordinator for the whole request.
    pub now_seconds: i64,
    /// "Now" in milliseconds, for `now()` and its kin.
    pub now_millis: i64,
    /// Version of the native protocol: collections in values have its form.
    pub protocol_version: u8,
    /// Gives version 1 UUIDs that nobody else gives, each later than the one before: for `now()`.
    pub time_uuid: &'a dyn Fn() -> [u8; 16],
    /// Gives them for the cells of lists: in a round of Paxos they have the time of its ballot.
    pub list_path: &'a dyn Fn() -> [u8; 16],
    /// Gives 16 random bytes, for `uuid()`.
    pub random: &'a dyn Fn() -> [u8; 16],
    /// Thresholds of the operator.
    pub limits: &'a Limits,
    /// Who watches over the request, if it is an ordinary user's.
    pub guard: Option<&'a Guard>,
    /// What binds a modification takes this away.
    pub once: Once,
}

/// Keeps a [`Bind`] from being copied: whoever binds a modification a second time, to other values,
/// has to say so.
#[derive(Debug, Default)]
pub struct Once(());

impl Bind<'_> {
    /// Has the guard check something, if there is one.
    #[inline]
    pub(crate) fn guarded(
        &self,
        check: impl FnOnce(&Guard) -> Result<(), CqlError>,
    ) -> Result<(), CqlError> {
        self.guard.map_or(Ok(()), check)
    }
}
