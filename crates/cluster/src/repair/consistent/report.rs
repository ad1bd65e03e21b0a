//! What operators ask of incremental repairs: what waits for them, and when tables were repaired.

use std::rc::Rc;

use repair::wire::SessionState;
use schema::TableId;
use storage::Engine;
use types::{TokenRange, Uuid};

use super::sections::sections;
use super::sessions::LocalSessions;

/// SSTables and bytes of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingPart {
    /// Bytes of data, as stored.
    pub bytes: u64,
    /// SSTables.
    pub sstables: u64,
    /// The sessions.
    pub sessions: Vec<Uuid>,
}

impl PendingPart {
    fn add(&mut self, session: Uuid, of: storage::PendingSSTables) {
        self.bytes += of.bytes;
        self.sstables += of.count;
        self.sessions.push(session);
    }
}

/// What of a table waits for the end of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingOf {
    /// All of it.
    pub total: PendingPart,
    /// Of sessions under way.
    pub pending: PendingPart,
    /// Of those that succeeded.
    pub finalized: PendingPart,
    /// Of those that failed.
    pub failed: PendingPart,
}

/// Parts of a table, and when each was repaired last: milliseconds since 1970, 0 for never.
pub type RepairedParts = Vec<(TokenRange, i64)>;

/// Sessions of a table that are over, by whether their SSTables wait no more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// Those that have none left.
    pub done: Vec<Uuid>,
    /// Those that still have.
    pub left: Vec<Uuid>,
}

/// Ranges and times of repairs of a table that succeeded.
pub(super) fn finalized(sessions: &LocalSessions, table: TableId) -> Vec<(Vec<TokenRange>, i64)> {
    let is_meant = |session: &super::session::LocalSession| {
        session.state == SessionState::Finalized
            && session.repaired_at != 0
            && session.tables.contains(&table)
    };
    let all = sessions.all().into_iter().filter(is_meant);
    all.map(|session| (session.ranges.into_iter().collect(), session.repaired_at)).collect()
}

/// What is known of incremental repairs.
pub struct RepairReport {
    engine: Rc<Engine>,
    sessions: Rc<LocalSessions>,
}

impl RepairReport {
    pub(in crate::repair) fn new(engine: &Rc<Engine>, sessions: &Rc<LocalSessions>) -> Self {
        Self { engine: Rc::clone(engine), sessions: Rc::clone(sessions) }
    }

    /// What of a table waits for sessions of these ranges.
    pub fn pending_of(&self, table: TableId, ranges: &[TokenRange]) -> PendingOf {
        let mut all = PendingOf::default();
        let Some(node) = self.engine.node() else { return all };
        for (id, tables) in node.repairs().pending_sessions() {
            let Some(of) = tables.get(&table).copied() else { continue };
            let session = self.sessions.get(id).filter(|session| session.meets(ranges));
            let Some(session) = session else { continue };
            all.total.add(id, of);
            match session.state {
                SessionState::Finalized => all.finalized.add(id, of),
                SessionState::Failed => all.failed.add(id, of),
                _ => all.pending.add(id, of),
            }
        }
        all
    }

    /// When parts of a table were repaired.
    pub fn repaired(&self, table: TableId, ranges: &[TokenRange]) -> RepairedParts {
        sections(ranges, &finalized(&self.sessions, table))
    }

    /// Releases what sessions of a table that are over left.
    pub async fn clean_up(&self, table: TableId, ranges: &[TokenRange]) -> CleanedUp {
        let mut cleaned = CleanedUp::default();
        for session in self.sessions.all() {
            let is_meant = session.is_over()
                && session.tables.contains(&table)
                && session.meets(ranges)
                && self.sessions.has_data(session.id);
            if !is_meant {
                continue;
            }
            match self.sessions.release(&session).await {
                true => cleaned.done.push(session.id),
                false => cleaned.left.push(session.id),
            }
        }
        cleaned
    }
}
