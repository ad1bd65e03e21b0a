//! Where lines of the log go: a file that rolls, standard output, or both. A thread of its own
//! writes them (`env::real::Spool`), so that no shard waits for a disk or a terminal.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use config::Config;
use env::real::{BlockingFiles, Spool, SpoolEnd};
use logging::{FILE, Format, Line, Place, Thread};
use metrics::Level;

use crate::log_file::{LogFile, format_of};
use crate::request_writer::{RequestWriter, Sinks};

/// Lines that wait to be written, at most.
const QUEUE_LINES_MAX: usize = 4096;
/// How long the end of the process waits for the last lines.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way of lines to where the configuration has them; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Logs(Option<Outlet>);

#[derive(Clone, Debug)]
struct Outlet {
    spool: Spool<Line>,
    reopen: Arc<AtomicBool>,
    requests: RequestWriter,
}

/// What [`Logs::finish`] waits for.
#[derive(Debug)]
pub struct LogsEnd {
    log: SpoolEnd,
    requests: SpoolEnd,
}

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
        let (spool, log) = Spool::start("log", QUEUE_LINES_MAX, open)?;
        let (writer, requests) = RequestWriter::start(config)?;
        let outlet = Outlet { spool, reopen, requests: writer };
        Ok((Self(Some(outlet)), LogsEnd { log, requests }))
    }

    /// What writes the logs of requests, where anything does.
    pub(crate) fn request_writer(&self) -> Option<&RequestWriter> {
        self.0.as_ref().map(|outlet| &outlet.requests)
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
            outlet.requests.tell(Sinks::reopen);
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
    pub fn finish(&self, end: &LogsEnd) {
        if let Some(outlet) = &self.0 {
            outlet.requests.finish(&end.requests, PATIENCE);
            outlet.spool.finish(&end.log, PATIENCE);
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

impl Writer {
    fn open(files: BlockingFiles, config: &Config) -> io::Result<Self> {
        let lookup = config.lookup();
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
                let mut file = LogFile::system(config, directory.clone());
                file.begin(&files).map_err(cannot)?;
                Some(file)
            }
        };
        let format = format_of(config);
        let prints = to != "file";
        Ok(Self { files, format, prints, file, lost: 0, text: String::new() })
    }

    fn reopen(&mut self) {
        if let Some(file) = &mut self.file {
            file.reopen();
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
