//! A segment file that is being written.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use env::{Class, Env, File, OpenOptions};

use super::cdc::{Cdc, CdcState};
use super::format;
use super::log::{LogOptions, SyncMode};

/// Bytes of a segment that pages are taken for at once, if it is synced seldom: a sync writes what
/// of them is new.
const LAID_OUT_BYTES: u32 = 64 << 10;

/// The file of a segment, which sections are written to one after the other.
#[derive(Debug)]
pub(super) struct SegmentData {
    pub id: i64,
    pub file: File,
    /// Its size, unless it is compressed.
    bytes: u32,
    /// Where the next section goes.
    pub written: Cell<u32>,
    /// Up to where the kernel has pages for it, if they are laid out ahead of what is written.
    laid_out: Option<Cell<u32>>,
    /// Where the next section would begin if nothing was compressed: all before is written.
    pub records_end: Cell<u32>,
    /// Where that is for good, once the log went on in another segment.
    pub end: Cell<Option<u32>>,
    /// Where the last section that is written ends in the file.
    pub file_end: Cell<u32>,
    /// Up to where the file is synced.
    pub synced: Cell<u32>,
    /// Up to where a mark tells of that.
    pub marked: Cell<u32>,
    /// What it is to change data capture.
    pub cdc: Cell<CdcState>,
    /// What its consumer was told last.
    told: Cell<Option<(u32, bool)>>,
    /// Did a write or sync of it fail, and the log go on in another one?
    pub is_given_up: Cell<bool>,
}

/// Up to where pages are to be laid out by a write that ends there; none if they are.
fn laid_out_until(end: u32, laid_out: u32, size: u32) -> Option<u32> {
    (end > laid_out).then(|| end.next_multiple_of(LAID_OUT_BYTES).min(size))
}

impl SegmentData {
    /// Ends a section, behind a mark of so many bytes, for the place that it takes: where that is.
    pub fn take_place(&self, bytes: &mut [u8], mark: usize) -> u32 {
        let offset = self.written.get();
        assert!(mark <= bytes.len(), "a mark lies within the bytes that are written");
        if let Some(section) = bytes.get_mut(mark..).filter(|section| !section.is_empty()) {
            format::end_section(section, self.id, offset + mark as u32);
        }
        self.written.set(offset + bytes.len() as u32);
        offset
    }

    /// Lets the write that ends what is written go on with zeros, which are there already, to the
    /// end of the last stretch of [`LAID_OUT_BYTES`] that it touches first. The kernel takes a
    /// large page for all of that at once, where it would have taken small ones bit by bit: that
    /// costs more than half of what writing to the log costs a shard.
    pub fn lay_out(&self, bytes: &mut Vec<u8>) {
        let Some(laid_out) = &self.laid_out else { return };
        let end = self.written.get();
        if let Some(until) = laid_out_until(end, laid_out.get(), self.bytes) {
            assert!(until >= end, "the preallocated part ends at or after the written part");
            bytes.resize(bytes.len() + (until - end) as usize, 0);
            laid_out.set(until);
        }
    }

    /// Tells a consumer of captured segments that this one is durable up to `end`.
    pub async fn tell_consumer(&self, cdc: &Cdc, end: u32) -> io::Result<()> {
        let is_complete = self.end.get() == Some(end);
        if self.cdc.get() != CdcState::Contains || self.told.get() == Some((end, is_complete)) {
            return Ok(());
        }
        cdc.synced(self.id, end, is_complete).await?;
        self.told.set(Some((end, is_complete)));
        Ok(())
    }
}

/// An open segment; its header is durable.
#[derive(Debug)]
pub(super) struct Segment {
    pub id: i64,
    pub path: PathBuf,
    pub data: Rc<SegmentData>,
    /// Where the next section would begin if nothing was compressed.
    pub next_offset: u32,
    /// What fits into it, in bytes that are not compressed.
    pub bytes: u32,
    /// Is its space reserved?
    is_reserved: bool,
    /// Does nothing more go into it?
    pub is_full: bool,
}

impl Segment {
    /// Creates a segment and makes its name and header durable. Its space is reserved and reads as
    /// zeros, unless it is compressed: then the file's end tells a torn section from a damaged one,
    /// as in Cassandra.
    pub async fn create(
        env: &Env,
        options: &LogOptions,
        id: i64,
        whole: &[i64],
    ) -> io::Result<Self> {
        let path = options.directory.join(format::file_name(id));
        let names = env.open_dir(&options.directory).await?;
        let file = File::open(env, &path, OpenOptions::CREATE_NEW).await?;
        let file = file.with_class(Class::CommitLog);
        let is_reserved = options.compression.is_none();
        if is_reserved {
            file.allocate(u64::from(options.segment_bytes)).await?;
        }
        let mut header = Vec::with_capacity(256);
        let length = is_reserved.then_some(options.segment_bytes);
        format::write_header(id, options.compression.as_ref(), whole, length, &mut header);
        let next_offset = header.len() as u32;
        let (written, _) = file.write_all_at(header, 0).await;
        written?;
        file.sync_all().await?;
        names.sync().await?;
        let is_synced_seldom = matches!(options.mode, SyncMode::Periodic { .. });
        let lays_out = is_reserved && is_synced_seldom && file.has_pages();
        let data = Rc::new(SegmentData {
            id,
            file,
            bytes: options.segment_bytes,
            written: Cell::new(next_offset),
            laid_out: lays_out.then(|| Cell::new(next_offset)),
            records_end: Cell::new(next_offset),
            file_end: Cell::new(next_offset),
            end: Cell::default(),
            synced: Cell::new(next_offset),
            marked: Cell::new(next_offset),
            cdc: Cell::default(),
            told: Cell::default(),
            is_given_up: Cell::default(),
        });
        Ok(Self {
            id,
            path,
            data,
            next_offset,
            bytes: options.segment_bytes,
            is_reserved,
            is_full: false,
        })
    }

    /// Bytes that it takes on the disk so far.
    pub fn size(&self) -> u64 {
        if self.is_reserved { self.bytes.into() } else { self.data.written.get().into() }
    }

    /// Does a section of `bytes` fit, and a marker after it?
    pub fn has_room(&self, bytes: usize) -> bool {
        !self.is_full
            && self.next_offset as usize + bytes + format::MARKER_BYTES <= self.bytes as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{LAID_OUT_BYTES, laid_out_until};

    #[test]
    fn a_stretch_is_laid_out_once_and_ends_with_the_segment() {
        let size = 2 * LAID_OUT_BYTES + 100;
        assert_eq!(laid_out_until(50, 40, size), Some(LAID_OUT_BYTES));
        assert_eq!(laid_out_until(LAID_OUT_BYTES, LAID_OUT_BYTES, size), None);
        let next = laid_out_until(LAID_OUT_BYTES + 1, LAID_OUT_BYTES, size);
        assert_eq!(next, Some(2 * LAID_OUT_BYTES));
        assert_eq!(laid_out_until(size - 1, 2 * LAID_OUT_BYTES, size), Some(size));
        assert_eq!(laid_out_until(size, size, size), None);
    }
}
