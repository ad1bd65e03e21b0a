//! How the node comes to have everything on disk: by `nodetool drain`, and when it ends.

use std::rc::Rc;

use cluster::Shard;
use metrics::Level;

use crate::client_server::ClientServer;
use crate::error::NodeError;
use crate::journal::Journal;
use crate::mode::Mode;
use crate::saved_caches::SavedCaches;

/// On the first shard.
pub(crate) struct Drain {
    shard: Rc<Shard>,
    journal: Rc<Journal>,
    mode: Rc<Mode>,
    clients: Rc<ClientServer>,
    saved_caches: Rc<SavedCaches>,
}

impl Drain {
    pub fn new(
        (shard, journal): (&Rc<Shard>, &Rc<Journal>),
        mode: &Rc<Mode>,
        clients: &Rc<ClientServer>,
        saved_caches: &Rc<SavedCaches>,
    ) -> Self {
        Self {
            shard: Rc::clone(shard),
            journal: Rc::clone(journal),
            mode: Rc::clone(mode),
            clients: Rc::clone(clients),
            saved_caches: Rc::clone(saved_caches),
        }
    }

    /// Stops serving clients and writes everything to SSTables; again, it does nothing.
    ///
    /// # Errors
    /// If a memtable cannot be written, or a shard ends first.
    pub async fn drain(&self) -> Result<(), NodeError> {
        let _turn = self.mode.turn().await;
        if self.mode.is_drained() {
            return Ok(());
        }
        self.mode.set_draining();
        // words that tools wait for (`StorageService.drain`)
        self.journal.say(Level::Info, "DRAINING: starting drain process".to_owned());
        self.clients.stop_for_good().await?;
        if let Some(membership) = self.shard.membership().cloned() {
            membership.leave().await;
        }
        self.shard.handoff().close().await;
        if let Some(node) = self.shard.engine().node() {
            node.drain().await?;
        }
        self.saved_caches.save_all().await;
        self.mode.set_drained();
        self.journal.say(Level::Info, "DRAINED".to_owned());
        Ok(())
    }
}
