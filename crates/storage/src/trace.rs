//! What one traced request went through, on whatever shards it went.
//!
//! A trace travels with a request's tasks over the shards. Sites note an event where it is on.
//! `crates/cluster/src/tracing.rs` writes the events to tables.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env::{Env, Instant};

/// Events of one trace; what a request goes through beyond is counted and left out.
pub const EVENTS_MAX: usize = 4_096;

/// Something that a request went through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// When, in microseconds since the epoch; no two events of a node have the same.
    pub at: i64,
    /// Since the trace began.
    pub elapsed: Duration,
    /// The shard that it was on.
    pub shard: usize,
    /// What it was, in words.
    pub activity: String,
}

/// The trace of a request; of almost all of them it is off. Copies, on other shards too, are the
/// same trace: only who asked for a trace pays for the lock.
#[derive(Clone, Debug, Default)]
pub struct Trace(Option<Arc<Session>>);

#[derive(Debug)]
struct Session {
    id: [u8; 16],
    started: Instant,
    noted: Mutex<Noted>,
}

/// What a trace has come to.
#[derive(Debug, Default)]
pub struct Noted {
    /// What happened, in order.
    pub events: Vec<TraceEvent>,
    /// Events beyond [`EVENTS_MAX`].
    pub left_out: usize,
}

impl Session {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, env: &Env, activity: String) {
        let mut noted = self.noted();
        if noted.events.len() >= EVENTS_MAX {
            noted.left_out += 1;
            return;
        }
        let elapsed = env.now().since(self.started);
        noted.events.push(TraceEvent {
            at: env.unique_micros(),
            elapsed,
            shard: env.shard(),
            activity,
        });
    }
}

impl Trace {
    /// The trace of a request that nobody traces.
    pub const OFF: Self = Self(None);

    /// A trace that begins now.
    pub fn start(env: &Env, id: [u8; 16]) -> Self {
        Self(Some(Arc::new(Session { id, started: env.now(), noted: Mutex::default() })))
    }

    /// Is anything noted?
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The session's id.
    pub fn id(&self) -> Option<[u8; 16]> {
        self.0.as_ref().map(|session| session.id)
    }

    /// When it began.
    pub fn started(&self) -> Option<Instant> {
        self.0.as_ref().map(|session| session.started)
    }

    /// Notes an event, which is put into words only where somebody traces.
    #[inline]
    pub fn note(&self, env: &Env, activity: impl FnOnce() -> String) {
        if let Some(session) = &self.0 {
            session.note(env, activity());
        }
    }

    /// All that was noted so far.
    pub fn take(&self) -> Noted {
        self.0.as_ref().map(|session| std::mem::take(&mut *session.noted())).unwrap_or_default()
    }
}
