//! UUIDs, and the times inside those of version 1 (`utils.TimeUUID`).
//!
//! A time-UUID counts ticks of 100 ns from 1582-10-15. Its other half, clock sequence and node, is
//! the caller's to choose; nothing here reads a clock.

use std::fmt;

/// Milliseconds from 1582-10-15T00:00Z, the start of UUID time, to 1970.
pub const EPOCH_MILLIS: i64 = 12_219_292_800_000;
/// Ticks of 100 ns in a millisecond.
const TICKS_PER_MILLI: i64 = 10_000;
/// The second half that sorts before all others in type `timeuuid`, whose bytes compare as signed.
pub const MIN_CLOCK_SEQ_AND_NODE: u64 = 0x8080_8080_8080_8080;
/// The second half that sorts after all others.
pub const MAX_CLOCK_SEQ_AND_NODE: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// 16 bytes, big endian. The order of this type is that of the bytes; that of CQL's types is in
/// [`crate::CqlType::compare`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub u128);

impl Uuid {
    /// From its bytes.
    #[inline]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// From a value of type `uuid` or `timeuuid`; `None` unless it has 16 bytes.
    #[inline]
    pub fn from_value(value: &[u8]) -> Option<Self> {
        value.as_array().map(|bytes| Self::from_bytes(*bytes))
    }

    /// Its bytes.
    #[inline]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// A time-UUID of a count of ticks since 1582 and the second half given. Ticks that need more
    /// than 60 bits, before 1582 or after 5236, run into the version, as they do in Cassandra.
    #[inline]
    pub fn from_ticks(ticks: i64, clock_seq_and_node: u64) -> Self {
        let ticks = ticks.cast_unsigned();
        let high = ticks << 32 | ticks >> 16 & 0xffff_0000 | 0x1000 | ticks >> 48;
        Self(u128::from(high) << 64 | u128::from(clock_seq_and_node))
    }

    /// A time-UUID of a time in microseconds since 1970.
    #[inline]
    pub fn from_unix_micros(micros: i64, clock_seq_and_node: u64) -> Self {
        let ticks = micros.wrapping_mul(10).wrapping_add(EPOCH_MILLIS * TICKS_PER_MILLI);
        Self::from_ticks(ticks, clock_seq_and_node)
    }

    /// The first time-UUID of a millisecond since 1970 in CQL's order (`minTimeuuid`).
    pub fn min_of_millis(millis: i64) -> Self {
        Self::from_ticks(ticks_of_millis(millis), MIN_CLOCK_SEQ_AND_NODE)
    }

    /// The last time-UUID of a millisecond since 1970 in CQL's order (`maxTimeuuid`).
    pub fn max_of_millis(millis: i64) -> Self {
        let next = ticks_of_millis(millis.wrapping_add(1));
        Self::from_ticks(next.wrapping_sub(1), MAX_CLOCK_SEQ_AND_NODE)
    }

    /// A UUID of version 4 from 16 random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes).with_version(4)
    }

    /// A UUID of version 3 from an MD5 digest (`UUID.nameUUIDFromBytes`).
    pub fn from_md5(digest: [u8; 16]) -> Self {
        Self::from_bytes(digest).with_version(3)
    }

    fn with_version(self, version: u128) -> Self {
        let clear = !(0xf << 76 | 0b11 << 62);
        Self(self.0 & clear | version << 76 | 0b10 << 62)
    }

    /// Its version, 0 to 15.
    #[inline]
    pub fn version(self) -> u8 {
        (self.0 >> 76) as u8 & 0xf
    }

    /// The clock sequence and node of a time-UUID.
    #[inline]
    pub fn clock_seq_and_node(self) -> u64 {
        self.0 as u64
    }

    /// Ticks since 1582; `None` unless of version 1.
    #[inline]
    pub fn ticks(self) -> Option<i64> {
        let high = (self.0 >> 64) as u64;
        let ticks = (high & 0x0fff) << 48 | (high & 0xffff_0000) << 16 | high >> 32;
        (self.version() == 1).then_some(ticks.cast_signed())
    }

    /// Microseconds since 1970; `None` unless of version 1.
    #[inline]
    pub fn unix_micros(self) -> Option<i64> {
        self.ticks().map(|ticks| ticks / 10 - EPOCH_MILLIS * 1000)
    }

    /// Milliseconds since 1970, rounded towards 1970 as Java does; `None` unless of version 1.
    #[inline]
    pub fn unix_millis(self) -> Option<i64> {
        self.unix_micros().map(|micros| micros / 1000)
    }

    /// Parses the form with four hyphens, 36 characters of either case.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return None;
        }
        let mut value = 0_u128;
        for (index, byte) in bytes.iter().enumerate() {
            match (index, byte) {
                (8 | 13 | 18 | 23, b'-') => {}
                (8 | 13 | 18 | 23, _) => return None,
                _ => value = value << 4 | u128::from(crate::hex::digit(*byte)?),
            }
        }
        Some(Self(value))
    }
}

fn ticks_of_millis(millis: i64) -> i64 {
    millis.wrapping_mul(TICKS_PER_MILLI).wrapping_add(EPOCH_MILLIS * TICKS_PER_MILLI)
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |shift: u32, mask: u128| self.0 >> shift & mask;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 0xffff_ffff),
            part(80, 0xffff),
            part(64, 0xffff),
            part(48, 0xffff),
            part(0, 0xffff_ffff_ffff)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CqlType;
    use proptest::prelude::*;

    #[test]
    fn times_as_cassandra_counts_them() {
        for line in include_str!("../testdata/timeuuids.txt").lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let [micros, node, text, ticks, unix_micros, unix_millis, low, high, millis] =
                columns[..]
            else {
                panic!("{line}");
            };
            let id = Uuid::from_unix_micros(micros.parse().unwrap(), node.parse().unwrap());
            assert_eq!(id.to_string(), text);
            assert_eq!(Uuid::parse(text), Some(id));
            assert_eq!(id.ticks(), ticks.parse().ok());
            assert_eq!(id.unix_micros(), unix_micros.parse().ok());
            assert_eq!(id.unix_millis(), unix_millis.parse().ok());
            let millis = millis.parse().unwrap();
            assert_eq!(Uuid::min_of_millis(millis).to_string(), low);
            assert_eq!(Uuid::max_of_millis(millis).to_string(), high);
            assert_eq!(Uuid::from_ticks(id.ticks().unwrap(), id.clock_seq_and_node()), id);
        }
        assert_eq!(Uuid::parse("550e8400-e29b-41d4-a716-446655440000").unwrap().ticks(), None);
    }

    #[test]
    fn versions() {
        assert_eq!(
            Uuid::from_random([0xff; 16]).to_string(),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
        assert_eq!(Uuid::from_md5([0; 16]).to_string(), "00000000-0000-3000-8000-000000000000");
    }

    proptest! {
        #[test]
        fn text_round_trip(value: u128) {
            prop_assert_eq!(Uuid::parse(&Uuid(value).to_string()), Some(Uuid(value)));
        }

        #[test]
        fn bounds_hold_every_id_of_the_millisecond(
            millis in -10_000_000_000_000i64..10_000_000_000_000,
            within in 0i64..1000,
            node: u64,
        ) {
            let id = Uuid::from_unix_micros(millis * 1000 + within, node).to_bytes();
            let (low, high) = (Uuid::min_of_millis(millis), Uuid::max_of_millis(millis));
            prop_assert!(CqlType::TimeUuid.compare(&low.to_bytes(), &id).is_le());
            prop_assert!(CqlType::TimeUuid.compare(&id, &high.to_bytes()).is_le());
            prop_assert_eq!(Uuid::from_bytes(id).unix_micros(), Some(millis * 1000 + within));
        }
    }
}
