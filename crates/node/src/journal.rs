//! What the node says: to `system_views.system_logs`, which has what it said lately, and to where
//! [`Logs`] has it written.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::Location;
use std::rc::Rc;

use cluster::virtual_tables::LogLine;
use env::Env;
use logging::{Area, Levels, Line, Place, Thread, Threshold};
use metrics::Level;
use storage::shards::{Remote, Stopping};

use crate::log_files::Logs;
use crate::request_writer::RequestWriter;

/// Who says what the log has.
const LOGGER: &str = "helenus.node";
/// Lines kept; the oldest go.
const LINES_MAX: usize = 10_000;
/// Bytes of a line that is kept whole, at least; of a longer one the beginning: others have a say
/// in what is in it.
const LINE_BYTES_MAX: usize = 4 << 10;
/// What is said seldom is said again after this time.
const SELDOM_MILLIS: i64 = 10 * 60 * 1000;

/// What the node says, from any shard; the first one has the lines, and has them written.
pub(crate) struct Journal {
    env: Env,
    others: Remote<Journal>,
    lines: Lines,
    logs: Logs,
    levels: RefCell<Levels>,
}

/// A line on its way to the first shard.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    level: Level,
    place: Place,
    thread: Thread,
    message: String,
}

impl Journal {
    pub fn new(env: &Env, others: Remote<Self>, logs: Logs, start: Threshold) -> Rc<Self> {
        let levels = RefCell::new(Levels::new(start));
        Rc::new(Self { env: env.clone(), others, lines: Lines::default(), logs, levels })
    }

    /// Says something for the operator.
    #[track_caller]
    pub fn say(&self, level: Level, message: String) {
        self.say_at(Location::caller(), level, message);
    }

    /// The same of a place in the sources that handed it on.
    pub fn say_at(&self, at: &'static Location<'static>, level: Level, message: String) {
        let said = self.said(at, level, message);
        match self.others.me() {
            0 => self.take(said),
            _ => self.others.send(0, move |first| first.take(said)),
        }
    }

    /// Says it, unless it was said lately.
    #[track_caller]
    pub fn say_seldom(&self, level: Level, message: String) {
        self.say_seldom_at(Location::caller(), level, message);
    }

    /// The same of a place in the sources that handed it on.
    pub fn say_seldom_at(&self, at: &'static Location<'static>, level: Level, message: String) {
        let said = self.said(at, level, message);
        match self.others.me() {
            0 => self.take_seldom(said),
            _ => self.others.send(0, move |first| first.take_seldom(said)),
        }
    }

    fn said(&self, at: &'static Location<'static>, level: Level, message: String) -> Said {
        let thread = Thread::Shard(self.others.me());
        Said { level, place: at.into(), thread, message }
    }

    fn take(&self, said: Said) {
        let at = self.millis();
        self.write(at, &said);
        self.lines.say(at, said.level, said.message);
    }

    fn take_seldom(&self, said: Said) {
        let at = self.millis();
        if self.lines.is_known(at, &said.message) {
            return;
        }
        self.write(at, &said);
        self.lines.say(at, said.level, said.message);
    }

    fn write(&self, millis: i64, said: &Said) {
        let Said { level, place, thread, message } = said;
        if self.levels.borrow().allow(Area::of(place.file), *level) {
            let (level, place, thread) = (*level, *place, *thread);
            self.logs.offer(|| Line { millis, level, thread, place, message: message.clone() });
        }
    }

    /// Do lines go anywhere but to `system_logs`?
    pub fn is_written(&self) -> bool {
        self.logs.are_written()
    }

    /// What writes the logs of requests, where anything does.
    pub fn request_writer(&self) -> Option<&RequestWriter> {
        self.logs.request_writer()
    }

    /// Has the log's file opened again.
    pub fn reopen(&self) {
        self.logs.reopen();
    }

    /// Which lines are written; on the first shard.
    pub fn levels(&self) -> &RefCell<Levels> {
        &self.levels
    }

    fn millis(&self) -> i64 {
        self.env.unix_micros() / 1000
    }

    /// Forgets all lines: TRUNCATE; on the first shard.
    pub fn forget(&self) {
        self.lines.0.borrow_mut().clear();
    }

    /// All lines, oldest first.
    pub async fn lines(&self) -> Result<Vec<LogLine>, Stopping> {
        self.others.call(0, |first| first.lines.all()).await
    }
}

/// The last lines.
#[derive(Debug, Default)]
struct Lines(RefCell<VecDeque<LogLine>>);

impl Lines {
    fn say(&self, at: i64, level: Level, message: String) {
        let message = match message.len() > LINE_BYTES_MAX {
            true => message.chars().take(LINE_BYTES_MAX / 4).chain("...".chars()).collect(),
            false => message,
        };
        let mut lines = self.0.borrow_mut();
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(LogLine { at, level: level.name(), logger: LOGGER, message });
    }

    /// Was the same said within ten minutes (`NoSpamLogger`)?
    fn is_known(&self, at: i64, message: &str) -> bool {
        let is_recent = |line: &&LogLine| at - line.at < SELDOM_MILLIS;
        self.0.borrow().iter().rev().take_while(is_recent).any(|line| line.message == message)
    }

    fn all(&self) -> Vec<LogLine> {
        self.0.borrow().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_seldom() {
        let lines = Lines::default();
        for (at, text) in
            [(0, "a"), (1, "b"), (2, "a"), (SELDOM_MILLIS - 1, "a"), (SELDOM_MILLIS, "a")]
        {
            if !lines.is_known(at, text) {
                lines.say(at, Level::Warn, text.to_owned());
            }
        }
        let lines: Vec<_> = lines.all().into_iter().map(|line| (line.at, line.message)).collect();
        let expected = [(0, "a"), (1, "b"), (SELDOM_MILLIS, "a")];
        assert_eq!(lines, expected.map(|(at, text)| (at, text.to_owned())));
    }

    #[test]
    fn of_a_long_line_the_beginning_stays() {
        let lines = Lines::default();
        lines.say(1, Level::Warn, "\u{e9}".repeat(LINE_BYTES_MAX));
        let kept = lines.all().remove(0).message;
        assert!(kept.len() <= LINE_BYTES_MAX && kept.ends_with("\u{e9}..."));
    }

    #[test]
    fn the_oldest_lines_go() {
        let lines = Lines::default();
        for n in 0..LINES_MAX + 7 {
            lines.say(n as i64, Level::Info, n.to_string());
        }
        let kept = lines.all();
        assert_eq!((kept.len(), kept[0].at), (LINES_MAX, 7));
    }
}
