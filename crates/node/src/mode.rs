//! Where the node stands between serving and having drained.

use std::cell::Cell;

use env::Env;
use env::sync::{Permit, Semaphore};

/// Of the whole node; the first shard's counts.
pub(crate) struct Mode {
    env: Env,
    is_draining: Cell<bool>,
    is_drained: Cell<bool>,
    /// Whoever drains the node, or starts or stops serving clients, holds it.
    changing: Semaphore,
}

impl Mode {
    pub fn new(env: &Env) -> Self {
        Self {
            env: env.clone(),
            is_draining: Cell::new(false),
            is_drained: Cell::new(false),
            changing: Semaphore::new(1),
        }
    }

    /// Waits until nobody else drains the node, or starts or stops serving clients.
    pub async fn turn(&self) -> Permit {
        self.changing.acquire(1).await
    }

    /// Its memtables are being written to SSTables, for good.
    pub fn set_draining(&self) {
        self.is_draining.set(true);
    }

    /// Nothing is left to drain.
    pub fn set_drained(&self) {
        self.is_drained.set(true);
    }

    /// Is everything in memory on disk, for good?
    pub fn is_drained(&self) -> bool {
        self.is_drained.get()
    }

    /// Is it being drained, or was it, or was it told to end?
    pub fn is_ending(&self) -> bool {
        self.is_draining.get() || self.env.is_terminated()
    }

    /// In Cassandra's words (`StorageService.Mode`).
    pub fn name(&self) -> &'static str {
        match (self.is_drained.get(), self.is_draining.get()) {
            (true, _) => "DRAINED",
            (false, true) => "DRAINING",
            (false, false) => "NORMAL",
        }
    }
}
