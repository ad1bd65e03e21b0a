//! What one shard of a node consists of: its components, made and joined together. Nothing here
//! runs a statement.
//!
//! `Shard::new` makes the components from the bottom up: a component knows those that were made
//! before it. A component reaches itself on another shard through `storage::shards::Remote`. See
//! `docs/decisions/2026-11-28-components.md`.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use config::{Config, Timeouts};
use env::Class;
use messaging::{Patience, Serve};
use metrics::Registry;
use protocol::Event;
use ring::Snitch;
use schema::Schema;
use storage::shards::{Components, Remote};
use storage::{Engine, StorageError};
use streaming::Streaming;

use crate::auth::Auth;
use crate::batch_log::BatchLog;
use crate::binding::Binder;
use crate::clients::Clients;
use crate::compaction_history::CompactionHistory;
use crate::coordinator::Coordinator;
use crate::counters::Counters;
use crate::dynamic_snitch::DynamicSnitch;
use crate::estimates::SizeEstimates;
use crate::guardrails::Guardrails;
use crate::hints::Handoff;
use crate::identity::Identity;
use crate::local_writes::LocalWrites;
use crate::membership::{Membership, PeerServer};
use crate::mutations::Mutations;
use crate::own_cql::OwnCql;
use crate::paxos::{Acceptors, Paxos};
use crate::peers::{Peers, patience};
use crate::read::Reads;
use crate::repair::{LocalSessions, Ongoing, RepairCoordinator, RepairReport, Repairs};
use crate::replica::Replica;
use crate::replica_read::ReplicaReads;
use crate::request_metrics::ClientRequests;
use crate::ring_batch::{RingBatches, replay_kept_batches};
use crate::ring_read::RingReads;
use crate::ring_write::RingWrites;
use crate::saved_caches::SavedCaches;
use crate::saved_place::SavedPlace;
use crate::schema_owner::SchemaOwner;
use crate::shard_context::ShardContext;
use crate::slow_queries::SlowQueries;
use crate::statements::Statements;
use crate::topology::{
    Join, JoinError, Joined, Movements, Planner, Rebuild, Relocation, Removal, Topology,
};
use crate::tracing::Tracer;
use crate::truncation::Truncation;
use crate::turns::Turns;
use crate::virtual_tables::VirtualTables;
use crate::watch::Watch;
use crate::write::Writes;

/// One shard's components, for whoever composes a node. No component has this.
pub struct Shard {
    /// The same of all shards.
    others: Remote<Shard>,
    context: Rc<ShardContext>,
    coordinator: Rc<Coordinator>,
    peers: Rc<Peers>,
    clients: Rc<Clients>,
    handoff: Rc<Handoff>,
    ring_batches: Rc<RingBatches>,
    saved_caches: Rc<SavedCaches>,
    estimates: Rc<SizeEstimates>,
    compactions: Rc<CompactionHistory>,
    replica: Rc<Replica>,
    virtual_tables: Rc<VirtualTables>,
    tracer: Rc<Tracer>,
    topology: Topology,
    repairs: Rc<Repairs>,
    /// Serves other nodes; the messenger holds it by a weak handle.
    server: OnceCell<Rc<PeerServer>>,
    /// On the first shard: this node's part in the ring.
    membership: OnceCell<Rc<Membership>>,
    /// On the first shard: its ways there and away.
    movements: OnceCell<Movements>,
}

/// The ways of writes and reads: on this shard, on this node, over the ring.
struct Paths {
    local_writes: Rc<LocalWrites>,
    counters: Rc<Counters>,
    batch_log: Rc<BatchLog>,
    handoff: Rc<Handoff>,
    ring_writes: Rc<RingWrites>,
    ring_batches: Rc<RingBatches>,
    replica_reads: Rc<ReplicaReads>,
    ring_reads: Rc<RingReads>,
}

impl Paths {
    fn new(
        context: &Rc<ShardContext>,
        components: &Components,
        peers: &Rc<Peers>,
        turns: &Rc<Turns>,
        registry: &Registry,
    ) -> Self {
        let snitch = Rc::new(DynamicSnitch::new(context.engine.env(), &context.config));
        let local_writes = LocalWrites::new(context);
        let counters = Counters::new(context, components.remote(), turns);
        let batch_log = BatchLog::new(context, &local_writes);
        let handoff = Handoff::new(context, components.remote(), peers, &local_writes, registry);
        let ring_writes =
            RingWrites::new(context, peers, &handoff, &local_writes, &counters, &snitch);
        let ring_batches =
            RingBatches::new(context, peers, &batch_log, &local_writes, &ring_writes, &snitch);
        let replica_reads = ReplicaReads::new(context, peers);
        let ring_reads =
            RingReads::new(context, peers, &snitch, &replica_reads, &local_writes, registry);
        components.add(&handoff);
        components.add(&counters);
        Self {
            local_writes,
            counters,
            batch_log,
            handoff,
            ring_writes,
            ring_batches,
            replica_reads,
            ring_reads,
        }
    }

    /// What the writes of clients go by.
    fn mutations(&self, context: &Rc<ShardContext>, peers: &Rc<Peers>) -> Rc<Mutations> {
        Mutations::new(
            (context, peers),
            &self.local_writes,
            &self.counters,
            &self.batch_log,
            &self.ring_writes,
            &self.ring_batches,
        )
    }

    /// What the messages of other nodes go by.
    fn replica(
        &self,
        context: &Rc<ShardContext>,
        components: &Components,
        peers: &Rc<Peers>,
        schema: &Rc<SchemaOwner>,
        repairs: &Rc<Repairs>,
    ) -> Rc<Replica> {
        Replica::new(
            (context, peers),
            &self.replica_reads,
            (&self.local_writes, &self.counters, &self.ring_writes),
            (&self.batch_log, &self.handoff),
            components.remote(),
            (schema, repairs),
        )
    }
}

/// What moves files between nodes, and what has replicas agree.
fn streams_and_repairs(
    (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
    components: &Components,
    cql: &Rc<OwnCql>,
    registry: &Rc<Registry>,
) -> (Topology, Rc<Repairs>) {
    let ongoing = Rc::<Ongoing>::default();
    let topology = Topology::new(shard, components, peers, &ongoing, registry);
    let streaming = topology.streaming();
    let repairs = Repairs::new((shard, peers), components, (streaming, &ongoing), cql);
    (topology, repairs)
}

impl Shard {
    /// Makes a shard's components. They count in `registry`; `publish` tells its clients of
    /// changes.
    pub fn new(
        engine: &Rc<Engine>,
        config: Arc<Config>,
        identity: Arc<Identity>,
        components: &Components,
        registry: &Rc<Registry>,
        publish: impl Fn(&Event) + 'static,
    ) -> Rc<Self> {
        let context = ShardContext::new(engine, config, identity, registry);
        let peers = Peers::new(&context, components.remote());
        let (turns, binder) = (Rc::<Turns>::default(), Binder::new(&context));
        let paths = Paths::new(&context, components, &peers, &turns, registry);
        let tracer = Tracer::new(&context, &peers, &paths.ring_writes, registry);
        let saved_caches = SavedCaches::new(&context, components.remote(), &paths.counters);
        let (guardrails, acceptors) = (Guardrails::new(&context), Acceptors::new(&context));
        let virtual_tables = VirtualTables::new(&context, &paths.handoff, &guardrails);
        let requests = Rc::new(ClientRequests::new(registry));
        let paxos = Paxos::new(
            (&context, components.remote()),
            (&turns, &acceptors),
            (&peers, &paths.ring_reads, &paths.ring_writes),
            &binder,
            &requests,
        );
        let (over_ring, bound) = ((&paths.ring_reads, &paxos), (&binder, &guardrails));
        let reads = Reads::new(&context, &peers, over_ring, bound, &virtual_tables, &requests);
        let mutations = paths.mutations(&context, &peers);
        let writes = Writes::new(&context, &mutations, over_ring, bound, &requests, registry);
        let own_cql = OwnCql::new(&context, &peers, &reads, &writes);
        let auth = Auth::new(&context, components.remote(), &own_cql, registry);
        let estimates = SizeEstimates::new(&context, &peers);
        let compactions = CompactionHistory::new(&context, &own_cql);
        let clients = Clients::new(components.remote(), publish);
        let statements = Statements::new(&context, components.remote(), &own_cql);
        let schema = SchemaOwner::new(
            (&context, components.remote()),
            (&peers, &clients),
            (&guardrails, &auth),
            &statements,
            &estimates,
            &virtual_tables,
        );
        let of = (&context, &peers);
        let (topology, repairs) = streams_and_repairs(of, components, &own_cql, registry);
        let replica = paths.replica(&context, components, &peers, &schema, &repairs);
        components.add(&peers);
        components.add(&clients);
        components.add(&saved_caches);
        components.add(&acceptors);
        components.add(&paxos);
        components.add(&auth);
        components.add(&statements);
        components.add(&schema);
        let coordinator = Rc::new(Coordinator {
            shard: Rc::clone(&context),
            peers: Rc::clone(&peers),
            statements,
            binder,
            reads,
            writes,
            paxos,
            truncation: Truncation::new(&context, &peers, &schema),
            schema,
            watch: Watch::new(&auth, &guardrails, SlowQueries::new(&context, &peers)),
            auth,
            guardrails,
        });
        let shard = Rc::new(Self {
            others: components.remote(),
            context,
            coordinator,
            peers,
            clients,
            handoff: paths.handoff,
            ring_batches: paths.ring_batches,
            saved_caches,
            estimates,
            compactions,
            replica,
            virtual_tables,
            tracer,
            topology,
            repairs,
            server: OnceCell::new(),
            membership: OnceCell::new(),
            movements: OnceCell::new(),
        });
        components.add(&shard);
        shard
    }

    /// The components of all shards.
    pub fn others(&self) -> &Remote<Self> {
        &self.others
    }

    /// This shard's engine.
    pub fn engine(&self) -> &Rc<Engine> {
        &self.context.engine
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.context.identity
    }

    /// How long requests may take on this shard.
    pub fn timeouts(&self) -> Timeouts {
        self.context.timeouts()
    }

    /// Lets requests on this shard take so long, those to other nodes too.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.context.set_timeouts(timeouts);
        if let Some(messenger) = self.peers.messenger() {
            let streaming_user = messenger.patience().streaming_user;
            messenger.set_patience(Patience { streaming_user, ..patience(&timeouts) });
        }
    }

    /// The present schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.context.schema()
    }

    /// What runs the requests of clients.
    pub fn coordinator(&self) -> &Rc<Coordinator> {
        &self.coordinator
    }

    /// This shard's way to other nodes.
    pub fn peers(&self) -> &Rc<Peers> {
        &self.peers
    }

    /// The writes that other nodes missed.
    pub fn handoff(&self) -> &Rc<Handoff> {
        &self.handoff
    }

    /// What changes the schema.
    pub fn schema_owner(&self) -> &Rc<SchemaOwner> {
        &self.coordinator.schema
    }

    /// What is prepared.
    pub fn statements(&self) -> &Rc<Statements> {
        &self.coordinator.statements
    }

    /// This node as a replica.
    #[cfg(test)]
    pub(crate) fn replica(&self) -> &Rc<Replica> {
        &self.replica
    }

    /// How large tables are.
    pub fn estimates(&self) -> &Rc<SizeEstimates> {
        &self.estimates
    }

    /// What compactions did.
    pub fn compactions(&self) -> &Rc<CompactionHistory> {
        &self.compactions
    }

    /// Who may do what.
    pub fn auth(&self) -> &Rc<Auth> {
        &self.coordinator.auth
    }

    /// Writes the batches that are kept on this node for too long; on the first shard.
    ///
    /// # Errors
    /// If they cannot be read or written here.
    pub async fn replay_batches(&self) -> Result<(), StorageError> {
        self.ring_batches.replay_late_batches().await
    }

    /// The guardrails.
    pub fn guardrails(&self) -> &Rc<Guardrails> {
        &self.coordinator.guardrails
    }

    /// What virtual tables show.
    pub fn virtual_tables(&self) -> &Rc<VirtualTables> {
        &self.virtual_tables
    }

    /// What traces requests.
    pub fn tracer(&self) -> &Rc<Tracer> {
        &self.tracer
    }

    /// What goes to and comes from other nodes as files.
    pub fn streaming(&self) -> &Rc<Streaming> {
        self.topology.streaming()
    }

    /// `nodetool rebuild`; on the first shard.
    pub fn rebuild(&self) -> &Rc<Rebuild> {
        self.topology.rebuild()
    }

    /// What coordinates repairs; on the first shard.
    pub fn repairs(&self) -> &Rc<RepairCoordinator> {
        self.repairs.coordinator()
    }

    /// The incremental repairs that this node has part in; on the first shard.
    pub fn repair_sessions(&self) -> &Rc<LocalSessions> {
        self.repairs.sessions()
    }

    /// What operators ask of them; on the first shard.
    pub fn repair_report(&self) -> &RepairReport {
        self.repairs.report()
    }

    /// What fills caches with what was saved of them.
    pub fn saved_caches(&self) -> &Rc<SavedCaches> {
        &self.saved_caches
    }

    /// Listens for other nodes on this shard, until the tasks are dropped. The first shard finds
    /// out whether the port is free.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn listen_to_peers(self: &Rc<Self>) -> std::io::Result<Vec<env::Task<()>>> {
        let Some(messenger) = self.peers.messenger() else { return Ok(Vec::new()) };
        if self.context.env.shard() == 0 {
            messenger.claim()?;
        }
        let Self { peers, replica, tracer, topology, server, .. } = &**self;
        let schema = &self.coordinator.schema;
        let made = || {
            PeerServer::new((&self.context, peers), replica, schema, topology.streaming(), tracer)
        };
        let server: Rc<dyn Serve> = Rc::clone(server.get_or_init(made)) as _;
        messenger.listen(Rc::downgrade(&server))
    }

    /// Makes this node a part of the ring; on the first shard. `saved`: its place there before.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub async fn join_ring(
        self: &Rc<Self>,
        config: gossip::Config,
        snitch: Snitch,
        saved: SavedPlace,
    ) -> Result<Joined, JoinError> {
        let Some(messenger) = self.peers.messenger() else { return Ok(Joined::default()) };
        let batches = Rc::downgrade(&self.ring_batches);
        self.context.env.spawn(Class::Background, replay_kept_batches(batches));
        let Self { peers, clients, membership, topology, repairs, handoff, ring_batches, .. } =
            &**self;
        let (shard, schema) = (&self.context, &self.coordinator.schema);
        let made = || Membership::new((shard, peers), schema, clients, messenger, config, snitch);
        let membership = membership.get_or_init(made);
        repairs.join(membership);
        let kept = (handoff, ring_batches);
        let made = || Movements::new((shard, peers), membership, topology, kept, saved);
        let join = Rc::clone(&self.movements.get_or_init(made).join);
        join.start().await
    }

    /// This node's way into the ring; on the first shard.
    pub fn join(&self) -> Option<&Rc<Join>> {
        self.movements.get().map(|movements| &movements.join)
    }

    /// Its way to another place, or out of the ring; on the first shard.
    pub fn relocation(&self) -> Option<&Rc<Relocation>> {
        self.movements.get().map(|movements| &movements.relocation)
    }

    /// How it removes others that are dead; on the first shard.
    pub fn removal(&self) -> Option<&Rc<Removal>> {
        self.movements.get().map(|movements| &movements.removal)
    }

    /// What a change of the ring would move; on the first shard.
    pub fn planner(&self) -> Option<&Rc<Planner>> {
        self.movements.get().map(|movements| &movements.planner)
    }

    /// This node's part in the ring; on the first shard.
    pub fn membership(&self) -> Option<&Rc<Membership>> {
        self.membership.get()
    }
}
