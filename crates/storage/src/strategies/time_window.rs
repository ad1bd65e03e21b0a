//! Choice by windows of time (`TimeWindowCompactionStrategy`): what was written in one window ends
//! up in one file.

use std::collections::BTreeMap;

use super::choice::{Candidate, Choice, Given, Reason, View};
use super::size_tiered::{BucketOptions, Thresholds, buckets, ids, most_interesting};
use super::tombstones::TombstoneOptions;

/// The strategy, with what it remembers from choice to choice.
#[derive(Clone, Debug)]
pub struct TimeWindow {
    /// `compaction_window_unit` times `compaction_window_size`, in seconds.
    window_seconds: i64,
    /// `timestamp_resolution`: how many timestamps a second has.
    per_second: i64,
    /// `expired_sstable_check_frequency_seconds`, in milliseconds.
    check_millis: i64,
    buckets: BucketOptions,
    thresholds: Thresholds,
    tombstones: TombstoneOptions,
    last_check_millis: i64,
    highest_window: i64,
}

/// By the start of the window, in milliseconds.
type Windows<'a> = BTreeMap<i64, Vec<&'a Candidate>>;

impl TimeWindow {
    pub(crate) fn new(given: Given<'_>) -> Self {
        let unit = match given.text("compaction_window_unit") {
            Some("MINUTES") => 60,
            Some("HOURS") => 3600,
            _ => 86_400,
        };
        let per_second = match given.text("timestamp_resolution") {
            Some("SECONDS") => 1,
            Some("MILLISECONDS") => 1000,
            Some("NANOSECONDS") => 1_000_000_000,
            _ => 1_000_000,
        };
        let size = i64::from(given.number("compaction_window_size", 1i32).max(1));
        let seconds: i64 = given.number("expired_sstable_check_frequency_seconds", 600);
        let mut tombstones = TombstoneOptions::new(given);
        // Who says nothing about them does not want them.
        let asked = |name: &&str| given.text(name).is_some_and(|text| text != "false");
        tombstones.disabled = ![
            "unchecked_tombstone_compaction",
            "tombstone_compaction_interval",
            "tombstone_threshold",
        ]
        .iter()
        .any(asked);
        Self {
            window_seconds: unit * size,
            per_second,
            check_millis: seconds.saturating_mul(1000),
            buckets: BucketOptions::new(given),
            thresholds: Thresholds::new(given),
            tombstones,
            last_check_millis: 0,
            highest_window: 0,
        }
    }

    /// The start of the window of a table's newest timestamp, in milliseconds.
    pub(crate) fn window(&self, table: &Candidate) -> i64 {
        let millis = match self.per_second {
            1 => table.max_timestamp.saturating_mul(1000),
            per_second => table.max_timestamp / (per_second / 1000),
        };
        let seconds = millis / 1000;
        (seconds - seconds % self.window_seconds).saturating_mul(1000)
    }

    fn windows<'a>(&self, tables: impl IntoIterator<Item = &'a Candidate>) -> Windows<'a> {
        let mut windows = Windows::new();
        for table in tables {
            windows.entry(self.window(table)).or_default().push(table);
        }
        windows
    }

    /// The newest window with something to do, and how many tasks there are in all.
    fn newest(&self, windows: &Windows<'_>, now: i64) -> (Vec<u64>, usize) {
        let mut chosen = Vec::new();
        let mut pending = 0;
        let Thresholds { min, max } = self.thresholds;
        for (start, tables) in windows.iter().rev() {
            let inputs = if tables.len() >= min && *start >= now {
                let buckets = buckets(tables, &self.buckets);
                most_interesting(buckets, self.thresholds).map(|bucket| ids(&bucket))
            } else if tables.len() >= 2 && *start < now {
                let mut tables = tables.clone();
                tables.sort_by_key(|table| table.data_bytes);
                tables.truncate(max);
                Some(ids(&tables))
            } else {
                None
            };
            let Some(inputs) = inputs else { continue };
            let left = tables.len().saturating_sub(max);
            pending += 1 + if left > min { left.div_ceil(max.max(1)) } else { 0 };
            if chosen.is_empty() {
                chosen = inputs;
            }
        }
        (chosen, pending)
    }

    pub(crate) fn next(&mut self, mine: &[&Candidate], view: &View<'_>) -> Option<Choice> {
        let free: Vec<_> = mine.iter().copied().filter(|table| !table.is_compacting).collect();
        let mut expired = Vec::new();
        if view.now_millis - self.last_check_millis > self.check_millis {
            expired = self.tombstones.expired(view, &free, &view.overlapping(&free));
            self.last_check_millis = view.now_millis;
        }
        let left: Vec<_> = free.into_iter().filter(|table| !expired.contains(&table.id)).collect();
        let windows = self.windows(left.iter().copied());
        self.highest_window = windows.keys().copied().fold(self.highest_window, i64::max);
        let (mut inputs, _) = self.newest(&windows, self.highest_window);
        let mut reason = Reason::Window;
        if inputs.is_empty() {
            let worth = left.into_iter().filter(|table| self.tombstones.is_worth(view, table));
            let smallest = worth.reduce(|a, b| if b.data_bytes < a.data_bytes { b } else { a });
            inputs.extend(smallest.map(|table| table.id));
            reason = if inputs.is_empty() { Reason::Expired } else { Reason::Tombstones };
        }
        inputs.extend(expired);
        (!inputs.is_empty()).then(|| Choice::merge(inputs, reason))
    }

    pub(crate) fn pending(&self, mine: &[&Candidate]) -> usize {
        let free = mine.iter().copied().filter(|table| !table.is_compacting);
        let windows = self.windows(free);
        let now = windows.keys().copied().fold(self.highest_window, i64::max);
        self.newest(&windows, now).1
    }
}
