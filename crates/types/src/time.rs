//! Calendar arithmetic on days and milliseconds since 1970, and the text of dates and times as
//! Cassandra prints them. No clock, no time zone but UTC.

use std::fmt::Write as _;

/// Milliseconds in a day.
pub const MILLIS_PER_DAY: i64 = 86_400_000;
/// Nanoseconds in a day.
pub const NANOS_PER_DAY: i64 = 86_400_000_000_000;
/// The first millisecond of the Gregorian calendar in Java's `GregorianCalendar`: before 1582-10-15
/// it counts by the Julian one, which shows in durations of months.
const GREGORIAN_START: i64 = -12_219_292_800_000;

/// A day of a calendar. Year 0 is the one before year 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Civil {
    /// Astronomical year.
    pub year: i64,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// Days in a month of the Gregorian calendar, extended to all times.
pub fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

impl Civil {
    /// The day that is `days` after 1970-01-01 in the Gregorian calendar, extended to all times.
    pub fn from_days(days: i64) -> Self {
        // Years begin in March, so that the leap day ends them; 400 years have 146,097 days.
        let shifted = days.saturating_add(719_468);
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        Self::in_march_year(era * 400 + year_of_era, day_of_year)
    }

    /// Days since 1970-01-01 in the Gregorian calendar, extended to all times.
    pub fn to_days(self) -> i64 {
        let (year, day_of_year) = self.to_march_year();
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    fn from_julian_days(days: i64) -> Self {
        let shifted = days.saturating_add(719_470);
        let (era, day_of_era) = (shifted.div_euclid(1461), shifted.rem_euclid(1461));
        let year_of_era = (day_of_era - day_of_era / 1460) / 365;
        Self::in_march_year(era * 4 + year_of_era, day_of_era - 365 * year_of_era)
    }

    fn to_julian_days(self) -> i64 {
        let (year, day_of_year) = self.to_march_year();
        year.div_euclid(4) * 1461 + year.rem_euclid(4) * 365 + day_of_year - 719_470
    }

    /// From a year that begins in March and a day of it, from 0.
    fn in_march_year(year: i64, day_of_year: i64) -> Self {
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        Self { year: year + i64::from(month <= 2), month: month as u8, day: day as u8 }
    }

    fn to_march_year(self) -> (i64, i64) {
        let month = i64::from(self.month);
        let year = self.year - i64::from(month <= 2);
        let from_march = if month > 2 { month - 3 } else { month + 9 };
        (year, (153 * from_march + 2) / 5 + i64::from(self.day) - 1)
    }

    /// Is there such a day in the Gregorian calendar?
    pub fn is_valid(self) -> bool {
        (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
    }
}

/// Adds months to a time in milliseconds since 1970 as Java's `Calendar.add` does: the day of the
/// month stays, or becomes the last one of a shorter month; times before 1582-10-15 count by the
/// Julian calendar.
pub fn add_months(millis: i64, months: i32) -> i64 {
    let (days, of_day) = (millis.div_euclid(MILLIS_PER_DAY), millis.rem_euclid(MILLIS_PER_DAY));
    let date = if millis < GREGORIAN_START {
        Civil::from_julian_days(days)
    } else {
        Civil::from_days(days)
    };
    // Java counts on from the month of the year in 32 bits.
    let month = (i32::from(date.month) - 1).wrapping_add(months);
    let (year, month) =
        (date.year + i64::from(month.div_euclid(12)), month.rem_euclid(12) as u8 + 1);
    let julian = (year, month) < (1582, 10) || ((year, month) == (1582, 10) && date.day < 15);
    let last = if month == 2 && julian && year % 4 == 0 { 29 } else { days_in_month(year, month) };
    let date = Civil { year, month, day: date.day.min(last) };
    let days = if julian { date.to_julian_days() } else { date.to_days() };
    days.wrapping_mul(MILLIS_PER_DAY).wrapping_add(of_day)
}

/// Calendar months from `from` to `to`, days aside, by the same calendar as [`add_months`].
pub(crate) fn months_between(from: i64, to: i64) -> i64 {
    let month = |millis: i64| {
        let days = millis.div_euclid(MILLIS_PER_DAY);
        let date = if millis < GREGORIAN_START {
            Civil::from_julian_days(days)
        } else {
            Civil::from_days(days)
        };
        date.year * 12 + i64::from(date.month)
    };
    month(to) - month(from)
}

/// Which parts a timestamp's text is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampStyle {
    /// `2011-02-03T04:05:06.789Z`, in literals and error messages.
    Literal,
    /// `2011-02-03 04:05:06.789Z`, in JSON.
    Json,
}

/// The text of a time in milliseconds since 1970. Years before 1 are printed by their number in the
/// era before, and years past 9999 with a plus sign, as Java's pattern `yyyy` has it.
pub fn format_timestamp(millis: i64, style: TimestampStyle) -> String {
    let date = Civil::from_days(millis.div_euclid(MILLIS_PER_DAY));
    let of_day = millis.rem_euclid(MILLIS_PER_DAY);
    let year = if date.year > 0 { date.year } else { 1 - date.year };
    let plus = if year > 9999 { "+" } else { "" };
    let separator = match style {
        TimestampStyle::Literal => 'T',
        TimestampStyle::Json => ' ',
    };
    let (seconds, milli) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let (month, day) = (date.month, date.day);
    format!(
        "{plus}{year:04}-{month:02}-{day:02}{separator}{hour:02}:{minute:02}:{second:02}.{milli:03}Z"
    )
}

/// The text of a day as days since 1970 (`DateTimeFormatter.ISO_LOCAL_DATE`).
pub fn format_date(days: i64) -> String {
    let Civil { year, month, day } = Civil::from_days(days);
    let mut out = String::new();
    if year < 0 {
        out.push('-');
    } else if year > 9999 {
        out.push('+');
    }
    let _ = write!(out, "{:04}-{month:02}-{day:02}", year.unsigned_abs());
    out
}

/// The text of a time of day in nanoseconds since midnight.
pub fn format_time(nanos: i64) -> String {
    let (seconds, nano) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!("{:02}:{:02}:{:02}.{nano:09}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn landmarks() {
        assert_eq!(Civil::from_days(0), Civil { year: 1970, month: 1, day: 1 });
        assert_eq!(Civil { year: 2020, month: 1, day: 1 }.to_days(), 18_262);
        // The day that the calendars part: Julian 1582-10-05 would be Gregorian 1582-10-15.
        let days = GREGORIAN_START / MILLIS_PER_DAY;
        assert_eq!(Civil::from_days(days), Civil { year: 1582, month: 10, day: 15 });
        assert_eq!(Civil::from_julian_days(days), Civil { year: 1582, month: 10, day: 5 });
        assert_eq!(add_months(1_580_428_800_000, 1), 1_582_934_400_000);
    }

    proptest! {
        #[test]
        fn days_round_trip(days in -4_000_000_000i64..4_000_000_000) {
            let date = Civil::from_days(days);
            prop_assert!(date.is_valid());
            prop_assert_eq!(date.to_days(), days);
            prop_assert_eq!(Civil::from_julian_days(days).to_julian_days(), days);
        }

        #[test]
        fn any_time_has_a_text(millis: i64, months: i32, nanos: i64) {
            format_timestamp(millis, TimestampStyle::Json);
            format_time(nanos);
            add_months(millis, months);
        }
    }
}
