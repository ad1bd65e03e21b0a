//! Rules of the tree that no compiler checks: what each file must have, what none may have, who may
//! depend on whom.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::machine::{self, Outcome};

/// A file that is longer is not read at one sitting.
const MAX_LINES: usize = 1_000;
/// File types that are text of ours.
const TEXT: &[&str] =
    &["rs", "toml", "md", "py", "java", "go", "js", "cql", "xml", "sh", "json", "yaml", "yml"];
/// Folders of a developer's or builder's own machine; in pieces, so that this file obeys its own
/// rule.
const MACHINE_PATHS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];
/// Words that no Rust file of ours may hold, in pieces for the same reason.
const NOWHERE: &[&str] =
    &[concat!("FIX", "ME"), concat!("// XX", "X"), concat!("db", "g!("), concat!("to", "do!(")];
/// State that does not hang on a shard's context: for crate `env` alone.
const STATE: &[&str] = &[
    concat!("thread_", "local!"),
    concat!("static ", "mut "),
    concat!("lazy_", "static"),
    concat!("Once", "Lock<"),
    concat!("Lazy", "Lock<"),
];

/// Which of our crates each of our crates may name. A new edge is a decision: it is made here.
const EDGES: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("rows", &["types"]),
    ("schema", &["types", "rows"]),
    ("sstable", &["types", "rows", "schema", "metrics"]),
    ("cql", &["types", "schema", "rows"]),
    ("segment", &[]),
    ("heap", &[]),
    ("protocol", &["types", "segment"]),
    ("config", &[]),
    ("metrics", &[]),
    ("env", &["types"]),
    ("storage", &["env", "types", "rows", "schema", "sstable", "metrics", "config"]),
    ("hints", &["types", "env", "sstable"]),
    ("gossip", &["types"]),
    ("ring", &["types", "schema", "protocol"]),
    ("internode", &["types", "rows", "schema", "segment"]),
    ("tls", &["env"]),
    ("messaging", &["types", "internode", "metrics", "env", "tls"]),
    (
        "cluster",
        &[
            "types",
            "rows",
            "schema",
            "sstable",
            "protocol",
            "cql",
            "config",
            "metrics",
            "env",
            "storage",
            "gossip",
            "hints",
            "ring",
            "internode",
            "messaging",
        ],
    ),
    (
        "server",
        &[
            "types", "rows", "schema", "cql", "protocol", "config", "metrics", "env", "storage",
            "cluster", "tls",
        ],
    ),
    (
        "admin",
        &["types", "rows", "schema", "config", "metrics", "env", "storage", "cluster", "server"],
    ),
];

/// What was looked at and what is wrong.
pub struct Report {
    pub files: usize,
    pub problems: Vec<String>,
}

/// `tidy`
pub fn run() -> Outcome {
    let report = check()?;
    for problem in &report.problems {
        println!("{problem}");
    }
    println!("{} files, {} problems", report.files, report.problems.len());
    if report.problems.is_empty() { Ok(()) } else { Err("the tree is not tidy".into()) }
}

/// Programs that are not built once more for tests, as they have none.
const UNTESTED: [&str; 4] = [
    "bin/helenus/src/main.rs",
    "bin/nodetool/src/main.rs",
    "bench/insn/src/main.rs",
    "crates/sim/src/main.rs",
];

/// Files of tests that no program of tests has.
fn test_problems(root: &Path) -> Outcome<Vec<String>> {
    let mut problems = Vec::new();
    for folder in std::fs::read_dir(root.join("crates"))? {
        let tests = folder?.path().join("tests");
        let Ok(all) = std::fs::read_to_string(tests.join("all.rs")) else { continue };
        let manifest = std::fs::read_to_string(tests.with_file_name("Cargo.toml"))?;
        for file in std::fs::read_dir(&tests)? {
            let path = file?.path();
            let is_test =
                path.extension().is_some_and(|e| e == "rs") || path.join("main.rs").exists();
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let is_run = all.contains(&format!("mod {name};"))
                || manifest.contains(&format!("path = \"tests/{name}.rs\""));
            if is_test && !is_run {
                problems.push(format!("{}: no program of tests has it", path.display()));
            }
        }
    }
    Ok(problems)
}

/// Looks at every file that git tracks or would track.
pub fn check() -> Outcome<Report> {
    let root = machine::root();
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()?;
    let mut report = Report { files: 0, problems: Vec::new() };
    for name in String::from_utf8(listed.stdout)?.lines() {
        let extension = Path::new(name).extension().and_then(|e| e.to_str()).unwrap_or_default();
        let golden = name.starts_with("conformance/golden/") || name.starts_with("bench/results/");
        if !TEXT.contains(&extension) || golden {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(name)) else { continue };
        report.files += 1;
        report.problems.extend(
            file_problems(name, extension, &text).into_iter().map(|p| format!("{name}: {p}")),
        );
    }
    report.problems.extend(edge_problems(&root)?);
    report.problems.extend(test_problems(&root)?);
    for file in UNTESTED {
        if std::fs::read_to_string(root.join(file))?.contains("cfg(test)") {
            report.problems.push(format!("{file}: its manifest says that it has no tests"));
        }
    }
    report.problems.extend(branch_problems(&root)?);
    Ok(report)
}

fn file_problems(name: &str, extension: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(path) = MACHINE_PATHS.iter().find(|p| text.contains(**p)) {
        problems.push(format!("names a folder of one machine ({path})"));
    }
    if extension != "rs" {
        return problems;
    }
    if !text.starts_with("//!") {
        problems.push("does not begin with `//!` and what it is".to_owned());
    }
    if let Some((n, _)) = text.lines().enumerate().find(|(_, l)| !l.is_ascii()) {
        problems.push(format!("line {} is not ASCII", n + 1));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        problems.push(format!("{lines} lines, at most {MAX_LINES}"));
    }
    problems.extend(NOWHERE.iter().filter(|w| text.contains(**w)).map(|w| format!("holds {w}")));
    // libFuzzer calls a target with nothing but an input
    let is_env = name.starts_with("crates/env/") || name.starts_with("fuzz/");
    if !is_env {
        problems.extend(
            STATE
                .iter()
                .filter(|w| text.contains(**w))
                .map(|w| format!("holds {w}, state outside a context")),
        );
    }
    problems
}

/// Where the simulator's list of branches is that must be reached.
const COVERAGE: &str = "crates/sim/src/coverage.rs";

/// Every branch that the code names for the simulator must be one that its runs have to reach.
fn branch_problems(root: &Path) -> Outcome<Vec<String>> {
    let required = std::fs::read_to_string(root.join(COVERAGE))?;
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "crates/*/src/*.rs"])
        .current_dir(root)
        .output()?;
    let mut problems = Vec::new();
    for file in String::from_utf8(listed.stdout)?.lines() {
        if file.starts_with("crates/env/") || file.starts_with("crates/sim/") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let missing = branches(&text).into_iter();
        let missing = missing.filter(|name| !required.contains(&format!("\"{name}\"")));
        problems.extend(missing.map(|name| format!("{file}: branch {name} is not in {COVERAGE}")));
    }
    Ok(problems)
}

/// The names in calls of `mark`.
fn branches(text: &str) -> Vec<&str> {
    let calls = text.split(".mark(").skip(1).filter_map(|rest| rest.split_once(')'));
    calls.flat_map(|(call, _)| call.split('"').skip(1).step_by(2)).collect()
}

/// The edges between our crates as their manifests state them, against the table.
fn edge_problems(root: &Path) -> Outcome<Vec<String>> {
    let table: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let mut problems = Vec::new();
    let mut folders: Vec<_> = std::fs::read_dir(root.join("crates"))?.collect::<Result<_, _>>()?;
    folders.sort_by_key(std::fs::DirEntry::file_name);
    for folder in folders {
        let name = folder.file_name().to_string_lossy().into_owned();
        let Ok(manifest) = std::fs::read_to_string(folder.path().join("Cargo.toml")) else {
            continue;
        };
        if name == "sim" || name == "powercut" {
            continue; // what runs whole nodes may name everything
        }
        let Some(allowed) = table.get(name.as_str()) else {
            problems.push(format!("crates/{name}: not in the table of edges (xtask/src/tidy.rs)"));
            continue;
        };
        for used in dependencies(&manifest) {
            let ours = used == "sim" || table.contains_key(used.as_str());
            if ours && !allowed.contains(&used.as_str()) {
                problems
                    .push(format!("crates/{name}: may not depend on {used} (xtask/src/tidy.rs)"));
            }
        }
    }
    Ok(problems)
}

/// Names under `[dependencies]`; tests may use more.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            inside = line == "[dependencies]"
                || (line.starts_with("[target.") && line.ends_with(".dependencies]"));
        } else if inside && let Some((name, _)) = line.split_once(['=', '.']) {
            names.push(name.trim().to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{branches, check, dependencies, file_problems};

    #[test]
    fn the_tree_is_tidy() {
        let report = check().expect("the tree can be read");
        assert!(report.problems.is_empty(), "{}", report.problems.join("\n"));
    }

    #[test]
    fn sees_what_is_wrong_with_a_file() {
        assert!(file_problems("a.rs", "rs", "//! Good.\n").is_empty());
        assert_eq!(file_problems("a.rs", "rs", "fn a() {}\n").len(), 1);
        assert_eq!(file_problems("a.rs", "rs", "//! \u{e9}\n").len(), 1);
        assert_eq!(file_problems("a.rs", "rs", &format!("//! {}\n", super::NOWHERE[0])).len(), 1);
        assert_eq!(file_problems("a.rs", "rs", &format!("//! {}\n", super::STATE[0])).len(), 1);
        assert!(
            file_problems("crates/env/a.rs", "rs", &format!("//! {}\n", super::STATE[0]))
                .is_empty()
        );
        assert_eq!(
            file_problems("a.md", "md", &format!("see {}\n", super::MACHINE_PATHS[0])).len(),
            1
        );
        assert_eq!(file_problems("a.rs", "rs", &"//! x\n".repeat(super::MAX_LINES + 1)).len(), 1);
    }

    #[test]
    fn reads_the_branches_that_code_names() {
        let text =
            "env.mark(\"a.b\");\nself.env.mark(if x { \"c\" } else { \"d\" });\nremark(\"e\");";
        assert_eq!(branches(text), ["a.b", "c", "d"]);
    }

    #[test]
    fn reads_the_dependencies_of_a_manifest() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\ntypes.workspace = true\nrows = { path = \"x\" }\n[dev-dependencies]\nsim.workspace = true\n";
        assert_eq!(dependencies(manifest), ["types", "rows"]);
    }
}
