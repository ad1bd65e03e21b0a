//! What of a table's SSTables is sent to another node: which of them, and which parts.

use std::path::PathBuf;
use std::sync::Arc;

use env::{ALIGNMENT, AlignedBuf, Class, Env, File, OpenOptions};
use schema::TableId;
use sstable::descriptor::Component;
use types::{Token, TokenRange};

use crate::compaction::{estimated_partitions, sampled_keys};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::read::KeyWalk;
use crate::repair_status::RepairedState;
use crate::sstables::SSTable;

/// Bytes of a component that is read as a whole before it is sent, at most.
const SMALL_BYTES_MAX: u64 = 1 << 20;

/// Partitions that lie behind each other: where the first starts and the last ends, in uncompressed
/// bytes.
pub type Section = (u64, u64);

/// An SSTable and what of it is sent. Its files stay as long as this does.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The SSTable.
    pub sstable: Arc<SSTable>,
    /// Which of its partitions, in their order; never empty.
    pub sections: Vec<Section>,
    /// How many those are, about.
    pub partitions: u64,
}

impl Chosen {
    /// Is that all of it?
    pub fn is_whole(&self) -> bool {
        let bytes: u64 = self.sections.iter().map(|(from, to)| to - from).sum();
        bytes == self.sstable.table.uncompressed_length()
    }

    /// How many partitions of it are in a range, about, as Cassandra counts them: it makes Merkle
    /// trees as deep as that says.
    pub fn partitions_in(&self, range: TokenRange) -> u64 {
        let parts = TokenRange::normalize([range]);
        let is_in = |token: Token| TokenRange::any_contains(&parts, token);
        let sampled = sampled_keys(&self.sstable, is_in);
        sampled.unwrap_or_else(|| {
            let span = |range: &TokenRange| (range.end() as f64 - range.left.0 as f64).max(1.0);
            let (first, last) = self.sstable.table.tokens();
            let within = |part: &TokenRange| {
                let from = part.left.0.max(first.0.saturating_sub(1));
                (part.end().min(last.0) as f64 - from as f64).max(0.0)
            };
            let covered: f64 = parts.iter().map(within).sum();
            let whole = span(&TokenRange { left: first, right: last });
            (estimated_partitions(&self.sstable) as f64 * (covered / whole).min(1.0)) as u64
        })
    }
}

impl Engine {
    /// What of a table's SSTables of a state is in ranges, which are
    /// [normalized](TokenRange::normalize). Memtables are to be flushed before.
    ///
    /// # Errors
    /// If the table is unknown, or an index cannot be read.
    pub async fn sstables_in(
        &self,
        table: TableId,
        ranges: &[TokenRange],
        state: RepairedState,
    ) -> Result<Vec<Chosen>, StorageError> {
        let live = self.store(table)?.live();
        let mut chosen = Vec::new();
        for sstable in live.tables().iter().filter(|it| state.takes(it.repair_status())) {
            let sections = self.sections(sstable, ranges).await?;
            if sections.is_empty() {
                continue;
            }
            assert!(
                sections.is_sorted_by(|before, after| before.1 < after.0),
                "sections of an SSTable are in order and apart"
            );
            let bytes: u64 = sections.iter().map(|(from, to)| to - from).sum();
            let share = bytes as f64 / sstable.table.uncompressed_length().max(1) as f64;
            let partitions = estimated_partitions(sstable) as f64 * share;
            let partitions = (partitions as u64).max(1);
            chosen.push(Chosen { sstable: Arc::clone(sstable), sections, partitions });
        }
        Ok(chosen)
    }

    /// Where the partitions of ranges lie in an SSTable.
    pub(crate) async fn sections(
        &self,
        sstable: &Arc<SSTable>,
        ranges: &[TokenRange],
    ) -> Result<Vec<Section>, StorageError> {
        let mut sections: Vec<Section> = Vec::new();
        let (first, last) = sstable.table.tokens();
        let meets = |range: &&TokenRange| first.0 <= range.end() && range.left < last;
        for range in ranges.iter().filter(meets) {
            let starts_before = range.left < first;
            let from = match starts_before {
                true => 0,
                false => self.position_behind(sstable, range.left).await?,
            };
            let to = match last.0 <= range.end() {
                true => sstable.table.uncompressed_length(),
                false => self.position_behind(sstable, range.right).await?,
            };
            match sections.last_mut() {
                _ if from >= to => {}
                Some(before) if before.1 == from => before.1 = to,
                _ => sections.push((from, to)),
            }
        }
        Ok(sections)
    }

    /// Where the first partition starts whose token is behind this one.
    async fn position_behind(
        &self,
        sstable: &Arc<SSTable>,
        token: Token,
    ) -> Result<u64, StorageError> {
        let end = sstable.table.uncompressed_length();
        let Some(next) = token.0.checked_add(1) else { return Ok(end) };
        let from = KeyRef { token: Token(next), bytes: &[] };
        let walk = KeyWalk::start(&self.files, sstable, Some(from), false).await?;
        Ok(walk.head().map_or(end, |head| head.located.position))
    }
}

/// A component of an SSTable that is sent.
#[derive(Debug)]
pub struct SentComponent {
    /// Which.
    pub component: Component,
    /// Its bytes.
    pub length: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Read before: another may be in its place by the time it is sent.
    Held(Vec<u8>),
    File(ComponentReader),
}

impl SentComponent {
    /// Its file, if that is sent as it is.
    pub fn file(&self) -> Option<&File> {
        match &self.content {
            Content::File(reader) => Some(&reader.file),
            Content::Held(_) => None,
        }
    }

    /// Reads bytes of it, behind those that `out` has.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn read(
        &self,
        at: u64,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        match &self.content {
            Content::File(reader) => reader.read(at, length, out).await,
            Content::Held(bytes) => {
                let from = usize::try_from(at).unwrap_or(usize::MAX);
                out.extend_from_slice(
                    bytes.get(from..).and_then(|b| b.get(..length)).unwrap_or(&[]),
                );
                Ok(())
            }
        }
    }
}

/// A file of an SSTable, read past the page cache: what readers have there stays.
#[derive(Debug)]
pub struct ComponentReader {
    file: File,
    path: PathBuf,
}

impl ComponentReader {
    async fn open(env: &Env, path: PathBuf) -> Result<Self, StorageError> {
        let file = File::open(env, &path, OpenOptions::READ.direct()).await;
        let file = file.map_err(|e| StorageError::io("cannot open", &path, e))?;
        Ok(Self { file: file.with_class(Class::Streaming), path })
    }

    /// Reads bytes of it, behind those that `out` has.
    ///
    /// # Errors
    /// If they cannot be read.
    pub async fn read(
        &self,
        at: u64,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        let failed = |e: std::io::Error| StorageError::io("cannot read", &self.path, e);
        let before = out.len();
        let (mut from, end) = (at, at + length as u64);
        let mut buffer = AlignedBuf::with_capacity(length + 2 * ALIGNMENT);
        while from < end {
            // whole blocks, of the last of which the file may have a part
            let left = (end - from) as usize;
            let (skip, asked) = match self.file.is_direct() {
                true => {
                    let skip = (from % ALIGNMENT as u64) as usize;
                    (skip, (skip + left).next_multiple_of(ALIGNMENT))
                }
                false => (0, left),
            };
            let (result, bytes) = self.file.read_at(buffer, from - skip as u64, asked).await;
            let read = result.map_err(failed)?;
            let wanted = bytes.get(skip..read.min(skip + left)).filter(|wanted| !wanted.is_empty());
            let wanted = wanted.ok_or_else(|| failed(std::io::ErrorKind::UnexpectedEof.into()))?;
            out.extend_from_slice(wanted);
            from += wanted.len() as u64;
            buffer = bytes;
        }
        assert_eq!(out.len() - before, length, "all that is sent of a file was read");
        Ok(())
    }
}

impl Engine {
    /// The components of an SSTable that is sent whole, as Cassandra's
    /// `SSTable.getStreamingComponents` has them.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub async fn sent_components(
        &self,
        sstable: &SSTable,
    ) -> Result<Vec<SentComponent>, StorageError> {
        let all = [
            Component::Data,
            Component::Index,
            Component::Partitions,
            Component::Rows,
            Component::Statistics,
            Component::Filter,
            Component::Digest,
            Component::CompressionInfo,
            Component::Crc,
            Component::Summary,
        ];
        let mut sent = Vec::new();
        for component in all {
            let path = sstable.path(&component);
            if component == Component::Statistics {
                let bytes = self.env().read_file(&path, SMALL_BYTES_MAX).await;
                let bytes = bytes.map_err(|e| StorageError::io("cannot read", &path, e))?;
                let (length, content) = (bytes.len() as u64, Content::Held(bytes));
                sent.push(SentComponent { component, length, content });
                continue;
            }
            let found = self.env().metadata(&path).await;
            let found = found.map_err(|e| StorageError::io("cannot stat", &path, e))?;
            let Some(found) = found else { continue };
            let content = Content::File(ComponentReader::open(self.env(), path).await?);
            sent.push(SentComponent { component, length: found.len, content });
        }
        Ok(sent)
    }

    /// Bytes of all data directories together that are free and not reserved
    /// (`min_free_space_per_drive`).
    ///
    /// # Errors
    /// If a disk does not say.
    pub async fn room(&self) -> Result<u64, StorageError> {
        let mut room = 0;
        let mut seen = Vec::new();
        for directory in &self.options.data_directories {
            let space = self.env().disk_space(directory).await;
            let space = space.map_err(|e| StorageError::io("cannot stat", directory, e))?;
            // directories that say the same are taken for one disk
            if !seen.contains(&space) {
                room += space.1.saturating_sub(self.options.disk.min_free_bytes);
                seen.push(space);
            }
        }
        Ok(room)
    }

    /// The data of an SSTable of which sections are sent.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub async fn sent_data(&self, sstable: &SSTable) -> Result<ComponentReader, StorageError> {
        ComponentReader::open(self.env(), sstable.path(&Component::Data)).await
    }
}
