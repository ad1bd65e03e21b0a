//! Sending files: whole SSTables and parts of them, over a connection of their own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use env::Env;
use env::sync::Notify;
use messaging::StreamSocket;
use schema::TableId;
use sstable::table::Storage;
use storage::shards::Remote;
use storage::{Chosen, ComponentReader, Engine};

use crate::chooser::{CHECKSUM_BYTES, Numbered, OutFile, chunks};
use crate::host::Host;
use crate::ledger::{Ledger, throttle};
use crate::limits::Load;
use crate::progress::{Direction, FileKey};
use crate::session::SessionId;
use crate::wire::{BLOCK_BYTES, Compression, FileHeader, Manifest, Message, Section, put_block};

/// Bytes that are read from a file and sent at once.
const PIECE_BYTES: usize = 256 << 10;

/// Sends files, on each shard.
pub(crate) struct Sender {
    env: Env,
    engine: Rc<Engine>,
    host: Rc<dyn Host>,
    ledger: Remote<Ledger>,
    /// Sessions whose files this shard sends, until they are over.
    under_way: RefCell<BTreeMap<SessionId, Rc<Notify>>>,
}

impl Sender {
    pub fn new(engine: &Rc<Engine>, host: &Rc<dyn Host>, ledger: Remote<Ledger>) -> Rc<Self> {
        let (engine, host) = (Rc::clone(engine), Rc::clone(host));
        Rc::new(Self {
            env: engine.env().clone(),
            engine,
            host,
            ledger,
            under_way: RefCell::default(),
        })
    }

    /// A session is over: what is still being sent of it is wanted no more.
    pub fn end(&self, id: SessionId) {
        if let Some(over) = self.under_way.borrow_mut().remove(&id) {
            over.notify_all();
        }
    }

    /// Sends files to the other node of a session, over a connection of its own, which closes when
    /// the session is over.
    ///
    /// # Errors
    /// Why not all were sent.
    pub async fn send_all(
        &self,
        id: SessionId,
        is_of_follower: bool,
        files: Numbered,
    ) -> Result<(), String> {
        let over = Rc::new(Notify::new());
        let before = self.under_way.borrow_mut().insert(id, Rc::clone(&over));
        assert!(before.is_none(), "the files of a session are sent once");
        let mut over = pin!(over.notified());
        let mut sending = pin!(self.send(id, is_of_follower, files));
        let mut sent = None;
        poll_fn(|cx| {
            if over.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if sent.is_none()
                && let Poll::Ready(done) = sending.as_mut().poll(cx)
            {
                match done {
                    Ok(socket) => sent = Some(socket),
                    Err(why) => return Poll::Ready(Err(why)),
                }
            }
            Poll::Pending
        })
        .await
    }

    async fn send(
        &self,
        id: SessionId,
        is_of_follower: bool,
        files: Numbered,
    ) -> Result<StreamSocket, String> {
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
        Ok(socket)
    }
}

/// A connection that files are sent over.
struct Sending<'a> {
    of: &'a Sender,
    socket: &'a StreamSocket,
    id: SessionId,
    table: TableId,
    sequence: i32,
    is_whole: bool,
}

impl Sending<'_> {
    async fn write(&self, bytes: &[u8]) -> Result<(), String> {
        let (is_whole, is_far) = (self.is_whole, self.of.host.is_far(self.id.peer));
        throttle(&self.of.ledger, Load { bytes: bytes.len() as u64, is_whole, is_far }).await;
        let written = self.socket.write_all(bytes).await;
        written.map_err(|error| format!("cannot send a file: {error}"))?;
        let (id, count) = (self.id, bytes.len() as u64);
        let key = FileKey { direction: Direction::Out, table: self.table, sequence: self.sequence };
        self.of.ledger.send(0, move |first| first.went_on(id, key, count));
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
