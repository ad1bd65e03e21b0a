//! Every file of tests is one that a program of tests has.

use std::collections::BTreeSet;

use super::Report;
use super::tree::Tree;

pub fn check(tree: &Tree, report: &mut Report) {
    let mut count = 0;
    for folder in tree.crates() {
        let tests = format!("{folder}/tests/");
        let Some(all) = tree.text(&format!("{tests}all.rs")) else { continue };
        let manifest = tree.text(&format!("{folder}/Cargo.toml")).unwrap_or_default();
        let files = tree.sources().filter_map(|(name, _)| name.strip_prefix(&tests));
        let names: BTreeSet<&str> = files
            .filter_map(|file| match file.split_once('/') {
                Some((name, "main.rs")) => Some(name),
                Some(_) => None,
                None => file.strip_suffix(".rs"),
            })
            .collect();
        for name in names {
            count += 1;
            let is_run = all.contains(&format!("mod {name};"))
                || manifest.contains(&format!("path = \"tests/{name}.rs\""));
            if !is_run {
                report.problem(format!("{tests}{name}: no program of tests has it"));
            }
        }
    }
    report.count(format!("files of tests: {count}"));
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::problems_of;

    #[test]
    fn sees_tests_that_nothing_runs() {
        let with = |all| {
            let files = [
                ("a/Cargo.toml", "[[test]]\npath = \"tests/all.rs\"\n"),
                ("a/src/lib.rs", ""),
                ("a/tests/all.rs", all),
                ("a/tests/b.rs", ""),
                ("a/tests/c/main.rs", ""),
                ("a/tests/c/part.rs", ""),
            ];
            problems_of(check, &files)
        };
        assert!(with("mod b;\nmod c;\n").is_empty());
        assert_eq!(with("mod b;\n"), ["a/tests/c: no program of tests has it"]);
        assert_eq!(with("").len(), 2);
    }
}
