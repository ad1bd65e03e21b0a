//! `cargo xtask campaign kills [COUNT [SEED]]`: real nodes of a ring of Helenus get SIGKILL at
//! random moments of bootstrap, decommission and replace, under load. Afterwards the operation is
//! taken up again as an operator would, and nothing may be missing. Recorded under
//! `docs/campaigns/`.

use std::fmt::Write as _;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{self, Outcome};
use crate::members::{self, End, Member};
use crate::node as helenus;

use super::load::{FACTORS, Load};
use super::node::{self, Entry};
use super::scenario::{Kind, Operation, Scenario};
use super::{logs, stages};

/// Kills, unless told.
const COUNT: u64 = 30;
const SEED: u64 = 1;
/// Nodes between two operations.
const NODES: usize = 3;
/// Tokens of each.
const TOKENS: usize = 4;
/// A kill comes at any moment up to this one: operations take about as long here.
const LATEST: Duration = Duration::from_secs(9);
/// How long an operation may take that is taken up again.
const LIMIT: Duration = Duration::from_secs(150);
const PAUSE: Duration = Duration::from_millis(200);
/// The release that all say they are of.
const RELEASE: &str = "5.0.9";

/// The ring that it begins with.
const RING: Scenario = Scenario {
    name: "kills",
    ring: &[Kind::H, Kind::H, Kind::H],
    // which of three replicas of a row dies first is not known: those of one replica may go
    operation: Operation::RemoveNode { dead: 3, by: 1 },
    stages: &[],
};

/// What is under way when a node is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Bootstrap,
    Decommission,
    Replace,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    /// The node that comes or goes.
    Subject,
    /// Another one.
    Other,
}

/// Small numbers that look random (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }
}

struct Kills {
    members: Vec<Member>,
    load: Load,
    dice: Dice,
    /// The place that the next node gets: each has an address of its own.
    next: usize,
    /// A line for each kill.
    lines: String,
}

/// `campaign kills [COUNT [SEED]]`
pub fn campaign(words: &[&str]) -> Outcome {
    let (count, seed) = match words {
        [] => (COUNT, SEED),
        [count] => (count.parse()?, SEED),
        [count, seed] => (count.parse()?, seed.parse()?),
        _ => return Err(crate::campaign::USAGE.into()),
    };
    machine::need(&["python3", "timeout"])?;
    helenus::build()?;
    helenus::build_nodetool()?;
    let begun = Instant::now();
    members::stop()?;
    let members = node::start_ring(&RING, RELEASE)?;
    stages::until_still(&members.iter().collect::<Vec<_>>())?;
    let load = Load::start(&RING, &members)?;
    let mut kills =
        Kills { members, load, dice: Dice(seed), next: NODES + 1, lines: String::new() };
    let mut problems = Vec::new();
    for number in 1..=count {
        if let Err(e) = kills.one(number) {
            problems.push(format!("kill {number}: {e}"));
            break;
        }
    }
    let (figures, said) = kills.load.end()?;
    said.iter().for_each(|line| println!("{line}"));
    problems.extend(said.into_iter().filter(|line| is_wrong(line)));
    let all: Vec<&str> = kills.members.iter().map(|one| one.ip.as_str()).collect();
    println!("the ring at the end: {}", all.join(" "));
    let errors = logs::errors(&kills.members, (None, None), &mut kills.load)?;
    // a stream with a node that is killed fails, and both sides say so
    problems.extend(
        errors.into_iter().filter(|line| !line.contains(": ERROR ") || !line.contains("[Stream #")),
    );
    if !problems.is_empty() {
        logs::keep(RING.name)?;
    }
    members::stop()?;
    let figures: Vec<String> = figures
        .iter()
        .map(|of| format!("{} ({}, {})", of.requests, of.failed, of.conditional))
        .collect();
    let root = format!("{}/", machine::root().display());
    let text = format!(
        "Commit {}; seed {seed}; {} s. Again: `cargo xtask campaign kills {count} {seed}`. \
         Requests of RF 1, 2, 3 (failed, conditional ones): {}. Found: {}.\n\n\
         | kill | during | of | after | then | ring whole after |\n|---|---|---|---|---|---|\n\
         {}{}",
        crate::campaign::commit()?,
        begun.elapsed().as_secs(),
        figures.join(", "),
        if problems.is_empty() { "nothing missing, nothing wrong" } else { "what is named below" },
        kills.lines,
        problems
            .iter()
            .map(|line| format!("\n- {}\n", line.replace(&root, "")))
            .collect::<String>(),
    );
    let name = format!("kills-{count}-{seed}");
    println!("recorded in {}", crate::campaign::record(&name, &text)?.display());
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

impl Kills {
    /// One operation with a kill in it, and all that brings it to its end.
    fn one(&mut self, number: u64) -> Outcome {
        let doing = match self.members.len() > NODES {
            true => Doing::Decommission,
            false if number.is_multiple_of(3) => Doing::Replace,
            false => Doing::Bootstrap,
        };
        let victim = if self.dice.below(2) == 0 { Victim::Subject } else { Victim::Other };
        let after = Duration::from_millis(self.dice.below(LATEST.as_millis() as u64));
        println!("kill {number}: {doing:?}, {victim:?} after {after:?}");
        let begun = Instant::now();
        let then = match doing {
            Doing::Bootstrap => self.bootstrap(victim, after, None)?,
            Doing::Replace => {
                let dead = self.members.pop().ok_or("nobody is left")?;
                dead.end(End::Killed)?;
                let down =
                    |status: &stages::Status| status.get(&dead.ip).is_some_and(|s| s == "DN");
                stages::until(&self.all(), &format!("{} down", dead.ip), down)?;
                self.bootstrap(victim, after, Some(dead.ip.clone()))?
            }
            Doing::Decommission => self.decommission(victim, after)?,
        };
        stages::until_still(&self.all())?;
        let took = begun.elapsed().as_secs_f64();
        self.load.must(&["pause"])?;
        let wrong = self.compare()?;
        self.load.must(&["resume"])?;
        if !wrong.is_empty() {
            return Err(wrong.join("; ").into());
        }
        writeln!(
            self.lines,
            "| {number} | {doing:?} | {victim:?} | {:.1} s | {then} | {took:.1} s |",
            after.as_secs_f64()
        )?;
        Ok(())
    }

    fn all(&self) -> Vec<&Member> {
        self.members.iter().collect()
    }

    /// Any member but the first, whom newcomers ask: it may be killed, but then the newcomer that
    /// starts meanwhile has nobody to ask.
    fn other(&mut self) -> Outcome<usize> {
        let among = self.members.len().saturating_sub(1);
        Ok(usize::try_from(self.dice.below(among as u64))? + 1)
    }

    /// A node comes; somebody is killed meanwhile. What was done about it.
    fn bootstrap(
        &mut self,
        victim: Victim,
        after: Duration,
        replaces: Option<String>,
    ) -> Outcome<&'static str> {
        let seed = self.members.first().ok_or("a ring of nobody")?.ip.clone();
        let newcomer = node::member(&RING, self.next, Kind::H, node::address(self.next)?);
        self.next += 1;
        let entry = || Entry::Later { tokens: TOKENS, replaces: replaces.clone() };
        node::configure_helenus(&newcomer, &entry(), &seed)?;
        members::begin(&newcomer, RELEASE)?;
        std::thread::sleep(after);
        let then = match victim {
            Victim::Subject => {
                newcomer.end(End::Killed)?;
                // a node that had just begun has nothing yet; one that had served is a member
                let is_fresh = self.dice.below(2) == 0 && !self.is_member(&newcomer)?;
                if is_fresh {
                    fs::remove_dir_all(&newcomer.dir)?;
                    node::configure_helenus(&newcomer, &entry(), &seed)?;
                }
                members::begin(&newcomer, RELEASE)?;
                if is_fresh { "started again, empty" } else { "started again" }
            }
            Victim::Other => {
                let other = self.other()?;
                let other = self.members.get(other).ok_or("no such node")?;
                other.end(End::Killed)?;
                members::begin(other, RELEASE)?;
                members::until_serves(other, LIMIT)?;
                "the other one started again"
            }
        };
        let resumed = self.until_member(&newcomer)?;
        self.members.push(newcomer);
        Ok(match (then, resumed) {
            ("the other one started again", true) => {
                "the other one started again, then `bootstrap resume` or a start"
            }
            (then, _) => then,
        })
    }

    /// Is it one for the others?
    fn is_member(&self, newcomer: &Member) -> Outcome<bool> {
        let first = self.members.first().ok_or("a ring of nobody")?;
        let state = stages::status(first)?.get(&newcomer.ip).cloned();
        Ok(state.is_some_and(|state| state.ends_with('N')))
    }

    /// Waits until a node that joins serves; one whose fetch failed is told to go on, and one that
    /// gave up is started again. Was it?
    fn until_member(&self, newcomer: &Member) -> Outcome<bool> {
        let until = Instant::now() + LIMIT;
        let mut was_told = false;
        while !members::serves(newcomer)? {
            if !newcomer.is_running() {
                println!("{}", fs::read_to_string(newcomer.dir.join("stderr.log"))?.trim_end());
                members::begin(newcomer, RELEASE)?;
                was_told = true;
            }
            if Instant::now() > until {
                return Err(format!("{} does not serve", newcomer.ip).into());
            }
            // it says so itself where there is something to resume
            let resume = newcomer.tool().args(["bootstrap", "resume", "--force"]).output()?;
            was_told |= resume.status.success();
            std::thread::sleep(PAUSE);
        }
        Ok(was_told)
    }

    /// The last node goes; somebody is killed meanwhile. What was done about it.
    fn decommission(&mut self, victim: Victim, after: Duration) -> Outcome<&'static str> {
        let leaver = self.members.pop().ok_or("nobody is left")?;
        let begun = decommission_of(&leaver)?;
        std::thread::sleep(after);
        match victim {
            Victim::Subject => {
                leaver.end(End::Killed)?;
                let _ = begun.wait_with_output()?;
                members::begin(&leaver, RELEASE)?;
            }
            Victim::Other => {
                let other = self.other()?;
                let other = self.members.get(other).ok_or("no such node")?;
                other.end(End::Killed)?;
                members::begin(other, RELEASE)?;
                members::until_serves(other, LIMIT)?;
                let _ = begun.wait_with_output()?;
            }
        }
        let then = self.until_gone(&leaver)?;
        if leaver.pid().is_ok() {
            leaver.end(End::Killed)?;
        }
        fs::remove_dir_all(&leaver.dir)?;
        Ok(then)
    }

    /// Tells a node to go until it has.
    fn until_gone(&self, leaver: &Member) -> Outcome<&'static str> {
        let until = Instant::now() + LIMIT;
        let mut was_told = false;
        loop {
            let first = self.members.first().ok_or("a ring of nobody")?;
            match stages::status(first)?.get(&leaver.ip).map(String::as_str) {
                None => return Ok(if was_told { "told again to go" } else { "it went" }),
                // it left, and could not say so: the others finish it
                Some("DL") => {
                    let id = stages::host_id(first, &leaver.ip)?;
                    let done = first.tool().args(["removenode", &id]).output()?;
                    if done.status.success() {
                        return Ok("removed, as it had left and could not say so");
                    }
                }
                Some(_) => {
                    let told = decommission_of(leaver)?.wait_with_output()?;
                    was_told |= told.status.success();
                }
            }
            if Instant::now() > until {
                return Err(format!("{} does not go", leaver.ip).into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// All rows through each node at ALL.
    fn compare(&mut self) -> Outcome<Vec<String>> {
        let hosts: Vec<String> = self.members.iter().map(|one| one.ip.clone()).collect();
        let mut problems = Vec::new();
        for factor in FACTORS.into_iter().filter(|factor| *factor > 1) {
            let mut words = vec!["compare".to_owned(), factor.to_string()];
            words.extend(hosts.iter().cloned());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            problems.extend(self.load.ask(&words)?);
        }
        Ok(problems)
    }
}

/// Is it a fault? Of one replica nothing can be said: what goes with a dead node may leave older
/// rows to be seen, which a node still has that was the replica once.
fn is_wrong(line: &str) -> bool {
    line.starts_with("WRONG: ") && !line.starts_with("WRONG: elastic_1:")
}

fn decommission_of(leaver: &Member) -> Outcome<Child> {
    let mut tool: Command = leaver.tool();
    tool.arg("decommission").stdout(Stdio::null()).stderr(Stdio::null());
    Ok(tool.spawn()?)
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn dice_fall_alike_for_a_seed() {
        let draw = |seed| {
            let mut dice = Dice(seed);
            [10, 10, 10, 10].map(|end| dice.below(end))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().all(|n| *n < 10));
    }
}
