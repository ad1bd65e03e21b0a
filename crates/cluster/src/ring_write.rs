//! Writes to the replicas of a partition, wherever they are (`StorageProxy.sendToHintedReplicas`). For now those that this
//! node leads: counters.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use env::sync::Notify;
use internode::{FailureReason, Verb};
use messaging::{Answer, Failed};
use protocol::Consistency;
use ring::{Ring, Verdict, WritePlan};
use rows::codec::MutationEncoder;
use types::{Address, Token};

use crate::coordinator::Coordinator;
use crate::replica::{Concern, Counted};

/// Who waits for acknowledgements.
struct Waiting {
    ring: Arc<Ring>,
    acks: RefCell<ring::Acks<FailureReason>>,
    bell: Notify,
}

impl Waiting {
    fn heard(&self, from: Address, answer: Result<Answer, Failed>) {
        let Some(node) = self.ring.find(from) else { return };
        match answer {
            Ok(_) => self.acks.borrow_mut().answered(node),
            Err(Failed::Replica(reason)) => self.acks.borrow_mut().failed(node, reason),
            Err(Failed::Timeout | Failed::NotSent) => {
                self.acks.borrow_mut().failed(node, FailureReason::Timeout)
            }
        };
        self.bell.notify_one();
    }

    /// Waits until there are enough.
    async fn enough(
        &self,
        coordinator: &Coordinator,
        deadline: Instant,
    ) -> Result<(), FailureReason> {
        loop {
            let verdict = self.acks.borrow().verdict();
            match verdict {
                Verdict::Enough => return Ok(()),
                Verdict::CannotBeReached => {
                    let acks = self.acks.borrow();
                    let reason = acks.reasons_that_count().next().copied();
                    return Err(reason.unwrap_or(FailureReason::Unknown));
                }
                Verdict::Pending => {}
            }
            let rung = coordinator.env.timeout_at(deadline, self.bell.notified());
            if rung.await.is_err() {
                return Err(FailureReason::Timeout);
            }
        }
    }
}

impl Coordinator {
    /// Lets the ring in where this node serves as a replica: which keys are its own, and how its counters get to others.
    pub(crate) fn be_a_replica_of_the_ring(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        self.refuse_foreign_keys(Box::new(move |keyspace, token, concern| {
            this.upgrade().is_none_or(|this| this.is_replica(keyspace, token, concern))
        }));
        let this = Rc::downgrade(self);
        self.replicate_counters(Box::new(move |counted| {
            let this = this.upgrade();
            Box::pin(async move {
                match this {
                    Some(this) => this.spread_counters(&counted).await,
                    None => Err(FailureReason::Unknown),
                }
            })
        }));
    }

    /// Is this node a replica of a keyspace at a token? It says yes as long as it does not know.
    fn is_replica(&self, keyspace: &str, token: Token, concern: Concern) -> bool {
        let (schema, ring) = (self.schema(), self.ring());
        let (Some(ring), Some(keyspace)) = (ring, schema.keyspace(keyspace)) else { return true };
        let Some(placement) = ring.placement(&keyspace.replication.strategy) else { return true };
        let (replicas, local) = (placement.at(token), ring.local());
        let is_pending = concern == Concern::Write && replicas.pending.contains(&local);
        is_pending || replicas.natural.contains(&local)
    }

    /// Sends what this node has counted to the other replicas, and waits for as many as its level asks for.
    async fn spread_counters(self: &Rc<Self>, counted: &Counted) -> Result<(), FailureReason> {
        let (schema, ring) = (self.schema(), self.ring());
        let level = Consistency::from_name(&counted.consistency).unwrap_or(Consistency::One);
        let (Some(ring), Some(keyspace)) = (ring, schema.keyspace(&counted.keyspace)) else {
            return Ok(());
        };
        let Some(placement) = ring.placement(&keyspace.replication.strategy) else { return Ok(()) };
        let replicas = placement.at(counted.mutation.token());
        let plan = WritePlan::new(&ring, placement, replicas, level);
        let plan = plan.map_err(|_| FailureReason::Unknown)?;
        let mut payload = Vec::new();
        let written = MutationEncoder::new().mutation(&counted.mutation, &mut payload);
        written.map_err(|_| FailureReason::Unknown)?;
        self.write_to(ring, &plan, payload, counted.deadline).await
    }

    /// Sends a write that this node has done itself to the others of its plan, and waits for their acknowledgements.
    async fn write_to(
        self: &Rc<Self>,
        ring: Arc<Ring>,
        plan: &WritePlan,
        payload: Vec<u8>,
        deadline: Instant,
    ) -> Result<(), FailureReason> {
        let Some(messenger) = self.messenger() else { return Ok(()) };
        let acks = RefCell::new(plan.acks(&ring));
        let waiting = Rc::new(Waiting { ring, acks, bell: Notify::new() });
        let local = waiting.ring.local();
        waiting.acks.borrow_mut().answered(local);
        let told = Rc::clone(&waiting);
        let on_answer: Rc<dyn Fn(Address, Result<Answer, Failed>)> =
            Rc::new(move |from, answer| told.heard(from, answer));
        let payload: Arc<[u8]> = payload.into();
        let mut random = |below: usize| (self.env.random_u64() % below.max(1) as u64) as usize;
        for route in plan.routes(&waiting.ring, &mut random) {
            if route.to == local {
                continue;
            }
            let address = |node: ring::NodeIndex| waiting.ring.node(node).address;
            let beyond: Vec<Address> = route.forward.iter().map(|node| address(*node)).collect();
            let to = address(route.to);
            messenger.ask_through(to, &beyond, Verb::MutationReq, &payload, &on_answer);
        }
        waiting.enough(self, deadline).await
    }
}
