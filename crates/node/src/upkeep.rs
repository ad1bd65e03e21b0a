//! What looks for damage in SSTables, and what makes the best of it: carried out table by table,
//! and told of in the log.

use std::cell::RefCell;
use std::rc::Rc;

use admin::{Answer, NewSnapshot, Refusal, Scrub, Snapshots, TableName, Verify};
use cluster::Shard;
use metrics::Level;
use ring::TokenRange;
use schema::TableId;
use storage::{Depth, Owned, Scrubbed, StorageError};
use types::Token;

use crate::journal::Journal;
use crate::snapshots::TableSnapshots;

/// Scrubs and verifies; on the first shard.
pub(crate) struct Upkeep {
    shard: Rc<Shard>,
    journal: Rc<Journal>,
    snapshots: Rc<TableSnapshots>,
}

impl Upkeep {
    pub fn new(shard: &Rc<Shard>, journal: &Rc<Journal>, snapshots: &Rc<TableSnapshots>) -> Self {
        let (shard, journal) = (Rc::clone(shard), Rc::clone(journal));
        Self { shard, journal, snapshots: Rc::clone(snapshots) }
    }

    /// Scrubs a table, after a snapshot; each SSTable's outcome is told.
    pub async fn scrub(&self, id: TableId, how: Scrub) -> Answer<()> {
        let schema = self.shard.engine().schema();
        let (Some(table), Some(storage)) = (schema.table_by_id(&id), self.shard.engine().node())
        else {
            return Ok(());
        };
        if how.snapshot {
            let name = format!("pre-scrub-{}", self.shard.engine().env().unix_micros() / 1000);
            let (keyspace, table) = (table.keyspace.clone(), table.name.clone());
            let of = Snapshots::Tables(vec![TableName { keyspace, table }]);
            self.snapshots.take(NewSnapshot { of, name, flush: false, ttl: None }).await?;
        }
        let found = RefCell::new(Vec::new());
        let Scrub { skip_corrupted, validate, .. } = how;
        let done = storage
            .compactions()
            .scrub(id, storage::Scrub { skip_corrupted, validate }, &found)
            .await;
        for one in found.into_inner() {
            self.tell_scrubbed(&one);
        }
        match done {
            Ok(()) | Err(StorageError::UnknownTable(_)) => Ok(()),
            Err(error) => {
                let name = format!("{}.{}", table.keyspace, table.name);
                self.journal.say(Level::Error, format!("Scrub of {name} stopped: {error}"));
                Err(Refusal::Failed(error.to_string()))
            }
        }
    }

    fn tell_scrubbed(&self, one: &Scrubbed) {
        let Scrubbed { path, good, empty, bad, out_of_order, why } = one;
        let path = path.display();
        self.journal.say(
            Level::Info,
            format!(
                "Scrub of {path} complete: {good} partitions in new sstable and {empty} empty (tombstoned) partitions \
                 dropped"
            ),
        );
        if *out_of_order > 0 {
            let text = format!(
                "Scrub of {path} found {out_of_order} partitions out of order and wrote them to \
                 an SSTable of their own"
            );
            self.journal.say(Level::Warn, text);
        }
        if let Some(why) = why {
            let text = format!(
                "Scrub of {path} left out {bad} partitions that it could not read; a snapshot \
                 taken before may have them; the first error: {why}"
            );
            self.journal.say(Level::Warn, text);
        }
    }

    /// The ranges of the ring of which this node has, or is about to have, a replica of a table;
    /// none, if it is not a part of a ring yet.
    fn owned_ranges(&self, id: TableId) -> Vec<Owned> {
        let schema = self.shard.engine().schema();
        let keyspace = schema.table_by_id(&id).and_then(|table| schema.keyspace(&table.keyspace));
        let ring = self.shard.peers().ring();
        let (Some(keyspace), Some(ring)) = (keyspace, ring) else { return Vec::new() };
        let Some(placement) = ring.placement(&keyspace.replication.strategy) else {
            return Vec::new();
        };
        let local = ring.local();
        let ranges = placement.ranges_of(local).chain(placement.pending_ranges_of(local));
        let halves = |range: TokenRange| match range.left < range.right {
            true => vec![(range.left, range.right)],
            false => vec![(range.left, Token::MIN), (Token::MIN, range.right)],
        };
        let owned: Vec<Owned> = ranges.flat_map(halves).collect();
        match owned.is_empty() {
            // a node that has nothing has no key either
            true => vec![(Token::MAX, Token::MAX)],
            false => owned,
        }
    }

    /// Verifies a table; each SSTable that is damaged is told of, and the first is the answer.
    pub async fn verify(&self, id: TableId, how: Verify) -> Answer<()> {
        let Some(storage) = self.shard.engine().node() else { return Ok(()) };
        let depth = match how {
            Verify { quick: true, .. } => Depth::Index,
            Verify { extended: true, .. } => Depth::Rows,
            _ => Depth::Digest,
        };
        let Verify { check_version, mutate_repaired, .. } = how;
        let owned = if how.check_tokens { self.owned_ranges(id) } else { Vec::new() };
        let how = storage::Verify { depth, check_version, mutate_repaired, owned };
        let damaged = storage.verifier().verify(id, how);
        let damaged = match damaged.await {
            Ok(damaged) => damaged,
            Err(StorageError::UnknownTable(_)) => return Ok(()),
            Err(error) => return Err(Refusal::Failed(error.to_string())),
        };
        let full = if mutate_repaired { "" } else { "a full " };
        for (path, error) in &damaged {
            let path = path.display();
            self.journal.say(
                Level::Error,
                format!(
                    "Invalid SSTable {path}, please force {full}repair (not supported here: scrub \
                     the table, or restore it from a snapshot): {error}"
                ),
            );
        }
        match damaged.first() {
            None => Ok(()),
            Some((_, error)) => Err(Refusal::Failed(error.to_string())),
        }
    }
}
