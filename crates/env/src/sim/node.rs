//! Nodes of a world: their lives, their shards, their turns.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use super::Inner;
use super::machine::{Factory, NodeId, SimNode, State};
use super::port::{Port, Waiting};
use crate::class::Class;
use crate::env::{Env, Make, Node};
use crate::executor::{Executor, Meta, Remote, Work};
use crate::mesh::{Mesh, SimLinks};
use crate::rng::Rng;
use crate::stats::bump;
use crate::time::nanos;

/// When a shard has something to do.
pub(super) fn next_turn(env: &Env, now: u64) -> Option<u64> {
    let port = env.port()?;
    let due = if env.0.has_foreign_work() || env.0.exec.is_ready() {
        now
    } else {
        env.0.timers.next_deadline()?.as_nanos()
    };
    Some(due.max(now).max(port.busy_until.get()))
}

struct SimWork<'a> {
    env: &'a Env,
    port: &'a Port,
}

impl Work for SimWork<'_> {
    fn now(&self) -> u64 {
        self.port.now_ns()
    }

    fn rng(&self) -> Option<&Rng> {
        Some(&self.port.world.rng)
    }

    fn poll_starts(&self, meta: Meta, now: u64) {
        self.env.0.slice_start.set(now);
        let world = &self.port.world;
        world.note(now);
        world.note((self.port.node.id.0 as u64) << 48 | (self.env.0.shard as u64) << 40 | meta.id);
    }

    fn poll_ended(&self, _: Meta) -> u64 {
        let world = &self.port.world;
        let cost = world.rng.between(200, nanos(world.options.poll_cpu));
        self.port.used.set(self.port.used.get() + cost);
        self.port.now_ns()
    }

    fn cut_turn(&self, _: u64, _: bool) -> bool {
        // anywhere: turns that end when all is answered leave little of what can happen within one
        self.port.world.rng.one_in(16)
    }
}

/// One turn of a shard's loop.
pub(super) fn turn(world: &Rc<Inner>, env: &Env) {
    let Some(port) = env.port() else { return };
    env.0.exec.start_turn();
    env.0.fire_timers();
    env.0.exec.run_turn(&SimWork { env, port }, &env.0.counters);
    env.0.flush_mesh();
    port.busy_until.set(world.now.get() + port.used.replace(0));
    if !env.0.exec.is_ready() {
        bump(&env.0.counters.sleeps, 1);
    }
}

/// Makes the shards of a node's new life.
fn bring_up(world: &Rc<Inner>, node: &Rc<SimNode>, shards: usize) -> Vec<Env> {
    assert!(!node.is_up(), "node {} is up already", node.addr);
    node.state.set(State::Up);
    node.life.set(node.life.get() + 1);
    node.shards.set(shards);
    node.done.set(0);
    node.exits.borrow_mut().clear();
    let remotes: Vec<_> = (0..shards).map(|_| Arc::new(Remote::new(None))).collect();
    let shared = Arc::new(Node::new(remotes.clone()));
    let envs: Vec<Env> = remotes
        .into_iter()
        .enumerate()
        .map(|(shard, remote)| {
            let port = Port {
                world: world.clone(),
                node: node.clone(),
                life: node.life.get(),
                used: Cell::new(0),
                // Shards of one process do not start at one instant.
                busy_until: Cell::new(world.now.get() + world.rng.below(1_000_000)),
                disk: RefCell::new(Waiting::new(world.options.io_depth)),
            };
            Env::new(Executor::new(remote), Make::Sim(port), shared.clone(), shard, shards)
        })
        .collect();
    world.shards.borrow_mut().extend(envs.iter().cloned());
    envs
}

pub(super) fn start<M, F, Fut, E>(world: &Rc<Inner>, id: NodeId, shards: usize, main: F)
where
    M: Send + 'static,
    F: Fn(Env, Mesh<M>) -> Fut + 'static,
    Fut: Future<Output = Result<(), E>> + 'static,
    E: Debug + 'static,
{
    let Some(node) = world.node(id) else { return };
    let factory: Factory = Rc::new(move |world, node, shards| {
        let links = SimLinks::<M>::new(shards);
        for env in bring_up(world, node, shards) {
            let mesh = Mesh::sim(&env, links.clone());
            let future = main(env.clone(), mesh);
            let ended = env.clone();
            env.spawn(Class::Admin, async move {
                let result = future.await.map_err(|e| format!("{e:?}"));
                main_ended(&ended, result);
            });
        }
    });
    node.factory.replace(Some(factory.clone()));
    factory(world, &node, shards.max(1));
}

fn main_ended(env: &Env, result: Result<(), String>) {
    let Some(port) = env.port() else { return };
    let node = &port.node;
    if result.is_err() {
        env.terminate();
    }
    node.exits.borrow_mut().push(result);
    node.done.set(node.done.get() + 1);
    if node.done.get() == node.shards.get() {
        let id = node.id;
        port.after(0, move |world| stop(world, id, false));
    }
}

pub(super) fn restart(world: &Rc<Inner>, id: NodeId, shards: Option<usize>) {
    let Some(node) = world.node(id) else { return };
    let factory = node.factory.borrow().clone();
    if let Some(factory) = factory {
        factory(world, &node, shards.unwrap_or(node.shards.get()).max(1));
    }
}

pub(super) fn terminate(world: &Rc<Inner>, id: NodeId) {
    let env =
        world.shards.borrow().iter().find(|e| e.port().is_some_and(|p| p.node.id == id)).cloned();
    if let Some(env) = env {
        env.terminate();
    }
}

/// Ends a node's life: its process dies, or the machine goes dark.
pub(super) fn stop(world: &Rc<Inner>, id: NodeId, dark: bool) {
    let Some(node) = world.node(id) else { return };
    let was_up = node.is_up();
    node.state.set(if dark { State::Off } else { State::Down });
    if was_up {
        let mut mine = Vec::new();
        world.shards.borrow_mut().retain(|env| {
            let theirs = env.port().is_none_or(|p| p.node.id != id);
            if !theirs {
                mine.push(env.clone());
            }
            theirs
        });
        for env in &mine {
            env.0.exec.close();
            let unstarted = env.port().map(|port| port.disk.borrow_mut().clear());
            drop(unstarted);
        }
        world.net.node_gone(world, id, node.life.get(), dark);
    }
    node.disk.process_died();
    if dark {
        let cut = node.disk.model.borrow_mut().power_cut(&world.rng);
        (0..cut.lost).for_each(|_| world.fired("disk.lost_write"));
        (0..cut.torn).for_each(|_| world.fired("disk.torn_write"));
    }
}

/// An Env outside of all nodes. Its node never ends by itself.
pub(super) fn client(world: &Rc<Inner>, id: NodeId) -> Env {
    let Some(node) = world.node(id) else { unreachable!("made by the caller") };
    if node.is_up() {
        let known = world
            .shards
            .borrow()
            .iter()
            .find(|e| e.port().is_some_and(|p| p.node.id == id))
            .cloned();
        if let Some(env) = known {
            return env;
        }
    }
    let mut envs = bring_up(world, &node, 1);
    envs.remove(0)
}
