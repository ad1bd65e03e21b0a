//! `cargo xtask campaign elastic RELEASE`: rings of Cassandra and Helenus grow, shrink and move,
//! while clients read, write, delete and compare-and-set. Recorded under `docs/campaigns/`.

mod change;
pub mod kills;
mod load;
mod logs;
mod node;
mod scenario;
mod stages;

use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::machine::{self, Outcome};
use crate::members::{self, Member};
use crate::node as helenus;

use change::Change;
use load::{FACTORS, Figures, Load};
use scenario::{At, Operation, SCENARIOS, Scenario};
use stages::Seen;

/// How long the clients have a ring to themselves, before a change and after it.
const QUIET: Duration = Duration::from_secs(4);

/// What came of a scenario.
#[derive(Default)]
struct Found {
    seen: Seen,
    took: Duration,
    figures: Vec<Figures>,
    /// When a node was killed, in seconds since 1970.
    killed: Option<String>,
    /// Reads at ALL that found replicas which differ, once the clients were done.
    differing: u64,
    problems: Vec<String>,
}

/// `campaign elastic RELEASE [--only NAME] | campaign elastic RELEASE --list`
pub fn campaign(words: &[&str]) -> Outcome {
    let (release, only) = match words {
        [release, "--list"] => {
            members::known_release(release)?;
            return list();
        }
        [release] => (members::known_release(release)?, None),
        [release, "--only", name] => (members::known_release(release)?, Some(*name)),
        _ => return Err(super::USAGE.into()),
    };
    let is_asked = |scenario: &&Scenario| only.is_none_or(|name| scenario.name == name);
    let asked: Vec<&Scenario> = SCENARIOS.iter().filter(is_asked).collect();
    if asked.is_empty() {
        return Err(format!("no such scenario: `campaign elastic {release} --list`").into());
    }
    machine::need(&["bash", "java", "mvn", "python3", "timeout"])?;
    helenus::build()?;
    helenus::build_nodetool()?;
    let begun = Instant::now();
    let mut text = String::from(
        "| scenario | ring | operation | seen by J | seen by H | operation took | \
         requests of RF 1, 2, 3 (failed, conditional ones) | reads that found differing replicas | \
         result |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut problems = Vec::new();
    for scenario in asked {
        problems.extend(try_one(scenario, release, &mut text)?);
    }
    // a record names no folder of this machine
    let root = format!("{}/", machine::root().display());
    for problem in &problems {
        writeln!(text, "\n- {}", problem.replace(&root, ""))?;
    }
    let text = format!(
        "Commit {}; Cassandra {release}; {} s. Again: `cargo xtask campaign elastic {}`. Found: \
         {}.\n\n{text}",
        super::commit()?,
        begun.elapsed().as_secs(),
        words.join(" "),
        if problems.is_empty() { "nothing wrong" } else { "what is named below" },
    );
    let named: Vec<&str> = words.iter().copied().filter(|word| *word != "--only").collect();
    println!("recorded in {}", super::record(&super::named("elastic", &named), &text)?.display());
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// `--list`
fn list() -> Outcome {
    for scenario in SCENARIOS {
        println!("{:42} {:8} {}", scenario.name, scenario.ring_text(), scenario.text());
    }
    Ok(())
}

/// Tries one, and adds its line: what is wrong.
fn try_one(scenario: &Scenario, release: &str, text: &mut String) -> Outcome<Vec<String>> {
    let (name, ring, what) = (scenario.name, scenario.ring_text(), scenario.text());
    println!("{name}: {ring}, {what}");
    let mut found = Found::default();
    if let Err(e) = run(scenario, release, &mut found) {
        found.problems.push(e.to_string());
    }
    if !found.problems.is_empty() {
        logs::keep(name)?;
    }
    members::stop()?;
    let is_good = found.problems.is_empty();
    let seen = |kind| match found.seen.get(kind) {
        Some(states) => states.iter().map(String::as_str).collect::<Vec<_>>().join(" "),
        None => "-".to_owned(),
    };
    let figures = found
        .figures
        .iter()
        .map(|of| format!("{} ({}, {})", of.requests, of.failed, of.conditional));
    writeln!(
        text,
        "| {name} | {ring} | {what} | {} | {} | {:.1} s | {} | {} | {} |",
        seen("J"),
        seen("H"),
        found.took.as_secs_f64(),
        figures.collect::<Vec<_>>().join(", "),
        found.differing,
        if is_good { "passed" } else { "**failed**" },
    )?;
    println!("{name}: {}", if is_good { "passed" } else { "failed" });
    Ok(found.problems.iter().map(|problem| format!("{name}: {problem}")).collect())
}

fn run(scenario: &Scenario, release: &str, found: &mut Found) -> Outcome {
    members::stop()?;
    let mut members = node::start_ring(scenario, release)?;
    stages::until_still(&members.iter().collect::<Vec<_>>())?;
    let mut load = Load::start(scenario, &members)?;
    std::thread::sleep(QUIET);

    let newcomer = Change::newcomer(scenario)?;
    let dead = scenario.dead().map(node::address).transpose()?;
    let left = match scenario.operation {
        Operation::Decommission(place) => Some(node::address(place)?),
        _ => None,
    };
    let ended = (dead.as_deref(), left.as_deref());
    if let Err(e) = change(scenario, release, &members, newcomer.as_ref(), &mut load, found) {
        // what all said until then
        found.problems.push(e.to_string());
        load.end()?.1.iter().for_each(|line| println!("{line}"));
        members.extend(newcomer.filter(|newcomer| newcomer.dir.exists()));
        found.problems.extend(logs::errors(&members, ended, &mut load)?);
        return Ok(());
    }
    let is_gone = |place: usize| match scenario.operation {
        Operation::Decommission(leaves) => leaves == place,
        _ => scenario.dead() == Some(place),
    };
    let gone = (1..=members.len()).find(|place| is_gone(*place));
    let gone = gone.map(|place| members.remove(place - 1));
    members.extend(newcomer);
    stages::until_still(&members.iter().collect::<Vec<_>>())?;
    std::thread::sleep(QUIET);

    compare(scenario, &members, &mut load, found)?;
    members.extend(gone);
    found.problems.extend(logs::errors(&members, ended, &mut load)?);
    Ok(())
}

/// Changes the ring, while others look.
fn change(
    scenario: &Scenario,
    release: &str,
    members: &[Member],
    newcomer: Option<&Member>,
    load: &mut Load,
    found: &mut Found,
) -> Outcome {
    let subject = scenario.subject().and_then(|place| members.get(place - 1));
    let is_other = |member: &&Member| subject.is_none_or(|subject| subject.dir != member.dir);
    let observers = stages::observers(members.iter().filter(is_other));
    let watched: Vec<_> = subject.into_iter().chain(newcomer).map(|one| one.ip.clone()).collect();
    let change = Change { scenario, release, members, newcomer };
    let begun = Instant::now();
    if scenario.dead().is_some() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        found.killed = Some(now.as_secs_f64().to_string());
    }
    let (done, seen) = stages::watch(&observers, &watched, || change.make(load));
    found.took = begun.elapsed();
    if done.is_ok() {
        found.problems.extend(stages::missing(&seen, &observers, scenario.stages));
    }
    found.seen = seen;
    done
}

/// Ends the clients, and compares all rows with what they were told.
fn compare(scenario: &Scenario, members: &[Member], load: &mut Load, found: &mut Found) -> Outcome {
    let (figures, lines) = load.end()?;
    lines.iter().for_each(|line| println!("{line}"));
    found.figures = figures;
    if found.figures.last().is_none_or(|of_three| of_three.failed > 0) {
        let failures = lines.iter().filter(|line| line.starts_with("elastic_3 "));
        let failures: Vec<_> = failures.map(String::as_str).collect();
        found.problems.push(format!("requests of RF 3 failed: {}", failures.join("; ")));
    }
    found.problems.extend(lines.iter().filter(|line| line.starts_with("WRONG: ")).cloned());
    // those for a node that is gone stay, and then Cassandra's nodetool fails; nobody else was down
    if scenario.dead().is_none() {
        members::until_no_hints(members, members::HINTS_LIMIT)?;
    }
    let hosts: Vec<&str> = members.iter().map(|member| member.ip.as_str()).collect();
    // a node at the address of its predecessor gets no writes before it serves
    let must_agree = !matches!(scenario.operation, Operation::Replace { at: At::Same, .. });
    for factor in FACTORS {
        let before = members::mismatches(members)?;
        let number = factor.to_string();
        // asked before the first comparison, which mends what differs
        let mut words = vec!["differing", &number, hosts[0]];
        words.extend(found.killed.as_deref());
        let named = if must_agree { load.ask(&words)? } else { Vec::new() };
        found.problems.extend(load.ask(&[&["compare", &number], &hosts[..]].concat())?);
        let differing = members::mismatches(members)?.saturating_sub(before);
        found.differing += differing;
        let is_explained = !named.is_empty() && named.iter().all(|line| line.starts_with("near: "));
        named.iter().for_each(|line| println!("{line}"));
        if differing > 0 && must_agree && !is_explained {
            let what = "reads at ALL found differing replicas";
            let named = named.join("; ");
            found.problems.push(format!("RF {factor}: {differing} {what}: {named}"));
        }
    }
    Ok(())
}
