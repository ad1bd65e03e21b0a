//! One shard's coordinator: statements in, answers out.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::{Config, Timeouts};
use cql::guard::Guard;
use cql::modify::Modify;
use cql::{CqlError, Plan, Prepared, redacted};
use env::Class;
use messaging::Serve;
use metrics::Registry;
use protocol::{Batch, BatchKind, BatchStatement, ErrorResponse, Event};
use ring::Snitch;
use schema::Schema;
use storage::Engine;
use storage::shards::{Components, Remote};

use crate::answer::{Answer, Outcome, PreparedInfo, UseWarning, cql_error, invalid};
use crate::auth::Auth;
use crate::batch_log::BatchLog;
use crate::binding::Binder;
use crate::clients::Clients;
use crate::compaction_history::CompactionHistory;
use crate::counters::Counters;
use crate::describe::describe;
use crate::dynamic_snitch::DynamicSnitch;
use crate::estimates::SizeEstimates;
use crate::guardrails::Rails;
use crate::hints::Handoff;
use crate::identity::Identity;
use crate::local_writes::LocalWrites;
use crate::membership::{self, JoinError, Joined, Membership, PeerServer};
use crate::mutations::Mutations;
use crate::own_cql::OwnCql;
use crate::paxos::{Acceptors, Paxos};
use crate::peers::{Peers, patience};
use crate::prepared::{Entry, result_metadata};
use crate::read::Reads;
use crate::replica::{Replica, ReplicaReads};
use crate::request::Request;
use crate::request_metrics::ClientRequests;
use crate::ring_batch::{RingBatches, replay_kept_batches};
use crate::ring_read::RingReads;
use crate::ring_write::RingWrites;
use crate::saved_caches::SavedCaches;
use crate::schema_owner::SchemaOwner;
use crate::shard_context::ShardContext;
use crate::statements::Statements;
use crate::tracing::{Tracer, Tracing};
use crate::truncation::Truncation;
use crate::turns::Turns;
use crate::values::{Bound, check_count};
use crate::virtual_tables::VirtualTables;
use crate::watch::Watch;
use crate::write::Writes;

/// How long a request waits before it is planned anew, for an alteration to reach this shard.
const REPLAN_PAUSE: Duration = Duration::from_millis(1);
/// The coordinator.
pub struct Coordinator {
    shard: Rc<ShardContext>,
    /// The coordinators of all shards.
    shards: Remote<Coordinator>,
    statements: Rc<Statements>,
    binder: Rc<Binder>,
    reads: Rc<Reads>,
    writes: Rc<Writes>,
    paxos: Rc<Paxos>,
    schema: Rc<SchemaOwner>,
    truncation: Rc<Truncation>,
    auth: Rc<Auth>,
    watch: Rc<Watch>,
    parts: Parts,
}

/// What is not on the path of a client's request: whoever composes a node reaches it here.
struct Parts {
    peers: Rc<Peers>,
    clients: Rc<Clients>,
    handoff: Rc<Handoff>,
    rails: Rc<Rails>,
    ring_batches: Rc<RingBatches>,
    saved_caches: Rc<SavedCaches>,
    estimates: Rc<SizeEstimates>,
    compactions: Rc<CompactionHistory>,
    replica: Rc<Replica>,
    virtual_tables: Rc<VirtualTables>,
    tracer: Rc<Tracer>,
    /// Serves other nodes; the messenger holds it by a weak handle.
    server: OnceCell<Rc<PeerServer>>,
    /// On the first shard: this node's part in the ring.
    membership: OnceCell<Rc<Membership>>,
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
        let shard = ShardContext::new(engine, config, identity, registry);
        let peers = Peers::new(&shard, components.remote());
        let (turns, snitch) =
            (Rc::<Turns>::default(), Rc::new(DynamicSnitch::new(engine.env(), &shard.config)));
        let local_writes = LocalWrites::new(&shard);
        let counters = Counters::new(&shard, components.remote(), &turns);
        let batch_log = BatchLog::new(&shard, &local_writes);
        let handoff = Handoff::new(&shard, components.remote(), &peers, &local_writes, registry);
        let ring_writes =
            RingWrites::new(&shard, &peers, &handoff, &local_writes, &counters, &snitch);
        let ring_batches =
            RingBatches::new(&shard, &peers, &batch_log, &local_writes, &ring_writes, &snitch);
        let replica_reads = ReplicaReads::new(&shard, &peers);
        let ring_reads =
            RingReads::new(&shard, &peers, &snitch, &replica_reads, &local_writes, registry);
        let tracer = Tracer::new(&shard, &peers, &ring_writes, registry);
        let saved_caches = SavedCaches::new(&shard, components.remote(), &counters);
        let rails = Rails::new(&shard);
        let virtual_tables = VirtualTables::new(&shard, &handoff, &rails);
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
        let (over_ring, bound) = ((&ring_reads, &paxos), (&binder, &rails));
        let reads = Reads::new(&shard, &peers, over_ring, bound, &virtual_tables, &requests);
        let writes = Writes::new(&shard, &mutations, over_ring, bound, &requests, registry);
        let own_cql = OwnCql::new(&shard, &peers, &reads, &writes);
        let auth = Auth::new(&shard, components.remote(), &own_cql, registry);
        let estimates = SizeEstimates::new(&shard, &peers);
        let compactions = CompactionHistory::new(&shard, &own_cql);
        let clients = Clients::new(components.remote(), publish);
        let statements = Statements::new(&shard, components.remote(), &own_cql);
        let schema = SchemaOwner::new(
            (&shard, components.remote()),
            (&peers, &clients),
            (&rails, &auth),
            &statements,
            &estimates,
            &virtual_tables,
        );
        let replica = Replica::new(
            (&shard, &peers),
            &replica_reads,
            (&local_writes, &counters, &ring_writes),
            (&batch_log, &handoff),
            components.remote(),
            &schema,
        );
        components.add(&peers);
        components.add(&clients);
        components.add(&handoff);
        components.add(&counters);
        components.add(&saved_caches);
        components.add(&acceptors);
        components.add(&paxos);
        components.add(&auth);
        components.add(&statements);
        components.add(&schema);
        let coordinator = Rc::new(Self {
            truncation: Truncation::new(&shard, &peers, &schema),
            watch: Watch::new(&auth, &rails),
            shards: components.remote(),
            shard,
            statements,
            binder,
            reads,
            writes,
            paxos,
            schema,
            auth,
            parts: Parts {
                peers,
                clients,
                handoff,
                rails,
                ring_batches,
                saved_caches,
                estimates,
                compactions,
                replica,
                virtual_tables,
                tracer,
                server: OnceCell::new(),
                membership: OnceCell::new(),
            },
        });
        components.add(&coordinator);
        coordinator
    }

    /// This shard's engine.
    pub fn engine(&self) -> &Rc<Engine> {
        &self.shard.engine
    }

    /// Who this node is.
    pub fn identity(&self) -> &Identity {
        &self.shard.identity
    }

    /// How long requests may take on this shard.
    pub fn timeouts(&self) -> Timeouts {
        self.shard.timeouts()
    }

    /// Lets requests on this shard take so long, those to other nodes too.
    pub fn set_timeouts(&self, timeouts: Timeouts) {
        self.shard.set_timeouts(timeouts);
        if let Some(messenger) = self.parts.peers.messenger() {
            messenger.set_patience(patience(&timeouts));
        }
    }

    /// The present schema.
    pub fn schema(&self) -> Arc<Schema> {
        self.shard.schema()
    }

    /// The coordinators of all shards.
    pub fn shards(&self) -> &Remote<Self> {
        &self.shards
    }

    /// This shard's way to other nodes.
    pub fn peers(&self) -> &Rc<Peers> {
        &self.parts.peers
    }

    /// The writes that other nodes missed.
    pub fn handoff(&self) -> &Rc<Handoff> {
        &self.parts.handoff
    }

    /// What changes the schema.
    pub fn schema_owner(&self) -> &Rc<SchemaOwner> {
        &self.schema
    }

    /// What is prepared.
    pub fn statements(&self) -> &Rc<Statements> {
        &self.statements
    }

    /// This node as a replica.
    #[cfg(test)]
    pub(crate) fn replica(&self) -> &Rc<Replica> {
        &self.parts.replica
    }

    /// How large tables are.
    pub fn estimates(&self) -> &Rc<SizeEstimates> {
        &self.parts.estimates
    }

    /// What compactions did.
    pub fn compactions(&self) -> &Rc<CompactionHistory> {
        &self.parts.compactions
    }

    /// Who may do what.
    pub fn auth(&self) -> &Rc<Auth> {
        &self.auth
    }

    /// The guardrails.
    pub fn rails(&self) -> &Rc<Rails> {
        &self.parts.rails
    }

    /// What virtual tables show.
    pub fn virtual_tables(&self) -> &Rc<VirtualTables> {
        &self.parts.virtual_tables
    }

    /// What traces requests.
    pub fn tracer(&self) -> &Rc<Tracer> {
        &self.parts.tracer
    }

    /// What fills caches with what was saved of them.
    pub fn saved_caches(&self) -> &Rc<SavedCaches> {
        &self.parts.saved_caches
    }

    /// Listens for other nodes on this shard, until the tasks are dropped. The first shard finds out whether the port is free.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn listen_to_peers(self: &Rc<Self>) -> std::io::Result<Vec<env::Task<()>>> {
        let Some(messenger) = self.parts.peers.messenger() else { return Ok(Vec::new()) };
        if self.shards.me() == 0 {
            messenger.claim()?;
        }
        let Parts { peers, replica, tracer, server, .. } = &self.parts;
        let made = || PeerServer::new((&self.shard, peers), replica, &self.schema, tracer);
        let server: Rc<dyn Serve> = Rc::clone(server.get_or_init(made)) as _;
        messenger.listen(Rc::downgrade(&server))
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
        let Some(messenger) = self.parts.peers.messenger() else { return Ok(Joined::default()) };
        let batches = Rc::downgrade(&self.parts.ring_batches);
        self.shard.env.spawn(Class::Background, replay_kept_batches(batches));
        let Parts { peers, clients, membership, .. } = &self.parts;
        let (shard, schema) = (&self.shard, &self.schema);
        let made = || Membership::new((shard, peers), schema, clients, messenger, config, snitch);
        let membership = membership.get_or_init(made);
        membership
            .join(membership::Entry { is_known, bootstraps: self.shard.config.auto_bootstrap })
            .await
    }

    /// This node's part in the ring; on the first shard.
    pub fn membership(&self) -> Option<&Rc<Membership>> {
        self.parts.membership.get()
    }

    /// Is there the keyspace that a request names for itself? That it needs none makes no difference.
    ///
    /// # Errors
    /// If there is not.
    pub fn check_keyspace(&self, keyspace: Option<&str>) -> Result<(), ErrorResponse> {
        match keyspace.filter(|keyspace| self.schema().keyspace(keyspace).is_none()) {
            Some(keyspace) => Err(invalid(format!("Keyspace '{keyspace}' does not exist"))),
            None => Ok(()),
        }
    }

    /// Runs a statement.
    pub async fn query(self: &Rc<Self>, text: &str, request: Request<'_>) -> Outcome {
        if let Err(error) = self.check_keyspace(request.options.keyspace) {
            return error.into();
        }
        let keyspace = request.options.keyspace.map(Rc::from).or(request.keyspace.clone());
        if let Some(tracing) = &request.tracing {
            tracing.begin_query(text, request.options);
        }
        loop {
            let (keyspace, shards) = (keyspace.as_deref(), request.is_shard_aware);
            let prepared = match self.statements.plan(text, keyspace, shards, request.trace()).await
            {
                Ok((prepared, _)) => prepared,
                Err(error) => return error.into(),
            };
            let metadata = result_metadata(&prepared);
            let outcome = self.run(&prepared, &metadata, &request).await;
            if !self.plans_anew(&outcome, &request).await {
                return outcome;
            }
        }
    }

    /// Is a request to be planned anew, since a table was altered on its way? Then the alteration had time to come here.
    async fn plans_anew(&self, outcome: &Outcome, request: &Request<'_>) -> bool {
        if !outcome.is_outdated || self.shard.env.now() + REPLAN_PAUSE >= request.deadline {
            return false;
        }
        self.shard.env.mark("cas.outdated");
        self.shard.env.sleep(REPLAN_PAUSE).await;
        true
    }

    /// Prepares a statement, on every shard. The guard of an ordinary user adds to `warnings`, which go with a refusal too.
    ///
    /// # Errors
    /// If it makes no sense.
    pub async fn prepare(
        self: &Rc<Self>,
        text: &str,
        keyspace: Option<&str>,
        is_shard_aware: bool,
        tracing: Option<&Tracing>,
        user: Option<&Rc<str>>,
        warnings: &mut Vec<String>,
    ) -> Result<PreparedInfo, ErrorResponse> {
        if let Some(tracing) = tracing {
            tracing.begin_prepare(text);
            tracing.trace().note(&self.shard.env, || format!("Parsing {}", redacted(text)));
        }
        let prepared = self.statements.prepare(text, keyspace, is_shard_aware).await?;
        let entry = &prepared.entry;
        if let Some(user) = user
            && self.watch.is_guarded(user, false).await?
        {
            let guard = self.parts.rails.new_guard();
            let checked = guard_plan(&entry.prepared.plan, &guard);
            warnings.extend(guard.take_warnings());
            checked.map_err(cql_error)?;
        }
        if let Plan::Role(statement) = &entry.prepared.plan
            && !self.auth.authenticates()
        {
            // Cassandra validates what it prepares: nobody has a name here, and so nothing is done but refused
            Box::pin(self.auth.run_role(statement, None)).await.result?;
        }
        self.statements.spread(&prepared, is_shard_aware).await;
        let mut info = entry.info.clone();
        if !prepared.was_current && !entry.prepared.is_qualified {
            info.use_warning = Some(UseWarning::new(keyspace, keyspace, &info.id));
        }
        Ok(info)
    }

    /// Runs a prepared statement; also gives its id and the metadata that PREPARE announced.
    pub async fn execute(
        self: &Rc<Self>,
        id: &[u8],
        request: Request<'_>,
    ) -> (Outcome, Option<PreparedInfo>) {
        let mut entry = match self.statements.entry(id) {
            Ok(entry) => entry,
            Err(error) => return (error.into(), None),
        };
        if let Some(tracing) = &request.tracing {
            tracing.begin_execute(&entry, request.options);
        }
        loop {
            let given = &request.options.values;
            if let Err(error) = check_count(given, &entry.prepared.variables, "there") {
                return (error.into(), Some(entry.info.clone()));
            }
            let outcome = self.run(&entry.prepared, &entry.info.result, &request).await;
            if !self.plans_anew(&outcome, &request).await {
                let mut info = entry.info.clone();
                info.use_warning = entry.use_warning(request.keyspace.as_deref());
                return (outcome, Some(info));
            }
            entry = match self.statements.entry(id) {
                Ok(entry) => entry,
                Err(error) => return (error.into(), None),
            };
        }
    }

    async fn run(
        self: &Rc<Self>,
        prepared: &Prepared,
        metadata: &Arc<protocol::ResultMetadata>,
        request: &Request<'_>,
    ) -> Outcome {
        let user = request.user.as_ref();
        let allowed = match self.auth.authorize_now(&prepared.needs, user) {
            Some(allowed) => allowed,
            None => Box::pin(self.auth.authorize(&prepared.needs, user)).await,
        };
        if let Err(refused) = allowed {
            return refused.into();
        }
        if request.user.is_some() {
            let is_warned_anyway = match &prepared.plan {
                Plan::Schema(_) => true,
                // of conditions on several columns that change (`intersect_filtering_query_warned`)
                Plan::Select(select) => select.allows_filtering(),
                _ => false,
            };
            let watched = self.watch.watch(request, is_warned_anyway);
            if let Err(error) = Box::pin(watched).await {
                return error.into();
            }
        }
        if let Some(guard) = request.guard()
            && let Err(refused) = guard_plan(&prepared.plan, guard)
        {
            let mut outcome = Outcome::from(cql_error(refused));
            request.warn(&mut outcome);
            return outcome;
        }
        let values = match Bound::new(request.options.values, &prepared.variables) {
            Ok(values) => values,
            Err(error) => return error.into(),
        };
        let mut outcome = match &prepared.plan {
            Plan::Modify(modify) => self.writes.modify(modify, &values, request).await,
            Plan::Batch(batch) => {
                Box::pin(self.writes.batch_statement(batch, &values, request)).await
            }
            Plan::Select(select) => self.reads.select(select, &values, metadata, request).await,
            Plan::Schema(ddl) => {
                Box::pin(self.schema.change(ddl, user, request.guard().is_some())).await
            }
            Plan::Role(statement) => Box::pin(self.auth.run_role(statement, user)).await,
            Plan::Use(keyspace) => self.use_keyspace(keyspace),
            Plan::Truncate(table) => match request.guarded(Guard::drop_or_truncate) {
                Ok(()) => Box::pin(self.truncation.everywhere(table)).await,
                Err(refused) => refused.into(),
            },
            Plan::Describe(statement) => {
                describe(&self.shard, &self.parts.peers, statement, request)
            }
        };
        if !prepared.warnings.is_empty() {
            outcome.warnings.splice(0..0, prepared.warnings.iter().cloned());
        }
        request.warn(&mut outcome);
        outcome
    }

    fn use_keyspace(&self, keyspace: &str) -> Outcome {
        let checked = cql::ddl::check_use(keyspace, &self.schema()).map_err(cql_error);
        Outcome::new(checked.map(|()| Answer::SetKeyspace(keyspace.to_owned())), Vec::new())
    }

    /// Runs a BATCH message, whose options are those of the request.
    pub async fn batch(self: &Rc<Self>, batch: &Batch<'_>, request: Request<'_>) -> Outcome {
        if let Some(tracing) = &request.tracing {
            tracing.begin_batch(request.options);
        }
        loop {
            let mut outcome = match self.batch_parts(batch, &request).await {
                Ok(outcome) => outcome,
                Err(error) => error.into(),
            };
            request.warn(&mut outcome);
            if !self.plans_anew(&outcome, &request).await {
                return outcome;
            }
        }
    }

    async fn batch_parts(
        self: &Rc<Self>,
        batch: &Batch<'_>,
        request: &Request<'_>,
    ) -> Result<Outcome, ErrorResponse> {
        self.check_keyspace(request.options.keyspace)?;
        let keyspace = request.options.keyspace.map(Rc::from).or(request.keyspace.clone());
        let mut statements: Vec<Rc<Entry>> = Vec::with_capacity(batch.len());
        let mut values = Vec::with_capacity(batch.len());
        for entry in batch.entries() {
            let statement = match entry.statement {
                BatchStatement::Prepared(id) => self.statements.entry(id)?,
                BatchStatement::Text(text) => {
                    let planned =
                        self.statements.plan(text, keyspace.as_deref(), false, request.trace());
                    let (prepared, _) = planned.await?;
                    Rc::new(Entry::new(text, keyspace.as_deref(), prepared, 0))
                }
            };
            if !matches!(statement.prepared.plan, Plan::Modify(_)) {
                return Err(invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
                ));
            }
            check_count(&entry.values, &statement.prepared.variables, "There")?;
            values.push(Bound::new(entry.values, &statement.prepared.variables)?);
            statements.push(statement);
        }
        let kind = match batch.kind {
            BatchKind::Logged => cql::ast::BatchKind::Logged,
            BatchKind::Unlogged => cql::ast::BatchKind::Unlogged,
            BatchKind::Counter => cql::ast::BatchKind::Counter,
        };
        for needs in statements.iter().map(|entry| &entry.prepared.needs) {
            let user = request.user.as_ref();
            match self.auth.authorize_now(needs, user) {
                Some(allowed) => allowed?,
                None => Box::pin(self.auth.authorize(needs, user)).await?,
            }
        }
        if request.user.is_some() {
            Box::pin(self.watch.watch(request, false)).await?;
        }
        self.parts.rails.guard_disk(request)?;
        for entry in &statements {
            request.guarded(|guard| guard_plan(&entry.prepared.plan, guard))?;
        }
        let modifies = statements.iter().filter_map(|entry| match &entry.prepared.plan {
            Plan::Modify(modify) => Some(modify),
            _ => None,
        });
        if modifies.clone().any(|modify| modify.is_conditional()) {
            let all: Vec<&Modify> = modifies.clone().map(|modify| &**modify).collect();
            cql::modify::check_parts(kind, false, &all).map_err(cql_error)?;
            let parts: Vec<_> = modifies.zip(&values).collect();
            return Ok(self.paxos.cas(&parts, true, request).await);
        }
        let parts: Vec<_> = modifies.zip(&values).collect();
        Ok(self.writes.run_batch(kind, &parts, request, self.binder.now(request.options)).await)
    }
}

/// What an ordinary user may not ask, whatever the values are.
fn guard_plan(plan: &Plan, guard: &Guard) -> Result<(), CqlError> {
    match plan {
        Plan::Select(select) => select.guard(guard),
        Plan::Modify(modify) => modify.guard(guard),
        Plan::Batch(batch) => batch.statements().iter().try_for_each(|modify| modify.guard(guard)),
        _ => Ok(()),
    }
}
