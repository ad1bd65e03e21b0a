//! How much one struct may be: fields, and methods over all its inherent `impl`s in the crate.
//!
//! Plain data may have any number of fields: a struct all of whose fields are `pub`, as settings,
//! cells of metrics, messages and answers are, holds nothing together. A struct that is more for a
//! reason stands in a table with it.

use std::collections::BTreeMap;

use super::Report;
use super::source::{closing, is_word, words};
use super::tree::Tree;

/// What has more keeps the state of several.
const FIELDS_MAX: usize = 12;
/// What has more does the work of several.
const METHODS_MAX: usize = 30;

/// Structs that are more, by crate and name, and why.
const MORE: &[More] = &[
    ("crates/node", "Operations", "each verb of nodetool is one of its methods"),
    (
        "crates/cluster",
        "Auth",
        "roles, logins and grants use the same caches; its files are by subject",
    ),
    ("crates/cluster", "Membership", "this node's part in gossip, ring and schema; not cut yet"),
    ("crates/cluster", "RingRead", "how one read was asked for, and what its rounds have found"),
    ("crates/cluster", "Shard", "the list of a shard's components, for whoever composes a node"),
    ("bin/nodetool", "Options", "each option of the command line is a field"),
    ("crates/config", "Config", "each key of cassandra.yaml that is served is a field"),
    ("crates/config", "Get", "each key that is read in a way of its own is a method"),
    ("crates/cql", "Guard", "each guardrail is a question of its own"),
    ("crates/cql", "Parser", "each rule of the grammar is a method"),
    ("crates/cql", "Read", "the plan of a page as data; only the bound terms are not for all"),
    ("crates/cql", "Select", "a prepared SELECT: each clause is a field"),
    (
        "crates/env",
        "DiskModel",
        "each operation on a disk, and each way to look at it, is a method",
    ),
    ("crates/env", "Env", "the only door: each thing that the outside does is a method"),
    ("crates/env", "Inner", "the world: each choice of any node draws from one state"),
    ("crates/env", "Shard", "what a shard of either make has: tasks, timers, signals, its end"),
    ("crates/gossip", "Gossiper", "one state machine, as Cassandra's; `step` is its way in"),
    ("crates/hints", "Hints", "writing, dispatch and deletion share one state; not cut yet"),
    ("crates/messaging", "Messenger", "links, quotas and counts of all peers; not cut yet"),
    ("crates/schema", "Table", "each thing that a definition says is a field"),
    ("crates/server", "Connection", "each cell is a fact about one socket; not grouped yet"),
    ("crates/server", "Shard", "each is a thing that all connections share; not grouped yet"),
    ("crates/sim", "Model", "what clients and the operator of a ring know together"),
    ("crates/sim", "Operator", "one state machine over a ring; its files are by what it does"),
    ("crates/sim", "Shared", "what clients of a world know together; a crash ends all of it"),
    ("crates/storage", "CommitLog", "is being cut: segments, syncs and archives have one owner"),
    ("crates/storage", "Engine", "is being cut: a shard's tables, log, caches and readers"),
    ("crates/storage", "MemtableCursor", "a cursor keeps its place, its slices and what is ready"),
    ("crates/storage", "SSTableCursor", "a cursor keeps its place, its slices and what is ready"),
    ("crates/storage", "SegmentData", "each offset says how far one step of a segment has come"),
    ("crates/storage", "State", "is being cut: the writer's queue and its segments"),
    ("crates/storage", "TableStats", "each thing that is counted of a table is a field"),
    ("crates/types", "Decimal", "each operation of arithmetic, as Java's BigDecimal has it"),
    ("crates/types", "Reader", "each primitive of the wire is a method"),
];

/// A crate, a struct of it, and the reason.
type More = (&'static str, &'static str, &'static str);

/// A struct, and what is counted of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Struct {
    file: String,
    name: String,
    fields: usize,
    /// Are all fields `pub`?
    is_plain: bool,
    methods: usize,
}

impl Struct {
    fn is_more(&self) -> bool {
        (self.fields > FIELDS_MAX && !self.is_plain) || self.methods > METHODS_MAX
    }
}

pub fn check(tree: &Tree, report: &mut Report) {
    check_with(tree, report, MORE);
}

fn check_with(tree: &Tree, report: &mut Report, more: &[More]) {
    let product = tree.crates().into_iter().filter(|folder| is_product(folder));
    let all: Vec<(&str, Struct)> = product
        .flat_map(|folder| structs_of(tree, folder).into_iter().map(move |one| (folder, one)))
        .collect();
    let most = |count: fn(&Struct) -> usize, of: &dyn Fn(&Struct) -> bool| {
        let known = all.iter().filter(|(_, one)| of(one));
        let most = known.max_by_key(|(_, one)| count(one));
        most.map_or_else(String::new, |(_, one)| format!("{} ({})", count(one), one.name))
    };
    report.count(format!(
        "structs: {}; most fields: {}, of plain data {}; most methods: {}",
        all.len(),
        most(|one| one.fields, &|one| !one.is_plain),
        most(|one| one.fields, &|one| one.is_plain),
        most(|one| one.methods, &|_| true),
    ));
    for (folder, one) in all.iter().filter(|(_, one)| one.is_more()) {
        let Struct { file, name, fields, methods, .. } = one;
        let counts = format!("{fields} fields, {methods} methods");
        match more.iter().find(|known| known.0 == *folder && known.1 == name) {
            Some((.., reason)) => {
                report.count(format!("  more for a reason: {folder} {name}: {counts}: {reason}"));
            }
            None => report.problem(format!(
                "{file}: {name}: {counts}, at most {FIELDS_MAX} and {METHODS_MAX}"
            )),
        }
    }
    for (folder, name, _) in more {
        let mut known = all.iter().filter(|(crate_, one)| crate_ == folder && one.name == *name);
        if !known.any(|(_, one)| one.is_more()) {
            report.problem(format!("{folder} {name}: it is no exception any more"));
        }
    }
}

fn is_product(folder: &str) -> bool {
    folder.starts_with("crates/") || folder.starts_with("bin/")
}

/// The structs of a crate's product.
fn structs_of(tree: &Tree, folder: &str) -> Vec<Struct> {
    let mut structs = Vec::new();
    let mut methods: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (file, source) in tree.product_of(folder) {
        structs.extend(structs_in(file, &source.product));
        for (name, count) in impls_in(&source.product) {
            *methods.entry((file.to_owned(), name)).or_default() += count;
        }
    }
    for ((file, name), count) in methods {
        // of several of a name it is the nearest one's
        let named = structs.iter_mut().filter(|one: &&mut Struct| one.name == name);
        if let Some(one) = named.max_by_key(|one| shared(&one.file, &file)) {
            one.methods += count;
        }
    }
    structs
}

/// How much of the beginning two paths share.
fn shared(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count() + usize::from(a == b)
}

fn structs_in(file: &str, code: &str) -> Vec<Struct> {
    let found = words(code, "struct").filter_map(|at| {
        let rest = code[at + "struct".len()..].trim_start();
        let name = word(rest);
        let rest = without_parameters(rest[name.len()..].trim_start());
        let fields = match rest.starts_with([';', '(']) {
            true => Vec::new(),
            false => {
                let open = opening(rest, 0)?;
                fields(&rest[open + 1..closing(rest, open)?])
            }
        };
        let is_plain = fields.iter().all(|field| field.starts_with("pub "));
        let (file, name) = (file.to_owned(), name.to_owned());
        Some(Struct { file, name, fields: fields.len(), is_plain, methods: 0 })
    });
    found.filter(|one| !one.name.is_empty()).collect()
}

/// The word that a text begins with.
fn word(text: &str) -> &str {
    let end = text.bytes().position(|byte| !is_word(byte)).unwrap_or(text.len());
    &text[..end]
}

/// The fields between a struct's braces, without their attributes.
fn fields(body: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let mut before = ' ';
    let parts = body.split(|c: char| {
        let is_arrow = c == '>' && matches!(before, '-' | '=');
        before = c;
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if !is_arrow => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(without_attributes).filter(|field| !field.is_empty()).collect()
}

fn without_attributes(field: &str) -> &str {
    let field = field.trim();
    match field.strip_prefix('#').and_then(|_| closing(field, 1)) {
        Some(end) => without_attributes(&field[end + 1..]),
        None => field,
    }
}

/// The inherent `impl`s of a file: of what, and how many functions stand in each.
fn impls_in(code: &str) -> Vec<(String, usize)> {
    let found = words(code, "impl").filter_map(|at| {
        // `impl Trait` stands in the middle of something, an `impl` begins it
        let before = code[..at].trim_end().trim_end_matches("unsafe").trim_end();
        if !(before.is_empty() || before.ends_with(['}', ';', ']', '{'])) {
            return None;
        }
        let open = at + code[at..].find('{')?;
        let of = without_parameters(code[at + "impl".len()..open].trim());
        if words(of, "for").next().is_some() {
            return None;
        }
        let path = of.split(['<', ' ', '\n']).next().unwrap_or_default();
        let name = path.rsplit("::").next().unwrap_or_default().to_owned();
        Some((name, functions(&code[open + 1..closing(code, open)?])))
    });
    found.collect()
}

/// The head of an `impl` without the parameters that it begins with.
fn without_parameters(head: &str) -> &str {
    if !head.starts_with('<') {
        return head;
    }
    let mut depth = 0_i32;
    let mut before = ' ';
    for (at, c) in head.char_indices() {
        depth += i32::from(c == '<') - i32::from(c == '>' && !matches!(before, '-' | '='));
        before = c;
        if depth == 0 {
            return head[at + 1..].trim_start();
        }
    }
    head
}

/// Functions in the body of an `impl`: none that stands in another one.
fn functions(body: &str) -> usize {
    let mut count = 0;
    let mut rest = body;
    while let Some(at) = words(rest, "fn").next() {
        count += 1;
        // a type `fn(...)` stands in parentheses, as parameters do
        let Some(open) = opening(rest, at) else { break };
        let Some(end) = closing(rest, open) else { break };
        rest = &rest[end + 1..];
    }
    count
}

/// The brace that opens a function's body.
fn opening(code: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match code.as_bytes().get(at)? {
            b'{' => return Some(at),
            b'(' | b'[' => at = closing(code, at)? + 1,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FIELDS_MAX, METHODS_MAX, More, check_with, functions, structs_in};
    use crate::tidy::problems_of;

    fn problems(files: &[(&str, &str)], more: &[More]) -> Vec<String> {
        let files = [&[("crates/a/Cargo.toml", ""), ("crates/a/src/lib.rs", "")], files].concat();
        problems_of(|tree, report| check_with(tree, report, more), &files)
    }

    fn of_fields(count: usize, visible: &str) -> String {
        let fields = (0..count).map(|n| format!("{visible}f{n}: Map<u8, fn(u8, u8) -> u8>,\n"));
        format!("struct B<'a, T> {{\n{}}}\n", fields.collect::<String>())
    }

    fn of_methods(count: usize) -> String {
        let methods = (0..count).map(|n| format!("fn m{n}(&self) {{ fn inner() {{}} }}\n"));
        format!("impl<T: Fn() -> u8> B<T> {{\n{}}}\n", methods.collect::<String>())
    }

    #[test]
    fn sees_a_struct_of_too_many_fields() {
        let file = "crates/a/src/b.rs";
        assert!(problems(&[(file, &of_fields(FIELDS_MAX, ""))], &[]).is_empty());
        let more = of_fields(FIELDS_MAX + 1, "");
        assert_eq!(
            problems(&[(file, &more)], &[]),
            ["crates/a/src/b.rs: B: 13 fields, 0 methods, at most 12 and 30"]
        );
        assert!(problems(&[(file, &of_fields(99, "pub "))], &[]).is_empty());
        assert!(problems(&[(file, &of_fields(99, "/// A.\n#[a(b, c)]\npub "))], &[]).is_empty());
        assert_eq!(problems(&[(file, &of_fields(99, "pub(crate) "))], &[]).len(), 1);
        assert!(problems(&[("crates/a/src/tests.rs", &more)], &[]).is_empty());
        assert!(problems(&[("tools/Cargo.toml", ""), ("tools/src/b.rs", &more)], &[]).is_empty());
    }

    #[test]
    fn sees_a_struct_of_too_many_methods_over_all_its_files() {
        let (file, other) = ("crates/a/src/b.rs", "crates/a/src/c.rs");
        let part = |count| format!("struct B;\n{}", of_methods(count));
        assert!(problems(&[(file, &part(METHODS_MAX))], &[]).is_empty());
        assert_eq!(
            problems(&[(file, &part(METHODS_MAX)), (other, &of_methods(1))], &[]),
            ["crates/a/src/b.rs: B: 0 fields, 31 methods, at most 12 and 30"]
        );
        let of_trait = of_methods(9).replace("> B<T>", "> C for B<T>");
        assert!(problems(&[(file, &part(METHODS_MAX)), (other, &of_trait)], &[]).is_empty());
        let of_tests = format!("#[cfg(test)]\n{}", of_methods(9));
        assert!(problems(&[(file, &part(METHODS_MAX)), (other, &of_tests)], &[]).is_empty());
        let own = part(METHODS_MAX);
        assert!(problems(&[(file, &own), (other, &own)], &[]).is_empty());
    }

    #[test]
    fn a_reason_is_none_once_the_rule_holds() {
        let file = "crates/a/src/b.rs";
        let more = of_fields(FIELDS_MAX + 1, "");
        let known = [("crates/a", "B", "a reason")];
        assert!(problems(&[(file, &more)], &known).is_empty());
        assert_eq!(
            problems(&[(file, "struct B;")], &known),
            ["crates/a B: it is no exception any more"]
        );
        assert_eq!(problems(&[(file, "")], &known).len(), 1);
    }

    #[test]
    fn counts_what_is_there() {
        let code = "pub struct A(u8, u8);\nstruct B;\nstruct C<F: Fn(u8)> where F: Fn(u8) { a: F, \
                    b: (u8, u8) }";
        let found: Vec<_> =
            structs_in("", code).into_iter().map(|one| (one.name, one.fields)).collect();
        assert_eq!(found, [("A".to_owned(), 0), ("B".to_owned(), 0), ("C".to_owned(), 2)]);
        assert_eq!(functions("fn a(b: fn(u8)) -> [u8; 2] { fn c() {} }\nconst fn d() {}"), 2);
    }
}
