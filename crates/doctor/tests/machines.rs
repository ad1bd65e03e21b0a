//! Prepared machines, with faults planted in them: each is found, and none is made up.

use std::collections::BTreeSet;

use doctor::{
    ALL, Copies, Facts, NodeFacts, Report, RingFacts, RingKeyspace, RingNode, Severity, Tree,
    examine,
};

const GOOD: &str = include_str!("../testdata/good.machine");

macro_rules! machines {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../testdata/", $name, ".machine")))),*]
    };
}

/// Each is the good machine with what its text says over it.
const MACHINES: &[(&str, &str)] = machines![
    "btrfs",
    "cgroup-v1",
    "clock",
    "clock-far",
    "container",
    "kernel",
    "kernel-standard",
    "limits",
    "limits-near",
    "lvm",
    "memory",
    "network",
    "old",
    "raid5",
    "ring",
    "ring-fine",
    "ring-one",
    "spinning",
    "spinning-fine",
    "stripe-read-ahead",
];

fn node(texts: &[&str]) -> NodeFacts {
    let mut node = NodeFacts::default();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let Some((key, value)) = line.strip_prefix("node ").and_then(|l| l.split_once(' ')) else {
            continue;
        };
        match key {
            "data" => node.data = value.split(' ').map(str::to_owned).collect(),
            "commit_log" => node.commit_log = value.to_owned(),
            "hints" => node.hints = value.to_owned(),
            "shards" => node.shards = Some(value.parse().unwrap()),
            "memory" => node.memory = value.parse().unwrap(),
            "compressed" => node.is_log_compressed = value == "yes",
            "direct" => node.is_direct = value == "yes",
            "ports" => node.ports = value.split(' ').map(|port| port.parse().unwrap()).collect(),
            other => panic!("node {other}"),
        }
    }
    node
}

/// The ring of the last text that has one.
fn ring(texts: &[&str]) -> Option<RingFacts> {
    let lines = |text: &&str| text.lines().any(|line| line.starts_with("ring "));
    let text = texts.iter().rev().find(|text| lines(text))?;
    let mut ring = RingFacts::default();
    for line in text.lines().filter_map(|line| line.strip_prefix("ring ")) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["node", address, center, rack, tokens, life, schema, release] => {
                ring.nodes.push(RingNode {
                    address: address.to_owned(),
                    data_center: center.to_owned(),
                    rack: rack.to_owned(),
                    tokens: tokens.parse().unwrap(),
                    is_up: life == "up",
                    schema: Some(schema.to_owned()),
                    release: release.to_owned(),
                });
            }
            ["keyspace", name, copies, ref shares @ ..] => {
                let copies = copies.split(',').map(|one| one.split_once('=').unwrap());
                let copies: Vec<(String, u64)> =
                    copies.map(|(of, count)| (of.to_owned(), count.parse().unwrap())).collect();
                ring.keyspaces.push(RingKeyspace {
                    name: name.to_owned(),
                    copies: match &copies[..] {
                        [(of, count)] if of == "simple" => Copies::Anywhere(*count),
                        _ => Copies::ByCenter(copies),
                    },
                    shares: shares.iter().map(|share| share.parse().unwrap()).collect(),
                });
            }
            _ => panic!("ring {line}"),
        }
    }
    Some(ring)
}

fn look(texts: &[&str]) -> Report {
    let mut tree = Tree::default();
    for text in texts {
        tree.read_over(text).unwrap();
    }
    let facts = Facts::read(&tree, node(texts));
    examine(&Facts { ring: ring(texts), ..facts })
}

fn found(report: &Report) -> BTreeSet<String> {
    report.findings.iter().map(|finding| format!("{} {}", finding.id, finding.subject)).collect()
}

fn expected(text: &str) -> BTreeSet<String> {
    text.lines().filter_map(|line| line.strip_prefix("expect ")).map(str::to_owned).collect()
}

#[test]
fn a_good_machine_has_nothing_to_change() {
    let report = look(&[GOOD]);
    assert_eq!(report.findings, []);
    assert_eq!(report.unknown, [""; 0]);
    assert_eq!(report.ok.len(), ALL.len());
    assert!(!report.is_serious());
}

#[test]
fn every_planted_fault_is_found_and_none_made_up() {
    for (name, text) in MACHINES {
        assert_eq!(found(&look(&[GOOD, text])), expected(text), "{name}");
    }
}

#[test]
fn every_check_has_a_machine_with_its_fault() {
    let planted: BTreeSet<String> = MACHINES.iter().flat_map(|(_, text)| expected(text)).collect();
    for check in ALL {
        let start = format!("{} ", check.id);
        assert!(planted.iter().any(|one| one.starts_with(&start)), "{}", check.id);
    }
    let ids: BTreeSet<&str> = ALL.iter().map(|check| check.id).collect();
    assert_eq!(ids.len(), ALL.len());
}

#[test]
fn a_machine_that_shows_nothing_is_unknown_not_well() {
    let report = look(&["node data /data\nnode commit_log /log\n"]);
    assert_eq!(report.findings, []);
    for id in ["read_ahead", "clock_unsynchronized", "files_low", "kernel_old", "swap"] {
        assert!(report.unknown.iter().any(|other| other == id), "{id}");
    }
    assert!(report.to_string().contains("Not here, or not shown: "));
}

#[test]
fn the_most_serious_comes_first_and_names_what_to_do() {
    let spinning = MACHINES.iter().find(|(name, _)| *name == "spinning").unwrap().1;
    let report = look(&[GOOD, spinning]);
    assert!(report.is_serious());
    assert!(report.findings.is_sorted_by(|a, b| a.severity >= b.severity));
    assert_eq!(report.findings.first().unwrap().severity, Severity::Serious);
    let text = report.to_string();
    assert!(text.starts_with("serious mount_nobarrier: /var/lib/helenus: options "), "{text}");
    assert!(text.contains("fix: echo none > /sys/block/sda/queue/scheduler"), "{text}");
    assert!(text.contains("\n1 serious, 7 warnings, 3 notes; "), "{text}");
}

#[test]
fn json_has_what_the_text_has() {
    let report = look(&[GOOD, "clock unsynchronized 1\n"]);
    let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    let finding = &json["findings"][0];
    assert_eq!(finding["id"], "clock_unsynchronized");
    assert_eq!(finding["severity"], "serious");
    assert_eq!(finding["subject"], "clock");
    for key in ["found", "why", "fix"] {
        assert!(!finding[key].as_str().unwrap().is_empty(), "{key}");
    }
    assert_eq!(json["ok"].as_array().unwrap().len(), ALL.len() - 2);
    assert_eq!(json["unknown"], serde_json::json!(["clock_error"]));
}

#[test]
fn facts_that_make_no_sense_are_unknown() {
    let nonsense = "/proc/version: no such\n/proc/stat: cpu\n/proc/swaps: \n\
                    /proc/self/mountinfo: 1 2 - - x\n/proc/self/limits: Max open files\n\
                    /sys/devices/system/cpu/online: 9-1,x\n/proc/self/cgroup: ::\n\
                    /sys/block/md0/slaves/md0 -> /sys/block/md0\n";
    let report = look(&[GOOD, nonsense]);
    for id in ["kernel_old", "steal", "files_low", "fs_memory"] {
        assert!(report.unknown.iter().any(|other| other == id), "{id}");
    }
}

#[test]
fn the_page_has_the_same_table() {
    let page = include_str!("../../../docs/doctor.md");
    let table = doctor::markdown();
    assert!(page.contains(&table), "docs/doctor.md should have:\n{table}");
}
