//! When something was written, until when it lives, and what deletes it.
//!
//! Timestamps are microseconds by convention of the clients; local deletion times and expirations
//! are seconds since the Unix epoch on the clock of the node that made them.

/// No local deletion time: the thing is alive and does not expire (`Cell.NO_DELETION_TIME`).
pub const NO_DELETION_TIME: i64 = i64::MAX;
/// The latest local deletion time that can be stored: 2106 (`Cell.MAX_DELETION_TIME`).
pub const MAX_DELETION_TIME: i64 = u32::MAX as i64 - 2;
/// What a local deletion time that overflowed or was corrupted is read as
/// (`Cell.INVALID_DELETION_TIME`).
pub const INVALID_DELETION_TIME: i64 = u32::MAX as i64 - 1;
/// The time to live of what does not expire.
pub const NO_TTL: i32 = 0;
/// The timestamp of no write (`LivenessInfo.NO_TIMESTAMP`).
pub const NO_TIMESTAMP: i64 = i64::MIN;
/// The time to live that marks the liveness of a dead view row
/// (`LivenessInfo.EXPIRED_LIVENESS_TTL`).
pub const EXPIRED_LIVENESS_TTL: i32 = i32::MAX;

/// Deletes everything written at or before a timestamp (`DeletionTime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// What was written at or before this is deleted.
    pub marked_for_delete_at: i64,
    /// When the deletion was made, in seconds: decides only when it may be purged.
    pub local_deletion_time: i64,
}

impl Deletion {
    /// Deletes nothing.
    pub const LIVE: Self =
        Self { marked_for_delete_at: NO_TIMESTAMP, local_deletion_time: NO_DELETION_TIME };

    /// A deletion of everything up to `marked_for_delete_at`, made at `local_deletion_time`
    /// seconds.
    pub const fn new(marked_for_delete_at: i64, local_deletion_time: i64) -> Self {
        Self { marked_for_delete_at, local_deletion_time }
    }

    /// Does it delete nothing?
    pub fn is_live(&self) -> bool {
        *self == Self::LIVE
    }

    /// Does it delete what was written at `timestamp`?
    pub fn deletes(&self, timestamp: i64) -> bool {
        timestamp <= self.marked_for_delete_at
    }

    /// Is it the newer deletion; of two at one timestamp, the one made later
    /// (`DeletionTime.supersedes`)?
    pub fn supersedes(&self, other: &Self) -> bool {
        (self.marked_for_delete_at, self.local_deletion_time)
            > (other.marked_for_delete_at, other.local_deletion_time)
    }

    /// The one that supersedes the other.
    pub fn max(self, other: Self) -> Self {
        if other.supersedes(&self) { other } else { self }
    }
}

/// That a row was inserted, and until when that holds (`LivenessInfo`). A row written by UPDATE
/// alone has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Of the INSERT.
    pub timestamp: i64,
    /// Seconds, [`NO_TTL`] if it does not expire.
    pub ttl: i32,
    /// Seconds since the epoch, [`NO_DELETION_TIME`] if it does not expire.
    pub expires_at: i64,
}

impl Liveness {
    /// Of a row that does not expire.
    pub const fn new(timestamp: i64) -> Self {
        Self { timestamp, ttl: NO_TTL, expires_at: NO_DELETION_TIME }
    }

    /// Of a row that expires; a `ttl` of [`NO_TTL`] makes it [`Liveness::new`].
    pub const fn expiring(timestamp: i64, ttl: i32, expires_at: i64) -> Self {
        if ttl == NO_TTL {
            return Self::new(timestamp);
        }
        Self { timestamp, ttl, expires_at }
    }

    /// Has it a time to live?
    pub fn is_expiring(&self) -> bool {
        self.ttl != NO_TTL
    }

    /// Is the row there at `now` (seconds)?
    pub fn is_live(&self, now: i64) -> bool {
        !self.is_expiring() || (self.ttl != EXPIRED_LIVENESS_TTL && now < self.expires_at)
    }

    /// Which of two wins (`LivenessInfo.supersedes`): the later write; then the one that says
    /// "dead"; then the one that expires; then the one that expires later or, if equal, was given
    /// less time.
    pub fn supersedes(&self, other: &Self) -> bool {
        let rank = |l: &Self| {
            (
                l.timestamp,
                l.ttl == EXPIRED_LIVENESS_TTL,
                l.is_expiring(),
                l.expires_at,
                std::cmp::Reverse(l.ttl),
            )
        };
        rank(self) > rank(other)
    }
}
