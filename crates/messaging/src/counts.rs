//! How many messages were sent, came and were too late, by connection and by verb
//! (`MessagingServiceMBean`, `metrics.MessagingMetrics`): what `netstats` and `tpstats` print.

use std::cell::Cell;

use internode::{Connection, Verb};

/// Connections that carry messages.
const CONNECTIONS: usize = 3;

/// Messages to other nodes over one kind of connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Waiting.
    pub pending: u64,
    /// Sent.
    pub completed: u64,
    /// That waited too long, or found too many waiting.
    pub dropped: u64,
}

/// Messages of one verb that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// All of them.
    pub received: u64,
    /// Too late to be of use.
    pub dropped: u64,
}

/// What a shard counts.
#[derive(Debug)]
pub(crate) struct Counts {
    sent: [Cell<Sent>; CONNECTIONS],
    came: Vec<Cell<Came>>,
}

impl Counts {
    pub fn new() -> Self {
        let last = Verb::ALL.iter().map(|verb| verb.number()).max().unwrap_or(0);
        Self { sent: Default::default(), came: vec![Cell::default(); usize::from(last) + 1] }
    }

    fn change(&self, connection: Connection, change: impl FnOnce(&mut Sent)) {
        if let Some(cell) = self.sent.get(usize::from(connection.number()) - 1) {
            let mut sent = cell.get();
            change(&mut sent);
            cell.set(sent);
        }
    }

    pub fn completed(&self, connection: Connection) {
        self.change(connection, |sent| sent.completed += 1);
    }

    pub fn dropped(&self, connection: Connection) {
        self.change(connection, |sent| sent.dropped += 1);
    }

    /// Messages that were sent over a kind of connection, without those that wait.
    pub fn sent(&self, connection: Connection) -> Sent {
        let cell = self.sent.get(usize::from(connection.number()) - 1);
        cell.map(Cell::get).unwrap_or_default()
    }

    pub fn received(&self, verb: Verb, is_late: bool) {
        if let Some(cell) = self.came.get(usize::from(verb.number())) {
            let Came { received, dropped } = cell.get();
            cell.set(Came { received: received + 1, dropped: dropped + u64::from(is_late) });
        }
    }

    pub fn came(&self, verb: Verb) -> Came {
        self.came.get(usize::from(verb.number())).map(Cell::get).unwrap_or_default()
    }
}
