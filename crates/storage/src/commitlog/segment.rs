//! A segment file that is being written.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use env::{Class, Env, File, OpenOptions};

use super::format;

/// An open segment: its space is reserved and reads as zeros, its header is durable.
#[derive(Debug)]
pub(super) struct Segment {
    pub id: i64,
    pub path: PathBuf,
    pub file: Rc<File>,
    /// Where the next section goes.
    pub next_offset: u32,
    /// Bytes reserved.
    pub bytes: u32,
}

impl Segment {
    /// Creates a segment of `bytes` and makes its name and header durable.
    pub async fn create(env: &Env, directory: &Path, id: i64, bytes: u32) -> io::Result<Self> {
        let path = directory.join(format::file_name(id));
        let file = File::open(env, &path, OpenOptions::CREATE_NEW).await?;
        let file = file.with_class(Class::CommitLog);
        file.allocate(u64::from(bytes)).await?;
        let mut header = Vec::with_capacity(64);
        format::write_header(id, &mut header);
        let next_offset = header.len() as u32;
        let (written, _) = file.write_all_at(header, 0).await;
        written?;
        file.sync_all().await?;
        env.sync_dir(directory).await?;
        Ok(Self { id, path, file: Rc::new(file), next_offset, bytes })
    }

    /// Does a section of `bytes` fit, and a marker after it?
    pub fn has_room(&self, bytes: usize) -> bool {
        self.next_offset as usize + bytes + format::MARKER_BYTES <= self.bytes as usize
    }
}
