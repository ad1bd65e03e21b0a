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

impl Compactions {
    /// Gives what SSTables have in ranges another state. An SSTable that has nothing there stays as
    /// it is.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written, or it is stopped: what was done stays.
    pub(crate) async fn divide(
        &self,
        held: &Held,
        division: &Division,
        stop: &Rc<Cell<bool>>,
    ) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        for sstable in &held.sstables {
            match part_of(&engine, sstable, division).await? {
                Part::Nothing => {}
                Part::All if sstable.is_stampable() => whole.push(Arc::clone(sstable)),
                Part::All | Part::Some => parts.push(Arc::clone(sstable)),
            }
        }
        // what takes long first: stopped before the rest, it has changed less
        if !parts.is_empty() {
            let _slot = self.slots.wait().await;
            for sstable in parts {
                self.divide_one(&engine, held, &sstable, (division, stop)).await?;
            }
        }
        self.stamp(&engine, held, &whole, (division.inside, stop)).await
    }

    /// Gives all that SSTables have another state.
    ///
    /// # Errors
    /// As [`Self::divide`].
    pub(crate) async fn restate(
        &self,
        held: &Held,
        status: RepairStatus,
        stop: &Rc<Cell<bool>>,
    ) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        let division = Division { ranges: Vec::new(), inside: status, outside: status };
        let stampable = |sstable: &Arc<SSTable>| sstable.is_stampable();
        let (whole, others): (Vec<_>, Vec<_>) = held.sstables.iter().cloned().partition(stampable);
        self.stamp(&engine, held, &whole, (status, stop)).await?;
        if !others.is_empty() {
            let _slot = self.slots.wait().await;
            for sstable in others {
                self.divide_one(&engine, held, &sstable, (&division, stop)).await?;
            }
        }
        Ok(())
    }

    /// An SSTable is damaged: what it lacks was perhaps repaired, and it does not count as repaired
    /// any more. Metadata of another version stay.
    ///
    /// # Errors
    /// If that cannot be made durable.
    pub(crate) async fn doubt(&self, damaged: &SSTable, id: TableId) -> Result<(), StorageError> {
        let never = Rc::default();
        let holder = Holder { session: None, stops: false, cancelled: &never };
        let is_it = |sstable: &SSTable| Ok(sstable.number == damaged.number);
        let held = self.hold(id, &holder, &is_it).await;
        // what was kept from beginning meanwhile begins behind this
        self.want(id);
        let (held, engine) = (held?, self.tables.engine()?);
        let is_repaired =
            |it: &&Arc<SSTable>| it.is_stampable() && it.repair_status().is_repaired();
        let whole: Vec<_> = held.sstables.iter().filter(is_repaired).cloned().collect();
        self.stamp(&engine, &held, &whole, (RepairStatus::Unrepaired, &never)).await
    }

    async fn divide_one(
        &self,
        engine: &Rc<Engine>,
        held: &Held,
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
        let task = Task { of: held.of.clone(), choice, inputs, work };
        self.tasks.run(engine, &task).await.map(drop)
    }

    /// Writes the metadata of SSTables anew, as far as they are still there.
    async fn stamp(
        &self,
        engine: &Rc<Engine>,
        held: &Held,
        whole: &[Arc<SSTable>],
        (status, stop): (RepairStatus, &Rc<Cell<bool>>),
    ) -> Result<(), StorageError> {
        for sstable in whole {
            if stop.get() {
                return Err(StorageError::Interrupted);
            }
            // A snapshot links the metadata as a whole, and removal waits for the table's last
            // change.
            let _change = held.of.node.change().await;
            let is_held = held.sstables.iter().any(|it| it.number == sstable.number);
            assert!(is_held, "only SSTables that no compaction works on change their state");
            if held.of.node.live().tables().iter().any(|it| it.number == sstable.number) {
                sstable.set_repair_status(engine.env(), status).await?;
                engine.env().mark("repair.stamped");
            }
        }
        Ok(())
    }
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
