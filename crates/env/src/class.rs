//! Scheduling classes: who gets the CPU and the disk when not everyone can.

/// What a task or an I/O works for. Runnable classes share the CPU (and, queued, the disk) in
/// proportion to their [`shares`](Class::shares); an idle class gives its share away and saves
/// nothing up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Requests of clients and peers.
    Statement,
    /// Writing and syncing the commit log: statements wait for it.
    CommitLog,
    /// Writing memtables out: what frees memory.
    Flush,
    /// Merging SSTables.
    Compaction,
    /// Streams, repair, hints.
    Streaming,
    /// Everything that nobody waits for.
    Background,
    /// The operator's requests, start and stop.
    Admin,
}

/// Number of classes.
pub const CLASSES: usize = 7;

impl Class {
    /// All classes, in the order of their discriminants.
    pub const ALL: [Self; CLASSES] = [
        Self::Statement,
        Self::CommitLog,
        Self::Flush,
        Self::Compaction,
        Self::Streaming,
        Self::Background,
        Self::Admin,
    ];

    /// Share of the CPU and of the disk (relative weight) while other classes want them too.
    pub const fn shares(self) -> u32 {
        match self {
            Self::Statement | Self::CommitLog => 1000,
            Self::Flush => 400,
            Self::Compaction | Self::Streaming => 200,
            Self::Background => 100,
            Self::Admin => 200,
        }
    }

    /// Does nobody wait for a single operation of it, only for all together? Such operations are
    /// large and many.
    pub const fn is_bulk(self) -> bool {
        !matches!(self, Self::Statement | Self::CommitLog)
    }

    /// Position in [`Class::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name for metrics and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::CommitLog => "commit_log",
            Self::Flush => "flush",
            Self::Compaction => "compaction",
            Self::Streaming => "streaming",
            Self::Background => "background",
            Self::Admin => "admin",
        }
    }
}
