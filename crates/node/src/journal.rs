//! What the node said lately: `system_views.system_logs`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use cluster::virtual_tables::LogLine;
use env::Env;
use metrics::Level;
use storage::shards::{Remote, Stopping};

/// Who says what the log has.
const LOGGER: &str = "helenus.node";
/// Lines kept; the oldest go.
const LINES_MAX: usize = 10_000;
/// Bytes of a line that is kept whole, at least; of a longer one the beginning: others have a say
/// in what is in it.
const LINE_BYTES_MAX: usize = 4 << 10;
/// What is said seldom is said again after this time.
const SELDOM_MILLIS: i64 = 10 * 60 * 1000;

/// What the node says, from any shard; the first one has the lines.
pub(crate) struct Journal {
    env: Env,
    others: Remote<Journal>,
    lines: Lines,
}

impl Journal {
    pub fn new(env: &Env, others: Remote<Self>) -> Rc<Self> {
        Rc::new(Self { env: env.clone(), others, lines: Lines::default() })
    }

    /// Says something for the operator.
    pub fn say(&self, level: Level, message: String) {
        match self.others.me() {
            0 => self.lines.say(self.millis(), level, message),
            _ => self.others.send(0, move |first| first.say(level, message)),
        }
    }

    /// Says it, unless it was said lately.
    pub fn say_seldom(&self, level: Level, message: String) {
        match self.others.me() {
            0 => self.lines.say_seldom(self.millis(), level, message),
            _ => self.others.send(0, move |first| first.say_seldom(level, message)),
        }
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

    /// Keeps a line, unless the same was said within ten minutes (`NoSpamLogger`).
    fn say_seldom(&self, at: i64, level: Level, message: String) {
        let is_recent = |line: &&LogLine| at - line.at < SELDOM_MILLIS;
        let known =
            self.0.borrow().iter().rev().take_while(is_recent).any(|l| l.message == message);
        if !known {
            self.say(at, level, message);
        }
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
            lines.say_seldom(at, Level::Warn, text.to_owned());
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
