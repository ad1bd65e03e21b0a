//! One shard of a node, composed: its components, made and joined together.
//!
//! `Node::new` makes the components from the bottom up, above those of `cluster::Shard`: a
//! component knows those that were made before it. It reaches itself on another shard through
//! `storage::shards::Remote`.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use admin::Reply;
use cluster::Shard;
use env::Env;
use server::EventHub;
use storage::Engine;
use storage::shards::Components;

use crate::background::Background;
use crate::caches::Caches;
use crate::client_server::ClientServer;
use crate::context::Context;
use crate::drain::Drain;
use crate::encryption::Encryption;
use crate::examination::Examine;
use crate::failure::Failures;
use crate::guardrails::NodeGuardrails;
use crate::key_stores::Of;
use crate::message::Opening;
use crate::metrics_view::MetricsView;
use crate::mode::Mode;
use crate::operator::Operations;
use crate::peers::{PeerListeners, reach_peers};
use crate::pools::Pools;
use crate::request_logs::RequestLogs;
use crate::ring_entry::RingEntry;
use crate::samplings::Samplings;
use crate::saved_caches::SavedCaches;
use crate::scrape::Scrape;
use crate::snapshots::TableSnapshots;
use crate::upkeep::Upkeep;
use crate::views::SystemViews;

/// One shard of a node that is open, for whoever runs it. No component has this.
pub struct Node {
    shard: Rc<Shard>,
    encryption: Rc<Encryption>,
    clients: Rc<ClientServer>,
    metrics: Rc<MetricsView>,
    scrape: Rc<Scrape>,
    peers: PeerListeners,
    ring_entry: Rc<RingEntry>,
    saved_caches: Rc<SavedCaches>,
    drain: Rc<Drain>,
    background: Rc<Background>,
    operations: Rc<Operations>,
    /// The virtual tables hold it by a weak handle.
    _views: Rc<SystemViews>,
}

impl Node {
    /// Makes a shard's components, and adds those that are reached from other shards.
    pub(crate) fn new(context: &Context, components: &Components, opening: &Opening) -> Rc<Self> {
        let Context { env, config, engine, registry, journal, .. } = context;
        let hub = EventHub::new();
        let (events, identity) = (hub.clone(), Arc::clone(&opening.identity));
        let publish = move |event: &protocol::Event| events.publish(event);
        let shard = Shard::new(engine, Arc::clone(config), identity, components, registry, publish);
        let encryption = Encryption::new(context, components.remote(), &opening.certificates);
        reach_peers(context, &shard, encryption.of(Of::Nodes));
        let mode = Rc::new(Mode::new(env));
        let tls = encryption.of(Of::Clients);
        let request_logs = RequestLogs::new(context, &shard, components.remote());
        let served = (&shard, &request_logs);
        let clients = ClientServer::new(context, served, components.remote(), &mode, hub, tls);
        let failures = Failures::new(env, journal, &clients);
        let metrics = MetricsView::new(context, &shard, components.remote());
        let caches = Caches::new(engine, components.remote());
        let pools = Pools::new(&shard, &clients, &metrics);
        let scrape = Scrape::new(context, &shard, (&metrics, &pools));
        let saved_caches = SavedCaches::new(context, &shard, &mode);
        let drain = Rc::new(Drain::new((&shard, journal), &mode, &clients, &saved_caches));
        let snapshots = TableSnapshots::new(context, &shard);
        let guardrails = NodeGuardrails::new(context, &shard);
        let ring_entry = RingEntry::new(context, &shard);
        let shown = ((&metrics, &caches), (&pools, &snapshots));
        let views = SystemViews::show(context, (&shard, &clients), shown.0, shown.1);
        components.add(&encryption);
        components.add(&clients);
        components.add(&request_logs);
        components.add(&failures);
        components.add(&metrics);
        components.add(&caches);
        let background =
            Background::new(context, &shard, (&metrics, &caches), (&snapshots, &guardrails));
        let operations = Rc::new(Operations {
            env: env.clone(),
            config: Arc::clone(config),
            started: context.started,
            shard: Rc::clone(&shard),
            journal: Rc::clone(journal),
            request_logs,
            mode,
            drain: Rc::clone(&drain),
            clients: Rc::clone(&clients),
            encryption: Rc::clone(&encryption),
            metrics: Rc::clone(&metrics),
            pools,
            caches,
            saved_caches: Rc::clone(&saved_caches),
            guardrails,
            upkeep: Upkeep::new(&shard, journal, &snapshots),
            samplings: Samplings::new(&shard, journal),
            examine: OnceCell::new(),
            snapshots,
            ring_entry: Rc::clone(&ring_entry),
        });
        Rc::new(Self {
            peers: PeerListeners::new(&shard),
            shard,
            encryption,
            clients,
            metrics,
            scrape,
            ring_entry,
            saved_caches,
            drain,
            background,
            operations,
            _views: views,
        })
    }

    /// The outside.
    pub fn env(&self) -> &Env {
        self.shard.engine().env()
    }

    /// This shard's engine.
    pub fn engine(&self) -> &Rc<Engine> {
        self.shard.engine()
    }

    /// The components below, which know the data and the other nodes.
    pub fn shard(&self) -> &Rc<Shard> {
        &self.shard
    }

    /// What the node answers to a verb of nodetool, as it does at its socket; on the first shard.
    pub async fn carry_out(&self, verb: admin::Verb) -> Reply {
        let outcome = self.outcome(verb.clone()).await;
        Reply::text(&verb, &outcome).unwrap_or_else(|e| Reply {
            out: String::new(),
            err: format!("error: {e}\n"),
            exit: 2,
        })
    }

    /// The value that the node answers to a verb with; on the first shard.
    pub async fn outcome(&self, verb: admin::Verb) -> admin::Outcome {
        admin::ask(self.env(), &*self.operations, verb).await
    }

    /// What is offered to who wants TLS.
    pub(crate) fn encryption(&self) -> &Rc<Encryption> {
        &self.encryption
    }

    /// The native transport.
    pub(crate) fn clients(&self) -> &Rc<ClientServer> {
        &self.clients
    }

    /// What the layers count.
    pub(crate) fn metrics(&self) -> &Rc<MetricsView> {
        &self.metrics
    }

    /// What Prometheus asks.
    pub(crate) fn scrape(&self) -> &Rc<Scrape> {
        &self.scrape
    }

    /// What listens for other nodes.
    pub(crate) fn peers(&self) -> &PeerListeners {
        &self.peers
    }

    /// Its way into the ring.
    pub(crate) fn ring_entry(&self) -> &Rc<RingEntry> {
        &self.ring_entry
    }

    /// What keeps caches over a restart.
    pub(crate) fn saved_caches(&self) -> &Rc<SavedCaches> {
        &self.saved_caches
    }

    /// What empties the node.
    pub(crate) fn drain(&self) -> &Rc<Drain> {
        &self.drain
    }

    /// What it does by itself.
    pub(crate) fn background(&self) -> &Rc<Background> {
        &self.background
    }

    /// Has `nodetool doctor` look at the machine so. For the first shard, once.
    pub fn examine_by(&self, examine: Examine) {
        let _ = self.operations.examine.set(examine);
    }

    /// What the operator asks.
    pub(crate) fn operations(&self) -> &Rc<Operations> {
        &self.operations
    }
}
