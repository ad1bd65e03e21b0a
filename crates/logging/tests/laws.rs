//! How lines read, which are written, and when files roll.

use logging::{
    Area, FILE, Format, LOGGERS_MAX, Levels, Line, MESSAGE_BYTES_MAX, Place, Rolling, SetLevel,
    Settings, Thread, Threshold,
};
use metrics::Level;
use proptest::prelude::*;

const DAY: i64 = 24 * 60 * 60 * 1000;
/// 2026-11-27 03:00:00,123
const NIGHT: i64 = 1_795_748_400_123;

fn line(level: Level, message: &str) -> Line {
    Line {
        millis: NIGHT,
        level,
        thread: Thread::Main,
        place: Place { file: "crates/node/src/life.rs", line: 125 },
        message: message.to_owned(),
    }
}

fn written(line: &Line, format: Format) -> String {
    let mut text = String::new();
    line.write(format, &mut text);
    text
}

#[test]
fn a_line_reads_as_cassandras() {
    let said = line(Level::Info, "Starting listening for CQL clients on /127.0.0.1:9042");
    let expected = "INFO  [main] 2026-11-27 03:00:00,123 life.rs:125 - Starting listening for CQL \
                    clients on /127.0.0.1:9042\n";
    assert_eq!(written(&said, Format::Pattern), expected);
    let said = Line { thread: Thread::Shard(3), ..line(Level::Error, "a") };
    let expected = "ERROR [shard-3] 2026-11-27 03:00:00,123 life.rs:125 - a\n";
    assert_eq!(written(&said, Format::Pattern), expected);
}

#[test]
fn a_time_before_1970_is_one_too() {
    let said = Line { millis: -1, ..line(Level::Warn, "a") };
    assert!(written(&said, Format::Pattern).contains(" 1969-12-31 23:59:59,999 "));
}

#[test]
fn of_a_long_message_the_beginning_is_written() {
    let said = line(Level::Warn, &"\u{20ac}".repeat(MESSAGE_BYTES_MAX));
    let text = written(&said, Format::Pattern);
    assert!(text.len() < MESSAGE_BYTES_MAX + 100 && text.ends_with("\u{20ac}...\n"), "{text}");
}

proptest! {
    #[test]
    fn whatever_is_said_only_a_line_begins_as_one(message in "(?s).{0,200}") {
        let text = written(&line(Level::Warn, &message), Format::Pattern);
        let rest = text.strip_suffix('\n').unwrap();
        prop_assert!(rest.split('\n').skip(1).all(|line| line.starts_with('\t')));
        prop_assert!(!rest.contains('\r'));
    }

    #[test]
    fn an_object_of_json_has_what_was_said(message in "(?s).{0,200}") {
        let text = written(&line(Level::Info, &message), Format::Json);
        prop_assert_eq!(text.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read["message"].as_str(), Some(message.as_str()));
        prop_assert_eq!(read["level"].as_str(), Some("INFO"));
        prop_assert_eq!(read["thread"].as_str(), Some("main"));
        prop_assert_eq!(read["timestamp"].as_str(), Some("2026-11-27 03:00:00,123"));
        prop_assert_eq!(read["file"].as_str(), Some("life.rs"));
        prop_assert_eq!(read["line"].as_u64(), Some(125));
    }

    #[test]
    fn no_order_of_levels_panics(
        orders in prop::collection::vec(("[a-z.A-Z3]{0,30}", "[a-zA-Z]{0,6}"), 0..20),
    ) {
        let mut levels = Levels::new(Threshold::Info);
        for (name, level) in &orders {
            levels.set(name, level);
        }
        levels.set("", "");
        prop_assert_eq!(levels.shown(), [("ROOT".to_owned(), "INFO")]);
        prop_assert!(Area::all().all(|area| levels.allow(area, Level::Info)));
    }
}

fn area(name: &str) -> Area {
    Area::all().find(|area| area.name() == name).unwrap()
}

#[test]
fn a_line_is_of_the_area_of_its_file() {
    for (file, name) in [
        ("crates/cluster/src/membership/mod.rs", "gossip"),
        ("crates/cluster/src/membership/serve.rs", "messaging"),
        ("crates/cluster/src/topology/join/mod.rs", "bootstrap"),
        ("crates/cluster/src/topology/streams.rs", "streaming"),
        ("/elsewhere/crates/hints/src/store.rs", "hints"),
        ("crates/node/src/life.rs", "service"),
        ("main.rs", "service"),
    ] {
        assert_eq!(Area::of(file).name(), name, "{file}");
    }
}

#[test]
fn files_of_areas_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in Area::all().flat_map(Area::files) {
        let path = root.join(file);
        let is_there = path.exists() || path.with_extension("rs").exists();
        assert!(is_there, "{file}");
    }
}

#[test]
fn loggers_of_cassandra_stand_for_areas() {
    let mut levels = Levels::new(Threshold::Info);
    let set = |levels: &mut Levels, name: &str| match levels.set(name, "ERROR") {
        SetLevel::Set(areas) => areas,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(set(&mut levels, "org.apache.cassandra.gms"), ["gossip"]);
    assert_eq!(set(&mut levels, "org.apache.cassandra.gossip"), ["gossip"]);
    assert_eq!(set(&mut levels, "gossip"), ["gossip"]);
    assert_eq!(set(&mut levels, "org.apache.cassandra.gms.Gossiper"), ["gossip"]);
    assert_eq!(set(&mut levels, "org.apache.cassandra.db.compaction"), ["compaction"]);
    let db = ["compaction", "commitlog", "storage", "guardrails"];
    assert_eq!(set(&mut levels, "org.apache.cassandra.db"), db);
    assert_eq!(set(&mut levels, "org.apache.cassandra").len(), Area::all().count());
    assert_eq!(set(&mut levels, "ROOT").len(), Area::all().count());
    let streaming = ["streaming"];
    assert_eq!(set(&mut levels, "streaming"), streaming);
    assert_eq!(set(&mut levels, "ring"), ["service", "gossip", "cql"]);
    let nothing = ["org.apache.cassandra.nosuch", "com.example", "org.apache.cassandra.gmsx"];
    for name in nothing {
        assert_eq!(levels.set(name, "WARN"), SetLevel::Nothing(vec![name.to_owned()]));
    }
}

#[test]
fn the_longest_name_has_the_say() {
    let mut levels = Levels::new(Threshold::Info);
    let (gossip, hints) = (area("gossip"), area("hints"));
    levels.set("org.apache.cassandra.gms", "TRACE");
    levels.set("org.apache.cassandra", "ERROR");
    assert!(levels.allow(gossip, Level::Info) && !levels.allow(hints, Level::Warn));
    levels.set("ROOT", "OFF");
    assert!(levels.allow(hints, Level::Error));
    levels.set("org.apache.cassandra", "");
    assert!(!levels.allow(hints, Level::Error) && levels.allow(gossip, Level::Info));
    let shown = [("ROOT", "OFF"), ("org.apache.cassandra.gms", "TRACE")];
    assert_eq!(levels.shown(), shown.map(|(name, level)| (name.to_owned(), level)));
    levels.set("", "");
    assert!(levels.allow(hints, Level::Info));
    // an area's own name is short, and says more than a package
    levels.set("gossip", "INFO");
    levels.set("org.apache.cassandra", "ERROR");
    assert!(levels.allow(gossip, Level::Info) && !levels.allow(hints, Level::Warn));
}

#[test]
fn a_word_that_is_no_level_is_debug_as_in_logback() {
    assert_eq!(Threshold::of("warn"), Threshold::Warn);
    assert_eq!(Threshold::of("loud"), Threshold::Debug);
}

#[test]
fn names_with_a_level_are_bounded() {
    let mut levels = Levels::new(Threshold::Info);
    for n in 0..LOGGERS_MAX {
        assert!(matches!(levels.set(&format!("a.b{n}"), "INFO"), SetLevel::Nothing(_)));
    }
    assert_eq!(levels.set("gossip", "WARN"), SetLevel::TooMany);
    assert!(levels.allow(area("gossip"), Level::Info));
    levels.set("a.b7", "");
    assert!(matches!(levels.set("gossip", "WARN"), SetLevel::Set(_)));
}

const KEEP: Settings = Settings { file: FILE, file_bytes: 100, days: 7, total_bytes: 1000 };

#[test]
fn a_file_rolls_by_size_and_by_day() {
    let mut rolling = Rolling::new(KEEP, 0, NIGHT);
    // a day without a line makes no file
    assert!(!rolling.is_due(NIGHT + DAY));
    rolling.wrote(99, NIGHT + DAY);
    assert!(!rolling.is_due(NIGHT + DAY));
    assert!(rolling.is_due(NIGHT + 2 * DAY));
    // a clock set back is no new day
    assert!(!rolling.is_due(NIGHT - DAY));
    rolling.wrote(1, NIGHT + DAY);
    assert!(rolling.is_due(NIGHT + DAY));
    rolling.rolled(NIGHT + DAY);
    assert!(!rolling.is_due(NIGHT + DAY));
}

#[test]
fn a_file_that_was_begun_on_another_day_rolls_at_once() {
    assert!(Rolling::new(KEEP, 5, NIGHT - DAY).is_due(NIGHT));
    assert!(!Rolling::new(KEEP, 5, NIGHT).is_due(NIGHT));
}

#[test]
fn a_rolled_file_gets_a_name_that_none_has() {
    let rolling = Rolling::new(KEEP, 5, NIGHT);
    let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(rolling.rolled_name(&[]), "system.log.2026-11-27.0");
    let others = names(&[FILE, "system.log.2026-11-26.9", "system.log.2026-11-27.x", "debug.log"]);
    assert_eq!(rolling.rolled_name(&others), "system.log.2026-11-27.0");
    let same_day = names(&["system.log.2026-11-27.10", "system.log.2026-11-27.9"]);
    assert_eq!(rolling.rolled_name(&same_day), "system.log.2026-11-27.11");
}

#[test]
fn files_go_by_age_and_by_size_and_no_other_does() {
    let rolling = Rolling::new(KEEP, 5, NIGHT);
    let files = |of: &[(&str, u64)]| {
        of.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect::<Vec<_>>()
    };
    let found = files(&[
        (FILE, 5000),
        ("system.log.2026-11-19.0", 1),
        ("system.log.2026-11-20.0", 1),
        ("system.log.2026-11-19.0.zip", 1),
        ("system.log.2026-1-1.0", 1),
        ("gc.log", 9000),
    ]);
    assert_eq!(rolling.expired(&found, NIGHT), ["system.log.2026-11-19.0"]);
    let found = files(&[
        ("system.log.2026-11-26.2", 500),
        ("system.log.2026-11-26.10", 300),
        ("system.log.2026-11-27.0", 300),
    ]);
    assert_eq!(rolling.expired(&found, NIGHT), ["system.log.2026-11-26.2"]);
    let all = Rolling::new(Settings { days: 0, total_bytes: 0, ..KEEP }, 5, NIGHT);
    assert!(all.expired(&found, NIGHT + 1000 * DAY).is_empty());
}
