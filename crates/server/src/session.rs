//! What a connection is to the statements that come over it, and what each request carries.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use env::Instant;
use protocol::{Startup, Version};

use crate::settings::{MAX_CLIENT_OPTIONS, MAX_DRIVER_NAME};

/// A client's session: from its STARTUP to the end of its connection.
#[derive(Debug)]
pub struct Session {
    /// Number of the connection, unique on its shard.
    pub id: u64,
    /// Version of the protocol.
    pub version: Version,
    /// The client's address.
    pub remote: SocketAddr,
    /// `DRIVER_NAME` of STARTUP.
    pub driver_name: Option<Box<str>>,
    /// `DRIVER_VERSION` of STARTUP.
    pub driver_version: Option<Box<str>>,
    /// Options of STARTUP, as far as they are remembered.
    pub options: BTreeMap<String, String>,
    /// Does the client want errors rather than back-pressure (`THROW_ON_OVERLOAD`)?
    pub throw_on_overload: bool,
    /// Was the client told of shards before its STARTUP? Then its driver may be one that asks for
    /// metadata in words of its own; nothing in its STARTUP says so.
    pub is_shard_aware: bool,
    keyspace: RefCell<Option<Rc<str>>>,
    user: RefCell<Option<Rc<str>>>,
    use_warned: Cell<bool>,
}

impl Session {
    /// A session as its STARTUP opens it.
    pub fn new(
        id: u64,
        version: Version,
        remote: SocketAddr,
        is_shard_aware: bool,
        startup: &Startup<'_>,
    ) -> Self {
        let name = |key| {
            let value = startup.get(key)?;
            value.get(..value.floor_char_boundary(MAX_DRIVER_NAME)).map(Box::from)
        };
        Self {
            id,
            version,
            remote,
            driver_name: name(Startup::DRIVER_NAME),
            driver_version: name(Startup::DRIVER_VERSION),
            options: options(startup),
            throw_on_overload: startup.throw_on_overload(),
            is_shard_aware,
            keyspace: RefCell::default(),
            user: RefCell::default(),
            use_warned: Cell::new(false),
        }
    }

    /// The keyspace of the last USE.
    pub fn keyspace(&self) -> Option<Rc<str>> {
        self.keyspace.borrow().clone()
    }

    /// Has the client been warned of prepared statements that depend on the session's keyspace?
    /// From now on, yes.
    pub fn was_warned_of_use(&self) -> bool {
        self.use_warned.replace(true)
    }

    /// Sets the keyspace; the server does so when a statement's answer is `SetKeyspace`.
    pub fn set_keyspace(&self, keyspace: &str) {
        *self.keyspace.borrow_mut() = Some(keyspace.into());
    }

    /// Who the client is; none where nobody had to say.
    pub fn user(&self) -> Option<Rc<str>> {
        self.user.borrow().clone()
    }

    pub(crate) fn set_user(&self, user: Rc<str>) {
        *self.user.borrow_mut() = Some(user);
    }
}

/// The options of a STARTUP, cut where they are long or many.
fn options(startup: &Startup<'_>) -> BTreeMap<String, String> {
    let cut = |text: &str| {
        let end = text.floor_char_boundary(MAX_DRIVER_NAME);
        text.get(..end).unwrap_or_default().to_owned()
    };
    let options = startup.options().take(MAX_CLIENT_OPTIONS);
    options.map(|(key, value)| (cut(key), cut(value))).collect()
}

/// What one request carries from admission on.
#[derive(Clone, Debug)]
pub struct Context {
    /// The session that it came over.
    pub session: Rc<Session>,
    /// When its bytes were read.
    pub received: Instant,
    /// When its client stops waiting: what is not done by then need not be.
    pub deadline: Instant,
    /// Did the client ask for a trace?
    pub tracing: bool,
}
