//! How grave a line is that a node says to its operator.

/// In Cassandra's words, from the least to the gravest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The node did what it was asked to, or what it always does.
    Info,
    /// The node goes on, with less than it was meant to have.
    Warn,
    /// Something failed that the operator has to look at.
    Error,
}

impl Level {
    /// As `system_views.system_logs` shows it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}
