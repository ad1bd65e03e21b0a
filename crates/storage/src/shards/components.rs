//! What a shard consists of, each part to be reached by its own kind on the other shards: a
//! component holds a [`Remote`] to itself elsewhere, and so needs to know nothing of the whole.

use std::any::{Any, TypeId, type_name};
use std::cell::RefCell;
use std::future::Future;
use std::marker::PhantomData;
use std::rc::Rc;

use env::{Class, Env};
use types::hash::HashMap;

use super::{Job, OnShard, Shards, Stopping};

/// The components of one shard. Whoever runs the shard's jobs owns it; a component has a [`Remote`]
/// at most.
#[derive(Clone)]
pub struct Components {
    shards: Rc<Shards<Components>>,
    by_type: Rc<RefCell<HashMap<TypeId, Rc<dyn Any>>>>,
}

impl OnShard for Components {
    fn shards(&self) -> &Shards<Self> {
        &self.shards
    }
}

impl Components {
    /// None yet. `send` hands a job to another shard.
    pub fn new(env: &Env, send: impl Fn(usize, Job<Self>) + 'static) -> Self {
        Self { shards: Rc::new(Shards::new(env, send)), by_type: Rc::default() }
    }

    /// Adds a component, of which a shard has one. Every shard adds the same ones before it runs
    /// the first job.
    pub fn add<P: 'static>(&self, component: &Rc<P>) {
        let before = self.by_type.borrow_mut().insert(TypeId::of::<P>(), Rc::clone(component) as _);
        assert!(before.is_none(), "a shard has one {}", type_name::<P>());
    }

    /// The way to the components of a type.
    pub fn remote<P: 'static>(&self) -> Remote<P> {
        Remote { shards: Rc::clone(&self.shards), of: PhantomData }
    }

    fn get<P: 'static>(&self) -> Rc<P> {
        let component = self.by_type.borrow().get(&TypeId::of::<P>()).cloned();
        let component = component.and_then(|component| component.downcast().ok());
        component.unwrap_or_else(|| panic!("every shard has one {}", type_name::<P>()))
    }
}

impl std::fmt::Debug for Components {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Components").field(&self.shards).finish()
    }
}

/// The components of a type: one a shard.
pub struct Remote<P> {
    shards: Rc<Shards<Components>>,
    of: PhantomData<fn() -> P>,
}

impl<P> Clone for Remote<P> {
    fn clone(&self) -> Self {
        Self { shards: Rc::clone(&self.shards), of: PhantomData }
    }
}

impl<P: 'static> Remote<P> {
    /// Number of shards.
    pub fn count(&self) -> usize {
        self.shards.count()
    }

    /// This shard.
    pub fn me(&self) -> usize {
        self.shards.me()
    }

    /// Runs `job` on a shard without waiting for it.
    pub fn send(&self, shard: usize, job: impl FnOnce(&Rc<P>) + Send + 'static) {
        self.shards.send(shard, move |components: &Components| job(&components.get()));
    }

    /// Runs `job` on every shard without waiting for it.
    pub fn send_to_all(&self, job: impl Fn(&Rc<P>) + Clone + Send + 'static) {
        for shard in 0..self.count() {
            self.send(shard, job.clone());
        }
    }

    /// Runs `f` on a shard, as soon as it gets there, and waits for its result.
    ///
    /// # Errors
    /// If the shard ends first.
    pub async fn call<T: Send + 'static>(
        &self,
        shard: usize,
        f: impl FnOnce(&Rc<P>) -> T + Send + 'static,
    ) -> Result<T, Stopping> {
        self.shards.call(shard, move |components: &Components| f(&components.get())).await
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
        F: FnOnce(Rc<P>) -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
    {
        self.shards
            .call_async(shard, class, move |components: Components| f(components.get()))
            .await
    }
}

impl<P> std::fmt::Debug for Remote<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Remote").field(&self.shards).finish()
    }
}
