//! Rules of the tree that no compiler checks: who may depend on whom, how long files, functions and
//! lines are, what each file must have and what none may have.
//!
//! A rule is a file. It reads the [`Tree`], adds what it counted and what is wrong to the
//! [`Report`], and has a test that plants the fault. Where a rule does not hold everywhere yet, it
//! has a table of what is left: the number there must be the number found, so that it only falls.

mod assertions;
mod branches;
mod ceiling;
mod circles;
mod columns;
mod dependencies;
mod edges;
mod files;
mod functions;
mod lengths;
mod modules;
mod named_paths;
mod paths;
mod source;
mod structs;
mod tests_run;
mod tree;
mod walks;

use crate::machine::{self, Outcome};

use tree::Tree;

/// What was looked at and what is wrong.
#[derive(Default)]
pub struct Report {
    pub files: usize,
    counts: Vec<String>,
    pub problems: Vec<String>,
}

impl Report {
    fn count(&mut self, what: String) {
        self.counts.push(what);
    }

    fn problem(&mut self, what: String) {
        self.problems.push(what);
    }
}

/// `tidy`
pub fn run() -> Outcome {
    let report = check()?;
    for count in &report.counts {
        println!("{count}");
    }
    for problem in &report.problems {
        println!("{problem}");
    }
    println!("{} files, {} problems", report.files, report.problems.len());
    if report.problems.is_empty() { Ok(()) } else { Err("the tree is not tidy".into()) }
}

/// Looks at every file that git tracks or would track.
pub fn check() -> Outcome<Report> {
    let tree = Tree::read(&machine::root())?;
    let mut report = Report { files: tree.len(), ..Report::default() };
    files::check(&tree, &mut report);
    lengths::check(&tree, &mut report);
    functions::check(&tree, &mut report);
    structs::check(&tree, &mut report);
    columns::check(&tree, &mut report);
    edges::check(&tree, &mut report);
    circles::check(&tree, &mut report);
    assertions::check(&tree, &mut report);
    tests_run::check(&tree, &mut report);
    branches::check(&tree, &mut report);
    named_paths::check(&tree, &mut report);
    walks::check(&tree, &mut report);
    Ok(report)
}

/// The problems that a rule finds in a tree of these files: what a test plants.
#[cfg(test)]
fn problems_of(rule: impl Fn(&Tree, &mut Report), files: &[(&str, &str)]) -> Vec<String> {
    let mut report = Report::default();
    rule(&Tree::of(files), &mut report);
    report.problems
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn the_tree_is_tidy() {
        let report = check().expect("the tree can be read");
        assert!(report.problems.is_empty(), "{}", report.problems.join("\n"));
    }

    #[test]
    fn each_rule_says_what_it_counted() {
        let report = check().expect("the tree can be read");
        let rules =
            ["edges", "circles", "file", "function", "structs", "columns", "assertions", "paths"];
        for what in rules {
            assert!(report.counts.iter().any(|count| count.contains(what)), "{what}");
        }
    }
}
