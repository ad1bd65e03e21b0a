//! Numbers that stand for something: kinds of preview, states of sessions.

use std::fmt;

use types::Uuid;

use super::error::PayloadError;

/// Which SSTables a repair looks at that repairs nothing (`streaming.PreviewKind`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreviewKind {
    /// It repairs.
    #[default]
    None,
    /// All.
    All,
    /// Those that are not repaired.
    Unrepaired,
    /// Those that are.
    Repaired,
}

impl PreviewKind {
    const ALL: [Self; 4] = [Self::None, Self::All, Self::Unrepaired, Self::Repaired];

    /// As payloads have it.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The kind with this number.
    pub fn of_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// As `nodetool` sends it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::All => "ALL",
            Self::Unrepaired => "UNREPAIRED",
            Self::Repaired => "REPAIRED",
        }
    }

    /// The kind with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Does it repair nothing?
    pub fn is_preview(self) -> bool {
        self != Self::None
    }

    /// What lines of the log about a session begin with, in Cassandra's words:
    /// `[preview repair #6ba7b810-9dad-11d1-80b4-00c04fd430c8]`.
    pub fn log_prefix(self, session: Uuid) -> String {
        format!("[{} #{session}]", self.log_word())
    }

    /// `repair` or `preview repair` (`logPrefix` without a session).
    pub fn log_word(self) -> &'static str {
        if self.is_preview() { "preview repair" } else { "repair" }
    }

    pub(super) fn read(number: i32) -> Result<Self, PayloadError> {
        Self::of_number(number).ok_or(PayloadError::kind("kind of preview", number))
    }
}

impl fmt::Display for PreviewKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far an incremental repair has come (`consistent.ConsistentSession.State`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionState {
    /// Replicas separate the data that is to be repaired.
    Preparing,
    /// They have.
    Prepared,
    /// They validate and stream.
    Repairing,
    /// A replica will do as the coordinator decides.
    FinalizePromised,
    /// The data is repaired.
    Finalized,
    /// The data is not repaired.
    Failed,
}

impl SessionState {
    const ALL: [Self; 6] = [
        Self::Preparing,
        Self::Prepared,
        Self::Repairing,
        Self::FinalizePromised,
        Self::Finalized,
        Self::Failed,
    ];

    /// As payloads and `system.repairs` have it.
    pub fn number(self) -> i32 {
        self as i32
    }

    /// The state with this number.
    pub fn of_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.number() == number)
    }

    /// In Cassandra's words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preparing => "PREPARING",
            Self::Prepared => "PREPARED",
            Self::Repairing => "REPAIRING",
            Self::FinalizePromised => "FINALIZE_PROMISED",
            Self::Finalized => "FINALIZED",
            Self::Failed => "FAILED",
        }
    }

    /// May a session go from this state to that? A message that comes twice changes nothing, and so
    /// each state leads to itself.
    pub fn can_become(self, next: Self) -> bool {
        let is_over = matches!(self, Self::Finalized | Self::Failed);
        let fails = next == Self::Failed && !is_over;
        next == self || fails || (!is_over && next.number() == self.number() + 1)
    }

    pub(super) fn read(number: i32) -> Result<Self, PayloadError> {
        Self::of_number(number).ok_or(PayloadError::kind("state of a session", number))
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
