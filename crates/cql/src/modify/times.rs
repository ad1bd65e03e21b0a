//! The times of what a modification writes.

use rows::{Liveness, NO_TIMESTAMP, NO_TTL};

use crate::context::Bind;
use crate::error::CqlError;
use crate::modify::Modify;

/// When a modification writes, and when that expires.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Of all cells, in microseconds.
    pub timestamp: i64,
    /// Their time to live in seconds, 0 for none.
    pub ttl: i32,
    /// When they expire, if they do: capped at what can be stored.
    pub expires_at: i64,
    /// "Now", in seconds.
    pub now_seconds: i64,
}

impl Times {
    /// The times of a modification that writes at `timestamp`.
    pub fn of(
        modify: &Modify,
        bind: &Bind<'_>,
        timestamp: i64,
        warnings: &mut Vec<String>,
    ) -> Result<Self, CqlError> {
        let ttl = modify.attributes.ttl(bind, &modify.table, warnings)?;
        if timestamp == NO_TIMESTAMP {
            return Err(CqlError::invalid(format!(
                "Out of bound timestamp, must be in [{}, {}]",
                i64::MIN + 1,
                i64::MAX
            )));
        }
        let expires_at = bind.now_seconds.saturating_add(ttl.into());
        let expires_at = expires_at.min(bind.limits.max_deletion_time);
        Ok(Self { timestamp, ttl, expires_at, now_seconds: bind.now_seconds })
    }

    /// The liveness of a row inserted now.
    pub fn liveness(&self) -> Liveness {
        match self.ttl {
            NO_TTL => Liveness::new(self.timestamp),
            ttl => Liveness { timestamp: self.timestamp, ttl, expires_at: self.expires_at },
        }
    }
}
