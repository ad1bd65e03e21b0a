//! The machines of a world.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;

use super::Inner;
use super::disk::SimDisk;

/// Names a node of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Never started, ended or killed: the machine answers, nobody listens.
    Down,
    Up,
    /// The machine is dark.
    Off,
}

pub(super) type Factory = Rc<dyn Fn(&Rc<Inner>, &Rc<SimNode>, usize)>;

/// A machine: its process may die and start again, its disk stays.
pub(crate) struct SimNode {
    pub id: NodeId,
    pub addr: IpAddr,
    pub state: Cell<State>,
    /// Counts the lives of its process.
    pub life: Cell<u64>,
    pub disk: SimDisk,
    /// Wall clock minus virtual time, in microseconds.
    pub clock_offset: Cell<i64>,
    pub next_port: Cell<u16>,
    pub factory: RefCell<Option<Factory>>,
    pub exits: RefCell<Vec<Result<(), String>>>,
    /// Shards of its current or last life, and how many of their mains have ended.
    pub(super) shards: Cell<usize>,
    pub(super) done: Cell<usize>,
}

impl SimNode {
    pub fn new(world: &Inner, id: NodeId, addr: IpAddr) -> Self {
        Self {
            id,
            addr,
            state: Cell::new(State::Down),
            life: Cell::new(0),
            disk: SimDisk::default(),
            clock_offset: Cell::new(world.options.unix_micros),
            next_port: Cell::new(32_768 + world.rng.below(20_000) as u16),
            factory: RefCell::default(),
            exits: RefCell::default(),
            shards: Cell::new(1),
            done: Cell::new(0),
        }
    }

    pub fn is_up(&self) -> bool {
        self.state.get() == State::Up
    }
}
