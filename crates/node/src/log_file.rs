//! A file of lines that rolls, on the thread that writes it.

use std::io;
use std::path::PathBuf;

use config::Config;
use env::real::{AppendFile, BlockingFiles};
use logging::{FILE, Format, Rolling, Settings};

/// A file that rolls is not smaller, whatever `log_file_size` says.
const FILE_BYTES_MIN: u64 = 1 << 10;
/// After a failure the file is tried again so late.
const RETRY_MILLIS: i64 = 5_000;
/// The audit log as text.
const AUDIT_FILE: &str = "audit.log";

/// How files of lines roll.
fn rolling(config: &Config, file: &'static str) -> Settings {
    let lookup = config.lookup();
    let size = |key: &str| u64::try_from(lookup.number(key)).unwrap_or_default();
    Settings {
        file,
        file_bytes: size("log_file_size").max(FILE_BYTES_MIN),
        days: u32::try_from(lookup.number("log_history_days")).unwrap_or(u32::MAX),
        total_bytes: size("log_total_size"),
    }
}

/// How lines read.
pub(crate) fn format_of(config: &Config) -> Format {
    match config.lookup().word("log_format").as_str() {
        "json" => Format::Json,
        _ => Format::Pattern,
    }
}

/// `system.log`, or `audit.log`.
#[derive(Debug)]
pub(crate) struct LogFile {
    directory: PathBuf,
    settings: Settings,
    /// None while it cannot be opened.
    open: Option<(AppendFile, Rolling)>,
    /// When it failed last, in milliseconds since 1970.
    failed: Option<i64>,
}

impl LogFile {
    /// `system.log` of a directory.
    pub fn system(config: &Config, directory: PathBuf) -> Self {
        Self { directory, settings: rolling(config, FILE), open: None, failed: None }
    }

    /// `audit.log` of a directory.
    pub fn audit(config: &Config, directory: PathBuf) -> Self {
        Self { directory, settings: rolling(config, AUDIT_FILE), open: None, failed: None }
    }

    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.directory.join(self.settings.file)
    }

    /// Makes its directory and opens it.
    pub fn begin(&mut self, files: &BlockingFiles) -> io::Result<()> {
        files.create_dir_all(&self.directory)?;
        self.open(files, 0)
    }

    /// Has it opened again by its name.
    pub fn reopen(&mut self) {
        (self.open, self.failed) = (None, None);
    }

    fn open(&mut self, files: &BlockingFiles, millis: i64) -> io::Result<()> {
        let file = files.append(&self.path())?;
        let (bytes, modified) = file.state()?;
        let rolling = Rolling::new(self.settings, bytes, modified.unwrap_or(millis));
        self.open = Some((file, rolling));
        Ok(())
    }

    /// Opens it, if it is not.
    pub fn ensure(&mut self, files: &BlockingFiles, millis: i64) -> io::Result<()> {
        match self.open {
            Some(_) => Ok(()),
            None => self.open(files, millis),
        }
    }

    /// Writes a line; false, if it cannot.
    pub fn write(&mut self, files: &BlockingFiles, bytes: &[u8], millis: i64) -> bool {
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
