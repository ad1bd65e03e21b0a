//! One shard's coordinator: what it consists of (here), and how it runs statements (`statements.rs`).

mod statements;

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use config::{Config, Timeouts};
use env::{Class, Env};
use messaging::Serve;
use metrics::Registry;
use protocol::Event;
use ring::Snitch;
use schema::Schema;
use storage::Engine;
use storage::shards::{Components, Remote};

use crate::auth::Auth;
use crate::batch_log::BatchLog;
use crate::binding::Binder;
use crate::counters::Counters;
use crate::dynamic_snitch::DynamicSnitch;
use crate::estimates::Written;
use crate::guardrails::Guardrails;
use crate::hints::Handoff;
use crate::identity::Identity;
use crate::local_writes::LocalWrites;
use crate::membership::{self, JoinError, Joined, Membership, PeerServer};
use crate::mutations::Mutations;
use crate::own_cql::OwnCql;
use crate::paxos::{Acceptors, Paxos};
use crate::peers::{Peers, patience};
use crate::prepared::PreparedCache;
use crate::read::Reads;
use crate::replica::{Replica, ReplicaReads};
use crate::request_metrics::ClientRequests;
use crate::ring_batch::{RingBatches, replay_kept_batches};
use crate::ring_read::RingReads;
use crate::ring_write::RingWrites;
use crate::saved_caches::SavedCaches;
use crate::schema_owner::SchemaOwner;
use crate::shard_context::ShardContext;
use crate::tracing::Tracer;
use crate::turns::Turns;
use crate::virtual_tables::VirtualTables;
use crate::write::Writes;

/// Bytes of prepared statements that a shard keeps where the configuration does not say.
const PREPARED_BYTES: u64 = 10 << 20;

/// A shard's coordinator: statements in, answers out.
pub struct Coordinator {
    pub(crate) env: Env,
    pub(crate) engine: Rc<Engine>,
    pub(crate) config: Arc<Config>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) shard: Rc<ShardContext>,
    /// The coordinators of all shards.
    pub(crate) shards: Remote<Coordinator>,
    pub(crate) prepared: RefCell<PreparedCache>,
    binder: Rc<Binder>,
    pub(crate) paxos: Rc<Paxos>,
    /// This node as a replica of rounds of Paxos, on all shards.
    pub(crate) acceptors: Remote<Acceptors>,
    /// On the first shard: who changes the schema.
    pub(crate) owner: OnceCell<SchemaOwner>,
    /// Tells this shard's clients of a change.
    pub(crate) publish: Box<dyn Fn(&Event)>,
    /// This shard's way to other nodes, and what it knows of them.
    pub(crate) peers: Rc<Peers>,
    /// Serves other nodes; the messenger holds it by a weak handle.
    server: OnceCell<Rc<dyn Serve>>,
    /// On the first shard: this node's part in the ring.
    membership: OnceCell<Rc<Membership>>,
    /// Writes that other nodes missed.
    pub(crate) handoff: Rc<Handoff>,
    pub(crate) local_writes: Rc<LocalWrites>,
    pub(crate) counters: Rc<Counters>,
    pub(crate) batch_log: Rc<BatchLog>,
    pub(crate) ring_writes: Rc<RingWrites>,
    pub(crate) ring_batches: Rc<RingBatches>,
    saved_caches: Rc<SavedCaches>,
    /// Who may do what.
    pub(crate) auth: Rc<Auth>,
    /// What is known of the ring where others ask this node as a replica.
    pub(crate) replica: Rc<Replica>,
    pub(crate) replica_reads: Rc<ReplicaReads>,
    pub(crate) tracer: Rc<Tracer>,
    pub(crate) guardrails: Rc<Guardrails>,
    reads: Rc<Reads>,
    writes: Rc<Writes>,
    pub(crate) own_cql: Rc<OwnCql>,
    pub(crate) virtual_tables: Rc<VirtualTables>,
    /// On the first shard: the estimates that were last written.
    pub(crate) estimates: RefCell<Written>,
}

impl Coordinator {
    /// A shard's coordinator, with all that it consists of. It counts in `registry`; `publish` tells its clients of changes.
    pub fn new(
        engine: &Rc<Engine>,
        config: Arc<Config>,
        identity: Arc<Identity>,
        components: &Components,
        registry: &Registry,
        publish: impl Fn(&Event) + 'static,
    ) -> Rc<Self> {
        let shard = ShardContext::new(engine, Arc::clone(&config), Arc::clone(&identity), registry);
        let peers = Peers::new(&shard, components.remote());
        let (turns, snitch) =
            (Rc::<Turns>::default(), Rc::new(DynamicSnitch::new(engine.env(), &config)));
        let local_writes = LocalWrites::new(&shard);
        let counters = Counters::new(&shard, components.remote(), &turns);
        let batch_log = BatchLog::new(&shard, &local_writes);
        let handoff = Handoff::new(&shard, components.remote(), &peers, &local_writes, registry);
        let ring_writes =
            RingWrites::new(&shard, &peers, &handoff, &local_writes, &counters, &snitch);
        let ring_batches =
            RingBatches::new(&shard, &peers, &batch_log, &local_writes, &ring_writes, &snitch);
        let replica = Rc::<Replica>::default();
        let replica_reads = ReplicaReads::new(&shard, &replica);
        let ring_reads =
            RingReads::new(&shard, &peers, &snitch, &replica_reads, &local_writes, registry);
        let tracer = Tracer::new(&shard, &peers, &ring_writes, registry);
        let saved_caches = SavedCaches::new(&shard, components.remote(), &counters);
        let bytes = config.prepared_statements_cache_size.unwrap_or(PREPARED_BYTES);
        let guardrails = Guardrails::new(&shard);
        let virtual_tables = VirtualTables::new(&shard, &handoff, &guardrails);
        let binder = Binder::new(&shard);
        let requests = Rc::new(ClientRequests::new(registry));
        let acceptors = Acceptors::new(&shard);
        let paxos = Paxos::new(
            (&shard, components.remote()),
            (&turns, &acceptors),
            (&peers, &ring_reads, &ring_writes),
            &binder,
            &requests,
        );
        let mutations = Mutations::new(
            (&shard, &peers),
            &local_writes,
            &counters,
            &batch_log,
            &ring_writes,
            &ring_batches,
        );
        let (over_ring, bound) = ((&ring_reads, &paxos), (&binder, &guardrails));
        let reads = Reads::new(&shard, &peers, over_ring, bound, &virtual_tables, &requests);
        let writes = Writes::new(&shard, &mutations, over_ring, bound, &requests, registry);
        let own_cql = OwnCql::new(&shard, &peers, &reads, &writes);
        let auth = Auth::new(&shard, components.remote(), &own_cql, registry);
        let coordinator = Rc::new(Self {
            guardrails,
            env: engine.env().clone(),
            engine: Rc::clone(engine),
            auth,
            config,
            identity,
            shard,
            shards: components.remote(),
            prepared: RefCell::new(PreparedCache::new(bytes as usize)),
            owner: OnceCell::new(),
            publish: Box::new(publish),
            peers,
            server: OnceCell::new(),
            membership: OnceCell::new(),
            handoff,
            local_writes,
            counters,
            batch_log,
            ring_writes,
            ring_batches,
            saved_caches,
            binder,
            paxos,
            acceptors: components.remote(),
            replica,
            replica_reads,
            tracer,
            reads,
            writes,
            own_cql,
            virtual_tables,
            estimates: RefCell::default(),
        });
        components.add(&coordinator.peers);
        components.add(&coordinator.handoff);
        components.add(&coordinator.counters);
        components.add(&coordinator.saved_caches);
        components.add(&coordinator.paxos);
        components.add(&coordinator.auth);
        components.add(&acceptors);
        components.add(&coordinator);
        coordinator
    }

    /// This shard's engine.
    pub fn engine(&self) -> &Rc<Engine> {
        &self.engine
    }

    /// Number of prepared statements that this shard keeps, and of those that it evicted.
    pub fn prepared_stats(&self) -> (usize, u64) {
        self.prepared.borrow().stats()
    }

    /// Bytes of prepared statements that this shard keeps at most.
    pub fn prepared_limit(&self) -> usize {
        self.prepared.borrow().limit()
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// How long requests may take on this shard.
    pub fn timeouts(&self) -> Timeouts {
        self.shard.timeouts()
    }

    /// Lets requests on this shard take so long, those to other nodes too.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.shard.set_timeouts(timeouts);
        if let Some(messenger) = self.peers.messenger() {
            messenger.set_patience(patience(&timeouts));
        }
    }

    /// The present schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.engine.schema()
    }

    /// The coordinators of all shards.
    pub fn shards(&self) -> &Remote<Self> {
        &self.shards
    }

    /// This shard's way to other nodes.
    pub fn peers(&self) -> &Rc<Peers> {
        &self.peers
    }

    /// The writes that other nodes missed.
    pub fn handoff(&self) -> &Rc<Handoff> {
        &self.handoff
    }

    /// Who may do what.
    pub fn auth(&self) -> &Rc<Auth> {
        &self.auth
    }

    /// The guardrails.
    pub fn guardrails(&self) -> &Rc<Guardrails> {
        &self.guardrails
    }

    /// What virtual tables show.
    pub fn virtual_tables(&self) -> &Rc<VirtualTables> {
        &self.virtual_tables
    }

    /// What traces requests.
    pub fn tracer(&self) -> &Rc<Tracer> {
        &self.tracer
    }

    /// What fills caches with what was saved of them.
    pub fn saved_caches(&self) -> &Rc<SavedCaches> {
        &self.saved_caches
    }

    /// Listens for other nodes on this shard, until the tasks are dropped. The first shard finds out whether the port is free.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn listen_to_peers(self: &Rc<Self>) -> std::io::Result<Vec<env::Task<()>>> {
        let Some(messenger) = self.peers.messenger() else { return Ok(Vec::new()) };
        if self.shards.me() == 0 {
            messenger.claim()?;
        }
        let server: Rc<dyn Serve> = Rc::new(PeerServer(Rc::downgrade(self)));
        self.be_a_replica_of_the_ring();
        let server = self.server.get_or_init(|| server);
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
        let Some(messenger) = self.peers.messenger() else { return Ok(Joined::default()) };
        let batches = Rc::downgrade(&self.ring_batches);
        self.env.spawn(Class::Background, replay_kept_batches(batches));
        let membership =
            self.membership.get_or_init(|| Membership::new(self, messenger, config, snitch));
        membership
            .join(membership::Entry { is_known, bootstraps: self.config.auto_bootstrap })
            .await
    }

    /// This node's part in the ring; on the first shard.
    pub fn membership(&self) -> Option<&Rc<Membership>> {
        self.membership.get()
    }

    /// Tells the clients of all shards of a change.
    pub(crate) fn tell_all_clients(&self, event: &Event) {
        let event = event.clone();
        self.shards.send_to_all(move |other| (other.publish)(&event));
    }
}
