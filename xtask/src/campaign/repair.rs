//! `cargo xtask campaign repair RELEASE`: replicas in rings of Cassandra and Helenus are made to
//! differ in each way there is, and repaired by each kind of node in each way of a table
//! (`conformance/repair/differ.py`). Recorded under `docs/campaigns/`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::members::{self, Layout, Member};

const HEAP: &str = "768M";
/// Tokens of a node: few, so that a range has several differences.
const TOKENS: u16 = 4;
/// Nothing but a repair brings replicas together; and no warning of the fill hides another.
const SETTINGS: &str = "hinted_handoff_enabled: false\nbatch_size_warn_threshold: 64KiB\n\
                        batch_size_fail_threshold: 640KiB\n";

/// Nodes of Cassandra and of Helenus.
const LAYOUTS: [(u8, u8); 2] = [(2, 1), (1, 2)];
/// That of `cargo xtask test`.
const SHARE: (u8, u8) = (1, 2);

/// Who is told to repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Cassandra,
    Helenus,
}

/// A way to repair.
struct Way {
    name: &'static str,
    /// What nodetool is told.
    words: &'static str,
    /// What of the keyspace is repaired, in the script's words.
    scope: &'static str,
}

const FULL: Way = Way { name: "full", words: "-full", scope: "all" };
const WAYS: [Way; 8] = [
    FULL,
    Way { name: "sequential", words: "-full -seq", scope: "all" },
    Way { name: "centers", words: "-full -dcpar", scope: "all" },
    Way { name: "optimised", words: "-full -os", scope: "all" },
    Way { name: "threads", words: "-full -j 4", scope: "all" },
    Way { name: "primary", words: "-full -pr", scope: "each" },
    Way { name: "range", words: "-full", scope: "range" },
    Way { name: "table", words: "-full", scope: "table" },
];
/// Those of `--with incremental`.
const INCREMENTAL: [Way; 5] = [
    Way { name: "incremental", words: "", scope: "all" },
    Way { name: "incremental-sequential", words: "-seq", scope: "all" },
    Way { name: "incremental-primary", words: "-pr", scope: "each" },
    Way { name: "incremental-range", words: "", scope: "range" },
    Way { name: "incremental-table", words: "", scope: "table" },
];

/// A way to repair, by one of a ring.
struct Scenario {
    ring: (u8, u8),
    by: By,
    way: &'static Way,
}

impl Scenario {
    fn ring_name((theirs, ours): (u8, u8)) -> String {
        "j".repeat(theirs.into()) + &"h".repeat(ours.into())
    }

    fn name(&self) -> String {
        let by = if self.by == By::Cassandra { "j" } else { "h" };
        format!("{}-{}-by-{by}", Self::ring_name(self.ring), self.way.name)
    }

    /// For the script: the first node of its kind is told.
    fn word(&self) -> String {
        let place = if self.by == By::Cassandra { 0 } else { self.ring.0 };
        format!("{}={place}={}={}", self.name(), self.way.scope, self.way.words)
    }
}

/// What came of it.
#[derive(Default)]
pub struct Found {
    /// Checks that hold.
    pub held: usize,
    /// What does not hold, or did not run to its end.
    pub problems: Vec<String>,
    /// A line for each scenario.
    text: String,
}

/// What is asked for.
#[derive(Default)]
struct Asked<'a> {
    only: Option<&'a str>,
    is_incremental: bool,
    is_list: bool,
}

impl<'a> Asked<'a> {
    fn parse(words: &[&'a str]) -> Outcome<Self> {
        let mut asked = Self::default();
        let mut rest = words;
        while let [word, more @ ..] = rest {
            rest = match (*word, more) {
                ("--list", more) => {
                    asked.is_list = true;
                    more
                }
                ("--with", ["incremental", more @ ..]) => {
                    asked.is_incremental = true;
                    more
                }
                ("--only", [name, more @ ..]) => {
                    asked.only = Some(name);
                    more
                }
                _ => return Err(super::USAGE.into()),
            };
        }
        Ok(asked)
    }

    /// A name is that of a scenario or begins it.
    fn scenarios(&self) -> Vec<Scenario> {
        let ways = || WAYS.iter().chain(INCREMENTAL.iter().filter(|_| self.is_incremental));
        let of_ring = |ring| {
            let by = |way| [By::Cassandra, By::Helenus].map(|by| Scenario { ring, by, way });
            ways().flat_map(by).collect::<Vec<_>>()
        };
        let mut all: Vec<Scenario> = LAYOUTS.into_iter().flat_map(of_ring).collect();
        all.retain(|one| self.only.is_none_or(|name| one.name().starts_with(name)));
        all
    }
}

/// `campaign repair RELEASE [--with incremental] [--only NAME | --list]`
pub fn campaign(words: &[&str]) -> Outcome {
    let [release, options @ ..] = words else { return Err(super::USAGE.into()) };
    let release = members::known_release(release)?;
    let asked = Asked::parse(options)?;
    let scenarios = asked.scenarios();
    if asked.is_list {
        scenarios.iter().for_each(|one| println!("{:40} {}", one.name(), one.way.words));
        return Ok(());
    }
    if scenarios.is_empty() {
        return Err("no such scenario: `--list` names them".into());
    }
    let begun = Instant::now();
    let mut found = Found::default();
    for ring in LAYOUTS {
        let of_ring: Vec<_> = scenarios.iter().filter(|one| one.ring == ring).collect();
        if !of_ring.is_empty() {
            run(release, ring, &of_ring, &mut found)?;
        }
    }
    let text = record(release, words, &found, begun)?;
    let named: Vec<&str> = words.iter().copied().filter(|word| !word.starts_with("--")).collect();
    println!("recorded in {}", super::record(&super::named("repair", &named), &text)?.display());
    match found.problems.is_empty() {
        true => Ok(()),
        false => Err(found.problems.join("\n").into()),
    }
}

/// The share of `cargo xtask test`: a full repair by each kind.
pub fn share() -> Outcome<Found> {
    let by = |by| Scenario { ring: SHARE, by, way: &FULL };
    let scenarios = [by(By::Helenus), by(By::Cassandra)];
    let mut found = Found::default();
    let of_ring: Vec<_> = scenarios.iter().collect();
    run(members::known_release("5.0")?, SHARE, &of_ring, &mut found)?;
    Ok(found)
}

fn record(release: &str, words: &[&str], found: &Found, begun: Instant) -> Outcome<String> {
    let mut text = format!(
        "Commit {}; Cassandra {release}; {} s. Again: `cargo xtask campaign repair {}`. \
         {} checks hold, {} do not.\n\n\
         | scenario | told | `nodetool repair` | differences that end, of all | it took |\n\
         |---|---|---|---|---|\n{}",
        super::commit()?,
        begun.elapsed().as_secs(),
        words.join(" "),
        found.held,
        found.problems.len(),
        found.text,
    );
    // a record names no folder of this machine
    let root = format!("{}/", machine::root().display());
    for problem in &found.problems {
        writeln!(text, "\n- {}", problem.replace(&root, ""))?;
    }
    Ok(text)
}

fn run(
    release: &'static str,
    ring: (u8, u8),
    scenarios: &[&Scenario],
    found: &mut Found,
) -> Outcome {
    machine::need(&["bash", "java", "mvn", "python3"])?;
    let (theirs, ours) = ring;
    let settings = SETTINGS.to_owned();
    let layout = Layout { ours, theirs, release, tokens: TOKENS, settings, ..Layout::default() };
    let members = members::start_with(&layout, HEAP)?;
    let scratch = members::home().join("exported");
    let mut command = Command::new("python3");
    command.arg(machine::root().join("conformance/repair/differ.py")).arg(scratch).arg(release);
    command.args(scenarios.iter().map(|one| one.word()));
    command.args(members.iter().flat_map(node));
    let (done, text) = machine::output(&mut command)?;
    let of = |head: &'static str| text.lines().filter_map(move |line| line.strip_prefix(head));
    let problems: Vec<_> = of("WRONG: ").map(str::to_owned).collect();
    found.held += of("ok ").count();
    if !done && problems.is_empty() {
        let last = text.lines().last().unwrap_or_default();
        let ring = Scenario::ring_name(ring);
        found.problems.push(format!("{ring}: not run to its end: {last}"));
    }
    of("figures ").try_for_each(|line| writeln!(found.text, "| {line} |"))?;
    if !problems.is_empty() {
        keep(&Scenario::ring_name(ring), &members)?;
    }
    found.problems.extend(problems);
    members::stop()
}

/// A node, for the script.
fn node(member: &Member) -> Vec<OsString> {
    let tool = member.tool();
    let kind = if member.is_ours { "ours" } else { "theirs" };
    let head = ["--node", kind, &member.ip].map(OsString::from);
    let dir = std::iter::once(member.dir.clone().into_os_string());
    let command = std::iter::once(tool.get_program()).chain(tool.get_args());
    head.into_iter().chain(dir).chain(command.map(ToOwned::to_owned)).collect()
}

/// Copies logs to where the next ring leaves them.
fn keep(name: &str, members: &[Member]) -> Outcome {
    let folder = machine::cache().join("repair").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    for member in members {
        let log = if member.is_ours { "stderr.log" } else { "log/system.log" };
        std::fs::copy(member.dir.join(log), folder.join(format!("{}.log", member.ip)))?;
    }
    println!("logs are in {}", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Asked;

    #[test]
    fn a_name_chooses_a_ring_or_a_scenario() {
        let count = |words: &[&str]| Asked::parse(words).map(|asked| asked.scenarios().len()).ok();
        assert_eq!(count(&[]), Some(32));
        assert_eq!(count(&["--only", "jhh"]), Some(16));
        assert_eq!(count(&["--only", "jhh-range-by-h"]), Some(1));
        assert_eq!(count(&["--with", "incremental", "--only", "jhh-incremental"]), Some(10));
        assert_eq!(count(&["--with", "nothing"]), None);
    }
}
