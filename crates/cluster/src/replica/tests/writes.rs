//! Requests that change something: each goes the way of a client's own writes, and what is answered
//! for stays.

use std::sync::Arc;

use internode::payload::{Batch, Commit, CounterMutation, Hint, Promise, Truncate, Truncated};
use internode::{FailureReason, Flags, Params, Verb};
use rows::codec::{MutationDecoder, MutationEncoder};
use rows::{CellRef, Clustering, Mutation, PartitionUpdate, RowBuilder, UpdateBuilder, counter};
use schema::Table;
use storage::Trace;
use types::{Address, Reader, Token, Uuid};

use super::laws::{KEYSPACE, table};
use super::{PeerRequest, TestNode};
use crate::paxos::Ballot;

/// `k`, `c` and the first regular column.
fn update(table: &Table, k: i32, c: i32, timestamp: i64, value: &[u8]) -> PartitionUpdate {
    let mut row = RowBuilder::new();
    row.start_row(Clustering::new([Some(&c.to_be_bytes()[..])]).as_ref());
    row.cell(CellRef::live(0, None, timestamp, value));
    let key = k.to_be_bytes();
    let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &key);
    update.add(row.finish_row(&table.layout), &mut RowBuilder::new());
    update.finish(&mut RowBuilder::new())
}

fn encoded(update: PartitionUpdate) -> Vec<u8> {
    let mut out = Vec::new();
    MutationEncoder::new().mutation(&Mutation::new(update), &mut out).expect("it fits");
    out
}

fn values(node: &TestNode) -> Vec<i32> {
    let page = node.cql("SELECT v FROM ks.t").expect("rows");
    page.cells.chunks(8).map(|cell| i32::from_be_bytes(*cell[4..].as_array().unwrap())).collect()
}

fn opened(shards: usize) -> (TestNode, Arc<Table>) {
    let node = TestNode::new(shards);
    node.cql(KEYSPACE);
    node.cql("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))");
    let table = table(&node, "t");
    (node, table)
}

#[test]
fn what_is_answered_for_outlives_a_power_cut() {
    let (node, table) = opened(2);
    for (n, verb) in [Verb::MutationReq, Verb::ReadRepairReq].into_iter().enumerate() {
        let payload = encoded(update(&table, n as i32, 1, 10, &(n as i32).to_be_bytes()));
        assert_eq!(node.ask(verb, &payload), Ok(Vec::new()));
    }
    node.power_cut();
    let mut found = values(&node);
    found.sort_unstable();
    assert_eq!(found, [0, 1]);
}

#[test]
fn hints_are_applied_unless_they_are_void() {
    let (node, table) = opened(1);
    let shard = node.shard(0);
    let host = Uuid::from_bytes(shard.engine().host_id());
    let now = shard.engine().env().unix_micros() / 1000;
    let hint = |host, created, value: i32| {
        let mutation = encoded(update(&table, value, 1, 10, &value.to_be_bytes()));
        let mut out = Vec::new();
        Hint { host, created, gc_grace: 1000, mutation: &mutation }.write(&mut out);
        out
    };
    assert_eq!(node.ask(Verb::HintReq, &hint(host, now, 1)), Ok(Vec::new()));
    assert_eq!(values(&node), [1]);
    // older than its tables remember deletions
    assert_eq!(node.ask(Verb::HintReq, &hint(host, now - 1_001_000, 2)), Ok(Vec::new()));
    assert_eq!(values(&node), [1]);
    // for a third node
    let other = Uuid::from_bytes([9; 16]);
    assert_eq!(node.ask(Verb::HintReq, &hint(other, now, 3)), Err(FailureReason::Unknown));
    // from before a truncation
    let mut truncate = Vec::new();
    let of = Truncate { keyspace: "ks".into(), table: "t".into() };
    of.write(&mut truncate).expect("names");
    let answer = node.ask(Verb::TruncateReq, &truncate).expect("it is truncated");
    assert_eq!(Truncated::read(&mut Reader::new(&answer)), Ok(Truncated { of, done: true }));
    assert_eq!(values(&node), Vec::<i32>::new());
    assert_eq!(node.ask(Verb::HintReq, &hint(host, now, 4)), Ok(Vec::new()));
    assert_eq!(values(&node), Vec::<i32>::new());
}

#[test]
fn a_hint_for_a_table_that_is_long_gone_is_done_with() {
    let (node, table) = opened(1);
    let shard = node.shard(0);
    let host = Uuid::from_bytes(shard.engine().host_id());
    let now = shard.engine().env().unix_micros() / 1000;
    let mutation = encoded(update(&table, 1, 1, 10, &[0; 4]));
    node.cql("DROP TABLE ks.t");
    let hint = |created| {
        let mut out = Vec::new();
        Hint { host, created, gc_grace: 864_000, mutation: &mutation }.write(&mut out);
        out
    };
    // the schema may be on its way
    let young = node.ask(Verb::HintReq, &hint(now - 1000));
    assert_eq!(young, Err(FailureReason::IncompatibleSchema));
    assert_eq!(node.ask(Verb::HintReq, &hint(now - 3_600_000)), Ok(Vec::new()));
}

#[test]
fn a_batch_is_kept_until_it_is_to_go_and_is_not_taken_for_one_of_our_own() {
    let (node, table) = opened(1);
    let mutation = encoded(update(&table, 1, 1, 10, &[0; 4]));
    let id = Uuid::from_unix_micros(1_700_000_000_000_000, 77);
    let batch = Batch { id, created: 1_700_000_000_000_000, mutations: vec![&mutation] };
    let mut payload = Vec::new();
    batch.write(&mut payload);
    assert_eq!(node.ask(Verb::BatchStoreReq, &payload), Ok(Vec::new()));
    let kept = || node.cql("SELECT id FROM system.batches").expect("rows").rows;
    assert_eq!(kept(), 1);
    node.power_cut();
    assert_eq!(kept(), 1, "another node's batch stays");
    assert_eq!(values(&node), Vec::<i32>::new());
    assert_eq!(node.ask(Verb::BatchRemoveReq, &id.to_bytes()), Ok(Vec::new()));
    assert_eq!(kept(), 0);
}

#[test]
fn counters_count_here() {
    let node = TestNode::new(2);
    node.cql(KEYSPACE);
    node.cql("CREATE TABLE ks.t (k int, c int, v counter, PRIMARY KEY (k, c))");
    let table = table(&node, "t");
    let mut payload = Vec::new();
    let mutation = Mutation::new(update(&table, 1, 1, 10, &counter::update(5)));
    let request = CounterMutation { mutation, consistency: "LOCAL_QUORUM".into() };
    request.write(&mut MutationEncoder::new(), &mut payload).expect("it fits");
    for _ in 0..3 {
        assert_eq!(node.ask(Verb::CounterMutationReq, &payload), Ok(Vec::new()));
    }
    let page = node.cql("SELECT v FROM ks.t").expect("rows");
    assert_eq!(i64::from_be_bytes(*page.cells[4..].as_array().unwrap()), 15);
}

/// A round of Paxos as its replica sees it, with a power cut after each step.
#[test]
fn what_is_promised_and_accepted_is_remembered() {
    let (node, table) = opened(2);
    let ballot = |micros: i64| Uuid::from_unix_micros(micros, 5);
    let asked = |micros, value: Option<i32>| {
        let update = match value {
            Some(value) => update(&table, 7, 1, micros, &value.to_be_bytes()),
            None => UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &7_i32.to_be_bytes())
                .finish(&mut RowBuilder::new()),
        };
        let mut out = Vec::new();
        let commit = Commit { ballot: ballot(micros), update };
        commit.write(&mut MutationEncoder::new(), &mut out).expect("it fits");
        out
    };
    let base = node.shard(0).engine().env().unix_micros();
    let prepare = |micros| {
        let answer = node.ask(Verb::PaxosPrepareReq, &asked(micros, None)).expect("an answer");
        let layout_of = |id: &[u8; 16]| (*id == table.id.0).then(|| Arc::clone(&table.layout));
        Promise::read(&mut Reader::new(&answer), &mut MutationDecoder::new(), &layout_of)
            .expect("a promise")
    };
    let none = Uuid::from_bytes(Ballot::none().to_bytes());
    let first = prepare(base + 10);
    assert!(first.promised && first.in_progress.update.is_empty());
    assert_eq!((first.in_progress.ballot, first.committed.ballot), (none, none));
    node.power_cut();
    let refused = prepare(base + 5);
    assert!(!refused.promised);
    assert_eq!(refused.in_progress.ballot, ballot(base + 10));
    assert_eq!(node.ask(Verb::PaxosProposeReq, &asked(base + 5, Some(1))), Ok(vec![0]));
    assert_eq!(node.ask(Verb::PaxosProposeReq, &asked(base + 10, Some(2))), Ok(vec![1]));
    node.power_cut();
    let second = prepare(base + 20);
    assert!(second.promised && !second.in_progress.update.is_empty());
    assert_eq!(second.in_progress.ballot, ballot(base + 10));
    assert_eq!(node.ask(Verb::PaxosCommitReq, &asked(base + 10, Some(2))), Ok(Vec::new()));
    node.power_cut();
    assert_eq!(values(&node), [2]);
    let third = prepare(base + 30);
    assert_eq!(third.committed.ballot, ballot(base + 10));
    assert!(third.in_progress.update.is_empty());
}

#[test]
fn what_is_not_served_is_refused_whole() {
    let (node, table) = opened(1);
    let payload = encoded(update(&table, 1, 1, 10, &[0; 4]));
    // a table that nobody knows
    let mut unknown = payload.clone();
    unknown[5] ^= 0xff;
    assert_eq!(node.ask(Verb::MutationReq, &unknown), Err(FailureReason::IncompatibleSchema));
    // the node's own tables
    let local = Arc::clone(node.shard(0).schema().table("system", "paxos").expect("it is there"));
    let empty = UpdateBuilder::new(local.id.0, Arc::clone(&local.layout), b"k");
    let mut deletion = empty;
    deletion.delete_partition(rows::Deletion::new(1, 1));
    let own = encoded(deletion.finish(&mut RowBuilder::new()));
    assert_eq!(node.ask(Verb::MutationReq, &own), Err(FailureReason::Unknown));
    for verb in [
        Verb::PrepareMsg,
        Verb::ValidationReq,
        Verb::SyncReq,
        Verb::SnapshotMsg,
        Verb::SnapshotReq,
        Verb::PrepareConsistentReq,
        Verb::Paxos2PrepareReq,
        Verb::ReplicationDoneReq,
    ] {
        assert_eq!(node.ask(verb, &payload), Err(FailureReason::Unknown), "{verb:?}");
    }
    assert_eq!(node.ask(Verb::PingReq, &[1]), Ok(Vec::new()));
    assert_eq!(node.ask(Verb::EchoReq, &[]), Ok(Vec::new()));
    assert_eq!(values(&node), Vec::<i32>::new());
}

#[test]
fn keys_of_others_are_refused_where_they_were_this_nodes() {
    let (node, table) = opened(1);
    let token = |k: i32| storage::PartitionKey::new(k.to_be_bytes()).token;
    let member = |last: u8, token: Token, is_local: bool| ring::Node {
        address: Address::new([127, 0, 0, last], 7000),
        host_id: Uuid::from_bytes([last; 16]),
        data_center: "datacenter1".into(),
        rack: "rack1".into(),
        tokens: vec![token],
        state: ring::State::Normal,
        is_up: true,
        is_local,
        accepts_clients: true,
    };
    let know = |nodes: Vec<ring::Node>| {
        let schema = node.shard(0).schema();
        let strategies = schema.keyspaces().values().map(|keyspace| &keyspace.replication.strategy);
        let ring = Arc::new(ring::Ring::new(nodes, strategies).expect("a ring"));
        node.shard(0).peers().know_ring_here(&ring);
        ring
    };
    let own = || member(60, token(2), true);
    let before = know(vec![own()]);
    know(vec![own(), member(61, token(1), false)]);
    // who asks may know more than this node
    let foreign = |timestamp| encoded(update(&table, 1, 1, timestamp, &[0; 4]));
    assert_eq!(node.ask(Verb::MutationReq, &foreign(10)), Ok(Vec::new()));
    // and less, where this node was a replica until some time ago
    node.shard(0).peers().remember_here(&before);
    let window = node.shard(0).peers().former_time();
    // whoever has just heard of the change writes here for a whole window still
    node.world.run_for(window + window / 2).unwrap();
    assert_eq!(node.ask(Verb::MutationReq, &foreign(11)), Ok(Vec::new()));
    node.world.run_for(window).unwrap();
    assert_eq!(node.ask(Verb::MutationReq, &foreign(12)), Err(FailureReason::Unknown));
    let ours = encoded(update(&table, 2, 1, 10, &[0; 4]));
    assert_eq!(node.ask(Verb::MutationReq, &ours), Ok(Vec::new()));
    know(vec![own()]);
    assert_eq!(values(&node), [0, 0]);
}

#[test]
fn what_is_late_is_dropped_without_work() {
    let (node, table) = opened(1);
    let payload = encoded(update(&table, 1, 1, 10, &[0; 4]));
    let answer = node.run(0, |shard| async move {
        let request = PeerRequest {
            from: Address::new(std::net::Ipv4Addr::LOCALHOST, 7000),
            verb: Verb::MutationReq,
            params: &Params::NONE,
            flags: Flags::NONE,
            payload: &payload,
            deadline: shard.engine().env().now(),
            trace: &Trace::OFF,
        };
        shard.replica().serve(request).await
    });
    assert_eq!(answer, Ok(None));
    assert_eq!(values(&node), Vec::<i32>::new());
}
