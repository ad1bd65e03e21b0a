//! `campaign`: runs worlds.
//!
//! ```text
//! campaign seeds FROM COUNT     worlds of these seeds around a whole node; fails if one does, or
//!                               if a fault or branch never fired
//! campaign engine FROM COUNT    the same around the storage engine alone: faster, and nearer to
//!                               what fails
//! campaign conditions FROM COUNT  worlds of conditional statements around a whole node
//! campaign ring-seeds FROM COUNT  worlds of rings of several nodes
//! campaign ring-story SEED [BUG]  what happened in one of them, line by line
//! campaign elastic-seeds FROM COUNT  worlds of rings that nodes join and leave
//! campaign elastic-story SEED [BUG]  what happened in one of them, line by line
//! campaign repair-seeds FROM COUNT  worlds of rings that are repaired
//! campaign repair-story SEED [BUG]  what happened in one of them, line by line
//! campaign images FROM COUNT    at least COUNT crash images of worlds of seeds from FROM on; fails
//!                               if a node does not start as it must on one, or if a kind of change
//!                               was never cut
//! campaign image SEED           the images of one seed
//! campaign part KIND FROM COUNT one of these as a part of more: what never fired is no failure
//! campaign once KIND FROM COUNT one of these, each seed run once: whether it would go the same way
//!                               again is not asked
//! campaign once KIND FROM COUNT except SEED,SEED  the same without seeds that are known to fail
//! campaign planted [NAME]       each planted bug must be found; NAME may be images, for those that
//!                               crash images find
//! ```

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use sim::canary::{
    Bug, CONDITIONS, ELASTIC, ELASTIC_RARE, ENGINE, IMAGES, IMAGES_PER_SEED, ONCE, REPAIR,
    REPAIR_RARE, RINGS, WHOLE,
};
use sim::cas::Cas;
use sim::coverage::{
    Coverage, REQUIRED, REQUIRED_OF_CONDITIONS, REQUIRED_OF_ELASTIC, REQUIRED_OF_NODES,
    REQUIRED_OF_REPAIR, REQUIRED_OF_RINGS,
};
use sim::cql_node::CqlNode;
use sim::engine_node::Door;
use sim::images::{self, Table};
use sim::ring;
use sim::workload::Shared;
use sim::world::{Outcome, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
    let result = match words[..] {
        [kind, seed] if kind.ends_with("-story") => told(kind, seed, None),
        [kind, seed, bug] if kind.ends_with("-story") => told(kind, seed, Some(bug)),
        ["images", from, count] => {
            number(from).and_then(|from| match crash_images(from, number(count)?)?.missing()[..] {
                [] => Ok(()),
                ref missing => Err(format!("never cut:\n  {}", missing.join("\n  "))),
            })
        }
        ["part", "images", from, count] => {
            number(from).and_then(|from| crash_images(from, number(count)?).map(drop))
        }
        ["image", seed] => number(seed).and_then(|seed| {
            let found = images::run(seed, IMAGES_PER_SEED, None);
            println!("{}", found.table);
            found.wrong.map_or(Ok(()), |wrong| Err(failure("image", seed, &wrong)))
        }),
        ["part", kind, from, count] => Kind::of(kind)
            .and_then(|kind| seeds(kind, (number(from)?, number(count)?), &[], twice).map(drop)),
        ["once", kind, from, count] => Kind::of(kind)
            .and_then(|kind| whole(seeds(kind, (number(from)?, number(count)?), &[], single)?)),
        ["once", kind, from, count, "except", wrong] => Kind::of(kind).and_then(|kind| {
            let wrong = wrong.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
            whole(seeds(kind, (number(from)?, number(count)?), &wrong, single)?)
        }),
        [kind, from, count] => Kind::of(kind)
            .and_then(|kind| whole(seeds(kind, (number(from)?, number(count)?), &[], twice)?)),
        ["planted"] => planted(|bug| !is_rare(bug), |_| true),
        ["planted", "images"] => planted(|_| false, |_| true),
        ["planted", name] => planted(|bug| bug.name == name, |bug| bug.name == name),
        _ => Err(
            "seeds|engine|conditions|ring-seeds|elastic-seeds|repair-seeds|images FROM COUNT | \
             planted [NAME]"
                .to_string(),
        ),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Says what happened to a ring.
fn told(kind: &str, seed: &str, bug: Option<&str>) -> Result<(), String> {
    let seed = seed.parse::<u64>().map_err(|e| format!("{seed}: {e}"))?;
    let (story, bugs): (Tell, [&[Bug]; 2]) = match kind {
        "ring-story" => (ring::story, [RINGS, &[]]),
        "elastic-story" => (ring::elastic::story, [ELASTIC, ELASTIC_RARE]),
        "repair-story" => (ring::repair::story, [REPAIR, REPAIR_RARE]),
        _ => return Err(format!("{kind}: no kind of worlds")),
    };
    let known = bugs.concat();
    let bug = bug.and_then(|name| known.iter().find(|known| known.name == name));
    let (story, outcome) = story(seed, bug.map(|bug| bug.name));
    story.iter().for_each(|line| println!("{line}"));
    outcome.wrong.map_or(Ok(()), Err)
}

/// Worlds that run at a time: each is one thread's.
const THREADS: u64 = 2;

/// A kind of worlds.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    run: Run,
    required: &'static [&'static [&'static str]],
}

const KINDS: [Kind; 6] = [
    Kind { name: "seeds", run: run::<CqlNode, Shared>, required: &[REQUIRED, REQUIRED_OF_NODES] },
    Kind { name: "engine", run: run::<Door, Shared>, required: &[REQUIRED] },
    Kind { name: "conditions", run: run::<CqlNode, Cas>, required: &[REQUIRED_OF_CONDITIONS] },
    Kind { name: "ring-seeds", run: ring::run, required: &[REQUIRED_OF_RINGS] },
    Kind { name: "elastic-seeds", run: ring::elastic::run, required: &[REQUIRED_OF_ELASTIC] },
    Kind {
        name: "repair-seeds",
        run: ring::repair::run,
        required: &[REQUIRED_OF_REPAIR, ring::repair::names::HARMED],
    },
];

impl Kind {
    fn of(name: &str) -> Result<Self, String> {
        let kind = KINDS.into_iter().find(|kind| kind.name == name);
        kind.ok_or_else(|| format!("{name}: no kind of worlds"))
    }
}

/// All that must happen did.
fn whole(coverage: Coverage) -> Result<(), String> {
    match coverage.missing()[..] {
        [] => Ok(()),
        ref missing => Err(format!("never happened: {}", missing.join(", "))),
    }
}

/// How a seed is run: what came of it, and what was wrong.
type Runner = fn(Run, u64) -> (Outcome, Option<String>);

fn seeds(
    kind: Kind,
    (from, count): (u64, u64),
    except: &[u64],
    runner: Runner,
) -> Result<Coverage, String> {
    let coverage = Coverage::of(kind.required.concat());
    let next = AtomicU64::new(from);
    let end = from.saturating_add(count);
    let found = Mutex::new((coverage, Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(count) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    if except.contains(&seed) {
                        println!("seed {seed} is known to fail: left out\n");
                        continue;
                    }
                    let (outcome, wrong) = runner(kind.run, seed);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.0.add(&outcome);
                    if let Some(wrong) = wrong {
                        println!("{}\n", failure(kind.name, seed, &wrong));
                        found.1.push(seed);
                    }
                }
            });
        }
    });
    let (coverage, failed) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{coverage}");
    if !failed.is_empty() {
        return Err(format!("{} of {count} seeds failed: {failed:?}", failed.len()));
    }
    Ok(coverage)
}

/// Crash images of seeds from one on, until there are enough.
fn crash_images(from: u64, count: u64) -> Result<Table, String> {
    let next = AtomicU64::new(from);
    let found = Mutex::new((Table::default(), Vec::new()));
    let lock = || found.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while lock().0.images < count && lock().1.len() < IMAGE_FAILURES_MAX {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let of_seed = images::run(seed, IMAGES_PER_SEED, None);
                    let mut found = lock();
                    found.0.add(&of_seed.table);
                    if let Some(wrong) = of_seed.wrong {
                        println!("{}\n", failure("image", seed, &wrong));
                        found.1.push(seed);
                    }
                }
            });
        }
    });
    let seeds = next.into_inner() - from;
    let (table, failed) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{seeds} seeds from {from}: {table}");
    match failed.is_empty() {
        true => Ok(table),
        false => Err(format!("{} of {seeds} seeds failed: {failed:?}", failed.len())),
    }
}

/// Seeds with wrong images after which no more are looked for.
const IMAGE_FAILURES_MAX: usize = 10;

/// Runs a seed twice: the same seed, the same run.
fn twice(run: Run, seed: u64) -> (Outcome, Option<String>) {
    let outcome = run(seed, None);
    let mut wrong = outcome.wrong.clone();
    if wrong.is_none() && run(seed, None).trace != outcome.trace {
        wrong = Some("a second run went another way".into());
    }
    (outcome, wrong)
}

/// Runs a seed once.
fn single(run: Run, seed: u64) -> (Outcome, Option<String>) {
    let outcome = run(seed, None);
    let wrong = outcome.wrong.clone();
    (outcome, wrong)
}

fn failure(kind: &str, seed: u64, what: &str) -> String {
    let count = if kind == "image" { "" } else { " 1" };
    format!(
        "seed {seed}: {what}\nagain: cargo run --profile checked -p sim -- {kind} {seed}{count}"
    )
}

/// Is it looked for by its name alone? So are those of repair, whose worlds are no part of CI yet.
fn is_rare(bug: &Bug) -> bool {
    let mut by_name = ELASTIC_RARE.iter().chain(REPAIR).chain(REPAIR_RARE);
    by_name.any(|rare| rare.name == bug.name)
}

fn planted(wanted: impl Fn(&Bug) -> bool, of_images: impl Fn(&Bug) -> bool) -> Result<(), String> {
    let engine = ENGINE.iter().chain(ONCE).map(|bug| (bug, Some(run::<Door, Shared> as Run)));
    let whole = WHOLE.iter().map(|bug| (bug, Some(run::<CqlNode, Shared> as Run)));
    let conditions = CONDITIONS.iter().map(|bug| (bug, Some(run::<CqlNode, Cas> as Run)));
    let rings = RINGS.iter().map(|bug| (bug, Some(ring::run as Run)));
    let elastic =
        ELASTIC.iter().chain(ELASTIC_RARE).map(|bug| (bug, Some(ring::elastic::run as Run)));
    let repair = REPAIR.iter().chain(REPAIR_RARE).map(|bug| (bug, Some(ring::repair::run as Run)));
    let of_worlds = engine
        .chain(whole)
        .chain(conditions)
        .chain(rings)
        .chain(elastic)
        .chain(repair)
        .filter(|(bug, _)| wanted(bug));
    let images = IMAGES.iter().filter(|bug| of_images(bug)).map(|bug| (bug, None));
    let hunts: Vec<(&Bug, Option<Run>)> = of_worlds.chain(images).collect();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((bug, run)) = hunts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !run.map_or_else(|| image_found(bug), |run| found(bug, run)) {
                        missed.lock().unwrap_or_else(PoisonError::into_inner).push(bug.name);
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if missed.is_empty() { Ok(()) } else { Err(format!("not found: {}", missed.join(", "))) }
}

/// Do crash images find the bug, and nothing wrong without it?
fn image_found(bug: &Bug) -> bool {
    let mut images = 0;
    for seed in 1..=bug.seeds {
        let of_seed = images::run(seed, IMAGES_PER_SEED, Some(bug.name));
        images += of_seed.images_until_wrong;
        let Some(wrong) = of_seed.wrong else { continue };
        if images::run(seed, IMAGES_PER_SEED, None).wrong.is_none() {
            let wrong = wrong.lines().next().unwrap_or_default();
            println!("{}: found after {images} crash images, seed {seed}: {wrong}", bug.name);
            return true;
        }
    }
    println!("{}: not found in {images} crash images", bug.name);
    false
}

/// Does a seed find the bug that finds nothing without it?
fn found(bug: &Bug, run: Run) -> bool {
    for seed in 1..=bug.seeds {
        let Some(wrong) = run(seed, Some(bug.name)).wrong else { continue };
        let is_clean = match bug.case() {
            None => run(seed, None).wrong.is_none(),
            Some(case) => (1..=bug.seeds).all(|seed| run(seed, Some(case)).wrong.is_none()),
        };
        if is_clean {
            let wrong = wrong.lines().next().unwrap_or_default();
            println!("{}: found by seed {seed}: {wrong}", bug.name);
            return true;
        }
    }
    println!("{}: not found in {} seeds", bug.name, bug.seeds);
    false
}

/// Runs a seed, with a bug or without.
type Run = fn(u64, Option<&'static str>) -> Outcome;

/// Says what happened in a seed's world.
type Tell = fn(u64, Option<&'static str>) -> (Vec<String>, Outcome);
