//! Leaving syncs out of a recorded run, one class at a time: each time a cut must show it.

use std::collections::BTreeSet;

use env::Rng;

use crate::Arguments;
use crate::cut::{self, Life, Tally, Then, Trial};
use crate::load::Plan;
use crate::node::{Mode, Place};
use crate::syncs;

/// A class that matters in a restart after a kill, with the syncs in whose midst the kill must come
/// and what must follow.
struct AtRestart {
    class: &'static str,
    killed_in: fn(&Life) -> Vec<usize>,
    then: Then,
}

const AT_RESTART: [AtRestart; 2] = [
    AtRestart {
        class: "fsync of the log: replayed segment",
        killed_in: |life| life.begins_of(syncs::RECORDS),
        then: Then::CutLater,
    },
    // What a transaction found at a start comes to must not be durable before the transaction's log
    // is.
    AtRestart {
        class: "dirsync of table: nothing new",
        killed_in: |life| syncs::commits(&life.recording),
        then: Then::CutStart,
    },
];

/// What came of leaving a class out.
#[derive(Clone, Debug)]
pub struct Line {
    /// The mode.
    pub mode: &'static str,
    /// What was left out.
    pub class: String,
    /// How many syncs of the run that were.
    pub syncs: usize,
    /// Cuts made.
    pub cuts: u64,
    /// What the cut that showed it showed.
    pub found: Option<String>,
}

/// Leaves out every class in turn, in one recorded run. In the modes other than batch, which has
/// them all, only the log's.
///
/// # Errors
/// If the node cannot run at all.
pub fn run(
    arguments: &Arguments,
    (place, images): (&Place, &Place),
    seed: u64,
) -> Result<Vec<Line>, String> {
    if arguments.omissions == 0 {
        return Ok(Vec::new());
    }
    let seed = seed ^ 0x6f6d_6974;
    let mut life = Life::live(place, images, Plan::recorded(arguments.load, seed))?;
    let whole = life.recording.clone();
    let all: BTreeSet<String> =
        life.classes.keys().cloned().chain(AT_RESTART.map(|at| at.class.into())).collect();
    let wanted = |class: &&String| {
        let of_log = class.starts_with("fsync of the log");
        // Where every write is synced these are no more than the log's syncs of a time.
        let is_at_once = cut::AT_ONCE.iter().any(|name| class.ends_with(name));
        let asked = arguments.class.as_ref().is_none_or(|only| class.contains(only.as_str()));
        asked
            && match place.mode {
                Mode::Batch => !is_at_once,
                Mode::Group => of_log && !is_at_once,
                Mode::Periodic => of_log,
            }
    };
    let mut lines = Vec::new();
    for class in all.iter().filter(wanted) {
        let syncs = life.classes.get(class).map(Vec::as_slice).unwrap_or_default().to_vec();
        life.recording = whole.clone().without(syncs::numbers(&syncs));
        let line = leave_out(arguments, &life, class, syncs.len(), seed)?;
        println!(
            "{}: without {class}: {} cuts, {}",
            line.mode,
            line.cuts,
            line.found.as_deref().unwrap_or("NOT FOUND")
        );
        lines.push(line);
    }
    Ok(lines)
}

fn leave_out(
    arguments: &Arguments,
    life: &Life,
    class: &str,
    syncs: usize,
    seed: u64,
) -> Result<Line, String> {
    let rng = Rng::new(seed);
    let mode = life.place.mode.name();
    let mut line = Line { mode, class: class.to_owned(), syncs, cuts: 0, found: None };
    // Small rounds of cuts in order, for a player goes forward only.
    while line.cuts < arguments.omissions && line.found.is_none() {
        let mut player = life.recording.player().map_err(|e| e.to_string())?;
        let restart = AT_RESTART.iter().find(|at| at.class == class);
        let cuts = match restart {
            Some(restart) => cut::draw(&(restart.killed_in)(life), 10, &rng),
            None => life.cuts_without(class, 10, &rng),
        };
        if cuts.is_empty() {
            break;
        }
        for cut in cuts {
            player.play_to(cut);
            line.cuts += 1;
            let trial_rng = Rng::new(rng.next());
            let mut trial = Trial { omitted: Some(class), ..Trial::draw(&trial_rng) };
            if let Some(restart) = restart {
                (trial.kill, trial.then) = (true, restart.then);
            }
            let done = cut::run(life, &player, cut, trial, &trial_rng, &mut Tally::default());
            if let Err(error) = done {
                line.found = Some(error);
                break;
            }
        }
    }
    Ok(line)
}
