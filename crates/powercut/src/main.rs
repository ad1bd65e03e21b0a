//! `powercut`: kills a node under write load, and cuts the power of recorded runs (`cargo xtask
//! campaign power`).
//!
//! A node of the real make runs under load with a recorder, which logs every write, sync, rename
//! and directory sync with its completion. For cuts drawn from that log an image of the disk is
//! built in which anything unsynced may be missing, torn or reordered; the node starts on it and
//! everything is read back. Then syncs are left out of the log, one class at a time, and each time
//! some image must show it.
//!
//! Clients note the place in the log of every acknowledgement. `env::DiskModel`, the simulator's
//! disk, makes the images. The restart is recorded too, and is cut again.
//!
//! A sync that no cut misses is superfluous, or the check is too weak: both are failures. `cargo
//! xtask test power` is the short form.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "clients, an operator and a machine whose power fails, none of them on a shard"
)]

mod client;
mod cut;
mod history;
mod kill;
mod load;
mod node;
mod omit;
mod read;
mod report;
mod syncs;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use env::Rng;

use cut::{Life, Trial};
use load::Plan;
use node::{Mode, Place};
use report::{Report, Row};

/// Wrong results after which a mode gives up.
const WRONG_MAX: usize = 5;

/// Kills and power cuts.
#[derive(Clone, Debug, Parser)]
#[command(name = "powercut")]
pub struct Arguments {
    /// Power cuts in each mode.
    #[arg(long, default_value_t = 200)]
    pub cuts: u64,
    /// Kills of the real program in each mode.
    #[arg(long, default_value_t = 20)]
    pub kills: u64,
    /// Cuts with a class of syncs left out, at most, until one shows it; 0: none.
    #[arg(long, default_value_t = 1500)]
    pub omissions: u64,
    /// Only classes whose name holds this.
    #[arg(long)]
    pub class: Option<String>,
    /// Only this mode.
    #[arg(long)]
    pub mode: Option<String>,
    /// Cuts of one recorded run.
    #[arg(long, default_value_t = 50)]
    pub cuts_per_run: u64,
    /// Milliseconds that a recorded run is under load.
    #[arg(long, default_value_t = 1200)]
    pub load: u64,
    /// The seed; without one, a new one.
    #[arg(long)]
    pub seed: Option<u64>,
    /// The real program.
    #[arg(long)]
    pub node: PathBuf,
    /// Where nodes live under load.
    #[arg(long)]
    pub dir: PathBuf,
    /// Where images are put and restarted; a disk in memory is as good, for the model says what a
    /// sync does.
    #[arg(long)]
    pub images: PathBuf,
    /// The first of the addresses that nodes take, one a mode.
    #[arg(long, default_value = "127.0.0.61")]
    pub address: IpAddr,
    /// Writes the results to this file, at its end.
    #[arg(long)]
    pub report: Option<PathBuf>,
    /// What the report says of the tree that was tested.
    #[arg(long, default_value = "")]
    pub commit: String,
}

/// What a mode came to.
#[derive(Default)]
struct Outcome {
    row: Row,
    omitted: Vec<omit::Line>,
    wrong: Vec<String>,
}

fn address(first: IpAddr, more: u8) -> IpAddr {
    match first {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            IpAddr::from([a, b, c, d.wrapping_add(more)])
        }
        v6 => v6,
    }
}

/// Saves the image that something wrong showed on.
fn keep(arguments: &Arguments, life: &Life, place: usize, seed: u64, name: &str) -> String {
    let target = arguments.dir.join(format!("wrong-{name}"));
    let _ = std::fs::remove_dir_all(&target);
    let image = life.recording.crash_image(place, &Rng::new(seed));
    let written = image.and_then(|image| image.write_tree_to(&life.place.root, &target));
    match written {
        Ok(_) => format!("image kept in {}", target.display()),
        Err(error) => format!("its image cannot be kept: {error}"),
    }
}

fn cuts(
    arguments: &Arguments,
    (place, images): (&Place, &Place),
    seed: u64,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let mut left = arguments.cuts;
    let mut number = 0;
    while left > 0 {
        let count = left.min(arguments.cuts_per_run);
        left -= count;
        number += 1;
        let life_seed = seed.wrapping_add(number * 1_000_003);
        let life = Life::live(place, images, Plan::recorded(arguments.load, life_seed))?;
        outcome.row.run(&life);
        let rng = Rng::new(life_seed ^ 0x6375_7473);
        let mut player = life.recording.player().map_err(|e| e.to_string())?;
        for (at, cut) in life.cuts(count, &rng).into_iter().enumerate() {
            player.play_to(cut);
            let trial_seed = life_seed.wrapping_add(at as u64 * 7919);
            let rng = Rng::new(trial_seed);
            let trial = Trial::draw(&Rng::new(trial_seed ^ 0x7472));
            let done = cut::run(&life, &player, cut, trial, &rng, &mut outcome.row.cuts);
            if let Err(error) = done {
                let name = format!("{}-{number}-{at}", place.mode.name());
                let kept = keep(arguments, &life, cut, trial_seed, &name);
                let end = life.recording.entries().len();
                let wrong = format!(
                    "{}: run {number}, cut {at} at {cut} of {end}, {trial:?}: {error}; {kept}",
                    place.mode.name()
                );
                println!("{wrong}");
                outcome.wrong.push(wrong);
                if outcome.wrong.len() >= WRONG_MAX {
                    return Err("too much is wrong".into());
                }
            }
        }
    }
    Ok(())
}

fn mode(arguments: &Arguments, mode: Mode, number: u8, seed: u64) -> Outcome {
    let mut outcome = Outcome { row: Row::new(mode), ..Outcome::default() };
    let ip = address(arguments.address, number);
    let place = Place { root: arguments.dir.join(mode.name()), ip, mode };
    let images = Place { root: arguments.images.join(mode.name()), ip, mode };
    let steps = |outcome: &mut Outcome| {
        if arguments.kills > 0 {
            outcome.row.kills = kill::run(&arguments.node, &place, arguments.kills, seed)?;
            println!("{}: killed {} times", mode.name(), outcome.row.kills.kills);
        }
        cuts(arguments, (&place, &images), seed, outcome)?;
        println!("{}: power cut {} times", mode.name(), outcome.row.cuts.cuts);
        outcome.omitted = omit::run(arguments, (&place, &images), seed)?;
        Ok::<_, String>(())
    };
    if let Err(error) = steps(&mut outcome) {
        outcome.wrong.push(format!("{}: {error}", mode.name()));
    }
    let _ = std::fs::remove_dir_all(&place.root);
    let _ = std::fs::remove_dir_all(&images.root);
    outcome
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_micros() as u64 % 1_000_000_007)
    });
    let began = Instant::now();
    println!("seed {seed}");
    let modes: Vec<(u8, Mode)> = (0..)
        .zip(Mode::ALL)
        .filter(|(_, mode)| arguments.mode.as_ref().is_none_or(|only| only == mode.name()))
        .collect();
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let threads: Vec<_> = modes
            .into_iter()
            .map(|(number, each)| {
                let arguments = &arguments;
                scope.spawn(move || mode(arguments, each, number, seed))
            })
            .collect();
        let wrong = || Outcome { wrong: vec!["a thread panicked".into()], ..Outcome::default() };
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| wrong())).collect()
    });
    let mut report = Report { seed, took: began.elapsed(), ..Report::default() };
    for outcome in outcomes {
        report.rows.push(outcome.row);
        report.omitted.extend(outcome.omitted);
        report.wrong.extend(outcome.wrong);
    }
    report.print();
    if let Some(path) = &arguments.report
        && let Err(error) = report.append(path, &arguments.commit)
    {
        eprintln!("powercut: {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
