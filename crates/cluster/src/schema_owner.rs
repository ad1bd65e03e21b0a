//! Changes of the schema: one owner applies them, one at a time, and every shard has a change
//! before its client is told (decision 12).
//!
//! A change of another node, pulled or pushed, takes the same steps. It is tried on a copy and made
//! durable. Then all shards get it, and after them files and clients.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use cql::ddl::Ddl;
use cql::guard::Guard;
use cql::permission::is_system;
use env::sync::Semaphore;
use protocol::{Change, ErrorDetail, ErrorResponse, Event, SchemaChange, Target};
use rows::Mutation;
use schema::change::Action;
use schema::{
    ChangeKind, ChangeOptions, Keyspace, PropertyValue, Schema, SchemaError, SchemaEvent,
    SchemaMutation, SchemaState, Table, TableId,
};
use storage::shards::Remote;
use storage::snapshot::Snapshot;
use storage::{NodeStore, StorageError};

use crate::answer::{Answer, Outcome, cql_error, invalid, server_error};
use crate::auth::Auth;
use crate::boot::{BootError, truncation_record, write_schema_mutation, write_schema_version};
use crate::clients::Clients;
use crate::estimates::SizeEstimates;
use crate::guardrails::Guardrails;
use crate::internal::{self, Internal, Times};
use crate::peers::Peers;
use crate::schema_ring::{News, Origin, SchemaRefused, Version, Watcher};
use crate::shard_context::{STATEMENT, ShardContext};
use crate::statements::Statements;
use crate::virtual_tables::VirtualTables;

/// The property that `default_compaction` stands in for.
const COMPACTION: &str = "compaction";

/// The schema, where it is changed: on the first shard.
struct Owned {
    state: RefCell<SchemaState>,
    turn: Semaphore,
    /// `default_keyspace_rf`, until the next start.
    default_replication: Cell<u32>,
}

/// Why the ring keeps tables compact; none if it does not.
type KeepsCompact = Box<dyn Fn() -> Option<String>>;

/// Changes the schema; what it owns lives on the first shard.
pub struct SchemaOwner {
    shard: Rc<ShardContext>,
    others: Remote<SchemaOwner>,
    peers: Rc<Peers>,
    clients: Rc<Clients>,
    guardrails: Rc<Guardrails>,
    auth: Rc<Auth>,
    statements: Rc<Statements>,
    estimates: Rc<SizeEstimates>,
    virtual_tables: Rc<VirtualTables>,
    owned: OnceCell<Owned>,
    /// Who is told of changes.
    watchers: RefCell<Vec<Watcher>>,
    keeps_compact: OnceCell<KeepsCompact>,
}

/// What a change came to.
type Changed = Result<(Option<SchemaChange>, Vec<String>), ErrorResponse>;

fn schema_error(error: SchemaError) -> ErrorResponse {
    let message = error.to_string();
    let detail = match error {
        SchemaError::AlreadyExists { keyspace, table, .. } => {
            ErrorDetail::AlreadyExists { keyspace, table }
        }
        SchemaError::Invalid(_) => ErrorDetail::Invalid,
        SchemaError::Config(_) => ErrorDetail::ConfigError,
        SchemaError::Syntax(_) => ErrorDetail::SyntaxError,
        SchemaError::Unauthorized(_) => ErrorDetail::Unauthorized,
    };
    ErrorResponse { message, detail }
}

fn change_of(event: &SchemaEvent) -> SchemaChange {
    let (target, name, arguments) = match &event.target {
        schema::Target::Keyspace => (Target::Keyspace, String::new(), Vec::new()),
        schema::Target::Table(name) => (Target::Table, name.clone(), Vec::new()),
        schema::Target::Type(name) => (Target::Type, name.clone(), Vec::new()),
        schema::Target::Function(name, arguments) => {
            (Target::Function, name.clone(), arguments.clone())
        }
        schema::Target::Aggregate(name, arguments) => {
            (Target::Aggregate, name.clone(), arguments.clone())
        }
    };
    let change = match event.kind {
        ChangeKind::Created => Change::Created,
        ChangeKind::Updated => Change::Updated,
        ChangeKind::Dropped => Change::Dropped,
    };
    SchemaChange { change, target, keyspace: event.keyspace.clone(), name, arguments }
}

impl SchemaOwner {
    pub(crate) fn new(
        (shard, others): (&Rc<ShardContext>, Remote<Self>),
        (peers, clients): (&Rc<Peers>, &Rc<Clients>),
        (guardrails, auth): (&Rc<Guardrails>, &Rc<Auth>),
        statements: &Rc<Statements>,
        estimates: &Rc<SizeEstimates>,
        virtual_tables: &Rc<VirtualTables>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            others,
            peers: Rc::clone(peers),
            clients: Rc::clone(clients),
            guardrails: Rc::clone(guardrails),
            auth: Rc::clone(auth),
            statements: Rc::clone(statements),
            estimates: Rc::clone(estimates),
            virtual_tables: Rc::clone(virtual_tables),
            owned: OnceCell::new(),
            watchers: RefCell::default(),
            keeps_compact: OnceCell::new(),
        })
    }

    /// Asks `keeps_compact` what the ring does with compact tables.
    pub(crate) fn ask_ring(&self, keeps_compact: impl Fn() -> Option<String> + 'static) {
        let _ = self.keeps_compact.set(Box::new(keeps_compact));
    }

    /// Makes this shard the one that changes the schema, from the state that a start loaded.
    pub fn own(&self, state: SchemaState) {
        let default_replication = Cell::new(self.shard.config.default_keyspace_rf);
        let (state, turn) = (RefCell::new(state), Semaphore::new(1));
        let owned = Owned { state, turn, default_replication };
        assert!(self.owned.set(owned).is_ok(), "the schema has one owner");
    }

    /// A statement that changes the schema, from any shard.
    /// With a guard where an ordinary user asks for it.
    pub(crate) async fn change(
        self: &Rc<Self>,
        ddl: &Ddl,
        user: Option<&Rc<str>>,
        is_guarded: bool,
    ) -> Outcome {
        let ddl = ddl.clone();
        let run = move |owner: Rc<Self>| async move {
            let guard = is_guarded.then(|| owner.guardrails.new_guard());
            let changed = owner.change_as_owner(&ddl, guard.as_deref()).await;
            (changed, guard.map(|guard| guard.take_warnings()).unwrap_or_default())
        };
        let (changed, mut guarded) = match self.others.call_async(0, STATEMENT, run).await {
            Ok(changed) => changed,
            Err(stopping) => return server_error(stopping).into(),
        };
        match changed {
            Ok((change, warnings)) => {
                if let Some(change) = &change
                    && let Err(error) = Box::pin(self.auth.after_schema_change(change, user)).await
                {
                    return error.into();
                }
                guarded.extend(warnings);
                Outcome::new(Ok(change.map_or(Answer::Void, Answer::SchemaChange)), guarded)
            }
            Err(error) => Outcome::new(Err(error), guarded),
        }
    }

    /// How many replicas a keyspace has that does not say so; on the first shard.
    pub fn default_replication(&self) -> u32 {
        let configured = self.shard.config.default_keyspace_rf;
        self.owned.get().map_or(configured, |owned| owned.default_replication.get())
    }

    /// Sets that until the next start; on the first shard.
    pub fn set_default_replication(&self, replicas: u32) {
        if let Some(owned) = self.owned.get() {
            owned.default_replication.set(replicas);
        }
    }

    /// The data centres of the ring, each with its nodes.
    fn data_centers(&self) -> BTreeMap<String, usize> {
        let Some(ring) = self.peers.ring() else {
            return [(self.shard.identity.data_center.clone(), 1)].into();
        };
        let mut centers = BTreeMap::new();
        for node in ring.members() {
            *centers.entry(ring.node(*node).data_center.to_string()).or_default() += 1;
        }
        centers
    }

    async fn change_as_owner(self: &Rc<Self>, ddl: &Ddl, guard: Option<&Guard>) -> Changed {
        let Some(owner) = self.owned.get() else {
            return Err(server_error("the node is still starting"));
        };
        let _turn = owner.turn.acquire(1).await;
        let before = Arc::clone(owner.state.borrow().schema());
        let timestamp = self.shard.env.unique_micros();
        let options = ChangeOptions {
            datacenters: self.data_centers(),
            default_replication: owner.default_replication.get(),
            memtables: self.shard.config.tables.memtables.clone(),
            drop_compact_storage: self.shard.config.drop_compact_storage_enabled,
            keeps_compact_storage: self.keeps_compact.get().and_then(|asks| asks()),
            masking: self.shard.config.dynamic_data_masking_enabled,
            now: timestamp / 1_000_000,
            cdc_enabled: self.shard.config.cdc.is_some(),
            ..ChangeOptions::default()
        };
        if let (Some(guard), true) = (guard, ddl.creates_index()) {
            guard.create_index().map_err(cql_error)?;
        }
        let change = ddl.change(&before, &options).map_err(cql_error)?;
        let Some(mut change) = change else { return Ok((None, Vec::new())) };
        if let Some(guard) = guard {
            guard.asked(&mut change, &before).map_err(cql_error)?;
        }
        self.complete(&mut change);
        // A change that is older than what it changes, by the clock of another node, would be none.
        let newest = owner.state.borrow().rows().newest(&change.keyspace);
        let timestamp = newest.map_or(timestamp, |newest| timestamp.max(newest.saturating_add(1)));
        let id = match &change.action {
            Action::CreateTable(create) if self.shard.config.tables.have_ids_by_name => {
                TableId::of_name(&change.keyspace, &create.table)
            }
            _ => TableId(self.shard.time_uuid()),
        };
        // The change is tried on a copy: until it is durable, it has not happened.
        let mut state = owner.state.borrow().clone();
        let applied = state.change(&change, timestamp, id, &options).map_err(schema_error)?;
        if let Some(guard) = guard {
            guard.came_to(&change, state.schema()).map_err(cql_error)?;
        }
        if applied.mutations.is_empty() {
            return Ok((None, applied.warnings));
        }
        self.install(owner, state, &applied.mutations, &applied.events).await?;
        self.tell(owner, Origin::Here, &applied.mutations);
        Ok((applied.event.as_ref().map(change_of), applied.warnings))
    }

    /// Gives a new table the compaction of `default_compaction`, where its statement names none.
    fn complete(&self, change: &mut schema::SchemaChange) {
        let Some(compaction) = &self.shard.config.tables.default_compaction else { return };
        let Action::CreateTable(create) = &mut change.action else { return };
        if create.properties.iter().all(|(name, _)| name != COMPACTION) {
            let options = compaction.iter().map(|(name, value)| (name.clone(), value.clone()));
            create.properties.push((COMPACTION.to_owned(), PropertyValue::Map(options.collect())));
        }
    }

    /// Makes a changed state the schema of the node: its rows durable first, then every shard under
    /// the new epoch, then what went with the change and who is told of it. The turn is held.
    async fn install(
        self: &Rc<Self>,
        owner: &Owned,
        state: SchemaState,
        mutations: &[SchemaMutation],
        events: &[SchemaEvent],
    ) -> Result<(), ErrorResponse> {
        let failed = |error: BootError| server_error(error);
        let (before, after) = (self.shard.schema(), Arc::clone(state.schema()));
        for mutation in mutations {
            write_schema_mutation(&self.shard.engine, &after, mutation).await.map_err(failed)?;
        }
        // In periodic mode too: Cassandra flushes its schema at every change. What a dropped table
        // has goes right after, in the log and on the disk; nothing of it may be gone while the
        // table is not.
        let keyspaces: BTreeSet<&str> =
            mutations.iter().map(|mutation| mutation.keyspace.as_str()).collect();
        for keyspace in keyspaces {
            let synced = internal::sync_owner(&self.shard.engine, keyspace.as_bytes()).await;
            synced.map_err(server_error)?;
        }
        let node = self.shard.engine.node().ok_or_else(|| server_error("the node is stopping"))?;
        node.set_schema(&after).await.map_err(server_error)?;
        *owner.state.borrow_mut() = state;
        write_schema_version(&self.shard.engine, &after).await.map_err(failed)?;
        self.flush_schema(&node, &after, mutations);
        self.drop_tables(&before, &after).await;
        Box::pin(self.statements.forget_outdated(&after)).await;
        for event in events {
            self.clients.tell_all(&Event::Schema(change_of(event)));
        }
        Ok(())
    }

    /// Has what changed in `system_schema` written to SSTables soon. The log has it already; but a
    /// Cassandra that is started on this directory reads its schema before its log.
    fn flush_schema(&self, node: &NodeStore, schema: &Schema, mutations: &[SchemaMutation]) {
        for table in mutations.iter().flat_map(|mutation| mutation.updates.keys()) {
            if let Some(table) = schema.table("system_schema", table.name()) {
                node.flushes().want(table.id);
            }
        }
    }

    /// Removes the files of tables that a change dropped, after their snapshot.
    async fn drop_tables(self: &Rc<Self>, before: &Schema, after: &Schema) {
        let Some(node) = self.shard.engine.node() else { return };
        let mut dropped = false;
        let tables = before.keyspaces().values().flat_map(|keyspace| keyspace.tables.values());
        for table in tables.filter(|table| after.table_by_id(&table.id).is_none()) {
            let keyspace = before.keyspace(&table.keyspace);
            let snapshot = keyspace.and_then(|of| self.auto_snapshot("dropped", table, of));
            // What cannot be removed costs space only: no table refers to it any more.
            let _ = node.truncations().drop_table(table, snapshot.as_ref()).await;
            dropped = true;
        }
        if dropped {
            // they are refreshed again in a while
            let _ = self.estimates.refresh().await;
        }
    }

    /// The snapshot to take before a table is emptied or dropped, named as Cassandra does.
    fn auto_snapshot(&self, why: &str, table: &Table, keyspace: &Keyspace) -> Option<Snapshot> {
        let wanted = self.shard.config.auto_snapshot && table.params.allow_auto_snapshot;
        let created_at = self.shard.unix_millis();
        let stays = self.shard.config.auto_snapshot_ttl;
        wanted.then(|| Snapshot {
            name: format!("{why}-{created_at}-{}", table.name),
            created_at,
            expires_at: stays.map(|stays| created_at.saturating_add(stays.as_millis() as i64)),
            schema: (!is_system(&table.keyspace))
                .then(|| table.schema_cql(keyspace, self.shard.identity.release)),
        })
    }

    /// TRUNCATE. Who waits gives up after `truncate_request_timeout`; the work goes on.
    pub(crate) async fn truncate(self: &Rc<Self>, table: &Arc<Table>) -> Outcome {
        let id = table.id;
        let run = move |first: Rc<Self>| async move { first.truncate_as_owner(id).await };
        let deadline = self.shard.env.now() + self.shard.timeouts().truncate;
        match self.shard.env.timeout_at(deadline, self.others.call_async(0, STATEMENT, run)).await {
            Ok(Ok(Ok(()))) => Outcome::new(Ok(Answer::Void), Vec::new()),
            Ok(Ok(Err(error))) => error.into(),
            Ok(Err(stopping)) => server_error(stopping).into(),
            Err(_) => {
                truncate_error("Truncate timed out - received only 0 responses".to_owned()).into()
            }
        }
    }

    async fn truncate_as_owner(self: &Rc<Self>, id: TableId) -> Result<(), ErrorResponse> {
        let schema = self.shard.schema();
        let table = schema.table_by_id(&id).ok_or_else(|| invalid("unconfigured table"))?;
        cql::ddl::check_truncate(table).map_err(cql_error)?;
        if table.is_virtual() {
            self.virtual_tables.forget_logs();
            return Ok(());
        }
        let node = self.shard.engine.node().ok_or_else(|| server_error("the node is stopping"))?;
        let keyspace = schema.keyspace(&table.keyspace);
        let snapshot = keyspace.and_then(|of| self.auto_snapshot("truncated", table, of));
        let local = schema.table("system", "local").cloned();
        let engine = Rc::clone(&self.shard.engine);
        let env = self.shard.env.clone();
        let record = async move |position| -> Result<(), StorageError> {
            let Some(local) = local else { return Err(StorageError::UnknownTable(id)) };
            // What was batched up to this millisecond is void, what comes later is not: nothing
            // else is of this one.
            let now = env.unique_micros();
            env.raise_unique_floor(now - now % 1000 + 999);
            let record = truncation_record(position, now / 1000);
            let columns = [("truncated_at", Internal::Entry(id.0.to_vec(), record))];
            let row = internal::insert(&local, &[b"local"], &[], &columns, &Times::new(now));
            internal::apply(&engine, row).await?;
            // in periodic mode too: the files go right after
            internal::sync_owner(&engine, b"local").await
        };
        let truncated = async {
            node.truncations().truncate(id, snapshot.as_ref(), record).await?;
            // The log has the record already; but a Cassandra that is started on this directory
            // asks for it before its log, and would replay what was truncated.
            match schema.table("system", "local") {
                Some(local) => node.flush(local.id).await.map(drop),
                None => Ok(()),
            }
        };
        truncated.await.map_err(|error: StorageError| truncate_error(error.to_string()))
    }

    /// Tells whoever wants to know of a change that is done.
    fn tell(&self, owned: &Owned, origin: Origin, mutations: &[SchemaMutation]) {
        let watchers = self.watchers.borrow().clone();
        if watchers.is_empty() {
            return;
        }
        let sends_cdc = self.shard.config.cdc.is_some();
        let schema = Arc::clone(owned.state.borrow().schema());
        let sent = mutations.iter().filter_map(|mutation| {
            let mutation = mutation.clone();
            let sent = if sends_cdc { mutation } else { mutation.without_cdc() };
            // its columns are those of the schema, or it would not have been written
            sent.to_mutation(&schema).ok().flatten()
        });
        let news = News { origin, version: schema.version(), mutations: sent.collect() };
        watchers.iter().for_each(|watcher| watcher(news.clone()));
    }

    /// Has this called after each change of the schema, on the first shard, where the node owns its
    /// schema.
    pub fn watch(&self, watcher: impl Fn(News) + 'static) {
        assert!(self.owned.get().is_some(), "only the shard that owns the schema watches it");
        self.watchers.borrow_mut().push(Rc::new(watcher));
    }

    /// The answer to SCHEMA_PULL: everything of the schema that nodes share, a mutation of each
    /// keyspace, its tombstones included.
    ///
    /// # Errors
    /// If the node is starting or stopping.
    pub async fn to_send(&self) -> Result<Vec<Mutation>, SchemaRefused> {
        let gather = |first: Rc<Self>| async move {
            let Some(owner) = first.owned.get() else {
                return Err(SchemaRefused::Failed("the node is still starting".to_owned()));
            };
            let state = owner.state.borrow();
            let sends_cdc = first.shard.config.cdc.is_some();
            let all = state.mutations().into_iter();
            let all = all.map(|mutation| if sends_cdc { mutation } else { mutation.without_cdc() });
            let all = all.map(|mutation| mutation.to_mutation(state.schema()));
            Ok(all.filter_map(Result::transpose).collect::<Result<_, _>>()?)
        };
        let gathered = self.others.call_async(0, STATEMENT, gather).await;
        gathered.map_err(|stopping| SchemaRefused::Failed(stopping.to_string()))?
    }

    /// Merges mutations of another node, pulled or pushed: their rows are durable and every shard
    /// is under the epoch with them when this returns. The version then; it may be that from
    /// before, and that is no error.
    ///
    /// # Errors
    /// If they make no sense here. Then nothing has changed.
    pub async fn merge(&self, mutations: Vec<Mutation>) -> Result<Version, SchemaRefused> {
        let run = |first: Rc<Self>| async move { first.merge_as_owner(&mutations).await };
        let merged = self.others.call_async(0, STATEMENT, run).await;
        merged.map_err(|stopping| SchemaRefused::Failed(stopping.to_string()))?
    }

    async fn merge_as_owner(
        self: &Rc<Self>,
        mutations: &[Mutation],
    ) -> Result<Version, SchemaRefused> {
        let Some(owner) = self.owned.get() else {
            return Err(SchemaRefused::Failed("the node is still starting".to_owned()));
        };
        let read: Result<Vec<_>, _> = mutations.iter().map(SchemaMutation::from_mutation).collect();
        let _turn = owner.turn.acquire(1).await;
        // The merge is tried on a copy: until it is durable, it has not happened.
        let mut state = owner.state.borrow().clone();
        let merged = state.merge(&read?, self.shard.env.unix_micros() / 1_000_000)?;
        let version = state.schema().version();
        if !merged.mutations.is_empty() {
            let installed = self.install(owner, state, &merged.mutations, &merged.events).await;
            installed.map_err(|error| SchemaRefused::Failed(error.message))?;
            self.tell(owner, Origin::Peer, &merged.mutations);
        }
        Ok(version)
    }
}

/// TRUNCATE_ERROR in Cassandra's words (`TruncateException`).
pub(crate) fn truncate_error(why: String) -> ErrorResponse {
    ErrorResponse {
        message: format!("Error during truncate: {why}"),
        detail: ErrorDetail::TruncateError,
    }
}
