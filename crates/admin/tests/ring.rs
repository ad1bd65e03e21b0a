//! What the verbs of a ring print, against what nodetool 5.0.9 printed in one.

use crate::common;

use admin::{Ring, RingNode, Verb};
use common::{Fake, say_with};

const RING: &str = include_str!("../testdata/nodetool/ring_two.txt");

fn out(line: &str) -> String {
    let (reply, _) = say_with(Fake::default(), line);
    assert_eq!((reply.exit, reply.err.as_str()), (0, ""), "{line}: {}", reply.out);
    reply.out
}

/// The two nodes whose ring Cassandra printed.
fn two() -> Ring {
    let plain = common::ring().nodes.remove(0);
    let node = |ip: &str, load| RingNode {
        address: format!("{ip}:7000").parse().unwrap(),
        load_bytes: Some(load),
        tokens: RING
            .lines()
            .filter(|line| line.starts_with(ip))
            .filter_map(|line| line.split_whitespace().last().map(str::to_owned))
            .collect(),
        ..plain.clone()
    };
    Ring { nodes: vec![node("127.0.0.81", 117_406), node("127.0.0.82", 0)], note: None }
}

fn of_ring(ring: Ring, line: &str) -> String {
    let fake = Fake::default();
    *fake.ring.borrow_mut() = Some(ring);
    say_with(fake, line).0.out
}

#[test]
fn ring_as_cassandra_prints_it() {
    assert_eq!(of_ring(two(), "ring"), RING);
    let mut ring = two();
    ring.nodes[0].owns_share = Some(0.62049);
    ring.nodes[1].load_bytes = None;
    let text = of_ring(ring.clone(), "-pp ring ks");
    let row = |of: &str| text.lines().find(|line| line.contains(of)).unwrap().to_owned();
    assert!(
        row("127.0.0.81:7000").contains("  rack1       Up     Normal  114.65 KiB      62.05%    ")
    );
    assert!(row("127.0.0.82:7000").contains(" ?               100.00% "));
    ring.note =
        Some("Ownership values for keyspaces with LocalStrategy are meaningless".to_owned());
    let text = of_ring(ring, "ring system");
    assert!(text.ends_with(
        "instead.\n\n\n  Note: Ownership values for keyspaces with LocalStrategy are meaningless\n"
    ));
    assert!(text.contains(" 114.65 KiB      ?      "), "{text}");
    let (reply, _) = say_with(Fake::default(), "ring nosuch");
    let refused = "\nError: The keyspace nosuch, does not exist\n";
    assert_eq!((reply.exit, reply.out.as_str()), (1, refused));
}

#[test]
fn ring_of_one_token_a_node() {
    let mut ring = two();
    ring.nodes.iter_mut().for_each(|node| node.tokens.truncate(1));
    ring.nodes[1].data_center = "another".to_owned();
    let text = of_ring(ring, "ring");
    let head = "Address          Rack        Status State   Load            Owns                Token                                       \n";
    let mut centers = text.split("Datacenter: ").skip(1);
    let another = centers.next().unwrap();
    assert!(another.starts_with(&format!("another\n==========\n{head}\n127.0.0.82 ")), "{another}");
    assert!(!text.contains("Warning"));
    assert!(text.ends_with("\n\n\n  "), "{text:?}");
}

#[test]
fn describering_as_cassandra_prints_it() {
    let version = "7a0ab442-d8a0-4143-a2eb-61643a2b0f1b";
    let head = format!("Schema Version:{version}\nTokenRange: \n");
    assert_eq!(
        out("describering ks"),
        format!(
            "{head}\tTokenRange(start_token:-5, end_token:7, endpoints:[127.0.0.81, 127.0.0.82], \
             rpc_endpoints:[127.0.0.81, 127.0.0.82], endpoint_details:[\
             EndpointDetails(host:127.0.0.81, datacenter:datacenter1, rack:rack1), \
             EndpointDetails(host:127.0.0.82, datacenter:datacenter1, rack:rack1)])\n"
        )
    );
    let ports = out("-pp describering ks");
    assert!(ports.contains("rpc_endpoints:[127.0.0.81:9042, 127.0.0.82:9042]"), "{ports}");
    assert!(ports.contains("(host:127.0.0.82:7000, "), "{ports}");
    let (reply, _) = say_with(Fake::default(), "describering nix");
    let no = "error: No such keyspace: nix\n".to_owned();
    assert_eq!((reply.exit, reply.out, reply.err), (2, head, no));
    let none = Verb::parse(&["describering".to_owned()]).unwrap_err();
    assert!(none.text().contains("Required parameters are missing: keyspace"), "{}", none.text());
}

#[test]
fn figures_as_cassandra_prints_them() {
    assert_eq!(
        out("netstats"),
        "Mode: NORMAL\n\
         Rebuild c0ffee00-ca5c-11f0-8000-00000000000a\n\
         \x20   /10.0.0.2\n\
         \x20       Receiving 7 files, 1000 bytes total. Already received 0 files (0.00%), \
         500 bytes total (50.00%)\n\
         \x20           /data/ks/t-1/nb-3-big-Data.db 500/1000 bytes (50%) received from \
         idx:0/10.0.0.2\n\
         \x20       Sending 2 files, 3145728 bytes total. Already sent 1 files (50.00%), \
         2097152 bytes total (66.67%)\n\
         \x20           /data/ks/t-1/nb-1-big-Data.db 2097152/2097152 bytes (100%) sent to \
         idx:0/10.0.0.2\n\
         \x20       1.50 MiB/s, 2 s left\n\
         Read Repair Statistics:\n\
         Attempted: 0\n\
         Mismatch (Blocking): 3\n\
         Mismatch (Background): 0\n\
         Pool Name                    Active   Pending      Completed   Dropped\n\
         Large messages                  n/a         0              0         0\n\
         Small messages                  n/a         0              0         0\n\
         Gossip messages                 n/a         1            289         2\n"
    );
    let readable = out("netstats -H");
    assert!(readable.contains("Sending 2 files, 3 MiB total."), "{readable}");
    assert!(out("-pp netstats").contains("    /10.0.0.2:7000\n"));
    for (verb, text) in [
        ("getstreamthroughput", "stream throughput: 200 Mb/s"),
        ("getstreamthroughput -d", "stream throughput: 200.0 Mb/s"),
        ("getstreamthroughput -e", "entire SSTable stream throughput: 24.0 MiB/s"),
        ("getinterdcstreamthroughput -m", "inter-datacenter stream throughput: 24.0 MiB/s"),
        (
            "getinterdcstreamthroughput -e",
            "entire SSTable inter-datacenter stream throughput: unlimited",
        ),
    ] {
        assert_eq!(out(verb), format!("Current {text}\n"), "{verb}");
    }
    assert_eq!(
        out("tpstats"),
        "Pool Name                      Active Pending Completed Blocked All time blocked\n\
         MutationStage                  0      0       1         0       0               \n\
         Native-Transport-Auth-Requests 0      0       270       0       0               \n\
         \n\
         Latencies waiting in queue (micros) per dropped message types\n\
         Message type                      Dropped     50%      95%      99%      Max\n\
         READ_RSP                          0           N/A      N/A      N/A      N/A\n\
         PAXOS2_CLEANUP_FINISH_PREPARE_RSP 12          N/A      N/A      N/A      N/A\n"
    );
    let histograms = include_str!("../testdata/nodetool/proxyhistograms.txt");
    assert_eq!(out("proxyhistograms"), histograms);
}

#[test]
fn gossip_is_ended_and_begun_and_seeds_are_read_again() {
    let done = |line: &str| say_with(Fake::default(), line).1;
    assert_eq!(done("disablegossip"), ["gossip false"]);
    assert_eq!(done("enablegossip"), ["gossip true"]);
    let reloaded = |seeds| {
        let fake = Fake::default();
        *fake.seeds_after_reload.borrow_mut() = seeds;
        say_with(fake, "reloadseeds").0.out
    };
    assert_eq!(reloaded(None), "Failed to reload the seed node list.\n");
    let none = "Seed node list does not contain any remote node IPs\n";
    assert_eq!(reloaded(Some(Vec::new())), none);
    let two = [1, 2].map(|n| ([127, 0, 0, n], 7000).into());
    assert_eq!(
        reloaded(Some(two.to_vec())),
        "Updated seed node IP list, excluding the current node's IP: /127.0.0.1:7000 /127.0.0.2:7000\n"
    );
}
