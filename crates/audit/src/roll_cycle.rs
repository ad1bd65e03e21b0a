//! How often a queue begins a file, and how its files are laid out
//! (`net.openhft.chronicle.queue.RollCycles`).

use types::time::format_date;

const MINUTE_MILLIS: i64 = 60 * 1000;
const HOUR_MILLIS: i64 = 60 * MINUTE_MILLIS;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;
/// How the name of a queue's file ends.
const SUFFIX: &str = ".cq4";

/// How often a queue begins a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollCycle {
    /// Chronicle's name.
    pub name: &'static str,
    /// Milliseconds of a file.
    pub millis: i64,
    /// How its files are named, as Java has it.
    pub format: &'static str,
    /// What the names of its files have behind the time.
    mark: &'static str,
    /// Entries of a page of the index.
    pub index_count: u32,
    /// Of so many records one is in the index.
    pub index_spacing: u32,
}

const fn cycle(
    name: &'static str,
    millis: i64,
    (format, mark): (&'static str, &'static str),
    (index_count, index_spacing): (u32, u32),
) -> RollCycle {
    RollCycle { name, millis, format, mark, index_count, index_spacing }
}

/// Those that Cassandra names.
const ALL: [RollCycle; 6] = [
    cycle("MINUTELY", MINUTE_MILLIS, ("yyyyMMdd-HHmm", ""), (2048, 16)),
    cycle("HOURLY", HOUR_MILLIS, ("yyyyMMdd-HH", ""), (4096, 16)),
    cycle("DAILY", DAY_MILLIS, ("yyyyMMdd", ""), (8192, 64)),
    cycle("LARGE_DAILY", DAY_MILLIS, ("yyyyMMdd'L'", "L"), (32768, 128)),
    cycle("XLARGE_DAILY", DAY_MILLIS, ("yyyyMMdd'X'", "X"), (32768, 256)),
    cycle("HUGE_DAILY", DAY_MILLIS, ("yyyyMMdd'H'", "H"), (32768, 1024)),
];

impl RollCycle {
    /// The one of that name, in any case.
    pub fn of(name: &str) -> Option<Self> {
        ALL.into_iter().find(|cycle| cycle.name.eq_ignore_ascii_case(name))
    }

    /// The number of the file that a time falls into.
    pub fn at(&self, millis: i64) -> i64 {
        millis.div_euclid(self.millis)
    }

    /// The name of a file, by its number.
    pub fn file_name(&self, number: i64) -> String {
        let millis = number.saturating_mul(self.millis);
        let (day, of_day) = (millis.div_euclid(DAY_MILLIS), millis.rem_euclid(DAY_MILLIS));
        let date = format_date(day).replace('-', "");
        let (hour, minute) = (of_day / HOUR_MILLIS, of_day / MINUTE_MILLIS % 60);
        let time = match self.millis {
            DAY_MILLIS => String::new(),
            HOUR_MILLIS => format!("-{hour:02}"),
            _ => format!("-{hour:02}{minute:02}"),
        };
        format!("{date}{time}{}{SUFFIX}", self.mark)
    }

    /// Is it the name of a queue's file, of whatever cycle?
    pub fn is_file(name: &str) -> bool {
        name.ends_with(SUFFIX)
    }

    /// The number of a file of this cycle, by its name; none of another file.
    pub fn number(&self, name: &str) -> Option<i64> {
        let time = name.strip_suffix(SUFFIX)?.strip_suffix(self.mark)?;
        let (date, time) = match time.split_once('-') {
            Some((date, time)) => (date, time),
            None => (time, ""),
        };
        let part = |text: &str, from: usize, to: usize| -> Option<i64> {
            let digits = text.get(from..to)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let (year, month, day) = (part(date, 0, 4)?, part(date, 4, 6)?, part(date, 6, 8)?);
        // days since 1970 of the proleptic Gregorian calendar, years beginning in March
        let (year, month) = match month {
            1..=2 => (year - 1, month + 9),
            3..=12 => (year, month - 3),
            _ => return None,
        };
        let of_year = (153 * month + 2) / 5 + day - 1;
        let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468;
        let hour = if time.is_empty() { 0 } else { part(time, 0, 2)? };
        let minute = if time.len() > 2 { part(time, 2, 4)? } else { 0 };
        let number = self.at(days * DAY_MILLIS + hour * HOUR_MILLIS + minute * MINUTE_MILLIS);
        (self.file_name(number) == name).then_some(number)
    }

    /// By how much a position is shifted, beside which the number of a record stands.
    pub(crate) fn position_shift(&self) -> u32 {
        (2 * self.index_count.ilog2() + self.index_spacing.ilog2()).max(32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Chronicle Queue 5.23.37 named them.
    #[test]
    fn files_have_chronicles_names() {
        let millis = 1_795_989_621_000;
        let names = ALL.map(|cycle| cycle.file_name(cycle.at(millis)));
        let expected =
            ["20261129-2200", "20261129-22", "20261129", "20261129L", "20261129X", "20261129H"];
        assert_eq!(names, expected.map(|name| format!("{name}.cq4")));
        for cycle in ALL {
            for millis in [millis, 0, 951_782_400_000, 4_107_542_399_999] {
                let number = cycle.at(millis);
                assert_eq!(cycle.number(&cycle.file_name(number)), Some(number), "{cycle:?}");
            }
        }
        let hourly = RollCycle::of("hourly").unwrap();
        assert_eq!(hourly.at(millis), 498_886);
        let others = ["", ".cq4", "20261129.cq4", "20261129-25.cq4", "2026112\u{e9}-22.cq4", "x"];
        assert!(others.iter().all(|name| hourly.number(name).is_none()));
        let shifts = ALL.map(|cycle| cycle.position_shift());
        assert_eq!(shifts, [32, 32, 32, 37, 38, 40]);
    }
}
