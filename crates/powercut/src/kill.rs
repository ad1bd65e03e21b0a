//! Killing the real program under load, again and again, on one data directory.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use env::{Moment, Rng};

use crate::history::{Checked, Cut, History};
use crate::load::{self, Plan, Writer};
use crate::node::{Mode, Place, Program};
use crate::read;

/// How long a load runs at most before the program is killed.
const LOAD_MAX: Duration = Duration::from_millis(1500);
/// How long it runs at least.
const LOAD_MIN: Duration = Duration::from_millis(200);
/// In the periodic mode an acknowledgement leaves at the end of the turn of the loop that hands the
/// write to the kernel: how long that may take on a busy machine.
const TURN: Duration = Duration::from_millis(50);
/// Values of one load.
const VALUES: i32 = 2_000_000;

/// What kills came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Kills.
    pub kills: u64,
    /// Starts after them.
    pub restarts: u64,
    /// What was checked.
    pub checked: Checked,
}

/// Kills a program `kills` times and checks after each that what was acknowledged is there.
///
/// # Errors
/// If it does not start, or something is missing.
pub fn run(binary: &Path, place: &Place, kills: u64, seed: u64) -> Result<Tally, String> {
    let mut tally = Tally::default();
    place.clear().map_err(|e| e.to_string())?;
    let rng = Rng::new(seed ^ 0x6b69_6c6c);
    let (began, next) = (Instant::now(), AtomicUsize::new(0));
    let clock = || Moment { place: next.fetch_add(1, Ordering::Relaxed), time: began.elapsed() };
    let mut program = Program::start(binary, place)?;
    let mut first = Writer::new(place.connect().map_err(|e| e.to_string())?, &clock, seed, 0);
    first.prepare().map_err(|e| e.to_string())?;
    let mut history = std::mem::take(&mut first.history);
    for number in 1..=kills {
        let length = rng.between(LOAD_MIN.as_millis() as u64, LOAD_MAX.as_millis() as u64);
        let plan = Plan {
            seed: seed.wrapping_add(number * 1000),
            length: Duration::from_secs(3600),
            first: (number as i32) * VALUES,
            tables: number * 1000,
        };
        let stop = AtomicBool::new(false);
        let part = Mutex::new(Ok(History::default()));
        let mut at = clock();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let done = load::run(place, &clock, plan, &stop);
                if let Ok(mut part) = part.lock() {
                    *part = done;
                }
            });
            std::thread::sleep(Duration::from_millis(length));
            // What fails from here on fails because of the kill.
            stop.store(true, Ordering::Release);
            at = clock();
            program.kill();
        });
        let part = part.into_inner().map_err(|e| e.to_string())??;
        if let Some(error) = part.errors.iter().find(|error| !error.contains("the connection")) {
            return Err(format!("kill {number}: {error}"));
        }
        history.merge(part);
        tally.kills += 1;
        program = Program::start(binary, place)?;
        tally.restarts += 1;
        // Acknowledgements that came after the order to kill count too.
        let at = Moment { place: usize::MAX, time: at.time };
        let window = (place.mode == Mode::Periodic).then_some(TURN);
        let seen = read::everything(place, history.keys.keys())
            .map_err(|e| format!("after kill {number}: {e}"))?;
        let checked = history.check(&Cut { at, window }, &seen);
        tally.checked.add(checked.map_err(|e| format!("after kill {number}: {e}"))?);
        read::together(&seen, place.mode != Mode::Periodic)
            .map_err(|e| format!("after kill {number}: {e}"))?;
        history = History::settled(&seen);
    }
    Ok(tally)
}
