//! Reads ask another replica where one does not answer, also of a table that nobody has read yet
//! (`speculative_retry` at its default).

use env::sim::Fault;
use protocol::Consistency;

use crate::ring::{Members, NODES};

const WORLDS: u64 = 3;
const KEYS: i32 = 12;

/// A ring in which node 3 has just been cut off, and still counts as up.
fn without_answers_of_one(seed: u64) -> Members {
    let members = Members::new(seed);
    members.world.set_fault(Fault::Loss { one_in: 0 });
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 3}";
    members.statement(1, format!("CREATE KEYSPACE ks WITH replication = {replication}"));
    members.statement(1, "CREATE TABLE ks.a (k int PRIMARY KEY, v int)".to_owned());
    members.until("the table is everywhere", || (1..=NODES).all(|n| members.has_table(n, "a")));
    members.one_schema();
    let [one, two, three] = [1, 2, 3].map(|n| members.id(n));
    members.world.set_fault(Fault::Partition { a: vec![one, two], b: vec![three] });
    members
}

fn each_key(members: &Members, text: impl Fn(i32) -> String) {
    for k in 0..KEYS {
        let answer = members.at(1, Consistency::Quorum, &text(k));
        assert!(answer.is_ok(), "seed {}: {answer:?}", members.world.seed());
    }
}

#[test]
fn conditions_of_an_unread_table_wait_for_no_silent_replica() {
    for seed in 1..=WORLDS {
        let members = without_answers_of_one(seed);
        each_key(&members, |k| format!("INSERT INTO ks.a (k, v) VALUES ({k}, 1) IF NOT EXISTS"));
    }
}

#[test]
fn reads_of_an_unread_table_wait_for_no_silent_replica() {
    for seed in 1..=WORLDS {
        let members = without_answers_of_one(seed);
        each_key(&members, |k| format!("SELECT v FROM ks.a WHERE k = {k}"));
    }
}

/// What conditions read is measured, so that later ones wait no longer than replicas take.
#[test]
fn conditions_learn_how_long_replicas_take() {
    let members = without_answers_of_one(1);
    members.world.set_fault(Fault::Heal);
    members.all_up();
    let text = |k| format!("INSERT INTO ks.a (k, v) VALUES ({k}, 1) IF NOT EXISTS");
    each_key(&members, text);
    let [one, two, three] = [1, 2, 3].map(|n| members.id(n));
    members.world.set_fault(Fault::Partition { a: vec![one, two], b: vec![three] });
    let before = members.world.now();
    each_key(&members, text);
    let took = members.world.now().since(before);
    let limit = members.shard(1).timeouts().read / 2;
    assert!(took < limit, "{KEYS} conditions took {took:?}");
}
