//! Kinds of disk operation.

/// Kinds of disk operation that are accounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum IoKind {
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// `sync_data` and `sync_all`.
    Sync,
    /// Reserving space.
    Allocate,
    /// Opening, naming, listing: all else that goes through a helper thread.
    Meta,
    /// Having what was written go to the device now
    /// ([`File::write_back`](crate::File::write_back)).
    WriteBack,
    /// Removing and cutting files: gives blocks back to the device.
    Discard,
}

/// Number of kinds.
pub const IO_KINDS: usize = 7;

impl IoKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [Self; IO_KINDS] = [
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Allocate,
        Self::Meta,
        Self::WriteBack,
        Self::Discard,
    ];

    /// Does it wait in the shard's queue for its turn at the device?
    pub const fn is_queued(self) -> bool {
        !matches!(self, Self::Meta | Self::Discard)
    }

    /// Name for metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Allocate => "allocate",
            Self::Meta => "meta",
            Self::WriteBack => "write_back",
            Self::Discard => "discard",
        }
    }
}
