//! What a shard has from its start, before it knows which node it is of.

use std::rc::Rc;
use std::sync::Arc;

use config::Config;
use env::{Env, Instant, Mesh};
use metrics::Registry;
use server::ConnectionLimits;
use storage::Engine;

use crate::journal::Journal;
use crate::message::Message;

/// What the components of a shard are made of. None of them holds it.
pub(crate) struct Context {
    pub env: Env,
    pub config: Arc<Config>,
    pub engine: Rc<Engine>,
    pub registry: Rc<Registry>,
    pub mesh: Mesh<Message>,
    /// Connections of clients, on all shards.
    pub limits: ConnectionLimits,
    pub journal: Rc<Journal>,
    pub started: Instant,
}
