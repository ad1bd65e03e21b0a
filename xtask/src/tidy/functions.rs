//! How long a function may be, from its `fn` to the brace that closes it.

use std::collections::BTreeMap;

use super::Report;
use super::ceiling::{Table, differences};
use super::source::{closing, line_of, words};
use super::tree::{Tree, folder_of};

/// One that is longer does several things.
const LINES_MAX: usize = 90;
/// Functions that are longer still, by crate.
const LEFT: &Table = &[];

/// A function in a file.
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

pub fn check(tree: &Tree, report: &mut Report) {
    check_with(tree, report, LEFT);
}

fn check_with(tree: &Tree, report: &mut Report, left: &Table) {
    let mut longer = BTreeMap::new();
    let mut said = Vec::new();
    let mut longest = (0, String::new());
    let mut count = 0;
    for (file, source) in tree.sources() {
        for function in functions(&source.code) {
            let Function { name, line, lines } = function;
            count += 1;
            if lines > LINES_MAX {
                *longer.entry(folder_of(file)).or_default() += 1;
                said.push(format!("  {file}:{line}: {name}: {lines} lines, at most {LINES_MAX}"));
            }
            longest = longest.max((lines, format!("{name} in {file}")));
        }
    }
    let (lines, name) = longest;
    report.count(format!("longest function: {lines} lines, {name}; {count} functions"));
    said.into_iter().for_each(|line| report.count(line));
    let what = format!("functions over {LINES_MAX} lines");
    let problems = differences(&what, &longer, left);
    problems.into_iter().for_each(|problem| report.problem(problem));
}

/// Those that have a body.
fn functions(code: &str) -> Vec<Function> {
    let function = |at: usize| {
        let rest = &code[at + "fn".len()..];
        // a type `fn(...)` has no name
        let name = rest.trim_start().split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
        let name = name.filter(|name| !name.is_empty())?.to_owned();
        let end = closing(code, body(code, at)?)?;
        let line = line_of(code, at);
        Some(Function { name, line, lines: line_of(code, end) + 1 - line })
    };
    words(code, "fn").filter_map(function).collect()
}

/// The brace that opens a function's body, if it has one.
fn body(code: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match code.as_bytes().get(at)? {
            b'{' => return Some(at),
            b';' => return None,
            b'(' | b'[' => at = closing(code, at)? + 1,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LINES_MAX, check_with, functions};
    use crate::tidy::ceiling::Table;
    use crate::tidy::problems_of;

    fn problems(lines: usize, left: &Table) -> Vec<String> {
        let text = format!("fn a() {{\n{}}}\n", "b();\n".repeat(lines - 2));
        problems_of(|tree, report| check_with(tree, report, left), &[("crates/a/src/b.rs", &text)])
    }

    #[test]
    fn sees_a_function_that_is_too_long() {
        assert!(problems(LINES_MAX, &[]).is_empty());
        assert_eq!(
            problems(LINES_MAX + 1, &[]),
            ["crates/a: functions over 90 lines: 1, at most 0"]
        );
        assert!(problems(LINES_MAX + 1, &[("crates/a", 1)]).is_empty());
        assert_eq!(problems(LINES_MAX, &[("crates/a", 1)]).len(), 1);
    }

    #[test]
    fn measures_from_the_name_to_the_last_brace() {
        let code = "trait A {\n    fn b(c: [u8; 4]);\n    fn d(\n        e: fn(u8),\n    ) -> u8\n    \
                    {\n        {}\n    }\n}\n";
        let found: Vec<_> =
            functions(code).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
        assert_eq!(found, [("d".to_owned(), 3, 6)]);
    }
}
