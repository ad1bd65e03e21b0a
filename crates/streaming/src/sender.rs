//! Sending files: whole SSTables and parts of them, over a connection of their own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use env::sync::Notify;
use env::{Env, File, Pipe};
use messaging::StreamSocket;
use schema::TableId;
use sstable::table::Storage;
use storage::shards::Remote;
use storage::{Chosen, ComponentReader, Engine, SentComponent};

use crate::chooser::{CHECKSUM_BYTES, Numbered, OutFile, chunks};
use crate::host::Host;
use crate::ledger::{Ledger, throttle};
use crate::limits::Load;
use crate::progress::{Direction, FileKey};
use crate::session::SessionId;
use crate::wire::{BLOCK_BYTES, Compression, FileHeader, Manifest, Message, Section, put_block};

/// Bytes that are read from a file, paid for and sent at once.
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
        let pipe = Pipe::new(&self.env, PIECE_BYTES);
        let pipe = pipe.map_err(|error| format!("cannot send files: {error}"))?;
        for ((table, sequence), file) in files {
            let Chosen { sstable, sections, partitions } = &file.chosen;
            let header = FileHeader {
                table,
                sender: local,
                plan: id.plan,
                is_of_follower,
                session: id.session,
                sequence,
                repaired_at: sstable.repair_status().repaired_at(),
                pending_repair: file.pending_repair,
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
            let (socket, pipe) = (&socket, &pipe);
            let mut sending = Sending { of: self, socket, pipe, id, table, sequence, is_whole };
            match file.is_whole {
                true => sending.whole(&file, header).await?,
                false => sending.sections(&file, header).await?,
            }
            self.ledger.send(0, move |first| first.sent(id, (table, sequence)));
        }
        Ok(socket)
    }
}

/// Takes a chunk of a file into a pipe; none where its file system does not do that.
async fn fill(pipe: &Pipe, file: &File, at: u64, bytes: u64) -> Result<Option<u64>, String> {
    match pipe.fill(file, at, bytes as usize).await {
        Ok(0) => Err(format!("{} ends before all of it is sent", file.path().display())),
        Ok(taken) => Ok(Some(taken as u64)),
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", file.path().display())),
    }
}

/// A connection that files are sent over.
struct Sending<'a> {
    of: &'a Sender,
    socket: &'a StreamSocket,
    /// For files that are sent as they are; none in a simulated world.
    pipe: &'a Option<Pipe>,
    id: SessionId,
    table: TableId,
    sequence: i32,
    is_whole: bool,
}

impl Sending<'_> {
    /// Sends bytes that count for so many of the file.
    async fn write(&self, bytes: &[u8], count: u64) -> Result<(), String> {
        self.pay(bytes.len() as u64).await;
        let written = self.socket.write_all(bytes).await;
        written.map_err(|error| format!("cannot send a file: {error}"))?;
        self.went_on(count).await;
        Ok(())
    }

    /// Waits until so many bytes may be sent.
    async fn pay(&self, bytes: u64) {
        let (is_whole, is_far) = (self.is_whole, self.of.host.is_far(self.id.peer));
        throttle(&self.of.ledger, Load { bytes, is_whole, is_far }).await;
    }

    /// So many bytes of the file went.
    async fn went_on(&self, count: u64) {
        let id = self.id;
        let key = FileKey { direction: Direction::Out, table: self.table, sequence: self.sequence };
        self.of.ledger.send(0, move |first| first.went_on(id, key, count));
        self.of.env.maybe_yield().await;
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
        for component in &components {
            self.component(component).await?;
        }
        Ok(())
    }

    /// Sends a component as it is: without a copy through this process where nothing encrypts it.
    async fn component(&self, component: &SentComponent) -> Result<(), String> {
        let plain = self.socket.plain().zip(component.file()).zip(self.pipe.as_ref());
        let (mut at, mut bytes) = (0, Vec::new());
        while at < component.length {
            let piece = (component.length - at).min(PIECE_BYTES as u64);
            if let Some(((socket, file), pipe)) = plain
                && let Some(taken) = fill(pipe, file, at, piece).await?
            {
                self.pay(taken).await;
                let given = pipe.drain(socket).await;
                given.map_err(|error| format!("cannot send a file: {error}"))?;
                self.went_on(taken).await;
                at += taken;
                continue;
            }
            bytes.clear();
            let read = component.read(at, piece as usize, &mut bytes).await;
            read.map_err(|error| error.to_string())?;
            self.write(&bytes, piece).await?;
            at += piece;
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
            self.write(&bytes, end - start).await?;
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
                    self.write(&out, block.len() as u64).await?;
                }
                at = end;
            }
        }
        Ok(())
    }
}
