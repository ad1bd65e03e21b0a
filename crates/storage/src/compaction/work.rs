//! What a compaction is to do with which files.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use schema::{Table, TombstoneOption};
use types::TokenRange;

use super::look::Look;
use super::scrub::{Scrub, Scrubbed};
use super::table::TableCompactions;
use crate::node_tables::{Division, NodeTable};
use crate::repair_status::RepairStatus;
use crate::sstables::SSTable;
use crate::strategies::Choice;

/// What is done with a task's inputs.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    /// They are merged.
    Merge,
    /// The same, without what others make needless.
    Collect(TombstoneOption),
    /// The same, without the partitions outside these ranges: normalized.
    Keep(&'a [TokenRange]),
    /// The one is rewritten without what cannot be read; what became of it is noted.
    Scrub(Scrub, &'a RefCell<Vec<Scrubbed>>),
    /// The one is rewritten as several that a repair keeps apart, with all that is in it, unless it
    /// is to stop.
    Divide(&'a Division, &'a Rc<Cell<bool>>),
}

/// A table, as the node and its compactions have it.
#[derive(Clone)]
pub(crate) struct OfTable {
    pub table: Arc<Table>,
    pub node: Rc<NodeTable>,
    pub compactions: Rc<TableCompactions>,
}

/// A choice with the files that it names.
pub(crate) struct Task<'a> {
    pub of: OfTable,
    pub choice: Choice,
    pub inputs: Vec<Arc<SSTable>>,
    pub work: Work<'a>,
}

impl<'a> Task<'a> {
    /// Of a choice among what was looked at; none if its files are gone, or others work on them, or
    /// a repair has taken some of them apart since.
    pub fn new(look: &Look, of: &OfTable, choice: Choice, work: Work<'a>) -> Option<Self> {
        let find = |number: &u64| {
            let live = look.live.tables().iter().find(|sstable| sstable.number == *number);
            live.filter(|_| !of.compactions.is_busy(*number)).cloned()
        };
        let inputs: Option<Vec<_>> = choice.inputs.iter().map(find).collect();
        let inputs = inputs.filter(|inputs| !inputs.is_empty())?;
        let task = Self { of: of.clone(), choice, inputs, work };
        // a change of levels merges nothing
        let may_meet = task.choice.moves || task.status().is_some();
        (may_meet || look.mixes).then_some(task)
    }

    /// The state of its outputs; none if its inputs must not meet.
    pub fn status(&self) -> Option<RepairStatus> {
        RepairStatus::of_all(self.inputs.iter().map(|input| input.repair_status()))
    }

    /// Are these outputs in the states and levels that a repair needs them in?
    pub fn is_kept_apart(&self, outputs: &[Arc<SSTable>]) -> bool {
        let Some(status) = self.status() else { return false };
        let is_so = |output: &Arc<SSTable>| match (self.work, output.repair_status()) {
            (Work::Divide(division, _), found) => {
                let is_a_side = found == division.inside || found == division.outside;
                is_a_side && output.level() == self.choice.level
            }
            // what lacks something is not repaired any more
            (Work::Scrub(..), RepairStatus::Unrepaired) => status.session().is_none(),
            (_, found) => found == status,
        };
        outputs.iter().all(is_so)
    }

    /// The numbers of its inputs.
    pub fn numbers(&self) -> Vec<u64> {
        self.inputs.iter().map(|input| input.number).collect()
    }
}
