//! How long a file of Rust may be.

use std::collections::BTreeMap;

use super::Report;
use super::tree::{Tree, is_test};

/// A file of the product that is longer is not read at one sitting. Tests at its end do not count.
const PRODUCT_LINES_MAX: usize = 700;
/// Of tests, and of the project's own commands.
const OTHER_LINES_MAX: usize = 1_000;
/// Files that are longer for a reason.
const LONGER: &[(&str, &str)] = &[];

pub fn check(tree: &Tree, report: &mut Report) {
    check_with(tree, report, LONGER);
}

fn check_with(tree: &Tree, report: &mut Report, longer: &[(&str, &str)]) {
    let mut longest: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (name, source) in tree.sources() {
        let (kind, lines, most) = if is_product(name) {
            ("of the product", source.product_lines(), PRODUCT_LINES_MAX)
        } else {
            ("of tests and tools", source.code.lines().count(), OTHER_LINES_MAX)
        };
        let is_known = longer.iter().any(|known| known.0 == name);
        if lines > most && !is_known {
            report.problem(format!("{name}: {lines} lines, at most {most}"));
        }
        if lines <= most && is_known {
            report.problem(format!("{name}: {lines} lines: it is no exception any more"));
        }
        let before = longest.entry(kind).or_default();
        *before = (*before).max((lines, name));
    }
    for (name, _) in longer.iter().filter(|known| tree.source(known.0).is_none()) {
        report.problem(format!("{name}: an exception, and not there"));
    }
    for (kind, (lines, name)) in longest {
        report.count(format!("longest file {kind}: {lines} lines, {name}"));
    }
    for (name, reason) in longer {
        report.count(format!("  longer for a reason: {name}: {reason}"));
    }
}

fn is_product(name: &str) -> bool {
    let is_ours = name.starts_with("crates/") || name.starts_with("bin/");
    is_ours && name.contains("/src/") && !is_test(name)
}

#[cfg(test)]
mod tests {
    use super::{OTHER_LINES_MAX, PRODUCT_LINES_MAX, check_with};
    use crate::tidy::problems_of;

    fn problems(name: &str, text: &str, longer: &[(&str, &str)]) -> Vec<String> {
        problems_of(|tree, report| check_with(tree, report, longer), &[(name, text)])
    }

    #[test]
    fn sees_a_file_that_is_too_long() {
        let product = "crates/a/src/lib.rs";
        let most = "fn a() {}\n".repeat(PRODUCT_LINES_MAX);
        assert!(problems(product, &most, &[]).is_empty());
        let more = most.clone() + "fn b() {}\n";
        assert_eq!(problems(product, &more, &[]), [format!("{product}: 701 lines, at most 700")]);
        let tested = most.clone() + "#[cfg(test)]\nmod tests {}\n";
        assert!(problems(product, &tested, &[]).is_empty());
        for other in ["crates/a/src/tests.rs", "crates/a/tests/all.rs", "xtask/src/main.rs"] {
            assert!(problems(other, &more, &[]).is_empty());
            assert_eq!(problems(other, &"\n".repeat(OTHER_LINES_MAX + 1), &[]).len(), 1);
        }
    }

    #[test]
    fn an_exception_is_none_once_the_rule_holds() {
        let long = "\n".repeat(PRODUCT_LINES_MAX + 1);
        let known = [("bin/a/src/b.rs", "a reason")];
        assert!(problems("bin/a/src/b.rs", &long, &known).is_empty());
        assert_eq!(problems("bin/a/src/b.rs", "\n", &known).len(), 1);
        assert_eq!(problems("bin/a/src/c.rs", "\n", &known).len(), 1);
    }
}
