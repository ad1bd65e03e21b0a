//! `cargo xtask campaign streams [RELEASE]`: a Cassandra and two Helenus, each alone in its data
//! centre, fetch from each other: whole SSTables and parts of them, all kinds of tables
//! (`conformance/streaming/streams.py`). Recorded under `docs/campaigns/`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::members::{self, Layout, Member};

/// Who has the data, who fetches it, and how; by places in the ring: the Cassandra is the first.
type Run = (usize, usize, &'static str);

const ALL: [Run; 6] = [
    (0, 1, "whole"),
    (0, 1, "part"),
    (1, 0, "whole"),
    (1, 0, "part"),
    (1, 2, "whole"),
    (1, 2, "part"),
];
/// Those of `cargo xtask test`.
const SHARE: [Run; 3] = [(0, 1, "part"), (1, 0, "whole"), (1, 2, "whole")];
const HEAP: &str = "768M";

/// What came of it.
#[derive(Default)]
pub struct Found {
    /// Tables that read alike.
    pub tables: usize,
    /// Streams that mean harm and were refused.
    pub refused: usize,
    /// What differs, or did not run to its end.
    pub problems: Vec<String>,
    /// A line for each run.
    text: String,
}

/// `campaign streams [RELEASE]`
pub fn campaign(words: &[&str]) -> Outcome {
    let release = match words {
        [] => members::known_release("5.0")?,
        [release] => members::known_release(release)?,
        _ => return Err(super::USAGE.into()),
    };
    let begun = Instant::now();
    let found = run(release, &ALL)?;
    let text = format!(
        "Commit {}; Cassandra {release}; {} s. Again: `cargo xtask campaign streams {}`. \
         {} tables alike, {} wrong.\n\n{}\n",
        super::commit()?,
        begun.elapsed().as_secs(),
        words.join(" "),
        found.tables,
        found.problems.len(),
        found.text,
    );
    println!("recorded in {}", super::record(&super::named("streams", words), &text)?.display());
    match found.problems.is_empty() {
        true => Ok(()),
        false => Err(found.problems.join("\n").into()),
    }
}

/// Some of them.
pub fn share() -> Outcome<Found> {
    run(members::known_release("5.0")?, &SHARE)
}

fn run(release: &'static str, runs: &[Run]) -> Outcome<Found> {
    machine::need(&["python3"])?;
    let layout = Layout { ours: 2, theirs: 1, centers: 3, release, ..Layout::default() };
    let ring = members::start_with(&layout, HEAP)?;
    let mut found = Found::default();
    for (number, (from, to, kind)) in runs.iter().enumerate() {
        let (Some(from), Some(to)) = (ring.get(*from), ring.get(*to)) else { continue };
        fetch(&mut found, (from, to), kind, number)?;
    }
    // the first fetch of every list is one of a Helenus
    let target = runs.first().and_then(|(_, to, _)| ring.get(*to));
    if let Some(target) = target {
        refuse(&mut found, target, &keyspace(0))?;
    }
    members::stop()?;
    Ok(found)
}

fn fetch(found: &mut Found, (from, to): (&Member, &Member), kind: &str, number: usize) -> Outcome {
    let what = format!("{kind} SSTables of {} by {}", name(from), name(to));
    println!("{what}");
    let mut command = Command::new("python3");
    command.arg(machine::root().join("conformance/streaming/streams.py"));
    command.args([kind, &keyspace(number)]).args(words(from)).arg("--").args(words(to));
    let (done, text) = machine::output(&mut command)?;
    let wrong: Vec<_> = text.lines().filter(|line| line.starts_with("WRONG: ")).collect();
    found.tables += text.lines().filter(|line| line.ends_with(" rows")).count();
    found.problems.extend(wrong.iter().map(|line| format!("{what}: {line}")));
    if !done && wrong.is_empty() {
        let last = text.lines().last().unwrap_or_default();
        found.problems.push(format!("{what}: not run to its end: {last}"));
    }
    let took = text.lines().find(|line| line.starts_with("rebuild took ")).unwrap_or_default();
    writeln!(found.text, "- {what}: {took}, {} wrong", wrong.len())?;
    Ok(())
}

/// Streams that mean harm, against a node that has a keyspace.
fn refuse(found: &mut Found, node: &Member, keyspace: &str) -> Outcome {
    let mut command = Command::new("python3");
    command.arg(machine::root().join("conformance/streaming/hostile.py"));
    command.args([&node.ip, keyspace]).arg(node.dir.join("data"));
    let (done, text) = machine::output(&mut command)?;
    let (refused, wrong): (Vec<_>, Vec<_>) = text
        .lines()
        .filter(|line| line.starts_with("refused: ") || line.starts_with("WRONG: "))
        .partition(|line| line.starts_with("refused: "));
    found.refused = refused.len();
    found.problems.extend(wrong.iter().map(|line| format!("streams that mean harm: {line}")));
    if !done && wrong.is_empty() {
        let last = text.lines().last().unwrap_or_default();
        found.problems.push(format!("streams that mean harm: not run to their end: {last}"));
    }
    writeln!(found.text, "- {} streams that mean harm refused", found.refused)?;
    Ok(())
}

fn keyspace(number: usize) -> String {
    format!("streams_{number}")
}

fn name(member: &Member) -> &'static str {
    if member.is_ours { "Helenus" } else { "Cassandra" }
}

/// Host, data centre and nodetool of a node, for the script.
fn words(member: &Member) -> Vec<OsString> {
    let nodetool = member.tool();
    let place = [member.ip.as_str(), member.center.as_str()].map(OsString::from);
    let command = std::iter::once(nodetool.get_program()).chain(nodetool.get_args());
    place.into_iter().chain(command.map(ToOwned::to_owned)).collect()
}
