//! When the log goes on in a new file, and which old ones go
//! (`SizeAndTimeBasedRollingPolicy` of logback).

use types::time::format_date;

use crate::line::day;

/// The log's file.
pub const FILE: &str = "system.log";

/// How files roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The file that is written.
    pub file: &'static str,
    /// Bytes of a file that end it.
    pub file_bytes: u64,
    /// Days whose files are kept; 0: all.
    pub days: u32,
    /// Bytes of all rolled files, at most; 0: no limit.
    pub total_bytes: u64,
}

/// The file that is written, as far as rolling goes.
#[derive(Clone, Debug)]
pub struct Rolling {
    settings: Settings,
    /// Days since 1970.
    day: i64,
    bytes: u64,
}

impl Rolling {
    /// Of a file of so many bytes, last written at that time.
    pub fn new(settings: Settings, bytes: u64, millis: i64) -> Self {
        Self { settings, day: day(millis), bytes }
    }

    /// Has the file to be rolled before more is written at this time?
    pub fn is_due(&self, millis: i64) -> bool {
        // a clock that goes back makes no file of the day before
        self.bytes > 0 && (self.bytes >= self.settings.file_bytes || day(millis) > self.day)
    }

    /// So many bytes were written.
    pub fn wrote(&mut self, bytes: u64, millis: i64) {
        if self.bytes == 0 {
            self.day = day(millis);
        }
        self.bytes += bytes;
    }

    /// The name that the file gets, beside these: of the day on which it was begun.
    pub fn rolled_name(&self, names: &[String]) -> String {
        let file = self.settings.file;
        let indexes = names.iter().filter_map(|name| rolled(name, file));
        let of_day = indexes.filter(|(date, _)| **date == format_date(self.day));
        let index = of_day.map(|(_, index)| index + 1).max().unwrap_or(0);
        format!("{file}.{}.{index}", format_date(self.day))
    }

    /// The rolled file takes another name, and a new one is begun.
    pub fn rolled(&mut self, millis: i64) {
        (self.bytes, self.day) = (0, day(millis));
    }

    /// Which rolled files go at this time, of all files with their bytes.
    pub fn expired(&self, files: &[(String, u64)], millis: i64) -> Vec<String> {
        let kept = |(name, bytes): &(String, u64)| {
            let (date, index) = rolled(name, self.settings.file)?;
            Some((date.to_owned(), index, name.clone(), *bytes))
        };
        let mut found: Vec<_> = files.iter().filter_map(kept).collect();
        found.sort();
        let first = format_date(day(millis).saturating_sub(i64::from(self.settings.days)));
        let (days, total) = (self.settings.days, self.settings.total_bytes);
        let mut sum = 0u64;
        // newest first: the oldest go
        let mut gone: Vec<String> = Vec::new();
        for (date, _, name, bytes) in found.into_iter().rev() {
            sum = sum.saturating_add(bytes);
            if (days > 0 && date < first) || (total > 0 && sum > total) {
                gone.push(name);
            }
        }
        gone
    }
}

/// Day and number of a file that has rolled, by its name; of another file none.
fn rolled<'a>(name: &'a str, file: &str) -> Option<(&'a str, u64)> {
    let (date, index) = name.strip_prefix(file)?.strip_prefix('.')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = date.split('-').collect();
    let lengths = parts.iter().map(|part| part.len());
    let is_date = lengths.eq([4, 2, 2]) && parts.iter().all(|part| digits(part));
    let index = digits(index).then(|| index.parse().ok())??;
    is_date.then_some((date, index))
}
