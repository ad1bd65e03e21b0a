//! Compaction's choices: against Cassandra's, against laws, and over a simulated day.

mod answers;
mod choices;
use crate::common;
mod day;
mod loads;
mod world;

use world::Plan;

/// What Cassandra 5.0.9 chose.
const ANSWERS: &str = include_str!("../../../../conformance/strategies/answers.txt");

#[test]
fn choices_are_cassandras() {
    let tally = answers::compare(ANSWERS).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(tally.choices.len(), 4);
    assert!(tally.choices.values().all(|(_, some)| *some >= 25), "{tally}");
}

#[test]
fn a_day_of_each_strategy() {
    for (name, report) in loads::days(1, 5 * 60) {
        assert!(report.write_amplification() < 20.0, "{name}: {report}");
        // of a series that nobody deletes, only windows get rid in time
        let most = if name.contains("series") { 30.0 } else { 3.0 };
        assert!(report.space_amplification().0 < most, "{name}: {report}");
    }
}

const SIZE_TIERED: Plan = Plan {
    class: "SizeTieredCompactionStrategy",
    options: &[("min_sstable_size", "0")],
    expires: false,
    then: Some((
        "LeveledCompactionStrategy",
        &[("sstable_size_in_mb", "1"), ("fanout_size", "2"), ("single_sstable_uplevel", "true")],
    )),
};

const LEVELED: Plan = Plan {
    class: "LeveledCompactionStrategy",
    options: &[("sstable_size_in_mb", "1"), ("fanout_size", "2")],
    expires: false,
    then: None,
};

const UNIFIED: Plan = Plan {
    class: "UnifiedCompactionStrategy",
    options: &[
        ("scaling_parameters", "T3"),
        ("target_sstable_size", "1MiB"),
        ("min_sstable_size", "0B"),
        ("flush_size_override", "1MiB"),
    ],
    expires: false,
    then: None,
};

const WINDOWS: Plan = Plan {
    class: "TimeWindowCompactionStrategy",
    options: &[
        ("compaction_window_unit", "MINUTES"),
        ("expired_sstable_check_frequency_seconds", "0"),
    ],
    expires: true,
    then: None,
};

#[test]
fn size_tiered_with_data_then_leveled() {
    let seen = world::run(1, SIZE_TIERED, None);
    assert_eq!(seen.wrong, [""; 0]);
    assert!(seen.levels.values().any(|level| *level > 0), "{seen:?}");
    assert!(seen.compactions > 8, "{seen:?}");
}

#[test]
fn leveled_with_data() {
    let seen = world::run(2, LEVELED, None);
    assert_eq!(seen.wrong, [""; 0]);
    assert!(seen.levels.values().any(|level| *level > 1), "{seen:?}");
}

#[test]
fn unified_with_data() {
    let seen = world::run(3, UNIFIED, None);
    assert_eq!(seen.wrong, [""; 0]);
    assert_eq!(seen.flush_outputs, 4, "a flush in as many files as there are shards: {seen:?}");
    assert!(seen.at_once > 1, "{seen:?}");
}

#[test]
fn time_windows_with_data() {
    let seen = world::run(4, WINDOWS, None);
    assert_eq!(seen.wrong, [""; 0]);
    assert!(seen.expired > 5, "{seen:?}");
}

/// A tombstone that goes while another file has what it deletes brings that back: reads that
/// disagree are noticed.
#[test]
fn tombstones_that_go_early_would_be_found() {
    let bug = Some("tombstone_purged_early");
    let found = |seed| !world::run(seed, SIZE_TIERED, bug).wrong.is_empty();
    assert!((1..=5).any(found));
}

/// What is newer than a deletion elsewhere must not go for it.
#[test]
fn garbage_that_is_none_would_be_found() {
    let bug = Some("garbage_of_any_age");
    let found = |seed| !world::run(seed, SIZE_TIERED, bug).wrong.is_empty();
    assert!((1..=5).any(found));
}
