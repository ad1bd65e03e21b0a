//! What must be so once nothing goes wrong any more.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use cluster::Answer;
use protocol::Consistency;

use super::client::{text_of, values};
use super::data::{Data, KEYS, Spot, TABLES};
use super::{Kinds, Terms};
use crate::ring::Story;
use crate::ring::ask::{Failed, Statement, ask, rows};
use crate::ring::asked::Asked;
use crate::ring::harm::Machines;

/// Nothing pends any more then: who does not know how a repair ended asks after five minutes.
const RELEASED_AFTER: Duration = Duration::from_secs(900);
/// A verb that has not ended by then never will.
const VERB_MAX: Duration = Duration::from_secs(300);
/// For so long at least a node misses what is written last.
const MISSES: Duration = Duration::from_secs(5);
/// How often a repair is tried that fails.
const TRIES: usize = 3;
/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// What all replicas have of a partition, each alone.
type Copies = BTreeMap<usize, BTreeMap<(usize, usize), i64>>;

/// Who looks after a ring that is left in peace.
pub struct Ends<'a> {
    /// The ring.
    pub story: &'a Story,
    /// What it must have.
    pub data: &'a Rc<Data>,
    /// What the seed decided.
    pub(super) terms: Terms,
}

impl Ends<'_> {
    /// A node misses what is written last.
    pub fn differ(&self) -> Result<(), String> {
        let story = self.story;
        let rng = story.world.rng();
        let node = rng.below(story.members.len() as u64) as usize;
        let machines =
            Machines { world: &story.world, members: &story.members, model: &story.model, rng };
        machines.cut_off(node);
        let misses = MISSES + Duration::from_millis(rng.below(5_000));
        story.run_for(misses)?;
        story.world.set_fault(env::sim::Fault::Heal);
        story.model.wrong()
    }

    /// Brings all to an end, and looks at it.
    pub fn check(&self) -> Result<(), String> {
        let expired = self.data.expired_at();
        let now = self.story.world.now();
        if expired > now {
            self.story.run_for(expired.since(now))?;
        }
        self.nothing_pends()?;
        // what sessions that were ended by force left differs
        let is_even = !self.is_forced();
        if is_even {
            self.repaired_is_in_sync(TABLES[1])?;
        }
        if self.terms.ends_incrementally {
            self.repair("")?;
            self.nothing_pends()?;
            if is_even {
                self.are_equal(1).map_err(|why| format!("after an incremental repair {why}"))?;
            }
        }
        self.repair("-full")?;
        self.are_equal(1)?;
        self.are_equal(0)?;
        for node in 0..self.story.members.len() {
            let table = if self.has_void() { " g" } else { "" };
            let line = format!("repair -prv -full ring{table}");
            self.says(node, &line, "Previewed data was in sync")?;
        }
        if !self.terms.ends_incrementally && self.terms.kinds != Kinds::Full {
            self.repair("")?;
            self.nothing_pends()?;
        }
        if is_even || self.terms.kinds != Kinds::Full {
            self.repaired_is_in_sync(TABLES[1])?;
        }
        self.nothing_is_left()?;
        self.operator_sees_nothing_open()?;
        self.count();
        Ok(())
    }

    fn is_forced(&self) -> bool {
        self.story.model.counts().contains_key("repair.cancelled_by_force")
    }

    fn has_void(&self) -> bool {
        let now = self.story.world.now();
        (0..KEYS).flat_map(|key| Spot::of_key(0, key)).any(|spot| self.data.is_void(spot, now))
    }

    fn count(&self) {
        let model = &self.story.model;
        for _ in 0..self.data.purged(self.story.world.now()) {
            model.count("repair.purged_in_time");
        }
        if self.has_void() {
            model.count("repair.purged_too_early");
        }
    }

    fn verb(&self, node: usize, line: &str) -> Result<Result<String, String>, String> {
        let (story, member) = (self.story, &self.story.members[node]);
        story.model.tell(story.world.now(), || format!("node {} is asked: {line}", node + 1));
        let asked = Asked::new(member, line);
        let asked = asked.ok_or_else(|| format!("node {} does not serve", node + 1))?;
        let answer = || asked.answer(&story.world, &story.members);
        let ended = story.world.run_until(|| answer().is_some(), VERB_MAX);
        ended.map_err(|failure| format!("{line} at node {}: {}", node + 1, failure.what))?;
        let answer = answer().ok_or("a verb ended and has no answer")?;
        story.model.tell(story.world.now(), || format!("it says {answer:?}"));
        Ok(answer)
    }

    fn says(&self, node: usize, line: &str, what: &str) -> Result<(), String> {
        match self.verb(node, line)? {
            Ok(said) if said.contains(what) => Ok(()),
            said => Err(format!("node {}: {line}: {said:?}", node + 1)),
        }
    }

    /// Repairs everything. Where not all have all, each node repairs what it has.
    fn repair(&self, words: &str) -> Result<(), String> {
        let nodes = self.story.members.len();
        let rng = self.story.world.rng();
        let all = if self.story.plan.replicas == [nodes] {
            let by = rng.below(nodes as u64) as usize;
            by..by + 1
        } else {
            0..nodes
        };
        for node in all {
            let mut tries = 1;
            while let Err(why) = self.verb(node, &format!("repair {words} ring"))? {
                if tries == TRIES {
                    return Err(format!("a repair at node {} fails: {why}", node + 1));
                }
                self.story.model.count("repair.last_failed");
                tries += 1;
                self.story.run_for(LOOK * 5)?;
            }
        }
        Ok(())
    }

    /// Waits until all sessions are over, and no SSTable pends.
    fn nothing_pends(&self) -> Result<(), String> {
        let end = self.story.world.now() + RELEASED_AFTER;
        while let Some(what) = self.pending()? {
            if self.story.world.now() > end {
                return Err(format!("it pends for ever: {what}"));
            }
            self.story.run_for(LOOK)?;
        }
        Ok(())
    }

    fn pending(&self) -> Result<Option<String>, String> {
        for (node, member) in self.story.members.iter().enumerate() {
            let name = format!("node {}", node + 1);
            let way = member.way().ok_or_else(|| format!("{name} does not serve"))?;
            let sessions = way.shard.repair_sessions().all().into_iter();
            if let Some(open) = sessions.into_iter().find(|session| !session.is_over()) {
                return Ok(Some(format!("{name} has {open:?}")));
            }
            let engine = way.shard.engine().node();
            let engine = engine.ok_or_else(|| format!("{name} has no engine"))?;
            let pending = engine.repairs().pending_sessions();
            if !pending.is_empty() {
                return Ok(Some(format!("{name} has SSTables of {pending:?}")));
            }
        }
        Ok(None)
    }

    /// `nodetool repair_admin` says so too.
    fn operator_sees_nothing_open(&self) -> Result<(), String> {
        for node in 0..self.story.members.len() {
            let open = self.verb(node, "repair_admin list")??;
            let pending = self.verb(node, "repair_admin summarize-pending ring")??;
            let is_none = |line: &str| line.contains("(0 sstables");
            if open.trim() != "no sessions" || !pending.lines().skip(1).all(is_none) {
                return Err(format!("node {} shows {open} and {pending}", node + 1));
            }
        }
        Ok(())
    }

    fn repaired_is_in_sync(&self, table: &str) -> Result<(), String> {
        for node in 0..self.story.members.len() {
            self.says(node, &format!("repair -vd ring {table}"), "Repaired data is in sync")?;
        }
        Ok(())
    }

    /// What each replica alone has of a partition.
    fn copies(&self, table: usize, key: usize) -> Result<Copies, String> {
        let text = text_of(table, key);
        let mut copies = Copies::new();
        for node in self.story.settle().replicas_of(key)? {
            let way = self.story.members[node].way();
            let way = way.ok_or_else(|| format!("node {} does not serve", node + 1))?;
            let (clients, text) = (self.story.clients.clone(), text.clone());
            let answer = async move {
                for _ in 1..TRIES {
                    let asked = Statement::new(Consistency::One, text.clone());
                    match ask(&clients, &way, asked).await {
                        Err(Failed::Error(_)) => {}
                        answer => return answer,
                    }
                }
                ask(&clients, &way, Statement::new(Consistency::One, text)).await
            };
            let answer = self.story.world.block_on(&self.story.clients, VERB_MAX, answer);
            match answer.map_err(|failure| failure.what.to_string())? {
                Ok(Answer::Rows(page)) => {
                    copies.insert(node, values(&rows(&page)));
                }
                other => return Err(format!("node {}: {:?}", node + 1, other.err())),
            }
        }
        Ok(copies)
    }

    /// All replicas have the same of a table, and what was acknowledged. What may return is left
    /// out: a replica that still has a deletion and one that purged it may give each other what
    /// they have, and purge and have it in turn, in Cassandra too.
    fn are_equal(&self, table: usize) -> Result<(), String> {
        self.tell_sstables(table);
        for key in 0..KEYS {
            let copies = self.copies(table, key)?;
            let now = self.story.world.now();
            for (node, copy) in &copies {
                for spot in Spot::of_key(table, key) {
                    let value = copy.get(&(spot.row, spot.column)).copied();
                    if let Some(wrong) = self.data.wrong_in_the_end(spot, value, now) {
                        return Err(format!("on node {} alone {wrong}", node + 1));
                    }
                }
            }
            let is_void = |at: &(usize, usize)| {
                let (row, column) = *at;
                self.data.is_void(Spot { table, key, row, column }, now)
            };
            let kept = |copy: &BTreeMap<(usize, usize), i64>| {
                let kept = copy.iter().filter(|(at, _)| !is_void(at));
                kept.map(|(at, value)| (*at, *value)).collect::<Vec<_>>()
            };
            let different: BTreeSet<_> = copies.values().map(kept).collect();
            if different.len() > 1 {
                let name = TABLES[table];
                return Err(format!("replicas differ in key {key} of {name}: {copies:?}"));
            }
        }
        Ok(())
    }

    /// What each node's SSTables of a table are, for who looks for a bug.
    fn tell_sstables(&self, table: usize) {
        for member in self.story.members.iter() {
            let Some(way) = member.way() else { continue };
            let schema = way.shard.schema();
            let store = schema.table("ring", TABLES[table]).map(|table| table.id);
            let store = store.and_then(|id| way.shard.engine().store(id).ok());
            for sstable in store.iter().flat_map(|store| store.live().tables().to_vec()) {
                let stats = &sstable.table.statistics.stats;
                let times = (stats.min_timestamp, stats.max_timestamp);
                let (number, status) = (sstable.number, sstable.repair_status());
                self.story.model.tell(self.story.world.now(), || {
                    format!(
                        "node {} has {number} of {}: {status:?}, timestamps {times:?}, at most {}",
                        member.number + 1,
                        TABLES[table],
                        stats.max_local_deletion_time
                    )
                });
            }
        }
    }

    /// Nothing is on a disk that no table has.
    fn nothing_is_left(&self) -> Result<(), String> {
        let end = self.story.world.now() + VERB_MAX;
        loop {
            let left = self.left()?;
            let Some(left) = left else { return Ok(()) };
            if self.story.world.now() > end {
                return Err(left);
            }
            self.story.run_for(LOOK)?;
        }
    }

    fn left(&self) -> Result<Option<String>, String> {
        for (node, member) in self.story.members.iter().enumerate() {
            let way = member.way().ok_or_else(|| format!("node {} does not serve", node + 1))?;
            let files = self.story.world.disk(member.id, |disk| disk.files()).unwrap_or_default();
            let files: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
            let of = |part: &str| {
                let is_of = |path: &&String| path.contains("/ring/") && path.contains(part);
                files.iter().filter(is_of).collect::<Vec<_>>()
            };
            let schema = way.shard.schema();
            let live = |name: &str| {
                let table = schema.table("ring", name)?;
                Some(way.shard.engine().store(table.id).ok()?.live().tables().len())
            };
            let live: usize = TABLES.into_iter().filter_map(live).sum();
            let (begun, data) = (of("_txn_"), of("-Data.db"));
            if !begun.is_empty() || data.len() != live {
                let node = node + 1;
                return Ok(Some(format!(
                    "node {node} has {live} SSTables, {data:?} and {begun:?}"
                )));
            }
        }
        Ok(None)
    }
}
