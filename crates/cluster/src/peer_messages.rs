//! A shard's way to other nodes of the ring, and what it knows of them.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::{InternodeCompression, InternodeEncryption, Timeouts};
use env::Class;
use messaging::{Job, Messenger, Patience, Serve, Settings};
use metrics::Registry;
use protocol::Event;
use ring::{Ring, Snitch};
use types::Address;

use crate::coordinator::Coordinator;
use crate::membership::{Entry, JoinError, Joined, Membership, PeerServer};
use crate::ring_batch::replay_kept_batches;

/// What a shard has of the ring.
#[derive(Default)]
pub(crate) struct Peers {
    messenger: OnceCell<Rc<Messenger>>,
    /// Serves other nodes; the messenger holds it by a weak handle.
    server: OnceCell<Rc<dyn Serve>>,
    /// On the first shard: this node's part in the ring.
    membership: OnceCell<Rc<Membership>>,
    /// All nodes of the ring, once this one is a part of it.
    ring: RefCell<Option<Arc<Ring>>>,
    /// Where nodes are that the ring has not.
    places: RefCell<Option<Arc<Places>>>,
    /// Where what the operator should know goes.
    notes: OnceCell<Box<dyn Fn(String)>>,
}

/// What says where nodes are of which nothing was heard yet: the snitch, and what they said before this start.
pub(crate) struct Places {
    pub snitch: Snitch,
    /// Data centre and rack.
    pub said: BTreeMap<Address, (String, String)>,
}

impl Places {
    fn of(&self, node: Address) -> (String, String) {
        let said = self.said.get(&node).map(|(center, rack)| (center.as_str(), rack.as_str()));
        self.snitch.place(node, false, said)
    }
}

/// How long to wait for other nodes, where requests may take so long.
pub(crate) fn patience(timeouts: &Timeouts) -> Patience {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Patience {
        timeouts: internode::Timeouts {
            request: millis(timeouts.other),
            write: millis(timeouts.write),
            read: millis(timeouts.read),
            range: millis(timeouts.range),
            counter: millis(timeouts.counter_write),
            truncate: millis(timeouts.truncate),
            ..internode::Timeouts::default()
        },
        connect: timeouts.internode_connect,
        user: timeouts.internode_user,
    }
}

impl Coordinator {
    /// Gives this shard a way to other nodes: `to_shard` runs a job on the messenger of another shard, `note` tells the
    /// operator something.
    pub fn reach_peers(
        &self,
        mut settings: Settings,
        registry: &Registry,
        to_shard: impl Fn(usize, Job) + 'static,
        note: impl Fn(String) + 'static,
    ) {
        settings.patience = patience(&self.timeouts());
        let messenger = Messenger::new(&self.env, settings, registry, to_shard);
        let _ = self.peers.messenger.set(messenger);
        let _ = self.peers.notes.set(Box::new(note));
    }

    /// This shard's messenger, once it reaches other nodes.
    pub fn messenger(&self) -> Option<&Rc<Messenger>> {
        self.peers.messenger.get()
    }

    /// Listens for other nodes on this shard, until the tasks are dropped. The first shard finds out whether the port is free.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn listen_to_peers(self: &Rc<Self>) -> std::io::Result<Vec<env::Task<()>>> {
        let Some(messenger) = self.peers.messenger.get() else { return Ok(Vec::new()) };
        if self.shards.me() == 0 {
            messenger.claim()?;
        }
        let server: Rc<dyn Serve> = Rc::new(PeerServer(Rc::downgrade(self)));
        self.be_a_replica_of_the_ring();
        let server = self.peers.server.get_or_init(|| server);
        messenger.listen(Rc::downgrade(server))
    }

    /// Makes this node a part of the ring; on the first shard. `is_known`: it was in a ring before.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub async fn join_ring(
        self: &Rc<Self>,
        config: gossip::Config,
        snitch: Snitch,
        is_known: bool,
    ) -> Result<Joined, JoinError> {
        let Some(messenger) = self.peers.messenger.get() else { return Ok(Joined::default()) };
        let keeper = Rc::downgrade(self);
        self.env.spawn(Class::Background, replay_kept_batches(keeper));
        let membership =
            self.peers.membership.get_or_init(|| Membership::new(self, messenger, config, snitch));
        membership.join(Entry { is_known, bootstraps: self.config.auto_bootstrap }).await
    }

    /// This node's part in the ring; on the first shard.
    pub fn membership(&self) -> Option<&Rc<Membership>> {
        self.peers.membership.get()
    }

    /// The ring, once this node is a part of it.
    pub fn ring(&self) -> Option<Arc<Ring>> {
        self.peers.ring.borrow().clone()
    }

    /// The ring, if there are other nodes in it. Where there are none its count of owners, which shards share, is left alone.
    pub(crate) fn ring_of_several(&self) -> Option<Arc<Ring>> {
        let ring = self.peers.ring.borrow();
        ring.as_ref().filter(|ring| ring.nodes().len() > 1).cloned()
    }

    /// Is this node the only one that it knows of?
    pub fn is_alone(&self) -> bool {
        self.ring_of_several().is_none()
    }

    /// Has this shard know the ring.
    pub(crate) fn know_ring_here(&self, ring: &Arc<Ring>) {
        self.peers.ring.replace(Some(Arc::clone(ring)));
    }

    /// Has every shard know the ring.
    pub(crate) fn know_ring(&self, ring: &Arc<Ring>) {
        for shard in 0..self.shards.count() {
            let ring = Arc::clone(ring);
            self.shards.send(shard, move |other: &Rc<Self>| {
                other.know_ring_here(&ring);
                other.hints_see_ring(&ring);
            });
        }
    }

    /// Tells the clients of all shards of a change.
    pub(crate) fn tell_all_clients(&self, event: &Event) {
        for shard in 0..self.shards.count() {
            let event = event.clone();
            self.shards.send(shard, move |other| (other.publish)(&event));
        }
    }

    /// Tells the operator something.
    pub(crate) fn note(&self, message: String) {
        if let Some(note) = self.peers.notes.get() {
            note(message);
        }
    }

    /// Has every shard know where nodes are, before there is a ring.
    pub(crate) fn know_places(&self, places: Places) {
        let places = Arc::new(places);
        for shard in 0..self.shards.count() {
            let places = Arc::clone(&places);
            self.shards.send(shard, move |other: &Rc<Self>| {
                other.peers.places.replace(Some(places));
            });
        }
    }

    /// Data centre and rack of a node, if anything is known of it.
    fn place_of(&self, node: Address) -> Option<(String, String)> {
        let ring = self.peers.ring.borrow();
        let found = ring.as_ref().and_then(|ring| Some(ring.node(ring.find(node)?)));
        if let Some(found) = found {
            return Some((found.data_center.to_string(), found.rack.to_string()));
        }
        self.peers.places.borrow().as_ref().map(|places| places.of(node))
    }

    /// Are connections with a node encrypted (`ServerEncryptionOptions.shouldEncrypt`)? Those with one of which nobody knows where
    /// it is are.
    pub(crate) fn encrypts(&self, with: Address) -> bool {
        let Some(tls) = &self.config.server_tls else { return false };
        let is_far = |by_rack: bool| {
            self.place_of(with).is_none_or(|(center, rack)| {
                center != self.identity.data_center || (by_rack && rack != self.identity.rack)
            })
        };
        match tls.encrypts {
            InternodeEncryption::None => false,
            InternodeEncryption::OtherDataCenters => is_far(false),
            InternodeEncryption::OtherRacks => is_far(true),
            InternodeEncryption::All => true,
        }
    }

    /// Are messages to a node compressed (`internode_compression`)?
    pub(crate) fn compresses(&self, to: Address) -> bool {
        let is_far = || {
            let ring = self.peers.ring.borrow();
            let place = ring.as_ref().and_then(|ring| Some((ring, ring.find(to)?)));
            // who is not known yet is as near as this node
            place.is_some_and(|(ring, node)| !ring.is_near(node))
        };
        match self.config.internode_compression {
            InternodeCompression::None => false,
            InternodeCompression::OtherDataCenters => is_far(),
            InternodeCompression::All => true,
        }
    }
}
