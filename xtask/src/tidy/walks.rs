//! The walks of `ARCHITECTURE.md` are short: a numbered line a file, each named once, in order. The
//! page itself is short, too.

use std::collections::BTreeSet;

use super::Report;
use super::tree::Tree;

const PAGE: &str = "ARCHITECTURE.md";
/// Words that the page may have: what is read at one sitting.
const WORDS_MAX: usize = 1_800;
/// Files that a walk may pass through.
const FILES_MAX: usize = 14;
const WALKS: [&str; 2] = ["## The walk of one INSERT", "## The walk of one SELECT"];

pub fn check(tree: &Tree, report: &mut Report) {
    let Some(page) = tree.text(PAGE) else { return };
    let words = page.split_whitespace().count();
    report.count(format!("words in {PAGE}: {words}, of {WORDS_MAX}"));
    if words > WORDS_MAX {
        report.problem(format!("{PAGE}: {words} words, at most {WORDS_MAX}"));
    }
    for walk in WALKS {
        let files: Vec<&str> = files(page, walk).collect();
        report.count(format!("files in {}: {}, of {FILES_MAX}", &walk[3..], files.len()));
        if files.is_empty() || files.len() > FILES_MAX {
            let count = files.len();
            report.problem(format!("{PAGE}: {walk} passes {count} files, wanted 1 to {FILES_MAX}"));
        }
        let mut seen = BTreeSet::new();
        for file in files {
            if !tree.names.iter().any(|name| name == file) {
                report.problem(format!("{PAGE}: {walk} names {file}, which is not there"));
            }
            if !seen.insert(file) {
                report.problem(format!("{PAGE}: {walk} names {file} twice"));
            }
        }
    }
}

/// The files of a walk: what stands between backticks at the begin of each numbered line.
fn files<'a>(page: &'a str, walk: &str) -> impl Iterator<Item = &'a str> {
    let section = page.lines().skip_while(move |line| *line != walk).skip(1);
    let section = section.take_while(|line| !line.starts_with("## "));
    let numbered = section.filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    numbered.map(|line| line.split('`').nth(1).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{FILES_MAX, PAGE, WALKS, WORDS_MAX, check};
    use crate::tidy::problems_of;

    fn problems(insert: &str, select: &str) -> usize {
        let page = format!("{}\n{insert}\n{}\n{select}\n", WALKS[0], WALKS[1]);
        problems_of(check, &[(PAGE, &page), ("a.rs", ""), ("b.rs", "")]).len()
    }

    #[test]
    fn sees_walks_that_lead_nowhere_or_are_long() {
        let good = "1. `a.rs` reads.\n2. `b.rs` writes.";
        assert_eq!(problems(good, good), 0);
        assert_eq!(problems(good, ""), 1);
        assert_eq!(problems(good, "1. `c.rs` is gone."), 1);
        assert_eq!(problems("1. Reads.", good), 1);
        assert_eq!(problems("1. `a.rs` reads.\n2. `a.rs` writes.", good), 1);
        let long = "1. `a.rs` reads.\n".repeat(FILES_MAX + 1);
        assert_eq!(problems(&long, good), 1 + FILES_MAX);
    }

    #[test]
    fn sees_a_page_that_is_long() {
        let long = format!("1. `a.rs` reads.\n\n{}", "word ".repeat(WORDS_MAX));
        assert_eq!(problems(&long, "1. `b.rs`"), 1);
    }
}
