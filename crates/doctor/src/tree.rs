//! A machine in one text: for tests, and to look at another machine's facts.
//!
//! ```text
//! # a comment
//! /proc/sys/vm/swappiness: 1
//! /proc/swaps:
//!     Filename Type Size Used Priority
//! /sys/class/block/sda1 -> /sys/devices/pci/block/sda/sda1
//! - /sys/block/sdb
//! space / 1000000 500000 1000 900
//! clock synchronized 1200
//! io_uring yes
//! read-only /var/lib/helenus
//! ```
//!
//! A later line replaces an earlier one; `-` removes all below a path. Lines that begin with
//! `expect`, `node`, `ring` or `like` are for whoever reads the text.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{ClockState, Source, Space};

/// A line that makes no sense.
#[derive(Debug, PartialEq, Eq)]
pub struct TreeError {
    /// Its number, from 1.
    pub line: usize,
    /// The line.
    pub text: String,
}

/// A machine that was written down.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
    spaces: BTreeMap<String, Space>,
    read_only: BTreeSet<String>,
    clock: Option<ClockState>,
    io_uring: Option<Result<(), String>>,
}

impl Tree {
    /// Reads a text over what is there.
    ///
    /// # Errors
    /// If a line makes no sense.
    pub fn read_over(&mut self, text: &str) -> Result<(), TreeError> {
        let mut file: Option<String> = None;
        for (at, line) in text.lines().enumerate() {
            if let (Some(content), Some(path)) = (line.strip_prefix("    "), &file) {
                let text = self.files.entry(path.clone()).or_default();
                text.push_str(content);
                text.push('\n');
                continue;
            }
            file = None;
            if self.line(line, &mut file).is_none() {
                return Err(TreeError { line: at + 1, text: line.to_owned() });
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &str, file: &mut Option<String>) -> Option<()> {
        let word = line.split(' ').next().unwrap_or_default();
        let rest = line.get(word.len()..).unwrap_or_default().trim();
        match word {
            "" | "#" | "expect" | "node" | "ring" | "like" => {}
            "-" => self.remove(rest),
            "space" => {
                let mut parts = rest.split(' ');
                let path = parts.next()?.to_owned();
                let numbers: Vec<u64> = parts.map_while(|part| part.parse().ok()).collect();
                let [bytes, free, inodes, inodes_free] = numbers[..] else { return None };
                self.spaces.insert(path, Space { bytes, free, inodes, inodes_free });
            }
            "clock" => {
                self.clock = match rest.split_once(' ') {
                    None => (rest == "unknown").then_some(None)?,
                    Some((state, error)) => Some(ClockState {
                        is_synchronized: state == "synchronized",
                        error_max_us: error.parse().ok()?,
                    }),
                };
            }
            "io_uring" => {
                let refused = rest.strip_prefix("no: ").map(|why| Err(why.to_owned()));
                self.io_uring = Some(refused.unwrap_or(Ok(())));
            }
            "read-only" => {
                self.read_only.insert(rest.to_owned());
            }
            _ => return self.file_line(line, file),
        }
        Some(())
    }

    fn file_line(&mut self, line: &str, file: &mut Option<String>) -> Option<()> {
        line.starts_with('/').then_some(())?;
        if let Some((from, to)) = line.split_once(" -> ") {
            self.links.insert(from.to_owned(), to.to_owned());
        } else if let Some(path) = line.strip_suffix(':') {
            self.files.insert(path.to_owned(), String::new());
            *file = Some(path.to_owned());
        } else {
            let (path, text) = line.split_once(": ")?;
            self.files.insert(path.to_owned(), format!("{text}\n"));
        }
        Some(())
    }

    fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        let stays = |other: &String| other != path && !other.starts_with(&below);
        self.files.retain(|other, _| stays(other));
        self.links.retain(|other, _| stays(other));
    }
}

impl Source for Tree {
    fn read(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }

    fn list(&self, path: &str) -> Vec<String> {
        let below = format!("{path}/");
        let all = self.files.keys().chain(self.links.keys());
        let names = all.filter_map(|other| other.strip_prefix(&below)?.split('/').next());
        names.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn resolve(&self, path: &str) -> Option<String> {
        Some(self.links.get(path).cloned().unwrap_or_else(|| path.to_owned()))
    }

    fn space(&self, path: &str) -> Option<Space> {
        let holds =
            |point: &str| point == "/" || path == point || path.starts_with(&format!("{point}/"));
        let mut holding = self.spaces.iter().filter(|(point, _)| holds(point));
        holding.next_back().map(|(_, space)| *space)
    }

    fn is_writable(&self, path: &str) -> Option<bool> {
        Some(!self.read_only.contains(path))
    }

    fn clock(&self) -> Option<ClockState> {
        self.clock
    }

    fn io_uring(&self) -> Option<Result<(), String>> {
        self.io_uring.clone()
    }
}
