//! A node that is dead is removed (`StorageService.removeNode`, `restoreReplicaCount`): the nodes
//! that are replicas in its place fetch what they lack from those that are left, and tell who
//! removes it.
//!
//! All nodes look each second for who is being removed: one that crashed meanwhile begins anew.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};
use std::time::Duration;

use env::Class;
use metrics::Level;
use ring::{Ring, State};
use streaming::wire::Operation;
use streaming::{Plan, Streaming};
use types::{Address, TokenRange, Uuid};

use super::fetch::{Ask, failures};
use super::relocation::RelocationError;
use super::sources;
use crate::membership::{Membership, NodeInfo};
use crate::peers::Peers;
use crate::shard_context::ShardContext;

/// How often it is looked who is being removed, and who confirmed it.
const LOOK: Duration = Duration::from_secs(1);
/// After what time what failed is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// What is known of a removal under way, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalStatus {
    /// A token of the node.
    pub token: i64,
    /// Who has not confirmed it.
    pub waits_for: Vec<Address>,
}

/// Removals; on the first shard.
pub struct Removal {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    membership: Rc<Membership>,
    streaming: Rc<Streaming>,
    /// Whom this node removes.
    removes: RefCell<Option<NodeInfo>>,
    is_forced: Cell<bool>,
    /// Whose replicas are being made anew here, or were: by address and start.
    restored: RefCell<BTreeSet<(Address, i32)>>,
}

impl Removal {
    pub(crate) fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        membership: &Rc<Membership>,
        streaming: &Rc<Streaming>,
    ) -> Rc<Self> {
        let removal = Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            membership: Rc::clone(membership),
            streaming: Rc::clone(streaming),
            removes: RefCell::default(),
            is_forced: Cell::default(),
            restored: RefCell::default(),
        });
        shard.env.spawn(Class::Background, watch(Rc::downgrade(&removal)));
        removal
    }

    /// The removal that this node has under way.
    pub fn status(&self) -> Option<RemovalStatus> {
        let removes = self.removes.borrow();
        let token = removes.as_ref()?.tokens.first().map_or(0, |token| token.0);
        Some(RemovalStatus { token, waits_for: self.membership.awaited().into_iter().collect() })
    }

    /// Removes a node that is dead, and waits until its replicas are elsewhere.
    ///
    /// # Errors
    /// If it is not dead, or another is being removed.
    pub async fn remove(&self, host: Uuid) -> Result<(), RelocationError> {
        let node = self.may_remove(host)?;
        self.removes.replace(Some(node.clone()));
        self.is_forced.set(false);
        let removed = self.run(&node).await;
        self.removes.replace(None);
        self.membership.await_replication(BTreeSet::new());
        removed
    }

    /// The node of this id, if it may be removed.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn may_remove(&self, host: Uuid) -> Result<NodeInfo, RelocationError> {
        if host.to_bytes() == self.shard.engine.host_id() {
            return Err(RelocationError::Oneself);
        }
        let node = self.membership.by_host(host.to_bytes()).filter(|node| node.life.is_member());
        let node = node.ok_or(RelocationError::UnknownHost)?;
        if node.is_up {
            return Err(RelocationError::Alive(node.address));
        }
        if self.removes.borrow().is_some() {
            return Err(RelocationError::Removing);
        }
        let others: Vec<_> = self.membership.moving();
        let others: Vec<_> = others.into_iter().filter(|other| *other != node.address).collect();
        if !others.is_empty() && self.shard.config.joining.is_consistent {
            return Err(RelocationError::OthersMove(others));
        }
        Ok(node)
    }

    async fn run(&self, node: &NodeInfo) -> Result<(), RelocationError> {
        let address = node.address;
        let ring = self.membership.ring().ok_or(RelocationError::NoMember)?;
        self.membership.await_replication(self.gaining(&ring, address));
        if !self.membership.is_silent(address).await {
            return Err(RelocationError::CameBack(address));
        }
        self.membership.say_removing(node);
        while !self.membership.awaited().is_empty() && !self.is_forced.get() {
            // who starts again says what it is
            let now = self.membership.by_host(node.host_id);
            if now.is_some_and(|now| now.remover.is_none()) {
                return Err(RelocationError::CameBack(address));
            }
            self.shard.env.sleep(LOOK).await;
        }
        if !self.is_forced.get() {
            self.membership.say_removed(node);
        }
        Ok(())
    }

    /// Ends removals without waiting for those that have not confirmed them.
    pub fn force(&self) {
        let leaving = self.membership.being_removed();
        if leaving.is_empty() && self.removes.borrow().is_none() {
            let text = "No nodes to force removal on, call 'removenode' first";
            return self.peers.note(Level::Warn, text.to_owned());
        }
        let awaited = self.membership.awaited();
        let awaited: Vec<_> = awaited.iter().map(|node| format!("/{node}")).collect();
        let text = format!(
            "Removal not confirmed for {}: run a repair, as replicas may lack data",
            awaited.join(",")
        );
        self.peers.note(Level::Warn, text);
        self.is_forced.set(true);
        leaving.iter().for_each(|node| self.membership.say_removed(node));
    }

    /// The nodes that are up and become replicas in the place of one that is removed, where
    /// another has the data.
    fn gaining(&self, ring: &Ring, removed: Address) -> BTreeSet<Address> {
        let mut nodes = ring.nodes().to_vec();
        let its = nodes.iter_mut().filter(|node| node.address == removed);
        its.for_each(|node| node.state = State::Leaving);
        let Ok(after) = ring.with_nodes(nodes) else { return BTreeSet::new() };
        let Some(gone) = after.find(removed) else { return BTreeSet::new() };
        let mut gaining = BTreeSet::new();
        let schema = self.shard.schema();
        for keyspace in schema.keyspaces().values() {
            let Some(placement) = after.placement(&keyspace.replication.strategy) else { continue };
            if placement.replication_factor() < 2 {
                continue;
            }
            for index in after.indexes() {
                let was_its =
                    |range: &TokenRange| placement.at(range.right).natural.contains(&gone);
                if placement.pending_ranges_of(index).any(|range| was_its(&range)) {
                    gaining.insert(index);
                }
            }
        }
        let (up, down): (Vec<_>, Vec<_>) = gaining.into_iter().partition(|n| after.is_up(*n));
        let address = |index: ring::NodeIndex| after.node(index).address;
        for node in down.into_iter().map(address) {
            let text = format!(
                "Endpoint /{node} is down and will not receive data for re-replication of \
                 /{removed}: repair it once it is up"
            );
            self.peers.note(Level::Warn, text);
        }
        up.into_iter().map(address).collect()
    }

    /// Fetches what this node is to have in the place of one that is removed, and says so.
    async fn restore(&self, node: NodeInfo) {
        let is_removed = || {
            let now = self.membership.by_host(node.host_id);
            now.is_none_or(|now| now.remover.is_none())
        };
        // those who have not heard of it write past this node until then
        self.shard.env.sleep(self.shard.config.ring_delay).await;
        while !is_removed() {
            let fetched = self.fetch(&node).await;
            let Err(why) = fetched else { break };
            let text = format!(
                "Streaming to restore replica count of /{} failed, retrying in {} s: {why}",
                node.address,
                AGAIN.as_secs()
            );
            self.peers.note(Level::Warn, text);
            self.shard.env.sleep(AGAIN).await;
        }
        while !is_removed() {
            let remover = node.remover.and_then(|host| {
                let is_own = host == self.shard.engine.host_id();
                let other = || self.membership.by_host(host).map(|node| node.address);
                if is_own { Some(self.membership.local()) } else { other() }
            });
            // without one the operator begins the removal anew
            let Some(remover) = remover else { return };
            if self.membership.confirm_replication(remover).await {
                return;
            }
            self.shard.env.sleep(LOOK).await;
        }
    }

    async fn fetch(&self, node: &NodeInfo) -> Result<(), String> {
        if self.shard.env.planted("removal_confirmed_unfetched") {
            return Ok(());
        }
        let asks_all = self.shard.config.joining.is_consistent
            && !self.shard.env.planted("removal_fetches_from_one");
        let schema = self.shard.schema();
        let mut plan = Plan::new(Operation::RestoreReplicaCount);
        for keyspace in schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual) {
            let scope = self.peers.scope(keyspace).map_err(|error| error.message)?;
            let Some(scope) = scope else { continue };
            let (ring, placement) = (&scope.ring, &scope.placement);
            let gone = ring.find(node.address);
            let asked = sources::restored(ring, placement, (ring.local(), gone), asks_all);
            let Ok(asked) = asked else {
                let name = &keyspace.name;
                return Err(format!("no replica of keyspace {name} is up for some ranges"));
            };
            for (index, ranges) in asked {
                let ask = Ask { keyspace: keyspace.name.to_string(), ranges };
                let of = plan.requests.entry(ring.node(index).address).or_default();
                of.push(ask.request(self.membership.local()));
            }
        }
        if plan.peers().is_empty() {
            return Ok(());
        }
        let failed = self.streaming.run(plan).await.err().unwrap_or_default();
        if failed.is_empty() { Ok(()) } else { Err(failures(&failed)) }
    }
}

/// Looks for nodes that are being removed.
async fn watch(removal: Weak<Removal>) {
    loop {
        let Some(this) = removal.upgrade() else { return };
        let env = this.shard.env.clone();
        let removed = this.membership.being_removed();
        for node in &removed {
            // each start of a removal is a start of its node
            let start = (node.address, node.generation);
            if this.restored.borrow_mut().insert(start) {
                let (this, node) = (Rc::clone(&this), node.clone());
                env.spawn(Class::Streaming, async move { this.restore(node).await });
            }
        }
        let is_removed = |of: Address| removed.iter().any(|node| node.address == of);
        this.restored.borrow_mut().retain(|(address, _)| is_removed(*address));
        drop(this);
        env.sleep(LOOK).await;
    }
}
