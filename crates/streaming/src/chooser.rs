//! What of this node's SSTables goes to another node.

use std::collections::BTreeMap;
use std::rc::Rc;

use schema::TableId;
use sstable::table::Storage;
use storage::{Chosen, Engine};
use types::{TokenRange, Uuid};

use crate::host::Host;
use crate::only::Only;
use crate::wire::Request;

/// A file that is sent.
#[derive(Clone, Debug)]
pub(crate) struct OutFile {
    pub chosen: Chosen,
    /// Are all its components sent as they are?
    pub is_whole: bool,
    /// Files that it counts for.
    pub files: u32,
    /// Its bytes.
    pub bytes: u64,
    /// The incremental repair that it is sent in.
    pub pending_repair: Option<Uuid>,
}

/// Files, by session, table and sequence number.
pub(crate) type Numbered = Vec<((TableId, i32), OutFile)>;

/// Chooses it; on the first shard.
pub(crate) struct Chooser {
    engine: Rc<Engine>,
    host: Rc<dyn Host>,
    /// Are SSTables sent whole where all of them is asked for?
    whole_files: bool,
}

impl Chooser {
    pub fn new(engine: &Rc<Engine>, host: &Rc<dyn Host>, whole_files: bool) -> Self {
        Self { engine: Rc::clone(engine), host: Rc::clone(host), whole_files }
    }

    /// Chooses what is asked for.
    ///
    /// # Errors
    /// If it is not this node's to give, or cannot be read.
    pub async fn choose(
        &self,
        requests: &[Request],
        only: Only,
    ) -> Result<Vec<(TableId, Vec<OutFile>)>, String> {
        // of a table that several requests name each partition is sent once
        let mut wanted: BTreeMap<TableId, Vec<TokenRange>> = BTreeMap::new();
        for request in requests {
            let asked = request.ranges.iter().chain(&request.transient_ranges).copied();
            let asked = TokenRange::normalize(asked);
            self.check_owned(&request.keyspace, &asked)?;
            for table in self.tables(request)? {
                wanted.entry(table).or_default().extend(&asked);
            }
        }
        let mut files = Vec::new();
        for (table, ranges) in wanted {
            let chosen = self.choose_of(table, &TokenRange::normalize(ranges), only).await;
            files.push((table, chosen.map_err(|error| error.to_string())?));
        }
        Ok(files)
    }

    fn check_owned(&self, keyspace: &str, asked: &[TokenRange]) -> Result<(), String> {
        let owned = self.host.owned(keyspace);
        let owned = owned.ok_or_else(|| format!("unknown keyspace {keyspace}"))?;
        let is_within = |range: &&TokenRange| {
            let holds = |owned: &TokenRange| owned.left <= range.left && range.end() <= owned.end();
            owned.iter().any(holds)
        };
        match asked.iter().find(|range| !is_within(range)) {
            None => Ok(()),
            Some(range) => Err(format!(
                "received a stream request for range ({},{}] of keyspace {keyspace}, which is \
                 outside of the ranges that this node owns",
                range.left, range.right
            )),
        }
    }

    /// The tables that a request names.
    fn tables(&self, request: &Request) -> Result<Vec<TableId>, String> {
        let schema = self.engine.schema();
        let keyspace = schema.keyspaces().get(request.keyspace.as_str());
        let unknown = || format!("unknown keyspace {}", request.keyspace);
        let keyspace = keyspace.ok_or_else(unknown)?;
        if request.tables.is_empty() {
            return Ok(keyspace.tables.values().map(|table| table.id).collect());
        }
        let named = |name: &String| {
            let table = keyspace.tables.get(name.as_str()).map(|table| table.id);
            table.ok_or_else(|| format!("unknown table {}.{name}", request.keyspace))
        };
        request.tables.iter().map(named).collect()
    }

    /// Chooses the SSTables with what this node has of a table in ranges, memtables included.
    ///
    /// # Errors
    /// If they cannot be written or read.
    pub async fn choose_of(
        &self,
        table: TableId,
        ranges: &[TokenRange],
        only: Only,
    ) -> Result<Vec<OutFile>, storage::StorageError> {
        if let Some(node) = self.engine.node() {
            node.flush(table).await?;
        }
        // A Cassandra refuses an SSTable that comes whole without the components of an index that
        // is attached to it; of sections it makes them itself. This node has none to send.
        let schema = self.engine.schema();
        let is_indexed = schema.table_by_id(&table).is_some_and(|table| table.has_custom_index());
        let sends_whole = self.whole_files && !is_indexed;
        let mut files = Vec::new();
        for chosen in self.engine.sstables_in(table, ranges, only.state()).await? {
            let is_whole = sends_whole && chosen.is_whole();
            let (count, bytes) = match is_whole {
                true => {
                    let sent = self.engine.sent_components(&chosen.sstable).await?;
                    let bytes = sent.iter().map(|component| component.length).sum();
                    (sent.len() as u32, bytes)
                }
                false => (1, stored_bytes(&chosen)?),
            };
            let pending_repair = only.pending_repair;
            files.push(OutFile { chosen, is_whole, files: count, bytes, pending_repair });
        }
        Ok(files)
    }
}

/// Bytes that go over the wire of sections, but for what LZ4 saves.
fn stored_bytes(chosen: &Chosen) -> Result<u64, storage::StorageError> {
    match &chosen.sstable.table.storage {
        Storage::Compressed(..) => {
            Ok(chunks(chosen)?.iter().map(|chunk| u64::from(chunk.1) + CHECKSUM_BYTES).sum())
        }
        Storage::Plain(_) => Ok(chosen.sections.iter().map(|(from, to)| to - from).sum()),
    }
}

/// Bytes of the checksum behind a chunk.
pub(crate) const CHECKSUM_BYTES: u64 = 4;

/// The chunks that sections touch, in the file's order: where each starts, and its bytes without
/// the checksum.
pub(crate) fn chunks(chosen: &Chosen) -> Result<Vec<(u64, u32)>, storage::StorageError> {
    let table = &chosen.sstable.table;
    let path = chosen.sstable.path(&sstable::descriptor::Component::Data);
    let mut chunks: Vec<(u64, u32)> = Vec::new();
    for (from, to) in &chosen.sections {
        let mut at = *from;
        while at < *to {
            let chunk = table.chunk_at(at);
            let chunk = chunk.map_err(|error| storage::StorageError::corrupt(&path, error))?;
            if chunks.last().is_none_or(|last| last.0 < chunk.offset) {
                chunks.push((chunk.offset, chunk.length as u32 - CHECKSUM_BYTES as u32));
            }
            at = chunk.start + chunk.uncompressed as u64;
        }
    }
    Ok(chunks)
}
