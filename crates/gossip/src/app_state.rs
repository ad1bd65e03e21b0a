//! What nodes say of themselves (`gms.ApplicationState`): on the wire a number, the place in Java's
//! enumeration.

use std::fmt;

/// A kind of value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppState(u8);

const NAMES: [&str; 31] = [
    "STATUS",
    "LOAD",
    "SCHEMA",
    "DC",
    "RACK",
    "RELEASE_VERSION",
    "REMOVAL_COORDINATOR",
    "INTERNAL_IP",
    "RPC_ADDRESS",
    "X_11_PADDING",
    "SEVERITY",
    "NET_VERSION",
    "HOST_ID",
    "TOKENS",
    "RPC_READY",
    "INTERNAL_ADDRESS_AND_PORT",
    "NATIVE_ADDRESS_AND_PORT",
    "STATUS_WITH_PORT",
    "SSTABLE_VERSIONS",
    "DISK_USAGE",
    "INDEX_STATUS",
    "X1",
    "X2",
    "X3",
    "X4",
    "X5",
    "X6",
    "X7",
    "X8",
    "X9",
    "X10",
];

#[allow(missing_docs, reason = "Cassandra's names")]
impl AppState {
    pub const STATUS: Self = Self(0);
    pub const LOAD: Self = Self(1);
    pub const SCHEMA: Self = Self(2);
    pub const DC: Self = Self(3);
    pub const RACK: Self = Self(4);
    pub const RELEASE_VERSION: Self = Self(5);
    pub const REMOVAL_COORDINATOR: Self = Self(6);
    pub const INTERNAL_IP: Self = Self(7);
    pub const RPC_ADDRESS: Self = Self(8);
    pub const X_11_PADDING: Self = Self(9);
    pub const SEVERITY: Self = Self(10);
    pub const NET_VERSION: Self = Self(11);
    pub const HOST_ID: Self = Self(12);
    pub const TOKENS: Self = Self(13);
    pub const RPC_READY: Self = Self(14);
    pub const INTERNAL_ADDRESS_AND_PORT: Self = Self(15);
    pub const NATIVE_ADDRESS_AND_PORT: Self = Self(16);
    pub const STATUS_WITH_PORT: Self = Self(17);
    pub const SSTABLE_VERSIONS: Self = Self(18);
    pub const DISK_USAGE: Self = Self(19);
    /// Of 5.0; before it, nothing yet.
    pub const INDEX_STATUS: Self = Self(20);
}

impl AppState {
    /// By number; none of those that a Cassandra 5.0 could not read, and so must not be told.
    pub fn from_number(number: i32) -> Option<Self> {
        let known = u8::try_from(number).ok().filter(|number| usize::from(*number) < NAMES.len());
        known.map(Self)
    }

    /// Its number.
    pub fn number(self) -> u8 {
        self.0
    }

    /// Its name, as `nodetool gossipinfo` shows it.
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).copied().unwrap_or_default()
    }

    /// The kind that says the same with a port, and so takes the place of this one.
    pub fn with_port(self) -> Option<Self> {
        match self {
            Self::STATUS => Some(Self::STATUS_WITH_PORT),
            Self::INTERNAL_IP => Some(Self::INTERNAL_ADDRESS_AND_PORT),
            Self::RPC_ADDRESS => Some(Self::NATIVE_ADDRESS_AND_PORT),
            _ => None,
        }
    }
}

impl fmt::Debug for AppState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
