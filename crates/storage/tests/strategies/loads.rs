//! The tables of a simulated day.

use schema::CompactionParams;

use super::day::{Day, Load, Report};

/// A strategy with options, of which some are small so that a day has many levels.
pub fn params(class: &str, options: &[(&str, &str)]) -> CompactionParams {
    let class = format!("org.apache.cassandra.db.compaction.{class}");
    let options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    CompactionParams::new(class, options)
}

type Kind = (&'static str, Load, &'static str, &'static [(&'static str, &'static str)]);

const KINDS: [Kind; 8] = [
    ("size-tiered", Load::Updates, "SizeTieredCompactionStrategy", &[]),
    ("leveled", Load::Updates, "LeveledCompactionStrategy", &[]),
    (
        "leveled, 32 MB, fanout 4, uplevel",
        Load::Updates,
        "LeveledCompactionStrategy",
        &[("sstable_size_in_mb", "32"), ("fanout_size", "4"), ("single_sstable_uplevel", "true")],
    ),
    ("unified T4", Load::Updates, "UnifiedCompactionStrategy", &[]),
    (
        "unified L10, 64 MiB",
        Load::Updates,
        "UnifiedCompactionStrategy",
        &[
            ("scaling_parameters", "L10"),
            ("target_sstable_size", "64MiB"),
            ("min_sstable_size", "8MiB"),
            ("sstable_growth", "0"),
        ],
    ),
    (
        "time-window, hours",
        Load::Series,
        "TimeWindowCompactionStrategy",
        &[("compaction_window_unit", "HOURS")],
    ),
    ("size-tiered, of a series", Load::Series, "SizeTieredCompactionStrategy", &[]),
    (
        "unified N, of a series",
        Load::Series,
        "UnifiedCompactionStrategy",
        &[("scaling_parameters", "N")],
    ),
];

/// A time of each kind; what came of it.
pub fn days(seed: u64, minutes: u64) -> Vec<(&'static str, Report)> {
    let day = |(name, load, class, options): Kind| {
        let mut day = Day::new(params(class, options), load, seed);
        day.run(minutes);
        day.compare();
        day.settle();
        assert!(day.is_idle());
        day.compare();
        let report = day.report().clone();
        day.major(true);
        (name, report)
    };
    KINDS.into_iter().map(day).collect()
}
