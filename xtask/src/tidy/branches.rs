//! Every branch that the code names for the simulator is one that its runs have to reach.

use super::Report;
use super::tree::Tree;

/// Where the simulator's list of branches is that must be reached.
const COVERAGE: &str = "crates/sim/src/coverage.rs";
/// Crates that pass marks on, and name none of their own.
const PASS_ON: [&str; 2] = ["crates/env/", "crates/sim/"];

pub fn check(tree: &Tree, report: &mut Report) {
    let required = tree.text(COVERAGE).unwrap_or_default();
    let mut count = 0;
    for (file, text) in tree.texts() {
        let is_source = file.starts_with("crates/") && file.contains("/src/");
        if !is_source || PASS_ON.iter().any(|folder| file.starts_with(folder)) {
            continue;
        }
        for name in branches(text) {
            count += 1;
            if !required.contains(&format!("\"{name}\"")) {
                report.problem(format!("{file}: branch {name} is not in {COVERAGE}"));
            }
        }
    }
    report.count(format!("branches: {count} that the simulator has to reach"));
}

/// The names in calls of `mark`.
fn branches(text: &str) -> Vec<&str> {
    let calls = text.split(".mark(").skip(1).filter_map(|rest| rest.split_once(')'));
    calls.flat_map(|(call, _)| call.split('"').skip(1).step_by(2)).collect()
}

#[cfg(test)]
mod tests {
    use super::{COVERAGE, branches, check};
    use crate::tidy::problems_of;

    #[test]
    fn reads_the_branches_that_code_names() {
        let text =
            "env.mark(\"a.b\");\nself.env.mark(if x { \"c\" } else { \"d\" });\nremark(\"e\");";
        assert_eq!(branches(text), ["a.b", "c", "d"]);
    }

    #[test]
    fn sees_a_branch_that_is_not_required() {
        let code = ("crates/a/src/lib.rs", "env.mark(\"a.b\");");
        assert!(problems_of(check, &[code, (COVERAGE, "[\"a.b\"]")]).is_empty());
        assert_eq!(problems_of(check, &[code, (COVERAGE, "[\"c\"]")]).len(), 1);
    }
}
