//! A shard's commit log, from before it begins: where it stands, and who is told of what happens to
//! it.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use env::Env;
use schema::TableId;

use crate::commitlog::{CommitLog, Inherited, LogOptions, Position, TellLog};
use crate::error::StorageError;
use crate::options::Options;

/// The log of one shard.
#[derive(Default)]
pub(super) struct ShardLog {
    log: OnceCell<Rc<CommitLog>>,
    /// This node's host id: SSTables name it beside the log's intervals. Zero until it is known.
    host_id: Cell<[u8; 16]>,
    told: RefCell<Option<TellLog>>,
}

impl ShardLog {
    pub fn host_id(&self) -> [u8; 16] {
        self.host_id.get()
    }

    pub fn set_host_id(&self, host_id: [u8; 16]) {
        self.host_id.set(host_id);
    }

    pub fn tell(&self, tell: TellLog) {
        self.told.replace(Some(tell));
    }

    /// None before it begins.
    pub fn get(&self) -> Option<&Rc<CommitLog>> {
        self.log.get()
    }

    /// Where it stands; before it is open, before everything.
    pub fn position(&self) -> Position {
        self.log.get().map_or(Position { segment: -1, offset: 0 }, |log| log.position())
    }

    /// Nothing up to a position is needed any more of a table.
    pub fn flushed(&self, id: TableId, upto: Position) {
        if let Some(log) = self.log.get() {
            log.flushed(id, upto);
        }
    }

    /// Begins it with a segment of this id; segments of earlier runs may be inherited.
    pub async fn begin(
        &self,
        env: &Env,
        options: &Options,
        first_id: i64,
        inherited: Vec<Inherited>,
    ) -> Result<(), StorageError> {
        let log_options = LogOptions {
            directory: options.commitlog_directory.clone(),
            mode: options.sync,
            segment_bytes: options.segment_bytes,
            compression: options.log.compression.clone(),
            mutation_bytes_max: options.mutation_bytes_max(),
            cdc: options.log.cdc.clone(),
            archive_command: options.log.archiving.archive_command.clone(),
            goes_on_after_failure: options.log.goes_on_after_failure,
            total_bytes: options.commitlog_bytes / env.shards() as u64,
        };
        let directory = log_options.directory.clone();
        let log = CommitLog::start(env, log_options, first_id, inherited).await;
        let log =
            log.map_err(|e| StorageError::io("cannot create the commit log in", directory, e))?;
        log.tell_events(self.told.borrow().clone());
        assert!(self.log.set(log).is_ok(), "the log is opened once");
        Ok(())
    }
}
