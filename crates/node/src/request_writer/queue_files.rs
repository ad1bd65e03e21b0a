//! The files of a queue (`audit::Appender` has their bytes), on the thread that writes them.

use std::io;
use std::path::{Path, PathBuf};

use audit::{Appender, RollCycle, Table};
use env::real::{BlockingFiles, RandomFile};

/// After a failure the file is tried again so late.
const RETRY_MILLIS: i64 = 5_000;
/// What Chronicle has for the oldest file where there is none.
const NO_LOWEST: i64 = i32::MAX as i64;
/// The same for the newest one.
const NO_HIGHEST: i64 = i32::MIN as i64;
/// What is put behind the name of a file that is damaged.
const DAMAGED: &str = "damaged";

/// A queue that is written.
pub(super) struct QueueFiles {
    directory: PathBuf,
    /// Bytes of files that are not written any more, at most.
    bytes_max: u64,
    table: Table,
    open: Option<OpenFile>,
    /// When it failed last, in milliseconds since 1970.
    failed: Option<i64>,
}

struct OpenFile {
    number: i64,
    file: RandomFile,
    bytes: u64,
    appender: Appender,
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// The files of queues in a directory, with their bytes.
fn files_of(files: &BlockingFiles, directory: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut found = files.files(directory).map_err(|error| with_path(directory, &error))?;
    found.retain(|(name, _)| RollCycle::is_file(name));
    Ok(found)
}

/// Removes all files of a queue.
pub(super) fn clean(files: &BlockingFiles, directory: &Path) -> io::Result<()> {
    let found = match files.files(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|error| with_path(directory, &error))?,
    };
    let is_ours = |name: &str| {
        let name = name.strip_suffix(DAMAGED).and_then(|name| name.strip_suffix('.'));
        name.is_some_and(RollCycle::is_file)
    };
    for (name, _) in found {
        if name == Table::FILE || RollCycle::is_file(&name) || is_ours(&name) {
            let path = directory.join(name);
            files.remove(&path).map_err(|error| with_path(&path, &error))?;
        }
    }
    Ok(())
}

impl QueueFiles {
    /// A queue in a directory, which is made. Its first file comes with the first record.
    pub fn open(
        files: &BlockingFiles,
        directory: &Path,
        cycle: RollCycle,
        bytes_max: u64,
    ) -> io::Result<Self> {
        files.create_dir_all(directory).map_err(|error| with_path(directory, &error))?;
        let path = directory.join(Table::FILE);
        let table_file = files.random(&path).map_err(|error| with_path(&path, &error))?;
        let mut found = vec![0; 1 << 10];
        let length = table_file.read_at(0, &mut found)?;
        found.truncate(length);
        if found.iter().any(|byte| *byte != 0) && !Table::rolls_so(cycle, &found) {
            let what = format!(
                "the queue in {} has another roll_cycle than {}: set that one, another directory, \
                 or remove its files",
                directory.display(),
                cycle.name
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let mut numbers = Vec::new();
        for (name, bytes) in files_of(files, directory)? {
            match bytes {
                // Chronicle cannot read one
                0 => files.remove(&directory.join(name))?,
                _ => numbers.extend(cycle.number(&name)),
            }
        }
        let table = Table {
            cycle,
            lowest: numbers.iter().min().copied().unwrap_or(NO_LOWEST),
            highest: numbers.iter().max().copied().unwrap_or(NO_HIGHEST),
            changes: 1,
        };
        table_file.write_at(0, &table.encode())?;
        let directory = directory.to_path_buf();
        Ok(Self { directory, bytes_max, table, open: None, failed: None })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Takes a record, which [`flush`](Self::flush) writes; false, if it cannot.
    pub fn append(&mut self, files: &BlockingFiles, record: &[u8], millis: i64) -> bool {
        if self.failed.is_some_and(|at| (0..RETRY_MILLIS).contains(&(millis - at))) {
            return false;
        }
        match self.try_append(files, record, millis) {
            Ok(taken) => taken,
            Err(error) => {
                self.fail(files, &error, millis);
                false
            }
        }
    }

    fn try_append(
        &mut self,
        files: &BlockingFiles,
        record: &[u8],
        millis: i64,
    ) -> io::Result<bool> {
        let number = self.table.cycle.at(millis);
        // a clock that goes back begins no file of before
        if self.open.as_ref().is_some_and(|open| open.number < number) {
            self.roll(files)?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            none => {
                let opened = open_file(files, &self.directory, self.table.cycle, number)?;
                self.table.lowest = self.table.lowest.min(number);
                self.table.highest = self.table.highest.max(number);
                self.table.changes += 1;
                write_table(files, &self.directory, &self.table)?;
                none.insert(opened)
            }
        };
        Ok(open.appender.append(record))
    }

    /// Writes what was taken; false, if it cannot.
    pub fn flush(&mut self, files: &BlockingFiles, millis: i64) -> bool {
        let Some(open) = &mut self.open else { return true };
        match open.flush() {
            Ok(()) => {
                self.failed = None;
                true
            }
            Err(error) => {
                self.fail(files, &error, millis);
                false
            }
        }
    }

    fn fail(&mut self, files: &BlockingFiles, error: &io::Error, millis: i64) {
        if self.failed.is_none() {
            let path = self.directory.display();
            files.complain(&format!("cannot write the queue {path}: {error}; retrying in 5 s"));
        }
        self.failed = Some(millis);
        self.open = None;
    }

    /// Ends the file, and removes the oldest ones.
    fn roll(&mut self, files: &BlockingFiles) -> io::Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        open.flush()?;
        let end = open.appender.finish();
        open.file.write_at(end.at, &end.bytes)?;
        let cycle = self.table.cycle;
        let mut rolled: Vec<(i64, String, u64)> = files_of(files, &self.directory)?
            .into_iter()
            .filter_map(|(name, bytes)| Some((cycle.number(&name)?, name, bytes)))
            .collect();
        rolled.sort();
        let mut bytes: u64 = rolled.iter().map(|(_, _, bytes)| *bytes).sum();
        for (number, name, of_file) in &rolled {
            if bytes <= self.bytes_max {
                self.table.lowest = *number;
                break;
            }
            files.remove(&self.directory.join(name))?;
            bytes -= of_file;
        }
        if rolled.is_empty() || bytes == 0 {
            self.table.lowest = NO_LOWEST;
        }
        Ok(())
    }
}

impl OpenFile {
    fn flush(&mut self) -> io::Result<()> {
        let wanted = self.appender.file_bytes();
        if wanted > self.bytes {
            self.file.set_bytes(wanted)?;
            self.bytes = wanted;
        }
        for write in self.appender.take() {
            self.file.write_at(write.at, &write.bytes)?;
        }
        Ok(())
    }
}

fn write_table(files: &BlockingFiles, directory: &Path, table: &Table) -> io::Result<()> {
    files.random(&directory.join(Table::FILE))?.write_at(0, &table.encode())
}

/// The file of a number, which is there or is made. One that is damaged gets another name.
fn open_file(
    files: &BlockingFiles,
    directory: &Path,
    cycle: RollCycle,
    number: i64,
) -> io::Result<OpenFile> {
    let path = directory.join(cycle.file_name(number));
    let mut file = files.random(&path)?;
    let bytes = file.bytes()?;
    if bytes > 0 {
        let resumed = Appender::resume(cycle, bytes, &mut |at, to| file.read_at(at, to))?;
        match resumed {
            Ok(appender) => return Ok(OpenFile { number, file, bytes, appender }),
            Err(damage) => {
                let aside = path.with_extension(format!("cq4.{DAMAGED}"));
                files.complain(&format!(
                    "cannot go on with {}: {damage}; renamed it to {}",
                    path.display(),
                    aside.display()
                ));
                files.rename(&path, &aside)?;
                file = files.random(&path)?;
            }
        }
    }
    let (appender, begin) = Appender::create(cycle);
    let bytes = appender.file_bytes();
    file.set_bytes(bytes)?;
    // who looks at it meanwhile sees no header, or all of it
    let (first, rest) = begin.split_at(4.min(begin.len()));
    file.write_at(first.len() as u64, rest)?;
    file.write_at(0, first)?;
    Ok(OpenFile { number, file, bytes, appender })
}
