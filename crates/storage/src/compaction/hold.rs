//! SSTables that are held for an incremental repair: what works on them has ended, and no
//! compaction begins on them (`ColumnFamilyStore.runWithCompactionsDisabled`,
//! `LifecycleTransaction`).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use schema::TableId;
use sstable::descriptor::Component;
use types::Uuid;

use super::schedule::Compactions;
use super::table::Busy;
use super::work::OfTable;
use crate::error::StorageError;
use crate::sstables::SSTable;
use crate::strategies::Reason;

/// How long compactions of wanted SSTables may take to end (`PendingAntiCompaction`'s
/// `ACQUIRE_RETRY_SECONDS`).
const HOLD_WITHIN: Duration = Duration::from_secs(60);
/// How often they are looked at.
const HOLD_POLL: Duration = Duration::from_millis(20);

/// Who holds SSTables.
pub(crate) struct Holder<'a> {
    /// A session that anticompacts.
    pub session: Option<Uuid>,
    /// Are compactions stopped that work on them? They are waited for else.
    pub stops: bool,
    /// It is not wanted any more.
    pub cancelled: &'a Rc<Cell<bool>>,
}

/// SSTables of a table that nobody else works on.
pub(crate) struct Held {
    pub(super) compactions: Rc<Compactions>,
    pub(super) of: OfTable,
    /// Those with which nothing was done yet: the files of others are to go meanwhile.
    pub(super) sstables: Vec<Arc<SSTable>>,
    busy: Option<Busy>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.busy.take());
        // what the operator asked for may wait for them
        self.compactions.slots.tell();
    }
}

impl Held {
    /// How many there are with which nothing was done yet.
    pub fn count(&self) -> usize {
        self.sstables.len()
    }

    /// Holds the SSTables of a table that are chosen, all at one moment. No background task of the
    /// table begins meanwhile: afterwards it is to be wanted again
    /// ([`Compactions::want`]).
    ///
    /// # Errors
    /// As `choose` says; if compactions of them do not end, or it is not wanted any more.
    pub async fn take(
        compactions: &Rc<Compactions>,
        id: TableId,
        holder: &Holder<'_>,
        choose: &dyn Fn(&SSTable) -> Result<bool, StorageError>,
    ) -> Result<Held, StorageError> {
        let engine = compactions.tables.engine()?;
        let env = engine.env();
        let of = compactions.of(&engine, id)?;
        let deadline = env.now() + HOLD_WITHIN;
        let paused = of.compactions.pause();
        loop {
            if holder.cancelled.get() || env.is_terminated() {
                return Err(StorageError::Interrupted);
            }
            let mut sstables = Vec::new();
            for sstable in of.node.live().tables() {
                if choose(sstable)? {
                    sstables.push(Arc::clone(sstable));
                }
            }
            let is_busy = |sstable: &&Arc<SSTable>| of.compactions.is_busy(sstable.number);
            let Some(first) = sstables.iter().find(is_busy).cloned() else {
                let busy = Some(of.compactions.hold(&sstables, holder.session));
                drop(paused);
                let compactions = Rc::clone(compactions);
                return Ok(Self { compactions, of, sstables, busy });
            };
            if env.now() >= deadline {
                return Err(not_held(holder, &first, of.compactions.holder(first.number)));
            }
            if holder.stops {
                let is_of = |number: &u64| sstables.iter().any(|it| it.number == *number);
                // another session fails if it is stopped
                let anticompaction = Reason::Anticompaction.operation();
                compactions.stop(|running| {
                    running.kind != anticompaction && running.inputs.iter().any(is_of)
                });
            }
            env.sleep(HOLD_POLL).await;
        }
    }
}

fn not_held(holder: &Holder<'_>, busy: &SSTable, other: Option<Uuid>) -> StorageError {
    match (holder.session, other) {
        (Some(session), Some(other)) => StorageError::AnticompactedElsewhere { session, other },
        (Some(session), None) => StorageError::NotAcquired { session },
        (None, _) => StorageError::Refused {
            path: busy.path(&Component::Data),
            what: format!("a compaction of it did not end within {HOLD_WITHIN:?}"),
        },
    }
}
