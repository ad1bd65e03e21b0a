//! One seed: a world run twice, and the images that are kept of it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use env::sim::{Change, Phase};
use env::{DiskModel, Env, Instant, Rng, Tear};

use super::operated::Operated;
use super::recovery::{self, Image};
use super::snapshots::check_snapshots;
use super::{CUTS, Cut, Place, Table};
use crate::engine_node::Door;
use crate::plan::{End, Plan};
use crate::site::Site;
use crate::world::{Load, Run, before, options};

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
