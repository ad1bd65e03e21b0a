//! Durations: months, days and nanoseconds, which are not multiples of one another
//! (`cql3.Duration`).

use crate::time::{MILLIS_PER_DAY, NANOS_PER_DAY, add_months, months_between};
use crate::vint::{ReadError, Reader, WriteBytes};
use std::fmt;
use thiserror::Error;

/// Units of a duration's text, in the order in which they must stand: symbol, name, which part they
/// count in (0 months, 1 days, 2 nanoseconds) and how much of it.
const UNITS: [(&str, &str, usize, i64); 10] = [
    ("y", "years", 0, 12),
    ("mo", "months", 0, 1),
    ("w", "weeks", 1, 7),
    ("d", "days", 1, 1),
    ("h", "hours", 2, 3_600_000_000_000),
    ("m", "minutes", 2, 60_000_000_000),
    ("s", "seconds", 2, 1_000_000_000),
    ("ms", "milliseconds", 2, 1_000_000),
    ("us", "microseconds", 2, 1_000),
    ("ns", "nanoseconds", 2, 1),
];

/// Why a text is no duration, or why one cannot be computed with. The text is Cassandra's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// The text is in none of the formats; given without its sign.
    #[error("Unable to convert '{0}' to a duration")]
    Format(String),
    /// A number beyond 64 bits.
    #[error("For input string: \"{0}\"")]
    Number(String),
    /// A unit given twice.
    #[error("Invalid duration. The {0} are specified multiple times")]
    Repeated(&'static str),
    /// A unit after a smaller one.
    #[error("Invalid duration. The {0} should be after {1}")]
    Order(&'static str, &'static str),
    /// A part beyond its range. Cassandra names the same limit for all parts.
    #[error("Invalid duration. The total number of {0} must be less or equal to 2147483647")]
    Range(&'static str),
    /// `floor` from a start after the time.
    #[error("The floor function starting time is greater than the provided time")]
    FloorStart,
    /// `floor` to a negative duration.
    #[error("Negative durations are not supported by the floor function")]
    FloorNegative,
    /// `floor` of a time of day to more than a day.
    #[error("For time values, the floor can only be computed for durations smaller that a day")]
    FloorTime,
}

/// A duration. Its parts are all of one sign or zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Duration {
    /// Months; a year is twelve.
    pub months: i32,
    /// Days; a week is seven. A day is 24 hours only where no month is involved.
    pub days: i32,
    /// Nanoseconds.
    pub nanos: i64,
}

/// Are these a duration's parts: none below zero, or none above?
pub(crate) fn same_sign(months: i32, days: i32, nanos: i64) -> bool {
    (months >= 0 && days >= 0 && nanos >= 0) || (months <= 0 && days <= 0 && nanos <= 0)
}

impl Duration {
    /// A duration of these parts; `None` when their signs differ.
    pub fn new(months: i32, days: i32, nanos: i64) -> Option<Self> {
        same_sign(months, days, nanos).then_some(Self { months, days, nanos })
    }

    /// Is a part below zero?
    pub fn is_negative(&self) -> bool {
        self.months < 0 || self.days < 0 || self.nanos < 0
    }

    /// Reads the three signed vints of a value of type `duration`.
    pub fn from_bytes(value: &[u8]) -> Result<Self, ReadError> {
        let mut reader = Reader::new(value);
        Ok(Self { months: reader.vint32()?, days: reader.vint32()?, nanos: reader.vint()? })
    }

    /// The value of type `duration`.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8);
        out.put_vint(self.months.into());
        out.put_vint(self.days.into());
        out.put_vint(self.nanos);
        out
    }

    /// Parses `1y2mo3w4d5h6m7s8ms9us10ns` and the three forms of ISO 8601: `P1Y2M3DT4H5M6S`, `P1W`
    /// and `P0001-02-03T04:05:06`. A minus in front makes all parts negative.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        let (negative, source) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut sum = Sum { parts: [0; 3], last: None };
        let understood = match source.strip_prefix('P') {
            None => sum.add_units(source)?,
            Some(iso) if source.ends_with('W') => sum.add_weeks(iso)?,
            Some(iso) if source.contains('-') => sum.add_fields(iso)?,
            Some(iso) => sum.add_designators(iso)?,
        };
        if !understood {
            return Err(DurationError::Format(source.to_owned()));
        }
        let [months, days, nanos] = sum.parts.map(|part| if negative { -part } else { part });
        // The sums were held to these ranges.
        Ok(Self { months: months as i32, days: days as i32, nanos })
    }

    /// The time in milliseconds since 1970 that is this duration after `millis`.
    pub fn add_to(&self, millis: i64) -> i64 {
        add(millis, self.months, self.days, self.nanos)
    }

    /// The time in milliseconds since 1970 that is this duration before `millis`.
    pub fn subtract_from(&self, millis: i64) -> i64 {
        add(millis, self.months.wrapping_neg(), self.days.wrapping_neg(), self.nanos.wrapping_neg())
    }

    /// Milliseconds of the days and nanoseconds.
    fn millis(&self) -> i64 {
        i64::from(self.days).wrapping_mul(MILLIS_PER_DAY).wrapping_add(self.nanos / 1_000_000)
    }

    /// The start of the interval of this length that `millis` lies in, intervals being laid end to
    /// end from `start`, all in milliseconds since 1970 (CQL's `floor` of a timestamp or date).
    pub fn floor_timestamp(&self, millis: i64, start: i64) -> Result<i64, DurationError> {
        if start > millis {
            return Err(DurationError::FloorStart);
        }
        if self.is_negative() {
            return Err(DurationError::FloorNegative);
        }
        let step = self.millis();
        if self.months == 0 {
            let past = millis.wrapping_sub(start).checked_rem(step).unwrap_or(0);
            return Ok(millis.wrapping_sub(past));
        }
        // Java counts the months between in 32 bits: past 178 million years they wrap, and so do
        // we.
        let mut count = i64::from(months_between(start, millis) as i32 / self.months);
        let shifted = |count: i64| add_months(start, (count * i64::from(self.months)) as i32);
        let mut calendar = shifted(count);
        if self.days == 0 && self.nanos == 0 {
            return Ok(calendar);
        }
        let ends = |calendar: i64, count: i64| calendar.wrapping_add(count.wrapping_mul(step));
        let mut floor = ends(calendar, count);
        // From here Java takes one interval off at a time, a hundred million times if it must.
        // (Where the sum wrapped around, it is done already.)
        let most = most_intervals(millis.wrapping_sub(start), step, self.months) + SETTLING_STEPS;
        if floor > millis && count > most {
            count = most;
            calendar = shifted(count);
            floor = ends(calendar, count);
        }
        while floor > millis && count > 0 {
            count -= 1;
            calendar = add_months(calendar, self.months.wrapping_neg());
            floor = ends(calendar, count);
        }
        Ok(floor.max(start))
    }

    /// The start of the interval of this length that a time of day lies in, intervals being laid
    /// end to end from midnight, in nanoseconds (CQL's `floor` of a time).
    pub fn floor_time(&self, nanos: i64) -> Result<i64, DurationError> {
        if self.is_negative() {
            return Err(DurationError::FloorNegative);
        }
        if self.months != 0 || self.days != 0 || self.nanos > NANOS_PER_DAY {
            return Err(DurationError::FloorTime);
        }
        Ok(nanos - nanos.checked_rem(self.nanos).unwrap_or(0))
    }
}

/// Milliseconds in a month of the Gregorian calendar on average over its 400 years; the Julian is
/// longer.
const MEAN_MONTH_MILLIS: i128 = 2_629_746_000;
/// Days by which a run of months can fall short of the mean, the change of calendars included, and
/// more.
const MONTHS_SHORT_DAYS: i128 = 62;
/// Steps of months after which the day of the month has met every month that shortens it: 400 years
/// of them.
const SETTLING_STEPS: i64 = 4800;

/// No more than so many intervals of months and milliseconds end within so many milliseconds.
fn most_intervals(within: i64, step: i64, months: i32) -> i64 {
    let slack = MONTHS_SHORT_DAYS * i128::from(MILLIS_PER_DAY);
    let each = i128::from(step.max(0)) + i128::from(months.max(1)) * MEAN_MONTH_MILLIS;
    ((i128::from(within) + slack) / each) as i64
}

/// With months, Java counts the milliseconds of a `Calendar` in 32 bits, and they wrap.
fn add(millis: i64, months: i32, days: i32, nanos: i64) -> i64 {
    let days = i64::from(days).wrapping_mul(MILLIS_PER_DAY);
    let rest = nanos / 1_000_000;
    if months == 0 {
        return millis.wrapping_add(days.wrapping_add(rest));
    }
    add_months(millis, months).wrapping_add(days).wrapping_add(i64::from(rest as i32))
}

/// `-1y2mo3d4h5m6s7ms8us9ns`, units of zero left out; nothing at all for the empty duration. Parts
/// that have no opposite are left out too, as in Cassandra, where they stay negative.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative() {
            f.write_str("-")?;
        }
        let mut rests = [
            self.months.wrapping_abs().into(),
            self.days.wrapping_abs().into(),
            self.nanos.wrapping_abs(),
        ];
        for (symbol, _, part, size) in UNITS {
            if let Some(rest) = rests.get_mut(part).filter(|rest| symbol != "w" && **rest >= size) {
                write!(f, "{}{symbol}", *rest / size)?;
                *rest %= size;
            }
        }
        Ok(())
    }
}

/// A duration while its text is read.
struct Sum {
    parts: [i64; 3],
    /// Place in [`UNITS`] of the last unit added.
    last: Option<usize>,
}

impl Sum {
    fn add(&mut self, unit: usize, digits: &str) -> Result<(), DurationError> {
        let number: i64 = digits.parse().map_err(|_| DurationError::Number(digits.to_owned()))?;
        let Some((_, name, part, size)) = UNITS.get(unit).copied() else {
            return Ok(());
        };
        match self.last {
            Some(last) if last == unit => return Err(DurationError::Repeated(name)),
            Some(last) if last > unit => {
                let after = UNITS.get(last).map_or("", |unit| unit.1);
                return Err(DurationError::Order(after, name));
            }
            _ => self.last = Some(unit),
        }
        let (limit, name) = match part {
            0 => (i64::from(i32::MAX), "months"),
            1 => (i64::from(i32::MAX), "days"),
            _ => (i64::MAX, "nanoseconds"),
        };
        if let Some(sum) = self.parts.get_mut(part) {
            if number > (limit - *sum) / size {
                return Err(DurationError::Range(name));
            }
            *sum += number * size;
        }
        Ok(())
    }

    /// Numbers with the symbols of [`UNITS`] in either case; a micro sign will do for `u`.
    fn add_units(&mut self, text: &str) -> Result<bool, DurationError> {
        let mut rest = text;
        loop {
            let (digits, tail) = split_digits(rest);
            let Some((unit, tail)) = symbol(tail).filter(|_| !digits.is_empty()) else {
                return Ok(false);
            };
            self.add(unit, digits)?;
            rest = tail;
            if rest.is_empty() {
                return Ok(true);
            }
        }
    }

    /// `1W`
    fn add_weeks(&mut self, text: &str) -> Result<bool, DurationError> {
        match split_digits(text) {
            ("", _) => Ok(false),
            (digits, "W") => self.add(2, digits).map(|()| true),
            _ => Ok(false),
        }
    }

    /// `0001-02-03T04:05:06`
    fn add_fields(&mut self, text: &str) -> Result<bool, DurationError> {
        let shape = b"dddd-dd-ddTdd:dd:dd";
        let fits = |(byte, shape): (u8, &u8)| match shape {
            b'd' => byte.is_ascii_digit(),
            other => byte == *other,
        };
        if text.len() != shape.len() || !text.bytes().zip(shape).all(fits) {
            return Ok(false);
        }
        for (unit, digits) in [0, 1, 3, 4, 5, 6].into_iter().zip(text.split(['-', 'T', ':'])) {
            self.add(unit, digits)?;
        }
        Ok(true)
    }

    /// `1Y2M3DT4H5M6S`, any of them missing.
    fn add_designators(&mut self, text: &str) -> Result<bool, DurationError> {
        let (date, time) = text.split_once('T').unwrap_or((text, ""));
        let mut found = Vec::new();
        for (half, designators) in
            [(date, [("Y", 0), ("M", 1), ("D", 3)]), (time, [("H", 4), ("M", 5), ("S", 6)])]
        {
            let mut rest = half;
            for (designator, unit) in designators {
                let (digits, tail) = split_digits(rest);
                if let Some(tail) = tail.strip_prefix(designator).filter(|_| !digits.is_empty()) {
                    found.push((unit, digits));
                    rest = tail;
                }
            }
            if !rest.is_empty() {
                return Ok(false);
            }
        }
        for (unit, digits) in found {
            self.add(unit, digits)?;
        }
        Ok(true)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// The unit whose symbol the text starts with, and what follows it. Of two, the longer symbol wins.
fn symbol(text: &str) -> Option<(usize, &str)> {
    if let Some(rest) = text.strip_prefix('\u{b5}') {
        return Some((8, rest.strip_prefix(['s', 'S'])?));
    }
    let starts = |symbol: &str| {
        text.get(..symbol.len()).is_some_and(|start| start.eq_ignore_ascii_case(symbol))
    };
    let (unit, symbol) = UNITS
        .iter()
        .map(|unit| unit.0)
        .enumerate()
        .filter(|(_, symbol)| starts(symbol))
        .max_by_key(|(_, symbol)| symbol.len())?;
    Some((unit, text.get(symbol.len()..)?))
}
