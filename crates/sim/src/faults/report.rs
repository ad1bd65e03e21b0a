//! The table as a page: `docs/faults.md`.

use std::fmt::Write as _;

use super::{Cell, FAULTS, FILES, Fault, Outcome, run};

/// What a cell shows, in a word.
fn word(outcome: &Outcome) -> String {
    match (&outcome.wrong, &outcome.failed[..]) {
        (Some(_), _) => "**lost**".into(),
        (None, _) if outcome.is_aside => "put aside".into(),
        (None, []) => "harmless".into(),
        (None, failed) => {
            let told: Vec<_> = outcome.told.iter().copied().collect();
            match told.is_empty() {
                true => failed.join(", "),
                false => format!("{} ({})", failed.join(", "), told.join(", ")),
            }
        }
    }
}

/// Must the node say by itself what failed? Who asks for a snapshot has the answer, and a start
/// that fails has its error.
fn is_silent(outcome: &Outcome) -> bool {
    let others = |what: &&'static str| !matches!(*what, "snapshot" | "start");
    outcome.told.is_empty() && outcome.failed.iter().any(others)
}

/// What is found of all cells.
#[derive(Default)]
struct Found {
    /// First words of each kind of failure.
    said: String,
    problems: Vec<String>,
}

impl Found {
    fn cell(&mut self, cell: Cell, title: &str) -> String {
        match run(cell) {
            Err(error) => {
                self.problems.push(format!("{title}: {error}"));
                "**broken**".into()
            }
            Ok(outcome) => {
                if let Some(wrong) = &outcome.wrong {
                    let wrong = wrong.lines().next().unwrap_or_default();
                    self.problems.push(format!("{title}: {wrong}"));
                }
                if is_silent(&outcome) {
                    self.problems
                        .push(format!("{title}: nothing was said of {:?}", outcome.failed));
                }
                for text in &outcome.unnamed {
                    self.problems.push(format!("{title}: names no file: {text}"));
                }
                if let Some(text) = &outcome.said {
                    let text = shown(text.lines().next().unwrap_or_default());
                    let _ = writeln!(self.said, "| {title} | `{text}` |");
                }
                word(&outcome)
            }
        }
    }

    /// One table: a row for each kind of file, a column for each fault.
    fn table(
        &mut self,
        (at_rest, best_effort): (bool, bool),
        wanted: impl Fn(Fault) -> bool,
    ) -> String {
        let faults: Vec<_> = FAULTS.into_iter().filter(|(_, fault)| wanted(*fault)).collect();
        let names: Vec<&str> = faults.iter().map(|(name, _)| *name).collect();
        let mut rows =
            format!("| file | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
        for kind in FILES {
            // there is none while nothing is under way
            if kind.name == "transaction log" && !at_rest && wanted(FAULTS[0].1) {
                continue;
            }
            if best_effort && !kind.is_component() {
                continue;
            }
            let _ = write!(rows, "| {} |", kind.name);
            for (name, fault) in &faults {
                let when = match (at_rest, best_effort) {
                    (true, true) => " at rest, best_effort",
                    (true, false) => " at rest",
                    _ => "",
                };
                let cell = Cell { kind, fault: *fault, at_rest, best_effort };
                let word = self.cell(cell, &format!("{}, {name}{when}", kind.name));
                let _ = write!(rows, " {word} |");
            }
            rows.push('\n');
        }
        rows
    }
}

/// A message without the names that differ from table to table.
fn shown(text: &str) -> String {
    let text = text.trim_start_matches("wrong: ").trim_start_matches("unknown: ");
    text.replace("/var/data/sim/t0-01010101010101010101010101010101", "...")
        .replace("/var/data/sim/t1-02020202020202020202020202020202", "...")
}

/// Runs all cells; the page, and what is wrong: lost writes, cells that did not run to their end or
/// did not heal, failures that name no file.
pub fn report() -> (String, Vec<String>) {
    let mut found = Found::default();
    let is_damage = |fault| matches!(fault, Fault::Damage(_));
    let at_rest = found.table((true, false), is_damage);
    let without = found.table((true, true), is_damage);
    let running = found.table((false, false), is_damage);
    let operations = found.table((false, false), |fault| !is_damage(fault));
    let said = found.said;
    let page = format!(
        "{INTRODUCTION}\n## Damaged while the node is down\n\n{at_rest}\n\
         ## The same under best_effort\n\n{without}\n\
         ## Damaged under a running node\n\n{running}\n## Refused by the disk\n\n{operations}\n\
         {REASONS}\n## What is said\n\n| cell | first words |\n|---|---|\n{said}"
    );
    (page, found.problems)
}

const INTRODUCTION: &str = include_str!("introduction.md");
const REASONS: &str = include_str!("reasons.md");
