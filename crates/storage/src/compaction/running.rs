//! Compactions under way, for the operator: shown, and stopped.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use schema::TableId;

/// A compaction under way.
#[derive(Debug)]
pub struct RunningCompaction {
    /// A time-UUID.
    pub id: [u8; 16],
    /// The table.
    pub table: TableId,
    /// The kind of operation, in Cassandra's words.
    pub kind: &'static str,
    /// Bytes of its inputs' data, as stored.
    pub total: u64,
    /// Those of them that are behind, or what is written if that is more.
    pub written: Cell<u64>,
    /// Number of its inputs.
    pub sstables: usize,
    /// Their numbers, where they may be needed for something else.
    pub(crate) inputs: Vec<u64>,
    /// Where it writes to.
    pub directory: PathBuf,
    /// It is to stop, and leave the table as it was.
    pub stop: Rc<Cell<bool>>,
}

/// The compactions under way.
#[derive(Debug, Default)]
pub(crate) struct RunningCompactions(RefCell<Vec<Rc<RunningCompaction>>>);

/// Removes a compaction from those under way when it ends, however it does.
pub(crate) struct Running<'a>(&'a RunningCompactions, Rc<RunningCompaction>);

impl Running<'_> {
    pub fn shown(&self) -> &Rc<RunningCompaction> {
        &self.1
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.1));
    }
}

impl RunningCompactions {
    /// Shows one among those under way.
    pub fn show(&self, compaction: RunningCompaction) -> Running<'_> {
        let compaction = Rc::new(compaction);
        self.0.borrow_mut().push(Rc::clone(&compaction));
        Running(self, compaction)
    }

    pub fn all(&self) -> Vec<Rc<RunningCompaction>> {
        self.0.borrow().clone()
    }

    /// Stops those that `which` names; how many. They leave the table as it was.
    pub fn stop(&self, which: impl Fn(&RunningCompaction) -> bool) -> usize {
        let running = self.0.borrow();
        let stopped = running.iter().filter(|running| which(running));
        stopped.map(|running| running.stop.set(true)).count()
    }
}
