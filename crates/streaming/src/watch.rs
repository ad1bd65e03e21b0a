//! Watches a session while it is under way: says now and then how far it is, and sees files whose
//! arrival the other node does not acknowledge.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use env::sync::Notify;
use env::{Env, Instant};
use metrics::Level;
use schema::TableId;

use crate::host::Host;
use crate::progress::Progress;
use crate::said::{SAID_EVERY, so_far};
use crate::session::SessionId;

/// Of a session: which file of which table.
pub(crate) type FileNumber = (TableId, i32);

/// Of one session.
#[derive(Default)]
pub(crate) struct Watch {
    is_over: Cell<bool>,
    stirred: Notify,
    /// Files that were sent, and when each is to be acknowledged: the first one first.
    sent: RefCell<VecDeque<(Instant, FileNumber)>>,
}

impl Watch {
    /// All of a file was sent.
    pub fn sent(&self, file: FileNumber, acknowledged_by: Instant) {
        self.sent.borrow_mut().push_back((acknowledged_by, file));
        self.stirred.notify_one();
    }

    /// The session is over.
    pub fn end(&self) {
        self.is_over.set(true);
        self.stirred.notify_one();
    }

    /// Watches until the session is over, or a file is not acknowledged in time: true then.
    pub async fn run(
        &self,
        env: &Env,
        host: &dyn Host,
        (id, progress): (SessionId, &Progress),
        is_due: impl Fn(&FileNumber) -> bool,
    ) -> bool {
        let mut said = env.now();
        while !self.is_over.get() {
            let wake = self.first_due(&is_due).unwrap_or(Instant::FAR_FUTURE);
            let now = env.now();
            if wake <= now {
                return true;
            }
            if now.since(said) >= SAID_EVERY {
                said = now;
                host.note(Level::Info, so_far(id, progress, now));
            }
            let _ = env.timeout_at(wake.min(said + SAID_EVERY), self.stirred.notified()).await;
        }
        false
    }

    /// When the first file that is not acknowledged yet is to be.
    fn first_due(&self, is_due: impl Fn(&FileNumber) -> bool) -> Option<Instant> {
        let mut sent = self.sent.borrow_mut();
        while sent.front().is_some_and(|(_, file)| !is_due(file)) {
            sent.pop_front();
        }
        sent.front().map(|(by, _)| *by)
    }
}
