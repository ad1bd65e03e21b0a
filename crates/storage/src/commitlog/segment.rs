//! A segment file that is being written.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use env::{Class, Env, File, OpenOptions};

use super::cdc::{Cdc, CdcState};
use super::format;
use super::log::LogOptions;

/// The file of a segment, which sections are written to one after the other.
#[derive(Debug)]
pub(super) struct SegmentData {
    pub id: i64,
    pub file: File,
    /// Where the next section goes.
    pub written: Cell<u32>,
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

impl SegmentData {
    /// Ends a section, behind a mark of so many bytes, for the place that it takes: where that is.
    pub fn take_place(&self, bytes: &mut [u8], mark: usize) -> u32 {
        let offset = self.written.get();
        if let Some(section) = bytes.get_mut(mark..).filter(|section| !section.is_empty()) {
            format::end_section(section, self.id, offset + mark as u32);
        }
        self.written.set(offset + bytes.len() as u32);
        offset
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
    /// Creates a segment and makes its name and header durable. Its space is reserved and reads as zeros, unless it is
    /// compressed: then the file's end tells a torn section from a damaged one, as in Cassandra.
    pub async fn create(
        env: &Env,
        options: &LogOptions,
        id: i64,
        whole: &[i64],
    ) -> io::Result<Self> {
        let path = options.directory.join(format::file_name(id));
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
        env.sync_dir(&options.directory).await?;
        let data = Rc::new(SegmentData {
            id,
            file,
            written: Cell::new(next_offset),
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
