//! The clients of the node, who are told of changes.

use std::rc::Rc;

use protocol::Event;
use storage::shards::Remote;

/// Tells clients of changes.
pub(crate) struct Clients {
    others: Remote<Clients>,
    /// Tells those of this shard.
    publish: Box<dyn Fn(&Event)>,
}

impl Clients {
    pub fn new(others: Remote<Self>, publish: impl Fn(&Event) + 'static) -> Rc<Self> {
        Rc::new(Self { others, publish: Box::new(publish) })
    }

    /// Tells the clients of all shards.
    pub fn tell_all(&self, event: &Event) {
        let event = event.clone();
        self.others.send_to_all(move |other| (other.publish)(&event));
    }
}
