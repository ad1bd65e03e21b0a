//! nodetool: its verbs, and what it prints of the value that a node answers with.

mod format;
pub(crate) mod guardrails;
mod reply;
mod sorted;
mod text;
pub(crate) mod verb;

pub use format::{Command, Format};
pub use guardrails::{Category, GuardrailFilter};
pub use reply::{Mismatch, Reply};
pub use text::samples::found as samples_text;
pub use verb::{
    AccessVerb, CachesVerb, CompactionVerb, HintsVerb, NetworkVerb, NodeVerb, RateUnit,
    RepairArguments, RepairVerb, RequestLogsVerb, RingVerb, SSTablesVerb, SamplesVerb, Selection,
    SettingsVerb, Share, SnapshotsVerb, StatsFormat, StreamLimit, TableFilter, TablesVerb, Verb,
    VerbError, help,
};
