//! What an incremental repair has SSTables do: those with keys in its ranges become pending, and
//! repaired or unrepaired again when its session ends (`PendingAntiCompaction`,
//! `PendingRepairManager`).
//!
//! It knows no sessions but by the SSTables that name them: whoever has the sessions says when one
//! ended, and releases those that nobody knows.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use env::Class;
use env::sync::oneshot;
use schema::TableId;
use types::{TokenRange, Uuid};

use crate::compaction::{Compactions, Held, Holder};
use crate::error::StorageError;
use crate::flush::Flushes;
use crate::node_tables::{Division, NodeTables};
use crate::repair_status::RepairStatus;
use crate::sstables::SSTable;

/// What a session of incremental repair wants.
#[derive(Clone, Debug)]
pub struct Anticompaction {
    /// The session.
    pub session: Uuid,
    /// Tables, and which ranges of them: normalized.
    pub tables: BTreeMap<TableId, Vec<TokenRange>>,
    /// Sessions that ended well, and whose SSTables are about to be released: these are no obstacle
    /// (`LocalSessions.isSessionFinalized`).
    pub finalized: Vec<Uuid>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that was pending is repaired, at this time in milliseconds since 1970.
    Repaired(i64),
    /// It failed: nothing is repaired.
    Failed,
}

/// SSTables of a table that are pending in a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingSSTables {
    /// How many.
    pub count: u64,
    /// Bytes of their data, as stored.
    pub bytes: u64,
}

/// By session and table.
pub type PendingSessions = BTreeMap<Uuid, BTreeMap<TableId, PendingSSTables>>;

/// Bytes of a table's data, before compression, by what incremental repair knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairedBytes {
    /// Of repaired SSTables.
    pub repaired: u64,
    /// Of those that no session has seen.
    pub unrepaired: u64,
    /// Of those that are pending in a session.
    pub pending: u64,
}

/// Incremental repair's side of the node's SSTables.
pub struct Repairs {
    tables: Rc<NodeTables>,
    compactions: Rc<Compactions>,
    flushes: Rc<Flushes>,
}

/// Stops what nobody waits for any more.
struct StopOnDrop(Option<Rc<Cell<bool>>>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(stop) = &self.0 {
            stop.set(true);
        }
    }
}

/// Has an SSTable keys between the first and the last of a range?
fn meets(sstable: &SSTable, ranges: &[TokenRange]) -> bool {
    let (first, last) = sstable.table.tokens();
    ranges.iter().any(|range| first.0 <= range.end() && range.left < last)
}

impl Repairs {
    pub(crate) fn new(
        tables: &Rc<NodeTables>,
        compactions: &Rc<Compactions>,
        flushes: &Rc<Flushes>,
    ) -> Rc<Self> {
        Rc::new(Self {
            tables: Rc::clone(tables),
            compactions: Rc::clone(compactions),
            flushes: Rc::clone(flushes),
        })
    }

    /// Makes what is in ranges of some tables pending in a session. Memtables are flushed first;
    /// then the SSTables of all tables are held, so that the session sees one moment of each; then
    /// they are stamped or split. SSTables that are pending in this session already stay so.
    ///
    /// It runs among compactions and keeps to their throughput. Set `cancel`, or drop the future,
    /// to stop it.
    ///
    /// # Errors
    /// If another session has some of the SSTables, if they cannot be had, read or written, or if
    /// it is stopped: then what it made pending is not any more.
    pub async fn anticompact(
        self: &Rc<Self>,
        wanted: Anticompaction,
        cancel: Rc<Cell<bool>>,
    ) -> Result<(), StorageError> {
        let (sender, receiver) = oneshot();
        let (me, stop) = (Rc::clone(self), Rc::clone(&cancel));
        self.tables.env().spawn(Class::Compaction, async move {
            let _ = sender.send(me.try_anticompact(&wanted, &stop).await);
        });
        let mut stops = StopOnDrop(Some(cancel));
        let ended = receiver.await;
        stops.0 = None;
        ended.unwrap_or(Err(StorageError::Stopping(crate::shards::Stopping)))
    }

    async fn try_anticompact(
        &self,
        wanted: &Anticompaction,
        stop: &Rc<Cell<bool>>,
    ) -> Result<(), StorageError> {
        for id in wanted.tables.keys() {
            if !self.tables.env().planted("repair_sets_apart_without_flush") {
                self.flushes.flush(*id).await?;
            }
        }
        let mut held = self.hold_all(wanted, stop).await;
        let divided = match &mut held {
            Ok(held) => self.divide_all(wanted, held, stop).await,
            Err(_) => Ok(()),
        };
        let held = held.map(drop);
        if divided.is_err() {
            // The table is as it was but for where its SSTables end. What cannot be undone now is
            // when the session is released.
            let tables = wanted.tables.keys().copied().collect::<Vec<_>>();
            let _ = self.release_of(&tables, wanted.session, Outcome::Failed).await;
        }
        if !self.tables.env().planted("compactions_not_resumed") {
            wanted.tables.keys().for_each(|id| self.compactions.want(*id));
        }
        held.and(divided)
    }

    /// Holds the SSTables of all tables. Always in the same order: two sessions do not wait for
    /// each other.
    async fn hold_all(
        &self,
        wanted: &Anticompaction,
        stop: &Rc<Cell<bool>>,
    ) -> Result<Vec<Held>, StorageError> {
        let session = wanted.session;
        let holder = Holder { session: Some(session), stops: true, cancelled: stop };
        let mut held = Vec::with_capacity(wanted.tables.len());
        for (id, ranges) in &wanted.tables {
            let is_wanted = |sstable: &SSTable| match sstable.repair_status() {
                RepairStatus::Unrepaired => Ok(meets(sstable, ranges)),
                RepairStatus::Pending(other) if other != session => {
                    let is_obstacle = meets(sstable, ranges) && !wanted.finalized.contains(&other);
                    match is_obstacle {
                        true => Err(StorageError::PendingElsewhere { session, other }),
                        false => Ok(false),
                    }
                }
                RepairStatus::Pending(_) | RepairStatus::Repaired(_) => Ok(false),
            };
            held.push(Held::take(&self.compactions, *id, &holder, &is_wanted).await?);
        }
        Ok(held)
    }

    async fn divide_all(
        &self,
        wanted: &Anticompaction,
        held: &mut [Held],
        stop: &Rc<Cell<bool>>,
    ) -> Result<(), StorageError> {
        let inside = RepairStatus::Pending(wanted.session);
        for (held, ranges) in held.iter_mut().zip(wanted.tables.values()) {
            let outside = RepairStatus::Unrepaired;
            let division = Division { ranges: ranges.clone(), inside, outside };
            held.divide(&division, stop).await?;
        }
        Ok(())
    }

    /// A session ended: what is pending in it is repaired, or not. To be done again after a crash,
    /// and when more of it arrived since.
    ///
    /// # Errors
    /// If an SSTable cannot be had or written: some may be pending still.
    pub async fn release(&self, session: Uuid, outcome: Outcome) -> Result<(), StorageError> {
        let pending = self.pending(session);
        let tables: Vec<TableId> = pending.keys().copied().collect();
        self.release_of(&tables, session, outcome).await
    }

    async fn release_of(
        &self,
        tables: &[TableId],
        session: Uuid,
        outcome: Outcome,
    ) -> Result<(), StorageError> {
        let status = match outcome {
            Outcome::Repaired(at) => RepairStatus::of(at, None),
            Outcome::Failed => RepairStatus::Unrepaired,
        };
        let is_its =
            |sstable: &SSTable| Ok(sstable.repair_status() == RepairStatus::Pending(session));
        self.restate(tables, &is_its, status).await.map(drop)
    }

    /// Gives SSTables of a table that are not pending another state: repaired at this time in
    /// milliseconds since 1970, or at 0 for never. How many there were. (`SSTableRepairedAtSetter`)
    ///
    /// # Errors
    /// If one cannot be had or written.
    pub async fn mark(
        &self,
        table: TableId,
        which: impl Fn(&SSTable) -> bool,
        repaired_at: i64,
    ) -> Result<usize, StorageError> {
        let status = RepairStatus::of(repaired_at, None);
        let is_named = |sstable: &SSTable| {
            let is_free = sstable.repair_status().session().is_none();
            Ok(is_free && sstable.repair_status() != status && which(sstable))
        };
        self.restate(&[table], &is_named, status).await
    }

    async fn restate(
        &self,
        tables: &[TableId],
        choose: &dyn Fn(&SSTable) -> Result<bool, StorageError>,
        status: RepairStatus,
    ) -> Result<usize, StorageError> {
        let never = Rc::default();
        let holder = Holder { session: None, stops: true, cancelled: &never };
        let mut count = 0;
        for id in tables {
            let done = async {
                let mut held = Held::take(&self.compactions, *id, &holder, choose).await?;
                let count = held.count();
                held.restate(status, &never).await?;
                Ok(count)
            };
            let done = done.await;
            self.compactions.want(*id);
            match done {
                // it was dropped since
                Err(StorageError::UnknownTable(_)) => {}
                done => count += done?,
            }
        }
        Ok(count)
    }

    /// What is pending in each session (`nodetool repair_admin summarize-pending`).
    pub fn pending_sessions(&self) -> PendingSessions {
        let mut sessions = PendingSessions::new();
        let Ok(engine) = self.tables.engine() else { return sessions };
        for (id, _) in engine.stores() {
            for sstable in self.tables.table(id).live().tables() {
                if let Some(session) = sstable.repair_status().session() {
                    let of_session = sessions.entry(session).or_default();
                    let of_table = of_session.entry(id).or_default();
                    of_table.count += 1;
                    of_table.bytes += sstable.table.data_length;
                }
            }
        }
        sessions
    }

    /// What is pending in a session, by table.
    pub fn pending(&self, session: Uuid) -> BTreeMap<TableId, PendingSSTables> {
        self.pending_sessions().remove(&session).unwrap_or_default()
    }

    /// The sessions that SSTables with keys between the ends of these ranges, which are normalized,
    /// are pending in: whoever validates what is repaired waits for these.
    pub fn pending_in(&self, table: TableId, ranges: &[TokenRange]) -> Vec<Uuid> {
        let live = self.tables.table(table).live();
        let met = live.tables().iter().filter(|sstable| meets(sstable, ranges));
        let mut sessions: Vec<_> = met.filter_map(|it| it.repair_status().session()).collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// Bytes of a table by what incremental repair knows of them.
    pub fn bytes(&self, table: TableId) -> RepairedBytes {
        let mut bytes = RepairedBytes::default();
        for sstable in self.tables.table(table).live().tables() {
            let sum = match sstable.repair_status() {
                RepairStatus::Repaired(_) => &mut bytes.repaired,
                RepairStatus::Unrepaired => &mut bytes.unrepaired,
                RepairStatus::Pending(_) => &mut bytes.pending,
            };
            *sum += sstable.table.uncompressed_length();
        }
        bytes
    }
}
