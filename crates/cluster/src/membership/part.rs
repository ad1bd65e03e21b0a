//! Whether this node takes part in gossip, as the operator will have it, and by whom it begins
//! (`StorageService.stopGossiping`, `startGossiping`, `Gossiper.reloadSeeds`).

use std::collections::BTreeSet;
use std::rc::Rc;

use gossip::{AppState, Event};
use metrics::Level;
use types::Address;

use super::Membership;

const MICROS: i64 = 1_000_000;

impl Membership {
    /// Where other nodes reach this one.
    pub fn local(&self) -> Address {
        self.messenger.settings().local
    }

    /// Tells the others that this node stops, and is silent from then on.
    pub fn stop_gossip(self: &Rc<Self>) {
        if self.is_running() {
            // as grave as in Cassandra
            self.note(Level::Warn, "Stopping gossip by operator request".to_owned());
            self.step(Event::Stop);
        }
    }

    /// Takes part again, as a node that started anew.
    pub fn start_gossip(self: &Rc<Self>) {
        if self.is_running() {
            return;
        }
        self.note(Level::Warn, "Starting gossip by operator request".to_owned());
        let before = self.gossiper.borrow().local().heartbeat.generation;
        let now = i32::try_from(self.env.unix_micros() / MICROS).unwrap_or(i32::MAX);
        let mut states = self.place.borrow().states();
        // Cassandra leaves that at false, and its clients without this node
        states.push((AppState::RPC_READY, self.serves_clients.get().to_string()));
        let generation = now.max(before.saturating_add(1));
        self.step(Event::Start { generation, states });
    }

    /// Begins by other seeds; by those that there are, if all are this node. Those that are not
    /// this node.
    pub fn set_seeds(self: &Rc<Self>, seeds: BTreeSet<Address>) -> BTreeSet<Address> {
        let local = self.messenger.settings().local;
        if seeds.iter().any(|seed| *seed != local) {
            self.step(Event::Seeds(seeds));
        }
        self.seeds()
    }
}
