//! Durations, sizes and rates: a whole number and a unit, where case matters and nothing may
//! stand between the two (`10s`, `16MiB`, `24MiB/s`).
//!
//! Units and bounds are those of `config.{DurationSpec,DataStorageSpec,DataRateSpec}`: each key
//! has a smallest unit that it accepts, and a limit counted in that unit. The unit given is
//! kept, because `system_views.settings` shows it.

use std::fmt;

/// A unit and how many base units (nanoseconds, bytes, bytes a second) it has.
#[derive(Debug, PartialEq, Eq)]
pub struct Unit {
    /// As written after the number.
    pub symbol: &'static str,
    /// In base units.
    pub scale: u64,
}

const fn unit(symbol: &'static str, scale: u64) -> Unit {
    Unit { symbol, scale }
}

/// Units of time, smallest first.
pub static TIME: [Unit; 7] = [
    unit("ns", 1),
    unit("us", 1_000),
    unit("ms", 1_000_000),
    unit("s", 1_000_000_000),
    unit("m", 60_000_000_000),
    unit("h", 3_600_000_000_000),
    unit("d", 86_400_000_000_000),
];
/// Units of size, smallest first.
pub static SIZE: [Unit; 4] =
    [unit("B", 1), unit("KiB", 1 << 10), unit("MiB", 1 << 20), unit("GiB", 1 << 30)];
/// Units of rate, smallest first.
pub static RATE: [Unit; 3] = [unit("B/s", 1), unit("KiB/s", 1 << 10), unit("MiB/s", 1 << 20)];

/// What a key accepts: units from `least` upwards, and less than `limit` of `least`.
#[derive(Debug)]
pub struct Bound {
    /// All units of the family.
    pub units: &'static [Unit],
    /// Index of the smallest accepted unit.
    pub least: usize,
    /// Exclusive, in units of `least`.
    pub limit: u64,
    /// What the quantity is, for messages.
    pub noun: &'static str,
}

const INT: u64 = i32::MAX as u64;
const LONG: u64 = i64::MAX as u64;

macro_rules! bounds {
    ($($name:ident: $noun:literal $units:ident[$least:literal] < $limit:ident;)*) => {$(
        #[doc = concat!("A ", $noun, " counted in `", stringify!($units), "[", $least, "]`.")]
        pub static $name: Bound =
            Bound { units: &$units, least: $least, limit: $limit, noun: $noun };
    )*};
}

bounds! {
    NANOS: "duration" TIME[0] < LONG;
    MICROS: "duration" TIME[1] < LONG;
    MILLIS: "duration" TIME[2] < LONG;
    MILLIS_INT: "duration" TIME[2] < INT;
    SECONDS: "duration" TIME[3] < LONG;
    SECONDS_INT: "duration" TIME[3] < INT;
    MINUTES_INT: "duration" TIME[4] < INT;
    BYTES: "size" SIZE[0] < LONG;
    BYTES_INT: "size" SIZE[0] < INT;
    KIB_INT: "size" SIZE[1] < INT;
    MIB: "size" SIZE[2] < LONG;
    MIB_INT: "size" SIZE[2] < INT;
    PER_SECOND: "rate" RATE[0] < LONG;
}

/// A quantity within the bound of the key it was read for.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// In units of `unit`.
    pub amount: u64,
    /// The unit that was given.
    pub unit: &'static Unit,
}

impl Quantity {
    /// In base units (nanoseconds, bytes, bytes a second), capped at the largest `u64`.
    pub fn base(self) -> u64 {
        self.amount.saturating_mul(self.unit.scale)
    }

    /// In whole units of `unit`, rounded down and capped.
    pub fn in_units(self, unit: &Unit) -> u64 {
        let exact = u128::from(self.amount) * u128::from(self.unit.scale);
        u64::try_from(exact / u128::from(unit.scale)).unwrap_or(u64::MAX)
    }
}

impl PartialEq for Quantity {
    /// Of equal extent, whatever the unit: `60s` is `1m`.
    fn eq(&self, other: &Self) -> bool {
        let exact = |q: &Self| u128::from(q.amount) * u128::from(q.unit.scale);
        exact(self) == exact(other)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.amount, self.unit.symbol)
    }
}

impl Bound {
    /// Reads `text`; `None` if it is out of form, unit or range.
    pub fn parse(&self, text: &str) -> Option<Quantity> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, symbol) = text.split_at_checked(digits)?;
        // The micro sign is Cassandra's second spelling of microseconds.
        let symbol = if symbol == "\u{b5}s" { "us" } else { symbol };
        let unit = self.accepted().find(|u| u.symbol == symbol)?;
        self.check(Quantity { amount: number.parse().ok()?, unit })
    }

    /// `amount` of the unit `symbol`, if that is within the bound.
    pub fn of(&self, amount: u64, symbol: &str) -> Option<Quantity> {
        let unit = self.accepted().find(|u| u.symbol == symbol)?;
        self.check(Quantity { amount, unit })
    }

    /// `amount` of the smallest accepted unit, which is what a number under an old name means.
    pub fn of_least(&self, amount: u64) -> Option<Quantity> {
        let unit = self.units.get(self.least)?;
        self.check(Quantity { amount, unit })
    }

    fn accepted(&self) -> impl Iterator<Item = &'static Unit> {
        self.units.iter().skip(self.least)
    }

    fn check(&self, quantity: Quantity) -> Option<Quantity> {
        let least = self.units.get(self.least)?;
        (quantity.in_units(least) < self.limit).then_some(quantity)
    }
}

impl fmt::Display for Bound {
    /// The accepted forms, for messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbols: Vec<_> = self.accepted().map(|u| u.symbol).collect();
        let example = self.units.get(self.least).map_or("", |u| u.symbol);
        write!(
            f,
            "a {} such as 10{example}: a whole number and one of {} (case matters), less than {}{example}",
            self.noun,
            symbols.join(", "),
            self.limit
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_cassandras_forms() {
        assert_eq!(MILLIS.parse("10s").unwrap().base(), 10_000_000_000);
        assert_eq!(MIB_INT.parse("10MiB").unwrap().base(), 10 << 20);
        assert_eq!(PER_SECOND.parse("24MiB/s").unwrap().base(), 24 << 20);
        assert_eq!(MILLIS.parse("60s"), MILLIS.parse("1m"));
        assert_eq!(MICROS.parse("7\u{b5}s").unwrap().to_string(), "7us");
    }

    #[test]
    fn refuses_what_cassandra_refuses() {
        for text in ["", "10", "s", "-1s", "1.5s", "10 s", "10S", "10mib", "10us", "+1s", "10s "] {
            assert!(MILLIS.parse(text).is_none(), "{text:?}");
        }
        assert!(MIB.parse("1KiB").is_none(), "below the smallest unit");
        assert!(MILLIS_INT.parse("2147483647ms").is_none(), "the limit is exclusive");
        assert!(MILLIS_INT.parse("2147483646ms").is_some());
        assert!(MILLIS_INT.parse("25d").is_none(), "more than the limit after conversion");
        assert!(MILLIS.parse("99999999999999999999s").is_none());
    }

    proptest! {
        #[test]
        fn text_round_trips(amount in 0u64..1_000_000, index in 0usize..7) {
            let text = format!("{amount}{}", TIME[index].symbol);
            if let Some(q) = NANOS.parse(&text) {
                prop_assert_eq!(q.to_string(), text);
            }
        }

        #[test]
        fn never_panics(text in ".{0,24}") {
            for bound in [&NANOS, &MIB, &PER_SECOND] {
                let _ = bound.parse(&text);
            }
        }
    }
}
