//! Changing what incremental repair knows of SSTables: stamped where all of one changes, rewritten
//! as two where a part does (`CompactionManager.performAnticompaction`).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use schema::TableId;

use super::hold::{Held, Holder};
use super::schedule::Compactions;
use super::work::{Task, Work};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::node_tables::Division;
use crate::repair_status::RepairStatus;
use crate::sstables::SSTable;
use crate::strategies::{Choice, Reason};

/// How much of an SSTable changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Nothing,
    Some,
    All,
}

impl Held {
    /// Gives what SSTables have in ranges another state. An SSTable that has nothing there stays as
    /// it is.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written, or it is stopped: what was done stays.
    pub async fn divide(
        &mut self,
        division: &Division,
        stop: &Rc<Cell<bool>>,
    ) -> Result<(), StorageError> {
        let engine = self.compactions.tables.engine()?;
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        for sstable in std::mem::take(&mut self.sstables) {
            match part_of(&engine, &sstable, division).await? {
                Part::Nothing => {}
                Part::All if sstable.is_stampable() => whole.push(sstable),
                Part::All | Part::Some => parts.push(sstable),
            }
        }
        // what takes long first: stopped before the rest, it has changed less
        if !parts.is_empty() {
            let _slot = self.compactions.slots.wait().await;
            for sstable in parts {
                self.divide_one(&engine, &sstable, (division, stop)).await?;
            }
        }
        self.stamp(&engine, &whole, (division.inside, stop)).await
    }

    /// Gives all that SSTables have another state.
    ///
    /// # Errors
    /// As [`Self::divide`].
    pub async fn restate(
        &mut self,
        status: RepairStatus,
        stop: &Rc<Cell<bool>>,
    ) -> Result<(), StorageError> {
        let engine = self.compactions.tables.engine()?;
        let division = Division { ranges: Vec::new(), inside: status, outside: status };
        let stampable = |sstable: &Arc<SSTable>| sstable.is_stampable();
        let all = std::mem::take(&mut self.sstables);
        let (whole, others): (Vec<_>, Vec<_>) = all.into_iter().partition(stampable);
        self.stamp(&engine, &whole, (status, stop)).await?;
        if !others.is_empty() {
            let _slot = self.compactions.slots.wait().await;
            for sstable in others {
                self.divide_one(&engine, &sstable, (&division, stop)).await?;
            }
        }
        Ok(())
    }

    async fn divide_one(
        &self,
        engine: &Rc<Engine>,
        sstable: &Arc<SSTable>,
        (division, stop): (&Division, &Rc<Cell<bool>>),
    ) -> Result<(), StorageError> {
        if stop.get() {
            return Err(StorageError::Interrupted);
        }
        let inputs = vec![Arc::clone(sstable)];
        let choice = Choice {
            level: sstable.level(),
            ..Choice::merge(vec![sstable.number], Reason::Anticompaction)
        };
        let work = Work::Divide(division, stop);
        let task = Task { of: self.of.clone(), choice, inputs, work };
        self.compactions.tasks.run(engine, &task).await.map(drop)
    }

    /// Writes the metadata of SSTables anew, as far as they are still there.
    async fn stamp(
        &self,
        engine: &Rc<Engine>,
        whole: &[Arc<SSTable>],
        (status, stop): (RepairStatus, &Rc<Cell<bool>>),
    ) -> Result<(), StorageError> {
        for sstable in whole {
            if stop.get() {
                return Err(StorageError::Interrupted);
            }
            // A snapshot links the metadata as a whole, and removal waits for the table's last
            // change.
            let _change = self.of.node.change().await;
            let is_held = self.of.compactions.is_busy(sstable.number);
            assert!(is_held, "only SSTables that no compaction works on change their state");
            if self.of.node.live().tables().iter().any(|it| it.number == sstable.number) {
                sstable.set_repair_status(engine.env(), status).await?;
            }
        }
        Ok(())
    }
}

/// An SSTable is damaged: what it lacks was perhaps repaired, and it does not count as repaired any
/// more. Metadata of another version stay.
///
/// # Errors
/// If that cannot be made durable.
pub(crate) async fn doubt(
    compactions: &Rc<Compactions>,
    id: TableId,
    damaged: &SSTable,
) -> Result<(), StorageError> {
    let never = Rc::default();
    let holder = Holder { session: None, stops: false, cancelled: &never };
    let is_it = |sstable: &SSTable| {
        let is_repaired = sstable.is_stampable() && sstable.repair_status().is_repaired();
        Ok(is_repaired && sstable.number == damaged.number)
    };
    let done = async {
        let mut held = Held::take(compactions, id, &holder, &is_it).await?;
        held.restate(RepairStatus::Unrepaired, &never).await
    };
    let done = done.await;
    compactions.want(id);
    done
}

async fn part_of(
    engine: &Engine,
    sstable: &Arc<SSTable>,
    division: &Division,
) -> Result<Part, StorageError> {
    let sections = engine.sections(sstable, &division.ranges).await?;
    let bytes: u64 = sections.iter().map(|(from, to)| to - from).sum();
    Ok(match bytes {
        0 => Part::Nothing,
        _ if bytes == sstable.table.uncompressed_length() => Part::All,
        _ if engine.env().planted("anticompaction_takes_all") => Part::All,
        _ => Part::Some,
    })
}
