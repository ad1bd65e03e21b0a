//! INSERT, UPDATE, DELETE and BATCH against what a Cassandra 5.0.9 made of the same statements: the
//! verdicts and metadata that it answered, and the mutations in its commit log
//! (`testdata/modify.py`).

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::Fixture;
use cql::{CqlError, Prepared, Value, Variable};
use rows::codec::MutationDecoder;
use rows::{CellRef, Deletion, Layout, PartitionUpdate, RowBuilder, RowRef, merge_versions};
use types::hex::{from_hex, to_hex};
use types::{CqlType, Reader};

/// Statements that we answer otherwise, and why.
const DIFFERENT: &[(&str, &str)] = &[
    // A bound with null in it: Cassandra's write fails with a timeout.
    ("c > null", "Invalid null value in condition for column c"),
    ("c > ?\tnull", "Invalid null value in condition for column c"),
];

/// One line of modify.txt.
struct Case<'a> {
    written: &'a str,
    statement: String,
    values: Vec<Given>,
    given: &'a str,
    prepared: &'a str,
    ran: &'a str,
    mutations: Vec<Vec<u8>>,
}

enum Given {
    Null,
    Unset,
    Bytes(Vec<u8>),
}

impl Given {
    fn parse(text: &str) -> Self {
        match text {
            "null" => Self::Null,
            "unset" => Self::Unset,
            text => {
                let (digits, times) = text.split_once('*').unwrap_or((text, "1"));
                Self::Bytes(from_hex(digits).expect("hex").repeat(times.parse().expect("times")))
            }
        }
    }

    fn as_value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Unset => Value::Unset,
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

/// `<x*30>` is thirty times `x`.
fn expand(written: &str) -> String {
    let mut out = String::new();
    let mut rest = written;
    while let Some(at) = rest.find('<') {
        let tail = &rest[at + 1..];
        let repeat = tail.split_once('>').and_then(|(inside, behind)| {
            let (what, times) = inside.split_once('*')?;
            Some((what.repeat(times.parse().ok()?), behind))
        });
        out.push_str(&rest[..at]);
        match repeat {
            Some((text, behind)) => {
                out.push_str(&text);
                rest = behind;
            }
            None => {
                out.push('<');
                rest = tail;
            }
        }
    }
    out + rest
}

fn cases() -> Vec<Case<'static>> {
    let lines = include_str!("../testdata/modify.txt").lines();
    let cases = lines.map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [written, given, prepared, ran, mutations] = columns[..] else { panic!("{line}") };
        let values =
            if given == "-" { Vec::new() } else { given.split(',').map(Given::parse).collect() };
        let mutations = mutations.split(' ').filter(|hex| !hex.is_empty());
        Case {
            written,
            statement: expand(written),
            values,
            given,
            prepared,
            ran,
            mutations: mutations.map(|hex| from_hex(hex).expect("hex")).collect(),
        }
    });
    cases.collect()
}

fn fixture() -> Fixture {
    Fixture::from_cql(include_str!("../testdata/modify_schema.cql"))
}

fn verdict(error: &CqlError) -> String {
    let code = match error {
        CqlError::Syntax(_) => "2000",
        CqlError::Invalid(_) => "2200",
        other => panic!("{other:?}"),
    };
    format!("ERR {code} {}", error.to_string().replace('\n', "\\n"))
}

/// A type as metadata names it: nothing is frozen there.
fn wire_name(ty: &CqlType) -> String {
    match ty {
        CqlType::List { element, .. } => format!("list<{}>", wire_name(element)),
        CqlType::Set { element, .. } => format!("set<{}>", wire_name(element)),
        CqlType::Map { key, value, .. } => format!("map<{}, {}>", wire_name(key), wire_name(value)),
        CqlType::Tuple(types) => {
            let types: Vec<_> = types.iter().map(wire_name).collect();
            format!("tuple<{}>", types.join(", "))
        }
        CqlType::Udt { definition, .. } => definition.name.clone(),
        CqlType::Vector { .. } => format!("'{}'", ty.to_marshal_string()),
        native => native.cql_name(),
    }
}

fn metadata(prepared: &Prepared) -> String {
    let show =
        |v: &Variable| format!("{}.{}.{}: {}", v.keyspace, v.table, v.name, wire_name(&v.ty));
    let columns: Vec<_> = prepared.variables.iter().map(show).collect();
    let keys: Vec<_> = prepared.partition_key_markers.iter().map(u16::to_string).collect();
    format!("{} [{}]", columns.join("; "), keys.join(", "))
}

/// The list of signatures in two messages is in no order with Cassandra.
fn sorted_signatures(message: &str) -> String {
    match message.split_once("signatures: ") {
        Some((head, tail)) => {
            let (list, end) = tail.split_once("): ").unwrap_or((tail.trim_end_matches(')'), ""));
            let mut list: Vec<&str> = list.split(", ").collect();
            list.sort_unstable();
            format!("{head} {list:?} {end}")
        }
        None => message.to_owned(),
    }
}

#[test]
fn verdicts_and_metadata() {
    let fixture = fixture();
    let mut failures = Vec::new();
    for case in cases() {
        let values: Vec<Value<'_>> = case.values.iter().map(Given::as_value).collect();
        let prepared = fixture.prepare(&case.statement);
        let shown = match &prepared {
            Ok(prepared) => metadata(prepared),
            Err(error) => verdict(error),
        };
        if case.prepared != "-" && sorted_signatures(&shown) != sorted_signatures(case.prepared) {
            failures.push(format!(
                "{}\n  prepared: {}\n  ours:     {shown}",
                case.written, case.prepared
            ));
            continue;
        }
        if case.ran == "-" {
            continue;
        }
        let ran = prepared.and_then(|prepared| fixture.bind(&prepared, &values));
        let shown = match &ran {
            Ok(done) => [&["OK".to_owned()], &done.warnings[..]].concat().join(" | "),
            Err(error) => verdict(error),
        };
        let whole = format!("{}\t{}", case.written, case.given);
        let different = DIFFERENT.iter().find(|(part, _)| whole.contains(part));
        let expected = match different {
            Some((_, message)) => format!("ERR 2200 {message}"),
            None => case.ran.replace(
                "ERR 0000 org.apache.cassandra.serializers.MarshalException: ",
                "ERR 2200 ",
            ),
        };
        // The texts of syntax errors are the parser's to prove.
        let syntax = "ERR 2000";
        if shown.starts_with(syntax) && expected.starts_with(syntax) {
            continue;
        }
        if sorted_signatures(&shown) != sorted_signatures(&expected) {
            failures.push(format!("{whole}\n  expected: {expected}\n  ours:     {shown}"));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

/// Cells of a row in words; the paths of list cells by their order, for they are of their moment.
fn describe_row(layout: &Layout, row: RowRef<'_>) -> Vec<String> {
    let mut out = vec![format!(
        "clustering {} liveness {:?} deletion {:?}",
        to_hex(row.clustering().as_packed()),
        row.liveness(),
        row.deletion()
    )];
    let mut ordinal = 0;
    for cell in row.cells() {
        let column = &layout.columns(row.is_static())[usize::from(cell.column)];
        let is_list = matches!(column.ty, CqlType::List { frozen: false, .. });
        let number = [ordinal];
        let path = match cell.path {
            Some(_) if is_list => Some(&number[..]),
            path => path,
        };
        ordinal += u8::from(is_list && cell.path.is_some());
        out.push(format!("{} {:?}", column.name, CellRef { path, ..cell }));
    }
    out
}

/// An update in words, without the rows that its own deletions delete: Cassandra leaves them out.
fn describe(update: &PartitionUpdate) -> Vec<String> {
    let layout = &update.layout;
    let mut out = vec![format!("key {} deletion {:?}", to_hex(&update.key), update.deletion)];
    let mut builder = RowBuilder::new();
    for row in update.static_row().into_iter().chain(update.rows.iter()) {
        let range = update.ranges.covering(layout, row.clustering()).filter(|_| !row.is_static());
        let deletion = update.deletion.max(range.unwrap_or(Deletion::LIVE));
        let rest = merge_versions(layout, [row].into_iter(), deletion, &mut builder);
        out.extend(rest.into_iter().flat_map(|row| describe_row(layout, row)));
    }
    out.extend(update.ranges.iter().map(|range| format!("{range:?}")));
    out
}

#[test]
fn mutations() {
    let fixture = fixture();
    let keyspace = fixture.schema.keyspace("ks").expect("ks");
    let layouts: BTreeMap<[u8; 16], Arc<Layout>> =
        keyspace.tables.values().map(|table| (table.id.0, Arc::clone(&table.layout))).collect();
    let mut failures = Vec::new();
    let mut compared = 0;
    for case in cases().iter().filter(|case| case.ran.starts_with("OK")) {
        let mut expected = BTreeMap::new();
        for bytes in &case.mutations {
            let layout_of = |id: &[u8; 16]| layouts.get(id).cloned();
            let mutation = MutationDecoder::new().mutation(&mut Reader::new(bytes), &layout_of);
            // Others are the node's own: tables of the system.
            let Ok(mutation) = mutation else { continue };
            for update in mutation.updates().iter().filter(|update| !update.is_empty()) {
                expected.insert((update.table, update.key.clone()), describe(update));
            }
        }
        let values: Vec<Value<'_>> = case.values.iter().map(Given::as_value).collect();
        let Ok(updates) = fixture.run(&case.statement, &values) else { continue };
        let ours: BTreeMap<_, _> = updates
            .iter()
            .map(|update| ((update.table, update.key.clone()), describe(update)))
            .collect();
        compared += 1;
        if ours != expected {
            failures.push(format!(
                "{}\t{}\n  expected: {expected:#?}\n  ours: {ours:#?}",
                case.written, case.given
            ));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(compared > 200, "{compared}");
}
