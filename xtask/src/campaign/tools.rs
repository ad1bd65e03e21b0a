//! `cargo xtask campaign tools`: programs of Cassandra's world, unchanged from their registries, on
//! a node from our packages; and those packages in a Debian of their own. The scripts are in
//! `conformance/tools`; `docs/tools.md` says what each does. Recorded under `docs/campaigns/`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::node;
use crate::package::{self, Kind};

/// Addresses of nodes, which no stage of the tests has.
const RING: &str = "127.0.5.";
const MEDUSA: &str = "127.0.5.11";
const FIRST_QUERY: &str = "127.0.5.21";
const PROMETHEUS: &str = "127.0.5.31";
/// Tools of Debian, and their packages.
const OF_DEBIAN: &[(&str, &str)] = &[("prometheus", "prometheus"), ("promtool", "prometheus")];
const FOR_ROOTS: &[(&str, &str)] =
    &[("mmdebstrap", "mmdebstrap"), ("ip", "iproute2"), ("unshare", "util-linux")];
/// The release of Debian that the deb is tried in.
const SUITE: &str = "bookworm";

/// A tool, or a package of ours, and the script that tries it.
struct Row {
    what: &'static str,
    script: &'static str,
    kinds: &'static [Kind],
    /// The environment of Python with the tool, and the file that names what is in it.
    python: Option<(&'static str, &'static str)>,
    tools: &'static [(&'static str, &'static str)],
    /// What the script is given behind the packages.
    words: fn(&Path) -> Outcome<Vec<PathBuf>>,
    /// Is it a part of `cargo xtask test tools`?
    is_short: bool,
}

const ROWS: &[Row] = &[
    Row {
        what: "ccm 3.1.5 (PyPI)",
        script: "ccm_ring",
        kinds: &[Kind::Tarball],
        python: Some(("venv-ccm", "conformance/tools/ccm.txt")),
        tools: &[],
        words: |work| Ok(vec![work.join("ccm"), RING.into()]),
        is_short: true,
    },
    Row {
        what: "Medusa 0.31.0 (PyPI)",
        script: "medusa_restore",
        kinds: &[Kind::Tarball],
        python: Some(("venv-medusa", "conformance/tools/medusa.txt")),
        tools: &[],
        words: |work| Ok(vec![work.join("medusa"), MEDUSA.into()]),
        // at the lowest priority, and so for minutes where the machine is busy
        is_short: false,
    },
    Row {
        what: "Prometheus and promtool (Debian)",
        script: "prometheus",
        kinds: &[Kind::Tarball],
        python: None,
        tools: OF_DEBIAN,
        words: |work| Ok(vec![work.join("prometheus"), PROMETHEUS.into()]),
        is_short: true,
    },
    Row {
        what: "The first query from the wheel and from the tarball",
        script: "first_query",
        kinds: &[Kind::Wheel, Kind::Tarball],
        python: None,
        tools: &[],
        words: |work| Ok(vec![work.join("first"), FIRST_QUERY.into()]),
        is_short: true,
    },
    Row {
        what: "The deb in a Debian of its own",
        script: "deb_in_root",
        kinds: &[Kind::Deb],
        python: None,
        tools: FOR_ROOTS,
        words: |work| Ok(vec![debian()?, work.join("deb")]),
        is_short: false,
    },
    Row {
        what: "The image's entry point with each variable of Cassandra's image",
        script: "image_in_root",
        kinds: &[Kind::Image],
        python: None,
        tools: FOR_ROOTS,
        words: |work| Ok(vec![work.join("image")]),
        is_short: false,
    },
];

/// What scripts found.
#[derive(Default)]
pub struct Found {
    /// Steps that went well, a text each.
    pub passed: usize,
    /// What did not.
    pub problems: Vec<String>,
}

/// The part of `cargo xtask test tools`.
///
/// # Errors
/// If nothing can be tried.
pub fn short() -> Outcome<Found> {
    let mut found = Found::default();
    for (row, _, done) in tried(|row| row.is_short)? {
        found.passed += done.steps.len();
        found.problems.extend(done.problem.map(|problem| format!("{}: {problem}", row.what)));
    }
    Ok(found)
}

/// `campaign tools [SCRIPT...]`
pub fn campaign(words: &[&str]) -> Outcome {
    if let Some(unknown) = words.iter().find(|word| ROWS.iter().all(|row| row.script != **word)) {
        let names: Vec<&str> = ROWS.iter().map(|row| row.script).collect();
        return Err(format!("no tool {unknown}; there are {}", names.join(" ")).into());
    }
    let mut text = format!("Commit {}.\n", super::commit()?);
    let mut failed = 0;
    for (row, seconds, done) in tried(|row| words.is_empty() || words.contains(&row.script))? {
        let _ = writeln!(text, "\n{}, {seconds:.0} s (`{}.py`):\n", row.what, row.script);
        for step in done.steps {
            let _ = writeln!(text, "- {step}");
        }
        if let Some(problem) = done.problem {
            failed += 1;
            let _ = writeln!(text, "- **{problem}**");
        }
    }
    super::record(&super::named("tools", words), &text)?;
    if failed == 0 { Ok(()) } else { Err(format!("{failed} tools failed").into()) }
}

/// What a script did.
struct Done {
    steps: Vec<String>,
    problem: Option<String>,
}

/// Makes the packages that rows need, and tries them, each with its time in seconds.
fn tried(is_wanted: impl Fn(&Row) -> bool) -> Outcome<Vec<(&'static Row, f64, Done)>> {
    node::build()?;
    node::build_nodetool()?;
    let work = machine::cache().join("run/tools");
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work)?;
    let mut made: Vec<(Kind, PathBuf)> = Vec::new();
    let mut all = Vec::new();
    for row in ROWS.iter().filter(|row| is_wanted(row)) {
        let started = Instant::now();
        let done = try_row(row, &work, &mut made)
            .unwrap_or_else(|e| Done { steps: Vec::new(), problem: Some(e.to_string()) });
        all.push((row, started.elapsed().as_secs_f64(), done));
    }
    Ok(all)
}

fn try_row(row: &Row, work: &Path, made: &mut Vec<(Kind, PathBuf)>) -> Outcome<Done> {
    machine::install(row.tools)?;
    for kind in row.kinds {
        if made.iter().all(|(of, _)| of != kind) {
            let paths = package::make(&node::built_folder(), &[*kind], work)?;
            made.extend(paths.into_iter().map(|path| (*kind, path)));
        }
    }
    let python = match row.python {
        Some((name, requirements)) => machine::venv(name, requirements)?,
        None => machine::python()?,
    };
    let mut command = Command::new(python);
    command.arg(machine::root().join(format!("conformance/tools/{}.py", row.script)));
    for kind in row.kinds {
        command.args(made.iter().filter(|(of, _)| of == kind).map(|(_, path)| path));
    }
    let (done, text, errors) = machine::outputs(command.args((row.words)(work)?))?;
    let steps: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("ok ")).map(str::to_owned).collect();
    let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed");
    let problem = (!done || steps.is_empty()).then(|| last.to_owned());
    Ok(Done { steps, problem })
}

/// A root of Debian with what the deb depends on, made once.
fn debian() -> Outcome<PathBuf> {
    let path = machine::cache().join(format!("package/{SUITE}-plain.tar"));
    if !path.exists() {
        std::fs::create_dir_all(machine::cache().join("package"))?;
        let part = path.with_extension("part.tar");
        let mut debian = Command::new("mmdebstrap");
        debian.args(["--quiet", "--variant=essential", "--include=passwd", SUITE]).arg(&part);
        machine::run(&mut debian)?;
        std::fs::rename(part, &path)?;
    }
    Ok(path)
}
