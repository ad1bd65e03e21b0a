//! Guardrails: what an ordinary user may not do, and is warned of, as a Cassandra 5.0.9 with the same settings answered
//! (`conformance/guardrails`).

use std::rc::Rc;

use cluster::{Answer, Request};
use config::Config;
use env::sim::{World, WorldOptions};
use protocol::{ErrorDetail, QueryOptions};
use serde_json::Value;

use crate::{Client, config, start, told};

const STATEMENTS: &str = include_str!("../../../../conformance/guardrails/guardrails.cql");
const SETTINGS: &str = include_str!("../../../../conformance/guardrails/guardrails.yaml");
const ANSWERS: &str = include_str!("../../../../conformance/golden/guardrails.json");
/// Answers by statement, but for those that a directive stands before.
fn answers() -> Vec<(String, Value)> {
    let golden: Vec<Value> = serde_json::from_str(ANSWERS).unwrap();
    let mut plain = Vec::new();
    let mut directed = false;
    for line in STATEMENTS.lines().skip(1) {
        match line.strip_prefix("-- ") {
            Some(_) => directed = true,
            None if std::mem::take(&mut directed) => {}
            None => plain.push(line.trim_end_matches(';').to_owned()),
        }
    }
    let answer = |statement: String| {
        let found = golden.iter().find(|entry| entry["cql"] == statement.as_str());
        let answer = found.map(|entry| entry["answers"][0].clone());
        (statement, answer.unwrap_or_default())
    };
    plain.into_iter().map(answer).collect()
}

fn guarded() -> Config {
    let mut config = config();
    let settings: Vec<String> = SETTINGS.lines().map(|line| line.replacen(": ", "=", 1)).collect();
    config.set_all(settings.iter().map(String::as_str)).unwrap();
    config
}

async fn story(client: Client) {
    let mut keyspace: Option<Rc<str>> = None;
    let mut wrong = Vec::new();
    let all = answers();
    assert!(all.len() > 100, "{} statements", all.len());
    for (statement, answer) in all {
        let options = QueryOptions::default();
        let request = Request { keyspace: keyspace.clone(), ..client.request(&options) };
        let _ = request.guard.set(client.node.new_guard());
        let outcome = client.node.query(&statement, request).await;
        if let Ok(Answer::SetKeyspace(name)) = &outcome.result {
            keyspace = Some(name.as_str().into());
        }
        let theirs: Vec<String> = answer["warnings"]
            .as_array()
            .map(|all| all.iter().map(|w| w.as_str().unwrap().to_owned()).collect())
            .unwrap_or_default();
        let fails = answer["kind"] == "error";
        if fails != outcome.result.is_err() || theirs != outcome.warnings {
            let ours = (outcome.result.map(drop).map_err(|e| e.message), outcome.warnings);
            wrong.push(format!("{statement:.100}\n  ours {ours:?}\n  theirs {fails} {theirs:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ordinary_users_are_answered_as_by_cassandra() {
    let world = World::new(5, WorldOptions::default());
    let (_, serving) = start(&world, 2, guarded());
    told(&world, &serving, story);
}

#[test]
fn nobody_else_is_guarded() {
    let world = World::new(6, WorldOptions::default());
    let (_, serving) = start(&world, 1, guarded());
    told(&world, &serving, async |client: Client| {
        let simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        client.run(&format!("CREATE KEYSPACE t WITH replication = {simple}")).await;
        let prepared =
            client.node.prepare("SELECT * FROM t.a ALLOW FILTERING", None, None, None, None);
        let error = prepared.await.unwrap_err();
        assert!(matches!(error.detail, ErrorDetail::Invalid), "{}", error.message);
        assert!(!error.message.contains("Guardrail"), "{}", error.message);
    });
}
