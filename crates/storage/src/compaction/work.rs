//! What a compaction is to do with which files.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use schema::{Table, TombstoneOption};

use super::choice::Choice;
use crate::node::NodeTable;
use crate::scrub::{Scrub, Scrubbed};
use crate::sstables::SSTable;

/// What is done with a task's inputs.
#[derive(Clone, Copy)]
pub(crate) enum Work<'a> {
    /// They are merged.
    Merge,
    /// The same, without what others make needless.
    Collect(TombstoneOption),
    /// The one is rewritten without what cannot be read; what became of it is noted.
    Scrub(Scrub, &'a RefCell<Vec<Scrubbed>>),
}

/// A choice with the files that it names.
pub(crate) struct Task<'a> {
    pub table: Arc<Table>,
    pub node_table: Rc<NodeTable>,
    pub choice: Choice,
    pub inputs: Vec<Arc<SSTable>>,
    pub work: Work<'a>,
}
