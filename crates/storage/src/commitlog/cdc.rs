//! Change data capture (`CommitLogSegmentManagerCDC`): segments with writes to tables of `cdc =
//! true` stay behind in `cdc_raw_directory` for a consumer, who deletes them.
//!
//! A segment is linked there when it is made, if there is space for it. Beside the link, once it
//! holds such a write, lies `CommitLog-7-ID_cdc.idx`: the place up to which the segment is durable,
//! and `COMPLETED` in a second line when nothing follows. The index is written after the sync that
//! it tells of, and is itself not synced: a power cut leaves an older one, or none, and the start
//! that follows completes it for every segment that it replays. A segment without such a write
//! takes its link with it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use env::{Env, File, Instant, OpenOptions};

use super::format;

/// What `cdc_total_space` is where the configuration does not say, unless an eighth of the disk is
/// less.
const DEFAULT_BYTES: u64 = 4 << 30;
/// The part of the disk, if that is less.
const DISK_PART: u64 = 8;

/// Settings of change data capture.
#[derive(Clone, Debug)]
pub struct CdcOptions {
    /// `cdc_raw_directory`.
    pub directory: PathBuf,
    /// `cdc_total_space`, in bytes; `None`: 4 GiB or an eighth of the disk.
    pub total_bytes: Option<u64>,
    /// `cdc_block_writes`: writes are refused while the space is used up; else the oldest segments
    /// go.
    pub blocks_writes: bool,
    /// `cdc_on_repair_enabled`: does what other nodes stream of these tables go through the log?
    pub captures_streams: bool,
    /// `cdc_free_space_check_interval`: how often at most the directory is looked at because a
    /// write was refused.
    pub check_interval: Duration,
}

/// What a segment is to change data capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CdcState {
    /// It is not linked, and takes no write that is to be captured.
    #[default]
    Forbidden,
    /// It is linked and takes such writes.
    Permitted,
    /// It has such a write.
    Contains,
}

/// The name of a segment's index.
pub fn index_name(id: i64) -> String {
    index_of(&format::file_name(id))
}

fn index_of(name: &str) -> String {
    format!("{}_cdc.idx", name.strip_suffix(".log").unwrap_or(name))
}

/// One shard's part in change data capture. All shards look at one directory.
pub(super) struct Cdc {
    env: Env,
    log_directory: PathBuf,
    options: CdcOptions,
    segment_bytes: u64,
    total_bytes: u64,
    /// Bytes of all segments in the directory, as of `looked_at`.
    used: Cell<u64>,
    looked_at: Cell<Option<Instant>>,
    /// Segments that this shard writes or will write: they are never deleted for space.
    own: RefCell<BTreeSet<i64>>,
    /// Segments whose links are a consumer's to remove.
    captured: RefCell<BTreeSet<i64>>,
}

impl Cdc {
    /// Over the segments of `log_directory`.
    ///
    /// # Errors
    /// If nobody knows how large the disk is.
    pub async fn new(
        env: &Env,
        options: &CdcOptions,
        log_directory: &std::path::Path,
        segment_bytes: u32,
    ) -> std::io::Result<Self> {
        let total_bytes = match options.total_bytes {
            Some(bytes) => bytes,
            None => DEFAULT_BYTES.min(env.disk_space(&options.directory).await?.0 / DISK_PART),
        };
        Ok(Self {
            env: env.clone(),
            log_directory: log_directory.to_path_buf(),
            options: options.clone(),
            segment_bytes: segment_bytes.into(),
            total_bytes,
            used: Cell::new(0),
            looked_at: Cell::new(None),
            own: RefCell::default(),
            captured: RefCell::default(),
        })
    }

    /// Bytes of segments in the directory, as of the last look.
    pub fn used(&self) -> u64 {
        self.used.get()
    }

    fn link(&self, id: i64) -> PathBuf {
        self.options.directory.join(format::file_name(id))
    }

    fn index(&self, id: i64) -> PathBuf {
        self.options.directory.join(index_name(id))
    }

    /// Is there space for one more segment?
    fn has_room(&self) -> bool {
        !self.options.blocks_writes || self.used.get() + self.segment_bytes <= self.total_bytes
    }

    /// The segments in the directory with their bytes, oldest first.
    async fn look(&self) -> std::io::Result<Vec<(i64, u64)>> {
        let mut found = Vec::new();
        for entry in self.env.read_dir(&self.options.directory).await? {
            let Some((_, id)) = format::parse_file_name(&entry.name) else { continue };
            let path = self.options.directory.join(&entry.name);
            // a consumer may have deleted it since
            if let Ok(Some(metadata)) = self.env.metadata(&path).await {
                // one that is still being written may grow to its full size
                let is_own = self.own.borrow().contains(&id);
                found.push((id, if is_own { self.segment_bytes } else { metadata.len }));
            }
        }
        found.sort_unstable();
        self.used.set(found.iter().map(|(_, bytes)| bytes).sum());
        self.looked_at.set(Some(self.env.now()));
        Ok(found)
    }

    /// A segment was made: links it if there is space, for which the oldest go if writes are never
    /// refused.
    pub async fn made(&self, id: i64) -> std::io::Result<CdcState> {
        let found = self.look().await?;
        if !self.has_room() {
            self.env.mark("cdc.forbidden");
            return Ok(CdcState::Forbidden);
        }
        if !self.options.blocks_writes {
            let excess = (self.used.get() + self.segment_bytes).saturating_sub(self.total_bytes);
            self.delete_oldest(found, excess).await;
        }
        self.permit(id).await
    }

    async fn permit(&self, id: i64) -> std::io::Result<CdcState> {
        self.own.borrow_mut().insert(id);
        let names = self.env.open_dir(&self.options.directory).await?;
        self.env.hard_link(self.log_directory.join(format::file_name(id)), self.link(id)).await?;
        names.sync().await?;
        self.used.set(self.used.get() + self.segment_bytes);
        Ok(CdcState::Permitted)
    }

    async fn delete_oldest(&self, found: Vec<(i64, u64)>, excess: u64) {
        let mut freed = 0;
        for (id, bytes) in found {
            if freed >= excess || self.own.borrow().contains(&id) {
                break;
            }
            // what a consumer deleted meanwhile is as free
            let _ = self.env.remove_file(self.link(id)).await;
            let _ = self.env.remove_file(self.index(id)).await;
            self.env.mark("cdc.oldest_deleted");
            freed += bytes;
        }
        self.used.set(self.used.get().saturating_sub(freed));
    }

    /// A write is to be captured that its segment forbids: may it come in by now? Looks at the
    /// directory at most once an interval.
    pub async fn permit_late(&self, id: i64) -> std::io::Result<CdcState> {
        let due = self.looked_at.get().map(|at| at + self.options.check_interval);
        if due.is_none_or(|due| self.env.now() >= due) {
            self.look().await?;
        }
        if !self.has_room() {
            return Ok(CdcState::Forbidden);
        }
        self.permit(id).await
    }

    /// A segment is durable up to `offset`, and complete if nothing follows.
    pub async fn synced(&self, id: i64, offset: u32, is_complete: bool) -> std::io::Result<()> {
        if is_complete {
            self.own.borrow_mut().remove(&id);
        }
        write_index(&self.env, self.index(id), offset, is_complete).await
    }

    /// A segment has something for a consumer, who alone removes it, or is of an earlier run.
    pub fn captured(&self, id: i64) {
        self.captured.borrow_mut().insert(id);
    }

    /// A segment goes from the log: its link stays behind if it has something for a consumer.
    pub async fn discarded(&self, id: i64) {
        self.own.borrow_mut().remove(&id);
        if !self.captured.borrow_mut().remove(&id) {
            // it may never have been linked, or be deleted by a consumer
            let _ = self.env.remove_file(self.link(id)).await;
            let _ = self.env.remove_file(self.index(id)).await;
        }
    }
}

/// Writes the index of a segment.
async fn write_index(
    env: &Env,
    path: PathBuf,
    offset: u32,
    is_complete: bool,
) -> std::io::Result<()> {
    let end = if is_complete { "\nCOMPLETED" } else { "" };
    let options = OpenOptions { truncate: true, ..OpenOptions::READ_WRITE };
    let file = File::open(env, path, options).await?;
    file.write_all_at(format!("{offset}{end}").into_bytes(), 0).await.0
}

/// After a replay, for a segment of an earlier run: one that has something for a consumer, up to
/// the place `contains`, is linked and complete; the link of another one goes unless an index says
/// that it has.
///
/// # Errors
/// If a file cannot be linked or written.
pub async fn after_replay(
    env: &Env,
    options: &CdcOptions,
    segment: &super::SegmentFile,
    contains: Option<u32>,
) -> std::io::Result<()> {
    // of whatever version
    let name = format::file_name_of(segment.version, segment.id);
    let index = options.directory.join(index_of(&name));
    let link = options.directory.join(name);
    let Some(end) = contains else {
        if env.exists(&link).await? && !env.exists(&index).await? {
            env.remove_file(&link).await?;
        }
        return Ok(());
    };
    let length = env.metadata(&segment.path).await?.map_or(0, |metadata| metadata.len);
    if !env.exists(&link).await? {
        env.hard_link(&segment.path, &link).await?;
    }
    // Cassandra tells the file's length, beyond which the records of a compressed one reach
    let end = u32::try_from(length).unwrap_or(u32::MAX).max(end);
    write_index(env, index, end, true).await?;
    env.mark("cdc.replayed");
    env.sync_dir(&options.directory).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_named_after_its_segment() {
        assert_eq!(index_name(1700), "CommitLog-7-1700_cdc.idx");
    }
}
