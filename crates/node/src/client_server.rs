//! The native transport: whether clients are served, on each shard and on all.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cluster::{Shard, Standing};
use config::Config;
use env::{Class, Env, ListenOptions, Mesh, StreamHandle, TcpListener};
use metrics::Registry;
use server::{ConnectionLimits, EventHub, Server};
use storage::shards::{Remote, Stopping};
use tls::Tls;

use crate::adapter::Handler;
use crate::context::Context;
use crate::error::NodeError;
use crate::message::Message;
use crate::mode::Mode;
use crate::request_logs::RequestLogs;
use crate::settings::server_settings;

/// How long requests in flight may take when clients are served no more.
const DRAIN_PATIENCE: Duration = Duration::from_secs(10);

/// Serves clients on one shard; the first one has all start and stop.
pub(crate) struct ClientServer {
    env: Env,
    config: Arc<Config>,
    shard: Rc<Shard>,
    logs: Rc<RequestLogs>,
    others: Remote<ClientServer>,
    mesh: Mesh<Message>,
    mode: Rc<Mode>,
    hub: EventHub,
    registry: Rc<Registry>,
    /// Connections on all shards.
    limits: ConnectionLimits,
    tls: Option<Tls>,
    /// While clients are served.
    server: RefCell<Option<Rc<Server>>>,
}

impl ClientServer {
    /// Serves nobody yet. `hub` tells clients of changes.
    pub fn new(
        context: &Context,
        (shard, logs): (&Rc<Shard>, &Rc<RequestLogs>),
        others: Remote<Self>,
        mode: &Rc<Mode>,
        hub: EventHub,
        tls: Option<&Tls>,
    ) -> Rc<Self> {
        Rc::new(Self {
            env: context.env.clone(),
            config: Arc::clone(&context.config),
            shard: Rc::clone(shard),
            logs: Rc::clone(logs),
            others,
            mesh: context.mesh.clone(),
            mode: Rc::clone(mode),
            hub,
            registry: Rc::clone(&context.registry),
            limits: context.limits.clone(),
            tls: tls.cloned(),
            server: RefCell::default(),
        })
    }

    /// Are clients served on this shard?
    pub fn serves(&self) -> bool {
        self.server.borrow().is_some()
    }

    /// Asks the server of this shard, if it runs.
    pub fn ask<T: Default>(&self, ask: impl FnOnce(&Server) -> T) -> T {
        self.server.borrow().as_ref().map(|server| ask(server)).unwrap_or_default()
    }

    /// Asks the servers of all shards; nothing comes of one that does not run.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn ask_all<T: Default + Send + 'static>(
        &self,
        ask: impl Fn(&Server) -> T + Clone + Send + 'static,
    ) -> Result<Vec<T>, Stopping> {
        let mut all = Vec::with_capacity(self.others.count());
        for shard in 0..self.others.count() {
            let ask = ask.clone();
            all.push(self.others.call(shard, move |there| there.ask(ask)).await?);
        }
        Ok(all)
    }

    /// Takes a connection that another shard accepted.
    pub fn adopt(&self, handle: StreamHandle) {
        let server = self.server.borrow().clone();
        if let Some(server) = server {
            // a connection that is gone already needs no answer
            let _ = server.adopt(handle);
        }
    }

    /// Serves clients on all shards, unless the node drained; on the first shard.
    ///
    /// # Errors
    /// If the node lacks its data, the address cannot be listened on, or a shard ends first.
    pub async fn start(&self) -> Result<(), NodeError> {
        let _turn = self.mode.turn().await;
        if self.mode.is_drained() {
            return Ok(());
        }
        self.check_standing()?;
        // The first shard first: it finds out whether the port is free.
        for shard in 0..self.others.count() {
            let start = |there: Rc<Self>| async move { there.start_here() };
            self.others.call_async(shard, Class::Admin, start).await??;
        }
        self.tell_whether_clients_are_served(true);
        Ok(())
    }

    /// May clients be served by where the node stands in the ring (`CassandraDaemon`)? One that is
    /// in no ring passes on what it is asked.
    ///
    /// # Errors
    /// If not.
    pub fn check_standing(&self) -> Result<(), NodeError> {
        match self.shard.join().map(|join| join.standing()) {
            None | Some(Standing::Apart | Standing::Member) => Ok(()),
            Some(Standing::Surveying) if !self.config.auth.authenticates => Ok(()),
            Some(Standing::Surveying) => Err(NodeError::Surveying),
            Some(Standing::Joining | Standing::Broken) => Err(NodeError::NotBootstrapped),
        }
    }

    /// Stops serving clients on all shards; on the first shard.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn stop(&self, is_forced: bool) -> Result<(), NodeError> {
        let _turn = self.mode.turn().await;
        self.tell_whether_clients_are_served(false);
        Ok(self.stop_all(if is_forced { Duration::ZERO } else { DRAIN_PATIENCE }).await?)
    }

    /// Stops serving clients on all shards, for whoever has the turn to drain the node.
    ///
    /// # Errors
    /// If a shard ends first.
    pub async fn stop_for_good(&self) -> Result<(), Stopping> {
        self.stop_all(DRAIN_PATIENCE).await
    }

    /// Stops serving clients on this shard, as the node ends.
    pub async fn stop_here(&self) {
        self.stop_within(DRAIN_PATIENCE).await;
    }

    /// Serves clients on this shard, unless it does already.
    fn start_here(&self) -> Result<(), NodeError> {
        if self.serves() {
            return Ok(());
        }
        let mut settings = server_settings(&self.config)?;
        settings.tls = self.tls.clone();
        let address = settings.listen;
        let listen = |source| NodeError::Listen { address, source };
        if self.env.shard() == 0 && self.env.shards() > 1 {
            // The shards share their port, and would share it with another node too.
            let options = ListenOptions { reuse_port: false };
            drop(TcpListener::bind(&self.env, address, options).map_err(listen)?);
        }
        let mesh = self.mesh.clone();
        let hand_over: server::HandOver = Rc::new(move |shard, handle| {
            mesh.send(shard, Message::Connection(handle));
        });
        let server = Server::start(
            &self.env,
            settings,
            Rc::new(Handler { shard: Rc::clone(&self.shard), logs: Rc::clone(&self.logs) }),
            self.hub.clone(),
            &self.registry,
            self.limits.clone(),
            Some(hand_over),
        );
        *self.server.borrow_mut() = Some(Rc::new(server.map_err(listen)?));
        Ok(())
    }

    /// What runs on this shard has `patience` to end.
    async fn stop_within(&self, patience: Duration) {
        let server = self.server.borrow_mut().take();
        if let Some(server) = server {
            server.drain(patience).await;
        }
    }

    async fn stop_all(&self, patience: Duration) -> Result<(), Stopping> {
        let mut stopping = Vec::with_capacity(self.others.count());
        for shard in 0..self.others.count() {
            let others = self.others.clone();
            stopping.push(self.env.spawn_task(Class::Admin, async move {
                let stop = move |there: Rc<Self>| async move { there.stop_within(patience).await };
                others.call_async(shard, Class::Admin, stop).await
            }));
        }
        for stopped in stopping {
            stopped.await?;
        }
        Ok(())
    }

    fn tell_whether_clients_are_served(&self, they_are: bool) {
        if let Some(membership) = self.shard.membership() {
            membership.serves_clients(they_are);
        }
    }
}
