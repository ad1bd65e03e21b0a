//! Where lines of the log go: a file that rolls, standard output, or both. A thread of its own
//! writes them (`env::real::Spool`), so that no shard waits for a disk or a terminal.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use config::Config;
use env::real::{AppendFile, BlockingFiles, Spool, SpoolEnd};
use logging::{FILE, Format, Line, Place, Rolling, Settings, Thread};
use metrics::Level;

/// Lines that wait to be written, at most.
const QUEUE_LINES_MAX: usize = 4096;
/// A file that rolls is not smaller, whatever `log_file_size` says.
const FILE_BYTES_MIN: u64 = 1 << 10;
/// After a failure the file is tried again so late.
const RETRY_MILLIS: i64 = 5_000;
/// How long the end of the process waits for the last lines.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way of lines to where the configuration has them; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Logs(Option<Outlet>);

#[derive(Clone, Debug)]
struct Outlet {
    spool: Spool<Line>,
    reopen: Arc<AtomicBool>,
}

/// What [`Logs::finish`] waits for.
#[derive(Debug)]
pub struct LogsEnd(SpoolEnd);

impl Logs {
    /// Lines stay in memory, where `system_views.system_logs` has them: so do simulated nodes.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Lines go where the configuration says.
    ///
    /// # Errors
    /// If the file cannot be opened, or there is no thread.
    pub fn start(config: &Config) -> io::Result<(Self, LogsEnd)> {
        let reopen = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&reopen);
        let open = |files| {
            let mut writer = Writer::open(files, config)?;
            Ok(move |lines: &mut Vec<Line>, dropped| {
                if asked.swap(false, Ordering::AcqRel) {
                    writer.reopen();
                }
                writer.write(lines, dropped);
            })
        };
        let (spool, end) = Spool::start("log", QUEUE_LINES_MAX, open)?;
        Ok((Self(Some(Outlet { spool, reopen })), LogsEnd(end)))
    }

    /// Do lines go anywhere?
    pub(crate) fn are_written(&self) -> bool {
        self.0.is_some()
    }

    /// Has a line written.
    pub(crate) fn offer(&self, line: impl FnOnce() -> Line) {
        if let Some(outlet) = &self.0 {
            outlet.spool.offer(line());
        }
    }

    /// Has the file opened again by its name: another program gave it another one.
    pub(crate) fn reopen(&self) {
        if let Some(outlet) = &self.0 {
            outlet.reopen.store(true, Ordering::Release);
            outlet.spool.wake();
        }
    }

    /// Says that the node ended and not in order, when no shard runs; `millis` since 1970.
    #[track_caller]
    pub fn say_failed(&self, message: String, millis: i64) {
        let level = Level::Error;
        let place = Place::from(std::panic::Location::caller());
        self.offer(|| Line { millis, level, thread: Thread::Main, place, message });
    }

    /// Waits until what was said is written, for a while at the most; not on a shard.
    pub fn finish(&self, LogsEnd(end): &LogsEnd) {
        if let Some(outlet) = &self.0 {
            outlet.spool.finish(end, PATIENCE);
        }
    }
}

/// Writes lines, on its thread.
struct Writer {
    files: BlockingFiles,
    format: Format,
    prints: bool,
    file: Option<LogFile>,
    /// Lines that were dropped or could not be written, and are not told of yet.
    lost: u64,
    text: String,
}

/// `system.log`.
struct LogFile {
    directory: PathBuf,
    settings: Settings,
    /// None while it cannot be opened.
    open: Option<(AppendFile, Rolling)>,
    /// When it failed last, in milliseconds since 1970.
    failed: Option<i64>,
}

impl Writer {
    fn open(files: BlockingFiles, config: &Config) -> io::Result<Self> {
        let lookup = config.lookup();
        let size = |key: &str| u64::try_from(lookup.number(key)).unwrap_or_default();
        let settings = Settings {
            file_bytes: size("log_file_size").max(FILE_BYTES_MIN),
            days: u32::try_from(lookup.number("log_history_days")).unwrap_or(u32::MAX),
            total_bytes: size("log_total_size"),
        };
        let directory = config.is_set("log_directory").then(|| lookup.word("log_directory"));
        let to = lookup.word("log_to");
        let file = match (directory, to.as_str()) {
            (_, "stdout") | (None, "null") => None,
            (None, _) => {
                let what = format!("log_to is {to} and log_directory is not set: set it");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
            (Some(directory), _) => {
                let directory = PathBuf::from(directory);
                let cannot = |error: io::Error| {
                    let path = directory.join(FILE);
                    let what = format!(
                        "cannot write the log {}: set another log_directory: {error}",
                        path.display()
                    );
                    io::Error::new(error.kind(), what)
                };
                files.create_dir_all(&directory).map_err(cannot)?;
                let mut file =
                    LogFile { directory: directory.clone(), settings, open: None, failed: None };
                file.open(&files, 0).map_err(cannot)?;
                Some(file)
            }
        };
        let format = match lookup.word("log_format").as_str() {
            "json" => Format::Json,
            _ => Format::Pattern,
        };
        let prints = to != "file";
        Ok(Self { files, format, prints, file, lost: 0, text: String::new() })
    }

    fn reopen(&mut self) {
        if let Some(file) = &mut self.file {
            file.open = None;
            file.failed = None;
        }
    }

    fn write(&mut self, lines: &mut Vec<Line>, dropped: u64) {
        self.lost += dropped;
        if let (true, Some(last)) = (self.lost > 0, lines.last()) {
            let message = format!(
                "dropped {} lines of the log: they came faster than they could be written, or the \
                 disk refused them",
                self.lost
            );
            let place = Place::from(std::panic::Location::caller());
            let (millis, thread) = (last.millis, Thread::Main);
            lines.push(Line { millis, level: Level::Warn, thread, place, message });
        }
        if let (true, Some(file)) = (lines.is_empty(), &mut self.file) {
            // it is there, though nobody says anything
            let _ = file.ensure(&self.files, 0);
        }
        let told = std::mem::take(&mut self.lost);
        let mut failed = 0;
        for line in lines {
            self.text.clear();
            line.write(self.format, &mut self.text);
            if self.prints {
                // who closed standard output does not want it
                let _ = self.files.print(self.text.as_bytes());
            }
            if let Some(file) = &mut self.file {
                failed += u64::from(!file.write(&self.files, self.text.as_bytes(), line.millis));
            }
        }
        // the line that told of the others is one of these
        self.lost = match failed {
            0 => 0,
            failed => failed + told - u64::from(told > 0).min(failed),
        };
    }
}

impl LogFile {
    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    fn open(&mut self, files: &BlockingFiles, millis: i64) -> io::Result<()> {
        let file = files.append(&self.path())?;
        let (bytes, modified) = file.state()?;
        let rolling = Rolling::new(self.settings, bytes, modified.unwrap_or(millis));
        self.open = Some((file, rolling));
        Ok(())
    }

    fn ensure(&mut self, files: &BlockingFiles, millis: i64) -> io::Result<()> {
        match self.open {
            Some(_) => Ok(()),
            None => self.open(files, millis),
        }
    }

    /// Writes a line; false, if it cannot.
    fn write(&mut self, files: &BlockingFiles, bytes: &[u8], millis: i64) -> bool {
        if self.failed.is_some_and(|at| (0..RETRY_MILLIS).contains(&(millis - at))) {
            return false;
        }
        match self.try_write(files, bytes, millis) {
            Ok(()) => {
                self.failed = None;
                true
            }
            Err(error) => {
                if self.failed.is_none() {
                    let path = self.path();
                    let path = path.display();
                    files.complain(&format!(
                        "cannot write the log {path}: {error}; trying again every 5 s"
                    ));
                }
                self.failed = Some(millis);
                self.open = None;
                false
            }
        }
    }

    fn try_write(&mut self, files: &BlockingFiles, bytes: &[u8], millis: i64) -> io::Result<()> {
        self.ensure(files, millis)?;
        if self.open.as_ref().is_some_and(|(_, rolling)| rolling.is_due(millis)) {
            self.roll(files, millis)?;
        }
        if let Some((file, rolling)) = &mut self.open {
            file.write(bytes)?;
            rolling.wrote(bytes.len() as u64, millis);
        }
        Ok(())
    }

    /// Gives the file another name, begins a new one and removes old ones.
    fn roll(&mut self, files: &BlockingFiles, millis: i64) -> io::Result<()> {
        let Some((_, mut rolling)) = self.open.take() else { return Ok(()) };
        let found = files.files(&self.directory)?;
        let names: Vec<String> = found.into_iter().map(|(name, _)| name).collect();
        let name = rolling.rolled_name(&names);
        files.rename(&self.path(), &self.directory.join(name))?;
        rolling.rolled(millis);
        for name in rolling.expired(&files.files(&self.directory)?, millis) {
            // one that stays is looked at again at the next roll
            let _ = files.remove(&self.directory.join(name));
        }
        self.open = Some((files.append(&self.path())?, rolling));
        Ok(())
    }
}
