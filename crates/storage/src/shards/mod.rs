//! Work handed from shard to shard.
//!
//! A job is a closure that runs on another shard's context; a call is a job whose result comes
//! back. Jobs travel over `env`'s mesh, in one batch per loop turn; those of one shard to another
//! arrive in order.

mod components;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use env::sync::{OneshotSender, oneshot};
use env::{Class, Env};
use thiserror::Error;
use types::hash::HashMap;

pub use components::{Components, Remote};

/// Work for the shard whose context is `C`.
pub type Job<C> = Box<dyn FnOnce(&C) + Send>;

/// The called shard ended before it answered.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the node is stopping")]
pub struct Stopping;

/// One shard's way to the others (and to itself), for jobs on a context `C`.
pub struct Shards<C: 'static> {
    env: Env,
    send: Box<dyn Fn(usize, Job<C>)>,
    next_call: Cell<u64>,
    /// The callers that wait: each box holds a `OneshotSender` of the call's result.
    waiting: RefCell<HashMap<u64, Box<dyn Any>>>,
}

/// A context that knows its shard's [`Shards`].
pub trait OnShard: Clone + Sized + 'static {
    /// The way to the other shards.
    fn shards(&self) -> &Shards<Self>;
}

/// What a shard has once, and its other shards reach through [`Shards`].
pub trait HasShards: Sized + 'static {
    /// The way to the other shards.
    fn shards(&self) -> &Shards<Rc<Self>>;
}

impl<T: HasShards> OnShard for Rc<T> {
    fn shards(&self) -> &Shards<Self> {
        T::shards(self)
    }
}

impl<C: OnShard> Shards<C> {
    /// Over a way to send: in production the mesh, wrapped in the message type of the whole node.
    pub fn new(env: &Env, send: impl Fn(usize, Job<C>) + 'static) -> Self {
        Self {
            env: env.clone(),
            send: Box::new(send),
            next_call: Cell::new(0),
            waiting: RefCell::default(),
        }
    }

    /// Number of shards.
    pub fn count(&self) -> usize {
        self.env.shards()
    }

    /// This shard.
    pub fn me(&self) -> usize {
        self.env.shard()
    }

    /// Runs `job` on a shard without waiting for it.
    pub fn send(&self, shard: usize, job: impl FnOnce(&C) + Send + 'static) {
        (self.send)(shard, Box::new(job));
    }

    /// Runs `f` on a shard, as soon as it gets there, and waits for its result.
    ///
    /// # Errors
    /// If the shard ends first.
    pub async fn call<T: Send + 'static>(
        &self,
        shard: usize,
        f: impl FnOnce(&C) -> T + Send + 'static,
    ) -> Result<T, Stopping> {
        let (id, result) = self.register::<T>();
        let origin = self.me();
        self.send(shard, move |context| reply(context, origin, id, f(context)));
        result.await.map_err(|_| Stopping)
    }

    /// Runs the future that `f` makes on a shard, as a task of a class, and waits for its result.
    ///
    /// # Errors
    /// If the shard ends first.
    pub async fn call_async<T, F, Fut>(
        &self,
        shard: usize,
        class: Class,
        f: F,
    ) -> Result<T, Stopping>
    where
        T: Send + 'static,
        F: FnOnce(C) -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
    {
        let (id, result) = self.register::<T>();
        let origin = self.me();
        self.send(shard, move |context: &C| {
            let future = f(context.clone());
            let context = context.clone();
            let env = context.shards().env.clone();
            env.spawn(class, async move {
                let value = future.await;
                reply(&context, origin, id, value);
            });
        });
        result.await.map_err(|_| Stopping)
    }

    fn register<T: 'static>(&self) -> (u64, env::sync::OneshotReceiver<T>) {
        let id = self.next_call.get();
        self.next_call.set(id + 1);
        let (sender, receiver) = oneshot::<T>();
        self.waiting.borrow_mut().insert(id, Box::new(sender));
        (id, receiver)
    }

    fn answer<T: 'static>(&self, id: u64, value: T) {
        // The caller of one that is lost would wait for ever.
        let sender = self.waiting.borrow_mut().remove(&id).expect("a call is answered once");
        let sender = sender.downcast::<OneshotSender<T>>();
        let sender = sender.expect("a call is answered with what it asks for");
        // A caller that gave up does not want the answer.
        let _ = sender.send(value);
    }
}

fn reply<C: OnShard, T: Send + 'static>(context: &C, origin: usize, id: u64, value: T) {
    context.shards().send(origin, move |context: &C| context.shards().answer(id, value));
}

impl<C> std::fmt::Debug for Shards<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shards({}/{})", self.env.shard(), self.env.shards())
    }
}
