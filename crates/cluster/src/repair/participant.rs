//! What this node does in repairs that any node coordinates: it validates, and streams
//! (`RepairMessageVerbHandler`, `ValidationManager`, `StreamingRepairTask`).
//!
//! Validations are done on all shards in turn, a few at a time. They are read, and hashed, in the
//! class of streams.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use env::Class;
use env::sync::Semaphore;
use internode::{FailureReason, Verb};
use metrics::Level;
use repair::tree::{Tree, TreeBudget};
use repair::wire::{
    Cleanup, JobDescription, Prepare, PreviewKind, SessionSummary, Snapshot, StreamSummary,
    SyncRequest, SyncResponse, ValidationRequest, ValidationResponse,
};
use schema::Table;
use storage::shards::Remote;
use storage::{Chosen, RepairedState, StorageError, Validation};
use streaming::wire::{Operation, Preview, Request, Summary};
use streaming::{Announced, Give, Only, Plan, Streaming};

use types::{Address, Reader, TokenRange, Uuid};

use super::asks::Asks;
use super::consistent::LocalSessions;
use super::parents::{Asked, NoPart, Parent, Parents};
use super::validator::{TreeShape, Validator};
use crate::peers::Peers;
use crate::shard_context::ShardContext;

/// Validations at a time: each shard has one, and one is about to begin.
const VALIDATIONS_MORE: usize = 1;

/// This node in repairs; on the first shard.
pub(super) struct Participant {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    streaming: Rc<Streaming>,
    validators: Remote<Validator>,
    asks: Rc<Asks>,
    sessions: Rc<LocalSessions>,
    parents: RefCell<Parents>,
    /// What a sequential repair is to validate.
    held: RefCell<BTreeMap<JobDescription, Vec<Chosen>>>,
    slots: Semaphore,
    /// The shard that validated last.
    last: Cell<usize>,
}

/// Whom ranges are exchanged with, and how.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub with: Address,
    pub ranges: Vec<TokenRange>,
    /// Does this node only fetch?
    pub only_fetches: bool,
    pub preview: PreviewKind,
    pub pending_repair: Option<Uuid>,
}

impl Participant {
    pub fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        streaming: &Rc<Streaming>,
        validators: Remote<Validator>,
        (asks, sessions): (&Rc<Asks>, &Rc<LocalSessions>),
    ) -> Rc<Self> {
        let slots = validators.count() + VALIDATIONS_MORE;
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            streaming: Rc::clone(streaming),
            validators,
            asks: Rc::clone(asks),
            sessions: Rc::clone(sessions),
            parents: RefCell::default(),
            held: RefCell::default(),
            slots: Semaphore::new(slots as u64),
            last: Cell::new(0),
        })
    }

    fn local(&self) -> Option<Address> {
        self.peers.messenger().map(|messenger| messenger.settings().local)
    }

    #[track_caller]
    fn note(&self, level: Level, text: String) {
        self.peers.note(level, text);
    }

    /// A coordinator asks for something. What takes long is only begun.
    ///
    /// # Errors
    /// What the coordinator is to be told.
    pub async fn serve(
        self: &Rc<Self>,
        from: Address,
        verb: Verb,
        payload: &[u8],
    ) -> Result<(), FailureReason> {
        let mut reader = Reader::new(payload);
        let served = match verb {
            Verb::PrepareMsg => self.prepare(from, &read(Prepare::read(&mut reader))?),
            Verb::SnapshotMsg => self.snapshot(from, read(Snapshot::read(&mut reader))?.desc).await,
            Verb::ValidationReq => {
                self.validation(from, read(ValidationRequest::read(&mut reader))?)
            }
            Verb::SyncReq => self.sync(from, read(SyncRequest::read(&mut reader))?),
            Verb::CleanupMsg => {
                self.end_of(from, read(Cleanup::read(&mut reader))?.parent);
                Ok(())
            }
            _ => return Err(FailureReason::Unknown),
        };
        served.map_err(|why| {
            let text =
                format!("refused {} of a repair that /{from} coordinates: {why}", verb.name());
            self.note(Level::Warn, text);
            FailureReason::Unknown
        })
    }

    /// A repair is about to begin.
    pub fn prepare(&self, from: Address, of: &Prepare) -> Result<(), String> {
        let schema = self.shard.schema();
        let mut keyspace: Option<&str> = None;
        for id in &of.tables {
            let table = schema.table_by_id(id);
            let table = table.ok_or_else(|| {
                format!("Table with id {} was dropped during prepare phase of repair", id.to_hex())
            })?;
            if keyspace.is_some_and(|other| other != table.keyspace) {
                return Err("repair sessions cannot operate on multiple keyspaces".to_owned());
            }
            keyspace = Some(&table.keyspace);
        }
        self.shard.env.mark("repair.prepare");
        let prepared = self.parents.borrow_mut().prepare(from, of, self.shard.env.now());
        prepared.map_err(|why| why.to_string())
    }

    /// The table of a job.
    fn table(&self, job: &JobDescription) -> Result<Arc<Table>, String> {
        let schema = self.shard.schema();
        let table = schema.table(&job.keyspace, &job.table).cloned();
        let (keyspace, name) = (&job.keyspace, &job.table);
        table.ok_or_else(|| format!("Table {keyspace}.{name} was dropped during the repair"))
    }

    /// Holds what the table has now, until it is validated.
    pub async fn snapshot(&self, from: Address, job: JobDescription) -> Result<(), String> {
        let table = self.table(&job)?;
        let asked = self.parents.borrow_mut().snapshot(from, &job, table.id);
        if is_new(asked)? {
            let chosen = self.choose(&job, &table).await.map_err(|error| error.to_string())?;
            // it may be over since
            let is_under_way = |id| self.parents.borrow().get(id).is_some();
            if job.parent.is_some_and(is_under_way) {
                self.held.borrow_mut().insert(job, chosen);
            }
        }
        Ok(())
    }

    fn validation(self: &Rc<Self>, from: Address, of: ValidationRequest) -> Result<(), String> {
        let table = self.table(&of.desc)?;
        let asked = self.parents.borrow_mut().validation(from, &of.desc, table.id);
        if is_new(asked)? {
            let this = Rc::clone(self);
            self.shard.env.spawn(Class::Streaming, async move {
                let trees = this.validate(&of.desc, of.now).await;
                this.answer_validation(from, of.desc, trees).await;
            });
        }
        Ok(())
    }

    async fn answer_validation(
        &self,
        to: Address,
        desc: JobDescription,
        trees: Result<Vec<Tree>, String>,
    ) {
        let name = format!("{}.{}", desc.keyspace, desc.table);
        let head = format!("[repair #{}]", desc.session);
        let trees = match trees {
            Ok(trees) => {
                let text = format!("{head} Sending completed merkle tree to /{to} for {name}");
                self.note(Level::Info, text);
                Some(trees)
            }
            Err(why) => {
                self.parents.borrow_mut().validation_failed(&desc);
                self.note(Level::Error, format!("{head} Validation of {name} failed: {why}"));
                None
            }
        };
        // deep trees take longer to write down than a shard's other tasks may wait
        let written = self.shard.env.helper(move || written(desc, trees)).await;
        let payload = match written {
            Ok(payload) => payload,
            Err(error) => {
                let text = format!("{head} cannot write trees of {name}: {error}");
                return self.note(Level::Error, text);
            }
        };
        if let Err(why) = self.asks.ask(to, Verb::ValidationRsp, payload).await {
            let text = format!(
                "{head} /{to} did not take the merkle tree of {name} ({why}): its repair fails, \
                 and can be started again there"
            );
            self.note(Level::Warn, text);
        }
    }

    /// Hashes what this node has of a table in a job's ranges: a tree for each of them.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn validate(&self, job: &JobDescription, now: i64) -> Result<Vec<Tree>, String> {
        let table = self.table(job)?;
        self.shard.env.mark("repair.validate");
        if let Some(parent) = job.parent {
            self.sessions.set_repairing(parent).await?;
        }
        let _slot = self.slots.acquire(1).await;
        let held = self.held.borrow_mut().remove(job);
        let chosen = match held {
            Some(chosen) => chosen,
            None => self.choose(job, &table).await.map_err(|error| error.to_string())?,
        };
        let mut ranges = job.ranges.clone();
        ranges.sort_by_key(|range| (range.left, range.right));
        ranges.dedup();
        let shapes = self.shapes(&table, &ranges, &chosen);
        let normal = TokenRange::normalize(ranges.iter().copied());
        let of = Validation { table: table.id, ranges: normal, chosen, now };
        let shard = (self.last.get() + 1) % self.validators.count();
        self.last.set(shard);
        let built = self
            .validators
            .call_async(shard, Class::Streaming, move |there: Rc<Validator>| async move {
                there.build(of, &shapes).await
            })
            .await;
        match built {
            Ok(Ok((trees, _))) => Ok(trees),
            Ok(Err(error)) => Err(error.to_string()),
            Err(stopping) => Err(stopping.to_string()),
        }
    }

    /// The SSTables with what this node has of a table in a job's ranges, memtables included.
    async fn choose(
        &self,
        job: &JobDescription,
        table: &Table,
    ) -> Result<Vec<Chosen>, StorageError> {
        // what an incremental one is about was flushed when it began; its previews count no more
        let is_incremental = {
            let parents = self.parents.borrow();
            job.parent.and_then(|id| parents.get(id)).is_some_and(|parent| parent.is_incremental)
        };
        let skips = is_incremental || self.shard.env.planted("repair_validation_without_flush");
        if let Some(node) = self.shard.engine.node().filter(|_| !skips) {
            node.flush(table.id).await?;
        }
        let ranges = TokenRange::normalize(job.ranges.iter().copied());
        let state = self.only(job).state();
        if let (RepairedState::Repaired, Some(node)) = (state, self.shard.engine.node()) {
            // what is repaired and not marked yet counts
            self.sessions.release_ended(&node.repairs().pending_in(table.id, &ranges)).await;
        }
        self.shard.engine.sstables_in(table.id, &ranges, state).await
    }

    /// Which SSTables a job is about.
    fn only(&self, job: &JobDescription) -> Only {
        let parents = self.parents.borrow();
        let parent = job.parent.and_then(|id| parents.get(id));
        let of = |parent: &Parent| Only {
            pending_repair: job
                .parent
                .filter(|_| parent.is_incremental && !parent.preview.is_preview()),
            preview: preview(parent.preview),
        };
        parent.map_or(Only::ALL, of)
    }

    /// How deep the trees of ranges are: they go by how many partitions there are, and by the
    /// memory that a repair may take (`ValidationManager.createMerkleTrees`).
    fn shapes(&self, table: &Table, ranges: &[TokenRange], chosen: &[Chosen]) -> Vec<TreeShape> {
        let partitions = |range: &TokenRange| -> u64 {
            chosen.iter().map(|chosen| chosen.partitions_in(*range)).sum()
        };
        let counts: Vec<u64> = ranges.iter().map(partitions).collect();
        let all: u64 = counts.iter().sum();
        let schema = self.shard.schema();
        let keyspace = schema.keyspace(&table.keyspace);
        let scope = keyspace.and_then(|keyspace| self.peers.scope(keyspace).ok().flatten());
        let replicas = scope.map_or(1, |scope| scope.placement.replication_factor());
        let settings = self.shard.config.repair;
        let budget = TreeBudget {
            session_space: settings.session_space,
            replication_factor: replicas,
            depth_max: settings.max_tree_depth,
        };
        let depth = |count: &u64| budget.depth(*count, all);
        ranges.iter().copied().zip(counts.iter().map(depth)).collect()
    }

    fn sync(self: &Rc<Self>, from: Address, of: SyncRequest) -> Result<(), String> {
        let table = self.table(&of.desc)?;
        if self.local() != Some(of.source) || of.source == of.destination {
            return Err("the streams that it asks for are not this node's".to_owned());
        }
        let nodes = (of.source, of.destination);
        let asked = self.parents.borrow_mut().sync(from, &of.desc, table.id, nodes);
        if is_new(asked)? {
            let this = Rc::clone(self);
            self.shard.env.spawn(Class::Streaming, async move { this.answer_sync(from, of).await });
        }
        Ok(())
    }

    async fn answer_sync(&self, to: Address, of: SyncRequest) {
        let head = format!("[repair #{}]", of.desc.session);
        self.note(
            Level::Info,
            format!(
                "{head} Performing streaming repair of {} ranges with /{}",
                of.ranges.len(),
                of.destination
            ),
        );
        let only = self.only(&of.desc);
        let exchange = Exchange {
            with: of.destination,
            ranges: of.ranges,
            only_fetches: of.is_asymmetric,
            preview: of.preview,
            pending_repair: only.pending_repair,
        };
        let done = self.exchange(&of.desc, exchange).await;
        if let Err(why) = &done {
            self.parents.borrow_mut().sync_failed(&of.desc, (of.source, of.destination));
            self.note(
                Level::Error,
                format!("{head} streams with /{} failed: {why}", of.destination),
            );
        }
        let answer = SyncResponse {
            desc: of.desc,
            source: of.source,
            destination: of.destination,
            is_success: done.is_ok(),
            summaries: done.unwrap_or_default(),
        };
        let mut payload = Vec::new();
        if let Err(error) = answer.write(&mut payload) {
            return self.note(Level::Error, format!("{head} cannot write an answer: {error}"));
        }
        if let Err(why) = self.asks.ask(to, Verb::SyncRsp, payload).await {
            let text = format!("{head} /{to} did not take the end of streams ({why})");
            self.note(Level::Warn, text);
        }
    }

    /// Exchanges ranges with another node.
    ///
    /// # Errors
    /// Why it cannot.
    pub async fn exchange(
        &self,
        job: &JobDescription,
        of: Exchange,
    ) -> Result<Vec<SessionSummary>, String> {
        let table = self.table(job)?;
        self.shard.env.mark("repair.stream");
        let local = self.local().ok_or("this node is in no ring")?;
        let ranges = TokenRange::normalize(of.ranges.iter().copied());
        let mut plan = Plan::new(Operation::Repair);
        plan.only = Only { pending_repair: of.pending_repair, preview: preview(of.preview) };
        let request = Request {
            keyspace: job.keyspace.clone(),
            endpoint: local,
            ranges: ranges.clone(),
            transient_ranges: Vec::new(),
            tables: vec![job.table.clone()],
        };
        plan.requests.insert(of.with, vec![request]);
        if !of.only_fetches {
            plan.gives.insert(of.with, vec![Give { table: table.id, ranges }]);
        }
        let summary = |(peer, announced): (Address, Announced)| SessionSummary {
            coordinator: local,
            peer,
            receiving: announced.receiving.iter().map(stream_summary).collect(),
            sending: announced.sending.iter().map(stream_summary).collect(),
        };
        match self.streaming.run(plan).await {
            Ok(sessions) => Ok(sessions.into_iter().map(summary).collect()),
            Err(failed) => {
                let each = failed.iter().map(|(node, why)| format!("/{node}: {why}"));
                Err(each.collect::<Vec<_>>().join("; "))
            }
        }
    }

    /// A coordinator says that its repair is over.
    pub fn end_of(&self, from: Address, parent: Uuid) {
        let is_its = self.parents.borrow().get(parent).is_some_and(|it| it.coordinator == from);
        if is_its {
            self.end(parent);
        }
    }

    /// A repair that it takes part in.
    pub fn parent(&self, id: Uuid) -> Option<Parent> {
        self.parents.borrow().get(id).cloned()
    }

    /// Forgets a repair, and what was held for it.
    pub fn end(&self, parent: Uuid) {
        self.shard.env.mark("repair.clean_up");
        self.parents.borrow_mut().end(parent);
        self.held.borrow_mut().retain(|job, _| job.parent != Some(parent));
    }

    /// Forgets repairs of a coordinator that is gone.
    pub fn lost(&self, coordinator: Address) {
        let its = self.parents.borrow().of_coordinator(coordinator);
        for parent in its {
            let text = format!("forgot repair {parent}: its coordinator /{coordinator} is gone");
            self.note(Level::Info, text);
            self.end(parent);
        }
    }

    /// Coordinators of repairs that it takes part in.
    pub fn coordinators(&self) -> BTreeSet<Address> {
        self.parents.borrow().coordinators()
    }

    /// Is a node in this one's ring?
    pub fn knows(&self, node: Address) -> bool {
        self.peers.ring().is_some_and(|ring| ring.find(node).is_some())
    }

    /// Is that this node?
    pub fn is_local(&self, node: Address) -> bool {
        self.local() == Some(node)
    }
}

/// Is something to be begun?
fn is_new(asked: Result<Asked, NoPart>) -> Result<bool, String> {
    match asked {
        Ok(Asked::New) => Ok(true),
        Ok(Asked::Again) => Ok(false),
        Ok(Asked::Refused) => Err("it failed before, or comes too late".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

/// An answer with trees, in Cassandra's order.
fn written(
    desc: JobDescription,
    mut trees: Option<Vec<Tree>>,
) -> Result<Vec<u8>, repair::wire::Unwritable> {
    if let Some(trees) = &mut trees {
        trees.sort_by(Tree::order);
    }
    let mut payload = Vec::new();
    ValidationResponse { desc, trees }.write(&mut payload)?;
    Ok(payload)
}

fn read<T>(read: Result<T, repair::wire::PayloadError>) -> Result<T, FailureReason> {
    read.map_err(|_| FailureReason::Unknown)
}

/// The same kind, as streams say it.
fn preview(of: PreviewKind) -> Preview {
    match of {
        PreviewKind::None => Preview::None,
        PreviewKind::All => Preview::All,
        PreviewKind::Unrepaired => Preview::Unrepaired,
        PreviewKind::Repaired => Preview::Repaired,
    }
}

fn stream_summary(of: &Summary) -> StreamSummary {
    StreamSummary { table: of.table, files: of.files, bytes: of.bytes }
}
