//! One seed: a world run twice, and the images that are kept of it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use env::sim::{Change, Phase};
use env::{DiskModel, Env, Instant, Rng, Tear};

use super::recovery::{self, Image};
use super::snapshots::check_snapshots;
use super::{CUTS, Cut, Place, Table};
use crate::engine_node::{Door, Order};
use crate::operation::TABLES;
use crate::plan::{End, Plan};
use crate::site::Site;
use crate::workload::{self, Shared};
use crate::world::{Load, Run, before, options};

/// The longest pause of the operator, in microseconds.
const PAUSE_MICROS: u64 = 12_000;

/// What came of a seed.
#[derive(Debug, Default)]
pub struct Seed {
    /// What was cut.
    pub table: Table,
    /// What was wrong, if anything: with the world, or the first image that is.
    pub wrong: Option<String>,
    /// How many images it took to see that.
    pub images_until_wrong: u64,
}

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

/// The phase of a change at which a cut of it is taken.
fn phase(cut: Cut) -> Phase {
    match cut {
        Cut::Before => Phase::Before,
        Cut::Torn => Phase::During,
        Cut::After => Phase::After,
    }
}

/// Changes by place and phase, counted.
type Seen = BTreeMap<(Place, Phase), u64>;

fn world(seed: u64, bug: Option<&'static str>) -> Run<Door, Operated> {
    let mut plan = Operated::plan(seed);
    if bug.is_some() {
        // Images are to find it, and not the crashes of their own world.
        plan.lives.iter_mut().for_each(|life| (life.end, life.stumble) = (End::Drain, None));
    }
    Run::new(seed, bug, options(seed), plan)
}

/// Runs a seed for so many images, with a bug in the node if one is named.
pub fn run(seed: u64, images: usize, bug: Option<&'static str>) -> Seed {
    let mut found = Seed::default();
    let (seen, trace, wrong) = count(seed, bug);
    for ((place, phase), times) in &seen {
        if *phase == Phase::Before {
            found.table.saw(*place, *times);
        }
    }
    if wrong.is_some() {
        found.wrong = wrong;
        return found;
    }
    let chosen = choose(seed, &seen, images);
    let (kept, again, wrong) = keep(seed, bug, chosen);
    found.wrong = wrong.or((again != trace).then(|| "a second run went another way".into()));
    for (number, image) in kept.into_iter().enumerate() {
        if found.wrong.is_some() {
            break;
        }
        let (place, cut, left) = (image.place, image.cut, image.left);
        found.table.cut(place, cut);
        found.table.torn_writes += left.torn;
        found.table.lost += left.lost;
        found.table.checked += image.acknowledged as u64;
        found.images_until_wrong += 1;
        let recovered = recovery::recover(seed ^ (number as u64) << 40, image, bug);
        found.wrong = recovered.err().map(|wrong| {
            format!("image {number}, cut {cut:?} {}: {wrong}", format!("{place}").trim())
        });
    }
    found
}

/// What changes in a seed's world.
fn count(seed: u64, bug: Option<&'static str>) -> (Seen, u64, Option<String>) {
    let mut run = world(seed, bug);
    let seen: Rc<RefCell<Seen>> = Rc::default();
    let (counts, site) = (Rc::clone(&seen), Rc::clone(&run.site));
    run.world.watch_disk(run.node, move |change, path, phase, disk| {
        let place = Place::of(change, path, disk, site.is_serving());
        *counts.borrow_mut().entry((place, phase)).or_default() += 1;
    });
    let wrong = run.lives().err();
    let outcome = run.outcome(wrong);
    (seen.take(), outcome.trace, outcome.wrong)
}

/// Which changes are cut, and where: places in turn, so that rare ones are as likely as common
/// ones.
fn choose(seed: u64, seen: &Seen, images: usize) -> BTreeSet<(Place, Phase, u64)> {
    let rng = Rng::new(seed ^ 0x696d_6167);
    let mut left: Vec<(Place, Phase, u64)> =
        seen.iter().map(|((place, phase), times)| (*place, *phase, *times)).collect();
    let mut chosen = BTreeSet::new();
    while chosen.len() < images && !left.is_empty() {
        let at = rng.below(left.len() as u64) as usize;
        let (place, phase, times) = left.swap_remove(at);
        chosen.insert((place, phase, rng.between(1, times)));
    }
    chosen
}

/// The images of a seed's world.
fn keep(
    seed: u64,
    bug: Option<&'static str>,
    chosen: BTreeSet<(Place, Phase, u64)>,
) -> (Vec<Image>, u64, Option<String>) {
    let mut run = world(seed, bug);
    let kept: Rc<RefCell<Vec<Image>>> = Rc::default();
    let camera = Camera {
        rng: Rng::new(seed ^ 0x6375_7473),
        plan: run.plan.clone(),
        site: Rc::clone(&run.site),
        load: Rc::clone(&run.load),
        clients: run.clients.clone(),
        down_since: Rc::clone(&run.down_since),
    };
    let images = Rc::clone(&kept);
    let counts: RefCell<Seen> = RefCell::default();
    run.world.watch_disk(run.node, move |change, path, phase, disk| {
        let place = Place::of(change, path, disk, camera.site.is_serving());
        let mut counts = counts.borrow_mut();
        let count = counts.entry((place, phase)).or_default();
        *count += 1;
        if chosen.contains(&(place, phase, *count)) {
            images.borrow_mut().push(camera.take(place, phase, (change, path), disk));
        }
    });
    let ended = run.lives().err();
    let outcome = run.outcome(ended);
    (kept.take(), outcome.trace, outcome.wrong)
}

/// Takes images.
struct Camera {
    rng: Rng,
    plan: Plan,
    site: Rc<Door>,
    load: Rc<Operated>,
    clients: Env,
    down_since: Rc<Cell<Option<Instant>>>,
}

impl Camera {
    fn take(
        &self,
        place: Place,
        at: Phase,
        (change, path): (Change, &Path),
        disk: &DiskModel,
    ) -> Image {
        let cut = CUTS.into_iter().find(|cut| phase(*cut) == at).unwrap_or(Cut::Before);
        let tear = match change {
            _ if cut != Cut::Torn => Tear::Chance,
            Change::Write | Change::Resize | Change::Sync => Tear::File(path),
            _ => Tear::Names,
        };
        let mut left = disk.clone();
        let cut_left = left.power_cut_with(&self.rng, tear);
        let snapshots = check_snapshots(disk, &left, &self.site.snapshots.borrow());
        let now = self.down_since.get().unwrap_or_else(|| self.clients.now());
        let safe = before(now, self.plan.window(End::PowerCut));
        let mut history = self.load.shared.history.borrow().after_crash(safe);
        history.clock_shows(self.load.shared.node_second());
        Image {
            place,
            cut,
            snapshots,
            disk: left,
            left: cut_left,
            acknowledged: history.acknowledgements(),
            history,
            next_value: self.load.shared.next_value(),
            unix_micros: self.clients.unix_micros(),
            plan: self.plan.clone(),
        }
    }
}
