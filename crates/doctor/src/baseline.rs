//! What a machine was measured to do, and how that compares with the time before.

use serde::{Deserialize, Serialize};

/// A figure that is worse by so much is said to be worse: less is within what runs differ by.
const WORSE_PERCENT: f64 = 20.0;
const SECONDS_A_DAY: i64 = 86_400;

/// Is more of it better?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A rate.
    Higher,
    /// A time.
    Lower,
}

/// One thing that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: String,
    /// Is more of it better?
    pub better: Better,
}

impl Figure {
    /// A rate.
    pub fn rate(name: &str, value: f64, unit: &str) -> Self {
        Self { name: name.to_owned(), value, unit: unit.to_owned(), better: Better::Higher }
    }

    /// A time, or whatever else should be little.
    pub fn time(name: &str, value: f64, unit: &str) -> Self {
        Self { better: Better::Lower, ..Self::rate(name, value, unit) }
    }
}

/// What a machine did at some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// When, as [`timestamp`] has it.
    pub date: String,
    /// The machine's name.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// How many CPUs it had.
    pub cpus: u64,
    /// The load average of the minute before.
    #[serde(default)]
    pub load: f64,
    /// Bytes of the file that was read and written.
    pub file_bytes: u64,
    /// Did reads and writes bypass the page cache?
    pub is_direct: bool,
    /// The peer, if the network was measured.
    pub peer: Option<String>,
    /// What was measured.
    pub figures: Vec<Figure>,
}

/// A figure beside the one before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// What it was.
    pub before: f64,
    /// What it is.
    pub now: f64,
    /// By how much it rose (or fell, if negative), in percent.
    pub percent: f64,
    /// Is it worse by more than runs differ?
    pub is_worse: bool,
}

/// Random reads at these depths are measured.
const DEPTHS: [u32; 3] = [1, 8, 32];
/// A depth is enough that reaches so much of the best rate.
const ENOUGH: f64 = 0.9;
/// So many times that depth keeps the disk busy between one answer and the next request.
const DEPTH_TIMES: u32 = 2;
/// Less would have flushes wait for each other.
const DEPTH_MIN: u32 = 16;

impl Baseline {
    /// How many operations at a time are enough for the disk: none if it was still becoming faster
    /// with the most that were measured, or if figures are missing.
    pub fn io_depth(&self) -> Option<u32> {
        let rate = |depth: u32| {
            let name = format!("read_4k_depth_{depth}");
            let rate = self.figures.iter().find(|figure| figure.name == name)?.value;
            (rate.is_finite() && rate > 0.0).then_some((depth, rate))
        };
        let rates: Vec<(u32, f64)> = DEPTHS.into_iter().filter_map(rate).collect();
        if rates.len() < DEPTHS.len() {
            return None;
        }
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let enough = rates.iter().find(|(_, rate)| *rate >= best * ENOUGH)?.0;
        (enough < DEPTHS[DEPTHS.len() - 1]).then(|| (enough * DEPTH_TIMES).max(DEPTH_MIN))
    }

    /// Compares with an earlier one: what both have, if measured in the same unit.
    pub fn compare(&self, before: &Self) -> Vec<Change> {
        let change = |now: &Figure| {
            let is_same = |other: &&Figure| other.name == now.name && other.unit == now.unit;
            let old = before.figures.iter().find(is_same)?.value;
            if old <= 0.0 || !old.is_finite() || !now.value.is_finite() {
                return None;
            }
            // a time that doubles is as bad as a rate that halves
            let slower = match now.better {
                Better::Higher => old / now.value,
                Better::Lower => now.value / old,
            };
            Some(Change {
                name: now.name.clone(),
                before: old,
                now: now.value,
                percent: (now.value / old - 1.0) * 100.0,
                is_worse: (slower - 1.0) * 100.0 > WORSE_PERCENT,
            })
        };
        self.figures.iter().filter_map(change).collect()
    }
}

/// The value that so many of a hundred do not exceed; sorts them.
pub fn percentile(values: &mut [u64], of_hundred: usize) -> u64 {
    values.sort_unstable();
    let at = (values.len() * of_hundred).div_ceil(100).saturating_sub(1);
    values.get(at).copied().unwrap_or(0)
}

/// A time as a part of a file's name, in UTC: they sort by time.
pub fn timestamp(unix_seconds: i64) -> String {
    let (days, second) =
        (unix_seconds.div_euclid(SECONDS_A_DAY), unix_seconds.rem_euclid(SECONDS_A_DAY));
    let (mut year, mut day) = (1970, days);
    let length = |year: i64| {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        if is_leap { 366 } else { 365 }
    };
    while day >= length(year) {
        day -= length(year);
        year += 1;
    }
    let february = length(year) - 337;
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}-{minute:02}-{second:02}Z", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(figures: Vec<Figure>) -> Baseline {
        Baseline { figures, ..Baseline::default() }
    }

    #[test]
    fn rates_that_fall_and_times_that_rise_are_worse() {
        let before = of(vec![
            Figure::rate("reads", 1_000.0, "1/s"),
            Figure::time("read", 100.0, "us"),
            Figure::rate("gone", 1.0, "1/s"),
            Figure::rate("zero", 0.0, "1/s"),
            Figure::rate("other", 1.0, "MB/s"),
        ]);
        let worse = |reads: f64, read: f64| {
            let now = of(vec![
                Figure::rate("reads", reads, "1/s"),
                Figure::time("read", read, "us"),
                Figure::rate("new", 1.0, "1/s"),
                Figure::rate("zero", 1.0, "1/s"),
                Figure::rate("other", 1.0, "GB/s"),
            ]);
            let changes = now.compare(&before);
            assert_eq!(changes.len(), 2);
            [changes[0].is_worse, changes[1].is_worse]
        };
        assert_eq!(worse(1_000.0, 100.0), [false, false]);
        assert_eq!(worse(2_000.0, 50.0), [false, false]);
        assert_eq!(worse(850.0, 120.0), [false, false]);
        assert_eq!(worse(840.0, 121.0), [false, true]);
        assert_eq!(worse(820.0, 100.0), [true, false]);
        assert_eq!(worse(0.0, 100.0), [true, false]);
    }

    #[test]
    fn a_depth_is_enough_where_the_rate_grows_no_more() {
        let depth = |rates: &[f64]| {
            let names = ["read_4k_depth_1", "read_4k_depth_8", "read_4k_depth_32"];
            let figures = names.iter().zip(rates);
            of(figures.map(|(name, rate)| Figure::rate(name, *rate, "1/s")).collect()).io_depth()
        };
        assert_eq!(depth(&[100.0, 700.0, 720.0]), Some(16));
        // one head, or a disk that a queue does not help
        assert_eq!(depth(&[100.0, 105.0, 104.0]), Some(16));
        // it would have become faster still
        assert_eq!(depth(&[100.0, 700.0, 1_500.0]), None);
        assert_eq!(depth(&[100.0, 700.0]), None);
        assert_eq!(depth(&[100.0, f64::NAN, 720.0]), None);
    }

    #[test]
    fn percentiles_are_values_that_were_there() {
        let mut values: Vec<u64> = (1..=200).rev().collect();
        assert_eq!([50, 99, 100].map(|p| percentile(&mut values, p)), [100, 198, 200]);
        assert_eq!(percentile(&mut [7], 50), 7);
        assert_eq!(percentile(&mut [], 99), 0);
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00-00-00Z"),
            (951_782_399, "2000-02-28T23-59-59Z"),
            (951_782_400, "2000-02-29T00-00-00Z"),
            (1_709_251_200, "2024-03-01T00-00-00Z"),
            (1_798_761_599, "2026-12-31T23-59-59Z"),
        ];
        for (seconds, text) in cases {
            assert_eq!(timestamp(seconds), text);
        }
    }
}
