//! One file of hints, and how far it is delivered.
//!
//! Beside a file that is delivered in part lies one with the suffix `.sent`, which Cassandra passes
//! over:
//!
//! progress = u64 offset in the file | u32 crc(offset)
//!
//! It is written without a sync: one that is torn or lost means that hints are sent again, which
//! does no harm.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use types::WriteBytes;

use crate::descriptor::Descriptor;

/// The suffix of the file that says how far another is delivered.
pub const SENT: &str = ".sent";
/// The suffix of the file that has another's checksum.
pub const CRC32: &str = ".crc32";

/// A file of hints.
#[derive(Debug)]
pub struct HintFile {
    /// Its header.
    pub descriptor: Descriptor,
    pub(crate) directory: PathBuf,
    /// Where its hints begin.
    pub(crate) start: u64,
    pub(crate) len: Cell<u64>,
    /// Was it written to its end and closed? A torn end is one of a file that was not.
    pub(crate) is_closed: Cell<bool>,
    sent: Cell<u64>,
    saved: Cell<u64>,
}

impl HintFile {
    pub(crate) fn new(directory: &Path, descriptor: Descriptor, start: u64, len: u64) -> Self {
        Self {
            descriptor,
            directory: directory.to_path_buf(),
            start,
            len: Cell::new(len),
            is_closed: Cell::new(false),
            sent: Cell::new(start),
            saved: Cell::new(start),
        }
    }

    /// Bytes that are written.
    pub fn len(&self) -> u64 {
        self.len.get()
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.len.get() <= self.start
    }

    /// Was it closed? What is passed over in one that was not may be what a crash left behind what
    /// was synced.
    pub fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.directory.join(self.descriptor.named().file_name())
    }

    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        self.directory.join(self.descriptor.named().with_suffix(suffix))
    }

    /// All before this place is delivered.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Says that all before a place is delivered.
    pub fn set_sent(&self, offset: u64) {
        self.sent.set(offset.clamp(self.sent.get(), self.len().max(self.sent.get())));
    }

    /// What is to be saved of it, if anything is.
    pub(crate) fn to_save(&self) -> Option<Progress> {
        let sent = self.sent.get();
        (self.saved.replace(sent) != sent).then_some(Progress(sent))
    }

    /// Takes what was saved. The file may have lost what was delivered and not synced: it goes on
    /// at its end.
    pub(crate) fn resume(&self, saved: Progress) {
        let sent = saved.0.clamp(self.start, self.len().max(self.start));
        self.sent.set(sent);
        self.saved.set(sent);
    }
}

/// How far a file is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress(pub u64);

/// Bytes of a file that says so.
pub const PROGRESS_BYTES: usize = 12;

impl Progress {
    /// Its bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PROGRESS_BYTES);
        out.put_u64(self.0);
        out.put_u32(crc32fast::hash(&self.0.to_be_bytes()));
        out
    }

    /// From its bytes; `None` if they are torn.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = types::Reader::new(bytes);
        let (offset, crc) = (reader.u64().ok()?, reader.u32().ok()?);
        let is_whole = reader.is_empty() && crc == crc32fast::hash(&offset.to_be_bytes());
        is_whole.then_some(Self(offset))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn progress_is_read_whole_or_not(offset: u64, bit in 0usize..PROGRESS_BYTES * 8) {
            let mut bytes = Progress(offset).to_bytes();
            prop_assert_eq!(Progress::read(&bytes), Some(Progress(offset)));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Progress::read(&bytes), None);
            prop_assert_eq!(Progress::read(&bytes[..bit / 8]), None);
        }
    }
}
