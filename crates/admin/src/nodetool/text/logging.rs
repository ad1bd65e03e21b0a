//! Levels of the log: `tools.nodetool.GetLoggingLevels`, `SetLoggingLevel`.

use std::fmt::Write as _;

use crate::model::LoggerLevel;

/// A table of loggers and their levels.
pub(super) fn levels(of: &[LoggerLevel]) -> String {
    let mut out = format!("\n{:<50}{:>10}\n", "Logger Name", "Log Level");
    for LoggerLevel { logger, level } in of {
        // writing to a string cannot fail
        let _ = writeln!(out, "{logger:<50}{level:>10}");
    }
    out
}

/// Names that no line is said under. Cassandra says nothing.
pub(super) fn unheard(names: &[String]) -> String {
    let names = names.join(", ");
    format!(
        "Helenus logs nothing under {names}: see docs/operating.md, Logs, for the names it knows\n"
    )
}
