//! What holds for any text: no panic, bounded nesting, time in proportion to length.

use cql::{MAX_DEPTH, parse};
use proptest::prelude::*;

/// Pieces from which texts that get far into the grammar are likely.
const PIECES: &[&str] = &[
    "SELECT",
    "INSERT INTO",
    "UPDATE",
    "DELETE",
    "FROM",
    "WHERE",
    "SET",
    "VALUES",
    "AND",
    "IN",
    "IF",
    "EXISTS",
    "NOT",
    "NULL",
    "a",
    "t",
    "ks",
    "json",
    "distinct",
    "key",
    "int",
    "list",
    "frozen",
    "map",
    "CAST",
    "AS",
    "token",
    "CREATE",
    "TABLE",
    "TYPE",
    "PRIMARY KEY",
    "WITH",
    "BEGIN BATCH",
    "APPLY BATCH",
    "USING",
    "TTL",
    "GRANT",
    "ALL",
    "ON",
    "TO",
    "DESCRIBE",
    "ROLE",
    "FUNCTION",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "=",
    "+",
    "-",
    "*",
    "/",
    "%",
    ",",
    ".",
    "..",
    ":",
    ";",
    "?",
    "1",
    "-1",
    "1.5",
    "'x'",
    "\"Q\"",
    "\"\"",
    "1h",
    "0xff",
    "expr(",
    "$$",
    "'",
    "--",
    "/*",
    "\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_pieces(picks in proptest::collection::vec(0..PIECES.len(), 0..60)) {
        let words: Vec<&str> = picks.into_iter().map(|pick| PIECES[pick]).collect();
        let _ = parse(&words.join(" "));
    }

    #[test]
    fn any_truncation(line in 0..1000usize, cut in 0..200usize) {
        let corpus = include_str!("../testdata/accept.txt");
        let text = corpus.lines().nth(line).unwrap_or("");
        let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let _ = parse(&text[..cut]);
    }
}

/// Every construct that nests: how it opens, its core and how it closes.
const NESTS: &[(&str, &str, &str, &str, &str)] = &[
    ("SELECT ", "(", "a", ")", " FROM t"),
    ("SELECT ", "[", "a", "]", " FROM t"),
    ("SELECT ", "{", "a", "}", " FROM t"),
    ("SELECT ", "- ", "a", "", " FROM t"),
    ("SELECT ", "f(", "a", ")", " FROM t"),
    ("SELECT ", "cast(", "a", " as int)", " FROM t"),
    ("SELECT ", "(a)", "a", "", " FROM t"),
    ("SELECT a", "", "", "[1]", " FROM t"),
    ("SELECT a", "", "", ".b", " FROM t"),
    ("SELECT a", "", "", " + a", " FROM t"),
    ("SELECT a", "", "", " * a", " FROM t"),
    ("SELECT json ", "(", "a", ")", " FROM t"),
    ("SELECT * FROM t WHERE ", "(", "a = 1", ")", ""),
    ("SELECT * FROM t WHERE a = ", "(", "1", ")", ""),
    ("SELECT * FROM t WHERE a = ", "[", "1", "]", ""),
    ("SELECT * FROM t WHERE a = ", "{", "1", "}", ""),
    ("SELECT * FROM t WHERE a = ", "{1: ", "1", "}", ""),
    ("SELECT * FROM t WHERE a = ", "{f: ", "1", "}", ""),
    ("SELECT * FROM t WHERE a = ", "f(", "1", ")", ""),
    ("SELECT * FROM t WHERE a = ", "(int) ", "1", "", ""),
    ("SELECT * FROM t WHERE a = ", "cast(", "1", " as int)", ""),
    ("SELECT * FROM t WHERE a = 1", "", "", " + 1", ""),
    ("CREATE TABLE t (k ", "frozen<list<", "int", ">>", " PRIMARY KEY)"),
    ("CREATE TABLE t (k ", "tuple<", "int", ">", " PRIMARY KEY)"),
    ("CREATE TABLE t (k '", "ListType(", "Int32Type", ")", "' PRIMARY KEY)"),
];

fn nest((head, open, core, close, tail): (&str, &str, &str, &str, &str), depth: usize) -> String {
    format!("{head}{}{core}{}{tail}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn nesting_is_bounded_everywhere() {
    for case in NESTS {
        assert!(parse(&nest(*case, 20)).is_ok(), "{case:?}");
        assert!(parse(&nest(*case, 2 * MAX_DEPTH as usize)).is_err(), "{case:?}");
        // Deep enough to end the process if anything recursed without counting.
        let _ = parse(&nest(*case, 100_000));
        let opened = format!("{}{}", case.0, case.1.repeat(100_000));
        let _ = parse(&opened);
    }
}

/// A text of that many parts costs so many times one of a tenth: counted, as tests must not look at
/// clocks, by the harness's patience alone; quadratic behaviour would take minutes here.
#[test]
fn long_statements_are_linear() {
    let n = 200_000;
    let list = "1, ".repeat(n);
    for text in [
        format!("SELECT * FROM t WHERE a IN ({list}1)"),
        format!("INSERT INTO t (a) VALUES ([{list}1])"),
        format!("BEGIN BATCH {} APPLY BATCH", "INSERT INTO t (a) VALUES (1);".repeat(n / 10)),
        format!(
            "UPDATE t SET {} z = 1 WHERE k = 1",
            (0..n).map(|i| format!("c{i} = 1, ")).collect::<String>()
        ),
        format!("SELECT {} z FROM t", "json, ".repeat(n)),
        format!("SELECT json {} z FROM t", "(a) (b), ".repeat(n)),
        format!(
            "CREATE TABLE t ({} k int PRIMARY KEY)",
            (0..n).map(|i| format!("c{i} int, ")).collect::<String>()
        ),
        format!("SELECT {} FROM t", "'it''s', ".repeat(n) + "1"),
    ] {
        assert!(parse(&text).is_ok(), "{}", &text[..60]);
    }
}
