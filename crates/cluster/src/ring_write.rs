//! Writes to the replicas of a partition, wherever they are (`StorageProxy.mutate`,
//! `sendToHintedReplicas`): sent to all that are up at once, acknowledged once as many have done it
//! as the level asks for. What some have not done by then they are given later.
//!
//! A write goes by the routes of its plan (`ring::WritePlan`), and `ring::Acks` counts the
//! acknowledgements. A replica that misses it gets a hint. A write of counters goes to a replica
//! that leads it: that one adds, and sends its part to the others.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use env::sync::Notify;
use env::{Env, Instant};
use internode::payload::CounterMutation;
use internode::{FailureReason, Verb};
use messaging::{Answer, Failed};
use protocol::{Consistency, ErrorResponse, WriteType};
use ring::{NodeIndex, Ring, Verdict, WritePlan, counter_leader};
use rows::Mutation;
use rows::codec::MutationEncoder;
use storage::{StorageError, Trace};
use types::Address;

use crate::answer::server_error;
use crate::counters::Counters;
use crate::dynamic_snitch::DynamicSnitch;
use crate::encoding::encoded;
use crate::hints::Handoff;
use crate::local_writes::LocalWrites;
use crate::peers::Peers;
use crate::scope::{Scope, client_failures};
use crate::shard_context::{STATEMENT, ShardContext};
use crate::traced::{note_answer, traced};

/// A write whose replicas are not this node alone.
pub(crate) struct RingWrite {
    pub scope: Scope,
    pub plan: WritePlan,
    pub mutation: Mutation,
    pub is_durable: bool,
    /// When it was made, in milliseconds: what is truncated after it is not written again.
    pub made_at: i64,
}

/// A write of counters that this node leads, for the other replicas.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    /// Its keyspace.
    pub keyspace: String,
    /// This node's parts of the counters, which it has itself.
    pub mutation: Mutation,
    /// Name of the consistency level, as `LOCAL_QUORUM`.
    pub consistency: String,
    /// When its coordinator stops waiting.
    pub deadline: Instant,
    /// Where what happens is noted.
    pub trace: Trace,
}

/// Why a write did not come to as many replicas as it had to.
#[derive(Debug)]
struct Lack {
    received: u32,
    required: u32,
    /// Is it time alone that was lacking?
    is_late: bool,
    failures: Vec<(Address, FailureReason)>,
}

impl Lack {
    /// As a client is told of it (`AbstractWriteResponseHandler.get`).
    fn error(&self, level: Consistency, write_type: WriteType) -> ErrorResponse {
        let (received, required) = (self.received as i32, self.required as i32);
        match self.is_late {
            true => ErrorResponse::write_timeout(level, received, required, write_type),
            false => {
                let failures = client_failures(&self.failures);
                ErrorResponse::write_failure(level, received, required, write_type, &failures)
            }
        }
    }

    /// As another node is told of it.
    fn reason(&self) -> FailureReason {
        let first = self.failures.first().map(|(_, reason)| *reason);
        if self.is_late { FailureReason::Timeout } else { first.unwrap_or(FailureReason::Unknown) }
    }
}

/// What is kept for replicas that miss a write.
struct Missable {
    writes: Weak<RingWrites>,
    payload: Arc<[u8]>,
    made_at: i64,
    /// Seconds until deletions may be forgotten, of the table where that is the soonest.
    gc_grace: i32,
    level: Consistency,
}

/// Who waits for acknowledgements.
pub(crate) struct Waiting {
    ring: Arc<Ring>,
    acks: RefCell<ring::Acks<FailureReason>>,
    bell: Notify,
    missable: Option<Missable>,
    /// Replicas that it is kept for, durably. One is enough for level ANY.
    hinted: RefCell<Vec<NodeIndex>>,
    /// Replicas that it is about to be kept for.
    hinting: Cell<usize>,
}

impl Waiting {
    /// For replicas of which none is given later what it misses.
    pub fn new(ring: Arc<Ring>, acks: ring::Acks<FailureReason>) -> Rc<Self> {
        Self::of(ring, acks, None)
    }

    fn of(
        ring: Arc<Ring>,
        acks: ring::Acks<FailureReason>,
        missable: Option<Missable>,
    ) -> Rc<Self> {
        Rc::new(Self {
            ring,
            acks: RefCell::new(acks),
            bell: Notify::new(),
            missable,
            hinted: RefCell::default(),
            hinting: Cell::new(0),
        })
    }

    /// A replica misses the write: it is kept for it, if such writes are.
    fn missed(self: &Rc<Self>, node: NodeIndex) {
        let Some(missable) = &self.missable else { return };
        let Some(writes) = missable.writes.upgrade() else { return };
        let (handoff, env) = (&writes.handoff, &writes.shard.env);
        let to = self.ring.node(node);
        if !handoff.should_hint(to) || env.planted("ring_drops_hint") {
            return;
        }
        let (payload, made_at) = (Arc::clone(&missable.payload), missable.made_at);
        let ticket = handoff.keep(to.host_id, made_at, missable.gc_grace, payload);
        self.hinting.set(self.hinting.get() + 1);
        let this = Rc::clone(self);
        env.spawn(STATEMENT, async move {
            if ticket.await.is_ok() {
                this.hinted.borrow_mut().push(node);
            }
            this.hinting.set(this.hinting.get() - 1);
            this.bell.notify_one();
        });
    }

    /// Is it sure to come to a replica, which is enough?
    fn is_kept(&self) -> bool {
        let is_any = self.missable.as_ref().is_some_and(|of| of.level == Consistency::Any);
        is_any && !self.hinted.borrow().is_empty()
    }

    /// This node has ended its part.
    pub fn ended_here(self: &Rc<Self>, result: Result<(), FailureReason>) {
        let local = self.ring.local();
        match result {
            Ok(()) => self.done(local),
            Err(reason) => self.failed(local, reason),
        }
    }

    fn done(&self, node: NodeIndex) {
        self.acks.borrow_mut().answered(node);
        self.bell.notify_one();
    }

    fn failed(self: &Rc<Self>, node: NodeIndex, reason: FailureReason) {
        self.acks.borrow_mut().failed(node, reason);
        self.missed(node);
        self.bell.notify_one();
    }

    /// Another node has.
    pub fn heard(self: &Rc<Self>, from: Address, answer: Result<Answer, Failed>) {
        let Some(node) = self.ring.find(from) else { return };
        match answer {
            Ok(_) => self.done(node),
            Err(failed) => self.failed(node, reason_of(failed)),
        }
    }

    /// Waits until there are enough, and says what a client is told.
    pub async fn ended(
        &self,
        env: &Env,
        deadline: Instant,
        level: Consistency,
        write_type: WriteType,
    ) -> Result<(), ErrorResponse> {
        let lacks = |lack: Lack| lack.error(level, write_type);
        self.enough(env, deadline).await.map_err(lacks)
    }

    /// Waits for all replicas that are up. Has every one of them done it, or is it kept for it?
    pub async fn all_have_it(&self, env: &Env, deadline: Instant) -> bool {
        let is_awaited = |node: NodeIndex| self.ring.is_up(node);
        while self.hinting.get() > 0 || self.acks.borrow().silent().any(is_awaited) {
            if env.timeout_at(deadline, self.bell.notified()).await.is_err() {
                return false;
            }
        }
        let (acks, hinted) = (self.acks.borrow(), self.hinted.borrow());
        let missing = acks.failures().iter().map(|(node, _)| *node).chain(acks.silent());
        let mut missing = missing.filter(|node| !hinted.contains(node));
        missing.next().is_none()
    }

    /// Waits until there are enough.
    async fn enough(&self, env: &Env, deadline: Instant) -> Result<(), Lack> {
        loop {
            let verdict = self.acks.borrow().verdict();
            match verdict {
                Verdict::Enough => return Ok(()),
                _ if self.is_kept() => return Ok(()),
                _ if self.acks.borrow().received() > 0 && env.planted("ring_acks_early") => {
                    return Ok(());
                }
                Verdict::CannotBeReached if self.hinting.get() == 0 => {
                    return Err(self.lack(false));
                }
                Verdict::CannotBeReached | Verdict::Pending => {}
            }
            if env.timeout_at(deadline, self.bell.notified()).await.is_err() {
                return Err(self.lack(true));
            }
        }
    }

    fn lack(&self, is_over: bool) -> Lack {
        let acks = self.acks.borrow();
        let is_late =
            is_over || acks.reasons_that_count().all(|reason| *reason == FailureReason::Timeout);
        let named =
            |(node, reason): &(NodeIndex, FailureReason)| (self.ring.node(*node).address, *reason);
        Lack {
            received: if is_late { acks.received_too_few() } else { acks.received() },
            required: acks.required(),
            is_late,
            failures: acks.failures().iter().map(named).collect(),
        }
    }
}

/// What a failure of another node is counted as.
pub(crate) fn reason_of(failed: Failed) -> FailureReason {
    match failed {
        Failed::Replica(reason) => reason,
        Failed::Timeout | Failed::NotSent => FailureReason::Timeout,
    }
}

/// Writes to the replicas of a partition.
pub(crate) struct RingWrites {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    handoff: Rc<Handoff>,
    local: Rc<LocalWrites>,
    counters: Rc<Counters>,
    snitch: Rc<DynamicSnitch>,
}

impl RingWrites {
    pub fn new(
        shard: &Rc<ShardContext>,
        peers: &Rc<Peers>,
        handoff: &Rc<Handoff>,
        local: &Rc<LocalWrites>,
        counters: &Rc<Counters>,
        snitch: &Rc<DynamicSnitch>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            handoff: Rc::clone(handoff),
            local: Rc::clone(local),
            counters: Rc::clone(counters),
            snitch: Rc::clone(snitch),
        })
    }

    /// Writes of one request, all of them at once; each is waited for in turn, as Cassandra does.
    pub async fn write_over_ring(
        self: &Rc<Self>,
        writes: Vec<RingWrite>,
        write_type: WriteType,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), ErrorResponse> {
        let mut waiting = Vec::with_capacity(writes.len());
        for write in writes {
            let level = write.plan.level();
            waiting.push((level, self.send_write(write, false, trace).map_err(server_error)?));
        }
        for (level, waiting) in waiting {
            waiting.ended(&self.shard.env, deadline, level, write_type).await?;
        }
        Ok(())
    }

    /// Sends a write to all of its replicas that are up. `is_done_here`: this node has done it
    /// already.
    pub fn send_write(
        self: &Rc<Self>,
        write: RingWrite,
        is_done_here: bool,
        trace: &Trace,
    ) -> Result<Rc<Waiting>, StorageError> {
        let RingWrite { scope: Scope { ring, .. }, plan, mutation, is_durable, made_at } = write;
        let local = ring.local();
        let others = plan.replicas().iter().any(|node| *node != local);
        let payload = if others { Some(encoded(&mutation)?) } else { None };
        let waiting = match &payload {
            Some(payload) => self.await_write(&ring, &plan, &mutation, payload, made_at),
            None => Waiting::new(Arc::clone(&ring), plan.acks(&ring)),
        };
        if is_done_here {
            waiting.done(local);
        } else if plan.replicas().contains(&local) {
            self.write_here(mutation, is_durable, &waiting, trace);
        }
        let Some(payload) = payload else { return Ok(waiting) };
        let Some(messenger) = self.peers.messenger() else { return Ok(waiting) };
        let (told, env, heard) = (Rc::clone(&waiting), self.shard.env.clone(), trace.clone());
        let on_answer: Rc<dyn Fn(Address, Result<Answer, Failed>)> =
            Rc::new(move |from, answer| {
                note_answer(&heard, &env, from, &answer);
                told.heard(from, answer);
            });
        let mut random = self.shard.any_below();
        for route in plan.routes(&ring, &mut random).into_iter().filter(|route| route.to != local) {
            let address = |node: NodeIndex| ring.node(node).address;
            let beyond: Vec<Address> = route.forward.iter().map(|node| address(*node)).collect();
            let to = address(route.to);
            trace.note(&self.shard.env, || format!("Sending MUTATION_REQ message to /{to}"));
            let (verb, params) = (Verb::MutationReq, traced(trace));
            messenger.ask_through(to, &beyond, verb, params, &payload, &on_answer);
        }
        Ok(waiting)
    }

    /// Waits for acknowledgements of a write, which is kept for those that miss it; at once for
    /// those that are down.
    pub fn await_write(
        self: &Rc<Self>,
        ring: &Arc<Ring>,
        plan: &WritePlan,
        mutation: &Mutation,
        payload: &Arc<[u8]>,
        made_at: i64,
    ) -> Rc<Waiting> {
        let missable = Missable {
            writes: Rc::downgrade(self),
            payload: Arc::clone(payload),
            made_at,
            gc_grace: self.gc_grace(mutation),
            level: plan.level(),
        };
        let waiting = Waiting::of(Arc::clone(ring), plan.acks(ring), Some(missable));
        let down = plan.replicas().iter().filter(|node| !ring.is_up(**node));
        down.for_each(|node| waiting.missed(*node));
        waiting
    }

    /// Seconds until deletions may be forgotten, of the table of a mutation where that is the
    /// soonest.
    pub fn gc_grace(&self, mutation: &Mutation) -> i32 {
        let schema = self.shard.schema();
        let ids = mutation.updates().iter().map(|update| schema::TableId(update.table));
        let tables = ids.filter_map(|id| schema.table_by_id(&id));
        tables.map(|table| table.params.gc_grace_seconds).min().unwrap_or(0)
    }

    /// Does a write whose replica this node is.
    fn write_here(
        self: &Rc<Self>,
        mutation: Mutation,
        is_durable: bool,
        waiting: &Rc<Waiting>,
        trace: &Trace,
    ) {
        let (this, waiting, trace) = (Rc::clone(self), Rc::clone(waiting), trace.clone());
        self.shard.env.spawn(STATEMENT, async move {
            let applied = this.local.apply_all(vec![(is_durable, mutation)], &trace).await;
            waiting.ended_here(applied.map_err(|error| this.shard.reason_of(&error)));
        });
    }

    /// Counts over the ring: a replica leads each write, which tells the others what its part comes
    /// to.
    pub async fn count_over_ring(
        self: &Rc<Self>,
        writes: Vec<RingWrite>,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), ErrorResponse> {
        let mut tasks = Vec::with_capacity(writes.len());
        for write in writes {
            let Scope { ring, placement } = &write.scope;
            let replicas = placement.at(write.mutation.token());
            let (level, order) = (write.plan.level(), self.snitch.order(&self.shard.env));
            let (near, mut random) = (order.proximity(), self.shard.any_below());
            let leader = counter_leader(ring, placement, replicas, level, near, &mut random)?;
            let leader = Some(leader).filter(|leader| *leader != ring.local());
            let leader = leader.map(|leader| ring.node(leader).address);
            let (this, trace) = (Rc::clone(self), trace.clone());
            tasks.push(self.shard.env.spawn_task(STATEMENT, async move {
                match leader {
                    None => this.lead_count(write, deadline, trace).await,
                    Some(leader) => this.have_counted(leader, write, deadline, &trace).await,
                }
            }));
        }
        for task in tasks {
            task.await?;
        }
        Ok(())
    }

    async fn lead_count(
        self: &Rc<Self>,
        write: RingWrite,
        deadline: Instant,
        trace: Trace,
    ) -> Result<(), ErrorResponse> {
        let (level, required) = (write.plan.level(), write.plan.required() as i32);
        let RingWrite { scope, plan, mutation, is_durable, made_at } = write;
        let counted =
            self.counters.apply_counter(mutation, is_durable, deadline, trace.clone()).await;
        let mutation = counted.map_err(|error| {
            self.shard.engine.inspect(&error);
            match error {
                StorageError::Deadline => {
                    ErrorResponse::write_timeout(level, 0, required, WriteType::Counter)
                }
                _ => {
                    let failed =
                        [(scope.ring.node(scope.ring.local()).address, FailureReason::Unknown)];
                    let failed = client_failures(&failed);
                    ErrorResponse::write_failure(level, 0, required, WriteType::Counter, &failed)
                }
            }
        })?;
        let write = RingWrite { scope, plan, mutation, is_durable, made_at };
        let waiting = self.send_write(write, true, &trace).map_err(server_error)?;
        waiting.ended(&self.shard.env, deadline, level, WriteType::Counter).await
    }

    /// Has another node lead a write of counters, which answers once as many have it as the level
    /// asks for (`ReplicaPlans.forForwardingCounterWrite`).
    async fn have_counted(
        self: &Rc<Self>,
        leader: Address,
        write: RingWrite,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<(), ErrorResponse> {
        let level = write.plan.level();
        // before the node takes part in the ring, or when it stops: nothing was sent, and nothing
        // counted
        let Some(messenger) = self.peers.messenger() else {
            let failures = vec![(leader, FailureReason::Unknown)];
            let lack = Lack { received: 0, required: 1, is_late: false, failures };
            return Err(lack.error(Consistency::One, WriteType::Counter));
        };
        let request =
            CounterMutation { mutation: write.mutation, consistency: level.name().to_owned() };
        let mut payload = Vec::new();
        request.write(&mut MutationEncoder::new(), &mut payload).map_err(server_error)?;
        trace.note(&self.shard.env, || format!("Enqueuing counter update to /{leader}"));
        let payload = payload.into();
        let asked = messenger.request(leader, Verb::CounterMutationReq, traced(trace), &payload);
        // nobody knows better than its leader how far a count got: one level is as good as another
        let failed = match self.shard.env.timeout_at(deadline, asked).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(failed)) => reason_of(failed),
            Err(_) => FailureReason::Timeout,
        };
        let (received, required, is_late) = (0, 1, failed == FailureReason::Timeout);
        let lack = Lack { received, required, is_late, failures: vec![(leader, failed)] };
        Err(lack.error(Consistency::One, WriteType::Counter))
    }

    /// Sends what this node has counted for another one to the other replicas, and waits for as
    /// many as its level asks for.
    pub async fn spread_for_peer(self: &Rc<Self>, counted: Counted) -> Result<(), FailureReason> {
        let Counted { keyspace, mutation, consistency, deadline, trace } = counted;
        let schema = self.shard.schema();
        let level = Consistency::from_name(&consistency).unwrap_or(Consistency::One);
        let Some(keyspace) = schema.keyspace(&keyspace) else { return Ok(()) };
        let scope = self.peers.scope(keyspace).map_err(|_| FailureReason::Unknown)?;
        let scope = scope.ok_or(FailureReason::Unknown)?;
        let plan = scope.write_plan(mutation.token(), level).map_err(|_| FailureReason::Unknown)?;
        let (is_durable, made_at) = (keyspace.durable_writes, self.shard.unix_millis());
        let write = RingWrite { scope, plan, mutation, is_durable, made_at };
        let waiting = self.send_write(write, true, &trace);
        let waiting = waiting.map_err(|error| self.shard.reason_of(&error))?;
        waiting.enough(&self.shard.env, deadline).await.map_err(|lack| lack.reason())
    }
}
