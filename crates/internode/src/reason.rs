//! Why a request failed at a replica (`exceptions.RequestFailureReason`): the payload of
//! FAILURE_RSP.

use types::{ReadError, Reader, WriteBytes};

/// A reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReason {
    /// None that has a number, or one of a later release.
    Unknown,
    /// `tombstone_failure_threshold`.
    TooManyTombstones,
    /// Too late.
    Timeout,
    /// A table or column that the replica does not know, or cannot serve.
    IncompatibleSchema,
    /// `local_read_size_fail_threshold` or that of the row index.
    ReadSize,
    /// Told by a coordinator to itself only.
    NodeDown,
    /// An index that is not built. From 5.0 on.
    IndexNotAvailable,
    /// `sai_sstable_indexes_per_query_fail_threshold`. From 5.0 on.
    TooManyIndexes,
}

impl FailureReason {
    /// All, by number.
    pub const ALL: [Self; 8] = [
        Self::Unknown,
        Self::TooManyTombstones,
        Self::Timeout,
        Self::IncompatibleSchema,
        Self::ReadSize,
        Self::NodeDown,
        Self::IndexNotAvailable,
        Self::TooManyIndexes,
    ];

    /// Its number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// By number; those of later releases are unknown.
    pub fn from_number(number: u64) -> Self {
        let known = usize::try_from(number).ok().and_then(|at| Self::ALL.get(at).copied());
        known.unwrap_or(Self::Unknown)
    }

    /// Appends it.
    pub fn write(self, out: &mut Vec<u8>) {
        out.put_uvint(self.number().into());
    }

    /// Reads it.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        reader.uvint().map(Self::from_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (at, reason) in FailureReason::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(reason.number()), at);
            let mut out = Vec::new();
            reason.write(&mut out);
            assert_eq!(FailureReason::read(&mut Reader::new(&out)), Ok(reason));
        }
        assert_eq!(FailureReason::from_number(8), FailureReason::Unknown);
        assert_eq!(FailureReason::from_number(u64::MAX), FailureReason::Unknown);
    }
}
