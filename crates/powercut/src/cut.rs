//! Cutting the power of a recorded run: images, restarts on them, and what they must show.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use env::{DiskModel, Entry, Moment, Player, Recorder, Recording, Rng};

use crate::history::{Checked, Cut, Done, History, Seen};
use crate::load::{self, Plan, Writer};
use crate::node::{Mode, PERIOD, Place, Running};
use crate::read;
use crate::syncs::{self, Classes};

/// What a turn of the loop may take on a busy machine: beside the period and the sync, a write of
/// the periodic mode waits for the end of its turn, and the sync for the beginning of another.
const TURNS: Duration = Duration::from_millis(100);
/// Keys that are written again after a restart.
const REWRITTEN: usize = 12;
/// The last places of a window, and the last syncs in it.
const LAST: usize = 5;
/// Cuts near an event are at most so many entries after it.
const NEAR: u64 = 4;

/// A run of a node under load.
pub struct Life {
    /// The place of its images.
    pub place: Place,
    /// What it did to its disk.
    pub recording: Recording,
    /// What clients did.
    pub history: History,
    /// Its syncs.
    pub classes: Classes,
    /// Places of acknowledgements.
    acks: Vec<usize>,
}

/// What cuts came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Cuts of a run under load.
    pub cuts: u64,
    /// Cuts of a restart, and of what was written after it.
    pub later_cuts: u64,
    /// Of the cuts, those after a kill.
    pub kills: u64,
    /// Images that nodes were started on.
    pub images: u64,
    /// Starts on images, and second ones.
    pub restarts: u64,
    /// What was checked.
    pub checked: Checked,
    /// Statements that failed under load.
    pub errors: u64,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Life {
    /// Runs a node under load on an empty disk, up to its end in order. Images of it are put at
    /// `images`.
    ///
    /// # Errors
    /// If it does not start, serve or end.
    pub fn live(place: &Place, images: &Place, plan: Plan) -> Result<Self, String> {
        place.clear().map_err(text)?;
        let recorder = Recorder::new(&[&place.root]).map_err(text)?;
        let running = Running::start(place, recorder.clone())?;
        let clock = || recorder.moment();
        let client = place.connect().map_err(text)?;
        let mut first = Writer::new(client, &clock, plan.seed, 0);
        first.prepare().map_err(text)?;
        let mut history = std::mem::take(&mut first.history);
        history.merge(load::run(place, &clock, plan, &AtomicBool::new(false))?);
        running.stop()?;
        if let Some(wrong) = history.errors.iter().find(|error| error.starts_with(load::WRONG)) {
            return Err(wrong.clone());
        }
        place.clear().map_err(text)?;
        let recording = recorder.recording().moved(&place.root, &images.root);
        let classes = syncs::classes(images, &recording, 0, &at_once(&history));
        let acks = acks(&history);
        Ok(Self { place: images.clone(), recording, history, classes, acks })
    }

    /// Places to cut at, in order: half of them anywhere, half right after something happened.
    pub fn cuts(&self, count: u64, rng: &Rng) -> Vec<usize> {
        let end = self.recording.entries().len();
        let mut events: Vec<usize> = self.acks.clone();
        // Syncs of the log are as many as all others; the rare ones are to get their share.
        for syncs in self.classes.values() {
            let share = (self.acks.len() / 10).max(1);
            let each = (syncs.len() / share).max(1);
            events.extend(syncs.iter().step_by(each).map(|sync| sync.ended + 1));
        }
        events.extend(renames(&self.recording));
        let mut cuts: Vec<usize> = (0..count)
            .map(|_| match (rng.below(2), pick(&events, rng)) {
                (0, Some(event)) => (event + rng.below(NEAR) as usize).min(end),
                _ => rng.below(end as u64 + 1) as usize,
            })
            .collect();
        cuts.sort_unstable();
        cuts
    }

    /// Places where it may show that a class of syncs is left out.
    pub fn cuts_without(&self, class: &str, count: u64, rng: &Rng) -> Vec<usize> {
        let end = self.recording.entries().len();
        let syncs = self.classes.get(class).map(Vec::as_slice).unwrap_or_default();
        let windows = syncs::windows(&self.recording, syncs);
        // Truncations are few, and what a sync in them is for shows in a moment, if at all before
        // they end: half of the cuts are for these.
        let all: Vec<&syncs::Window> = windows.iter().collect();
        let of = |is_wanted: fn(&Done, (usize, usize)) -> bool| -> Vec<&syncs::Window> {
            let done = self.history.truncations.iter().map(|(_, done)| done);
            let wanted = |w: &&syncs::Window| done.clone().any(|done| is_wanted(done, w.span));
            windows.iter().filter(wanted).collect()
        };
        let mut truncating =
            of(|done, (from, to)| was_under_way(done, from) && was_under_way(done, to));
        if truncating.is_empty() {
            truncating = of(|done, (from, _)| was_under_way(done, from));
        }
        // What became durable by another sync counts on what was left out before it.
        let ends = self.ends_of_others(class);
        let near = |_| {
            let among =
                if rng.below(2) == 0 && !truncating.is_empty() { &truncating } else { &all };
            let window = among.get(rng.below((among.len() as u64).max(1)) as usize);
            let Some(window) = window else { return rng.below(end as u64 + 1) as usize };
            let (from, to) = window.span;
            // The last of them are those around the next sync, which would make all well.
            let last = |places: &[usize]| {
                pick(places.get(places.len().saturating_sub(LAST)..).unwrap_or_default(), rng)
            };
            let chosen = match rng.below(4) {
                0 => None,
                1 => pick(&window.places, rng),
                2 => last(within(&ends, window.span)),
                _ => last(&window.places),
            };
            let anywhere = || from + rng.below(to.saturating_sub(from) as u64 + 1) as usize;
            chosen.map_or_else(anywhere, |at| at + rng.below(2) as usize).min(end)
        };
        let mut cuts: Vec<usize> = (0..count).map(near).collect();
        cuts.sort_unstable();
        cuts
    }

    /// Right after the syncs of all other classes, in order.
    fn ends_of_others(&self, class: &str) -> Vec<usize> {
        let others = self.classes.iter().filter(|(name, _)| *name != class);
        let mut ends: Vec<usize> =
            others.flat_map(|(_, syncs)| syncs).map(|sync| sync.ended + 1).collect();
        ends.sort_unstable();
        ends
    }

    /// Where the syncs of a class begin.
    pub fn begins_of(&self, class: &str) -> Vec<usize> {
        let syncs = self.classes.get(class).map(Vec::as_slice).unwrap_or_default();
        syncs.iter().map(|sync| sync.begun).collect()
    }

    fn cut(&self, place: usize) -> Cut {
        cut(&self.recording, &self.classes, self.place.mode, place)
    }
}

/// Cuts at or right after some of these places, in order.
pub fn draw(places: &[usize], count: u64, rng: &Rng) -> Vec<usize> {
    let mut cuts: Vec<usize> =
        (0..count).filter_map(|_| Some(pick(places, rng)? + rng.below(2) as usize)).collect();
    cuts.sort_unstable();
    cuts
}

/// Was it asked for and not acknowledged at a place?
fn was_under_way(done: &Done, place: usize) -> bool {
    done.begun.place <= place && done.acked.is_none_or(|acked| place <= acked.place)
}

/// Those of places in order that lie in a span.
fn within(places: &[usize], (from, to): (usize, usize)) -> &[usize] {
    let first = places.partition_point(|place| *place < from);
    let past = places.partition_point(|place| *place <= to);
    places.get(first..past).unwrap_or_default()
}

fn pick(places: &[usize], rng: &Rng) -> Option<usize> {
    let at = rng.below((places.len() as u64).max(1)) as usize;
    places.get(at).copied()
}

fn acks(history: &History) -> Vec<usize> {
    let versions = history.keys.values().flatten();
    let mut acks: Vec<usize> =
        versions.filter_map(|version| version.acked).map(|acked| acked.place).collect();
    acks.sort_unstable();
    acks.dedup();
    acks
}

fn renames(recording: &Recording) -> Vec<usize> {
    let is_rename =
        |entry: &Entry| matches!(entry, Entry::Begin { op: env::RecordedOp::Rename { .. }, .. });
    let entries = recording.entries().iter().enumerate();
    entries.filter(|(_, entry)| is_rename(entry)).map(|(at, _)| at + 1).collect()
}

/// What is durable when it is acknowledged, in every mode.
pub const AT_ONCE: [&str; 2] = ["truncation", "change of schema"];

/// The spans in which something was asked for that is durable when it is acknowledged, in every
/// mode.
fn at_once(history: &History) -> Vec<(&'static str, Moment, Moment)> {
    let truncations = history.truncations.iter().map(|(_, done)| (AT_ONCE[0], done));
    let changes = history.tables.values().flat_map(|life| {
        let all = [&life.created].into_iter().chain(life.columns.values()).chain(&life.dropped);
        all.map(|done| (AT_ONCE[1], done))
    });
    let all = truncations.chain(changes);
    all.filter_map(|(name, done)| Some((name, done.begun, done.acked?))).collect()
}

/// A cut of a recording, with what it may take: in the periodic mode what was acknowledged less
/// than a period and a sync ago. That sync is the longest of those at that time: a round syncs at
/// most two segments, one after the other.
fn cut(recording: &Recording, classes: &Classes, mode: Mode, place: usize) -> Cut {
    let time = recording.time(place.saturating_sub(1));
    let at = Moment { place, time };
    if mode != Mode::Periodic {
        return Cut { at, window: None };
    }
    let recent = time.saturating_sub(2 * PERIOD);
    let took =
        |sync: &syncs::Sync| recording.time(sync.ended).saturating_sub(recording.time(sync.begun));
    let all = classes.get(syncs::RECORDS).into_iter().flatten();
    let near = all.filter(|sync| recording.time(sync.ended) >= recent && sync.begun <= place);
    let longest = near.map(took).max().unwrap_or_default();
    Cut { at, window: Some(PERIOD + 2 * longest + TURNS) }
}

/// How a trial goes on after the first restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The node ends in order and starts again.
    Restart,
    /// The power is cut again while it starts.
    CutStart,
    /// The power is cut again after it served.
    CutLater,
}

/// One trial: a cut, a restart, an end, another restart.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// The process is killed at the cut, and the power is cut after the restart only.
    pub kill: bool,
    /// How it goes on.
    pub then: Then,
    /// The class of syncs that is left out.
    pub omitted: Option<&'a str>,
}

impl Trial<'_> {
    /// Draws one.
    pub fn draw(rng: &Rng) -> Self {
        let then = [Then::Restart, Then::CutStart, Then::CutLater];
        let then = then.get(rng.below(3) as usize).copied().unwrap_or(Then::Restart);
        Self { kill: rng.below(5) == 0, then, omitted: None }
    }
}

fn put(place: &Place, image: &DiskModel) -> Result<(), String> {
    place.clear().map_err(text)?;
    image.write_tree_to(&place.root, &place.root).map_err(text)?;
    Ok(())
}

/// Runs a trial on a life, cut where its player stands.
///
/// # Errors
/// If a restart fails, or shows what cannot be.
pub fn run(
    life: &Life,
    player: &Player<'_>,
    place: usize,
    trial: Trial<'_>,
    rng: &Rng,
    tally: &mut Tally,
) -> Result<(), String> {
    let here = &life.place;
    let image = match trial.kill {
        true => player.kill_image(),
        false => player.crash_image(rng),
    };
    let mut first_cut = life.cut(place);
    if trial.kill {
        first_cut.window = first_cut.window.map(|_| TURNS);
        tally.kills += 1;
    }
    let cut = first_cut;
    put(here, &image)?;
    drop(image);
    tally.cuts += 1;
    tally.images += 1;
    let snapshots = read::snapshots(here)?;
    let recorder = match trial.kill {
        true => Recorder::after_kill(&life.recording, place),
        false => Recorder::new(&[&here.root]).map_err(text)?,
    };
    let running = Running::start(here, recorder.clone())?;
    tally.restarts += 1;
    let seen = check(life, &cut, tally)?;
    life.history.check_snapshots(&cut, &seen, snapshots)?;
    let read = recorder.moment();
    let more = write_again(here, &recorder, &seen, place, rng)?;
    running.stop()?;
    let mut second = recorder.recording();
    let begun = if trial.kill { place } else { 0 };
    let classes = syncs::classes(here, &second, begun, &[]);
    if let Some(class) = trial.omitted {
        let syncs = classes.get(class).map(Vec::as_slice).unwrap_or_default();
        second = second.without(syncs::numbers(syncs));
    }
    let end = second.entries().len();
    let again = match trial.then {
        Then::Restart => None,
        Then::CutStart => Some((begun, read.place)),
        Then::CutLater => Some((read.place, end)),
    };
    let Some((from, to)) = again else {
        return restart(here, &more, &Cut { at: recorder.moment(), window: None }, tally);
    };
    let syncs = trial.omitted.and_then(|class| classes.get(class));
    let windows = syncs::windows(&second, syncs.map(Vec::as_slice).unwrap_or_default());
    let near: Vec<usize> =
        windows.into_iter().flat_map(|w| w.places).filter(|at| (from..=to).contains(at)).collect();
    let again = match (rng.below(4), pick(&near, rng)) {
        (1.., Some(at)) => (at + rng.below(2) as usize).min(to),
        _ => from + rng.below((to - from) as u64 + 1) as usize,
    };
    put(here, &second.crash_image(again, rng).map_err(text)?)?;
    tally.later_cuts += 1;
    tally.images += 1;
    if again < read.place {
        // Nobody has read anything yet: what the first cut may take is open still.
        let mut cut = life.cut(place);
        cut.at.place = place;
        return restart_on(life, &cut, tally);
    }
    let cut = self::cut(&second, &classes, here.mode, again);
    restart(here, &more, &cut, tally)
}

fn restart_on(life: &Life, cut: &Cut, tally: &mut Tally) -> Result<(), String> {
    let recorder = Recorder::new(&[&life.place.root]).map_err(text)?;
    let running = Running::start(&life.place, recorder)?;
    tally.restarts += 1;
    check(life, cut, tally).map_err(|e| format!("after a second cut: {e}"))?;
    running.stop()
}

/// Reads everything and checks it against the life.
fn check(life: &Life, cut: &Cut, tally: &mut Tally) -> Result<Seen, String> {
    let seen = read::everything(&life.place, life.history.keys.keys())?;
    tally.checked.add(life.history.check(cut, &seen)?);
    read::together(&seen, life.place.mode != Mode::Periodic)?;
    Ok(seen)
}

/// Starts once more: what was seen and what was written since must show.
fn restart(place: &Place, history: &History, cut: &Cut, tally: &mut Tally) -> Result<(), String> {
    let recorder = Recorder::new(&[&place.root]).map_err(text)?;
    let running = Running::start(place, recorder.clone())?;
    tally.restarts += 1;
    let seen = read::everything(place, history.keys.keys())?;
    let checked = history.check(cut, &seen).map_err(|e| format!("at the second restart: {e}"));
    tally.checked.add(checked?);
    // Once more: timestamps go on from where they were.
    let clock = || recorder.moment();
    rewrite(place, &clock, &seen, 2_000_000_000)?;
    running.stop()
}

/// Writes some keys again on a restarted node, which must show at once; returns all that is known
/// then.
fn write_again(
    place: &Place,
    recorder: &Recorder,
    seen: &Seen,
    salt: usize,
    rng: &Rng,
) -> Result<History, String> {
    let mut history = History::settled(seen);
    let clock = || recorder.moment();
    let first = 1_000_000_000 + (rng.below(1000) as i32) * 1000 + (salt % 7) as i32;
    history.merge(rewrite(place, &clock, seen, first)?);
    Ok(history)
}

fn rewrite(
    place: &Place,
    clock: load::Clock<'_>,
    seen: &Seen,
    first: i32,
) -> Result<History, String> {
    let client = place.connect().map_err(text)?;
    let mut writer = Writer::new(client, clock, 0, first);
    let tables: BTreeSet<&str> =
        ["t", "tr"].into_iter().filter(|table| seen.tables.contains_key(*table)).collect();
    let known = seen.keys.keys().filter(|(table, _)| tables.contains(table.as_str()));
    let each = (seen.keys.len() / REWRITTEN).max(1);
    let mut keys: Vec<(String, i32)> = known.step_by(each).take(REWRITTEN).cloned().collect();
    if seen.tables.contains_key("t") {
        keys.push(("t".into(), -1));
    }
    for (table, key) in keys {
        let value = writer.insert(&table, key).map_err(text)?;
        if let Some(error) = writer.history.errors.first() {
            return Err(format!("a write after a restart: {error}"));
        }
        let found = writer.read(&table, key).map_err(text)?;
        if found != Some(value) {
            return Err(format!("({table}, {key}) was set to {value} and shows {found:?}"));
        }
    }
    Ok(writer.history)
}
