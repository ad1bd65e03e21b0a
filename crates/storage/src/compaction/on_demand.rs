//! Compactions that the operator asks for: the table's tasks under way are stopped, and none begins
//! before it is done.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use schema::{TableId, TombstoneOption};
use types::TokenRange;

use super::look::Look;
use super::schedule::Compactions;
use super::scrub::{Scrub, Scrubbed};
use super::work::{Task, Work};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::sstables::SSTable;
use crate::strategies::{Candidate, Choice, Reason, Strategy, shard_of};

impl Compactions {
    /// Merges all SSTables of a table into one, or as few as its strategy has: `nodetool compact`.
    ///
    /// # Errors
    /// If one cannot be read or the new one not be written: the old ones stay.
    pub async fn merge_all(&self, id: TableId) -> Result<(), StorageError> {
        self.major(id, false).await
    }

    /// The same; `split` is `--split-output`.
    ///
    /// # Errors
    /// If an SSTable cannot be read or a new one not be written: the old ones stay.
    pub async fn major(&self, id: TableId, split: bool) -> Result<(), StorageError> {
        let all = |strategy: &Strategy, look: &Look| look.view(|view| strategy.major(view, split));
        self.on_demand(id, Work::Merge, all).await
    }

    /// Merges the SSTables that `which` names: `nodetool compact --user-defined`. How many there
    /// were.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written: the old ones stay.
    pub async fn merge_these(
        &self,
        id: TableId,
        which: impl Fn(&SSTable) -> bool,
    ) -> Result<usize, StorageError> {
        let count = Cell::new(0);
        self.on_demand(id, Work::Merge, |strategy, look| {
            let named = look.live.tables().iter().filter(|sstable| which(sstable));
            let named: Vec<u64> = named.map(|sstable| sstable.number).collect();
            count.set(named.len());
            look.view(|view| strategy.user_defined(view, &named))
        })
        .await?;
        Ok(count.get())
    }

    /// Drops of each SSTable of a table, alone, what the others make needless: `nodetool
    /// garbagecollect`.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written: the old one stays.
    pub async fn collect_garbage(
        &self,
        id: TableId,
        granularity: TombstoneOption,
    ) -> Result<(), StorageError> {
        let each = |strategy: &Strategy, look: &Look| {
            let mut tables: Vec<_> =
                look.tables.iter().filter(|table| strategy.may_purge([*table])).collect();
            tables.sort_by_key(|table| table.max_timestamp);
            let alone = |table: &&Candidate| Choice {
                level: table.level,
                ..Choice::merge(vec![table.id], Reason::Garbage)
            };
            tables.iter().map(alone).collect()
        };
        self.on_demand(id, Work::Collect(granularity), each).await
    }

    /// Rewrites the SSTables of a table that are not in the directories where their keys belong:
    /// `nodetool relocatesstables`.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written: the old one stays.
    pub async fn relocate(&self, id: TableId) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        let table = engine.store(id)?.table();
        let places = self.tables.places_of(&engine, &table).await?;
        let parts = places.len() as u32;
        let place = |token| places.get(shard_of(token, parts) as usize);
        let is_displaced = |sstable: &&Arc<SSTable>| {
            let (first, last) = sstable.table.tokens();
            let home = Some(&sstable.directory);
            place(first) != home || place(last) != home
        };
        let each = |_: &Strategy, look: &Look| {
            let alone = |sstable: &Arc<SSTable>| Choice {
                level: sstable.level(),
                ..Choice::merge(vec![sstable.number], Reason::Relocate)
            };
            look.live.tables().iter().filter(is_displaced).map(alone).collect()
        };
        self.on_demand(id, Work::Merge, each).await
    }

    /// Drops the partitions of a table outside these ranges, which are normalized, from SSTables:
    /// `nodetool cleanup`. SSTables that have none of them stay as they are.
    ///
    /// # Errors
    /// If one cannot be read or a new one not be written: the old one stays.
    pub async fn keep(&self, id: TableId, ranges: &[TokenRange]) -> Result<(), StorageError> {
        let is_within = |sstable: &&Arc<SSTable>| {
            let (first, last) = sstable.table.tokens();
            let holds = |token| ranges.iter().find(|range| range.contains(token));
            holds(first).is_some_and(|range| range.contains(last))
        };
        let each = |_: &Strategy, look: &Look| {
            let alone = |sstable: &Arc<SSTable>| Choice {
                level: sstable.level(),
                ..Choice::merge(vec![sstable.number], Reason::Cleanup)
            };
            look.live.tables().iter().filter(|sstable| !is_within(sstable)).map(alone).collect()
        };
        self.on_demand(id, Work::Keep(ranges), each).await
    }

    /// Scrubs all SSTables of a table, each in one step that a crash cannot tear; what became of
    /// them is pushed to `found`.
    ///
    /// # Errors
    /// If one cannot be rewritten, or is damaged and one of counters: it stays as it was.
    pub async fn scrub(
        &self,
        id: TableId,
        how: Scrub,
        found: &RefCell<Vec<Scrubbed>>,
    ) -> Result<(), StorageError> {
        let each = |look: &Look| {
            let alone = |sstable: &Arc<SSTable>| Choice {
                level: sstable.level(),
                ..Choice::merge(vec![sstable.number], Reason::Scrub)
            };
            look.live.tables().iter().map(alone).collect()
        };
        let done = self.on_demand(id, Work::Scrub(how, found), |_, look| each(look)).await;
        // Partitions may be found again, or gone.
        let engine = self.tables.engine()?;
        for shard in 0..engine.shards().count() {
            let forget = move |engine: &Rc<Engine>| engine.memtables().forget_rows(id);
            engine.shards().call(shard, forget).await?;
        }
        done
    }

    async fn on_demand(
        &self,
        id: TableId,
        work: Work<'_>,
        choose: impl Fn(&Strategy, &Look) -> Vec<Choice>,
    ) -> Result<(), StorageError> {
        let engine = self.tables.engine()?;
        let compactions = self.table(id);
        let one_at_a_time = compactions.one_at_a_time().await;
        let paused = compactions.pause();
        // a session of repair fails if it is stopped, and is waited for
        let anticompaction = Reason::Anticompaction.operation();
        self.stop(|running| running.table == id && running.kind != anticompaction);
        while !compactions.is_idle() {
            self.slots.ended().await;
        }
        let slot = self.slots.wait().await;
        let of = self.of(&engine, id)?;
        let look = Look::at(&engine, &of.table, (&of.node, &of.compactions)).await?;
        let choices = compactions.strategy(&of.table, |strategy| choose(strategy, &look));
        let mut result = Ok(());
        for choice in choices {
            let Some(task) = Task::new(&look, &of, choice, work) else { continue };
            let _busy = compactions.busy(&task.inputs);
            result = self.tasks.run(&engine, &task).await.map(drop);
            if result.is_err() {
                break;
            }
        }
        drop((slot, paused, one_at_a_time));
        self.want(id);
        result
    }
}
