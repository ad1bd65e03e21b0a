//! Starting a node: its data directory becomes a serving engine with a schema. Runs on the first
//! shard.
//!
//! First `system.local` says who wrote the log. Then the schema is read, and then the rest of the
//! log is replayed.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::Config;
use rows::{Deletion, Mutation, PartitionUpdate, RowBuilder, UpdateBuilder};
use schema::{
    Release, Schema, SchemaMutation, SchemaRows, SchemaState, SchemaTable, Table, TableId,
};
use storage::commitlog::Position;
use storage::{Engine, NodeStore, Replay, StorageError};
use thiserror::Error;
use types::{Address, Reader};

use crate::batch_log::{self, TruncatedAt};
use crate::clock_reserve::{ClockReserve, OpenedReserve, ReserveError};
use crate::identity::{CQL_VERSION, Identity, NATIVE_PROTOCOL_VERSION, PARTITIONER};
use crate::internal::{self, Cells, Internal, Times};
use crate::saved_place::{SavedPlace, set_host_id};

/// Why a node does not start. One line each.
#[derive(Debug, Error)]
pub enum BootError {
    /// Storage does not open.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The clock's reserve does not open.
    #[error(transparent)]
    Clock(#[from] ReserveError),
    /// The directory is another cluster's.
    #[error("Saved cluster name {saved} != configured name {configured}")]
    ClusterName {
        /// In `system.local`.
        saved: String,
        /// In `cassandra.yaml`.
        configured: String,
    },
    /// The stored schema makes no sense.
    #[error("cannot read the stored schema: {0}")]
    Schema(String),
    /// `default_compaction` makes no sense.
    #[error("default_compaction: {0}")]
    DefaultCompaction(String),
    /// Where the node is cannot be told.
    #[error(transparent)]
    Snitch(#[from] ring::SnitchError),
    /// It is elsewhere than before.
    #[error(
        "Cannot start node if snitch's {what} ({now}) differs from previous {what} ({before}). \
         Please fix the snitch configuration: this release does not move a node to another {what}"
    )]
    Moved {
        /// `data center` or `rack`.
        what: &'static str,
        /// As configured.
        now: String,
        /// In `system.local`.
        before: String,
    },
    /// A ring that is not spoken to.
    #[error("release_version: {0} is not supported; set the release of the ring, 5.0.x or 4.1.x")]
    Release(String),
    /// An address that is none.
    #[error(
        "{key}: {value} is not a valid address; set an IP address, host names are not supported"
    )]
    Address {
        /// The configuration's key.
        key: &'static str,
        /// Its value.
        value: String,
    },
}

/// A node that is open.
pub struct Booted {
    /// Who it is.
    pub identity: Identity,
    /// Who says where nodes are.
    pub snitch: ring::Snitch,
    /// Its place in the ring before this start.
    pub saved: SavedPlace,
    /// Stored schema and its snapshot.
    pub state: SchemaState,
    /// What was replayed.
    pub replay: Replay,
    /// To be kept going.
    pub clock: ClockReserve,
    /// By how much the clock stood behind the last start's reserve.
    pub clock_behind: Duration,
}

/// The schema that every node of a ring has before it reads anything. (What is wrong with the
/// release is said by [`boot`].)
pub fn first_schema(config: &Config) -> Arc<Schema> {
    let release = Release::parse(&config.release_version).unwrap_or_default();
    let keyspaces = schema::system::local_keyspaces(release).into_iter();
    let keyspaces = keyspaces.chain(schema::system::virtual_keyspaces());
    Arc::new(Schema::new(keyspaces, Schema::empty_version(), 0))
}

fn system_table(schema: &Schema, name: &str) -> Result<Arc<Table>, BootError> {
    let table = schema.table("system", name).cloned();
    table.ok_or_else(|| BootError::Schema(format!("system.{name} is missing")))
}

/// Opens the node on its data directory.
///
/// # Errors
/// See [`BootError`].
pub async fn boot(engine: &Rc<Engine>, config: &Config) -> Result<Booted, BootError> {
    let env = engine.env().clone();
    let OpenedReserve { reserve: clock, behind: clock_behind, note } =
        ClockReserve::open(&env, &config.data_dir).await?;
    let node = engine.become_first();
    let first = engine.schema();
    let local_tables: Vec<Arc<Table>> = ["system", "system_schema"]
        .into_iter()
        .filter_map(|keyspace| first.keyspace(keyspace))
        .flat_map(|keyspace| keyspace.tables.values().cloned())
        .collect();
    node.set_schema(&first).await?;
    node.open_tables(&local_tables).await?;

    // Who wrote the SSTables and the log is in a table itself.
    let local = system_table(&first, "local")?;
    let local_id = local.id;
    // First of all in the tables: the log's intervals there count only for who wrote them.
    let saved = internal::read_row(engine, &local, b"local").await?;
    if let Some(host_id) = saved.as_ref().and_then(host_id) {
        set_host_id(engine, host_id).await?;
    }
    let mut notes = node.restore_log().await?;
    notes.extend(note);
    let mut replay = node.replay(&|table| table.id == local_id, &BTreeMap::new()).await?;
    replay.notes.extend(notes);
    let saved = internal::read_row(engine, &local, b"local").await?;
    check_default_compaction(config)?;
    let snitch = snitch(config)?;
    let identity = identity(&env, config, &snitch, saved.as_ref())?;
    let own = saved.as_ref().and_then(host_id).unwrap_or_else(|| random_uuid(&env));
    set_host_id(engine, own).await?;
    let (truncated, truncated_at) = saved.as_ref().map(truncations).unwrap_or_default();

    let in_system = |table: &Table| matches!(table.keyspace.as_str(), "system" | "system_schema");
    let system = move |table: &Table| in_system(table) && table.id != local_id;
    add(&mut replay, node.replay(&system, &truncated).await?);
    let state = load_schema(engine, &first, identity.release).await?;
    node.set_schema(state.schema()).await?;
    let others: Vec<Arc<Table>> = state
        .schema()
        .keyspaces()
        .values()
        .flat_map(|keyspace| keyspace.tables.values().cloned())
        .filter(|table| !in_system(table))
        .collect();
    node.open_tables(&others).await?;
    add(&mut replay, node.replay(&|table| !in_system(table), &truncated).await?);
    node.begin_log().await?;
    let state = write_system(engine, &node, state, &identity).await?;
    forget_built_indexes(engine, &node, state.schema()).await?;
    batch_log::replay(engine, &truncated_at).await?;
    let saved = saved.as_ref().map(SavedPlace::of).unwrap_or_default();
    Ok(Booted { identity, snitch, saved, state, replay, clock, clock_behind })
}

fn add(replay: &mut Replay, more: Replay) {
    replay.applied += more.applied;
    replay.unknown = more.unknown;
    replay.torn = more.torn;
    replay.damaged = more.damaged;
    replay.missing = more.missing;
    for note in more.notes {
        if !replay.notes.contains(&note) {
            replay.notes.push(note);
        }
    }
    replay.too_late = more.too_late;
}

fn host_id(cells: &Cells) -> Option<[u8; 16]> {
    cells.get("host_id")?.values().next()?.as_slice().try_into().ok()
}

/// A new table must be able to have it.
fn check_default_compaction(config: &Config) -> Result<(), BootError> {
    let Some(compaction) = &config.tables.default_compaction else { return Ok(()) };
    let options = compaction.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let properties = [("compaction".to_owned(), schema::PropertyValue::Map(options))];
    let checked = schema::TableParams::from_properties(&properties, &[]);
    checked.map(drop).map_err(|error| BootError::DefaultCompaction(error.to_string()))
}

fn address(key: &'static str, host: &config::Host) -> Result<std::net::IpAddr, BootError> {
    match host {
        config::Host::Ip(ip) => Ok(*ip),
        config::Host::Name(name) | config::Host::Interface { name, .. } => {
            Err(BootError::Address { key, value: name.clone() })
        }
    }
}

fn snitch(config: &Config) -> Result<ring::Snitch, BootError> {
    let ip = address("broadcast_address", &config.broadcast_address)?;
    let local = Address::new(ip, config.storage_port);
    let config::Beside { rack_dc, topology, .. } = &config.beside;
    Ok(ring::Snitch::new(&config.snitch, rack_dc.as_deref(), topology.as_deref(), local)?)
}

fn identity(
    env: &env::Env,
    config: &Config,
    snitch: &ring::Snitch,
    saved: Option<&Cells>,
) -> Result<Identity, BootError> {
    if let Some(name) = saved.and_then(|cells| internal::text(cells, "cluster_name"))
        && name != config.cluster_name
    {
        let configured = config.cluster_name.clone();
        return Err(BootError::ClusterName { saved: name, configured });
    }
    let release_version = &config.release_version;
    let release = Release::parse(release_version);
    let release = release.ok_or_else(|| BootError::Release(release_version.clone()))?;
    let value = |column: &str| saved?.get(column)?.values().next();
    let generation = value("gossip_generation").and_then(|bytes| bytes.as_slice().try_into().ok());
    let generation = generation.map_or(0, i32::from_be_bytes).saturating_add(1);
    let broadcast = address("broadcast_address", &config.broadcast_address)?;
    let local = Address::new(broadcast, config.storage_port);
    let (data_center, rack) = snitch.place(local, true, None);
    for (what, column, now) in
        [("data center", "data_center", &data_center), ("rack", "rack", &rack)]
    {
        if let Some(before) = saved.and_then(|cells| internal::text(cells, column))
            && before != *now
        {
            return Err(BootError::Moved { what, now: now.clone(), before });
        }
    }
    let rpc = address("broadcast_rpc_address", &config.broadcast_rpc_address)?;
    Ok(Identity {
        cluster_name: config.cluster_name.clone(),
        release_version: config.release_version.clone(),
        release,
        data_center,
        rack,
        generation: generation.max((env.unix_micros() / 1_000_000) as i32),
        listen: address("listen_address", &config.listen_address)?,
        broadcast,
        storage_port: config.storage_port,
        rpc: (rpc, config.native_transport.port).into(),
    })
}

fn random_uuid(env: &env::Env) -> [u8; 16] {
    let mut bytes = [0; 16];
    env.fill_random(&mut bytes);
    types::Uuid::from_random(bytes).0.to_be_bytes()
}

/// Up to where the log's records of tables were truncated, and when: `system.local.truncated_at`,
/// whose values are a log position and a time.
fn truncations(cells: &Cells) -> (BTreeMap<TableId, Position>, TruncatedAt) {
    let (mut positions, mut times) = (BTreeMap::new(), TruncatedAt::new());
    for (id, value) in cells.get("truncated_at").into_iter().flatten() {
        let Ok(id) = id.as_slice().try_into().map(TableId) else { continue };
        let mut value = Reader::new(value);
        let (Ok(segment), Ok(offset), Ok(at)) = (value.array(), value.array(), value.array())
        else {
            continue;
        };
        let segment = i64::from_be_bytes(segment);
        if let Ok(offset) = u32::try_from(i32::from_be_bytes(offset)) {
            positions.insert(id, Position { segment, offset });
            times.insert(id, i64::from_be_bytes(at));
        }
    }
    (positions, times)
}

/// When tables were truncated last.
pub(crate) async fn truncated_at(
    engine: &Rc<Engine>,
) -> Result<TruncatedAt, storage::StorageError> {
    let Some(local) = engine.schema().table("system", "local").cloned() else {
        return Ok(TruncatedAt::new());
    };
    let saved = internal::read_row(engine, &local, b"local").await?;
    Ok(saved.as_ref().map(truncations).unwrap_or_default().1)
}

/// The value of `system.local.truncated_at` for a truncation.
pub fn truncation_record(position: Position, unix_millis: i64) -> Vec<u8> {
    let mut record = position.segment.to_be_bytes().to_vec();
    record.extend((position.offset as i32).to_be_bytes());
    record.extend(unix_millis.to_be_bytes());
    record
}

async fn load_schema(
    engine: &Rc<Engine>,
    first: &Arc<Schema>,
    release: Release,
) -> Result<SchemaState, BootError> {
    let mut rows = SchemaRows::new();
    let stored = first.keyspace("system_schema").into_iter().flat_map(|ks| ks.tables.values());
    for table in stored.filter(|table| SchemaTable::by_id(&table.id).is_some()) {
        for mutation in internal::read_all(engine, table).await? {
            let mutation = SchemaMutation::from_mutation(&mutation)
                .map_err(|e| BootError::Schema(e.to_string()))?;
            rows.apply(&mutation);
        }
    }
    let local = schema::system::local_keyspaces(release).into_iter();
    let local = local.chain(schema::system::virtual_keyspaces());
    let now = engine.env().unix_micros() / 1_000_000;
    SchemaState::new(rows, local, release, now).map_err(|e| BootError::Schema(e.to_string()))
}

/// Writes what every start writes: the description of the system's own tables, the replicated
/// system keyspaces where they are missing, and `system.local`.
async fn write_system(
    engine: &Rc<Engine>,
    node: &NodeStore,
    mut state: SchemaState,
    identity: &Identity,
) -> Result<SchemaState, BootError> {
    let timestamp = engine.env().unique_micros();
    let now = timestamp / 1_000_000;
    let mut mutations = schema::system::local_mutations(identity.release, timestamp, now);
    let replicated = schema::system::replicated_mutations(identity.release, now);
    let missing = |m: &&SchemaMutation| state.schema().keyspace(&m.keyspace).is_none();
    let missing: Vec<SchemaMutation> = replicated.iter().filter(missing).cloned().collect();
    if !missing.is_empty() {
        let merged = state.merge(&missing, now);
        merged.map_err(|error| BootError::Schema(error.to_string()))?;
        node.set_schema(state.schema()).await?;
        mutations.extend(missing);
    }
    for mutation in &mutations {
        write_schema_mutation(engine, state.schema(), mutation).await?;
    }
    write_local(engine, &state, identity, timestamp).await?;
    Ok(state)
}

/// Takes back that indexes of users are built: what is written from now on is in none of their
/// files. A Cassandra that is started on this directory later asks this first, before its log, and
/// builds them.
async fn forget_built_indexes(
    engine: &Rc<Engine>,
    node: &NodeStore,
    schema: &Schema,
) -> Result<(), BootError> {
    let table = system_table(schema, "IndexInfo")?;
    let timestamp = engine.env().unique_micros();
    let mut scratch = RowBuilder::new();
    let mut is_changed = false;
    for stored in internal::read_all(engine, &table).await? {
        // the system's own are no files beside those of a table
        let is_built = |update: &PartitionUpdate| {
            &*update.key != b"system" && update.rows.iter().any(|row| row.liveness().is_some())
        };
        for update in stored.updates().iter().filter(|update| is_built(update)) {
            let layout = Arc::clone(&table.layout);
            let mut gone = UpdateBuilder::new(table.id.0, layout, &update.key);
            gone.delete_partition(Deletion::new(timestamp, timestamp / 1_000_000));
            internal::apply(engine, Mutation::new(gone.finish(&mut scratch))).await?;
            is_changed = true;
        }
    }
    if is_changed {
        node.flush(table.id).await?;
    }
    Ok(())
}

/// Writes a change of the schema to `system_schema`.
///
/// # Errors
/// If it cannot be logged.
pub async fn write_schema_mutation(
    engine: &Rc<Engine>,
    schema: &Schema,
    mutation: &SchemaMutation,
) -> Result<(), BootError> {
    let update = mutation.to_mutation(schema).map_err(|e| BootError::Schema(e.to_string()))?;
    if let Some(update) = update {
        internal::apply(engine, update).await?;
    }
    Ok(())
}

fn inet(address: std::net::IpAddr) -> Internal {
    Internal::Value(match address {
        std::net::IpAddr::V4(v4) => v4.octets().to_vec(),
        std::net::IpAddr::V6(v6) => v6.octets().to_vec(),
    })
}

async fn write_local(
    engine: &Rc<Engine>,
    state: &SchemaState,
    identity: &Identity,
    timestamp: i64,
) -> Result<(), BootError> {
    let table = system_table(state.schema(), "local")?;
    let text = |value: &str| Internal::Value(value.as_bytes().to_vec());
    let int = |value: i32| Internal::Value(value.to_be_bytes().to_vec());
    let columns = [
        ("broadcast_address", inet(identity.broadcast)),
        ("broadcast_port", int(identity.storage_port.into())),
        ("cluster_name", text(&identity.cluster_name)),
        ("cql_version", text(CQL_VERSION)),
        ("data_center", text(&identity.data_center)),
        ("gossip_generation", int(identity.generation)),
        ("host_id", Internal::Value(engine.host_id().to_vec())),
        ("listen_address", inet(identity.listen)),
        ("listen_port", int(identity.storage_port.into())),
        ("native_protocol_version", text(NATIVE_PROTOCOL_VERSION)),
        ("partitioner", text(PARTITIONER)),
        ("rack", text(&identity.rack)),
        ("release_version", text(&identity.release_version)),
        ("rpc_address", inet(identity.rpc.ip())),
        ("rpc_port", int(identity.rpc.port().into())),
        ("schema_version", Internal::Value(state.schema().version().to_vec())),
    ];
    let row = internal::insert(&table, &[b"local"], &[], &columns, &Times::new(timestamp));
    Ok(internal::apply(engine, row).await?)
}

/// Notes the schema's version in `system.local`, where drivers look for agreement.
///
/// # Errors
/// If it cannot be logged.
pub async fn write_schema_version(engine: &Rc<Engine>, schema: &Schema) -> Result<(), BootError> {
    let table = system_table(schema, "local")?;
    let timestamp = engine.env().unique_micros();
    let columns = [("schema_version", Internal::Value(schema.version().to_vec()))];
    let row = internal::insert(&table, &[b"local"], &[], &columns, &Times::new(timestamp));
    Ok(internal::apply(engine, row).await?)
}
