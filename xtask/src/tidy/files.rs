//! What each file must have and what none may have.

use std::collections::BTreeSet;

use super::Report;
use super::tree::{Tree, extension};

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

/// Programs that are not built once more for tests, as they have none.
const UNTESTED: [&str; 4] = [
    "bin/helenus/src/main.rs",
    "bin/nodetool/src/main.rs",
    "bench/insn/src/main.rs",
    "crates/sim/src/main.rs",
];

/// What may stand at the root of the tree: whatever else is there was left behind by a run.
const AT_ROOT: [&str; 20] = [
    ".cargo",
    ".ci",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "GUARANTEES.md",
    "LICENSE",
    "README.md",
    "bench",
    "bin",
    "clippy.toml",
    "conformance",
    "crates",
    "docs",
    "fuzz",
    "packaging",
    "rustfmt.toml",
    "xtask",
];

/// What stands at the root and should not.
fn strays(tree: &Tree) -> BTreeSet<&str> {
    let roots = tree.names.iter().filter_map(|name| name.split('/').next());
    roots.filter(|root| !AT_ROOT.contains(root)).collect()
}

pub fn check(tree: &Tree, report: &mut Report) {
    for stray in strays(tree) {
        report.problem(format!("{stray}: does not belong at the root of the tree"));
    }
    for (name, text) in tree.texts() {
        for problem in file_problems(name, extension(name), text) {
            report.problem(format!("{name}: {problem}"));
        }
        if UNTESTED.contains(&name) && text.contains("cfg(test)") {
            report.problem(format!("{name}: its manifest says that it has no tests"));
        }
    }
    report.count(format!("files: {}, of them {} of Rust", tree.len(), tree.sources().count()));
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

#[cfg(test)]
mod tests {
    use super::{MACHINE_PATHS, NOWHERE, STATE, UNTESTED, check, file_problems};
    use crate::tidy::problems_of;

    #[test]
    fn sees_what_is_wrong_with_a_file() {
        assert!(file_problems("a.rs", "rs", "//! Good.\n").is_empty());
        assert_eq!(file_problems("a.rs", "rs", "fn a() {}\n").len(), 1);
        assert_eq!(file_problems("a.rs", "rs", "//! \u{e9}\n").len(), 1);
        for word in NOWHERE.iter().chain(STATE) {
            assert_eq!(file_problems("a.rs", "rs", &format!("//! {word}\n")).len(), 1, "{word}");
        }
        let state = format!("//! {}\n", STATE[0]);
        assert!(file_problems("crates/env/a.rs", "rs", &state).is_empty());
        for path in MACHINE_PATHS {
            assert_eq!(file_problems("a.md", "md", &format!("see {path}\n")).len(), 1, "{path}");
        }
    }

    #[test]
    fn sees_what_a_run_left_behind() {
        assert_eq!(problems_of(check, &[("127.0.0.1/server.key", "")]).len(), 1);
        assert!(problems_of(check, &[("docs/a.md", "")]).is_empty());
    }

    #[test]
    fn sees_tests_where_none_are_built() {
        let text = "//! A program.\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(problems_of(check, &[(UNTESTED[0], text)]).len(), 1);
        assert!(problems_of(check, &[("crates/a/src/lib.rs", text)]).is_empty());
    }
}
