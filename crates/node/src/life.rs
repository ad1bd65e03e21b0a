//! A shard's life, from its start to its end.
//!
//! The first shard opens the node and tells the others; it drains the node when it is told to end,
//! and then lets them end too.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{ClockReserve, first_schema};
use config::Config;
use env::{Class, Env, Mesh, Task};
use logging::Threshold;
use metrics::{Level, Registry};
use server::ConnectionLimits;
use storage::shards::{Components, Shards};
use storage::{Engine, Replay};

use crate::context::Context;
use crate::directories::prepare_directories;
use crate::error::NodeError;
use crate::failure::{watch_disks, watch_log};
use crate::first_certificates::FirstCertificates;
use crate::first_superuser::prepare_roles;
use crate::guardrails::watch_writes;
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::log_files::Logs;
use crate::message::{Message, Opening};
use crate::node::Node;
use crate::notes::{aside_notes, notes_of};
use crate::operator_port::{admin_address, serve_operator};
use crate::prepared::load_statements;
use crate::settings::{metrics_address, server_settings, storage_options};
use crate::start_log::StartLog;

/// What is said where clients are not served.
pub const NOT_LISTENING: &str = "Not serving CQL clients: start_native_transport is false, the \
    node is stopping, or it lacks its data. nodetool info says how far it is with its bootstrap, \
    and nodetool enablebinary starts serving";

/// What the first shard tells when the node serves.
#[derive(Debug)]
pub struct Ready {
    /// Where clients connect.
    pub address: SocketAddr,
    /// What the commit log gave back.
    pub replay: Replay,
    /// By how much the clock stood behind the last timestamp reserved.
    pub clock_behind: Duration,
    /// Are clients served at `address` (`start_native_transport`)?
    pub serves_clients: bool,
    /// What the operator should know: a line each.
    pub notes: Vec<String>,
}

/// Runs one shard of a node whose log stays in memory: see [`run_logged_shard`].
///
/// # Errors
/// If the node cannot start, or not end in order.
pub async fn run_shard(
    env: Env,
    mesh: Mesh<Message>,
    config: Arc<Config>,
    limits: ConnectionLimits,
    ready: impl FnOnce(&Rc<Node>, &Ready),
) -> Result<(), NodeError> {
    run_logged_shard((env, mesh), config, limits, Logs::in_memory(), ready).await
}

/// Runs one shard of a node until it is told to end. `ready` is called on the first shard once it
/// serves.
///
/// # Errors
/// If the node cannot start, or not end in order.
pub async fn run_logged_shard(
    (env, mesh): (Env, Mesh<Message>),
    config: Arc<Config>,
    limits: ConnectionLimits,
    logs: Logs,
    ready: impl FnOnce(&Rc<Node>, &Ready),
) -> Result<(), NodeError> {
    let inbox = begin((&env, &mesh), config, limits, logs)?;
    env.spawn(Class::Statement, Rc::clone(&inbox).run());
    let result = match env.shard() {
        0 => {
            let result = run_first(&inbox, ready).await;
            // However it went: they wait for it.
            for shard in 1..env.shards() {
                mesh.send(shard, Message::Drained);
            }
            result
        }
        _ => run_other(&inbox).await,
    };
    if result.is_err() {
        env.terminate();
    }
    result
}

/// Looks at what a node looks at first when it starts with this configuration.
///
/// # Errors
/// What would stop that start.
pub fn check(config: &Config) -> Result<(), NodeError> {
    storage_options(config, None)?;
    server_settings(config)?;
    admin_address(config).map(drop)
}

/// Makes what a shard has before the node is open.
fn begin(
    (env, mesh): (&Env, &Mesh<Message>),
    config: Arc<Config>,
    limits: ConnectionLimits,
    logs: Logs,
) -> Result<Rc<Inbox>, NodeError> {
    let to_engines = mesh.clone();
    let shards = Shards::new(env, move |to, job| to_engines.send(to, Message::Storage(job)));
    let options = storage_options(&config, env.machine_memory())?;
    let engine = Engine::new(env, options, shards, first_schema(&config));
    let to_components = mesh.clone();
    let components =
        Components::new(env, move |to, job| to_components.send(to, Message::Component(job)));
    let start = Threshold::of(&config.lookup().word("log_level"));
    let journal = Journal::new(env, components.remote(), logs, start);
    components.add(&journal);
    let context = Context {
        env: env.clone(),
        config,
        registry: Rc::new(Registry::sharing(env.shard() as u32, engine.weight().clone())),
        engine,
        mesh: mesh.clone(),
        limits,
        journal,
        started: env.now(),
    };
    watch_log(&context, components.remote());
    if env.shard() == 0 {
        watch_writes(&context.engine, &context.journal, &context.config);
        watch_disks(&context, components.remote());
    }
    Ok(Inbox::new(context, components))
}

async fn run_first(inbox: &Inbox, ready: impl FnOnce(&Rc<Node>, &Ready)) -> Result<(), NodeError> {
    let Context { env, config, engine, mesh, journal, .. } = inbox.context();
    let address = server_settings(config)?.listen;
    admin_address(config)?;
    let start = StartLog::begin(env, journal, config);
    let _lock = prepare_directories(env, config).await?;
    let booted = cluster::boot(engine, config).await?;
    if !config.tables.compact_from_start {
        hold_compactions(engine);
    }
    start.opened(&booted.identity);
    let certificates = FirstCertificates::read(env, config).await?;
    let opening = Arc::new(Opening { identity: Arc::new(booted.identity), certificates });
    let node = inbox.open(&opening);
    node.shard().schema_owner().own(booted.state);
    let clock = Rc::new(booted.clock);
    let keeper = keep_clock(env, journal, &clock);
    node.encryption().keep(opening.certificates.clone());
    node.background().start();
    let mut notes = notes_of(config, &engine.schema());
    let _endpoint = serve_metrics(&node, inbox.context(), &mut notes)?;
    node.metrics().show_replay(&booted.replay);
    let operations = Rc::clone(node.operations());
    let _socket =
        admin::socket::serve(env, &config.data_dir, &inbox.context().registry, operations)?;
    let _port = serve_operator(&node, inbox.context())?;
    open_hints(config, &node).await?;
    node.peers().listen()?;
    for shard in 1..env.shards() {
        mesh.send(shard, Message::Opened(Arc::clone(&opening)));
    }
    hang_up(&node, inbox.context());
    start.joins(node.shard());
    let joined = node.ring_entry().join(booted.snitch, booted.saved).await?;
    start.joined(node.shard());
    let is_told_to_end = joined.is_none();
    // a ring of others has its roles
    if joined.is_some_and(|joined| joined.others == 0) {
        notes.extend(prepare_roles(env, config, node.shard()).await?);
    }
    let may_serve = node.clients().check_standing().is_ok();
    let serves_clients = config.native_transport.start && !is_told_to_end && may_serve;
    if serves_clients {
        load_statements(node.shard(), journal).await;
        node.clients().start().await?;
    }
    notes.extend(booted.replay.notes.iter().cloned());
    notes.extend(aside_notes(engine));
    let (replay, clock_behind) = (booted.replay, booted.clock_behind);
    let told = Ready { address, replay, clock_behind, serves_clients, notes };
    start.ended();
    say_ready(journal, &told, tls_policy(config));
    node.saved_caches().keep();
    ready(&node, &told);
    env.terminated().await;
    let drained = node.drain().drain().await;
    match keeper.cancel().await {
        // a disk that fails the one may fail the other: the first is why the node ends
        Some(lost) => Err(lost),
        None => {
            drained?;
            Ok(clock.close().await?)
        }
    }
}

async fn run_other(inbox: &Inbox) -> Result<(), NodeError> {
    let Some(node) = inbox.opened().await else { return Ok(()) };
    node.background().start();
    node.peers().listen()?;
    inbox.context().env.terminated().await;
    node.clients().stop_here().await;
    // The first shard still needs this one to drain.
    inbox.drained().await;
    Ok(())
}

/// Keeps the clock's reserve for as long as the node runs. Without it no timestamp is safe: the
/// node is told to end, and why.
fn keep_clock(env: &Env, journal: &Rc<Journal>, clock: &Rc<ClockReserve>) -> Task<NodeError> {
    let (node, journal, clock) = (env.clone(), Rc::clone(journal), Rc::clone(clock));
    env.spawn_task(Class::Background, async move {
        let lost = NodeError::ClockLost(clock.keep().await);
        journal.say(Level::Error, lost.to_string());
        node.terminate();
        lost
    })
}

/// Keeps tables from being compacted until the operator says `enableautocompaction`.
fn hold_compactions(engine: &Engine) {
    let Some(storage) = engine.node() else { return };
    for (id, _) in engine.stores() {
        storage.compactions().set_auto(id, false);
    }
}

/// Opens the hints of earlier runs.
async fn open_hints(config: &Config, node: &Node) -> Result<(), NodeError> {
    let path = config.hints_directory.clone();
    let opened = node.shard().handoff().open().await;
    opened.map_err(|source| NodeError::Directory { path, source })
}

/// Serves the node's metrics, if the configuration says so. A port that is taken ends the start
/// only where the operator asked for it.
fn serve_metrics(
    node: &Rc<Node>,
    context: &Context,
    notes: &mut Vec<String>,
) -> Result<Option<admin::http::Endpoint>, NodeError> {
    let Some((address, is_asked_for)) = metrics_address(&context.config)? else {
        return Ok(None);
    };
    let scrape = Rc::clone(node.scrape());
    let body = async move |page| scrape.page(page).await;
    match admin::http::serve(&context.env, address, &context.registry, body) {
        Ok(endpoint) => Ok(Some(endpoint)),
        Err(error) if is_asked_for => Err(error.into()),
        Err(error) => {
            notes.push(format!(
                "not serving metrics: {error}; set another metrics_address or metrics_port"
            ));
            Ok(None)
        }
    }
}

/// Looks at what other programs replaced whenever SIGHUP comes: the log's file, key stores. Not in
/// a simulated world, where it never does.
fn hang_up(node: &Rc<Node>, context: &Context) {
    let Context { env, journal, .. } = context;
    if !journal.is_written() {
        return;
    }
    let (node, journal) = (Rc::clone(node), Rc::clone(journal));
    let hearing = env.clone();
    env.spawn(Class::Admin, async move {
        loop {
            hearing.hung_up().await;
            journal.reopen();
            // why they cannot be used is said already
            let _ = node.encryption().look().await;
            let text = "SIGHUP: opened the log's file again, and looks at the key stores";
            journal.say(Level::Info, text.to_owned());
        }
    });
}

/// How clients connect, in Cassandra's words (`TlsEncryptionPolicy`).
fn tls_policy(config: &Config) -> &'static str {
    match config.client_tls.as_ref().map(|tls| tls.is_optional) {
        None => "unencrypted",
        Some(true) => "optionally encrypted",
        Some(false) => "encrypted",
    }
}

fn say_ready(journal: &Journal, ready: &Ready, tls: &str) {
    let Ready { address, replay, clock_behind, serves_clients, notes } = ready;
    let warn = |text: String| journal.say(Level::Warn, text);
    for (path, at) in &replay.damaged {
        let path = path.display();
        warn(format!(
            "commit log segment {path} is damaged from byte {at} on: ignored the rest, as \
             commitlog_ignore_replay_errors is true"
        ));
    }
    for path in &replay.missing {
        let path = path.display();
        warn(format!(
            "commit log segment {path} is missing: started without its writes, as \
             commitlog_ignore_replay_errors is true"
        ));
    }
    for (path, at) in &replay.torn {
        let path = path.display();
        warn(format!(
            "a crash cut off commit log segment {path} at byte {at}: replayed all before it, \
             nothing after it was durable"
        ));
    }
    notes.iter().for_each(|note| warn(note.clone()));
    if !clock_behind.is_zero() {
        warn(format!(
            "the clock is {clock_behind:?} behind the last timestamp of this node: timestamps stay \
             ahead of the clock until it catches up; check NTP"
        ));
    }
    // words that tools wait for (`PipelineConfigurator`, `CassandraDaemon`)
    let text = match serves_clients {
        true => format!("Starting listening for CQL clients on /{address} ({tls})..."),
        false => NOT_LISTENING.to_owned(),
    };
    journal.say(Level::Info, text);
    journal.say(Level::Info, "Startup complete".to_owned());
}
