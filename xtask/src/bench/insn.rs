//! `cargo xtask bench insn`: instructions and allocations of the hot paths, called in process,
//! beside what was recorded of them.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::machine::{self, Outcome};

pub const HELP: &str = "\
cargo xtask bench insn [PATH...] [--record REASON]
  instructions and allocations of an operation of each path, in process, beside those of bench/insn/baseline.txt; with a reason what has
  changed is recorded there. `cargo xtask test insn` fails where one has become 3 % worse.
cargo xtask bench insn --socket
  the same of a read and of an update that come through a socket, the node's by layer, and the client's own instructions";

/// What an operation may cost: instructions and allocations; then what is aimed at. Reads are from
/// the memtable, from an SSTable whose chunks are in memory, from one where places of keys are not
/// kept, and from the cache of rows.
const AIMS: [(&str, f64, f64, f64, f64); 3] = [
    ("read", 20_000.0, 10.0, 10_000.0, 2.0),
    ("rows", 20_000.0, 10.0, 10_000.0, 2.0),
    ("update", 25_000.0, 12.0, 12_000.0, 4.0),
];
/// How many times the instructions recorded one may take, and how many allocations more.
const WORSE: f64 = 1.03;
const MORE: f64 = 0.2;
/// Twice the rows may cost so many times the instructions.
const TWICE: f64 = 2.3;
/// Of the figures that are recorded anew: smaller changes are none.
const CHANGED: f64 = 0.005;
/// Rows that are gone over, and the bounds of how many operations.
const ROWS: u64 = 10_000;
const COUNTS: (u64, u64) = (20, 5_000);

/// A path, what an operation of it costs, and what is said of that.
#[derive(Clone, Debug, PartialEq)]
struct Cost {
    path: String,
    instructions: f64,
    allocations: f64,
    reason: String,
}

impl Cost {
    fn parse(line: &str) -> Outcome<Self> {
        let mut words = line.splitn(4, ' ');
        let mut next = || words.next().ok_or_else(|| format!("`{line}` is no cost of a path"));
        Ok(Self {
            path: next()?.to_owned(),
            instructions: next()?.parse()?,
            allocations: next()?.parse()?,
            reason: next()?.to_owned(),
        })
    }

    /// Is it another than what was recorded?
    fn has_changed(&self, before: &Self) -> bool {
        let change = (self.instructions / before.instructions - 1.0).abs();
        change > CHANGED || (self.allocations - before.allocations).abs() > MORE
    }

    fn is_worse(&self, before: &Self) -> bool {
        self.instructions > before.instructions * WORSE
            || self.allocations > before.allocations + MORE
    }
}

/// `bench insn [PATH...] [--record REASON]`
pub fn run(args: &[String]) -> Outcome {
    let (names, reason) = match args {
        [option] if option == "--socket" => return super::socket::run(),
        [names @ .., option, reason] if option == "--record" => (names, Some(reason)),
        names if names.iter().any(|name| name.starts_with('-')) => {
            println!("{HELP}");
            return Ok(());
        }
        names => (names, None),
    };
    let recorded = recorded()?;
    let costs = costs(names)?;
    println!("in process: a frame parsed and run, one shard; rows of 1 KB");
    println!(
        "{:<16}{:>14}{:>12}{:>9}{:>13}{:>10}{:>16}{:>16}",
        "path", "instructions", "recorded", "change", "allocations", "recorded", "must", "goal"
    );
    for cost in &costs {
        let before = recorded.iter().find(|before| before.path == cost.path);
        let (was, had) = before.map_or((0.0, 0.0), |b| (b.instructions, b.allocations));
        let change = if was > 0.0 { (cost.instructions / was - 1.0) * 100.0 } else { 0.0 };
        let aim = AIMS.iter().find(|aim| aim.0 == cost.path);
        let (must, goal) = aim.map_or((String::new(), String::new()), |aim| {
            (format!("{} / {}", aim.1, aim.2), format!("{} / {}", aim.3, aim.4))
        });
        println!(
            "{:<16}{:>14.0}{was:>12.0}{change:>7.1} %{:>13.2}{had:>10.2}{must:>16}{goal:>16}",
            cost.path, cost.instructions, cost.allocations
        );
    }
    for line in twice(&costs) {
        println!("{}", line.0);
    }
    match reason {
        Some(reason) => record(recorded, costs, reason),
        None => Ok(()),
    }
}

/// What has become worse than it was recorded: how many paths are as good, and what is wrong with
/// the others.
pub fn guard() -> Outcome<(usize, Vec<String>)> {
    let (recorded, costs) = (recorded()?, costs(&[])?);
    let mut problems = Vec::new();
    for cost in &costs {
        match recorded.iter().find(|before| before.path == cost.path) {
            None => problems.push(format!("{} is not recorded in {FILE}", cost.path)),
            Some(before) if cost.is_worse(before) => problems.push(format!(
                "{}: {:.0} instructions and {:.2} allocations, {:.0} and {:.2} are recorded in {FILE}; a change that is worth it records it there with its reason: \
                 cargo xtask bench insn --record REASON",
                cost.path, cost.instructions, cost.allocations, before.instructions, before.allocations
            )),
            Some(_) => {}
        }
    }
    problems.extend(twice(&costs).into_iter().filter(|(_, holds)| !holds).map(|(line, _)| line));
    Ok((costs.len() - problems.len().min(costs.len()), problems))
}

/// Paths that are counted over so many rows and over twice as many: how many times as much that is,
/// and is that all right?
fn twice(costs: &[Cost]) -> Vec<(String, bool)> {
    let named = |name: &str, rows: u64| format!("{name}-{rows}");
    let mut lines = Vec::new();
    for cost in costs {
        let Some((name, rows)) = cost.path.rsplit_once('-') else { continue };
        let Ok(rows) = rows.parse::<u64>() else { continue };
        let Some(more) = costs.iter().find(|more| more.path == named(name, rows * 2)) else {
            continue;
        };
        let times = more.instructions / cost.instructions;
        lines.push((
            format!("{name}: {} rows cost {times:.2} times what {rows} do", rows * 2),
            times <= TWICE,
        ));
    }
    lines
}

const FILE: &str = "bench/insn/baseline.txt";

fn file() -> PathBuf {
    machine::root().join(FILE)
}

fn recorded() -> Outcome<Vec<Cost>> {
    let text = fs::read_to_string(file()).unwrap_or_default();
    text.lines().filter(|line| !line.starts_with('#')).map(Cost::parse).collect()
}

/// Writes what has changed, with the reason, and leaves the rest as it is.
fn record(mut recorded: Vec<Cost>, costs: Vec<Cost>, reason: &str) -> Outcome {
    for cost in costs {
        let cost = Cost { reason: reason.to_owned(), ..cost };
        match recorded.iter_mut().find(|before| before.path == cost.path) {
            None => recorded.push(cost),
            Some(before) if cost.has_changed(before) => *before = cost,
            Some(_) => {}
        }
    }
    let mut text =
        "# instructions and allocations of an operation of each path, and why they are not what they were before\n".to_owned();
    for Cost { path, instructions, allocations, reason } in recorded {
        writeln!(text, "{path} {instructions:.0} {allocations:.2} {reason}")?;
    }
    Ok(fs::write(file(), text)?)
}

/// What operations of the paths cost: of those named, or of all.
fn costs(names: &[String]) -> Outcome<Vec<Cost>> {
    machine::need(&["valgrind"])?;
    machine::run(
        gently("cargo")
            .args(["build", "--profile", "counted", "--quiet", "--package", "insn"])
            .current_dir(machine::root()),
    )?;
    let all = Command::new(program()).output()?;
    let all = String::from_utf8_lossy(&all.stdout).into_owned();
    let mut paths = Vec::new();
    for line in all.lines() {
        let (path, rows) = line.split_once(' ').ok_or("a path without rows")?;
        if names.is_empty() || names.iter().any(|name| name == path) {
            paths.push((path, (ROWS / rows.parse::<u64>()?).clamp(COUNTS.0, COUNTS.1)));
        }
    }
    count_all(&paths)
}

/// Each of the paths, as many at a time as there are cores: what others do changes no count.
fn count_all(paths: &[(&str, u64)]) -> Outcome<Vec<Cost>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((place, (path, count))) = take(paths, &next) {
            found.push((place, cost(path, *count).map_err(|e| e.to_string())));
        }
        found
    };
    let cores = thread::available_parallelism()?.get();
    let mut found = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    found.sort_by_key(|(place, _)| *place);
    if found.len() != paths.len() {
        return Err("not each path was counted".into());
    }
    found.into_iter().map(|(_, cost)| cost.map_err(Into::into)).collect()
}

/// The next of them, and its place.
fn take<'a, T>(all: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let place = next.fetch_add(1, Ordering::Relaxed);
    all.get(place).map(|it| (place, it))
}

fn program() -> PathBuf {
    machine::root().join("target/counted/insn")
}

/// A program that leaves the cores to others who want them: no count depends on the time.
fn gently(program: &str) -> Command {
    let mut command = Command::new("nice");
    command.arg(program);
    command
}

/// Has the operations of a path counted.
fn cost(path: &str, count: u64) -> Outcome<Cost> {
    let done = gently("valgrind")
        .args([
            "--tool=callgrind",
            "--toggle-collect=insn::counted",
            "--callgrind-out-file=/dev/null",
        ])
        .arg(program())
        .args([path, &count.to_string()])
        .output()?;
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !done.status.success() {
        return Err(format!("insn {path} {count} failed\n{out}{err}").into());
    }
    let collected = err.lines().find_map(|line| line.split_once("Collected :").map(|(_, n)| n));
    let collected = collected.and_then(|n| n.trim().parse::<u64>().ok()).filter(|n| *n > 0);
    let words: Vec<&str> = out.split_whitespace().collect();
    match (collected, &words[..]) {
        (Some(collected), &["allocations", allocations, "bytes", _]) => Ok(Cost {
            path: path.to_owned(),
            instructions: collected as f64 / count as f64,
            allocations: allocations.parse()?,
            reason: String::new(),
        }),
        _ => Err(format!("insn {path} {count} printed something else\n{out}{err}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(path: &str, instructions: f64, allocations: f64) -> Cost {
        Cost { path: path.to_owned(), instructions, allocations, reason: "why".to_owned() }
    }

    #[test]
    fn what_became_worse_is_told_from_what_did_not() {
        let before = cost("read", 10_000.0, 2.0);
        assert_eq!(Cost::parse("read 10000 2.00 why").ok(), Some(before.clone()));
        assert!(Cost::parse("read 10000 2.00").is_err());
        assert!(!cost("read", 10_299.0, 2.1).is_worse(&before));
        assert!(cost("read", 10_301.0, 2.0).is_worse(&before));
        assert!(cost("read", 9_000.0, 3.0).is_worse(&before));
        assert!(!cost("read", 10_040.0, 2.0).has_changed(&before));
        assert!(cost("read", 9_900.0, 2.0).has_changed(&before));
    }

    #[test]
    fn twice_the_rows_are_found_by_their_names() {
        let costs =
            [cost("in-10", 100.0, 1.0), cost("in-20", 229.0, 1.0), cost("map-20", 1.0, 1.0)];
        assert_eq!(twice(&costs), [("in: 20 rows cost 2.29 times what 10 do".to_owned(), true)]);
        let costs = [cost("disk-slice-100", 100.0, 1.0), cost("disk-slice-200", 231.0, 1.0)];
        assert!(!twice(&costs)[0].1);
    }
}
