//! What a Cassandra 5.0.9 answered to some nine hundred SELECTs (testdata/select.txt), and what we
//! answer.

use cql::{CqlError, Plan, Prepared, Variable};
use types::CqlType;
use types::hex::{from_hex, to_hex};

use crate::select::world::{Answer, Given, World};

const GOLDEN: &str = include_str!("../../testdata/select.txt");

/// A type as the wire shows it.
fn wire(ty: &CqlType) -> String {
    match ty {
        CqlType::Text => "varchar".to_owned(),
        CqlType::List { element, .. } => format!("list<{}>", wire(element)),
        CqlType::Set { element, .. } => format!("set<{}>", wire(element)),
        CqlType::Map { key, value, .. } => format!("map<{}, {}>", wire(key), wire(value)),
        CqlType::Tuple(types) => {
            format!("tuple<{}>", types.iter().map(wire).collect::<Vec<_>>().join(", "))
        }
        CqlType::Udt { definition, .. } => {
            let field = |(name, ty): &(String, CqlType)| format!("{name} {}", wire(ty));
            let fields: Vec<_> = definition.fields.iter().map(field).collect();
            format!("udt {}.{}<{}>", definition.keyspace, definition.name, fields.join(", "))
        }
        CqlType::Vector { .. } => format!("'{}'", ty.to_marshal_string()),
        other => other.cql_name(),
    }
}

fn described<'a>(columns: impl Iterator<Item = (&'a str, &'a CqlType)>) -> String {
    let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let columns: Vec<_> =
        columns.map(|(name, ty)| format!("[{}, {}]", quote(name), quote(&wire(ty)))).collect();
    format!("[{}]", columns.join(", "))
}

fn code(error: &CqlError) -> &'static str {
    match error {
        CqlError::Syntax(_) => "2000",
        CqlError::Unauthorized(_) => "2100",
        CqlError::Invalid(_) | CqlError::CannotPage => "2200",
        CqlError::Config(_) => "2300",
        CqlError::AlreadyExists { .. } => "2400",
        CqlError::Function { .. } => "1400",
    }
}

fn shown(error: &CqlError) -> String {
    format!("{} {}", code(error), error.to_string().replace('\\', "\\\\").replace('\n', "\\n"))
}

struct Case<'a> {
    statement: &'a str,
    values: Option<Given>,
    page: Option<u32>,
    expected: Vec<&'a str>,
}

fn parse_case<'a>(line: &'a str, expected: Vec<&'a str>) -> Case<'a> {
    let (text, values) = match line.split_once(" <- ") {
        Some((text, values)) => (text, Some(given(values))),
        None => (line, None),
    };
    let (statement, page) = match text.split_once(" @page ") {
        Some((statement, page)) => (statement, page.trim().parse().ok()),
        None => (text, None),
    };
    Case { statement, values, page, expected }
}

/// `["00000001", null, "unset", "00*65535"]`.
fn given(text: &str) -> Given {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    let items = inner.split(", ").filter(|item| !item.is_empty());
    Given(
        items
            .map(|item| match item.trim_matches('"') {
                "null" => Some(None),
                "unset" => None,
                digits => Some(Some(match digits.split_once('*') {
                    Some((digits, times)) => {
                        let times = times.parse().expect("a count");
                        from_hex(digits).expect("digits").repeat(times)
                    }
                    None => from_hex(digits).expect("digits"),
                })),
            })
            .collect(),
    )
}

fn answer_lines(answer: &Answer) -> Vec<String> {
    let cell = |cell: &Option<Vec<u8>>| match cell {
        Some(value) => format!("0x{}", to_hex(value)),
        None => "null".to_owned(),
    };
    let row = |row: &Vec<_>| format!("row {}", row.iter().map(cell).collect::<Vec<_>>().join(" "));
    answer.rows.iter().map(row).collect()
}

fn bind_line(prepared: &Prepared) -> String {
    let columns = prepared.variables.iter().map(|Variable { name, ty, .. }| (&**name, ty));
    let indexes: Vec<_> = prepared.partition_key_markers.iter().map(u16::to_string).collect();
    format!("bind {} pk [{}]", described(columns), indexes.join(", "))
}

/// What we answer, in the form of the file.
fn ours(world: &World, case: &Case<'_>) -> Vec<String> {
    let prepared = match world.prepare(case.statement) {
        Ok(prepared) => prepared,
        Err(error) => return vec![format!("error {}", shown(&error))],
    };
    let mut lines = vec![bind_line(&prepared)];
    let Plan::Select(select) = &prepared.plan else { panic!("a SELECT") };
    let nothing = Given(Vec::new());
    let values = case.values.as_ref().unwrap_or(&nothing);
    if values.0.len() != prepared.variables.len() {
        lines.push("skip".to_owned());
        return lines;
    }
    match world.run(select, values, case.page) {
        Err(error) => lines.push(format!("fails {}", shown(&error))),
        Ok(answer) => {
            let result = prepared.result.as_deref().unwrap_or_default();
            lines.push(format!("columns {}", described(result.iter().map(|c| (&*c.name, &c.ty)))));
            if let Some(size) = case.page.filter(|_| !select.is_aggregate()) {
                assert!(
                    answer.pages.iter().all(|rows| *rows <= size as usize),
                    "{}",
                    case.statement
                );
            }
            lines.extend(answer_lines(&answer));
        }
    }
    lines
}

/// Where we differ and mean to: the answer is an error of ours that says what is not served, or an
/// accident of Cassandra's (SERVER_ERROR) that anything is as good as.
fn is_excused(ours: &[String], theirs: &[&str]) -> bool {
    // What a message lists comes in the order of Java's hashes.
    let words = |line: &str| {
        let mut words: Vec<String> = line.split([' ', ',', ':', ')']).map(str::to_owned).collect();
        words.sort();
        words
    };
    if let ([ours], [theirs]) = (ours, theirs)
        && theirs.contains(',')
        && words(ours) == words(theirs)
    {
        return true;
    }
    let unserved = ours.iter().any(|line| line.ends_with("is not supported yet"));
    let accident =
        theirs.iter().any(|line| line.starts_with("error 0000") || line.starts_with("fails 0000"));
    unserved || accident
}

#[test]
fn answers_are_cassandras() {
    let mut world = World::new();
    let mut lines = GOLDEN.lines().peekable();
    let (mut cases, mut excused, mut differences) = (0, 0, Vec::new());
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix('!') {
            world.create(text);
        } else if let Some(text) = line.strip_prefix('+') {
            world.apply(text);
        } else if let Some(text) = line.strip_prefix("> ") {
            let mut expected = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                expected.push(line.trim_start());
            }
            let case = parse_case(text, expected);
            cases += 1;
            // Page ends are ours to choose, warnings the coordinator's to give.
            let is_compared = |line: &&&str| **line != "page" && !line.starts_with("warning");
            let theirs: Vec<&str> = case.expected.iter().filter(is_compared).copied().collect();
            let ours = ours(&world, &case);
            if ours == theirs {
                continue;
            }
            if is_excused(&ours, &theirs) || REFUSED.contains(&text) {
                excused += 1;
                continue;
            }
            differences.push(format!("{text}\n  theirs {theirs:?}\n  ours   {ours:?}"));
        }
    }
    assert!(cases > 900, "{cases} cases");
    assert!(
        differences.is_empty(),
        "{} of {cases} differ ({excused} excused):\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert_eq!(excused, EXCUSED);
}

/// A tuple of a slice that holds no values of its types: Cassandra takes it for whatever its bytes
/// compare as; we refuse it.
const REFUSED: [&str; 1] =
    [r#"SELECT v FROM a WHERE k = 1 AND (c1, c2) > ? <- ["00000001000000000400000001"]"#];

/// Statements of the file that we do not serve yet, or where Cassandra fails by accident.
const EXCUSED: usize = 24;
