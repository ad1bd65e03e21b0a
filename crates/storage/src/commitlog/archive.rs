//! Archiving segments, and restoring them to a point in time (`CommitLogArchiver`): what
//! `commitlog_archiving.properties` says, and the task that runs the operator's command.
//!
//! `commitlog_archiving.properties` lies beside the yaml. `crate::start` does the restoring,
//! before a replay.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use env::Env;
use env::sync::Notify;
use thiserror::Error;
use types::properties;
use types::time::{Civil, days_in_month};

use super::format::{self, Position};

/// Microseconds in a second.
const MICROS: i64 = 1_000_000;

/// Why `commitlog_archiving.properties` is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ArchivingError {
    /// `precision` is no unit of time.
    #[error("Unable to parse precision of value {0}")]
    Precision(String),
    /// A unit that is finer than timestamps are.
    #[error("NANOSECONDS level precision is not supported.")]
    Nanoseconds,
    /// `restore_point_in_time` is no time.
    #[error("Unable to parse restore target time: {0}")]
    Time(String),
    /// `snapshot_commitlog_position` is no position.
    #[error("Unable to parse snapshot commit log position: {0}")]
    Position(String),
}

/// What `commitlog_archiving.properties` says; by default nothing is archived or restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archiving {
    /// Run for each segment that ended, with `%path` and `%name`.
    pub archive_command: Option<String>,
    /// Run for each segment to restore, with `%from` and `%to`.
    pub restore_command: String,
    /// Where segments to restore are.
    pub restore_directories: Vec<PathBuf>,
    /// Mutations that are later, in microseconds, are not replayed.
    pub point_in_time: Option<i64>,
    /// Microseconds of one unit of the timestamps that clients give.
    pub precision: i64,
    /// Up to where SSTables that come from a snapshot have all of the log.
    pub snapshot: Option<Position>,
}

impl Default for Archiving {
    fn default() -> Self {
        Self {
            archive_command: None,
            restore_command: String::new(),
            restore_directories: Vec::new(),
            point_in_time: None,
            precision: 1,
            snapshot: None,
        }
    }
}

impl Archiving {
    /// Reads the text of `commitlog_archiving.properties`.
    ///
    /// # Errors
    /// See [`ArchivingError`].
    pub fn parse(text: &str) -> Result<Self, ArchivingError> {
        let values = properties::parse(text);
        let value =
            |name: &str| values.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let directories = value("restore_directories").unwrap_or_default();
        Ok(Self {
            archive_command: value("archive_command").map(str::to_owned),
            restore_command: value("restore_command").unwrap_or_default().to_owned(),
            restore_directories: directories
                .split(',')
                .filter(|directory| !directory.is_empty())
                .map(PathBuf::from)
                .collect(),
            point_in_time: value("restore_point_in_time").map(time).transpose()?,
            precision: precision(values.get("precision").map_or("MICROSECONDS", String::as_str))?,
            snapshot: value("snapshot_commitlog_position").map(position).transpose()?,
        })
    }

    /// Is a mutation whose latest timestamp this is later than what is to be restored?
    pub fn is_too_late(&self, timestamp: i64) -> bool {
        self.point_in_time.is_some_and(|point| timestamp.saturating_mul(self.precision) > point)
    }

    /// The words of the command that archives a segment.
    pub fn archive_words(command: &str, path: &Path) -> Vec<String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let command = command.replace("%name", &name).replace("%path", &path.to_string_lossy());
        words(&command)
    }

    /// The words of the command that restores a segment.
    pub fn restore_words(&self, from: &Path, to: &Path) -> Vec<String> {
        let command = self.restore_command.replace("%from", &from.to_string_lossy());
        words(&command.replace("%to", &to.to_string_lossy()))
    }
}

/// Words between single spaces, as Cassandra takes a command apart: no shell is asked.
fn words(command: &str) -> Vec<String> {
    command.trim_end_matches(' ').split(' ').map(str::to_owned).collect()
}

fn precision(name: &str) -> Result<i64, ArchivingError> {
    Ok(match name {
        "NANOSECONDS" => return Err(ArchivingError::Nanoseconds),
        "MICROSECONDS" => 1,
        "MILLISECONDS" => 1000,
        "SECONDS" => MICROS,
        "MINUTES" => 60 * MICROS,
        "HOURS" => 3600 * MICROS,
        "DAYS" => 86_400 * MICROS,
        other => return Err(ArchivingError::Precision(other.to_owned())),
    })
}

fn position(text: &str) -> Result<Position, ArchivingError> {
    let parsed = || {
        let (segment, offset) = text.split_once(',')?;
        let offset: i32 = offset.trim().parse().ok()?;
        Some(Position { segment: segment.trim().parse().ok()?, offset: offset.try_into().ok()? })
    };
    parsed().ok_or_else(|| ArchivingError::Position(text.to_owned()))
}

/// `yyyy:MM:dd HH:mm:ss`, and perhaps a point with 3 or 6 digits, in GMT; in microseconds.
fn time(text: &str) -> Result<i64, ArchivingError> {
    parse_time(text).ok_or_else(|| ArchivingError::Time(text.to_owned()))
}

fn parse_time(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once(' ')?;
    let number = |text: &str, digits: usize, most: i64| {
        let is_one = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|value| is_one && *value <= most)
    };
    let [year, month, day] = date.split(':').collect::<Vec<_>>().try_into().ok()?;
    let [hours, minutes, seconds] = clock.split(':').collect::<Vec<_>>().try_into().ok()?;
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let micros = match fraction.len() {
        0 => 0,
        3 => number(fraction, 3, 999)? * 1000,
        _ => number(fraction, 6, 999_999)?,
    };
    let year = number(year, 4, 9999).filter(|year| *year > 0)?;
    let month = u8::try_from(number(month, 2, 12).filter(|month| *month > 0)?).ok()?;
    let day = u8::try_from(number(day, 2, 31).filter(|day| *day > 0)?).ok()?;
    // Java takes the last day of a month for those that it does not have
    let day = day.min(days_in_month(year, month));
    let seconds = (Civil { year, month, day }.to_days() * 24 + number(hours, 2, 23)?) * 3600
        + number(minutes, 2, 59)? * 60
        + number(seconds, 2, 59)?;
    Some(seconds * MICROS + micros)
}

/// Runs the operator's command for one segment after the other.
pub(super) struct Archiver {
    command: String,
    directory: PathBuf,
    queue: RefCell<VecDeque<i64>>,
    wanted: Notify,
    /// By segment, whether its archiving went well.
    done: RefCell<BTreeMap<i64, bool>>,
    ended: Notify,
}

impl Archiver {
    pub fn new(command: &str, directory: &Path) -> Self {
        Self {
            command: command.to_owned(),
            directory: directory.to_path_buf(),
            queue: RefCell::default(),
            wanted: Notify::new(),
            done: RefCell::default(),
            ended: Notify::new(),
        }
    }

    /// This segment was archived before the log began.
    pub fn has(&self, id: i64) {
        self.done.borrow_mut().insert(id, true);
    }

    /// Asks for a segment to be archived, unless that was asked for. It must be synced to its end.
    pub fn want(&self, id: i64) {
        let is_known = self.done.borrow().contains_key(&id) || self.queue.borrow().contains(&id);
        if !is_known {
            self.queue.borrow_mut().push_back(id);
            self.wanted.notify_one();
        }
    }

    /// Archives what is asked for, forever. `tell` gets what went wrong.
    pub async fn run(&self, env: &Env, tell: impl Fn(&str)) {
        loop {
            let Some(id) = self.queue.borrow().front().copied() else {
                self.wanted.notified().await;
                continue;
            };
            let path = self.directory.join(format::file_name(id));
            let ended = env.run_program(Archiving::archive_words(&self.command, &path)).await;
            env.mark(if ended.is_ok() { "commitlog.archived" } else { "commitlog.not_archived" });
            if let Err(error) = &ended {
                tell(&format!(
                    "cannot archive commit log segment {} with archive_command, left the file \
                     there: {error}",
                    path.display()
                ));
            }
            self.done.borrow_mut().insert(id, ended.is_ok());
            self.queue.borrow_mut().pop_front();
            self.ended.notify_all();
        }
    }

    /// Waits until a segment is archived, and forgets it. False if that failed: the file is to be
    /// left alone.
    pub async fn archived(&self, id: i64) -> bool {
        self.want(id);
        loop {
            if let Some(done) = self.done.borrow_mut().remove(&id) {
                return done;
            }
            self.ended.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_asks_for_nothing() {
        let shipped = "# a comment\narchive_command=\nrestore_command=\nrestore_directories=\n\
                       restore_point_in_time=\nsnapshot_commitlog_position=\nprecision=MICROSECONDS\n";
        assert_eq!(Archiving::parse(shipped), Ok(Archiving::default()));
    }

    #[test]
    fn values_are_read_as_java_reads_them() {
        let text = "archive_command = /bin/ln %path \\\n    /backup/%name\n! no\nrestore_command:/bin/cp -f %from %to\n\
                    restore_directories /a,/b\nrestore_point_in_time=2024\\:02\\:31 01:02:03.5\n";
        assert!(Archiving::parse(text).is_err(), "one digit of a fraction");
        let archiving = Archiving::parse(&text.replace("03.5", "03.456")).expect("good");
        let command = archiving.archive_command.as_deref().expect("a command");
        assert_eq!(
            Archiving::archive_words(command, Path::new("/log/CommitLog-7-5.log")),
            ["/bin/ln", "/log/CommitLog-7-5.log", "/backup/CommitLog-7-5.log"]
        );
        assert_eq!(
            archiving.restore_words(Path::new("/a/x"), Path::new("/log/y")),
            ["/bin/cp", "-f", "/a/x", "/log/y"]
        );
        assert_eq!(archiving.restore_directories, [Path::new("/a"), Path::new("/b")]);
        // 2024-02-29T01:02:03.456Z
        assert_eq!(archiving.point_in_time, Some(1_709_168_523_456_000));
    }

    #[test]
    fn times_and_positions() {
        assert_eq!(parse_time("1970:01:01 00:00:01"), Some(MICROS));
        assert_eq!(parse_time("1970:01:01 00:00:01.000002"), Some(MICROS + 2));
        for bad in ["1970-01-01 00:00:00", "1970:13:01 00:00:00", "1970:01:01 24:00:00", ""] {
            assert_eq!(parse_time(bad), None, "{bad}");
        }
        assert_eq!(position("12, 34"), Ok(Position { segment: 12, offset: 34 }));
        assert!(position("12").is_err());
        assert_eq!(
            Archiving::parse("precision=NANOSECONDS").map_err(|e| e.to_string()),
            Err("NANOSECONDS level precision is not supported.".to_owned())
        );
        assert_eq!(
            Archiving::parse("precision=YEARS").map_err(|e| e.to_string()),
            Err("Unable to parse precision of value YEARS".to_owned())
        );
    }

    #[test]
    fn the_point_in_time_counts_in_the_clients_unit() {
        let archiving =
            Archiving::parse("restore_point_in_time=1970:01:01 00:00:10\nprecision=MILLISECONDS");
        let archiving = archiving.expect("good");
        assert!(!archiving.is_too_late(10_000));
        assert!(archiving.is_too_late(10_001));
        assert!(archiving.is_too_late(i64::MAX));
        assert!(!Archiving::default().is_too_late(i64::MAX));
    }
}
