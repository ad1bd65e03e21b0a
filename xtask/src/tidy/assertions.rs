//! No fewer assertions than before, where a wrong value would be stored or decided.
//!
//! A floor that only rises: with more assertions than it says, it is to be raised, so that the ones
//! that were added stay.

use super::Report;
use super::source::words;
use super::tree::{Tree, is_test};

/// How many there are below a folder.
const FLOORS: &[(&str, usize)] = &[
    ("crates/rows/src/", 58),
    ("crates/storage/src/", 142),
    ("crates/sstable/src/", 73),
    ("crates/cluster/src/reconcile/", 10),
    ("crates/cluster/src/paxos/", 16),
];
const MACROS: [&str; 4] = ["assert!", "assert_eq!", "assert_ne!", "unreachable!"];

pub fn check(tree: &Tree, report: &mut Report) {
    check_with(tree, report, FLOORS);
}

fn check_with(tree: &Tree, report: &mut Report, floors: &[(&str, usize)]) {
    for (folder, floor) in floors {
        let (mut count, mut lines) = (0, 0);
        for (name, source) in tree.sources() {
            if name.starts_with(folder) && !is_test(name) {
                count += assertions(&source.product, tree.text(name).unwrap_or_default());
                lines += source.product_lines();
            }
        }
        if count < *floor {
            report.problem(format!("{folder}: {count} assertions, at least {floor}"));
        }
        if count > *floor {
            report.problem(format!("{folder}: {count} assertions: raise the floor of {floor}"));
        }
        let tenths = count * 10_000 / lines.max(1);
        report.count(format!(
            "assertions: {count} in {folder}, {}.{} per 1000 lines",
            tenths / 10,
            tenths % 10
        ));
    }
}

/// Assertions, and values that are expected with a reason.
fn assertions(code: &str, text: &str) -> usize {
    let asserted = MACROS.iter().map(|name| words(code, name).count()).sum::<usize>();
    let expected = code.match_indices(".expect(").filter(|(at, call)| {
        let argument = text.get(at + call.len()..).unwrap_or_default();
        argument.trim_start().starts_with('"')
    });
    asserted + expected.count()
}

#[cfg(test)]
mod tests {
    use super::{assertions, check_with};
    use crate::tidy::problems_of;
    use crate::tidy::source::Source;

    #[test]
    fn counts_what_asserts() {
        let count = |text: &str| assertions(&Source::new(text).product, text);
        assert_eq!(count("assert!(a); assert_eq!(b, c); assert_ne!(d, e); unreachable!()"), 4);
        assert_eq!(count("debug_assert!(a); // assert!(b)\nf(\"assert!(c)\");"), 0);
        assert_eq!(count("a.expect(\"why\"); b.expect(\n    \"why\",\n); c.expect(d);"), 2);
        assert_eq!(count("#[cfg(test)]\nmod tests { fn a() { assert!(b) } }"), 0);
    }

    #[test]
    fn sees_that_one_is_gone() {
        let files = [("a/src/b.rs", "assert!(c);"), ("a/src/tests.rs", "assert!(d);")];
        let problems = |floor| {
            problems_of(|tree, report| check_with(tree, report, &[("a/src/", floor)]), &files)
        };
        assert!(problems(1).is_empty());
        assert_eq!(problems(2), ["a/src/: 1 assertions, at least 2"]);
        assert_eq!(problems(0), ["a/src/: 1 assertions: raise the floor of 0"]);
    }
}
