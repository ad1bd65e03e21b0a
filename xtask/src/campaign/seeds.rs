//! `cargo xtask campaign seeds | engine | conditions | ring-seeds | elastic-seeds | repair-seeds`:
//! simulated worlds of new seeds.
//! A campaign goes on where it was stopped, and leaves a record under `docs/campaigns/`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::programs;

/// Seeds of a campaign, where no number is given.
const SEEDS: u64 = 1000;
/// Seeds between two notes of how far a campaign is.
const PART: u64 = 50;

/// `campaign KIND [FROM] [COUNT]`, or `--resume`
pub fn run(kind: &str, words: &[&str]) -> Outcome {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
    whole(match words {
        ["--resume"] => Progress::load(kind)?,
        [] => Progress::new(kind, super::drawn()?, SEEDS)?,
        [count] => Progress::new(kind, super::drawn()?, number(count)?)?,
        [from, count] => Progress::new(kind, number(from)?, number(count)?)?,
        _ => return Err(super::USAGE.into()),
    })
}

/// The simulator's own program, built.
pub fn simulator() -> Outcome<Command> {
    let mut command = Command::new(programs::checked("campaign")?);
    command.current_dir(machine::root());
    Ok(command)
}

/// How far a campaign is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Progress {
    kind: String,
    commit: String,
    from: u64,
    count: u64,
    done: u64,
    millis: u64,
    sums: Sums,
}

/// What all parts together came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    operations: u64,
    fewest: u64,
    steps: u64,
    trace: u64,
    /// By name: how often, and in how many worlds.
    fired: BTreeMap<String, (u64, u64)>,
    failed: Vec<String>,
}

impl Sums {
    /// Adds what the simulator printed; false if that is not a report.
    fn add(&mut self, text: &str) -> bool {
        let mut reported = false;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [
                    _,
                    "worlds,",
                    operations,
                    "operations",
                    "(at",
                    "least",
                    fewest,
                    "each),",
                    steps,
                    "steps,",
                    "trace",
                    trace,
                ] => {
                    let number = |text: &str| text.parse().unwrap_or(0);
                    let fewest = number(fewest);
                    self.fewest = if self.fewest == 0 { fewest } else { self.fewest.min(fewest) };
                    self.operations += number(operations);
                    self.steps += number(steps);
                    let trace = u64::from_str_radix(trace, 16).unwrap_or(0);
                    self.trace = self.trace.wrapping_add(trace);
                    reported = true;
                }
                [name, count, "in", worlds, "worlds"] if line.starts_with("  ") => {
                    let sum = self.fired.entry(name.to_owned()).or_default();
                    sum.0 += count.parse::<u64>().unwrap_or(0);
                    sum.1 += worlds.parse::<u64>().unwrap_or(0);
                }
                ["seed", ..] => self.failed.push(line.to_owned()),
                _ => {}
            }
        }
        reported
    }

    fn never(&self) -> Vec<&str> {
        self.fired.iter().filter(|(_, sum)| sum.0 == 0).map(|(name, _)| name.as_str()).collect()
    }
}

impl Progress {
    fn new(kind: &str, from: u64, count: u64) -> Outcome<Self> {
        let commit = super::commit()?;
        let (kind, sums) = (kind.to_owned(), Sums::default());
        Ok(Self { kind, commit, from, count, done: 0, millis: 0, sums })
    }

    fn path(kind: &str) -> PathBuf {
        machine::root().join("target/campaigns").join(format!("{kind}.txt"))
    }

    fn load(kind: &str) -> Outcome<Self> {
        let path = Self::path(kind);
        let text = std::fs::read_to_string(&path).map_err(|e| format!("nothing to resume: {e}"))?;
        let progress = Self::parse(kind, &text).ok_or("nothing to resume: the note is damaged")?;
        let now = super::commit()?;
        match progress.commit == now {
            true => Ok(progress),
            false => Err(format!("begun at {}, and this is {now}", progress.commit).into()),
        }
    }

    fn parse(kind: &str, text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let commit = lines.next()?.to_owned();
        let mut numbers = lines.next()?.split_whitespace().map(|word| word.parse::<u64>().ok());
        let mut number = || numbers.next().flatten();
        let (from, count, done, millis) = (number()?, number()?, number()?, number()?);
        let mut sums = Sums::default();
        sums.add(text);
        Some(Self { kind: kind.to_owned(), commit, from, count, done, millis, sums })
    }

    fn text(&self) -> String {
        let Self { commit, from, count, done, millis, sums, .. } = self;
        let mut text = format!("{commit}\n{from} {count} {done} {millis}\n");
        text += &sums.failed.iter().map(|line| format!("{line}\n")).collect::<String>();
        text + &self.report()
    }

    fn report(&self) -> String {
        let Sums { operations, fewest, steps, trace, fired, .. } = &self.sums;
        let mut text = format!(
            "{} worlds, {operations} operations (at least {fewest} each), {steps} steps, trace {trace:016x}\n",
            self.done
        );
        for (name, (count, worlds)) in fired {
            let _ = writeln!(text, "  {name:<28}{count:>10} in {worlds:>6} worlds");
        }
        text
    }

    fn save(&self) -> Outcome {
        let path = Self::path(&self.kind);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        Ok(std::fs::write(path, self.text())?)
    }

    fn record(&self) -> Outcome<PathBuf> {
        let found = match self.sums.failed.len() {
            0 => "nothing wrong".to_owned(),
            n => format!("{n} seeds failed:\n\n```\n{}\n```", self.sums.failed.join("\n")),
        };
        let last = (self.from + self.count).saturating_sub(1);
        let text = format!(
            "Seeds {} to {last} ({}), each run twice with the same trace; commit {}; \
             {} s on {} threads.\nAgain: `cargo xtask campaign {} {} {}`. Found: {found}.\n\n```\n{}```\n",
            self.from,
            self.count,
            self.commit,
            self.millis / 1000,
            THREADS,
            self.kind,
            self.from,
            self.count,
            self.report()
        );
        super::record(&format!("{}-{}", self.kind, self.from), &text)
    }
}

/// Threads of the simulator.
const THREADS: u64 = 2;

fn whole(mut progress: Progress) -> Outcome {
    let program = simulator()?.get_program().to_owned();
    println!("seeds from {}, {} of {} done", progress.from, progress.done, progress.count);
    while progress.done < progress.count {
        let (from, count) =
            (progress.from + progress.done, PART.min(progress.count - progress.done));
        let started = Instant::now();
        let mut part = Command::new(&program);
        part.args(["part", &progress.kind, &from.to_string(), &count.to_string()]);
        let output = part.current_dir(machine::root()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let failed = progress.sums.failed.len();
        if !progress.sums.add(&text) {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("the simulator gave no report:\n{text}{error}").into());
        }
        progress.sums.failed.iter().skip(failed).for_each(|line| println!("{line}"));
        progress.done += count;
        progress.millis += started.elapsed().as_millis() as u64;
        progress.save()?;
        println!("{} of {} seeds, {} s", progress.done, progress.count, progress.millis / 1000);
    }
    print!("{}", progress.report());
    println!("recorded in {}", progress.record()?.display());
    match (progress.sums.failed.len(), progress.sums.never()) {
        (0, never) if never.is_empty() => Ok(()),
        (0, never) => Err(format!("never happened: {}", never.join(", ")).into()),
        (failed, _) => Err(format!("{failed} seeds failed").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Sums};

    const REPORT: &str = "2 worlds, 1207 operations (at least 601 each), 9000 steps, trace 00000000000000ff\n  \
                          kill                                 3 in      2 worlds\n  \
                          power_cut                            0 in      0 worlds\n";

    #[test]
    fn parts_add_up_and_survive_a_stop() {
        let mut sums = Sums::default();
        assert!(sums.add(REPORT) && sums.add(REPORT));
        assert_eq!((sums.operations, sums.fewest, sums.trace), (2414, 601, 510));
        assert_eq!(sums.fired["kill"], (6, 4));
        assert_eq!(sums.never(), ["power_cut"]);
        assert!(!sums.add("thread panicked"));
        assert!(!sums.add("seed 7: a value that no write explains"));
        let (kind, commit) = ("seeds".to_owned(), "abc with changes".to_owned());
        let progress = Progress { kind, commit, from: 5, count: 9, done: 4, millis: 77, sums };
        assert_eq!(Progress::parse("seeds", &progress.text()), Some(progress));
    }
}
