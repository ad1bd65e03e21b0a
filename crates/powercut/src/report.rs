//! The tables that a campaign prints and keeps.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::cut::{self, Life};
use crate::kill;
use crate::node::{Mode, PERIOD};
use crate::omit;

/// What a mode came to.
#[derive(Default)]
pub struct Row {
    mode: &'static str,
    /// Recorded runs, entries of their logs, and acknowledged writes in them.
    runs: (u64, u64, u64),
    /// Power cuts.
    pub cuts: cut::Tally,
    /// Kills of the program.
    pub kills: kill::Tally,
}

impl Row {
    /// Of a mode.
    pub fn new(mode: Mode) -> Self {
        Self { mode: mode.name(), ..Self::default() }
    }

    /// Another recorded run.
    pub fn run(&mut self, life: &Life) {
        let versions = life.history.keys.values().flatten();
        let acked = versions.filter(|version| version.acked.is_some()).count();
        self.runs.0 += 1;
        self.runs.1 += life.recording.entries().len() as u64;
        self.runs.2 += acked as u64;
        self.cuts.errors += life.history.errors.len() as u64;
        for error in life.history.errors.iter().take(3) {
            println!("{}: under load: {error}", self.mode);
        }
    }
}

/// A whole campaign.
#[derive(Default)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
    /// The modes.
    pub rows: Vec<Row>,
    /// The classes left out.
    pub omitted: Vec<omit::Line>,
    /// What was wrong.
    pub wrong: Vec<String>,
}

/// A line's first sentence, short enough for a table.
fn short(text: &str) -> String {
    const MOST: usize = 100;
    let line = text.lines().next().unwrap_or_default().replace('|', "/");
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", line.get(..at).unwrap_or_default()),
        None => line,
    }
}

impl Report {
    /// Is everything as it must be?
    pub fn is_good(&self) -> bool {
        self.wrong.is_empty() && self.omitted.iter().all(|line| line.found.is_some())
    }

    fn tables(&self) -> String {
        let mut out = String::new();
        let mut line = |text: String| {
            out.push_str(&text);
            out.push('\n');
        };
        line("| mode | runs | log entries | acked | kills | power cuts | later cuts | images | restarts | acked writes checked | schema changes checked | oldest ack lost |".into());
        line("|---|---|---|---|---|---|---|---|---|---|---|---|".into());
        for row in &self.rows {
            let (cuts, kills) = (&row.cuts, &row.kills);
            line(format!(
                "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} ms |",
                row.mode,
                row.runs.0,
                row.runs.1,
                row.runs.2,
                kills.kills,
                cuts.cuts,
                cuts.later_cuts,
                cuts.images,
                cuts.restarts + kills.restarts,
                cuts.checked.writes + kills.checked.writes,
                cuts.checked.changes + kills.checked.changes,
                cuts.checked.lost_age.max(kills.checked.lost_age).as_millis(),
            ));
        }
        if !self.omitted.is_empty() {
            line(String::new());
            line("| mode | left out | syncs | cuts until found | shown by |".into());
            line("|---|---|---|---|---|".into());
        }
        for omitted in &self.omitted {
            let (cuts, shown) = match &omitted.found {
                Some(found) => (omitted.cuts.to_string(), short(found)),
                None => (format!("not in {}", omitted.cuts), String::new()),
            };
            let (mode, class, syncs) = (omitted.mode, &omitted.class, omitted.syncs);
            line(format!("| {mode} | {class} | {syncs} | {cuts} | {shown} |"));
        }
        out
    }

    /// Prints everything.
    pub fn print(&self) {
        println!("\n{}", self.tables());
        for wrong in &self.wrong {
            println!("WRONG: {wrong}");
        }
        let found = self.omitted.iter().filter(|line| line.found.is_some()).count();
        let errors: u64 = self.rows.iter().map(|row| row.cuts.errors).sum();
        let good: u64 = self.rows.iter().map(|row| row.cuts.cuts + row.kills.kills).sum();
        let unseen = self.omitted.len() - found;
        let failed = self.wrong.len() + unseen;
        println!(
            "seed {}, {} s, period {} ms: {} wrong, {found} of {} classes left out were found, {errors} statements failed",
            self.seed,
            self.took.as_secs(),
            PERIOD.as_millis(),
            self.wrong.len(),
            self.omitted.len(),
        );
        let passed = (good as usize + found).saturating_sub(self.wrong.len());
        println!("checks: {passed} passed, {failed} failed");
    }

    /// Adds the campaign to a file of campaigns.
    pub fn append(&self, path: &Path, commit: &str) -> std::io::Result<()> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(
            file,
            "\n## {commit}, seed {}, {} s: {}\n\n{}",
            self.seed,
            self.took.as_secs(),
            if self.is_good() { "good" } else { "not good" },
            self.tables()
        )
    }
}
