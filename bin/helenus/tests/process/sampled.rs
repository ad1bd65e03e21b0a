//! `nodetool profileload` while clients read and write.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::client::Client;
use crate::node::{Node, Place};

/// How long a sampling takes. The load goes on until it has ended, however long that is.
const MILLIS: &str = "1500";
/// `PartitionUpdate.dataSize` of an insert of a text into a table `(k int, c int, v text)`, less
/// the text: what Cassandra 5.0.9 showed.
const INSERT_BYTES: usize = 74;

/// What a verb prints that samples while `load` runs again and again.
fn sampled(node: &Node, words: &[&str], mut load: impl FnMut() + Send) -> String {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = &is_over;
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                load();
            }
        });
        let (code, out, err) = node.nodetool(words);
        is_over.store(true, Ordering::Relaxed);
        assert_eq!((code, err.as_str()), (0, ""));
        out
    })
}

/// The lines of a sampler, as words.
fn of<'a>(text: &'a str, title: &str) -> Vec<Vec<&'a str>> {
    let part = text.split("\n\n").find(|part| part.starts_with(title)).unwrap_or_default();
    part.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn the_most_active_partitions_are_shown() {
    let place = Place::new(80);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.query(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 1}",
    );
    client.query("CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))");
    client.query("CREATE TABLE ks.quiet (k int PRIMARY KEY)");
    let write = |client: &mut Client, k: i32, c: i32, bytes: usize| {
        let v = "x".repeat(bytes);
        client.query(&format!("INSERT INTO ks.t (k, c, v) VALUES ({k}, {c}, '{v}')"));
    };
    // one of two SSTables has partition 1 alone
    for k in 0..9 {
        write(&mut client, k, 1, 10);
    }
    node.verb(&["flush", "ks"]);
    write(&mut client, 1, 2, 10);
    node.verb(&["flush", "ks"]);
    // memtables that were flushed are retained, and stand for their SSTables until a restart
    drop(client);
    node.stop();
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.query("DELETE FROM ks.t WHERE k = 3 AND c = 1");
    let load = |client: &mut Client| {
        for k in 0..9 {
            client.query(&format!("SELECT * FROM ks.t WHERE k = {k}"));
            client.query("SELECT * FROM ks.t WHERE k = 1");
            write(client, 5, 1, 20);
        }
        write(client, 6, 1, 600);
    };
    let text = sampled(&node, &["profileload", "ks", "*", MILLIS], || load(&mut client));
    let reads = of(&text, "Frequency of reads by partition");
    assert_eq!(reads[0], ["Table", "Partition", "Count", "+/-"], "{text}");
    assert_eq!(reads[1][..2], ["ks.t", "1"], "{text}");
    assert_eq!(reads[1][3], "0", "{text}");
    assert_eq!(reads.len(), 10, "nine partitions, of both shards: {text}");
    let writes = of(&text, "Frequency of writes by partition");
    assert_eq!(writes[1][..2], ["ks.t", "5"], "{text}");
    let sizes = of(&text, "Max mutation size by partition");
    assert_eq!(sizes[1], ["ks.t", "6", &(INSERT_BYTES + 600).to_string()], "{text}");
    let rows = of(&text, "Partitions read with the most rows");
    assert_eq!(rows[1], ["ks.t", "1", "2"], "{text}");
    let tombstones = of(&text, "Partitions read with the most tombstones");
    assert_eq!(tombstones[1], ["ks.t", "3", "1"], "{text}");
    let sstables = of(&text, "Partitions read with the most sstables");
    assert_eq!(sstables[1], ["ks.t", "1", "2"], "{text}");
    assert!(text.contains("SELECT * FROM ks.t WHERE k = 1 "), "{text}");
    let nothing = "Frequency of CAS contention by partition:\n   Nothing recorded";
    assert!(text.contains(nothing), "{text}");
    // nothing is left of it: another one begins anew, and sees what was asked for
    let words = ["toppartitions", "-a", "reads", "-k", "2", "ks", "quiet", "50"];
    let text = sampled(&node, &words, || load(&mut client));
    let quiet =
        "Frequency of reads by partition:\n   Nothing recorded during sampling period...\n\n";
    assert_eq!(text, quiet);
    let unknown = node.nodetool(&["toppartitions", "ks", "nosuch", "50"]);
    let said = "ColumnFamilyStore for ks/nosuch not found.\n";
    assert_eq!(unknown, (1, String::new(), said.to_owned()));
    let unknown = node.nodetool(&["toppartitions", "nosuch", "*", "50"]);
    let said = "error: Unknown keyspace nosuch\n";
    assert_eq!(unknown, (2, String::new(), said.to_owned()));
    let keys = node.verb(&["rangekeysample"]);
    assert!(keys.starts_with("RangeKeySample: \n\t"), "{keys}");
    drop(client);
    node.stop();
}

#[test]
fn samples_go_into_the_log_until_that_is_ended() {
    let place = Place::new(81);
    let node = place.serve(&[]);
    assert_eq!(node.verb(&["profileload", "-i", "60", "system", "local", "50"]), "");
    let list = "KEYSPACE TABLE\n  system local\n";
    assert_eq!(node.verb(&["profileload", "-l"]), list);
    let refused = node.verb(&["profileload", "-i", "60", "system", "local", "50"]);
    assert!(refused.starts_with("Unable to schedule sampling for keyspace: system, table: local "));
    node.line("Sampled system.local for 50 ms");
    assert_eq!(node.verb(&["profileload", "--stop", "system", "local"]), "");
    node.line("stopped sampling system.local");
    assert_eq!(node.verb(&["profileload", "--list"]), "KEYSPACE TABLE\n");
    let unknown = node.nodetool(&["profileload", "-i", "60", "system", "nosuch", "50"]);
    let said = "nodetool: Unknown keyspace/cf pair (system.nosuch)\n\
         See 'nodetool help' or 'nodetool help <command>'.\n";
    assert_eq!(unknown, (1, said.to_owned(), String::new()));
    node.stop();
}
