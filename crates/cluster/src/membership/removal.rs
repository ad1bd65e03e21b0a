//! A node that is dead is taken out of the ring by another (`Gossiper.advertiseRemoving`,
//! `advertiseTokenRemoved`, `assassinateEndpoint`): what is said in its place, and who confirms
//! that it has the dead node's replicas.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use gossip::{Event, Status};
use internode::{Flags, Params, Verb};
use metrics::Level;
use types::{Address, Token, Uuid};

use super::{Life, Membership, NodeInfo};

/// How often it is looked whether something came of an assassination.
const LOOK: Duration = Duration::from_millis(200);

/// Why a node is not assassinated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Endpoint still alive: /{0} heartbeat changed while trying to assassinate it")]
pub struct StillAlive(pub Address);

impl Membership {
    /// Says in a node's place that it is being removed, and by this node.
    pub(crate) fn say_removing(self: &Rc<Self>, node: &NodeInfo) {
        let by = Uuid::from_bytes(self.shard.engine.host_id()).to_string();
        let host = Uuid::from_bytes(node.host_id).to_string();
        self.step(Event::Removing { node: node.address, host, by });
    }

    /// Says in a node's place that it was removed.
    pub(crate) fn say_removed(self: &Rc<Self>, node: &NodeInfo) {
        let host = Uuid::from_bytes(node.host_id).to_string();
        self.step(Event::RemovedFromRing { node: node.address, host });
    }

    /// Other nodes that are about to own other tokens.
    pub(crate) fn moving(&self) -> Vec<Address> {
        let nodes = self.nodes.borrow();
        let moves = |node: &&NodeInfo| node.life != Life::Normal;
        nodes.values().filter(moves).map(|node| node.address).collect()
    }

    /// Nodes that are being removed.
    pub(crate) fn being_removed(&self) -> Vec<NodeInfo> {
        let nodes = self.nodes.borrow();
        nodes.values().filter(|node| node.remover.is_some()).cloned().collect()
    }

    /// A node by its host id.
    pub(crate) fn by_host(&self, host: [u8; 16]) -> Option<NodeInfo> {
        self.nodes.borrow().values().find(|node| node.host_id == host).cloned()
    }

    /// Waits for these to confirm that they have the replicas of a node that is removed.
    pub(crate) fn await_replication(&self, by: BTreeSet<Address>) {
        self.awaited.replace(by);
    }

    /// Those that have not confirmed it.
    pub(crate) fn awaited(&self) -> BTreeSet<Address> {
        self.awaited.borrow().clone()
    }

    /// A node has the replicas that it was to have (REPLICATION_DONE).
    pub(crate) fn replicated(&self, by: Address) {
        self.awaited.borrow_mut().remove(&by);
    }

    /// Tells who removes a node that this one has the replicas that it was to have. Did it hear
    /// that?
    pub(crate) async fn confirm_replication(&self, to: Address) -> bool {
        if to == self.local() {
            self.replicated(to);
            return true;
        }
        let empty: std::sync::Arc<[u8]> = [].into();
        let verb = Verb::ReplicationDoneReq;
        let (told, heard) = env::sync::oneshot();
        self.messenger.ask(to, verb, Flags::NONE, Params::NONE, &empty, move |answer| {
            let _ = told.send(answer.is_ok());
        });
        heard.await.unwrap_or(false)
    }

    /// Takes a node that is down out of the ring, without its data (`nodetool assassinate`), once
    /// it gave no sign of life for `ring_delay`.
    ///
    /// # Errors
    /// If it gives one.
    pub async fn assassinate(self: &Rc<Self>, node: Address) -> Result<(), StillAlive> {
        let token = Token(self.env.random_u64().cast_signed());
        let is_known = self.gossiper.borrow().peer(node).is_some();
        if is_known {
            let text = format!(
                "Sleeping for {:?} to ensure /{node} does not change",
                self.shard.config.ring_delay
            );
            self.note(Level::Info, text);
        }
        self.still_alive.borrow_mut().remove(&node);
        self.step(Event::Assassinate { node, token });
        loop {
            if self.still_alive.borrow_mut().remove(&node) {
                return Err(StillAlive(node));
            }
            let status = self.gossiper.borrow().peer(node).map(|peer| peer.state.status());
            if status.is_none_or(|status| matches!(status, Status::Left { .. })) {
                return Ok(());
            }
            self.env.sleep(LOOK).await;
        }
    }
}
