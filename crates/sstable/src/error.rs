//! Why a component is refused.

/// A component that cannot be what it says it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It ends before what it announces.
    #[error("{component} ends at byte {at}, {wanted} bytes too early")]
    Truncated {
        /// Which component, or part of one.
        component: &'static str,
        /// Where the missing bytes should start.
        at: usize,
        /// How many there should be.
        wanted: usize,
    },
    /// It contradicts itself or passes a bound.
    #[error("{component} is corrupt: {what}")]
    Corrupt {
        /// Which component, or part of one.
        component: &'static str,
        /// The contradiction.
        what: String,
    },
    /// Bytes that do not have the checksum stored for them.
    #[error("{component}: {what} fails its checksum: {found:08x} computed, {stored:08x} stored")]
    Checksum {
        /// Which component.
        component: &'static str,
        /// Which part.
        what: String,
        /// As stored.
        stored: u32,
        /// As computed.
        found: u32,
    },
    /// A file name that is none of an SSTable's.
    #[error("{name} is not the name of an SSTable's file: {what}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Compression options that Cassandra refuses too; the text is Cassandra's.
    #[error("{0}")]
    Options(String),
}

/// Result of everything here that reads input.
pub type Result<T> = std::result::Result<T, Error>;

/// A contradiction within `component`.
pub(crate) fn corrupt<T>(component: &'static str, what: impl Into<String>) -> Result<T> {
    Err(Error::Corrupt { component, what: what.into() })
}
