//! The task that writes: all that waits, host by host, then, if it is time, a sync of what was
//! written.
//!
//! A file whose write or sync failed gets no more; who waits for what was to be in it is told, and
//! the next hint begins another.

use std::io;
use std::rc::Rc;

use crc32fast::Hasher;
use env::{Class, File, Instant, OpenOptions};
use metrics::Level;
use sstable::compressor::Codec;
use types::Uuid;

use crate::block;
use crate::descriptor::Descriptor;
use crate::file::{CRC32, HintFile};
use crate::record::{self, Found};
use crate::store::{Hints, State, SyncMode};
use crate::ticket::HintError;
use crate::writer::Writer;

/// Bytes of records in a block, but for one that has more: what is sent again where one of a block
/// was not acknowledged.
const BLOCK_BYTES: usize = 64 << 10;
/// Blocks of a slow compressor that a turn of the loop may have to wait for.
const SLOW_BYTES: usize = 32 << 10;

impl Hints {
    pub(crate) async fn write(self: Rc<Self>) {
        loop {
            self.wait_for_work().await;
            if let (SyncMode::Group { window }, false) = (self.options.mode, self.is_closing.get())
            {
                self.env.sleep(window).await;
            }
            let hosts: Vec<(Uuid, Vec<u8>, u64)> = {
                let mut state = self.state.borrow_mut();
                state.taken = state.added;
                let waiting = state.hosts.iter_mut().filter(|(_, host)| !host.waiting.is_empty());
                let take = |(id, host): (&Uuid, &mut crate::store::Host)| {
                    host.is_busy = true;
                    (*id, std::mem::take(&mut host.waiting), host.epoch)
                };
                waiting.map(take).collect()
            };
            for (host, records, epoch) in hosts {
                self.write_host(host, records, epoch).await;
            }
            if self.is_sync_due() {
                self.sync().await;
            }
            if self.is_closing.get() && self.is_idle() {
                self.close_files().await;
                self.is_closed.set(true);
                return self.closed.notify_all();
            }
        }
    }

    fn is_idle(&self) -> bool {
        let state = self.state.borrow();
        state.taken == state.added && state.unsynced.is_empty() && state.waiters.is_empty()
    }

    async fn wait_for_work(&self) {
        loop {
            if self.is_closing.get() || self.state.borrow().taken < self.state.borrow().added {
                return;
            }
            match self.next_sync() {
                Some(at) if self.env.now() >= at => return,
                Some(at) => drop(self.env.timeout_at(at, self.work.notified()).await),
                None => self.work.notified().await,
            }
        }
    }

    /// When the next sync is due; none if all is synced.
    fn next_sync(&self) -> Option<Instant> {
        let state = self.state.borrow();
        let since = state.unsynced_since?;
        match self.options.mode {
            SyncMode::Periodic { period, .. } if state.waiters.is_empty() => Some(since + period),
            _ => Some(since),
        }
    }

    fn is_sync_due(&self) -> bool {
        self.is_closing.get() || self.next_sync().is_some_and(|at| self.env.now() >= at)
    }

    async fn write_host(&self, host: Uuid, records: Vec<u8>, epoch: u64) {
        let bytes = records.len();
        let writer = self.state.borrow_mut().hosts.get_mut(&host).and_then(|of| of.writer.take());
        let written = match writer {
            Some(writer) => self.append(writer, records).await,
            None => match self.begin(host, epoch).await {
                Ok(writer) => self.append(writer, records).await,
                Err(error) => Err(error),
            },
        };
        if let Some(gone) = self.wrote(host, bytes, epoch, written) {
            let _ = self.remove(&gone).await;
        }
    }

    /// What was written, or not. A file is to go if all hints were thrown away meanwhile.
    fn wrote(
        &self,
        host: Uuid,
        bytes: usize,
        epoch: u64,
        written: io::Result<Writer>,
    ) -> Option<Rc<HintFile>> {
        let mut state = self.state.borrow_mut();
        state.waiting_bytes = state.waiting_bytes.saturating_sub(bytes);
        let of = state.hosts.get_mut(&host)?;
        of.is_busy = false;
        let writer = match written {
            Ok(writer) if of.epoch == epoch => writer,
            Ok(writer) => return Some(writer.data),
            Err(error) => {
                let upto = state.taken;
                self.fail(&mut state, Some(host), upto, &error);
                return None;
            }
        };
        let unsynced = (Rc::clone(&writer.data), writer.file.clone());
        match writer.data.len() >= self.options.file_bytes_max {
            true => state.full.push(writer),
            false => of.writer = Some(writer),
        }
        if !state.unsynced.iter().any(|(known, _)| Rc::ptr_eq(known, &unsynced.0)) {
            state.unsynced.push(unsynced);
        }
        None
    }

    /// A new file of a host.
    async fn begin(&self, host: Uuid, epoch: u64) -> io::Result<Writer> {
        let now = self.env.unix_micros() / 1000;
        let timestamp = {
            let mut state = self.state.borrow_mut();
            let of = state.hosts.entry(host).or_default();
            of.timestamp = now.max(of.timestamp + 1);
            of.timestamp
        };
        let compression = self.options.compression.clone();
        let codec = compression.as_ref().map(|compression| compression.codec());
        let descriptor = Descriptor { host, timestamp, compression };
        let mut header = Vec::new();
        descriptor.write(&mut header);
        let start = header.len() as u64;
        let data = Rc::new(HintFile::new(&self.options.directory, descriptor, start, start));
        let directory = self.env.open_dir(&self.options.directory).await?;
        let file = File::open(&self.env, data.path(), OpenOptions::CREATE_NEW).await?;
        let file = file.with_class(Class::CommitLog);
        let mut crc = Hasher::new();
        crc.update(&header);
        file.write_all_at(header, 0).await.0?;
        let mut state = self.state.borrow_mut();
        state.new_names.get_or_insert(directory);
        let of = state.hosts.entry(host).or_default();
        if of.epoch == epoch {
            of.files.push_back(Rc::clone(&data));
        }
        Ok(Writer { data, file, crc, codec })
    }

    async fn append(&self, mut writer: Writer, records: Vec<u8>) -> io::Result<Writer> {
        let bytes = match writer.codec.take() {
            None => records,
            Some(codec) => {
                let (packed, codec) = self.pack(records, codec).await?;
                writer.codec = Some(codec);
                packed
            }
        };
        let at = writer.data.len();
        let (result, bytes) = writer.file.write_all_at(bytes, at).await;
        result?;
        writer.crc.update(&bytes);
        writer.data.len.set(at + bytes.len() as u64);
        Ok(writer)
    }

    async fn pack(&self, records: Vec<u8>, mut codec: Codec) -> io::Result<(Vec<u8>, Codec)> {
        let is_slow = codec.compressor().is_slow() && records.len() > SLOW_BYTES;
        let pack = move || {
            let mut out = Vec::new();
            let packed = blocks(&records)
                .into_iter()
                .try_for_each(|block| block::append(block, &mut codec, &mut out));
            packed.map(|()| (out, codec))
        };
        let packed = if is_slow { self.env.helper(pack).await } else { pack() };
        packed.map_err(io::Error::other)
    }

    async fn sync(&self) {
        let (files, new_names, upto) = {
            let mut state = self.state.borrow_mut();
            let since = (state.added > state.taken).then(|| self.env.now());
            state.unsynced_since = since;
            let new_names = state.new_names.take();
            (std::mem::take(&mut state.unsynced), new_names, state.taken)
        };
        for (data, file) in files {
            if let Err(error) = file.sync_data().await {
                let host = data.descriptor.host;
                let mut state = self.state.borrow_mut();
                if let Some(of) = state.hosts.get_mut(&host) {
                    of.writer.take_if(|writer| Rc::ptr_eq(&writer.data, &data));
                }
                self.fail(&mut state, Some(host), upto, &error);
            }
        }
        if let Some(directory) = new_names
            && !self.env.planted("hints_directory_not_synced")
            && let Err(error) = directory.sync().await
        {
            self.fail(&mut self.state.borrow_mut(), None, upto, &error);
        }
        let full = {
            let mut state = self.state.borrow_mut();
            while let Some(waiter) = state.waiters.pop_front_if(|waiter| waiter.upto <= upto) {
                let _ = waiter.tell.send(Ok(()));
            }
            std::mem::take(&mut state.full)
        };
        for writer in full {
            self.close_file(writer).await;
        }
    }

    /// What a host's hints wait for, or all, does not come.
    fn fail(&self, state: &mut State, host: Option<Uuid>, upto: u64, error: &io::Error) {
        let why = error.to_string();
        (self.tell)(
            Level::Error,
            &format!(
                "cannot write hints, did not acknowledge them; check the disk of hints_directory: \
             {why}"
            ),
        );
        let error = HintError::Failed(why.into());
        let waiters = std::mem::take(&mut state.waiters);
        for waiter in waiters {
            let is_lost = waiter.upto <= upto && host.is_none_or(|host| host == waiter.host);
            match is_lost {
                true => drop(waiter.tell.send(Err(error.clone()))),
                false => state.waiters.push_back(waiter),
            }
        }
    }

    /// A file gets no more: its checksum goes beside it, for Cassandra.
    async fn close_file(&self, writer: Writer) {
        writer.data.is_closed.set(true);
        let crc = format!("{:x}", writer.crc.finalize()).into_bytes();
        let path = writer.data.beside(CRC32);
        let options = OpenOptions { truncate: true, ..OpenOptions::READ_WRITE };
        let written = match File::open(&self.env, path, options).await {
            Ok(file) => file.write_all_at(crc, 0).await.0,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            let path = writer.data.path();
            (self.tell)(
                Level::Warn,
                &format!("cannot write the checksum file of hints file {path:?}: {error}"),
            );
        }
    }

    async fn close_files(&self) {
        let writers: Vec<Writer> = {
            let mut state = self.state.borrow_mut();
            state.hosts.values_mut().filter_map(|host| host.writer.take()).collect()
        };
        for writer in writers {
            self.close_file(writer).await;
        }
    }
}

/// Records cut into blocks.
fn blocks(records: &[u8]) -> Vec<&[u8]> {
    let (mut blocks, mut start, mut end) = (Vec::new(), 0, 0);
    while let Found::Whole(_, next) = record::at(records, end) {
        if next - start > BLOCK_BYTES && end > start {
            blocks.extend(records.get(start..end));
            start = end;
        }
        end = next;
    }
    blocks.extend(records.get(start..end).filter(|block| !block.is_empty()));
    blocks
}
