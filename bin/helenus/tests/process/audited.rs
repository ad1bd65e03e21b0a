//! The audit log and the full query log: the story of `conformance/audit`, and what a Cassandra
//! wrote of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use protocol::client::{BatchItem, BoundValue, Parameters};
use protocol::{BatchKind, Consistency};

use super::client::Client;
use super::node::{Node, PATIENCE, Place};

/// What clients do: see its head.
const STORY: &str = include_str!("../../../../conformance/audit/story.txt");
/// What a Cassandra 5.0.9 wrote of it (conformance/audit/story.py).
const GOLDEN: &str = include_str!("../../../../conformance/audit/golden.txt");

/// A step's text, without its escapes.
fn text(raw: &str) -> String {
    let mut out = String::new();
    let mut rest = raw;
    while let Some((before, escape)) = rest.split_once('\\') {
        out.push_str(before);
        let (kind, behind) = escape.split_at(1);
        let digits = match kind {
            "n" => 0,
            "u" => 4,
            "U" => 8,
            other => panic!("\\{other}"),
        };
        let (hex, behind) = behind.split_at(digits);
        let code = u32::from_str_radix(hex, 16);
        out.push(code.map_or('\n', |code| char::from_u32(code).unwrap()));
        rest = behind;
    }
    out + rest
}

fn values<'a>(words: impl Iterator<Item = &'a str>) -> Vec<BoundValue> {
    let byte = |hex: &[u8]| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap();
    let value = |word: &str| match word {
        "-" => BoundValue::Null,
        word => BoundValue::Bytes(word.as_bytes().chunks(2).map(byte).collect()),
    };
    words.map(value).collect()
}

/// Plays the story against a node.
struct Story {
    ip: String,
    clients: BTreeMap<String, Client>,
    prepared: BTreeMap<String, Vec<u8>>,
}

impl Story {
    fn play(ip: &str) {
        let (clients, prepared) = (BTreeMap::new(), BTreeMap::new());
        let mut this = Self { ip: ip.to_owned(), clients, prepared };
        for line in STORY.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let [verb, name, rest] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!() };
            this.step(verb, name, &text(rest));
        }
    }

    fn step(&mut self, verb: &str, name: &str, rest: &str) {
        if verb == "login" {
            let (role, password) = rest.split_once(' ').unwrap();
            let client = Client::try_connect_as(&self.ip, role, password);
            self.clients.extend(client.map(|client| (name.to_owned(), client)));
            return;
        }
        let client = self.clients.get_mut(name).unwrap();
        let id_of = |name: &str| self.prepared.get(name).cloned().unwrap_or(vec![0; 16]);
        match verb {
            "query" => {
                let _ = client.try_query(rest, Consistency::One);
            }
            "prepare" => {
                let (statement, text) = rest.split_once(' ').unwrap();
                let id = client.try_prepare(text);
                self.prepared.extend(id.map(|id| (statement.to_owned(), id)));
            }
            "execute" => {
                let (statement, words) = rest.split_once(' ').unwrap();
                let mut parameters = Parameters::at(Consistency::One);
                parameters.values = values(words.split(' '));
                let _ = client.execute(&id_of(statement), &parameters);
            }
            "batch" => {
                let (kind, entries) = rest.split_once(' ').unwrap();
                let kind = match kind {
                    "logged" => BatchKind::Logged,
                    _ => BatchKind::Unlogged,
                };
                let entry = |entry: &str| {
                    let mut words = entry.split(' ');
                    match self.prepared.get(words.next().unwrap()) {
                        Some(id) => (BatchItem::Prepared(id.clone()), values(words)),
                        None => (BatchItem::Text(entry.to_owned()), Vec::new()),
                    }
                };
                let items = entries.split("; ").map(entry).collect();
                client.batch(kind, items);
            }
            other => panic!("{other}"),
        }
    }
}

/// The entries of an audit log: what follows ` - `, with the lines that go on with a tab.
fn entries(log: &str) -> Vec<String> {
    let log = log.replace("\n\t", "\\n");
    log.lines().map(|line| line.split_once(" - ").unwrap().1.to_owned()).collect()
}

/// Without what differs from run to run.
fn normal(entries: &[String]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut normal = Vec::new();
    for entry in entries {
        let (before, rest) = entry.split_once("|host:").unwrap();
        let (_, rest) = rest.split_once("|type:").unwrap();
        let head = "|host:HOST|source:SOURCE|port:PORT|timestamp:TIME|type:";
        let mut entry = format!("{before}{head}{rest}");
        let id = entry.split_once("|batch:").and_then(|(_, rest)| rest.split('|').next());
        if let Some(id) = id.map(str::to_owned) {
            let at = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
                ids.push(id.clone());
                ids.len() - 1
            });
            entry = entry.replace(&id, &format!("BATCH{}", at + 1));
        }
        normal.push(entry);
    }
    normal
}

/// The entries of a log once it has so many.
fn until(file: &Path, count: usize) -> Vec<String> {
    let end = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        let found = entries(&text);
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < end, "{} of {count}: {text}", found.len());
        std::thread::yield_now();
    }
}

/// A node where one has to log in, with what more is set.
fn guarded(place: &Place, more: &[&str]) -> Node {
    let file = place.dir.join("password");
    fs::write(&file, "cassandra\n").unwrap();
    let file = format!("first_superuser_password_file={}", file.display());
    let settings = [
        "authenticator=PasswordAuthenticator",
        "authorizer=CassandraAuthorizer",
        "auth_bcrypt_gensalt_log2_rounds=4",
        "first_superuser=cassandra",
        &file,
    ];
    let settings: Vec<&str> = settings.into_iter().flat_map(|set| ["--set", set]).collect();
    place.serve(&[&settings, more].concat())
}

fn logs(place: &Place) -> (PathBuf, String) {
    let directory = place.dir.join("logs");
    let setting = format!("log_directory={}", directory.display());
    (directory, setting)
}

#[test]
fn entries_are_those_of_cassandra() {
    let place = Place::new(73);
    let (directory, setting) = logs(&place);
    let node = guarded(
        &place,
        &[
            "--set",
            &setting,
            "--set",
            "audit_logging_options.enabled=true",
            "--set",
            "audit_logging_options.logger.class_name=FileAuditLogger",
        ],
    );
    Story::play(&node.ip);
    let golden: Vec<&str> = GOLDEN.lines().collect();
    let found = until(&directory.join("audit/audit.log"), golden.len());
    let host = format!("|host:/{}:7000|source:/127.0.0.1|port:", node.ip);
    assert!(found.iter().all(|entry| entry.contains(&host)), "{found:?}");
    // of a syntax error the excerpt is another one
    let comparable = |entry: &str| match entry.split_once("; line ") {
        Some((before, _)) => format!("{before}; line"),
        None => entry.to_owned(),
    };
    let found: Vec<String> = normal(&found).iter().map(|entry| comparable(entry)).collect();
    let golden: Vec<String> = golden.into_iter().map(comparable).collect();
    for (found, golden) in found.iter().zip(&golden) {
        assert_eq!(found, golden);
    }
    assert_eq!(found.len(), golden.len());
    node.stop();
}

#[test]
fn nodetool_turns_the_audit_log_on_and_off() {
    let place = Place::new(74);
    let (directory, setting) = logs(&place);
    let node = place.serve(&["--set", &setting]);
    let file = directory.join("audit/audit.log");
    let row = |name: &str, value: &str, width: usize| format!("{name:<19} {value:<width$}\n");
    let shown = |enabled: &str, logger: &str, keyspaces: [&str; 2], categories: &str| {
        let dir = directory.join("audit").display().to_string();
        let width = dir.len().max(keyspaces[1].len());
        [
            ("enabled", enabled),
            ("logger", logger),
            ("audit_logs_dir", &dir),
            ("archive_command", ""),
            ("roll_cycle", "HOURLY"),
            ("block", "true"),
            ("max_log_size", "17179869184"),
            ("max_queue_weight", "268435456"),
            ("max_archive_retries", "10"),
            ("included_keyspaces", keyspaces[0]),
            ("excluded_keyspaces", keyspaces[1]),
            ("included_categories", ""),
            ("excluded_categories", categories),
            ("included_users", ""),
            ("excluded_users", ""),
        ]
        .map(|(name, value)| row(name, value, width))
        .concat()
    };
    let excluded = "system,system_schema,system_virtual_schema";
    assert_eq!(node.verb(&["getauditlog"]), shown("false", "BinAuditLogger", ["", excluded], ""));
    let mut client = Client::connect(&node.ip);
    client.fill(1);
    let enable = ["enableauditlog", "--logger", "FileAuditLogger"];
    let lists = ["--included-keyspaces", "a, ks,system", "--excluded-categories", "dml"];
    assert_eq!(node.verb(&[&enable[..], &lists].concat()), "");
    let now = shown("true", "FileAuditLogger", ["a,ks", excluded], "DML");
    assert_eq!(node.verb(&["getauditlog"]), now);
    client.query("SELECT * FROM ks.t");
    client.query("INSERT INTO ks.t (k, v) VALUES (7, 7)");
    client.query("SELECT * FROM system.local");
    client.query("USE ks");
    client.query("SELECT * FROM t WHERE k = 7");
    let found = until(&file, 3);
    let operations: Vec<_> =
        found.iter().map(|entry| entry.split_once("|operation:").unwrap().1).collect();
    assert_eq!(operations, ["SELECT * FROM ks.t", "USE ks", "SELECT * FROM t WHERE k = 7"]);
    assert!(found.iter().all(|entry| entry.starts_with("user:anonymous|")), "{found:?}");
    // the logger stays, and so only the filter changes
    node.verb(&["enableauditlog", "--logger", "FileAuditLogger", "--roll-cycle", "DAILY"]);
    assert!(node.verb(&["getauditlog"]).contains("roll_cycle          HOURLY"));
    client.query("INSERT INTO ks.t (k, v) VALUES (8, 8)");
    until(&file, 4);
    assert_eq!(node.verb(&["disableauditlog"]), "");
    assert_eq!(node.verb(&["disableauditlog"]), "");
    client.query("SELECT * FROM t WHERE k = 8");
    node.verb(&["enableauditlog", "--logger", "FileAuditLogger"]);
    client.query("SELECT * FROM t WHERE k = 9");
    let found = until(&file, 5);
    assert!(found[4].ends_with("k = 9"), "{found:?}");
    node.stop();
}

#[test]
fn an_audit_log_that_cannot_be_written_stops_the_start() {
    let place = Place::new(75);
    let enabled = ["--set", "audit_logging_options.enabled=true"];
    let said = place.start(&enabled).refuses();
    assert!(said.contains("set log_directory or audit_logging_options.audit_logs_dir"), "{said}");
    let (_, setting) = logs(&place);
    let log = ["--set", setting.as_str()];
    for (option, wanted) in [
        ("logger.class_name=com.example.Mine", "FileAuditLogger or BinAuditLogger"),
        ("included_categories=DML,NONE", "QUERY, DML, DDL"),
        ("roll_cycle=NEVER", "MINUTELY, HOURLY"),
    ] {
        let option = format!("audit_logging_options.{option}");
        let said = place.start(&[&enabled[..], &log, &["--set", &option]].concat()).refuses();
        assert!(said.contains(wanted), "{said}");
    }
    let file = place.dir.join("file");
    fs::write(&file, "").unwrap();
    let option = format!("audit_logging_options.audit_logs_dir={}", file.display());
    let said = place.start(&[&enabled[..], &["--set", &option]].concat()).refuses();
    assert!(said.contains("set another audit_logging_options.audit_logs_dir"), "{said}");
}

/// Where the records of a queue's only file are, and their bytes.
fn records(directory: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "cq4") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let mut at = 0;
        while let Some(word) = bytes.get(at..at + 4) {
            let word = u32::from_le_bytes(word.try_into().unwrap());
            let (length, is_meta) = ((word & 0x3fff_ffff) as usize, word >> 30 == 1);
            if word == 0 || word >> 30 > 1 {
                break;
            }
            if !is_meta {
                found.push(bytes[at + 4..at + 4 + length].to_vec());
            }
            at = (at + 4 + length).next_multiple_of(4);
        }
    }
    found
}

/// The records of a queue once it has so many.
fn until_records(directory: &Path, count: usize) -> Vec<Vec<u8>> {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = records(directory);
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < end, "{} of {count}", found.len());
        std::thread::yield_now();
    }
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn nodetool_turns_the_full_query_log_on_and_off() {
    let place = Place::new(76);
    let directory = place.dir.join("queries");
    let setting = format!("full_query_logging_options.log_dir={}", directory.display());
    let node = place.serve(&["--set", &setting]);
    assert!(node.verb(&["getfullquerylog"]).starts_with("enabled             false "));
    let mut client = Client::connect(&node.ip);
    client.fill(1);
    assert_eq!(node.verb(&["enablefullquerylog"]), "");
    let shown = node.verb(&["getfullquerylog"]);
    assert!(shown.starts_with("enabled             true "), "{shown}");
    assert!(shown.contains(&format!("log_dir             {}\n", directory.display())), "{shown}");
    client.query("INSERT INTO ks.t (k, v) VALUES (7, 7)");
    client.error("SELECT * FROM ks.absent", Consistency::One);
    let id = client.prepare("SELECT * FROM ks.t WHERE k = ?");
    let mut parameters = Parameters::at(Consistency::One);
    parameters.values = vec![BoundValue::Bytes(vec![0, 0, 0, 7])];
    client.execute(&id, &parameters).unwrap();
    let text = BatchItem::Text("INSERT INTO ks.t (k, v) VALUES (?, 1)".to_owned());
    client.batch(BatchKind::Unlogged, vec![(text, vec![BoundValue::Bytes(vec![0, 0, 0, 9])])]);
    let found = until_records(&directory, 3);
    assert!(has(&found[0], "single-query") && has(&found[0], "VALUES (7, 7)"));
    assert!(has(&found[1], "SELECT * FROM ks.t WHERE k = ?"));
    // consistency, flags, a value
    let options = "\0\u{1}\u{1}\0\u{1}\0\0\0\u{4}\0\0\0\u{7}";
    assert!(has(&found[1], options), "{:?}", found[1]);
    assert!(has(&found[2], "UNLOGGED") && has(&found[2], "VALUES (?, 1)"));
    assert_eq!(node.verb(&["disablefullquerylog"]), "");
    client.query("SELECT * FROM ks.t");
    assert_eq!(node.verb(&["enablefullquerylog"]), "");
    client.query("SELECT k FROM ks.t");
    let found = until_records(&directory, 4);
    assert!(has(&found[3], "SELECT k FROM ks.t"), "it goes on in its file");
    assert_eq!(node.verb(&["resetfullquerylog"]), "");
    assert!(fs::read_dir(&directory).unwrap().next().is_none(), "its files go");
    assert!(node.verb(&["getfullquerylog"]).starts_with("enabled             false "));
    node.stop();
}

#[test]
fn an_audit_log_may_be_a_queue() {
    let place = Place::new(77);
    let (directory, setting) = logs(&place);
    let node = place.serve(&["--set", &setting, "--set", "audit_logging_options.enabled=true"]);
    let mut client = Client::connect(&node.ip);
    client.fill(1);
    let found = until_records(&directory.join("audit"), 3);
    assert!(has(&found[0], "user:anonymous|") && has(&found[0], "|type:CREATE_KEYSPACE|"));
    assert!(has(&found[2], "|operation:INSERT INTO ks.t (k, v) VALUES (0, 0)"));
    node.stop();
}
