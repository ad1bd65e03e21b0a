//! Files as they are found: those that Cassandra ships, those of former releases, and those of
//! which much is wrong; and the file of Helenus' own keys.

use config::{Config, DROPPED, Source};

const SHIPPED_40: &str = include_str!("../testdata/shipped-4.0.yaml");
const SHIPPED_41: &str = include_str!("../testdata/shipped-4.1.yaml");
const SHIPPED_50: &str = include_str!("../testdata/shipped-5.0.yaml");
const LATEST_50: &str = include_str!("../testdata/latest-5.0.yaml");

fn refusal(yaml: &str) -> String {
    Config::from_yaml(yaml).unwrap_err().to_string()
}

fn source<'a>(name: &'a str, text: &'a str) -> Source<'a> {
    Source { name: Some(name), text }
}

#[test]
fn what_cassandra_ships_is_accepted() {
    for (release, text) in [("4.0", SHIPPED_40), ("4.1", SHIPPED_41), ("5.0", SHIPPED_50)] {
        let config = Config::from_yaml(text).unwrap_or_else(|error| panic!("{release}: {error}"));
        assert_eq!(config.num_tokens, 16, "{release}");
        assert!(config.seeds.iter().any(|seed| seed.starts_with("127.0.0.1")), "{release}");
        assert_eq!(config.timeouts.read.as_millis(), 5000, "{release}");
        assert_eq!(config.batch_size_fail, 50 << 10, "{release}");
        assert_eq!(config.commitlog_segment_size, 32 << 20, "{release}");
        let notes = config.notes();
        assert!(notes.len() <= 3, "{release}: {notes:?}");
    }
    let config = Config::from_yaml(SHIPPED_50).unwrap();
    assert_eq!(config.tables.memtables, ["skiplist", "trie"]);
}

/// Formats and features that are not there yet, and nothing else.
#[test]
fn of_the_file_of_new_features_only_these_keys_are_refused() {
    let text = refusal(LATEST_50);
    let mut lines = text.lines();
    let refused: Vec<&str> = {
        assert_eq!(lines.next().unwrap(), "3 settings stop the start:");
        lines.map(|line| line.trim().split(": ").nth(1).unwrap()).collect()
    };
    let expected =
        ["sstable.selected_format", "default_secondary_index", "storage_compatibility_mode"];
    assert_eq!(refused, expected, "{text}");
}

#[test]
fn all_that_is_wrong_is_said_at_once_by_line_and_in_the_files_spelling() {
    let text = refusal(
        "start_rpc: true\nnum_tokenz: 4\nread_request_timeout_in_ms: 5s\n\
         authenticator: com.example.Mine\nnum_tokens: 5000\ncluster_name: a\ncluster_name: b\n\
         auto_repair:\n  enabled: true\n  enabledd: true\n\
         endpoint_snitch: com.example.Snitch\n",
    );
    let expected = [
        "9 settings stop the start:",
        "  line 1: Cassandra 4.0 dropped start_rpc: set start_native_transport",
        "  line 2: unknown key num_tokenz: did you mean num_tokens?",
        "  line 3: read_request_timeout_in_ms: \"5s\" is not accepted: ",
        "  line 4: authenticator: \"com.example.Mine\" is not supported: only ",
        "  line 5: num_tokens: \"5000\" is refused: it must be from 1 to 1536",
        "  line 7: duplicate key cluster_name",
        "  line 9: auto_repair.enabled: \"true\" is not supported: only \"false\" is",
        "  line 10: unknown key auto_repair.enabledd",
        "  line 11: endpoint_snitch: \"com.example.Snitch\" is not supported: only ",
    ];
    for (line, start) in text.lines().zip(expected) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
    assert_eq!(text.lines().count(), expected.len(), "{text}");
}

/// A refusal that only follows from another one would send the operator the wrong way.
#[test]
fn what_follows_from_a_refusal_is_not_one() {
    let text = refusal("authenticator: com.example.Mine\nauthorizer: CassandraAuthorizer\n");
    assert!(text.starts_with("line 1: authenticator: "), "{text}");
    let text = refusal("initial_token: x\nnum_tokens: 4000\n");
    assert!(text.contains("line 1: initial_token") && !text.contains('\n'), "{text}");
}

#[test]
fn keys_that_cassandra_dropped_are_named_with_what_stands_in_their_place() {
    let yaml: String = DROPPED.iter().map(|key| format!("{}: 1\n", key.name)).collect();
    let text = refusal(&yaml);
    assert_eq!(text.lines().count(), DROPPED.len() + 1);
    for (line, key) in text.lines().skip(1).zip(DROPPED) {
        assert!(line.contains(key.name) && line.ends_with(key.instead), "{line}");
    }
}

#[test]
fn memtables_are_those_of_the_configuration() {
    let of = |options: &str| {
        let yaml = format!("memtable: {{ configurations: {{ {options} }} }}");
        Config::from_yaml(&yaml).map(|config| config.tables.memtables).map_err(|e| e.to_string())
    };
    let good = "a: { class_name: TrieMemtable, parameters: { shards: 4 } }, b: { inherits: a }, \
                default: { inherits: b }, c: { inherits: default }";
    assert_eq!(of(good).unwrap(), ["a", "b", "c"]);
    for (options, why) in [
        ("a: { class_name: com.example.Mine }", "com.example.Mine is not one of"),
        ("a: { inherits: b }", "a inherits non-existing entry b"),
        ("a: { inherits: a }", "Detected loop when processing key a"),
        ("a: { inherits: b }, b: { inherits: c }, c: { inherits: b }", "Detected loop"),
        ("a: { }", "a: set class_name or inherits"),
    ] {
        let text = of(options).unwrap_err();
        assert!(text.contains(why), "{options}: {text}");
    }
}

#[test]
fn keys_of_our_own_have_a_file_of_their_own() {
    let cassandra = source("cassandra.yaml", "num_tokens: 4\n");
    let own = source("helenus.yaml", "shards: 3\nmemory_budget: 512MiB\n");
    let mut config = Config::from_files(cassandra, Some(own)).unwrap();
    assert_eq!((config.num_tokens, config.shards, config.memory()), (4, Some(3), 512 << 20));
    assert!(config.notes().is_empty(), "{:?}", config.notes());
    config.set_all(["shards=2", "num_tokens=8"]).unwrap();
    assert_eq!((config.num_tokens, config.shards), (8, Some(2)));
}

#[test]
fn keys_of_our_own_in_cassandras_file_have_effect_and_are_worth_one_warning() {
    let cassandra = source("cassandra.yaml", "shards: 3\nio_depth: 64\n");
    let mut config = Config::from_files(cassandra, None).unwrap();
    let warning = "cassandra.yaml has keys that are not Cassandra's, which refuses them: io_depth, \
                   shards; they have effect; move them to helenus.yaml beside it";
    assert_eq!((config.shards, config.notes()), (Some(3), vec![warning.to_owned()]));
    config.set("shards=2").unwrap();
    assert_eq!(config.notes(), [warning]);
    // the same value twice is no contradiction
    let own = source("helenus.yaml", "shards: 3\n");
    assert_eq!(Config::from_files(cassandra, Some(own)).unwrap().shards, Some(3));
}

#[test]
fn the_files_may_not_contradict_each_other_or_change_places() {
    let cassandra = source("cassandra.yaml", "shards: 3\nbogus: 1\n");
    let own = source("helenus.yaml", "\nshards: 4\nnum_tokens: 8\nshard: 5\n");
    let text = Config::from_files(cassandra, Some(own)).unwrap_err().to_string();
    let expected = [
        "4 settings stop the start:",
        "  cassandra.yaml line 2: unknown key bogus",
        "  helenus.yaml line 2: shards is \"4\" here and \"3\" in cassandra.yaml: keep one of them",
        "  helenus.yaml line 3: num_tokens is a key of Cassandra's: set it in cassandra.yaml",
        "  helenus.yaml line 4: unknown key shard: did you mean shards?",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}
