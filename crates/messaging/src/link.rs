//! A connection to another node, and what waits to be sent over it. Its task is in `outbound`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use env::sync::Notify;
use internode::{Connection, Outgoing};
use types::Address;

/// One of the connections to a node.
#[derive(Debug)]
pub(crate) struct Link {
    pub to: Address,
    pub outgoing: RefCell<Outgoing>,
    /// Something waits to be sent.
    pub work: Notify,
    /// Nobody needs it any more.
    pub is_over: Cell<bool>,
    /// Rings for a connection that leads nowhere any more.
    pub broken: Notify,
    /// Why it last did not come about, if it did not since.
    pub failure: RefCell<Option<Ended>>,
}

/// Why a connection ended or did not come about.
pub(crate) type Ended = String;

impl Link {
    pub fn new(to: Address, outgoing: Outgoing) -> Rc<Self> {
        Rc::new(Self {
            to,
            outgoing: RefCell::new(outgoing),
            work: Notify::new(),
            is_over: Cell::new(false),
            broken: Notify::new(),
            failure: RefCell::default(),
        })
    }

    /// Why it last did not come about, if it did not since.
    pub fn failure(&self) -> Option<Ended> {
        self.failure.borrow().clone()
    }

    /// What it is for.
    pub fn connection(&self) -> Connection {
        self.outgoing.borrow().connection()
    }

    /// Does nothing wait to be sent over it?
    pub fn is_idle(&self) -> bool {
        self.outgoing.borrow().waiting() == 0
    }

    /// Nobody needs it any more: its task ends.
    pub fn end(&self) {
        self.is_over.set(true);
        self.work.notify_one();
    }

    /// Its connection, if there is one, leads nowhere any more: the next message goes over another.
    pub fn interrupt(&self) {
        self.broken.notify_all();
    }
}
