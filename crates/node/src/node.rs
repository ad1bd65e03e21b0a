//! One shard of a node, composed: its components, made and joined together.

use std::rc::Rc;
use std::sync::Arc;

use cluster::Shard;
use config::Config;
use env::{Class, Env, Instant};
use metrics::Level;
use server::EventHub;
use storage::Engine;
use storage::shards::{Components, Remote, Stopping};

use crate::background::Background;
use crate::caches::Caches;
use crate::client_server::ClientServer;
use crate::context::Context;
use crate::drain::Drain;
use crate::encryption::{Encryption, FirstCertificates};
use crate::error::NodeError;
use crate::failure::Failures;
use crate::journal::Journal;
use crate::key_stores::Of;
use crate::message::Opening;
use crate::metrics_view::MetricsView;
use crate::mode::Mode;
use crate::peers::{PeerListeners, reach_peers};
use crate::ring_entry::RingEntry;
use crate::saved_caches::SavedCaches;

/// One shard of a node.
pub struct Node {
    env: Env,
    config: Arc<Config>,
    shard: Rc<Shard>,
    others: Remote<Node>,
    journal: Rc<Journal>,
    pub(crate) started: Instant,
    pub(crate) mode: Rc<Mode>,
    encryption: Rc<Encryption>,
    clients: Rc<ClientServer>,
    metrics: Rc<MetricsView>,
    pub(crate) caches: Rc<Caches>,
    pub(crate) saved_caches: Rc<SavedCaches>,
    peers: PeerListeners,
    pub(crate) ring_entry: Rc<RingEntry>,
    drain: Rc<Drain>,
    background: Rc<Background>,
}

impl Node {
    pub(crate) fn new(context: &Context, components: &Components, opening: &Opening) -> Rc<Self> {
        let Context { env, config, engine, registry, journal, .. } = context;
        let (hub, identity) = (EventHub::new(), Arc::clone(&opening.identity));
        let events = hub.clone();
        let publish = move |event: &protocol::Event| events.publish(event);
        let shard = Shard::new(engine, Arc::clone(config), identity, components, registry, publish);
        let first = &opening.certificates;
        let encryption =
            Encryption::new(env, config, components.remote(), journal, first, registry);
        reach_peers(context, &shard, encryption.of(Of::Nodes));
        let mode = Rc::new(Mode::new(env));
        let tls = encryption.of(Of::Clients);
        let clients = ClientServer::new(context, (&shard, components.remote()), &mode, hub, tls);
        let failures = Failures::new(env, journal, &clients);
        let metrics = MetricsView::new(context, &shard, components.remote());
        let caches = Caches::new(engine, components.remote());
        let saved_caches = SavedCaches::new(context, &shard, &mode);
        components.add(&encryption);
        components.add(&clients);
        components.add(&failures);
        components.add(&metrics);
        components.add(&caches);
        let node = Rc::new(Self {
            env: env.clone(),
            config: Arc::clone(config),
            others: components.remote(),
            journal: Rc::clone(journal),
            started: context.started,
            drain: Rc::new(Drain::new(&shard, &mode, &clients, &saved_caches)),
            background: Background::new(context, &shard, &metrics, &caches),
            peers: PeerListeners::new(&shard),
            ring_entry: RingEntry::new(context, &shard),
            shard,
            mode,
            encryption,
            clients,
            metrics,
            caches,
            saved_caches,
        });
        components.add(&node);
        node.show_views(&node.shard);
        node
    }

    /// This shard's engine.
    pub fn engine(&self) -> &Rc<Engine> {
        self.shard.engine()
    }

    /// Its components below, which know the data and the other nodes.
    pub fn shard(&self) -> &Rc<Shard> {
        &self.shard
    }

    /// The outside.
    pub fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn config(&self) -> &Arc<Config> {
        &self.config
    }

    pub(crate) fn journal(&self) -> &Rc<Journal> {
        &self.journal
    }

    pub(crate) fn shards(&self) -> &Remote<Self> {
        &self.others
    }

    pub(crate) fn clients(&self) -> &Rc<ClientServer> {
        &self.clients
    }

    pub(crate) fn metrics(&self) -> &Rc<MetricsView> {
        &self.metrics
    }

    pub(crate) fn peers(&self) -> &PeerListeners {
        &self.peers
    }

    pub(crate) fn drain(&self) -> &Rc<Drain> {
        &self.drain
    }

    /// Begins what it does by itself.
    pub(crate) fn start_background(self: &Rc<Self>) {
        self.background.start();
        if self.env.shard() == 0 {
            self.env.spawn(Class::Background, Rc::clone(self).expire_snapshots());
            self.env.spawn(Class::Background, Rc::clone(self).watch_disk());
        }
    }

    /// Looks at the key stores from now on, which held `first`; on the first shard.
    pub(crate) fn keep_key_stores(&self, first: FirstCertificates) {
        self.encryption.keep(first);
    }

    /// Runs `f` on a shard of the node.
    pub(crate) async fn on_shard<T: Send + 'static>(
        &self,
        shard: usize,
        f: impl FnOnce(&Rc<Self>) -> T + Send + 'static,
    ) -> Result<T, Stopping> {
        self.others.call(shard, f).await
    }

    /// Prepares what was prepared before the node ended. What cannot be read is prepared again by
    /// those who need it.
    pub(crate) async fn load_statements(&self) {
        let began = self.env.now();
        match self.shard.statements().load().await {
            Ok(0) => {}
            Ok(count) => {
                let took = (self.env.now() - began).as_millis();
                let text = format!("Preloaded {count} prepared statements in {took} ms");
                self.journal.say(Level::Info, text);
            }
            Err(error) => {
                let text = format!(
                    "cannot read system.prepared_statements, drivers prepare their statements \
                     again: {}",
                    error.message
                );
                self.journal.say(Level::Warn, text);
            }
        }
    }

    /// Opens the hints of earlier runs; on the first shard.
    pub(crate) async fn open_hints(&self) -> Result<(), NodeError> {
        let path = self.config.hints_directory.clone();
        let opened = self.shard.handoff().open().await;
        opened.map_err(|source| NodeError::Directory { path, source })
    }

    /// Says something for the operator.
    pub(crate) fn say(&self, level: Level, message: String) {
        self.journal.say(level, message);
    }
}
