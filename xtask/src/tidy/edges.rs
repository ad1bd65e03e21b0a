//! Who may depend on whom: the edges between crates are those of a table, no more and no fewer, and
//! a crate names whatever its manifest has it built with.

use std::collections::BTreeSet;

use super::Report;
use super::dependencies::{crate_name, dependencies};
use super::source::words;
use super::tree::Tree;

/// A crate and those of our crates that it names.
type Edges = [(&'static str, &'static [&'static str])];

/// A new edge is a decision: it is made here.
const EDGES: &Edges = &[
    ("types", &[]),
    ("rows", &["types"]),
    ("schema", &["types", "rows"]),
    ("sstable", &["types", "rows", "metrics"]),
    ("cql", &["types", "rows", "schema"]),
    ("segment", &[]),
    ("heap", &[]),
    ("protocol", &["types", "segment"]),
    ("config", &[]),
    ("metrics", &[]),
    ("audit", &["types"]),
    ("logging", &["types", "metrics"]),
    ("env", &[]),
    ("doctor", &[]),
    ("storage", &["types", "rows", "schema", "sstable", "metrics", "env"]),
    ("hints", &["types", "sstable", "metrics", "env"]),
    ("gossip", &["types"]),
    ("ring", &["types", "schema", "protocol"]),
    ("internode", &["types", "rows", "schema", "segment"]),
    ("repair", &["types", "rows", "schema"]),
    ("tls", &["env"]),
    ("messaging", &["types", "metrics", "env", "internode", "tls"]),
    ("streaming", &["types", "schema", "sstable", "metrics", "env", "storage", "messaging"]),
    (
        "cluster",
        &[
            "types",
            "rows",
            "schema",
            "cql",
            "protocol",
            "config",
            "metrics",
            "audit",
            "env",
            "storage",
            "hints",
            "gossip",
            "ring",
            "internode",
            "messaging",
            "streaming",
            "repair",
        ],
    ),
    ("server", &["types", "protocol", "metrics", "env", "tls"]),
    ("admin", &["types", "metrics", "env", "tls", "doctor", "audit"]),
    // what a node consists of
    (
        "node",
        &[
            "types",
            "schema",
            "sstable",
            "protocol",
            "config",
            "doctor",
            "logging",
            "audit",
            "metrics",
            "env",
            "storage",
            "gossip",
            "ring",
            "internode",
            "tls",
            "messaging",
            "cluster",
            "server",
            "admin",
            "streaming",
        ],
    ),
];
/// What runs whole nodes may name everything.
const RUN_NODES: [&str; 2] = ["sim", "powercut"];

pub fn check(tree: &Tree, report: &mut Report) {
    check_with(tree, report, EDGES);
    // a driver's scenario is built with what its driver is built with
    for folder in tree.crates().into_iter().filter(|folder| !folder.starts_with("conformance/")) {
        for package in unused(tree, folder) {
            report.problem(format!("{folder}: depends on {package} and never names it"));
        }
    }
}

fn check_with(tree: &Tree, report: &mut Report, edges: &Edges) {
    let names: Vec<&str> =
        tree.crates().into_iter().filter_map(|folder| folder.strip_prefix("crates/")).collect();
    let mut count = 0;
    for name in &names {
        if RUN_NODES.contains(name) {
            continue;
        }
        let Some((_, allowed)) = edges.iter().find(|row| row.0 == *name) else {
            report.problem(format!("crates/{name}: not in the table of edges"));
            continue;
        };
        let manifest = tree.text(&format!("crates/{name}/Cargo.toml")).unwrap_or_default();
        let used: BTreeSet<String> =
            dependencies(manifest).into_iter().filter(|d| names.contains(&d.as_str())).collect();
        count += used.len();
        for other in used.iter().filter(|other| !allowed.contains(&other.as_str())) {
            report.problem(format!("crates/{name}: may not depend on {other}"));
        }
        for other in allowed.iter().filter(|other| !used.contains(**other)) {
            report.problem(format!("crates/{name}: the table allows {other}, which is not used"));
        }
    }
    for (name, _) in edges.iter().filter(|row| !names.contains(&row.0)) {
        report.problem(format!("crates/{name}: in the table of edges, and is no crate"));
    }
    report.count(format!("edges: {count} between {} crates", names.len()));
}

/// Packages that a crate of the workspace is built with and no file of its product names.
fn unused(tree: &Tree, folder: &str) -> Vec<String> {
    let manifest = tree.text(&format!("{folder}/Cargo.toml")).unwrap_or_default();
    let mut packages = dependencies(manifest);
    for (_, source) in tree.product_of(folder) {
        packages.retain(|package| !is_named(&source.product, &crate_name(package)));
    }
    packages
}

/// Does a path begin with this crate's name, or does a `use` take it?
fn is_named(code: &str, name: &str) -> bool {
    words(code, name).any(|at| {
        let (before, after) = (code[..at].trim_end(), code[at + name.len()..].trim_start());
        let is_first = !before.ends_with("::") || before.trim_end_matches("::").ends_with(' ');
        is_first && (after.starts_with("::") || (before.ends_with("use") && !after.is_empty()))
    })
}

#[cfg(test)]
mod tests {
    use super::{check_with, is_named, unused};
    use crate::tidy::problems_of;
    use crate::tidy::tree::Tree;

    fn problems(edges: &super::Edges) -> Vec<String> {
        let files = [
            ("crates/a/Cargo.toml", "[dependencies]\nb.workspace = true\nother = \"1\"\n"),
            ("crates/a/src/lib.rs", ""),
            ("crates/b/Cargo.toml", ""),
            ("crates/b/src/lib.rs", ""),
        ];
        problems_of(|tree, report| check_with(tree, report, edges), &files)
    }

    #[test]
    fn the_table_is_exact() {
        assert!(problems(&[("a", &["b"]), ("b", &[])]).is_empty());
        let cases: [(&super::Edges, &str); 4] = [
            (&[("a", &[]), ("b", &[])], "crates/a: may not depend on b"),
            (&[("a", &["b"]), ("b", &["a"])], "crates/b: the table allows a, which is not used"),
            (&[("a", &["b"])], "crates/b: not in the table of edges"),
            (
                &[("a", &["b"]), ("b", &[]), ("c", &[])],
                "crates/c: in the table of edges, and is no crate",
            ),
        ];
        for (edges, problem) in cases {
            assert_eq!(problems(edges), [problem]);
        }
    }

    #[test]
    fn sees_what_no_file_names() {
        let manifest = "[dependencies]\nmd-5 = \"1\"\nrows.workspace = true\n";
        let unused =
            |code| unused(&Tree::of(&[("a/Cargo.toml", manifest), ("a/src/lib.rs", code)]), "a");
        assert!(unused("use md5::Md5;\nfn f() { rows::g() }").is_empty());
        assert_eq!(unused("use md5::Md5;\n// rows::g\n"), ["rows"]);
        assert_eq!(unused("#[cfg(test)]\nuse md5::Md5;\nuse crate::rows::g;"), ["md-5", "rows"]);
        assert!(is_named("use serde;", "serde") && is_named("fn f() -> ::a::B {}", "a"));
        assert!(!is_named("let serde = 1;", "serde"));
    }
}
