//! What a shard is told by the others, from its start to its end: each message goes to the layer
//! that it is for.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use env::sync::Notify;
use storage::shards::{Components, Job};

use crate::context::Context;
use crate::message::{Message, Opening};
use crate::node::Node;
use crate::race::first;

/// One shard's end of the mesh.
pub(crate) struct Inbox {
    context: Context,
    components: Components,
    /// The shard's part of the node, once that is open.
    node: OnceCell<Rc<Node>>,
    /// Jobs for components that came before these were there.
    early: RefCell<Vec<Job<Components>>>,
    opened: Notify,
    is_drained: Cell<bool>,
    drained: Notify,
}

impl Inbox {
    pub fn new(context: Context, components: Components) -> Rc<Self> {
        Rc::new(Self {
            context,
            components,
            node: OnceCell::new(),
            early: RefCell::default(),
            opened: Notify::new(),
            is_drained: Cell::new(false),
            drained: Notify::new(),
        })
    }

    /// What the shard has had from its start.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Hands on what comes, for as long as the shard runs.
    pub async fn run(self: Rc<Self>) {
        loop {
            let (_, message) = self.context.mesh.recv().await;
            match message {
                Message::Storage(job) => job(&self.context.engine),
                Message::Component(job) => match self.node.get() {
                    Some(_) => job(&self.components),
                    None => self.early.borrow_mut().push(job),
                },
                Message::Messaging(job) => {
                    let shard = self.node.get().map(|node| node.shard());
                    if let Some(messenger) = shard.and_then(|shard| shard.peers().messenger()) {
                        job(messenger);
                    }
                }
                Message::Connection(handle) => {
                    if let Some(node) = self.node.get() {
                        node.clients().adopt(handle);
                    }
                }
                Message::Opened(opening) => drop(self.open(&opening)),
                Message::Drained => {
                    self.is_drained.set(true);
                    self.drained.notify_all();
                }
            }
        }
    }

    /// Makes the shard's components, once.
    pub fn open(&self, opening: &Opening) -> Rc<Node> {
        let node = self.node.get_or_init(|| Node::new(&self.context, &self.components, opening));
        for job in self.early.take() {
            job(&self.components);
        }
        self.opened.notify_all();
        Rc::clone(node)
    }

    /// Waits until the node is open; not for one that is told to end before it is.
    pub async fn opened(&self) -> Option<Rc<Node>> {
        loop {
            if let Some(node) = self.node.get() {
                return Some(Rc::clone(node));
            }
            if self.context.env.is_terminated() {
                return None;
            }
            first(self.opened.notified(), self.context.env.terminated()).await;
        }
    }

    /// Waits until the node has drained.
    pub async fn drained(&self) {
        while !self.is_drained.get() {
            self.drained.notified().await;
        }
    }
}
