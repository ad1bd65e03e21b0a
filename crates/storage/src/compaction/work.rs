//! What a compaction is to do with which files.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use schema::{Table, TombstoneOption};
use types::TokenRange;

use super::look::Look;
use super::scrub::{Scrub, Scrubbed};
use super::table::TableCompactions;
use crate::node_tables::NodeTable;
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
    /// Of a choice among what was looked at; none if its files are gone, or others work on them.
    pub fn new(look: &Look, of: &OfTable, choice: Choice, work: Work<'a>) -> Option<Self> {
        let find = |number: &u64| {
            let live = look.live.tables().iter().find(|sstable| sstable.number == *number);
            live.filter(|_| !of.compactions.is_busy(*number)).cloned()
        };
        let inputs: Option<Vec<_>> = choice.inputs.iter().map(find).collect();
        let inputs = inputs.filter(|inputs| !inputs.is_empty())?;
        Some(Self { of: of.clone(), choice, inputs, work })
    }

    /// The numbers of its inputs.
    pub fn numbers(&self) -> Vec<u64> {
        self.inputs.iter().map(|input| input.number).collect()
    }
}
