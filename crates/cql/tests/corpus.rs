//! The parser's verdicts against those of a live Cassandra 5.0.9, statement by statement.

use cql::{ParseError, parse};

fn lines(corpus: &str) -> impl Iterator<Item = String> {
    corpus.lines().filter(|line| !line.starts_with('#')).map(|line| line.replace("\\n", "\n"))
}

#[test]
fn what_cassandra_reads_is_read() {
    let mut seen = 0;
    for text in lines(include_str!("../testdata/accept.txt")) {
        if let Err(ParseError::Syntax(error)) = parse(&text) {
            panic!("{text:?}: {error}");
        }
        seen += 1;
    }
    assert!(seen > 1000, "{seen}");
}

#[test]
fn what_cassandra_refuses_is_refused() {
    let (mut seen, mut same) = (0, 0);
    for line in lines(include_str!("../testdata/reject.txt")) {
        let (text, message) = line.split_once('\t').expect("statement, tab, message");
        match parse(text) {
            Err(ParseError::Syntax(error)) => {
                // The excerpt in parentheses is ours to choose.
                let head = |m: &str| m.split(" (").next().unwrap_or(m).to_owned();
                same += usize::from(head(&error.message) == head(message));
            }
            other => panic!("{text:?}: {other:?}"),
        }
        seen += 1;
    }
    assert!(seen > 1500, "{seen}");
    assert!(same * 100 > seen * 88, "only {same} of {seen} messages are Cassandra's");
}

/// Rules that Cassandra checks while parsing and reports as an invalid request.
#[test]
fn parse_time_rules_are_invalid_requests() {
    for (text, message) in [
        (
            "CREATE TABLE t (k int PRIMARY KEY, k text)",
            "Duplicate column 'k' declaration for table 't'",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY, k text) \\", // no token of CQL, after the rule
            "Duplicate column 'k' declaration for table 't'",
        ),
        (
            "CREATE TABLE t (k int PRIMARY KEY, PRIMARY KEY (k))",
            "Multiple PRIMARY KEY specified for table 't' (exactly one required)",
        ),
        (
            "CREATE TABLE t (k int, c int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c ASC, c DESC)",
            "Duplicate column 'c' in CLUSTERING ORDER BY clause for table 't'",
        ),
        (
            "LIST ALL ON FUNCTION f(int)",
            "In this context function name must be explictly qualified by a keyspace",
        ),
    ] {
        assert_eq!(parse(text), Err(ParseError::Invalid(message.to_owned())), "{text}");
    }
}
