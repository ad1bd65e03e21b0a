//! The files and folders that `ARCHITECTURE.md` names are there.
//!
//! The page names a file by the end of its path, as far as its reader needs it, and leaves out
//! `src`: `cql/modify/cas.rs`, or `cas.rs` below the heading of its crate.

use std::collections::BTreeSet;

use super::Report;
use super::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
/// Folders of the tree's root.
const ROOTS: [&str; 7] = ["bench", "bin", "conformance", "crates", "docs", "fuzz", "xtask"];

pub fn check(tree: &Tree, report: &mut Report) {
    let page = tree.text(PAGE).unwrap_or_default();
    let ends = ends(tree);
    let crates: Vec<&str> =
        tree.crates().into_iter().filter_map(|folder| folder.rsplit('/').next()).collect();
    let mut count = 0;
    for span in spans(page).filter(|span| is_path(span, &crates)) {
        count += 1;
        if !ends.contains(span.trim_end_matches('/')) {
            report.problem(format!("{PAGE}: names {span}, which is not there"));
        }
    }
    report.count(format!("paths in {PAGE}: {count}"));
}

/// What stands between backticks on a line.
fn spans(page: &str) -> impl Iterator<Item = &str> {
    page.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

fn is_path(span: &str, crates: &[&str]) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let first = span.split_once('/').map(|(first, _)| first);
    span.chars().all(is_plain)
        && (span.ends_with(".rs")
            || first.is_some_and(|first| ROOTS.contains(&first) || crates.contains(&first)))
}

/// The ends of the paths of all files and folders, with and without `src`.
fn ends(tree: &Tree) -> BTreeSet<String> {
    let mut ends = BTreeSet::new();
    for name in &tree.names {
        let folders = name.match_indices('/').map(|(at, _)| &name[..at]);
        for path in folders.chain([name.as_str()]) {
            for path in [path.to_owned(), path.replace("/src", "")] {
                let starts = path.match_indices('/').map(|(at, _)| at + 1);
                ends.extend([0].into_iter().chain(starts).map(|at| path[at..].to_owned()));
            }
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::{PAGE, check};
    use crate::tidy::problems_of;

    #[test]
    fn sees_a_path_that_leads_nowhere() {
        let problems = |page: &str| {
            let files = [
                (PAGE, page),
                ("crates/a/Cargo.toml", ""),
                ("crates/a/src/lib.rs", ""),
                ("crates/a/src/b/c.rs", ""),
            ];
            problems_of(check, &files).len()
        };
        for good in ["crates/a/src/b/c.rs", "a/b/c.rs", "b/c.rs", "c.rs", "a/src/b", "crates/a/"] {
            assert_eq!(problems(&format!("see `{good}`")), 0, "{good}");
        }
        for bad in ["crates/a/b2", "a/c.rs", "d.rs", "a/d", "bin/a", "b.rs"] {
            assert_eq!(problems(&format!("see `{bad}`")), 1, "{bad}");
        }
        for other in ["/metrics", "a == b/c", "Type::new", "SELECT 1/2"] {
            assert_eq!(problems(&format!("see `{other}`")), 0, "{other}");
        }
    }
}
