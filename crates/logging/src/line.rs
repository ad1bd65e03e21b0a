//! A line, and how it reads.

use std::fmt::{self, Write as _};
use std::panic::Location;

use metrics::Level;
use types::time::format_date;

/// Bytes of a message that are written, at most; of a longer one the beginning: others have a say
/// in what is in it.
pub const MESSAGE_BYTES_MAX: usize = 16 << 10;
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Who says a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// The process, before and after its shards run.
    Main,
    /// A shard.
    Shard(usize),
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => f.write_str("main"),
            Self::Shard(n) => write!(f, "shard-{n}"),
        }
    }
}

/// Where in the sources a line is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's path.
    pub file: &'static str,
    /// The number of its line.
    pub line: u32,
}

impl Place {
    /// The file's name.
    fn name(self) -> &'static str {
        self.file.rsplit('/').next().unwrap_or(self.file)
    }
}

impl From<&'static Location<'static>> for Place {
    fn from(at: &'static Location<'static>) -> Self {
        Self { file: at.file(), line: at.line() }
    }
}

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Cassandra's: `%-5level [%thread] %date{ISO8601} %F:%L - %msg%n`.
    Pattern,
    /// An object of JSON each.
    Json,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When, in milliseconds since 1970.
    pub millis: i64,
    /// How grave it is.
    pub level: Level,
    /// Who says it.
    pub thread: Thread,
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
}

impl Line {
    /// Appends it, with its line break.
    pub fn write(&self, format: Format, to: &mut String) {
        self.write_message(self.message(), format, to);
    }

    /// The same, with all of its message, however long it is.
    pub fn write_whole(&self, format: Format, to: &mut String) {
        self.write_message((&self.message, ""), format, to);
    }

    fn write_message(&self, message: (&str, &str), format: Format, to: &mut String) {
        match format {
            Format::Pattern => self.write_pattern(message, to),
            Format::Json => self.write_json(message, to),
        }
    }

    fn message(&self) -> (&str, &'static str) {
        match self.message.len() > MESSAGE_BYTES_MAX {
            true => (self.message.get(..self.cut()).unwrap_or_default(), "..."),
            false => (&self.message, ""),
        }
    }

    /// Where a message that is too long is cut, between two characters.
    fn cut(&self) -> usize {
        let is_between = |at: &usize| self.message.is_char_boundary(*at);
        (0..=MESSAGE_BYTES_MAX).rev().find(is_between).unwrap_or(0)
    }

    fn write_pattern(&self, (message, rest): (&str, &str), to: &mut String) {
        let Self { level, thread, place, .. } = self;
        // writing to a string cannot fail
        let _ = write!(to, "{:<5} [{thread}] {} ", level.name(), date(self.millis));
        let _ = write!(to, "{}:{} - ", place.name(), place.line);
        for c in message.chars() {
            match c {
                // what a peer or client says cannot look like a line of its own
                '\n' => to.push_str("\n\t"),
                '\t' => to.push(c),
                c if c.is_control() => {
                    let _ = write!(to, "\\u{:04x}", u32::from(c));
                }
                c => to.push(c),
            }
        }
        to.push_str(rest);
        to.push('\n');
    }

    fn write_json(&self, (message, rest): (&str, &str), to: &mut String) {
        let Self { level, thread, place, .. } = self;
        let (level, time) = (level.name(), date(self.millis));
        let _ = write!(to, r#"{{"level":"{level}","thread":"{thread}","timestamp":"{time}","#);
        to.push_str("\"file\":\"");
        escape(place.name(), to);
        let _ = write!(to, "\",\"line\":{},\"message\":\"", place.line);
        escape(message, to);
        to.push_str(rest);
        to.push_str("\"}\n");
    }
}

fn escape(text: &str, to: &mut String) {
    for c in text.chars() {
        match c {
            '"' => to.push_str("\\\""),
            '\\' => to.push_str("\\\\"),
            '\n' => to.push_str("\\n"),
            '\r' => to.push_str("\\r"),
            '\t' => to.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(to, "\\u{:04x}", u32::from(c));
            }
            c => to.push(c),
        }
    }
}

/// Day of a time, in days since 1970.
pub(crate) fn day(millis: i64) -> i64 {
    millis.div_euclid(DAY_MILLIS)
}

/// As logback's ISO8601, in UTC: `2026-11-27 03:00:00,123`.
fn date(millis: i64) -> String {
    let of_day = millis.rem_euclid(DAY_MILLIS);
    let (seconds, millis_left) = (of_day / 1000, of_day % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{} {hours:02}:{minutes:02}:{seconds:02},{millis_left:03}", format_date(day(millis)))
}
