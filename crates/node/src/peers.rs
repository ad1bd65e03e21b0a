//! This node among others: its connections to them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use cluster::{Identity, Note, Shard};
use config::{Config, InternodeCapacity, InternodeEncryption};
use env::Task;
use messaging::{Capacity, Encryption, Settings};
use tls::Tls;
use types::Address;

use crate::context::Context;
use crate::error::NodeError;
use crate::key_stores::encrypts_by_place;
use crate::message::Message;

/// Settings of connections between nodes.
fn messaging_settings(config: &Config, identity: &Identity, tls: Option<&Tls>) -> Settings {
    let internode = &config.internode;
    let capacity = |of: InternodeCapacity| Capacity {
        connection: of.connection,
        endpoint: of.endpoint,
        global: of.global,
    };
    let local = Address::new(identity.broadcast, identity.storage_port);
    let listen = SocketAddr::new(identity.listen, identity.storage_port);
    Settings {
        max_message: internode.max_message,
        send: capacity(internode.send),
        receive: capacity(internode.receive),
        believes_clocks: internode.believes_clocks,
        encryption: tls.zip(config.server_tls.as_ref()).map(|(tls, wanted)| Encryption {
            tls: tls.clone(),
            is_optional: wanted.is_optional,
            is_offered: wanted.is_optional || wanted.encrypts != InternodeEncryption::None,
            // who shows no certificate cannot show one of its address
            verifies_address: wanted.verifies_address && wanted.stores.requires_client_auth,
            checks_plain_address: wanted.checks_plain_address && encrypts_by_place(wanted),
            listen: wanted.tls_port.map(|port| SocketAddr::new(identity.listen, port)),
        }),
        ..Settings::new(local, listen)
    }
}

/// Gives a shard its way to other nodes.
pub(crate) fn reach_peers(context: &Context, shard: &Shard, tls: Option<&Tls>) {
    let (mesh, journal) = (context.mesh.clone(), Rc::clone(&context.journal));
    shard.peers().reach(
        messaging_settings(&context.config, shard.identity(), tls),
        &context.registry,
        move |shard, job| mesh.send(shard, Message::Messaging(job)),
        move |Note { at, level, text, is_event }| match is_event {
            true => journal.say_at(at, level, text),
            false => journal.say_seldom_at(at, level, text),
        },
    );
}

/// Listens for other nodes on one shard.
pub(crate) struct PeerListeners {
    shard: Rc<Shard>,
    tasks: RefCell<Vec<Task<()>>>,
}

impl PeerListeners {
    pub fn new(shard: &Rc<Shard>) -> Self {
        Self { shard: Rc::clone(shard), tasks: RefCell::default() }
    }

    /// Listens, for as long as this is there.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn listen(&self) -> Result<(), NodeError> {
        let identity = self.shard.identity();
        let address = SocketAddr::new(identity.listen, identity.storage_port);
        let tasks = self.shard.listen_to_peers();
        let tasks = tasks.map_err(|source| NodeError::Listen { address, source })?;
        *self.tasks.borrow_mut() = tasks;
        Ok(())
    }
}
