//! One request to replicas: who is asked, what they give, and what becomes of it where they differ
//! (`service.reads.AbstractReadExecutor`, `ReadCallback`, `DigestResolver`,
//! `repair.BlockingReadRepair`).
//!
//! The first replica gives data, the others digests. Where that takes long, one more replica is
//! asked. Where the digests differ, all give data, `reconcile` merges it, and a repair brings
//! replicas level (`read_repair = 'BLOCKING'`). Replicas of a range all give data.

use std::cell::{LazyCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use env::sync::Notify;
use internode::payload::read::{DIGEST_BYTES, DataDigest, ReadCommand, ReadResponse, Target};
use internode::{FailureReason, Flags, Params, Verb};
use messaging::{Answer, Failed};
use protocol::ErrorResponse;
use ring::{Acks, NodeIndex, Verdict};
use rows::codec::PartitionStart;
use rows::{Mutation, PartitionUpdate};
use schema::ReadRepair;
use storage::PartitionKey;
use types::{Address, Reader, Token};

use crate::peer_request::PeerRequest;
use crate::read::limits::command as as_told;
use crate::reconcile::{Given, Reconciled, decode, reconcile, reconcile_one};
use crate::replica_read::Seen;
use crate::ring_read::RingRead;
use crate::ring_read::told::given_up;
use crate::ring_write::reason_of;
use crate::scope::client_failures;
use crate::shard_context::STATEMENT;
use crate::traced::{note_answer, traced};

/// The digest of what a replica has; none if it is no such digest.
type Digest = Option<[u8; DIGEST_BYTES]>;

/// The version of digests, that of messaging.
const DIGEST_VERSION: i32 = 12;

/// Whom to ask, and for what.
pub(super) struct Contacts {
    /// For data.
    pub data: Vec<NodeIndex>,
    /// For digests.
    pub digests: Vec<NodeIndex>,
    pub acks: Acks<FailureReason>,
}

/// What came of those that were asked.
struct Gathered {
    read: Rc<RingRead>,
    /// What they were asked; none of repairs.
    command: Option<Arc<ReadCommand>>,
    acks: RefCell<Acks<FailureReason>>,
    answers: RefCell<Vec<(NodeIndex, Gave)>>,
    bell: Notify,
}

/// What a replica gave.
enum Gave {
    /// As it was sent.
    Payload(Vec<u8>),
    /// Data, of this node or as they were read.
    Data(Given),
}

impl Gave {
    /// What kind it is; none if it makes no sense.
    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Data(_) => Some(Kind::Data),
            Self::Payload(payload) => kind_of(payload),
        }
    }
}

impl Gathered {
    fn new(
        read: &Rc<RingRead>,
        command: Option<&Arc<ReadCommand>>,
        acks: Acks<FailureReason>,
    ) -> Rc<Self> {
        let (acks, answers, bell) = (RefCell::new(acks), RefCell::default(), Notify::new());
        let (read, command) = (Rc::clone(read), command.map(Arc::clone));
        Rc::new(Self { read, command, acks, answers, bell })
    }

    /// The partition that is read; none of a range.
    fn key(&self) -> Option<PartitionKey> {
        match &self.command.as_ref()?.target {
            Target::Partition { key, .. } => Some(PartitionKey::new(key.clone())),
            Target::Range { .. } => None,
        }
    }

    /// This node answered itself.
    fn seen(&self, node: NodeIndex, seen: Seen<Gave>) {
        let Seen { answer, params, scanned, last } = seen;
        let thresholds = &self.read.thresholds;
        if !thresholds.are_tracked && thresholds.warns(scanned) {
            let last = last.unwrap_or(Token::MIN);
            self.read.told.borrow_mut().entry(self.key()).or_default().went_over(scanned, last);
        }
        self.answered(node, &params, answer);
    }

    /// A replica answered. What it says that it went over may mean that there is nothing in its
    /// answer.
    fn answered(&self, node: NodeIndex, params: &Params, answer: Gave) {
        let mut given_up_for = None;
        if !params.is_empty() && self.read.thresholds.are_tracked {
            let from = self.read.scope.ring.node(node).address;
            self.read.told.borrow_mut().entry(self.key()).or_default().hear(from, params);
            given_up_for = given_up(params);
        }
        self.ended(node, given_up_for.map_or(Ok(answer), Err));
    }

    fn ended(&self, node: NodeIndex, answer: Result<Gave, FailureReason>) {
        let mut acks = self.acks.borrow_mut();
        match answer.map(|answer| (answer.kind(), answer)) {
            Ok((Some(kind), answer)) => {
                match kind {
                    Kind::Data => acks.gave_data(node),
                    Kind::Digest => acks.answered(node),
                };
                self.answers.borrow_mut().push((node, answer));
            }
            Ok((None, _)) => drop(acks.failed(node, FailureReason::Unknown)),
            Err(reason) => drop(acks.failed(node, reason)),
        }
        self.bell.notify_one();
    }

    /// Waits until there is enough, or until then.
    async fn until(&self, deadline: Instant) -> Verdict {
        loop {
            let verdict = self.acks.borrow().verdict();
            let env = &self.read.reads.shard.env;
            if verdict != Verdict::Pending
                || env.timeout_at(deadline, self.bell.notified()).await.is_err()
            {
                return verdict;
            }
        }
    }

    /// What the client is told where there is not enough.
    fn lack(&self, is_over: bool) -> ErrorResponse {
        let acks = self.acks.borrow();
        let abortion = self.abortion();
        if abortion.is_none()
            && acks.failures().iter().any(|(_, reason)| *reason == FailureReason::ReadSize)
        {
            self.read.is_too_large.set(true);
        }
        let is_late =
            is_over || acks.failures().iter().all(|(_, reason)| *reason == FailureReason::Timeout);
        let (level, has_data) = (self.read.level, acks.has_data());
        let (received, required) = (acks.received() as i32, acks.required() as i32);
        if is_late && abortion.is_none() {
            return ErrorResponse::read_timeout(level, received, required, has_data);
        }
        let ring = &self.read.scope.ring;
        let named = acks.failures().iter().map(|(node, why)| (ring.node(*node).address, *why));
        let failures = client_failures(&named.collect::<Vec<_>>());
        match abortion {
            None => ErrorResponse::read_failure(level, received, required, has_data, &failures),
            Some(why) => {
                ErrorResponse::read_aborted(level, (received, required), has_data, &why, &failures)
            }
        }
    }

    /// Why replicas gave up, if they say so.
    fn abortion(&self) -> Option<String> {
        let (key, told) = (self.key(), self.read.told.borrow());
        let (told, task) = (told.get(&key)?, self.read.task.as_ref()?);
        told.abortion(&as_told(task, key.as_ref()).text)
    }
}

enum Kind {
    Data,
    Digest,
}

fn kind_of(payload: &[u8]) -> Option<Kind> {
    match ReadResponse::read(&mut Reader::new(payload)).ok()? {
        ReadResponse::Data { .. } => Some(Kind::Data),
        ReadResponse::Digest(_) => Some(Kind::Digest),
    }
}

impl RingRead {
    /// Asks replicas, and makes one answer of theirs. `more` names a further one where the first
    /// take longer than `patience`.
    pub(super) async fn ask(
        self: &Rc<Self>,
        command: &Arc<ReadCommand>,
        verb: Verb,
        contacts: Contacts,
        patience: Option<Duration>,
        more: impl FnOnce() -> Option<NodeIndex>,
    ) -> Result<Reconciled, ErrorResponse> {
        let Contacts { data, digests, acks } = contacts;
        let mut asked: Vec<NodeIndex> = data.iter().chain(&digests).copied().collect();
        let gathered = Gathered::new(self, Some(command), acks);
        let as_digest = || {
            let digest = Some(DIGEST_VERSION);
            Arc::new(ReadCommand { digest, ..ReadCommand::clone(command) })
        };
        self.send(&data, command, verb, &gathered)?;
        if !digests.is_empty() {
            self.send(&digests, &as_digest(), verb, &gathered)?;
        }
        let mut verdict = Verdict::Pending;
        if let Some(patience) = patience {
            let soon = self.reads.shard.env.now() + patience;
            verdict = gathered.until(soon.min(self.deadline)).await;
            if verdict == Verdict::Pending
                && soon < self.deadline
                && let Some(node) = more()
            {
                let wants_data = !gathered.acks.borrow().has_data();
                self.count_speculation();
                gathered.acks.borrow_mut().asked(&self.scope.ring, node);
                match wants_data {
                    true => self.send(&[node], command, verb, &gathered)?,
                    false => self.send(&[node], &as_digest(), verb, &gathered)?,
                }
                asked.push(node);
            }
        }
        if verdict != Verdict::Enough {
            match gathered.until(self.deadline).await {
                Verdict::Enough => {}
                verdict => return Err(gathered.lack(verdict == Verdict::Pending)),
            }
        }
        let answers = std::mem::take(&mut *gathered.answers.borrow_mut());
        let (mut data, digests) = self.opened(command, answers)?;
        if self.agree(command, &data, &digests) {
            let (_, given) = data.swap_remove(0);
            return Ok(reconcile_one(&self.table, command, given));
        }
        if let Target::Partition { key, .. } = &command.target {
            self.count_mismatch(&PartitionKey::new(key.clone()));
        }
        self.resolve(command, verb, &asked, (data, digests.len())).await
    }

    /// A replica is asked that might not have been.
    pub(super) fn count_speculation(&self) {
        if let Ok(store) = self.reads.shard.engine.store(self.table.id) {
            let retries = &store.stats.speculative_retries;
            retries.set(retries.get() + 1);
        }
        self.reads.shard.env.mark("read.speculated");
    }

    /// What replicas gave: data and digests.
    fn opened(
        &self,
        command: &ReadCommand,
        answers: Vec<(NodeIndex, Gave)>,
    ) -> Result<(Vec<(NodeIndex, Given)>, Vec<Digest>), ErrorResponse> {
        let (mut all, mut digests) = (Vec::with_capacity(1), Vec::new());
        for (node, gave) in answers {
            let payload = match gave {
                Gave::Data(given) => {
                    all.push((node, given));
                    continue;
                }
                Gave::Payload(payload) => payload,
            };
            match ReadResponse::read(&mut Reader::new(&payload)) {
                Ok(ReadResponse::Digest(digest)) => digests.push(digest.try_into().ok()),
                Ok(ReadResponse::Data { data, .. }) => {
                    let given = decode(&self.table, command, data);
                    all.push((node, given.map_err(|_| self.malformed())?));
                }
                Err(_) => return Err(self.malformed()),
            }
        }
        Ok((all, digests))
    }

    /// Do all replicas have the same, so far as their digests tell? Of a range all give data, which
    /// are merged as they are.
    fn agree(
        &self,
        command: &ReadCommand,
        data: &[(NodeIndex, Given)],
        digests: &[Digest],
    ) -> bool {
        let Some(((_, given), others)) = data.split_first() else { return false };
        if others.is_empty() && digests.is_empty() {
            return true;
        }
        if matches!(command.target, Target::Range { .. }) {
            return false;
        }
        // an empty partition has all columns to who reads it, and none to who is told of it
        let read = LazyCell::new(|| self.digest(command, given, true));
        let told = LazyCell::new(|| self.digest(command, given, false));
        let is_same = |digest: &Digest| digest.is_some_and(|one| one == *read || one == *told);
        others.iter().all(|(_, other)| self.digest(command, other, true) == *read)
            && digests.iter().all(is_same)
    }

    /// The digests of a partition differ: that is what read repairs are counted by.
    fn count_mismatch(&self, key: &PartitionKey) {
        self.trace.note(&self.reads.shard.env, || {
            let (token, bytes) = (key.token.0, types::hex::to_hex(&key.bytes));
            format!("Digest mismatch: Mismatch for key DecoratedKey({token}, {bytes})")
        });
        self.reads.shard.env.mark("read.mismatch");
        let counts = &self.reads.repairs;
        match self.table.params.read_repair {
            ReadRepair::Blocking => counts.blocking.inc(),
            ReadRepair::None => counts.reconciled.inc(),
        }
    }

    fn digest(&self, command: &ReadCommand, given: &Given, is_read: bool) -> [u8; 16] {
        let fetched = command.columns.header();
        let mut digest = DataDigest::new(&self.table.layout);
        if self.reads.shard.env.planted("digest_skips_column") {
            digest.skip_last_column();
        }
        for partition in &given.partitions {
            let start = PartitionStart {
                key: &partition.key.bytes,
                is_reversed: self.reversed,
                header: None,
                deletion: partition.deletion,
                static_row: partition.statics.as_deref().map(std::borrow::Cow::Borrowed),
                row_estimate: None,
                consumed: 0,
            };
            let has_columns = is_read || !partition.is_empty();
            digest.start(&start, has_columns.then_some(&fetched));
            partition.unfiltereds().for_each(|unfiltered| digest.unfiltered(unfiltered));
        }
        digest.finish()
    }

    /// All replicas give their data, which is merged, and those that lack something are given it.
    async fn resolve(
        self: &Rc<Self>,
        command: &Arc<ReadCommand>,
        verb: Verb,
        asked: &[NodeIndex],
        (data, digests): (Vec<(NodeIndex, Given)>, usize),
    ) -> Result<Reconciled, ErrorResponse> {
        let ring = &self.scope.ring;
        let required = (data.len() + digests) as u32;
        let gathered = Gathered::new(self, Some(command), Acks::of(ring, asked, required));
        let mut silent: Vec<NodeIndex> = asked.to_vec();
        for (node, given) in data {
            silent.retain(|other| *other != node);
            gathered.ended(node, Ok(Gave::Data(given)));
        }
        self.send(&silent, command, verb, &gathered)?;
        match gathered.until(self.deadline).await {
            Verdict::Enough => {}
            verdict => {
                if verdict == Verdict::Pending {
                    self.reads.repairs.timed_out.inc();
                }
                return Err(gathered.lack(verdict == Verdict::Pending));
            }
        }
        let answers = std::mem::take(&mut *gathered.answers.borrow_mut());
        let (data, digests) = self.opened(command, answers)?;
        if !digests.is_empty() {
            return Err(self.malformed());
        }
        let (nodes, given): (Vec<NodeIndex>, Vec<Given>) = data.into_iter().unzip();
        let mut reconciled = reconcile(&self.table, command, &given);
        let repairs = std::mem::take(&mut reconciled.repairs);
        let repairs: Vec<_> =
            nodes.into_iter().zip(repairs).filter(|(_, repairs)| !repairs.is_empty()).collect();
        if self.table.params.read_repair == ReadRepair::Blocking
            && !repairs.is_empty()
            && !self.reads.shard.env.planted("ring_skips_read_repair")
        {
            self.repair(repairs, required, given.len() as u32).await?;
        }
        Ok(reconciled)
    }

    /// Gives replicas what they lack, and waits until as many have all of it as were to be asked:
    /// another read that asks as many finds it, too.
    async fn repair(
        self: &Rc<Self>,
        repairs: Vec<(NodeIndex, Vec<PartitionUpdate>)>,
        required: u32,
        given: u32,
    ) -> Result<(), ErrorResponse> {
        let ring = &self.scope.ring;
        let level = given - repairs.len() as u32;
        let nodes: Vec<NodeIndex> = repairs.iter().map(|(node, _)| *node).collect();
        let acks = Acks::of(ring, &nodes, required.saturating_sub(level));
        let gathered = Gathered::new(self, None, acks);
        for (node, updates) in repairs {
            let (this, gathered) = (Rc::clone(self), Rc::clone(&gathered));
            self.reads.shard.env.spawn(STATEMENT, async move {
                let env = this.reads.shard.env.clone();
                let one = |update| {
                    let this = Rc::clone(&this);
                    env.spawn_task(STATEMENT, async move { this.repair_one(node, update).await })
                };
                let all: Vec<_> = updates.into_iter().map(one).collect();
                let mut done = Ok(());
                for one in all {
                    done = done.and(one.await);
                }
                let mut acks = gathered.acks.borrow_mut();
                match done {
                    Ok(()) => acks.answered(node),
                    Err(reason) => acks.failed(node, reason),
                };
                drop(acks);
                gathered.bell.notify_one();
            });
        }
        match gathered.until(self.deadline).await {
            Verdict::Enough => {
                self.reads.shard.env.mark("read.repaired");
                Ok(())
            }
            // all that was asked for was read, and one less than was to be has it
            _ => {
                let received = required.saturating_sub(1) as i32;
                Err(ErrorResponse::read_timeout(self.level, received, required as i32, true))
            }
        }
    }

    async fn repair_one(
        &self,
        node: NodeIndex,
        update: PartitionUpdate,
    ) -> Result<(), FailureReason> {
        let (reads, ring) = (&self.reads, &self.scope.ring);
        let mutation = Mutation::new(update);
        if node == ring.local() {
            let applied = reads.writes.apply_all(vec![(true, mutation)], &self.trace).await;
            return applied.map_err(|error| reads.shard.reason_of(&error));
        }
        let payload = crate::encoding::encoded(&mutation);
        let payload = payload.map_err(|error| reads.shard.reason_of(&error))?;
        let messenger = reads.peers.messenger().ok_or(FailureReason::Unknown)?;
        let to = ring.node(node).address;
        self.trace.note(&reads.shard.env, || format!("Sending read-repair-mutation to /{to}"));
        let params = traced(&self.trace);
        let answer = messenger.request(to, Verb::ReadRepairReq, params, &payload).await;
        note_answer(&self.trace, &reads.shard.env, to, &answer);
        answer.map(drop).map_err(reason_of)
    }

    fn send(
        self: &Rc<Self>,
        nodes: &[NodeIndex],
        command: &Arc<ReadCommand>,
        verb: Verb,
        gathered: &Rc<Gathered>,
    ) -> Result<(), ErrorResponse> {
        let (reads, ring) = (&self.reads, &self.scope.ring);
        let is_own = |node: NodeIndex| node == ring.local() && command.digest.is_none();
        let mut payload = Vec::new();
        if !nodes.iter().all(|node| is_own(*node)) {
            let written = command.write(&self.table, &mut payload);
            written.map_err(|error| crate::answer::invalid(error.to_string()))?;
        }
        let payload: Arc<[u8]> = payload.into();
        let sent_at = reads.shard.env.now();
        for node in nodes.iter().copied() {
            let (gathered, payload) = (Rc::clone(gathered), Arc::clone(&payload));
            let (this, to) = (Rc::clone(self), ring.node(node).address);
            if node == ring.local() {
                let own = is_own(node).then(|| Arc::clone(command));
                reads.shard.env.spawn(STATEMENT, async move {
                    let answer = match own {
                        Some(command) => this.read_own(&command).await,
                        None => this.read_here(verb, &payload).await,
                    };
                    this.reads.snitch.answered(&this.reads.shard.env, to, sent_at);
                    match answer {
                        Ok(seen) => gathered.seen(node, seen),
                        Err(reason) => gathered.ended(node, Err(reason)),
                    }
                });
                continue;
            }
            self.trace
                .note(&reads.shard.env, || format!("Sending {} message to /{to}", verb.name()));
            let Some(messenger) = reads.peers.messenger() else { continue };
            let told = move |answer: Result<Answer, Failed>| {
                this.reads.snitch.answered(&this.reads.shard.env, to, sent_at);
                note_answer(&this.trace, &this.reads.shard.env, to, &answer);
                match answer {
                    Ok(answer) => {
                        let payload = Gave::Payload(answer.payload);
                        gathered.answered(node, &answer.header.params, payload);
                    }
                    Err(failed) => gathered.ended(node, Err(reason_of(failed))),
                }
            };
            messenger.ask(to, verb, self.flags(), traced(&self.trace), &payload, told);
        }
        Ok(())
    }

    /// This node gives itself a digest as it would give it another.
    async fn read_here(&self, verb: Verb, payload: &[u8]) -> Result<Seen<Gave>, FailureReason> {
        let ring = &self.scope.ring;
        let from: Address = ring.node(ring.local()).address;
        let (params, flags, deadline) = (&Params::NONE, self.flags(), self.deadline);
        let trace = &self.trace;
        let request = PeerRequest { from, verb, params, flags, payload, deadline, trace };
        let seen = Box::pin(self.reads.own.read_here(&request));
        let in_time = self.reads.shard.env.timeout_at(deadline, seen).await;
        Ok(in_time.unwrap_or(Err(FailureReason::Timeout))?.map(Gave::Payload))
    }

    /// This node gives itself data.
    async fn read_own(&self, command: &Arc<ReadCommand>) -> Result<Seen<Gave>, FailureReason> {
        let (flags, deadline) = (self.flags(), self.deadline);
        let own = self.reads.own.read_own(&self.table, command, flags, deadline, &self.trace);
        let seen = Box::pin(own);
        let in_time = self.reads.shard.env.timeout_at(deadline, seen).await;
        Ok(in_time.unwrap_or(Err(FailureReason::Timeout))?.map(Gave::Data))
    }

    /// Are replicas to say what they go over?
    fn flags(&self) -> Flags {
        if self.thresholds.are_tracked { Flags::TRACK_WARNINGS } else { Flags::NONE }
    }

    /// What the client is told where a replica's answer makes no sense.
    fn malformed(&self) -> ErrorResponse {
        ErrorResponse::read_failure(self.level, 0, 1, false, &[])
    }
}
