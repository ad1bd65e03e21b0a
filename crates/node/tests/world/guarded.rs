//! Guardrails and limits: what an ordinary user may not do, and is warned of, as a Cassandra 5.0.9
//! with the same settings answered (`conformance/guardrails`).

use std::rc::Rc;
use std::time::Duration;

use cluster::{Answer, Outcome, Request};
use config::Config;
use env::sim::{World, WorldOptions};
use protocol::{
    Consistency, ErrorDetail, ErrorResponse, Flags, Frame, Header, Opcode, QueryOptions, Version,
};
use serde_json::Value;

use crate::{Client, config, start, told};

/// Statements, the settings of the servers, and what Cassandra answered.
struct Recorded {
    statements: &'static str,
    settings: &'static str,
    answers: &'static str,
}

const GUARDRAILS: Recorded = Recorded {
    statements: include_str!("../../../../conformance/guardrails/guardrails.cql"),
    settings: include_str!("../../../../conformance/guardrails/guardrails.yaml"),
    answers: include_str!("../../../../conformance/golden/guardrails.json"),
};
const LIMITS: Recorded = Recorded {
    statements: include_str!("../../../../conformance/guardrails/limits.cql"),
    settings: include_str!("../../../../conformance/guardrails/limits.yaml"),
    answers: include_str!("../../../../conformance/golden/limits.json"),
};
/// What Cassandra's log said when the tables of `limits.cql` were flushed.
const LIMITS_LOG: &str = include_str!("../../../../conformance/guardrails/limits.log");
/// An ordinary user.
const USER: &str = "u";
/// A superuser.
const ROOT: &str = "root";
/// The adapter adds it, once a session.
const USE_WARNING: &str = "`USE <keyspace>`";

impl Recorded {
    fn config(&self) -> Config {
        let mut config = config();
        let lines = self.settings.lines().map(|line| line.replacen(": ", "=", 1));
        let settings: Vec<String> =
            lines.chain(["authenticator.class_name=PasswordAuthenticator".to_owned()]).collect();
        config.set_all(settings.iter().map(String::as_str)).unwrap();
        config
    }

    fn steps(&self) -> Vec<Step> {
        let golden: Vec<Value> = serde_json::from_str(self.answers).unwrap();
        let mut steps = Vec::new();
        let mut directives = Vec::new();
        let mut golden = golden.iter();
        for line in self.statements.lines().skip(1) {
            if let Some(directive) = line.strip_prefix("-- ") {
                directives.push(directive.to_owned());
                continue;
            }
            let text = line.trim_end_matches(';').to_owned();
            let entry = golden.find(|entry| entry["cql"] == text.as_str()).expect(&text);
            let answers = entry["answers"].as_array().unwrap().clone();
            steps.push(Step { text, directives: std::mem::take(&mut directives), answers });
        }
        steps
    }
}

/// A statement, what is said about it, and what Cassandra answered.
struct Step {
    text: String,
    directives: Vec<String>,
    answers: Vec<Value>,
}

impl Step {
    fn directive(&self, name: &str) -> Option<&str> {
        let mut all = self.directives.iter();
        all.find_map(|d| d.strip_prefix(name).filter(|d| d.is_empty() || d.starts_with(' ')))
            .map(str::trim)
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.directive(name).and_then(|n| n.parse().ok())
    }

    /// The body of a QUERY with the values that are bound, of which the options are taken.
    fn body(&self) -> Vec<u8> {
        let values: Vec<Vec<u8>> =
            self.directive("bind").unwrap_or_default().split_whitespace().map(value).collect();
        let mut body = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, u8::from(!values.is_empty())];
        if !values.is_empty() {
            body.extend((values.len() as u16).to_be_bytes());
        }
        for value in values {
            body.extend((value.len() as i32).to_be_bytes());
            body.extend(value);
        }
        body
    }

    fn options<'a>(&self, body: &'a [u8]) -> QueryOptions<'a> {
        let header = Header {
            version: Version::V5,
            flags: Flags::default(),
            stream: 0,
            opcode: Opcode::Query,
            length: body.len() as u32,
        };
        let parsed = protocol::Request::parse(Frame { header, body }).unwrap();
        let protocol::Request::Query { options, .. } = parsed else { unreachable!() };
        let level = self.directive("consistency").and_then(Consistency::from_name);
        QueryOptions {
            consistency: level.unwrap_or(Consistency::One),
            page_size: self.number("page"),
            timestamp: self.number("timestamp"),
            ..options
        }
    }
}

/// A value as directives write it.
fn value(text: &str) -> Vec<u8> {
    let (kind, rest) = text.split_once(':').unwrap();
    match kind {
        "int" => rest.parse::<i32>().unwrap().to_be_bytes().to_vec(),
        "bigint" => rest.parse::<i64>().unwrap().to_be_bytes().to_vec(),
        "text" => rest.as_bytes().to_vec(),
        "list" => {
            let items: Vec<_> = rest.trim_matches(['[', ']']).split(',').map(value).collect();
            let mut bytes = (items.len() as i32).to_be_bytes().to_vec();
            for item in items {
                bytes.extend((item.len() as i32).to_be_bytes());
                bytes.extend(item);
            }
            bytes
        }
        other => panic!("{other} is no type of a value"),
    }
}

/// A message without what differs from node to node: its address, and how many bytes of memory a
/// row takes.
fn comparable(text: &str) -> String {
    let text = text.replace("/127.0.0.41:7000", "/10.0.0.1:7000");
    match text.split_once("nodes loaded over ") {
        Some((before, after)) => {
            let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}nodes loaded over _{after}")
        }
        None => text,
    }
}

/// What differs in an answer, if anything does: whether it fails, the error of a limit, the
/// warnings.
fn difference(
    step: &Step,
    theirs: &Value,
    error: Option<&ErrorResponse>,
    warnings: &[String],
) -> Option<String> {
    let their_warnings = theirs["warnings"].as_array().cloned().unwrap_or_default();
    let their_warnings: Vec<String> = their_warnings
        .iter()
        .map(|w| comparable(w.as_str().unwrap()))
        .filter(|w| !w.starts_with(USE_WARNING))
        .collect();
    let warnings: Vec<String> = warnings.iter().map(|w| comparable(w)).collect();
    let their_error = (theirs["kind"] == "error").then(|| {
        let message = comparable(theirs["message"].as_str().unwrap_or_default());
        (theirs["code"].as_str().unwrap_or_default().to_owned(), message)
    });
    let error = error
        .map(|error| (format!("{:04x}", error.detail.code() as i32), comparable(&error.message)));
    let is_same_error = match (&error, &their_error) {
        (Some((code, message)), Some((their_code, their_message))) => {
            let is_exact =
                ["Guardrail", "Operation failed"].iter().any(|of| their_message.starts_with(of));
            code == their_code && (!is_exact || message == their_message)
        }
        (ours, theirs) => ours.is_none() && theirs.is_none(),
    };
    let text = format!(
        "{:.100}\n  ours {error:?} {warnings:?}\n  theirs {their_error:?} {their_warnings:?}",
        step.text
    );
    (!is_same_error || warnings != their_warnings).then_some(text)
}

/// Runs what was recorded as an ordinary user; what is answered otherwise than by Cassandra.
async fn differences(client: Client, steps: Vec<Step>) -> Vec<String> {
    let mut keyspace: Option<Rc<str>> = None;
    let mut wrong = Vec::new();
    let user: Rc<str> = USER.into();
    for step in &steps {
        let body = step.body();
        let options = step.options(&body);
        let request = Request {
            keyspace: keyspace.clone(),
            user: Some(Rc::clone(&user)),
            ..client.request(&options)
        };
        let is_bound = step.directive("bind").is_some();
        if is_bound || step.directive("prepare").is_some() {
            let (session, mut warnings) = (keyspace.as_deref(), Vec::new());
            let prepared = client
                .node
                .coordinator()
                .prepare(&step.text, session, false, None, Some(&user), &mut warnings)
                .await;
            wrong.extend(difference(step, &step.answers[0], prepared.as_ref().err(), &warnings));
            if let (Ok(info), true) = (prepared, is_bound) {
                let (outcome, _) = client.node.coordinator().execute(&info.id, request).await;
                let Outcome { result, warnings, .. } = outcome;
                wrong.extend(difference(step, &step.answers[1], result.as_ref().err(), &warnings));
            }
            continue;
        }
        let Outcome { result, warnings, .. } =
            client.node.coordinator().query(&step.text, request).await;
        if let Ok(Answer::SetKeyspace(name)) = &result {
            keyspace = Some(name.as_str().into());
        }
        wrong.extend(difference(step, &step.answers[0], result.as_ref().err(), &warnings));
    }
    wrong
}

/// An ordinary user's role, made before anybody is guarded.
async fn make_user(client: &Client) {
    let made = client.node.auth().make_first_superuser(ROOT, "p").await;
    assert!(made.unwrap());
    as_root(client, &format!("CREATE ROLE {USER} WITH PASSWORD = 'p' AND LOGIN = true")).await;
}

/// What the superuser asks: the cells of the rows.
async fn as_root(client: &Client, text: &str) -> Vec<u8> {
    let options = QueryOptions::default();
    let request = Request { user: Some(ROOT.into()), ..client.request(&options) };
    match client.node.coordinator().query(text, request).await.result {
        Ok(Answer::Rows(page)) => page.cells,
        Ok(_) => Vec::new(),
        Err(error) => panic!("{text}: {}", error.message),
    }
}

fn compare(seed: u64, recorded: &'static Recorded) {
    let world = World::new(seed, WorldOptions::default());
    let (_, serving) = start(&world, 2, recorded.config());
    let wrong = told(&world, &serving, async |client: Client| {
        make_user(&client).await;
        let steps = recorded.steps();
        assert!(steps.len() > 100, "{} statements", steps.len());
        differences(client, steps).await
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ordinary_users_are_answered_as_by_cassandra() {
    compare(5, &GUARDRAILS);
}

#[test]
fn limits_are_kept_as_by_cassandra() {
    compare(7, &LIMITS);
}

/// What is written to SSTables and is too large is told of in the log, in the words of Cassandra's.
#[test]
fn what_is_too_large_on_disk_is_told_of() {
    let world = World::new(8, WorldOptions::default());
    let mut config = LIMITS.config();
    // the log itself is to be read
    config.set("read_thresholds_enabled=false").unwrap();
    let (_, serving) = start(&world, 2, config);
    let lines = told(&world, &serving, async |client: Client| {
        make_user(&client).await;
        let writes = ["CREATE", "USE", "INSERT", "UPDATE", "DELETE"];
        let steps = LIMITS.steps().into_iter();
        let steps = steps.filter(|step| writes.iter().any(|word| step.text.starts_with(word)));
        differences(client.clone(), steps.collect()).await;
        let schema = client.node.schema();
        for table in schema.keyspace("cf_l1").unwrap().tables.values() {
            client.node.engine().node().unwrap().flush(table.id).await.unwrap();
        }
        texts(&as_root(&client, "SELECT level, message FROM system_views.system_logs").await)
    });
    let mut ours: Vec<String> = lines
        .chunks(2)
        .map(|line| format!("{} {}", line[0], line[1]))
        .map(|l| masked(&l))
        .collect();
    ours.retain(|line| line.contains(" cf_l1."));
    ours.sort();
    let theirs: Vec<&str> = LIMITS_LOG.lines().collect();
    assert_eq!(ours, theirs);
}

/// A line of the log without the file, and without the size of a partition, which depends on the
/// time.
fn masked(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for place in 0..words.len() {
        match words[..place] {
            [.., "on", "sstable"] => words[place] = "_",
            [.., "has", "size"] => words[place] = "_,",
            _ => {}
        }
    }
    words.join(" ")
}

/// Cells of texts.
pub fn texts(mut cells: &[u8]) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some((length, rest)) = cells.split_first_chunk::<4>() {
        let (text, rest) = rest.split_at(i32::from_be_bytes(*length).max(0) as usize);
        texts.push(String::from_utf8_lossy(text).into_owned());
        cells = rest;
    }
    texts
}

/// A disk that fills is told of once in half an hour; one that is full takes no writes of ordinary
/// users.
#[test]
fn a_full_disk_takes_no_writes() {
    let world = World::new(9, WorldOptions::default());
    let mut config = LIMITS.config();
    config
        .set_all(["data_disk_usage_max_disk_size=64KiB", "read_thresholds_enabled=false"])
        .unwrap();
    config.set("data_disk_usage_percentage_warn_threshold=1").unwrap();
    let (_, serving) = start(&world, 1, config);
    told(&world, &serving, async |client: Client| {
        make_user(&client).await;
        let simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        as_root(&client, &format!("CREATE KEYSPACE t WITH replication = {simple}")).await;
        as_root(&client, "CREATE TABLE t.a (k int PRIMARY KEY, v int)").await;
        let ask = async |user: &str, text: &str| {
            let options = QueryOptions::default();
            let request = Request { user: Some(user.into()), ..client.request(&options) };
            let outcome = client.node.coordinator().query(text, request).await;
            (outcome.result.err().map(|error| error.message), outcome.warnings)
        };
        client.env.sleep(Duration::from_secs(31)).await;
        let insert = "INSERT INTO t.a (k, v) VALUES (1, 1)";
        let stuffed =
            "Guardrail replica_disk_usage violated: Replica disk usage exceeds warning threshold";
        assert_eq!(ask(USER, insert).await, (None, vec![stuffed.to_owned()]));
        assert_eq!(ask(USER, insert).await, (None, Vec::new()));
        let mut config = config::Config::clone(&client.node.guardrails().current_config());
        config.set("data_disk_usage_percentage_fail_threshold=2").unwrap();
        client.node.guardrails().set_config(&config.into());
        client.env.sleep(Duration::from_secs(31)).await;
        let full = "Guardrail replica_disk_usage violated: Write request failed because disk usage exceeds failure threshold".to_owned();
        assert_eq!(ask(USER, insert).await, (Some(full.clone()), vec![full.clone()]));
        for text in [insert, "DELETE FROM t.a WHERE k = 1"] {
            assert_eq!(ask(USER, text).await, (Some(full.clone()), Vec::new()), "{text}");
        }
        let batch = format!("BEGIN BATCH {insert} IF NOT EXISTS; APPLY BATCH");
        assert_eq!(ask(USER, &batch).await.0, Some(full.clone()));
        // as in Cassandra, which forgot those
        let conditional = format!("{insert} IF NOT EXISTS");
        assert_eq!(ask(USER, &conditional).await, (None, Vec::new()));
        assert_eq!(ask(ROOT, insert).await, (None, Vec::new()));
        assert_eq!(ask(USER, "SELECT * FROM t.a").await, (None, Vec::new()));
        let lines = texts(&as_root(&client, "SELECT message FROM system_views.system_logs").await);
        let of_disk: Vec<_> =
            lines.iter().filter(|line| line.contains("local_data_disk_usage")).collect();
        assert_eq!(of_disk.len(), 2, "{of_disk:?}");
        assert!(of_disk[0].ends_with("%(Stuffed) exceeds warning threshold of 1%"));
        assert!(
            of_disk[1]
                .ends_with("%(Full) exceeds failure threshold of 2%, will stop accepting writes")
        );
    });
}

#[test]
fn nobody_else_is_guarded() {
    let world = World::new(6, WorldOptions::default());
    let (_, serving) = start(&world, 1, GUARDRAILS.config());
    told(&world, &serving, async |client: Client| {
        let simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        make_user(&client).await;
        as_root(&client, &format!("CREATE KEYSPACE t WITH replication = {simple}")).await;
        let mut warnings = Vec::new();
        let prepared = client.node.coordinator().prepare(
            "SELECT * FROM t.a ALLOW FILTERING",
            None,
            false,
            None,
            None,
            &mut warnings,
        );
        let error = prepared.await.unwrap_err();
        assert!(matches!(error.detail, ErrorDetail::Invalid), "{}", error.message);
        assert!(!error.message.contains("Guardrail"), "{}", error.message);
        assert!(warnings.is_empty(), "{warnings:?}");
    });
}
