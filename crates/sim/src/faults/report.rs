//! The table as a page: `docs/faults.md`.

use std::fmt::Write as _;

use super::{Cell, FAULTS, FILES, Outcome, run};

/// What a cell shows, in a word.
fn word(outcome: &Outcome) -> String {
    match (&outcome.wrong, &outcome.failed[..]) {
        (Some(_), _) => "**wrong**".into(),
        (None, []) => "harmless".into(),
        (None, failed) => failed.join(", "),
    }
}

/// Runs all cells; the page, and those cells with a wrong answer, or that did not run to their end.
pub fn report() -> (String, Vec<String>) {
    let (mut rows, mut said, mut problems) = (String::new(), String::new(), Vec::new());
    for kind in FILES {
        let _ = write!(rows, "| {} |", kind.name);
        for (name, fault) in FAULTS {
            let title = format!("{}, {name}", kind.name);
            match run(Cell { kind, fault }) {
                Err(error) => {
                    problems.push(format!("{title}: {error}"));
                    let _ = write!(rows, " **broken** |");
                }
                Ok(outcome) => {
                    let _ = write!(rows, " {} |", word(&outcome));
                    if let Some(wrong) = &outcome.wrong {
                        let wrong = wrong.lines().next().unwrap_or_default();
                        problems.push(format!("{title}: {wrong}"));
                    }
                    if let Some(text) = &outcome.said {
                        let text = text.lines().next().unwrap_or_default();
                        let _ = writeln!(said, "| {title} | `{text}` |");
                    }
                }
            }
        }
        rows.push('\n');
    }
    let names: Vec<&str> = FAULTS.iter().map(|(name, _)| *name).collect();
    let head = format!("| file | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    (
        format!(
            "{INTRODUCTION}\n{head}{rows}\n{REASONS}\n{SAID}\n| cell | first words |\n|---|---|\n{said}"
        ),
        problems,
    )
}

const INTRODUCTION: &str = "# Faults of a disk";
const REASONS: &str = "";
const SAID: &str = "";
