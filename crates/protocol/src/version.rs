//! The versions of the protocol.

use std::fmt;

/// A version of the native protocol. Cassandra 5.0 speaks 3 to 5 and, to clients that set the
/// "use beta" flag, 6, which so far differs from 5 in its number and that flag alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Cassandra 2.1.
    V3 = 3,
    /// Cassandra 2.2 and 3.
    V4 = 4,
    /// Cassandra 4.0 and later; checksummed segments.
    V5 = 5,
    /// Beta.
    V6 = 6,
}

impl Version {
    /// Every version we serve, oldest first.
    pub const ALL: [Self; 4] = [Self::V3, Self::V4, Self::V5, Self::V6];
    /// The version that answers go out in before the connection has one of its own.
    pub const CURRENT: Self = Self::V5;
    /// What SUPPORTED lists under `PROTOCOL_VERSIONS`, and refusals of a version name.
    pub const NAMES: [&'static str; 4] = ["3/v3", "4/v4", "5/v5", "6/v6-beta"];

    /// Its number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Is it served only to clients that set [`Flags::USE_BETA`](crate::header::Flags::USE_BETA)?
    pub fn is_beta(self) -> bool {
        self == Self::V6
    }

    /// Do frames travel in checksummed segments after STARTUP?
    pub fn is_segmented(self) -> bool {
        self >= Self::V5
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V3 => Self::NAMES[0],
            Self::V4 => Self::NAMES[1],
            Self::V5 => Self::NAMES[2],
            Self::V6 => Self::NAMES[3],
        })
    }
}
