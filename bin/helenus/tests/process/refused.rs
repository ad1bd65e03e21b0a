//! Command lines that Cassandra's nodetool refuses: ours says the same, and exits so.

use admin::Command;

use crate::client::Client;
use crate::node::{Node, Place};

/// Command lines, and what nodetool 5.0.9 said of each.
const REFUSED: &str = include_str!("../../../../crates/admin/testdata/nodetool/refused-5.0.9.txt");
/// Verbs that are not supported, and what Java's resolver says of a host.
const OTHERWISE: [&str; 5] = [
    "reloadlocalschema",
    "setbatchlogreplaythrottle",
    "setcolumnindexsize",
    "setsnapshotthrottle",
    "truncatehints nosuch",
];
const SEE: &str = "See 'nodetool help' or 'nodetool help <command>'.\n";

/// What nodetool says: by itself, if it can, as the program does before it connects.
fn said_of(node: &Node, words: &[&str]) -> (u8, String, String) {
    let line: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match Command::parse(&line) {
        Err(refused) => (refused.exit_code(), refused.text(), String::new()),
        Ok(_) => node.nodetool(words),
    }
}

#[test]
fn what_cassandra_refuses_is_refused_in_its_words() {
    let place = Place::new(82);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.query(
        "CREATE KEYSPACE k1 WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 1}",
    );
    client.query("CREATE TABLE k1.t (k int, c int, v text, PRIMARY KEY (k, c))");
    client.query("CREATE TABLE k1.u (a text, b int, v text, PRIMARY KEY ((a, b)))");
    let is_asked = |line: &&str| !OTHERWISE.iter().any(|other| line.starts_with(other));
    let mut wrong = Vec::new();
    for line in REFUSED.lines().filter(is_asked) {
        let (command, said) = line.split_once('\t').unwrap();
        let words: Vec<&str> = command.split(' ').collect();
        let (code, out, err) = said_of(&node, &words);
        let expected = format!("nodetool: {said}\n{SEE}");
        if (code, out.as_str(), err.as_str()) != (1, expected.as_str(), "") {
            wrong.push(format!("{command}: {code}, {out}{err}\n  not: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let not_found = "ColumnFamilyStore for k1/nosuch not found.\n";
    for command in ["getsstables k1 nosuch 1", "import k1 nosuch /tmp", "toppartitions k1 nosuch"] {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(node.nodetool(&words), (1, String::new(), not_found.to_owned()), "{command}");
    }
    for (command, said) in [
        ("getendpoints k1 t abc", "error: For input string: \"abc\"\n"),
        ("toppartitions nosuch * 300", "error: Unknown keyspace nosuch\n"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(node.nodetool(&words), (2, String::new(), said.to_owned()), "{command}");
    }
    assert_eq!(node.nodetool(&["datapaths", "k1.nosuch"]), (0, String::new(), String::new()));
    drop(client);
    node.stop();
}

/// What is set holds at once, and shows.
#[test]
fn settings_change_while_the_node_runs() {
    let place = Place::new(83);
    let node = place.serve(&[]);
    assert_eq!(node.verb(&["getdefaultrf"]), "1\n");
    node.verb(&["setdefaultrf", "2"]);
    assert_eq!(node.verb(&["getdefaultrf"]), "2\n");
    let mut client = Client::connect(&node.ip);
    client.query("CREATE KEYSPACE two WITH replication = {'class': 'NetworkTopologyStrategy'}");
    let rows = client
        .query("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = 'two'");
    assert_eq!(rows.len(), 1);
    let described = node.verb(&["describecluster"]);
    assert!(
        described.contains("two -> Replication class: NetworkTopologyStrategy {datacenter1=2}")
    );
    let cache = ["getauthcacheconfig", "--cache-name", "RolesCache"];
    let shown =
        "Validity Period: 2000\nUpdate Interval: 2000\nMax Entries: 1000\nActive Update: false\n";
    assert_eq!(node.verb(&cache), shown);
    let set = ["setauthcacheconfig", "--cache-name", "RolesCache", "--validity-period", "7000"];
    assert_eq!(node.verb(&set), "Changed Validity Period to 7000\n");
    // an interval that is not set is as long
    assert!(node.verb(&cache).contains("Update Interval: 7000\n"));
    assert_eq!(node.verb(&["replaybatchlog"]), "");
    assert_eq!(node.verb(&["getcolumnindexsize"]), "Current value for column_index_size: -1 KiB\n");
    assert_eq!(node.verb(&["enableoldprotocolversions"]), "");
    drop(client);
    node.stop();
}

/// The doctor of a node that runs looks at its ring, too.
#[test]
fn the_doctor_looks_at_machine_and_ring() {
    let place = Place::new(84);
    let node = place.serve(&[]);
    let mut client = Client::connect(&node.ip);
    client.query(
        "CREATE KEYSPACE much WITH replication = {'class': 'SimpleStrategy', \
         'replication_factor': 3}",
    );
    let (code, json, err) = node.nodetool(&["doctor", "--json"]);
    assert_eq!((code, err.as_str()), (1, ""), "{json}");
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let of = |id: &str| findings.iter().find(|finding| finding["id"] == id);
    let exceeds = of("replicas_exceed").unwrap();
    assert_eq!(exceeds["subject"], "much");
    assert_eq!(exceeds["found"], "3 replicas on 1 node in the ring");
    let ok = report["ok"].as_array().unwrap();
    for id in ["node_down", "schema_disagreement", "kernel_old", "io_uring_refused"] {
        assert!(ok.iter().any(|other| other == id), "{id}: {json}");
    }
    let (code, text, _) = node.nodetool(&["doctor"]);
    assert_eq!(code, 1);
    assert!(text.contains("serious replicas_exceed: much: 3 replicas on 1 node"), "{text}");
    drop(client);
    node.stop();
}
