//! What can be done with an open file, and what it costs of the device.

use crate::io_kind::IoKind;
use crate::io_queue::{SYNC_COST, cost};

/// What to do with a file, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileOp {
    Read {
        offset: u64,
        len: usize,
    },
    /// Into a pipe.
    Splice {
        offset: u64,
        len: usize,
    },
    /// At most `most` bytes of the buffer, from its byte `from` on.
    Write {
        offset: u64,
        from: usize,
        most: usize,
    },
    /// Waits for what of these bytes is on its way to the device, and sends the rest of them on it.
    WriteBack {
        offset: u64,
        len: u64,
    },
    SyncData,
    SyncAll,
    Allocate {
        offset: u64,
        len: u64,
    },
}

impl FileOp {
    pub fn kind(self) -> IoKind {
        match self {
            Self::Read { .. } | Self::Splice { .. } => IoKind::Read,
            Self::Write { .. } => IoKind::Write,
            Self::WriteBack { .. } => IoKind::WriteBack,
            Self::SyncData | Self::SyncAll => IoKind::Sync,
            Self::Allocate { .. } => IoKind::Allocate,
        }
    }

    /// The part of a buffer of `len` bytes that a write takes.
    pub fn written(from: usize, most: usize, len: usize) -> std::ops::Range<usize> {
        let from = from.min(len);
        from..from.saturating_add(most).min(len)
    }

    /// What it costs of the device, with a buffer of `len` bytes.
    pub fn cost(self, len: usize) -> u64 {
        match self {
            Self::Read { len: want, .. } | Self::Splice { len: want, .. } => cost(want),
            Self::Write { from, most, .. } => cost(Self::written(from, most, len).len()),
            Self::WriteBack { len, .. } => cost(usize::try_from(len).unwrap_or(usize::MAX)),
            Self::SyncData | Self::SyncAll => SYNC_COST,
            Self::Allocate { .. } => cost(0),
        }
    }
}
