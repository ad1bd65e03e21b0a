//! Events to the clients that registered for them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use protocol::{Event, EventType, Version, response};

use crate::output::EncodedEvent;
use crate::shard::connection::Connection;

/// The registrations of one shard. Whoever has an event publishes it on the hub of every shard.
#[derive(Clone, Debug, Default)]
pub struct EventHub(Rc<RefCell<BTreeMap<u64, Registration>>>);

#[derive(Debug)]
struct Registration {
    connection: Weak<Connection>,
    version: Version,
    /// A bit for each [`EventType`].
    types: u8,
}

fn bit(event: EventType) -> u8 {
    1 << event as u8
}

impl EventHub {
    /// A hub without registrations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Connections that are registered for something.
    pub fn registrations(&self) -> usize {
        self.0.borrow().len()
    }

    /// Sends an event to the connections of this shard that registered for its type, in the form
    /// of their version. It leaves at the end of the turn, behind the responses queued by then.
    pub fn publish(&self, event: &Event) {
        let wanted = bit(event.event_type());
        let mut encoded: [Option<EncodedEvent>; Version::ALL.len()] = Default::default();
        let registered: Vec<_> = {
            let registrations = self.0.borrow();
            let wanting = registrations.values().filter(|it| it.types & wanted != 0);
            wanting.filter_map(|it| Some((it.version, it.connection.upgrade()?))).collect()
        };
        for (version, connection) in registered {
            let index = usize::from(version.number() - Version::V3.number());
            let Some(known) = encoded.get_mut(index) else { continue };
            let bytes = known.get_or_insert_with(|| {
                let mut out = Vec::new();
                response::event(&mut out, version, event);
                out.into()
            });
            connection.event(Rc::clone(bytes));
        }
    }

    pub(crate) fn register(
        &self,
        connection: &Rc<Connection>,
        version: Version,
        events: impl Iterator<Item = EventType>,
    ) {
        let types = events.fold(0, |types, event| types | bit(event));
        let mut registrations = self.0.borrow_mut();
        let registration = registrations.entry(connection.id).or_insert_with(|| Registration {
            connection: Rc::downgrade(connection),
            version,
            types: 0,
        });
        registration.types |= types;
    }

    pub(crate) fn forget(&self, id: u64) {
        self.0.borrow_mut().remove(&id);
    }
}
