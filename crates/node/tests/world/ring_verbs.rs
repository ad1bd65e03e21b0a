//! What the operator sees of a ring, and does with it: verbs of nodetool as they come to a node.

use std::time::Duration;

use admin::{Reply, Verb};
use cluster::Answer;
use env::sim::Fault;
use protocol::Consistency;

use crate::guarded::texts;
use crate::ring::{Members, NODES};
use crate::told;

impl Members {
    pub(crate) fn verb(&self, n: u8, line: &str) -> Reply {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let verb = Verb::parse(&words).unwrap();
        let (_, serving) = &self.nodes[usize::from(n) - 1];
        told(&self.world, serving, async move |client| {
            client.whole.upgrade().unwrap().carry_out(verb).await
        })
    }

    pub(crate) fn out(&self, n: u8, line: &str) -> String {
        let reply = self.verb(n, line);
        assert_eq!((reply.exit, reply.err.as_str()), (0, ""), "{line}: {}", reply.out);
        reply.out
    }

    pub(crate) fn at(
        &self,
        n: u8,
        level: Consistency,
        text: &str,
    ) -> Result<(u32, Vec<u8>), String> {
        let text = text.to_owned();
        let (_, serving) = &self.nodes[usize::from(n) - 1];
        told(&self.world, serving, async move |client| match client.try_at(level, &text).await {
            Ok(Answer::Rows(page)) => Ok((page.rows, page.cells)),
            Ok(_) => Ok((0, Vec::new())),
            Err(error) => Err(format!("{text}: {}", error.message)),
        })
    }

    /// A keyspace with a table `a` of so many replicas.
    fn table(&self, keyspace: &str, replicas: u32) {
        let replication =
            format!("{{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}");
        self.statement(1, format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}"));
        self.statement(1, format!("CREATE TABLE {keyspace}.a (k int PRIMARY KEY, v int)"));
        let has = |n| self.shard(n).schema().table(keyspace, "a").is_some();
        self.until("the table is everywhere", || (1..=NODES).all(has));
        self.one_schema();
    }
}

const TOKENS: usize = 16;

#[test]
fn all_nodes_describe_the_same_ring() {
    let members = Members::new(1);
    members.world.set_fault(Fault::Loss { one_in: 0 });
    members.table("ks", 2);
    members.table("another", 1);
    let first = members.out(1, "describering ks");
    assert_eq!(first.lines().count(), 2 + usize::from(NODES) * TOKENS, "{first}");
    assert!(first.lines().skip(2).all(|line| line.matches("EndpointDetails(").count() == 2));
    let tokens = |n| -> Vec<String> {
        let text = members.out(n, "ring ks");
        let rows = text.lines().filter(|line| line.starts_with("10.0.0."));
        let ends = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            // its owner, what that owns, and the token itself
            format!("{} {} {}", words[0], words[words.len() - 2], words[words.len() - 1])
        };
        rows.map(ends).collect()
    };
    let rows = tokens(1);
    assert_eq!(rows.len(), usize::from(NODES) * TOKENS);
    for n in 2..=NODES {
        assert_eq!(members.out(n, "describering ks"), first);
        assert_eq!(tokens(n), rows);
    }
    let owned = |n: u8| -> f64 {
        let row = rows.iter().find(|row| row.starts_with(&format!("10.0.0.{n} ")));
        let share = row.and_then(|row| row.split(' ').nth(1)).unwrap();
        share.trim_end_matches('%').parse().unwrap()
    };
    let all: f64 = (1..=NODES).map(owned).sum();
    assert!((all - 200.0).abs() < 0.1, "{all}");
    let note = "Note: Non-system keyspaces don't have the same replication settings";
    assert!(members.out(1, "ring").contains(note));
    let refused = members.verb(1, "describering system");
    assert_eq!(refused.err, "error: There is no ring for the keyspace: system\n");
    assert!(refused.out.starts_with("Schema Version:"));
    let cluster = members.out(2, "describecluster");
    assert!(cluster.contains("\tLive: 3\n") && cluster.contains("#Nodes: 3 #Down: 0"), "{cluster}");
}

#[test]
fn estimates_cover_the_ring_once() {
    let members = Members::new(2);
    members.world.set_fault(Fault::Loss { one_in: 0 });
    members.table("one", 1);
    members.table("all", 3);
    let rows: i64 = 300;
    for k in 0..rows {
        for keyspace in ["one", "all"] {
            let text = format!("INSERT INTO {keyspace}.a (k, v) VALUES ({k}, 1)");
            assert!(members.at(1, Consistency::All, &text).is_ok());
        }
    }
    let tables = [
        ("size_estimates", ""),
        ("table_estimates", "AND range_type = 'primary'"),
        ("table_estimates", "AND range_type = 'local_primary'"),
    ];
    for n in 1..=NODES {
        members.out(n, "refreshsizeestimates");
    }
    for keyspace in ["one", "all"] {
        for (table, kind) in tables {
            let (mut ranges, mut partitions) = (0, 0);
            for n in 1..=NODES {
                let text = format!(
                    "SELECT partitions_count FROM system.{table} WHERE keyspace_name = '{keyspace}' \
                     AND table_name = 'a' {kind}"
                );
                let (count, cells) = members.at(n, Consistency::One, &text).unwrap();
                ranges += count as usize;
                // a length and a bigint each
                let counts = cells.chunks_exact(12);
                partitions += counts
                    .map(|cell| i64::from_be_bytes(cell[4..].try_into().unwrap()))
                    .sum::<i64>();
            }
            // the one over the end of the ring is in two
            assert_eq!(ranges, usize::from(NODES) * TOKENS + 1, "{keyspace} {table} {kind}");
            // rounded in each range, and keys are not spread quite evenly
            assert!((rows - 60..=rows + 60).contains(&partitions), "{keyspace}: {partitions}");
        }
    }
}

#[test]
fn timeouts_reach_connections_between_nodes() {
    let members = Members::new(3);
    assert!(members.out(1, "gettimeout counterwrite").ends_with(": 5000 ms\n"));
    for (name, millis) in [("counterwrite", 700), ("misc", 9_000), ("internodeconnect", 1_500)] {
        members.out(1, &format!("settimeout {name} {millis}"));
        assert!(
            members.out(1, &format!("gettimeout {name}")).ends_with(&format!(": {millis} ms\n"))
        );
    }
    let patience = members.shard(1).peers().messenger().unwrap().patience();
    assert_eq!((patience.timeouts.counter, patience.timeouts.request), (700, 9_000));
    assert_eq!(patience.connect, Duration::from_millis(1_500));
    let refused = members.verb(1, "settimeout internodestreaminguser 5");
    assert!(refused.err.contains("not supported"), "{}", refused.err);
}

fn figure(text: &str, of: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(of)).unwrap();
    line[of.len()..].split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn repairs_of_reads_and_messages_are_counted() {
    let members = Members::new(4);
    members.world.set_fault(Fault::Loss { one_in: 0 });
    members.table("ks", 3);
    for n in 1..=NODES {
        members.out(n, "disablehandoff");
    }
    let [one, two, three] = [1, 2, 3].map(|n| members.id(n));
    members.world.set_fault(Fault::Partition { a: vec![three], b: vec![one, two] });
    members.until("it is down", || members.seen(1) == (3, 2));
    let text = "INSERT INTO ks.a (k, v) VALUES (1, 1)";
    assert!(members.at(1, Consistency::Quorum, text).is_ok());
    members.world.set_fault(Fault::Heal);
    members.all_up();
    let before = members.out(1, "netstats");
    assert_eq!(figure(&before, "Mismatch (Blocking): "), 0);
    let read = "SELECT v FROM ks.a WHERE k = 1";
    for _ in 0..2 {
        assert_eq!(members.at(1, Consistency::All, read).map(|(rows, _)| rows), Ok(1));
    }
    let after = members.out(1, "netstats");
    assert!(after.starts_with("Mode: NORMAL\nNot sending any streams.\n"), "{after}");
    assert_eq!(figure(&after, "Mismatch (Blocking): "), 1);
    let small = "Small messages                  n/a         0 ";
    // two digests or data each time, data of the others once more, a repair
    assert!(figure(&after, small) >= figure(&before, small) + 6, "{before}{after}");
    let pools = members.out(1, "tpstats");
    assert!(figure(&pools, "GossipStage               0      0       ") > 10, "{pools}");
    let latencies = members.out(1, "proxyhistograms");
    let max = latencies.lines().find(|line| line.starts_with("Max ")).unwrap();
    assert!(!max.split_whitespace().nth(1).unwrap().starts_with("0.00"), "{latencies}");
}

#[test]
fn a_node_that_does_not_gossip_is_down_until_it_does() {
    let members = Members::new(5);
    members.out(3, "disablegossip");
    assert_eq!(members.out(3, "statusgossip"), "not running\n");
    members.until("it is down", || [1, 2].iter().all(|n| members.seen(*n) == (3, 2)));
    members.world.run_for(Duration::from_secs(30)).unwrap();
    assert_eq!(members.seen(1), (3, 2));
    members.out(3, "enablegossip");
    assert_eq!(members.out(3, "statusgossip"), "running\n");
    members.all_up();
    let heard = || members.out(1, "gossipinfo");
    let says = |what: &str| {
        let text = heard();
        let of = text.split('/').find(|of| of.starts_with("10.0.0.3\n")).unwrap().to_owned();
        of.lines().any(|line| line.contains(what))
    };
    assert!(says("STATUS_WITH_PORT") && says(":NORMAL,"));
    assert!(says("RPC_READY") && says(":true"));
    // what was enabled is so already
    members.out(3, "enablegossip");
    members.out(3, "drain");
    let refused = members.verb(3, "enablegossip");
    assert_eq!(refused.exit, 1);
    assert!(refused.out.contains("Unable to start gossip because the node was drained."));
    let seeds = "Seed node list does not contain any remote node IPs\n";
    assert_eq!(members.out(1, "reloadseeds"), seeds);
}

#[test]
fn keys_of_others_are_found() {
    let members = Members::new(6);
    members.world.set_fault(Fault::Loss { one_in: 0 });
    members.table("ks", 3);
    for k in 0..20 {
        let text = format!("INSERT INTO ks.a (k, v) VALUES ({k}, 1)");
        assert!(members.at(1, Consistency::All, &text).is_ok());
    }
    let verify = "verify -f -e -t ks a";
    for n in 1..=NODES {
        members.out(n, "flush ks a");
        members.out(n, verify);
    }
    let one = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    members.statement(1, format!("ALTER KEYSPACE ks WITH replication = {one}"));
    members.one_schema();
    members.world.run_for(Duration::from_secs(3)).unwrap();
    let found = (1..=NODES).map(|n| members.verb(n, verify)).filter(|reply| {
        reply.exit == 2 && reply.err.contains("is not contained in the given ranges")
    });
    assert!(found.count() >= 2);
    for n in 1..=NODES {
        members.out(n, "verify -f -e ks a");
    }
}

/// What cluster and messaging say has the level that they gave it.
#[test]
fn lines_have_their_levels() {
    let members = Members::new(9);
    members.world.set_fault(Fault::Loss { one_in: 0 });
    members.all_up();
    members.out(1, "disablegossip");
    members.world.power_cut(members.id(2));
    let lines = || {
        let lines = "SELECT level, message FROM system_views.system_logs";
        let (_, cells) = members.at(1, Consistency::One, lines).unwrap();
        let lines = texts(&cells);
        lines.chunks(2).map(|line| (line[0].clone(), line[1].clone())).collect::<Vec<_>>()
    };
    let said = |level: &str, begin: &str| {
        lines().iter().any(|line| line.0 == level && line.1.starts_with(begin))
    };
    assert!(said("WARN", "Stopping gossip by operator request"), "{:?}", lines());
    members.out(1, "enablegossip");
    members.until("a connection ends", || said("INFO", "connection to /10.0.0.2:7000"));
}
