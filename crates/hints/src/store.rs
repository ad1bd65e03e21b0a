//! The files of hints of all hosts, and what is on its way into them (`HintsService`,
//! `HintsCatalog`, `HintsStore`).
//!
//! Each host has files, the oldest first; the last may be one that is written to. A file of an
//! earlier run is only read. What is added waits in memory, under a bound, for the writing task
//! (`writing.rs`), which takes all that there is at once.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use env::sync::{Notify, OneshotSender, oneshot};
use env::{Class, Directory, Env, File, Instant, OpenOptions};
use metrics::Level;
use types::Uuid;

use crate::descriptor::{Compression, Descriptor, HEADER_BYTES_MAX, HeaderError, Named, VERSION};
use crate::file::{CRC32, HintFile, PROGRESS_BYTES, Progress, SENT};
use crate::reader::Reader;
use crate::record::Hint;
use crate::ticket::{HintError, Ticket};
use crate::writer::Writer;

/// The end of the name of a file that cannot be read, as Cassandra has it.
const ASIDE: &str = ".corrupt.hints";

/// When a hint is acknowledged: as the commit log's records are (`commitlog_sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// At once; files are synced every `period`. Where a sync is overdue by `lag_block`, hints
    /// wait.
    Periodic {
        /// `commitlog_sync_period`.
        period: Duration,
        /// `periodic_commitlog_sync_lag_block`.
        lag_block: Duration,
    },
    /// After a sync, which starts at once.
    Batch,
    /// After a sync, which starts at most `window` after the hint.
    Group {
        /// `commitlog_sync_group_window`.
        window: Duration,
    },
}

/// Settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// `hints_directory`.
    pub directory: PathBuf,
    /// `commitlog_sync`.
    pub mode: SyncMode,
    /// `hints_compression`.
    pub compression: Option<Compression>,
    /// `max_hints_file_size`, in bytes: a file that has as many gets no more.
    pub file_bytes_max: u64,
    /// Bytes that wait to be written at most.
    pub waiting_bytes_max: usize,
}

/// What is kept for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The host.
    pub host: Uuid,
    /// Its files.
    pub files: usize,
    /// Bytes of them, and of what is to be written.
    pub bytes: u64,
    /// When the oldest was begun, in milliseconds since 1970.
    pub oldest: i64,
    /// When the newest was.
    pub newest: i64,
}

/// Who is told, in a sentence, what the operator is to know, and how grave it is.
pub type Tell = Box<dyn Fn(Level, &str)>;

/// Somebody who waits for hints to be durable.
pub(crate) struct Waiter {
    /// Hints that were added up to it.
    pub upto: u64,
    pub host: Uuid,
    pub tell: OneshotSender<Result<(), HintError>>,
}

#[derive(Default)]
pub(crate) struct Host {
    /// The oldest first.
    pub files: VecDeque<Rc<HintFile>>,
    /// Of the last file, if it is written to; the writing task has it while it writes.
    pub writer: Option<Writer>,
    /// Is the writing task at it?
    pub is_busy: bool,
    /// Records to be written.
    pub waiting: Vec<u8>,
    /// The last file's.
    pub timestamp: i64,
    /// Changes when all hints are thrown away.
    pub epoch: u64,
}

impl Host {
    fn bytes(&self) -> u64 {
        self.waiting.len() as u64 + self.files.iter().map(|file| file.len()).sum::<u64>()
    }
}

#[derive(Default)]
pub(crate) struct State {
    pub hosts: BTreeMap<Uuid, Host>,
    /// Hints that were added; that were so when the writing task last took what waits.
    pub added: u64,
    pub taken: u64,
    /// Bytes in memory.
    pub waiting_bytes: usize,
    pub waiters: VecDeque<Waiter>,
    /// Files that are written and not synced.
    pub unsynced: Vec<(Rc<HintFile>, File)>,
    /// Writers of files that are full, to be closed once they are synced.
    pub full: Vec<Writer>,
    /// The directory, open since before the first name in it that is not durable; none if all are.
    pub new_names: Option<Directory>,
    /// Since when something is not synced.
    pub unsynced_since: Option<Instant>,
}

/// The hints that this node keeps.
pub struct Hints {
    pub(crate) env: Env,
    pub(crate) options: Options,
    pub(crate) state: RefCell<State>,
    pub(crate) tell: Tell,
    /// There is something to write, or to sync at once.
    pub(crate) work: Notify,
    pub(crate) is_closing: Cell<bool>,
    pub(crate) closed: Notify,
    pub(crate) is_closed: Cell<bool>,
}

impl std::fmt::Debug for Hints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hints({:?})", self.options.directory)
    }
}

impl Hints {
    /// Opens what there is, and begins to write.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn start(env: &Env, options: Options, tell: Tell) -> io::Result<Rc<Self>> {
        env.create_dir_all(&options.directory).await?;
        let hints = Rc::new(Self {
            env: env.clone(),
            options,
            state: RefCell::default(),
            tell,
            work: Notify::new(),
            is_closing: Cell::default(),
            closed: Notify::new(),
            is_closed: Cell::default(),
        });
        hints.open_files().await?;
        env.spawn(Class::CommitLog, Rc::clone(&hints).write());
        Ok(hints)
    }

    async fn open_files(&self) -> io::Result<()> {
        let entries = self.env.read_dir(&self.options.directory).await?;
        let mut names: Vec<Named> =
            entries.iter().filter_map(|entry| Named::parse(&entry.name)).collect();
        names.sort_unstable();
        for named in &names {
            if let Some(file) = self.open_file(*named).await? {
                let mut state = self.state.borrow_mut();
                let host = state.hosts.entry(named.host).or_default();
                host.timestamp = host.timestamp.max(named.timestamp);
                host.files.push_back(Rc::new(file));
            }
        }
        for entry in entries {
            let whose = entry.name.strip_suffix(SENT).map(|name| format!("{name}.hints"));
            let whose = whose.and_then(|name| Named::parse(&name));
            if whose.is_some_and(|named| !names.contains(&named)) {
                self.env.remove_file(self.options.directory.join(&entry.name)).await?;
            }
        }
        Ok(())
    }

    /// A file of an earlier run; none if it holds nothing or cannot be read.
    async fn open_file(&self, named: Named) -> io::Result<Option<HintFile>> {
        let directory = &self.options.directory;
        let path = directory.join(named.file_name());
        let file = File::open(&self.env, &path, OpenOptions::READ).await?;
        let len = file.len().await?;
        if len == 0 {
            self.env.remove_file(&path).await?;
            return Ok(None);
        }
        if named.version != VERSION {
            (self.tell)(
                Level::Warn,
                &format!(
                    "ignored hints file {path:?}, left it there: this release reads only version \
                 {VERSION}; the Cassandra that wrote it can deliver its hints"
                ),
            );
            return Ok(None);
        }
        let head = usize::try_from(len).unwrap_or(usize::MAX).min(HEADER_BYTES_MAX);
        let (result, bytes) = file.read_exact_at(Vec::new(), 0, head).await;
        result?;
        let (descriptor, start) = match Descriptor::read(&bytes) {
            Ok(read) if read.0.named() == named => read,
            // a crash came before the header was durable, and nobody was promised anything
            Err(error) if error == HeaderError::Truncated || bytes.iter().all(|b| *b == 0) => {
                self.env.remove_file(&path).await?;
                return Ok(None);
            }
            Ok(_) => {
                (self.tell)(
                    Level::Error,
                    &format!(
                        "ignored hints file {path:?}, left it there: its header belongs to another \
                     file; its hints are not delivered"
                    ),
                );
                return Ok(None);
            }
            // that too may be what a crash left
            Err(error @ HeaderError::Checksum) => {
                (self.tell)(
                    Level::Error,
                    &format!(
                        "cannot read hints file {path:?}, renaming it to end in .corrupt.hints: \
                         {error}"
                    ),
                );
                let aside = directory.join(named.with_suffix(ASIDE));
                self.env.rename(&path, aside).await?;
                return Ok(None);
            }
            Err(error) => {
                (self.tell)(
                    Level::Error,
                    &format!(
                        "ignored hints file {path:?}, left it there, its hints are not delivered: \
                     {error}"
                    ),
                );
                return Ok(None);
            }
        };
        let file = HintFile::new(directory, descriptor, start as u64, len);
        file.is_closed.set(self.env.exists(file.beside(CRC32)).await?);
        let saved = self.env.read_file(file.beside(SENT), PROGRESS_BYTES as u64).await;
        if let Some(saved) = saved.ok().and_then(|bytes| Progress::read(&bytes)) {
            file.resume(saved);
        }
        Ok(Some(file))
    }

    /// Keeps a hint for a host. Hints of a host are delivered in the order in which they are added.
    pub fn add(&self, to: Uuid, hint: &Hint<'_>) -> Ticket {
        if self.is_closing.get() {
            return Ticket(Err(HintError::Closed));
        }
        let mut state = self.state.borrow_mut();
        let bytes = hint.record_bytes();
        if state.waiting_bytes + bytes > self.options.waiting_bytes_max {
            return Ticket(Err(HintError::Overloaded(state.waiting_bytes)));
        }
        state.waiting_bytes += bytes;
        state.added += 1;
        if !self.env.planted("hint_dropped") || !state.added.is_multiple_of(7) {
            hint.append(&mut state.hosts.entry(to).or_default().waiting);
        }
        let must_wait = self.must_wait(&state);
        state.unsynced_since.get_or_insert(self.env.turn_now());
        let wait = must_wait.then(|| {
            let (tell, wait) = oneshot();
            let upto = state.added;
            state.waiters.push_back(Waiter { upto, host: to, tell });
            wait
        });
        drop(state);
        self.work.notify_one();
        Ticket(Ok(wait))
    }

    fn must_wait(&self, state: &State) -> bool {
        if self.env.planted("hint_acknowledged_early") {
            return false;
        }
        match self.options.mode {
            SyncMode::Batch | SyncMode::Group { .. } => true,
            SyncMode::Periodic { period, lag_block } => state
                .unsynced_since
                .is_some_and(|since| self.env.turn_now() > since + period + lag_block),
        }
    }

    /// What is kept, by host.
    pub fn kept(&self) -> Vec<Kept> {
        let state = self.state.borrow();
        state.hosts.iter().filter_map(|(host, of)| self.kept_of(*host, of)).collect()
    }

    /// What is kept for a host, if anything is.
    pub fn kept_for(&self, host: Uuid) -> Option<Kept> {
        self.kept_of(host, self.state.borrow().hosts.get(&host)?)
    }

    fn kept_of(&self, host: Uuid, of: &Host) -> Option<Kept> {
        let (files, bytes) = (of.files.len(), of.bytes());
        let timestamp = |file: Option<&Rc<HintFile>>| {
            file.map_or_else(|| self.env.unix_micros() / 1000, |file| file.descriptor.timestamp)
        };
        let (oldest, newest) = (timestamp(of.files.front()), timestamp(of.files.back()));
        (files > 0 || bytes > 0).then_some(Kept { host, files, bytes, oldest, newest })
    }

    /// Hints that were added and are not durable.
    pub fn in_progress(&self) -> usize {
        self.state.borrow().waiters.len()
    }

    /// The oldest file of a host.
    pub fn first(&self, host: Uuid) -> Option<Rc<HintFile>> {
        self.state.borrow().hosts.get(&host)?.files.front().cloned()
    }

    /// Reads a file from where it is delivered to.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn read(&self, file: &Rc<HintFile>) -> io::Result<Reader> {
        let mut at = file.sent();
        if self.env.planted("hints_resumed_late") && at > file.start {
            at = file.len();
        }
        Reader::open(&self.env, file, at).await
    }

    /// Saves how far a file is delivered: after a crash it goes on there.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn save_progress(&self, file: &HintFile) -> io::Result<()> {
        let Some(progress) = file.to_save() else { return Ok(()) };
        if self.env.planted("hints_started_over") {
            return Ok(());
        }
        let saved = File::open(&self.env, file.beside(SENT), OpenOptions::READ_WRITE).await?;
        saved.write_all_at(progress.to_bytes(), 0).await.0
    }

    /// Removes a file if all that is in it is delivered. False if there is more, which may have
    /// come meanwhile.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn finish(&self, file: &Rc<HintFile>) -> io::Result<bool> {
        {
            let mut state = self.state.borrow_mut();
            let Some(host) = state.hosts.get_mut(&file.descriptor.host) else { return Ok(true) };
            let is_last = host.files.back().is_some_and(|last| Rc::ptr_eq(last, file));
            if file.sent() < file.len() || (is_last && host.is_busy) {
                return Ok(false);
            }
            host.writer.take_if(|writer| Rc::ptr_eq(&writer.data, file));
            host.files.retain(|known| !Rc::ptr_eq(known, file));
        }
        self.remove(file).await?;
        Ok(true)
    }

    pub(crate) async fn remove(&self, file: &HintFile) -> io::Result<()> {
        let gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        };
        gone(self.env.remove_file(file.path()).await)?;
        gone(self.env.remove_file(file.beside(CRC32)).await)?;
        gone(self.env.remove_file(file.beside(SENT)).await)
    }

    /// Puts a file aside that cannot be read: its name ends in `.corrupt.hints` from now on, as
    /// Cassandra has it.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn put_aside(&self, file: &Rc<HintFile>, why: &str) -> io::Result<()> {
        if let Some(host) = self.state.borrow_mut().hosts.get_mut(&file.descriptor.host) {
            host.writer.take_if(|writer| Rc::ptr_eq(&writer.data, file));
            host.files.retain(|known| !Rc::ptr_eq(known, file));
        }
        let path = file.path();
        (self.tell)(
            Level::Error,
            &format!(
                "cannot read hints file {path:?}, renaming it to end in .corrupt.hints: {why}"
            ),
        );
        match self.env.rename(path, file.beside(ASIDE)).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            renamed => renamed,
        }
    }

    /// Throws all hints away, or those of a host. Says how many files went.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn truncate(&self, of: Option<Uuid>) -> io::Result<usize> {
        let mut gone = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            let mut bytes = 0;
            for (host, kept) in &mut state.hosts {
                if of.is_none_or(|of| of == *host) {
                    kept.epoch += 1;
                    kept.writer = None;
                    bytes += std::mem::take(&mut kept.waiting).len();
                    gone.extend(kept.files.drain(..));
                }
            }
            state.waiting_bytes = state.waiting_bytes.saturating_sub(bytes);
        }
        for file in &gone {
            self.remove(file).await?;
        }
        if !gone.is_empty() {
            self.env.sync_dir(&self.options.directory).await?;
        }
        Ok(gone.len())
    }

    /// Removes closed files that were last written to before a time in milliseconds since 1970:
    /// where no hint lives as long as that, nothing in them does.
    ///
    /// # Errors
    /// Of the disk.
    pub async fn remove_older(&self, before: i64) -> io::Result<()> {
        let all: Vec<Rc<HintFile>> = {
            let state = self.state.borrow();
            state.hosts.values().flat_map(|host| host.files.iter().cloned()).collect()
        };
        for file in all.iter().filter(|file| file.descriptor.timestamp < before) {
            let metadata = self.env.metadata(file.path()).await?;
            let written = metadata.and_then(|metadata| metadata.modified_millis);
            if written.is_some_and(|written| written < before) {
                file.set_sent(file.len());
                self.finish(file).await?;
            }
        }
        Ok(())
    }

    /// Writes and syncs what there is, and ends.
    pub async fn close(&self) {
        self.is_closing.set(true);
        self.work.notify_all();
        self.work.notify_one();
        while !self.is_closed.get() {
            self.closed.notified().await;
        }
    }
}
