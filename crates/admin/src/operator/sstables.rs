//! What is done with SSTables of tables one by one.

use crate::model::TableName;

use super::Answer;

/// What is done with SSTables of tables one by one.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait SSTablesOperator {
    /// Flushes tables of a keyspace that exists: all if `tables` is empty. A table that is none is
    /// [`Failed`](crate::Refusal::Failed) (`Unknown keyspace/cf pair (ks.t)`).
    async fn flush(&self, keyspace: &str, tables: &[String]) -> Answer<()>;
    /// Rewrites the SSTables of tables, chosen as in [`flush`](Self::flush), in the version that
    /// the node writes: those of others, or `all`.
    async fn upgrade(&self, keyspace: &str, tables: &[String], all: bool) -> Answer<()>;
    /// Rewrites the SSTables of tables, chosen as in [`flush`](Self::flush), without what cannot be
    /// read.
    async fn scrub(&self, keyspace: &str, tables: &[String], how: Scrub) -> Answer<()>;
    /// Looks for damage in the SSTables of tables, chosen as in [`flush`](Self::flush). Damage is
    /// [`Failed`](crate::Refusal::Failed).
    async fn verify(&self, keyspace: &str, tables: &[String], how: Verify) -> Answer<()>;
    /// Drops what is deleted, or with `cells` written over, in other SSTables, of tables chosen as
    /// in [`flush`](Self::flush).
    async fn garbage_collect(&self, keyspace: &str, tables: &[String], cells: bool) -> Answer<()>;
    /// Drops what this node does not own of tables, chosen as in [`flush`](Self::flush).
    async fn cleanup(&self, keyspace: &str, tables: &[String]) -> Answer<()>;
    /// Moves the SSTables of tables, chosen as in [`flush`](Self::flush), to the directories where
    /// they belong.
    async fn relocate(&self, keyspace: &str, tables: &[String]) -> Answer<()>;
    /// Takes over SSTables; the directories whose were refused. A directory that is not there is
    /// [`Failed`](crate::Refusal::Failed) (`Directory x does not exist`); so is an unknown table.
    async fn import(&self, import: NewImport) -> Answer<Vec<String>>;
    /// Takes over what was put into the directories of a table. One that is none is
    /// [`BadUse`](crate::Refusal::BadUse).
    async fn refresh(&self, table: &TableName) -> Answer<()>;
}

/// How to scrub SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrub {
    /// A snapshot is taken first.
    pub snapshot: bool,
    /// What cannot be read is left out of counters too.
    pub skip_corrupted: bool,
    /// Values must be some of their types.
    pub validate: bool,
}

/// How to verify SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verify {
    /// All rows are read.
    pub extended: bool,
    /// They are of the version that is written.
    pub check_version: bool,
    /// What is damaged does not count as repaired any more.
    pub mutate_repaired: bool,
    /// No data is read.
    pub quick: bool,
    /// Keys must be of ranges that this node has.
    pub check_tokens: bool,
}

/// SSTables to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewImport {
    /// Into which table.
    pub of: TableName,
    /// Where they are.
    pub directories: Vec<String>,
    /// They keep their levels.
    pub keep_level: bool,
    /// They stay where they are, too.
    pub copy: bool,
    /// All of each is read before.
    pub verify: bool,
}
