//! The thread that writes both logs, and the queue before it. No shard waits for a disk: where the
//! queue is full, a request waits, or its entry is dropped.

mod options;
mod queue_files;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use config::Config;
use env::Env;
use env::real::{BlockingFiles, Spool, SpoolEnd};
use logging::{Format, Line};

use options::check_audit;
pub(crate) use options::{NO_DIRECTORY, audit_options, query_options, starts_audited};
use queue_files::QueueFiles;

use crate::log_file::LogFile;

/// Entries that wait to be written, at most, whatever their bytes.
const QUEUE_ENTRIES_MAX: usize = 16 << 10;
/// How often who waits for room looks for it.
const PAUSE: Duration = Duration::from_millis(1);

/// Which log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    Audit,
    Queries,
}

/// An entry on its way.
pub(crate) enum Entry {
    /// A line of the audit log, and how it is written.
    Line(Line, Format),
    /// A record of a queue, and its time in milliseconds since 1970.
    Record(Vec<u8>, i64),
}

enum Item {
    Entry(Log, Entry, u64),
    Do(Box<dyn FnOnce(&mut Sinks) + Send>),
}

#[derive(Default)]
struct Shared {
    /// Bytes that wait, of each log.
    waiting: [AtomicU64; 2],
    /// Entries that could not be written.
    lost: AtomicU64,
}

/// The way to the thread; clones share it.
#[derive(Clone)]
pub(crate) struct RequestWriter {
    spool: Spool<Item>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for RequestWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestWriter")
    }
}

/// What entries are written to, on the thread.
pub(crate) struct Sinks {
    files: BlockingFiles,
    shared: Arc<Shared>,
    lines: Option<LogFile>,
    audit: Option<QueueFiles>,
    queries: Option<QueueFiles>,
    text: String,
}

impl Log {
    fn of<T>(self, [audit, queries]: &[T; 2]) -> &T {
        match self {
            Self::Audit => audit,
            Self::Queries => queries,
        }
    }
}

impl RequestWriter {
    /// Starts the thread, and the audit log where the configuration has it on.
    ///
    /// # Errors
    /// If that cannot be written, or there is no thread.
    pub fn start(config: &Config) -> io::Result<(Self, SpoolEnd)> {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        let begin = |files| {
            let (lines, audit, queries) = (None, None, None);
            let mut sinks =
                Sinks { files, shared: theirs, lines, audit, queries, text: String::new() };
            open_audit(&mut sinks, config)?;
            Ok(move |items: &mut Vec<Item>, _| sinks.work(items))
        };
        let (spool, end) = Spool::start("request-log", QUEUE_ENTRIES_MAX, begin)?;
        Ok((Self { spool, shared }, end))
    }

    /// Waits for what is on its way, for a while at the most; not on a shard.
    pub fn finish(&self, end: &SpoolEnd, patience: Duration) {
        self.spool.finish(end, patience);
    }

    /// Offers an entry, which comes back where so many bytes would wait. One alone always fits.
    pub fn offer(&self, log: Log, entry: Entry, bytes_max: u64) -> Result<(), Entry> {
        let (bytes, waiting) = (entry.bytes(), log.of(&self.shared.waiting));
        let before = waiting.fetch_add(bytes, Ordering::Relaxed);
        let offered = match before > 0 && before.saturating_add(bytes) > bytes_max {
            true => Err(Item::Entry(log, entry, bytes)),
            false => self.spool.try_offer(Item::Entry(log, entry, bytes)),
        };
        offered.map_err(|item| {
            waiting.fetch_sub(bytes, Ordering::Relaxed);
            match item {
                Item::Entry(_, entry, _) => entry,
                Item::Do(_) => unreachable!("an entry was offered"),
            }
        })
    }

    /// The same, and waits for room.
    pub async fn put(&self, env: &Env, log: Log, mut entry: Entry, bytes_max: u64) {
        while let Err(back) = self.offer(log, entry, bytes_max) {
            entry = back;
            env.sleep(PAUSE).await;
        }
    }

    /// Entries that could not be written since this was last asked.
    pub fn take_lost(&self) -> u64 {
        match self.shared.lost.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.shared.lost.swap(0, Ordering::Relaxed),
        }
    }

    /// Has the thread do something once all that was offered is written.
    pub fn tell(&self, what: impl FnOnce(&mut Sinks) + Send + 'static) {
        // where there is no room it is told again
        let _ = self.spool.try_offer(Item::Do(Box::new(what)));
    }

    /// Has the thread do something once all that was offered is written, and waits for it; none if
    /// the thread has ended.
    pub async fn ask<T: Send + 'static>(
        &self,
        env: &Env,
        what: impl FnOnce(&mut Sinks) -> T + Send + 'static,
    ) -> Option<T> {
        let (send, receive) = sync_channel(1);
        let work = move |sinks: &mut Sinks| {
            // who asked may have gone
            let _ = send.send(what(sinks));
        };
        let mut item = Item::Do(Box::new(work));
        while let Err(back) = self.spool.try_offer(item) {
            item = back;
            env.sleep(PAUSE).await;
        }
        env.helper(move || receive.recv().ok()).await
    }
}

/// Begins the audit log, where the configuration has it on.
fn open_audit(sinks: &mut Sinks, config: &Config) -> io::Result<()> {
    if !starts_audited(config) {
        return Ok(());
    }
    let options = audit_options(config);
    check_audit(&options)?;
    let directory = PathBuf::from(&options.queue.directory);
    let opened = match (options.logger(), options.queue.check()) {
        (Ok(audit::Logger::File), _) => sinks.open_lines(LogFile::audit(config, directory.clone())),
        (_, Ok(cycle)) => {
            let bytes_max = u64::try_from(options.queue.max_log_size).unwrap_or_default();
            sinks.open_audit((&directory, cycle), bytes_max)
        }
        (_, Err(audit::Refused::BadUse(why) | audit::Refused::Failed(why))) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    };
    opened.map_err(|error| {
        let path = directory.display();
        let what = format!(
            "cannot write the audit log in {path}: set another \
             audit_logging_options.audit_logs_dir: {error}"
        );
        io::Error::new(error.kind(), what)
    })
}

impl Entry {
    /// What it weighs while it waits.
    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Line(line, _) => line.message.len(),
            Self::Record(record, _) => record.len(),
        };
        bytes as u64
    }
}

impl Sinks {
    fn work(&mut self, items: &mut Vec<Item>) {
        let (mut waited, mut lost, mut millis) = ([0, 0], 0, 0);
        for item in items.drain(..) {
            match item {
                Item::Entry(log, entry, bytes) => {
                    let [audit, queries] = &mut waited;
                    *(if log == Log::Audit { audit } else { queries }) += bytes;
                    if let Entry::Record(_, at) = &entry {
                        millis = *at;
                    }
                    lost += u64::from(!self.take(log, entry));
                }
                Item::Do(what) => {
                    lost += self.flush(millis);
                    what(self);
                }
            }
        }
        lost += self.flush(millis);
        for (waiting, waited) in self.shared.waiting.iter().zip(waited) {
            waiting.fetch_sub(waited, Ordering::Relaxed);
        }
        self.shared.lost.fetch_add(lost, Ordering::Relaxed);
    }

    fn take(&mut self, log: Log, entry: Entry) -> bool {
        let Self { files, lines, audit, queries, text, .. } = self;
        match (entry, log) {
            (Entry::Line(line, format), _) => {
                // one that was on its way when the log was turned off is written nowhere
                let Some(file) = lines else { return true };
                text.clear();
                line.write_whole(format, text);
                file.write(files, text.as_bytes(), line.millis)
            }
            (Entry::Record(record, millis), Log::Audit) => {
                audit.as_mut().is_none_or(|queue| queue.append(files, &record, millis))
            }
            (Entry::Record(record, millis), Log::Queries) => {
                queries.as_mut().is_none_or(|queue| queue.append(files, &record, millis))
            }
        }
    }

    /// Writes records that were taken; how many logs could not.
    fn flush(&mut self, millis: i64) -> u64 {
        let Self { files, audit, queries, .. } = self;
        let queues = [audit, queries].into_iter().flatten();
        queues.map(|queue| u64::from(!queue.flush(files, millis))).sum()
    }

    /// Begins the audit log as text.
    pub fn open_lines(&mut self, file: LogFile) -> io::Result<()> {
        let mut file = file;
        file.begin(&self.files)?;
        self.audit = None;
        self.lines = Some(file);
        Ok(())
    }

    /// Begins the audit log as a queue.
    pub fn open_audit(
        &mut self,
        (directory, cycle): (&Path, audit::RollCycle),
        bytes_max: u64,
    ) -> io::Result<()> {
        self.check_free(self.queries.as_ref(), directory)?;
        self.audit = Some(QueueFiles::open(&self.files, directory, cycle, bytes_max)?);
        self.lines = None;
        Ok(())
    }

    /// Begins the full query log.
    pub fn open_queries(
        &mut self,
        (directory, cycle): (&Path, audit::RollCycle),
        bytes_max: u64,
    ) -> io::Result<()> {
        self.check_free(self.audit.as_ref(), directory)?;
        self.queries = Some(QueueFiles::open(&self.files, directory, cycle, bytes_max)?);
        Ok(())
    }

    fn check_free(&self, other: Option<&QueueFiles>, directory: &Path) -> io::Result<()> {
        match other.filter(|other| other.directory() == directory) {
            Some(_) => {
                // Cassandra's words
                let what = format!("Already logging to {}", directory.display());
                Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
            }
            None => Ok(()),
        }
    }

    /// Ends the audit log.
    pub fn close_audit(&mut self) {
        (self.lines, self.audit) = (None, None);
    }

    /// Ends the full query log.
    pub fn close_queries(&mut self) {
        self.queries = None;
    }

    /// Removes the files of a queue.
    pub fn clean(&mut self, directory: &Path) -> io::Result<()> {
        queue_files::clean(&self.files, directory)
    }

    /// Opens the audit log's file again by its name.
    pub fn reopen(&mut self) {
        if let Some(file) = &mut self.lines {
            file.reopen();
        }
    }
}
