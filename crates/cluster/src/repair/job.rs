//! A table in the ranges of a session: trees of all its replicas are compared, and what differs is
//! streamed (`RepairJob`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use env::Class;
use internode::Verb;
use metrics::Level;
use repair::tree::{Tree, difference_of_all};
use repair::wire::{
    JobDescription, PreviewKind, SessionSummary, Snapshot, SyncRequest, ValidationRequest,
};
use repair::{Differences, Parallelism};
use types::{Address, TokenRange, Uuid};

use super::asks::Asks;
use super::history::History;
use super::neighbors::CommonRange;
use super::participant::{Exchange, Participant};
use super::replies::Replies;
use crate::peers::Peers;
use crate::shard_context::ShardContext;

/// Ranges that the same nodes have, on all tables of a repair.
pub(super) struct Session {
    pub id: Uuid,
    pub parent: Uuid,
    pub keyspace: String,
    pub common: CommonRange,
    pub parallelism: Parallelism,
    pub only_pulls: bool,
    pub optimises: bool,
    pub is_incremental: bool,
    pub preview: PreviewKind,
}

/// What two replicas differed in, and what went between them.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub ranges: Vec<TokenRange>,
    pub summaries: Vec<SessionSummary>,
}

/// What came of a job.
#[derive(Clone, Debug)]
pub(super) struct JobDone {
    pub table: String,
    pub differences: Vec<Difference>,
}

/// Who exchanges ranges with whom.
#[derive(Clone, Debug)]
struct Sync {
    source: Address,
    destination: Address,
    ranges: Vec<TokenRange>,
    only_fetches: bool,
}

/// Does them; on the first shard.
pub(super) struct Jobs {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    participant: Rc<Participant>,
    asks: Rc<Asks>,
    replies: Rc<Replies>,
    history: Rc<History>,
}

impl Jobs {
    pub fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        participant: &Rc<Participant>,
        asks: &Rc<Asks>,
        replies: &Rc<Replies>,
        history: &Rc<History>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            participant: Rc::clone(participant),
            asks: Rc::clone(asks),
            replies: Rc::clone(replies),
            history: Rc::clone(history),
        })
    }

    /// Has the replicas of a table agree.
    ///
    /// # Errors
    /// Why they do not.
    pub async fn run(self: &Rc<Self>, of: &Rc<Session>, table: &str) -> Result<JobDone, String> {
        let messenger = self.peers.messenger().ok_or("this node is in no ring")?;
        let local = messenger.settings().local;
        let job = JobDescription {
            parent: Some(of.parent),
            session: of.id,
            keyspace: of.keyspace.clone(),
            table: table.to_owned(),
            ranges: of.common.ranges.clone(),
        };
        let names = (of.keyspace.as_str(), table);
        let is_preview = of.preview.is_preview();
        if !is_preview {
            self.history.session_begun((of.id, of.parent), names, local, &of.common).await;
        }
        let done = self.repair(of, &job, local).await;
        self.replies.forget(&job);
        if !is_preview {
            let failed = done.as_ref().err().map(String::as_str);
            self.history.session_ended(of.id, names, failed).await;
        }
        done.map(|differences| JobDone { table: table.to_owned(), differences })
    }

    async fn repair(
        self: &Rc<Self>,
        of: &Rc<Session>,
        job: &JobDescription,
        local: Address,
    ) -> Result<Vec<Difference>, String> {
        let mut nodes: Vec<Address> = of.common.nodes.iter().copied().collect();
        nodes.push(local);
        let mut now = self.shard.env.unix_micros() / 1_000_000;
        if of.preview == PreviewKind::Repaired {
            // what one replica has purged already then counts for none
            now += self.shard.config.repair.preview_head_start.as_secs().cast_signed();
        }
        let head = of.preview.log_prefix(of.id);
        let all: Vec<_> = nodes.iter().map(|node| format!("/{node}")).collect();
        self.peers.note(
            Level::Info,
            format!("{head} Requesting merkle trees for {} (to [{}])", job.table, all.join(", ")),
        );
        if of.parallelism != Parallelism::Parallel && !of.is_incremental {
            self.snapshots(job, &nodes, local).await?;
        }
        let trees = self.trees(of, job, &nodes, (local, now)).await?;
        let syncs = self.syncs(of, trees, local).await;
        if syncs.is_empty() {
            let text = format!("{head} replicas of {} are consistent", job.table);
            self.peers.note(Level::Info, text);
        }
        let mut tasks = Vec::new();
        for sync in syncs {
            let (this, of, job) = (Rc::clone(self), Rc::clone(of), job.clone());
            tasks.push(self.shard.env.spawn_task(Class::Streaming, async move {
                this.sync(&of, &job, sync, local).await
            }));
        }
        let (mut differences, mut failed) = (Vec::new(), None);
        for task in tasks {
            match task.await {
                Ok(difference) => differences.push(difference),
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        if self.shard.env.planted("repair_marks_unstreamed") {
            failed = None;
        }
        failed.map_or(Ok(differences), Err)
    }

    /// Has all nodes hold what they have now.
    async fn snapshots(
        &self,
        job: &JobDescription,
        nodes: &[Address],
        local: Address,
    ) -> Result<(), String> {
        let mut payload = Vec::new();
        let message = Snapshot { desc: job.clone() };
        message.write(&mut payload).map_err(|error| error.to_string())?;
        let mut tasks = Vec::new();
        for node in nodes.iter().copied().filter(|node| *node != local) {
            let (asks, payload) = (Rc::clone(&self.asks), payload.clone());
            let ask = async move { asks.ask(node, Verb::SnapshotMsg, payload).await };
            tasks.push((node, self.shard.env.spawn_task(Class::Streaming, ask)));
        }
        self.participant.snapshot(local, job.clone()).await?;
        for (node, task) in tasks {
            let failed = |why| format!("Could not create snapshot at /{node}: {why}");
            task.await.map_err(failed)?;
        }
        Ok(())
    }

    /// The trees of all nodes: of all at once, of one after another, or of one after another in
    /// each data centre.
    async fn trees(
        self: &Rc<Self>,
        of: &Rc<Session>,
        job: &JobDescription,
        nodes: &[Address],
        (local, now): (Address, i64),
    ) -> Result<Vec<(Address, Vec<Tree>)>, String> {
        let mut rows: BTreeMap<String, Vec<Address>> = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate() {
            let row = match of.parallelism {
                Parallelism::Parallel => at.to_string(),
                Parallelism::Sequential => String::new(),
                Parallelism::DataCenter => self.center(*node),
            };
            rows.entry(row).or_default().push(*node);
        }
        let mut tasks = Vec::new();
        for row in rows.into_values() {
            let (this, job) = (Rc::clone(self), job.clone());
            let head = of.preview.log_prefix(of.id);
            tasks.push(self.shard.env.spawn_task(Class::Streaming, async move {
                let mut trees = Vec::new();
                for node in row {
                    trees.push((node, this.trees_of(&job, node, (local, now)).await?));
                    if node != local {
                        let text =
                            format!("{head} Received merkle tree for {} from /{node}", job.table);
                        this.peers.note(Level::Info, text);
                    }
                }
                Ok::<_, String>(trees)
            }));
        }
        let (mut trees, mut failed) = (Vec::new(), None);
        for task in tasks {
            match task.await {
                Ok(of) => trees.extend(of),
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        failed.map_or(Ok(trees), Err)
    }

    fn center(&self, node: Address) -> String {
        let ring = self.peers.ring();
        let center = ring
            .as_ref()
            .and_then(|ring| ring.find(node).map(|at| ring.node(at).data_center.to_string()));
        center.unwrap_or_default()
    }

    async fn trees_of(
        &self,
        job: &JobDescription,
        node: Address,
        (local, now): (Address, i64),
    ) -> Result<Vec<Tree>, String> {
        let failed =
            |why: String| format!("[repair #{}] Validation failed in /{node}: {why}", job.session);
        let trees = match node == local {
            true => self.participant.validate(job, now).await.map_err(failed)?,
            false => {
                let heard = self.replies.expect_trees(job, node);
                let mut payload = Vec::new();
                let message = ValidationRequest { desc: job.clone(), now };
                message.write(&mut payload).map_err(|error| error.to_string())?;
                self.asks.ask(node, Verb::ValidationReq, payload).await.map_err(failed)?;
                let trees = self.replies.wait(heard, &[node]).await?;
                trees.ok_or_else(|| failed("its log says why".to_owned()))?
            }
        };
        check_ranges(&trees, &job.ranges).map_err(failed)?;
        Ok(trees)
    }

    /// Who exchanges what: each two replicas that differ.
    async fn syncs(
        &self,
        of: &Session,
        trees: Vec<(Address, Vec<Tree>)>,
        local: Address,
    ) -> Vec<Sync> {
        // deep trees take longer to compare than a shard's other tasks may wait
        let mut pairs = self.shard.env.helper(move || differences_of_all(&trees)).await;
        if self.shard.env.planted("repair_skips_a_leaf") {
            pairs.iter_mut().for_each(|(_, ranges)| drop(ranges.pop()));
            pairs.retain(|(_, ranges)| !ranges.is_empty());
        }
        if of.optimises && !of.only_pulls {
            return self.fewest(&pairs);
        }
        let mut syncs = Vec::new();
        for ((one, other), ranges) in pairs {
            // this node begins the streams that it has part in
            let (source, destination) = if other == local { (other, one) } else { (one, other) };
            let only_fetches = of.only_pulls && source == local;
            syncs.push(Sync { source, destination, ranges, only_fetches });
        }
        syncs
    }

    /// Each replica fetches each range that it lacks from one that has it.
    fn fewest(&self, pairs: &[Pair]) -> Vec<Sync> {
        let mut all = Differences::new();
        pairs.iter().for_each(|((one, other), ranges)| all.add(*one, *other, ranges));
        let fetches = all.reduce(|one, other| self.center(one) == self.center(other));
        let of = |(source, asked): (Address, BTreeMap<Address, Vec<TokenRange>>)| {
            asked.into_iter().map(move |(destination, ranges)| Sync {
                source,
                destination,
                ranges,
                only_fetches: true,
            })
        };
        fetches.into_iter().flat_map(of).collect()
    }

    async fn sync(
        &self,
        of: &Session,
        job: &JobDescription,
        sync: Sync,
        local: Address,
    ) -> Result<Difference, String> {
        let nodes = (sync.source, sync.destination);
        let head = of.preview.log_prefix(of.id);
        self.peers.note(
            Level::Info,
            format!(
                "{head} Endpoints /{} and /{} have {} range(s) out of sync for {}",
                nodes.0,
                nodes.1,
                sync.ranges.len(),
                job.table
            ),
        );
        let failed = |why: String| {
            format!("{head} Sync failed between /{} and /{}: {why}", nodes.0, nodes.1)
        };
        let summaries = match sync.source == local {
            true => {
                let exchange = Exchange {
                    with: sync.destination,
                    ranges: sync.ranges.clone(),
                    only_fetches: sync.only_fetches,
                    preview: of.preview,
                    pending_repair: Some(of.parent).filter(|_| of.is_incremental),
                };
                self.participant.exchange(job, exchange).await.map_err(failed)?
            }
            false => {
                let heard = self.replies.expect_sync(job, nodes);
                let message = SyncRequest {
                    desc: job.clone(),
                    initiator: local,
                    source: nodes.0,
                    destination: nodes.1,
                    ranges: sync.ranges.clone(),
                    preview: of.preview,
                    is_asymmetric: sync.only_fetches,
                };
                let mut payload = Vec::new();
                message.write(&mut payload).map_err(|error| error.to_string())?;
                self.asks.ask(nodes.0, Verb::SyncReq, payload).await.map_err(failed)?;
                let summaries = self.replies.wait(heard, &[nodes.0, nodes.1]).await?;
                summaries.ok_or_else(|| failed("its log says why".to_owned()))?
            }
        };
        Ok(Difference { ranges: sync.ranges, summaries })
    }
}

/// Two replicas, and what they differ in.
type Pair = ((Address, Address), Vec<TokenRange>);

/// What each two replicas differ in, that do. All have trees of the same ranges.
fn differences_of_all(trees: &[(Address, Vec<Tree>)]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (at, (one, its)) in trees.iter().enumerate() {
        for (other, others) in trees.iter().skip(at + 1) {
            let ranges = difference_of_all(its, others);
            let ranges = ranges.expect("there are trees of the same ranges of all replicas");
            if !ranges.is_empty() {
                pairs.push(((*one, *other), ranges));
            }
        }
    }
    pairs
}

/// There is a tree of each range that was asked for.
fn check_ranges(trees: &[Tree], asked: &[TokenRange]) -> Result<(), String> {
    let of: BTreeSet<_> = trees.iter().map(Tree::range).collect();
    let asked: BTreeSet<_> = asked.iter().copied().collect();
    match of == asked && trees.len() == asked.len() {
        true => Ok(()),
        false => Err("its trees are of other ranges than it was asked for".to_owned()),
    }
}
