//! A way to a node, whatever it is made of.

use std::rc::Rc;

use crate::cql_node::CqlNode;
use crate::failed::Failed;
use crate::operation::{Answer, Query, Write};

/// What [`Target::maintain`] may be asked for.
pub(crate) const FLUSH: u64 = 1 << 8;
pub(crate) const COMPACT: u64 = 3 << 16;

/// A way to a node. A connection ends at some shard; which one, the number decides.
pub trait Target {
    /// Writes; done when it returns. `now` is the second that TTLs count from; where the node takes
    /// its own clock for that, it calls `written_at` with it.
    async fn write(
        &self,
        connection: u64,
        write: &Write,
        now: i64,
        written_at: Box<dyn FnOnce(i64)>,
    ) -> Result<(), Failed>;

    /// Reads one partition, at the second `now` or that of the node's own clock.
    async fn read(&self, connection: u64, query: &Query, now: i64) -> Result<Answer, Failed>;

    /// Empties a table.
    async fn truncate(&self, connection: u64, table: u8) -> Result<(), Failed>;

    /// The shard where a connection ends; `None` if that cannot be told.
    async fn shard_of(&self, connection: u64) -> Option<usize>;

    /// Asks for something that an operator may ask for at any time: [`FLUSH`], [`COMPACT`] or what
    /// else the number says of a table, which its lowest bit names.
    async fn maintain(&self, what: u64) -> Result<(), Failed>;

    /// Does it take writes of several partition keys? Those of one key are one write, others may
    /// come in part.
    fn takes_batches(&self) -> bool;

    /// The way to its counters, if it has any.
    fn counters(self: Rc<Self>) -> Option<Rc<CqlNode>> {
        None
    }
}
