//! The load of a world whose images are kept: clients, and an operator.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use env::{Env, Instant, Rng};

use crate::engine_node::{Door, Order};
use crate::operation::TABLES;
use crate::plan::Plan;
use crate::site::Site;
use crate::workload::{self, Shared};
use crate::world::Load;

/// The longest pause of the operator, in microseconds.
const PAUSE_MICROS: u64 = 12_000;

/// Clients, and an operator who asks for all that changes files.
pub struct Operated {
    pub(super) shared: Rc<Shared>,
    rng: Rng,
    operators: Cell<u64>,
    names: Cell<u64>,
    /// What the operator is to do before the life may end.
    pub(super) duties: RefCell<Vec<Order>>,
    on_duty: Cell<bool>,
}

impl Operated {
    fn is_on_duty(&self) -> bool {
        self.on_duty.get() || !self.duties.borrow().is_empty()
    }

    fn next_order(&self) -> Order {
        let duty = {
            let mut duties = self.duties.borrow_mut();
            if duties.is_empty() { None } else { Some(duties.remove(0)) }
        };
        self.on_duty.set(duty.is_some());
        if let Some(duty) = duty {
            return duty;
        }
        let table = self.rng.below(u64::from(TABLES)) as u8;
        let number = self.names.get() + 1;
        match self.rng.below(8) {
            0 | 1 => Order::Compact(table),
            2 => Order::Flush(table),
            3 | 4 => {
                self.names.set(number);
                let ttl = self.rng.one_in(2).then_some(60_000);
                Order::Snapshot(table, format!("s{number}"), ttl)
            }
            5 if number > 1 => {
                let name = format!("s{}", self.rng.between(1, number - 1));
                Order::Clear(table, name)
            }
            // what a table has purged must not come back
            _ => {
                self.names.set(number);
                Order::Import(0, format!("s{number}"), self.rng.one_in(2))
            }
        }
    }

    async fn operate(&self, env: &Env, site: &Door, until: u64) {
        while self.shared.done.get() < until && self.shared.wrong.borrow().is_none() {
            if !self.is_on_duty() {
                env.sleep(Duration::from_micros(self.rng.below(PAUSE_MICROS))).await;
            }
            let order = self.next_order();
            // A name that is not there, or a node that stops: nothing that the files must show.
            let done = env.timeout(workload::PATIENCE, site.order(order.clone())).await;
            self.on_duty.set(false);
            if done.is_err() {
                self.shared.fail(format!("{order:?} takes for ever"));
            }
        }
    }
}

impl Load<Door> for Operated {
    const OPERATIONS_MIN: u64 = 0;

    fn new(seed: u64, clients: Env) -> Rc<Self> {
        Rc::new(Self {
            shared: <Shared as Load<Door>>::new(seed, clients),
            rng: Rng::new(seed ^ 0x6f70_6572),
            operators: Cell::new(0),
            names: Cell::new(0),
            duties: RefCell::default(),
            on_duty: Cell::new(false),
        })
    }

    /// Clocks stay where they are and disks are healthy: here the power is what fails.
    fn plan(seed: u64) -> Plan {
        let mut plan = Plan::new(seed);
        // what is looked at is in one place
        plan.options.data_directories.truncate(1);
        plan.jumps.clear();
        plan.slow = None;
        plan.auto_snapshot = true;
        plan.options.incremental_backups = !seed.is_multiple_of(3);
        plan.lives.iter_mut().for_each(|life| life.bad_syncs = false);
        plan
    }

    async fn prepare(self: Rc<Self>, site: Rc<Door>) -> Result<(), String> {
        site.prepare().await.map_err(|error| error.to_string())
    }

    async fn client(self: Rc<Self>, env: Env, site: Rc<Door>, until: u64) {
        let number = self.operators.get();
        self.operators.set(number + 1);
        // one of four is the operator
        match number % 4 {
            0 => self.operate(&env, &site, until).await,
            _ => workload::client(env, Rc::clone(&self.shared), site, until).await,
        }
    }

    async fn verify(self: Rc<Self>, site: Rc<Door>) -> Result<(), String> {
        Rc::clone(&self.shared).verify(site).await
    }

    fn done(&self) -> u64 {
        if self.is_on_duty() { 0 } else { self.shared.done.get() }
    }

    fn wrong(&self) -> Option<String> {
        Load::<Door>::wrong(&*self.shared)
    }

    fn counts(&self) -> BTreeMap<&'static str, u64> {
        Load::<Door>::counts(&*self.shared)
    }

    fn digest(&self) -> u64 {
        Load::<Door>::digest(&*self.shared)
    }

    fn jump(&self, micros: i64, jump: &mut dyn FnMut()) {
        Load::<Door>::jump(&*self.shared, micros, jump);
    }

    fn ended(&self, safe: Instant) -> bool {
        self.on_duty.set(false);
        Load::<Door>::ended(&*self.shared, safe)
    }
}
