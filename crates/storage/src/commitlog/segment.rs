//! A segment file that is being written.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use env::{Class, Env, File, OpenOptions};

use super::cdc::{Cdc, CdcState};
use super::format;
use super::log::{LogOptions, SyncMode};

/// Bytes of a segment that pages are taken for at once, if it is synced seldom: a sync writes what of them is new.
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

    /// Lets the write that ends what is written go on with zeros, which are there already, to the end of the last stretch of
    /// [`LAID_OUT_BYTES`] that it touches first. The kernel takes a large page for all of that at once, where it would have taken small
    /// ones bit by bit: that costs more than half of what writing to the log costs a shard.
    pub fn lay_out(&self, bytes: &mut Vec<u8>) {
        let Some(laid_out) = &self.laid_out else { return };
        let end = self.written.get();
        let until = end.next_multiple_of(LAID_OUT_BYTES).min(self.bytes);
        if end > laid_out.get() {
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
        let is_synced_seldom = matches!(options.mode, SyncMode::Periodic { .. });
        let data = Rc::new(SegmentData {
            id,
            file,
            bytes: options.segment_bytes,
            written: Cell::new(next_offset),
            laid_out: (is_reserved && is_synced_seldom).then(|| Cell::new(next_offset)),
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
    use std::cell::RefCell;
    use std::net::{IpAddr, Ipv4Addr};
    use std::path::Path;
    use std::rc::Rc;
    use std::time::Duration;

    use env::sim::{World, WorldOptions};
    use proptest::prelude::*;

    use super::{LAID_OUT_BYTES, LogOptions, Segment, SyncMode};

    const SEGMENT_BYTES: u32 = 5 * LAID_OUT_BYTES / 2;

    /// A segment to which pieces were written.
    struct Written {
        header: usize,
        /// Lengths of the writes.
        writes: Vec<usize>,
        file: Vec<u8>,
    }

    /// Pieces of these lengths are written, as far as they fit.
    fn written(mode: SyncMode, lengths: Vec<usize>) -> Written {
        let world = World::new(1, WorldOptions::default());
        let node = world.node(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let done = Rc::new(RefCell::new(None));
        let ended = Rc::clone(&done);
        world.start::<(), _, _, std::io::Error>(node, 1, move |env, _| {
            let (lengths, ended) = (lengths.clone(), Rc::clone(&ended));
            async move {
                let options = LogOptions {
                    directory: "/".into(),
                    mode,
                    segment_bytes: SEGMENT_BYTES,
                    compression: None,
                    mutation_bytes_max: SEGMENT_BYTES as usize,
                    cdc: None,
                    archive_command: None,
                    goes_on_after_failure: false,
                    total_bytes: u64::MAX,
                };
                let Segment { data, path, .. } = Segment::create(&env, &options, 7, &[]).await?;
                let header = data.written.get() as usize;
                let mut writes = Vec::new();
                for length in lengths {
                    if data.written.get() as usize + length > SEGMENT_BYTES as usize {
                        break;
                    }
                    let mut piece = vec![1; length];
                    let offset = data.take_place(&mut piece, length);
                    data.lay_out(&mut piece);
                    writes.push(piece.len());
                    data.file.write_all_at(piece, offset.into()).await.0?;
                }
                *ended.borrow_mut() = Some((header, writes, path));
                env.terminated().await;
                Ok(())
            }
        });
        world.run_until(|| done.borrow().is_some(), Duration::from_secs(60)).expect("it ends");
        let (header, writes, path) = done.take().expect("it ended");
        let files = world.disk(node, |disk| disk.files()).unwrap_or_default();
        let file = files.into_iter().find(|(name, _)| Path::new(name) == path);
        Written { header, writes, file: file.map(|(_, bytes)| bytes).expect("a file") }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
            #[test]
        fn what_is_laid_out_is_zeros_that_were_there(
            lengths in prop::collection::vec(1..3 * LAID_OUT_BYTES as usize / 4, 0..40),
        ) {
            let seldom = SyncMode::Periodic { period: Duration::from_secs(10), lag_block: Duration::ZERO };
            let ahead = written(seldom, lengths.clone());
            let exact = written(SyncMode::Batch, lengths.clone());
            prop_assert!(ahead.file == exact.file);
            prop_assert_eq!(ahead.file.len(), SEGMENT_BYTES as usize);
            prop_assert_eq!(&exact.writes, &lengths[..exact.writes.len()]);
            let (mut end, mut laid_out) = (ahead.header, ahead.header);
            for (write, length) in ahead.writes.iter().zip(&lengths) {
                end += length;
                let until = end.next_multiple_of(LAID_OUT_BYTES as usize).min(SEGMENT_BYTES as usize);
                let more = if end > laid_out { until - end } else { 0 };
                prop_assert_eq!(*write, length + more);
                laid_out = if end > laid_out { until } else { laid_out };
            }
        }
    }
}
