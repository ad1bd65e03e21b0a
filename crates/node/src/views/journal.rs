//! What the node said lately: `system_views.system_logs`.

use std::cell::RefCell;
use std::collections::VecDeque;

use cluster::virtual_tables::LogLine;

/// Lines kept; the oldest go.
const LINES_MAX: usize = 10_000;
/// Bytes of a line that is kept whole, at least; of a longer one the beginning: others have a say
/// in what is in it.
const LINE_BYTES_MAX: usize = 4 << 10;
/// What is said seldom is said again after this time.
const SELDOM_MILLIS: i64 = 10 * 60 * 1000;

/// The last lines.
#[derive(Debug, Default)]
pub(crate) struct Journal(RefCell<VecDeque<LogLine>>);

impl Journal {
    /// Keeps a line.
    pub fn say(&self, at: i64, level: &'static str, logger: &'static str, message: String) {
        let message = match message.len() > LINE_BYTES_MAX {
            true => message.chars().take(LINE_BYTES_MAX / 4).chain("...".chars()).collect(),
            false => message,
        };
        let mut lines = self.0.borrow_mut();
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(LogLine { at, level, logger, message });
    }

    /// Keeps a line, unless the same was said within ten minutes (`NoSpamLogger`).
    pub fn say_seldom(&self, at: i64, level: &'static str, logger: &'static str, message: String) {
        let is_recent = |line: &&LogLine| at - line.at < SELDOM_MILLIS;
        let known =
            self.0.borrow().iter().rev().take_while(is_recent).any(|l| l.message == message);
        if !known {
            self.say(at, level, logger, message);
        }
    }

    /// Forgets all lines: TRUNCATE.
    pub fn forget(&self) {
        self.0.borrow_mut().clear();
    }

    /// All lines, oldest first.
    pub fn lines(&self) -> Vec<LogLine> {
        self.0.borrow().iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_said_seldom() {
        let journal = Journal::default();
        for (at, text) in
            [(0, "a"), (1, "b"), (2, "a"), (SELDOM_MILLIS - 1, "a"), (SELDOM_MILLIS, "a")]
        {
            journal.say_seldom(at, "WARN", "node", text.to_owned());
        }
        let lines: Vec<_> =
            journal.lines().into_iter().map(|line| (line.at, line.message)).collect();
        let expected = [(0, "a"), (1, "b"), (SELDOM_MILLIS, "a")];
        assert_eq!(lines, expected.map(|(at, text)| (at, text.to_owned())));
    }

    #[test]
    fn of_a_long_line_the_beginning_stays() {
        let journal = Journal::default();
        journal.say(1, "WARN", "node", "\u{e9}".repeat(LINE_BYTES_MAX));
        let kept = journal.lines().remove(0).message;
        assert!(kept.len() <= LINE_BYTES_MAX && kept.ends_with("\u{e9}..."));
    }

    #[test]
    fn the_oldest_lines_go() {
        let journal = Journal::default();
        for n in 0..LINES_MAX + 7 {
            journal.say(n as i64, "INFO", "node", n.to_string());
        }
        let lines = journal.lines();
        assert_eq!((lines.len(), lines[0].at), (LINES_MAX, 7));
    }
}
