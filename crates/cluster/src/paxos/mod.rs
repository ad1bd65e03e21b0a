//! Conditional statements and serial reads: rounds of Paxos, one at a time at a partition, run
//! where the shard owns its key (`StorageProxy.legacyCas`).
//!
//! [`round`] and [`acceptor`] are the protocol, pure; [`store`] keeps a replica's state in
//! `system.paxos`; [`replica`] puts both together for this node, and [`voters`] asks all that take
//! part.
//!
//! A round is Cassandra's with `paxos_variant: v1`: promise, read, proposal, commit. Requests of a
//! partition wait for their turn on the shard that owns its key. A round that a crash interrupted
//! is finished by the next one at its partition, of a serial read too.
//!
//! All that a request writes has its ballot's time, paths of list cells included. The values are
//! those that the coordinator bound, in every round.

mod acceptor;
mod ballot;
mod replica;
mod round;
mod store;
#[cfg(test)]
mod tests;
mod voters;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cql::CqlError;
use cql::modify::{Cas, CasAnswer, Current};
use env::Instant;
use protocol::{Consistency, ErrorDetail, ErrorResponse, ResultMetadata, WriteType};
use rows::{Bound, BoundKind, Clustering, RowBuilder, RowRef, Unfiltered};
use schema::{Strategy, Table};
use storage::shards::Remote;
use storage::{Engine, PartitionKey, Sampler, Slices, StorageError, Trace};

use crate::answer::{Answer, Outcome, Page, cql_error, invalid, write_error};
use crate::binding::{BatchPart, Binder};
use crate::levels::check_replicas;
pub(crate) use crate::paxos::acceptor::Proposal;
pub(crate) use crate::paxos::ballot::Ballot;
use crate::paxos::ballot::Scope;
pub(crate) use crate::paxos::replica::Acceptors;
use crate::paxos::round::{Round, Step};
pub(crate) use crate::paxos::store::Subject;
use crate::paxos::voters::Voters;
use crate::peers::Peers;
use crate::prepared::{class_name, columns};
use crate::read::shard::{PartitionRows, ReadError};
use crate::request::Request;
use crate::request_metrics::ClientRequests;
use crate::ring_read::RingReads;
use crate::ring_write::RingWrites;
use crate::shard_context::{STATEMENT, ShardContext};
use crate::turns::Turns;

/// A coordinator that lost a ballot waits up to so long.
const BACKOFF_MAX: Duration = Duration::from_millis(100);

/// What goes to the shard that owns the key.
struct Task {
    /// Of the partition.
    key: PartitionKey,
    cas: Cas,
    /// "Now", in seconds.
    now: i64,
    serial: Consistency,
    commit: Consistency,
    /// No ballot is begun after this.
    contention: Instant,
    trace: Trace,
}

/// Why a round came to nothing.
enum Failure {
    Cql(CqlError),
    Storage(StorageError),
    Answer(ErrorResponse),
    /// Others were in the way until the time was up, so often.
    Contention {
        times: u32,
        required: usize,
    },
    /// Too few answered in time.
    Late {
        received: usize,
        required: usize,
    },
    /// Some replicas accepted what was proposed.
    Unknown {
        accepted: usize,
        required: usize,
    },
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Ring(error) => Self::Answer(error),
            ReadError::Storage(error) => Self::Storage(error),
            ReadError::Cql(error) => Self::Cql(error),
            // rows that are looked at here are not counted
            ReadError::Over(_) => Self::Storage(StorageError::Deadline),
        }
    }
}

impl From<CqlError> for Failure {
    fn from(error: CqlError) -> Self {
        Self::Cql(error)
    }
}

impl Failure {
    /// As a client of a write is told.
    fn of_write(self, engine: &Engine, serial: Consistency) -> ErrorResponse {
        match self {
            Self::Cql(error) => cql_error(error),
            Self::Answer(error) => error,
            Self::Storage(StorageError::Deadline) => ErrorResponse::cas_timeout(serial, 0, 1, 0),
            Self::Storage(error) => {
                engine.inspect(&error);
                write_error(&error, serial, WriteType::Cas)
            }
            Self::Contention { times, required } => {
                let times = u16::try_from(times).unwrap_or(u16::MAX);
                ErrorResponse::cas_timeout(serial, 0, int(required), times)
            }
            Self::Late { received, required } => {
                ErrorResponse::cas_timeout(serial, int(received), int(required), 0)
            }
            Self::Unknown { accepted, required } => {
                ErrorResponse::cas_unknown(serial, int(accepted), int(required))
            }
        }
    }

    /// As a client of a read is told.
    fn of_read(self, engine: &Engine, serial: Consistency) -> ErrorResponse {
        match self {
            Self::Cql(error) => cql_error(error),
            Self::Answer(error) => error,
            Self::Storage(error) => {
                engine.inspect(&error);
                crate::answer::read_error(&error, serial)
            }
            Self::Contention { required, .. }
            | Self::Late { required, .. }
            | Self::Unknown { required, .. } => {
                ErrorResponse::read_timeout(serial, 0, int(required), false)
            }
        }
    }
}

fn int(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// What a round is for.
enum Purpose<'a> {
    /// To see to it that nothing decided is left undone, before a read.
    Read,
    /// A conditional request.
    Write(&'a Task),
}

impl Purpose<'_> {
    /// The level that what is decided is committed at; that of another's round too.
    fn commit_level(&self, serial: Consistency) -> Consistency {
        match self {
            Self::Write(task) => task.commit,
            Self::Read => quorum_of(serial),
        }
    }
}

/// Why a conditional request came to nothing.
enum Refused {
    /// Its table is another one where its key is owned than where it was planned.
    Outdated,
    Answered(ErrorResponse),
}

impl Refused {
    /// What the client is told, if there is no time left to plan anew.
    fn answer(self) -> ErrorResponse {
        match self {
            Self::Outdated => invalid("The table was altered during the statement; try again"),
            Self::Answered(error) => error,
        }
    }
}

/// What came of a round.
struct Done {
    answer: Option<CasAnswer>,
    warnings: Vec<String>,
}

/// Holds rounds, where the shard owns the key.
pub(crate) struct Paxos {
    shard: Rc<ShardContext>,
    others: Remote<Paxos>,
    turns: Rc<Turns>,
    acceptors: Rc<Acceptors>,
    peers: Rc<Peers>,
    reads: Rc<RingReads>,
    writes: Rc<RingWrites>,
    binder: Rc<Binder>,
    requests: Rc<ClientRequests>,
}

impl Paxos {
    pub fn new(
        (shard, others): (&Rc<ShardContext>, Remote<Self>),
        (turns, acceptors): (&Rc<Turns>, &Rc<Acceptors>),
        (peers, reads, writes): (&Rc<Peers>, &Rc<RingReads>, &Rc<RingWrites>),
        binder: &Rc<Binder>,
        requests: &Rc<ClientRequests>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            others,
            turns: Rc::clone(turns),
            acceptors: Rc::clone(acceptors),
            peers: Rc::clone(peers),
            reads: Rc::clone(reads),
            writes: Rc::clone(writes),
            binder: Rc::clone(binder),
            requests: Rc::clone(requests),
        })
    }

    /// A conditional statement, or a batch that has conditions.
    pub async fn cas(
        self: &Rc<Self>,
        parts: &[BatchPart<'_>],
        is_batch: bool,
        request: &Request<'_>,
    ) -> Outcome {
        let started = self.shard.env.now();
        let mut warnings = Vec::new();
        let mut is_outdated = false;
        let result =
            self.cas_answer(parts, is_batch, request, &mut warnings, &mut is_outdated).await;
        let metrics = &self.requests.cas_write;
        metrics.requests.ended(self.shard.env.now().since(started), result.as_ref().err());
        if let Err(ErrorResponse { detail: ErrorDetail::CasWriteUnknown { .. }, .. }) = &result {
            metrics.unknown.inc();
        }
        Outcome { is_outdated, ..Outcome::new(result.map(Answer::Rows), warnings) }
    }

    async fn cas_answer(
        self: &Rc<Self>,
        parts: &[BatchPart<'_>],
        is_batch: bool,
        request: &Request<'_>,
        warnings: &mut Vec<String>,
        is_outdated: &mut bool,
    ) -> Result<Page, ErrorResponse> {
        request.guard_write()?;
        let now = self.binder.now(request);
        let cas = self.binder.with_parts(parts, request, &now, |parts| Cas::bind(parts, is_batch));
        let cas = cas.map_err(cql_error)?;
        let (serial, commit) = (request.options.serial_consistency, request.options.consistency);
        self.check_levels(cas.table(), serial, commit)?;
        let key = PartitionKey::new(cas.key());
        let cas = match self.shard.env.planted("cas_key_bound_twice") {
            true => self
                .binder
                .with_parts(parts, request, &now, |parts| Cas::bind(parts, is_batch))
                .map_err(cql_error)?,
            false => cas,
        };
        let trace = request.trace().clone();
        let table = Arc::clone(cas.table());
        let subject = Subject { table, key: key.clone(), trace: trace.clone() };
        self.voters(&subject, serial)?;
        let contention = self.shard.env.now() + self.shard.timeouts().cas_contention;
        let task =
            Task { key: key.clone(), cas, now: now.seconds, serial, commit, contention, trace };
        let shard = self.shard.engine.owner(key.token);
        self.shard.count_owner(shard);
        let run = move |owner: Rc<Self>| async move { owner.run_cas(task).await };
        let run = self.others.call_async(shard, STATEMENT, run);
        let done = match self.shard.env.timeout_at(request.deadline, run).await {
            Ok(done) => {
                let failed = |error| {
                    Failure::Storage(StorageError::from(error)).of_write(&self.shard.engine, serial)
                };
                done.map_err(failed)?
            }
            Err(_) => return Err(ErrorResponse::cas_timeout(serial, 0, 1, 0)),
        };
        let done = done.map_err(|refused| {
            *is_outdated = matches!(refused, Refused::Outdated);
            refused.answer()
        })?;
        warnings.extend(done.warnings);
        let answer =
            done.answer.ok_or_else(|| invalid("A conditional statement gave no answer"))?;
        Ok(Page {
            metadata: Arc::new(ResultMetadata::new(&columns(&answer.columns), class_name)),
            rows: answer.rows,
            cells: answer.cells,
            paging_state: None,
        })
    }

    /// Are these levels to decide at and to commit at (`ConsistencyLevel.validateForCas`,
    /// `validateForCasCommit`)? Whether there are replicas enough to commit is asked only once
    /// there is something to be committed.
    fn check_levels(
        &self,
        table: &Table,
        serial: Consistency,
        commit: Consistency,
    ) -> Result<(), ErrorResponse> {
        if !serial.is_serial() {
            return Err(invalid(
                "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL",
            ));
        }
        if commit.is_serial() {
            return Err(invalid(format!(
                "{commit} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is accepted but I don't care how many replicas commit it for non-SERIAL reads\""
            )));
        }
        let schema = self.shard.schema();
        let keyspace = schema.keyspace(&table.keyspace);
        let strategy = keyspace.map(|keyspace| &keyspace.replication.strategy);
        if commit == Consistency::EachQuorum
            && !matches!(strategy, None | Some(Strategy::NetworkTopology(_)))
        {
            return Err(invalid(
                "consistency level EACH_QUORUM not compatible with replication strategy (org.apache.cassandra.locator.SimpleStrategy)",
            ));
        }
        Ok(())
    }

    /// Before a serial read: finishes what was decided and not committed, and bars what was not
    /// decided.
    pub async fn serial_round(
        self: &Rc<Self>,
        table: &Arc<Table>,
        key: PartitionKey,
        serial: Consistency,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), ErrorResponse> {
        if self.shard.env.planted("serial_read_without_round") {
            return Ok(());
        }
        let started = self.shard.env.now();
        let shard = self.shard.engine.owner(key.token);
        let contention = started + self.shard.timeouts().cas_contention;
        let subject = Subject { table: Arc::clone(table), key, trace: trace.clone() };
        let run = move |owner: Rc<Self>| async move {
            let result = owner.run_round(&subject, serial, contention, &Purpose::Read).await;
            result.map(drop).map_err(|failure| failure.of_read(&owner.shard.engine, serial))
        };
        let run = self.others.call_async(shard, STATEMENT, run);
        let result = match self.shard.env.timeout_at(deadline, run).await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => {
                Err(Failure::Storage(error.into()).of_read(&self.shard.engine, serial))
            }
            Err(_) => Err(ErrorResponse::read_timeout(serial, 0, 1, false)),
        };
        let elapsed = self.shard.env.now().since(started);
        self.requests.cas_read.requests.ended(elapsed, result.as_ref().err());
        result
    }

    /// On the owner of its key: a conditional request.
    async fn run_cas(self: &Rc<Self>, task: Task) -> Result<Done, Refused> {
        let table = Arc::clone(task.cas.table());
        let key = task.key.clone();
        let store = self.shard.engine.store(table.id);
        let layout = store.map(|store| Arc::clone(&store.table().layout));
        // it was planned for the columns of another epoch
        if layout.is_ok_and(|layout| layout != table.layout) {
            return Err(Refused::Outdated);
        }
        let subject = Subject { table, key, trace: task.trace.clone() };
        let purpose = Purpose::Write(&task);
        let done = self.run_round(&subject, task.serial, task.contention, &purpose).await;
        done.map_err(|failure| Refused::Answered(failure.of_write(&self.shard.engine, task.serial)))
    }

    /// Holds rounds at a partition, in its turn, until one succeeds.
    async fn run_round(
        self: &Rc<Self>,
        subject: &Subject,
        serial: Consistency,
        contention: Instant,
        purpose: &Purpose<'_>,
    ) -> Result<Done, Failure> {
        let metrics = match purpose {
            Purpose::Read => &self.requests.cas_read,
            Purpose::Write(_) => &self.requests.cas_write,
        };
        let early = match purpose {
            Purpose::Write(task) if self.shard.env.planted("cas_reads_before_its_turn") => {
                Some(self.see(task).await?)
            }
            _ => None,
        };
        let turn = self.shard.env.timeout_at(contention, self.turns.take(&subject.key.bytes)).await;
        let mut voters = self.voters(subject, serial).map_err(Failure::Answer)?;
        let Ok(_turn) = turn else {
            metrics.contention.record(1);
            self.sample_contention(subject, 1);
            return Err(Failure::Contention { times: 1, required: voters.required });
        };
        let mut lost = 0;
        let mut above = Ballot::none();
        let result = loop {
            if lost > 0 {
                if self.shard.env.now() >= contention {
                    break Err(Failure::Contention { times: lost, required: voters.required });
                }
                voters = self.voters(subject, serial).map_err(Failure::Answer)?;
            }
            let ballot = self.ballot(serial, above);
            let mut round = voters.round(ballot);
            let step = match self.ask_promises(subject, &voters, &mut round).await? {
                Step::Propose => {
                    let seen = early.clone();
                    self.propose_own(subject, &voters, &mut round, purpose, seen).await?
                }
                Step::Finish(proposal) => {
                    metrics.unfinished.inc();
                    self.shard.env.mark("paxos.unfinished");
                    let asked = self.ask_acceptances(subject, &voters, &mut round, &proposal);
                    let step = asked.await?;
                    if matches!(step, Step::Decided) {
                        let level = purpose.commit_level(serial);
                        self.commit_decided(subject, &voters, &proposal, level).await?;
                        above = ballot;
                        continue;
                    }
                    Next::Step(step)
                }
                Step::Teach(commit, behind) => {
                    self.teach(subject, &voters, &commit, &behind).await?;
                    above = ballot;
                    continue;
                }
                step => Next::Step(step),
            };
            match step {
                Next::Done(done) => break Ok(done),
                Next::Step(Step::Unknown(accepted)) => {
                    break Err(Failure::Unknown { accepted, required: voters.required });
                }
                Next::Step(Step::Lost(later)) => above = later,
                Next::Step(_) => {}
            }
            lost += 1;
            self.shard
                .env
                .sleep(BACKOFF_MAX.mul_f64(self.shard.env.random_u64() as f64 / u64::MAX as f64))
                .await;
        };
        metrics.contention.record(lost.into());
        self.sample_contention(subject, lost);
        result
    }

    /// Others were in the way at a partition, so often.
    fn sample_contention(&self, subject: &Subject, times: u32) {
        let engine = &self.shard.engine;
        engine.sample(subject.table.id, Sampler::CasContentions, times.into(), &subject.key.bytes);
    }

    /// Most replicas promised: what this round is for.
    async fn propose_own(
        self: &Rc<Self>,
        subject: &Subject,
        voters: &Voters,
        round: &mut Round,
        purpose: &Purpose<'_>,
        seen: Option<Current>,
    ) -> Result<Next, Failure> {
        let ballot = round.ballot();
        let (update, done) = match purpose {
            Purpose::Read => {
                let nothing = rows::UpdateBuilder::new(
                    subject.table.id.0,
                    Arc::clone(&subject.table.layout),
                    &subject.key.bytes,
                );
                let done = Done { answer: None, warnings: Vec::new() };
                (nothing.finish(&mut RowBuilder::new()), done)
            }
            Purpose::Write(task) => self.decide(task, ballot, seen).await?,
        };
        let proposal = Proposal { ballot, update };
        match self.ask_acceptances(subject, voters, round, &proposal).await? {
            Step::Decided => {}
            step => return Ok(Next::Step(step)),
        }
        // What is empty is not committed: it has done its work once it is accepted.
        if !proposal.update.is_empty() {
            if self.shard.env.planted("cas_answered_before_commit") {
                let (here, subject) = (Rc::clone(self), subject.clone());
                self.shard.env.spawn(STATEMENT, async move {
                    here.shard.env.sleep(BACKOFF_MAX / 20).await;
                    let _ = here.acceptors.commit(&subject, &proposal).await;
                });
                return Ok(Next::Done(done));
            }
            let level = purpose.commit_level(Consistency::Serial);
            self.commit_decided(subject, voters, &proposal, level).await?;
        }
        Ok(Next::Done(done))
    }

    /// Reads, and decides whether a conditional request is done and what it writes.
    async fn decide(
        self: &Rc<Self>,
        task: &Task,
        ballot: Ballot,
        seen: Option<Current>,
    ) -> Result<(rows::PartitionUpdate, Done), Failure> {
        let current = match seen {
            Some(current) => current,
            None => self.see(task).await?,
        };
        if !task.cas.applies(&current)? && !self.is_planted_to_apply(task) {
            self.requests.cas_write.not_met.inc();
            self.shard.env.mark("cas.refused");
            let done = Done { answer: Some(task.cas.refused(&current)), warnings: Vec::new() };
            return Ok((task.cas.nothing_written(), done));
        }
        self.shard.env.mark("cas.applied");
        self.check_commit(task).map_err(Failure::Answer)?;
        let cells = Cell::new(0);
        let path = || ballot.list_path(cells.replace(cells.get() + 1));
        let mut warnings = Vec::new();
        let update = task.cas.updates(&current, ballot.unix_micros(), &path, &mut warnings)?;
        assert_eq!(
            *update.key, *task.key.bytes,
            "a conditional statement writes to the partition of its round"
        );
        self.requests.cas_write.size.record(update.size() as u64);
        Ok((update, Done { answer: Some(task.cas.applied()), warnings }))
    }

    /// Are there replicas enough to commit?
    fn check_commit(&self, task: &Task) -> Result<(), ErrorResponse> {
        let schema = self.shard.schema();
        let Some(keyspace) = schema.keyspace(&task.cas.table().keyspace) else { return Ok(()) };
        match self.peers.scope(keyspace)? {
            None => check_replicas(keyspace, task.commit, &self.shard.identity.data_center, false),
            Some(scope) => {
                let token = PartitionKey::new(task.cas.key()).token;
                Ok(scope.write_plan(token, task.commit).map(drop)?)
            }
        }
    }

    fn is_planted_to_apply(&self, task: &Task) -> bool {
        let rows = task.cas.rows().map_or(0, |rows| rows.len());
        rows > 1 && self.shard.env.planted("cas_batch_ignores_conditions")
    }

    /// Reads what a conditional request asks for.
    async fn see(self: &Rc<Self>, task: &Task) -> Result<Current, Failure> {
        let cas = &task.cas;
        let mut current = cas.nothing(task.now);
        let key = PartitionKey::new(cas.key());
        let rows = cas.rows();
        let level = match self.shard.env.planted("ring_cas_reads_own") {
            true => Consistency::One,
            false => quorum_of(task.serial),
        };
        let (table, trace) = (cas.table(), &task.trace);
        trace.note(&self.shard.env, || "Reading existing values for CAS precondition".to_owned());
        let over_ring = self.reads.see_over_ring(table, &key, rows.as_deref(), level, trace).await;
        if let Some(mut found) = over_ring.map_err(Failure::Answer)? {
            self.look(cas, &mut found, &mut current, rows.is_none()).await?;
            return Ok(current);
        }
        let one = |row: &Clustering| {
            let bound = |kind| Bound::new(kind, row.clone());
            (bound(BoundKind::InclStart), bound(BoundKind::InclEnd))
        };
        let slices = match &rows {
            Some(rows) => Slices::new(rows.iter().map(one).collect::<Vec<_>>(), false),
            None => Slices::all(false),
        };
        let found = self.shard.engine.traced_partition(table, key.as_ref(), &slices, trace).await?;
        let Some(mut found) = found else { return Ok(current) };
        self.look(cas, &mut found, &mut current, rows.is_none()).await?;
        Ok(current)
    }

    /// Takes in the rows that there are: all of them, or the first that is there.
    async fn look(
        &self,
        cas: &Cas,
        found: &mut impl PartitionRows,
        current: &mut Current,
        wants_first: bool,
    ) -> Result<(), Failure> {
        let mut scratch = RowBuilder::new();
        if let Some(row) = found.static_row() {
            cas.see(RowRef::from_packed(&row), current, &mut scratch);
        }
        while let Some(unfiltered) = found.next().await? {
            let Unfiltered::Row(row) = unfiltered else { continue };
            if cas.see(row, current, &mut scratch) && wants_first {
                break;
            }
            self.shard.env.maybe_yield().await;
        }
        Ok(())
    }

    /// A ballot that nobody gave before, after `above`.
    fn ballot(&self, serial: Consistency, above: Ballot) -> Ballot {
        let scope = match serial {
            Consistency::LocalSerial => Scope::Local,
            _ => Scope::Global,
        };
        let micros = match self.shard.env.planted("ballot_goes_back") {
            true => self.shard.env.unix_micros(),
            false => self.shard.env.unique_micros().max(above.unix_micros() + 1),
        };
        Ballot::new(micros, scope, self.shard.env.random_u64())
    }
}

/// The level that is read at in rounds of a serial one.
pub(crate) fn quorum_of(serial: Consistency) -> Consistency {
    match serial {
        Consistency::LocalSerial => Consistency::LocalQuorum,
        _ => Consistency::Quorum,
    }
}

/// How a ballot ended.
enum Next {
    Done(Done),
    Step(Step),
}
