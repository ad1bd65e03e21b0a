//! The metrics that an expression of Prometheus names. It knows as much of the language as
//! dashboards need: selectors, functions, and labels in lists.

/// Words that are followed by a list of labels.
const LISTS: &[&str] = &["by", "group_left", "group_right", "ignoring", "on", "without"];
/// Words between two operands.
const OPERATORS: &[&str] = &["and", "bool", "offset", "or", "unless"];

/// The names of metrics, each with the labels that its selector names.
pub fn selectors(expression: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            rest = after(&rest[1..], '"');
        } else if c == '[' {
            rest = after(rest, ']');
        } else if c.is_ascii_digit() {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.');
        } else if c.is_ascii_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"_:".contains(c));
            let (word, tail) = rest.split_at(end.unwrap_or(rest.len()));
            let next = tail.trim_start();
            let is_called = ["(", "by ", "by(", "without"].iter().any(|of| next.starts_with(of));
            rest = tail;
            if LISTS.contains(&word) {
                rest = after(tail, ')');
            } else if !OPERATORS.contains(&word) && !is_called {
                let labels = next.strip_prefix('{').map_or(Vec::new(), labels);
                if next.starts_with('{') {
                    rest = after(next, '}');
                }
                // `label_values(metric, label)` of Grafana ends in a label
                let is_label = expression.starts_with("label_values(") && next == ")";
                if !is_label {
                    found.push((word.to_owned(), labels));
                }
            }
        } else {
            rest = &rest[c.len_utf8()..];
        }
    }
    found
}

fn labels(inside: &str) -> Vec<String> {
    let inside = inside.split('}').next().unwrap_or_default();
    let pairs = inside.split(',').filter(|pair| !pair.trim().is_empty());
    let name = |pair: &str| pair.split(['=', '!']).next().unwrap_or_default().trim().to_owned();
    pairs.map(name).collect()
}

fn after(text: &str, end: char) -> &str {
    text.split_once(end).map_or("", |(_, rest)| rest)
}

#[test]
fn metrics_are_told_from_functions_and_labels() {
    let names = |of: &str| selectors(of).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(
        names("sum by (scope) (rate(a_total{x=\"b c\",y=~\"$d\"}[5m])) / on(x) b > 1e9"),
        ["a_total", "b"]
    );
    assert_eq!(names("topk(10, max by (k) (a_b{q=\"0.99\"} > 0)) unless c"), ["a_b", "c"]);
    assert_eq!(names("label_values(a{job=~\"$job\"}, instance)"), ["a"]);
    assert_eq!(
        selectors("a{x=\"1\", y!=\"2\"}"),
        [("a".to_owned(), vec!["x".to_owned(), "y".to_owned()])]
    );
}
