//! What this node sends: the choice, and the bytes.

use std::collections::BTreeMap;
use std::rc::Rc;

use schema::TableId;
use sstable::table::Storage;
use storage::{Chosen, ComponentReader};
use types::TokenRange;

use crate::limits::Load;
use crate::progress::{Direction, FileKey};
use crate::session::SessionId;
use crate::streaming::Streaming;
use crate::wire::{
    BLOCK_BYTES, Compression, FileHeader, Manifest, Message, Request, Section, put_block,
};

/// Bytes that are read from a file and sent at once.
const PIECE_BYTES: usize = 256 << 10;

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
}

/// Files, by session, table and sequence number.
pub(crate) type Numbered = Vec<((TableId, i32), OutFile)>;

impl Streaming {
    /// Chooses what is asked for.
    ///
    /// # Errors
    /// If it is not this node's to give, or cannot be read.
    pub(crate) async fn choose(
        self: &Rc<Self>,
        requests: &[Request],
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
            let chosen = self.choose_of(table, &TokenRange::normalize(ranges)).await;
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
    pub(crate) async fn choose_of(
        self: &Rc<Self>,
        table: TableId,
        ranges: &[TokenRange],
    ) -> Result<Vec<OutFile>, storage::StorageError> {
        if let Some(node) = self.engine.node() {
            node.flush(table).await?;
        }
        let mut files = Vec::new();
        for chosen in self.engine.sstables_in(table, ranges).await? {
            let is_whole = self.settings.whole_files && chosen.is_whole();
            let (count, bytes) = match is_whole {
                true => {
                    let sent = self.engine.sent_components(&chosen.sstable).await?;
                    let bytes = sent.iter().map(|component| component.length).sum();
                    (sent.len() as u32, bytes)
                }
                false => (1, stored_bytes(&chosen)?),
            };
            files.push(OutFile { chosen, is_whole, files: count, bytes });
        }
        Ok(files)
    }

    /// Sends files to the other node of a session, over a connection of its own.
    ///
    /// # Errors
    /// Why not all were sent.
    pub(crate) async fn send_all(
        self: &Rc<Self>,
        id: SessionId,
        is_of_follower: bool,
        files: Numbered,
    ) -> Result<(), String> {
        let messenger = self.host.messenger().ok_or("this node is in no ring")?;
        let socket = messenger.open_stream(id.peer).await;
        let socket = socket.map_err(|why| format!("cannot connect to send files: {why}"))?;
        let local = messenger.settings().local;
        for ((table, sequence), file) in files {
            let Chosen { sstable, sections, partitions } = &file.chosen;
            let stats = &sstable.table.statistics.stats;
            let header = FileHeader {
                table,
                sender: local,
                plan: id.plan,
                is_of_follower,
                session: id.session,
                sequence,
                repaired_at: stats.repaired_at,
                pending_repair: None,
                version: sstable.table.descriptor.version,
                format: sstable.table.descriptor.format,
                estimated_keys: *partitions,
                sections: sections
                    .iter()
                    .map(|(from, to)| Section { from: *from, to: *to })
                    .collect(),
                compression: None,
                level: 0,
                rows: sstable.table.statistics.header.clone(),
                whole: None,
            };
            let is_whole = file.is_whole;
            let mut sending = Sending { of: self, socket: &socket, id, table, sequence, is_whole };
            match file.is_whole {
                true => sending.whole(&file, header).await?,
                false => sending.sections(&file, header).await?,
            }
        }
        // the other side closes it when the session ends
        let mut byte = [0];
        let _ = socket.read(&mut byte).await;
        Ok(())
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
const CHECKSUM_BYTES: u64 = 4;

/// The chunks that sections touch, in the file's order: where each starts, and its bytes without
/// the checksum.
fn chunks(chosen: &Chosen) -> Result<Vec<(u64, u32)>, storage::StorageError> {
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

/// A connection that files are sent over.
struct Sending<'a> {
    of: &'a Rc<Streaming>,
    socket: &'a messaging::StreamSocket,
    id: SessionId,
    table: TableId,
    sequence: i32,
    is_whole: bool,
}

impl Sending<'_> {
    async fn write(&self, bytes: &[u8]) -> Result<(), String> {
        let (is_whole, is_far) = (self.is_whole, self.of.host.is_far(self.id.peer));
        self.of.throttle(Load { bytes: bytes.len() as u64, is_whole, is_far }).await;
        let written = self.socket.write_all(bytes).await;
        written.map_err(|error| format!("cannot send a file: {error}"))?;
        let (id, count) = (self.id, bytes.len() as u64);
        let key = FileKey { direction: Direction::Out, table: self.table, sequence: self.sequence };
        self.of.others.send(0, move |first| first.went_on(id, key, count));
        self.of.env.maybe_yield().await;
        Ok(())
    }

    async fn header(&self, header: FileHeader) -> Result<(), String> {
        let mut bytes = Vec::new();
        let written = Message::Stream(Box::new(header)).write(&mut bytes);
        written.map_err(|error| error.to_string())?;
        let sent = self.socket.write_all(&bytes).await;
        sent.map_err(|error| format!("cannot send a file: {error}"))
    }

    /// Sends all components as they are.
    async fn whole(&mut self, file: &OutFile, mut header: FileHeader) -> Result<(), String> {
        let sstable = &file.chosen.sstable;
        let components = self.of.engine.sent_components(sstable).await;
        let components = components.map_err(|error| error.to_string())?;
        let named = components.iter().map(|it| (it.component.to_string(), it.length));
        header.level = i32::try_from(sstable.level()).unwrap_or_default();
        header.whole = Some(Manifest {
            components: named.collect(),
            first_key: sstable.table.index.keys().0.to_vec(),
        });
        self.header(header).await?;
        let mut bytes = Vec::with_capacity(PIECE_BYTES);
        for component in &components {
            let mut at = 0;
            while at < component.length {
                let piece = (component.length - at).min(PIECE_BYTES as u64) as usize;
                bytes.clear();
                let read = component.read(at, piece, &mut bytes).await;
                read.map_err(|error| error.to_string())?;
                self.write(&bytes).await?;
                at += piece as u64;
            }
        }
        Ok(())
    }

    /// Sends parts of the data.
    async fn sections(&mut self, file: &OutFile, mut header: FileHeader) -> Result<(), String> {
        let sstable = &file.chosen.sstable;
        let data = self.of.engine.sent_data(sstable).await;
        let data = data.map_err(|error| error.to_string())?;
        match &sstable.table.storage {
            Storage::Compressed(info, _) => {
                let chunks = chunks(&file.chosen).map_err(|error| error.to_string())?;
                header.compression = Some(Compression {
                    chunks: chunks.clone(),
                    class: info.class.clone(),
                    options: info.options.clone(),
                    chunk_length: info.chunk_length,
                    max_compressed_length: info.max_compressed_length,
                });
                self.header(header).await?;
                self.chunks(&data, &chunks).await
            }
            Storage::Plain(_) => {
                self.header(header).await?;
                self.blocks(&data, file).await
            }
        }
    }

    async fn chunks(
        &mut self,
        data: &ComponentReader,
        chunks: &[(u64, u32)],
    ) -> Result<(), String> {
        let mut bytes = Vec::with_capacity(PIECE_BYTES);
        let mut rest = chunks;
        while let Some((start, _)) = rest.first() {
            // chunks that lie behind each other are read at once
            let mut end = *start;
            let mut taken = 0;
            for (offset, length) in rest {
                let next = offset + u64::from(*length) + CHECKSUM_BYTES;
                if *offset != end || (taken > 0 && next - start > PIECE_BYTES as u64) {
                    break;
                }
                end = next;
                taken += 1;
            }
            bytes.clear();
            let read = data.read(*start, (end - start) as usize, &mut bytes).await;
            read.map_err(|error| error.to_string())?;
            self.write(&bytes).await?;
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    async fn blocks(&mut self, data: &ComponentReader, file: &OutFile) -> Result<(), String> {
        let table = &file.chosen.sstable.table;
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        for (from, to) in &file.chosen.sections {
            let mut at = *from;
            while at < *to {
                let chunk = table.chunk_at(at).map_err(|error| error.to_string())?;
                bytes.clear();
                let read = data.read(chunk.offset, chunk.length, &mut bytes).await;
                read.map_err(|error| error.to_string())?;
                let plain = table.decode_chunk(chunk, &bytes).map_err(|error| error.to_string())?;
                let end = (chunk.start + chunk.uncompressed as u64).min(*to);
                let part = plain.get((at - chunk.start) as usize..(end - chunk.start) as usize);
                for block in part.unwrap_or_default().chunks(BLOCK_BYTES) {
                    out.clear();
                    put_block(block, &mut out);
                    self.write(&out).await?;
                }
                at = end;
            }
        }
        Ok(())
    }
}
