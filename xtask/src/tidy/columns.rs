//! No line of Rust is longer than rustfmt would have it: comments and strings too, which rustfmt
//! leaves as they are.

use std::collections::BTreeMap;

use super::Report;
use super::ceiling::{Table, differences};
use super::tree::{Tree, folder_of};

const COLUMNS_MAX: usize = 100;
/// Lines of comments that are longer still, by crate.
const COMMENTS_LEFT: &Table = &[];
/// Lines that are longer for a string, by crate.
const STRINGS_LEFT: &Table = &[
    ("bench/insn", 2),
    ("bench/load", 12),
    ("bench/point", 3),
    ("bin/helenus", 4),
    ("bin/nodetool", 4),
    ("conformance/drivers", 12),
    ("crates/admin", 52),
    ("crates/cluster", 35),
    ("crates/config", 18),
    ("crates/cql", 135),
    ("crates/env", 1),
    ("crates/hints", 2),
    ("crates/internode", 15),
    ("crates/metrics", 7),
    ("crates/node", 14),
    ("crates/powercut", 2),
    ("crates/protocol", 20),
    ("crates/ring", 19),
    ("crates/rows", 5),
    ("crates/schema", 39),
    ("crates/segment", 5),
    ("crates/server", 4),
    ("crates/sim", 4),
    ("crates/sstable", 8),
    ("crates/storage", 25),
    ("crates/types", 19),
    ("xtask", 114),
];

pub fn check(tree: &Tree, report: &mut Report) {
    check_with(tree, report, COMMENTS_LEFT, STRINGS_LEFT);
}

fn check_with(tree: &Tree, report: &mut Report, comments_left: &Table, strings_left: &Table) {
    let (mut comments, mut strings) = (BTreeMap::new(), BTreeMap::new());
    for (name, text) in tree.texts().filter(|(name, _)| tree.source(name).is_some()) {
        for line in text.lines().filter(|line| line.chars().count() > COLUMNS_MAX) {
            let is_comment = line.trim_start().starts_with("//");
            let over = if is_comment { &mut comments } else { &mut strings };
            *over.entry(folder_of(name)).or_default() += 1;
        }
    }
    let sum = |over: &BTreeMap<String, usize>| over.values().sum::<usize>();
    report.count(format!(
        "columns: {} lines of comments and {} with strings over {COLUMNS_MAX}",
        sum(&comments),
        sum(&strings)
    ));
    for (what, over, left) in
        [("comments", comments, comments_left), ("strings", strings, strings_left)]
    {
        let what = format!("{what} over {COLUMNS_MAX} columns");
        let problems = differences(&what, &over, left);
        problems.into_iter().for_each(|problem| report.problem(problem));
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS_MAX, check_with};
    use crate::tidy::ceiling::Table;
    use crate::tidy::problems_of;

    fn problems(line: &str, comments: &Table, strings: &Table) -> Vec<String> {
        let rule = |tree: &_, report: &mut _| check_with(tree, report, comments, strings);
        problems_of(rule, &[("crates/a/src/b.rs", line), ("crates/a/c.md", line)])
    }

    #[test]
    fn sees_a_line_that_is_too_long() {
        let comment = format!("// {}", "x".repeat(COLUMNS_MAX - 3));
        assert!(problems(&comment, &[], &[]).is_empty());
        let comment = comment + "y";
        assert_eq!(
            problems(&comment, &[], &[]),
            ["crates/a: comments over 100 columns: 1, at most 0"]
        );
        assert!(problems(&comment, &[("crates/a", 1)], &[]).is_empty());
        let string = format!("f(\"{}\");", "x".repeat(COLUMNS_MAX));
        assert_eq!(
            problems(&string, &[], &[]),
            ["crates/a: strings over 100 columns: 1, at most 0"]
        );
        assert_eq!(problems("//", &[("crates/a", 1)], &[("crates/a", 1)]).len(), 2);
    }
}
