//! Where a key's partition is in an SSTable, by its index.
//!
//! A BIG table has a sampled index, a BTI table a trie of byte-comparable keys (`sstable::bti`).

use std::cmp::Ordering;
use std::rc::Rc;

use sstable::bti::{
    ENTRY_BYTES_MAX, PartitionPlace, Partitions, RowsEntry, TrieCursor, key_bytes, key_hash_byte,
};
use sstable::descriptor::Component;
use sstable::index::{Found, Promoted, read_entry, skip_to};
use sstable::summary::Summary;
use sstable::table::{Index, format, order};

use super::pass::Keeping;
use crate::error::StorageError;
use crate::memtable::KeyRef;
use crate::sstables::{Files, IndexFile, SSTable, TriePages};

/// Where an index entry points.
#[derive(Clone, Debug)]
pub(crate) struct Located {
    pub position: u64,
    /// Where the next partition begins, if that was seen.
    pub end: Option<u64>,
    pub rows: RowsIndex,
}

/// What the index has of a partition's rows.
#[derive(Clone, Debug)]
pub(crate) enum RowsIndex {
    /// Nothing: it is narrow.
    None,
    /// The promoted index, not yet parsed.
    Promoted(Vec<u8>),
    /// The same, parsed.
    Parsed(Rc<Promoted>),
    /// A trie of `Rows.db`, by its root.
    Trie(u64),
}

impl RowsIndex {
    /// Of the promoted index of an entry; without bytes there is none.
    pub fn promoted(bytes: &[u8]) -> Self {
        if bytes.is_empty() { Self::None } else { Self::Promoted(bytes.to_vec()) }
    }
}

impl Located {
    /// Bytes of memory that it points to.
    pub fn heap_bytes(&self) -> usize {
        match &self.rows {
            RowsIndex::None | RowsIndex::Trie(_) => 0,
            RowsIndex::Promoted(bytes) => bytes.capacity(),
            RowsIndex::Parsed(promoted) => promoted.heap_bytes(),
        }
    }
}

/// Parses the promoted index of an entry.
pub(super) fn parse_promoted(
    sstable: &SSTable,
    bytes: &[u8],
) -> Result<Rc<Promoted>, StorageError> {
    let format = format(sstable.table.descriptor.version);
    let promoted = Promoted::read(&sstable.table.layout, format, bytes);
    promoted.map(Rc::new).map_err(|e| StorageError::corrupt(sstable.path(&Component::Index), e))
}

/// Looks a key up where it was found before, if that is kept of the table's keys, else in the
/// index.
pub(crate) async fn locate(
    files: &Files,
    sstable: &SSTable,
    key: KeyRef<'_>,
    is_kept: bool,
) -> Result<Option<Located>, StorageError> {
    if !is_kept || !files.keeps_keys() {
        return look_up(files, sstable, key).await;
    }
    if let Some(located) = files.kept_place(sstable, key) {
        return Ok(Some(located));
    }
    take_place(files, sstable, key).await
}

/// Looks a key up in the index, and keeps its place.
pub(crate) async fn take_place(
    files: &Files,
    sstable: &SSTable,
    key: KeyRef<'_>,
) -> Result<Option<Located>, StorageError> {
    let Some(mut located) = look_up(files, sstable, key).await? else { return Ok(None) };
    if let RowsIndex::Promoted(bytes) = &located.rows {
        located.rows = RowsIndex::Parsed(parse_promoted(sstable, bytes)?);
    }
    files.keep_place(sstable, key, &located);
    Ok(Some(located))
}

async fn look_up(
    files: &Files,
    sstable: &SSTable,
    key: KeyRef<'_>,
) -> Result<Option<Located>, StorageError> {
    match &sstable.table.index {
        Index::Big { summary, length } => {
            locate_in_index(files, sstable, (summary, *length), key).await
        }
        Index::Bti { partitions, .. } => locate_in_trie(files, sstable, partitions, key).await,
    }
}

async fn locate_in_index(
    files: &Files,
    sstable: &SSTable,
    (summary, length): (&Summary, u64),
    key: KeyRef<'_>,
) -> Result<Option<Located>, StorageError> {
    let corrupt = |error| StorageError::corrupt(sstable.path(&Component::Index), error);
    let Some((mut at, next)) = summary.span(key.token, key.bytes) else { return Ok(None) };
    let end = next.unwrap_or(length).min(length);
    let (mut start, mut page) = (at, Rc::<Vec<u8>>::default());
    while at < end {
        let bytes = page.get((at - start) as usize..).unwrap_or_default();
        match read_entry(bytes, length - at).map_err(corrupt)? {
            Found::Entry(entry) if entry.key == key.bytes => {
                let rows = RowsIndex::promoted(entry.promoted);
                let rest = bytes.get(entry.length..).unwrap_or_default();
                let end = match read_entry(rest, length - at - entry.length as u64) {
                    Ok(Found::Entry(next)) => Some(next.position),
                    _ => None,
                };
                return Ok(Some(Located { position: entry.position, end, rows }));
            }
            Found::Entry(entry) => {
                let is_first = at == start;
                // asked once a page, for it takes a hash: where samples end early the file may be
                // far from its end
                if is_first && order(entry.key, key.token, key.bytes) == Ordering::Greater {
                    return Ok(None);
                }
                let rest = bytes.get(entry.length..).unwrap_or_default();
                at += (entry.length + skip_to(rest, key.bytes)) as u64;
            }
            Found::NeedMore(_) if bytes.is_empty() => {
                (start, page) = files.index_page(sstable, IndexFile::Keys, at, true).await?;
            }
            // it goes on on the next pages
            Found::NeedMore(needed) => {
                let mut entry = bytes.to_vec();
                while entry.len() < needed {
                    let next = at + entry.len() as u64;
                    // one of very many blocks is kept with its key, and its pages would throw out
                    // those of others
                    let keep = needed - entry.len() <= sstable.table.index_page_bytes();
                    let (from, more) =
                        files.index_page(sstable, IndexFile::Keys, next, keep).await?;
                    let skip = (next - from) as usize;
                    entry.extend_from_slice(more.get(skip..).unwrap_or_default());
                }
                (start, page) = (at, Rc::new(entry));
            }
        }
    }
    Ok(None)
}

async fn locate_in_trie(
    files: &Files,
    sstable: &SSTable,
    partitions: &Partitions,
    key: KeyRef<'_>,
) -> Result<Option<Located>, StorageError> {
    let pages = TriePages { files, sstable, file: IndexFile::Keys, keep: true };
    let sought = key_bytes(key.token, key.bytes);
    let found = TrieCursor::new(partitions.root).exact(&pages, &sought).await?;
    let Some((flags, payload)) = found else { return Ok(None) };
    let place = PartitionPlace::parse(flags, &payload, Some(key_hash_byte(key.bytes)));
    let Some(place) = place.map_err(|e| keys_corrupt(sstable, e))? else { return Ok(None) };
    let (found, located) = KeyReader::new(true).read(files, sstable, place).await?;
    Ok((found == key.bytes).then_some(located))
}

/// The index of keys of a BTI table contradicts itself.
pub(crate) fn keys_corrupt(sstable: &SSTable, error: sstable::Error) -> StorageError {
    StorageError::corrupt(sstable.path(&Component::Partitions), error)
}

/// Reads the keys that the trie of a BTI table has only the beginnings of, where it points to.
pub(crate) struct KeyReader {
    /// The chunk of the data that was last looked at, and where it starts.
    chunk: (u64, Rc<Vec<u8>>),
    keeping: Keeping,
}

impl KeyReader {
    /// `keep` says whether chunks and pages are worth caching.
    pub fn new(keep: bool) -> Self {
        let keeping = if keep { Keeping::Cache } else { Keeping::nowhere() };
        Self { chunk: (0, Rc::default()), keeping }
    }

    /// The key at a place, and all that the index has of its partition.
    pub async fn read(
        &mut self,
        files: &Files,
        sstable: &SSTable,
        place: PartitionPlace,
    ) -> Result<(Vec<u8>, Located), StorageError> {
        match place {
            PartitionPlace::Data(position) => {
                let length = self.data(files, sstable, position, 2).await?;
                let length = length.first_chunk::<2>().copied().map_or(0, u16::from_be_bytes);
                let key = self.data(files, sstable, position + 2, length.into()).await?;
                Ok((key, Located { position, end: None, rows: RowsIndex::None }))
            }
            PartitionPlace::Rows(position) => self.entry(files, sstable, position).await,
        }
    }

    /// So many bytes of the uncompressed data.
    async fn data(
        &mut self,
        files: &Files,
        sstable: &SSTable,
        mut position: u64,
        length: usize,
    ) -> Result<Vec<u8>, StorageError> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let (start, chunk) = &self.chunk;
            let at = position.checked_sub(*start).and_then(|at| chunk.get(at as usize..));
            let Some(rest) = at.filter(|rest| !rest.is_empty()) else {
                let next = files.chunk(sstable, position, &self.keeping).await?;
                if position - next.0 >= next.1.len() as u64 {
                    let what = format!("it ends before byte {position}, where the index has a key");
                    return Err(StorageError::corrupt(sstable.path(&Component::Data), what));
                }
                self.chunk = next;
                continue;
            };
            let taken = rest.get(..length - bytes.len()).unwrap_or(rest);
            bytes.extend_from_slice(taken);
            position += taken.len() as u64;
        }
        Ok(bytes)
    }

    async fn entry(
        &self,
        files: &Files,
        sstable: &SSTable,
        position: u64,
    ) -> Result<(Vec<u8>, Located), StorageError> {
        let (component, length) = IndexFile::Rows.of(sstable);
        let mut bytes = Vec::new();
        let mut next = position;
        loop {
            let keep = self.keeping.is_cache();
            let (start, page) = files.index_page(sstable, IndexFile::Rows, next, keep).await?;
            bytes.extend_from_slice(page.get((next - start) as usize..).unwrap_or_default());
            next = start + page.len() as u64;
            match RowsEntry::parse(&bytes, position) {
                Ok(entry) => {
                    let rows = RowsIndex::Trie(entry.root);
                    return Ok((
                        entry.key.to_vec(),
                        Located { position: entry.position, end: None, rows },
                    ));
                }
                // it may go on on the next page
                Err(_) if next < length && bytes.len() < ENTRY_BYTES_MAX => {}
                Err(error) => return Err(StorageError::corrupt(sstable.path(&component), error)),
            }
        }
    }
}
