//! A participant's part of an incremental repair (`LocalSession`).

use std::collections::BTreeSet;

use repair::wire::SessionState;
use schema::TableId;
use types::{Address, TokenRange, Uuid};

/// An incremental repair, as this node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSession {
    /// Which: the repair's own name.
    pub id: Uuid,
    /// How far it is.
    pub state: SessionState,
    /// Who coordinates it.
    pub coordinator: Address,
    /// Its tables.
    pub tables: BTreeSet<TableId>,
    /// When what it is about counts as repaired, in milliseconds since 1970; 0 for never.
    pub repaired_at: i64,
    /// The ranges that it is about.
    pub ranges: BTreeSet<TokenRange>,
    /// Who takes part.
    pub participants: BTreeSet<Address>,
    /// When it began, in seconds since 1970.
    pub started: i64,
    /// When something last became of it, in seconds since 1970.
    pub updated: i64,
}

impl LocalSession {
    /// Is it over?
    pub fn is_over(&self) -> bool {
        matches!(self.state, SessionState::Finalized | SessionState::Failed)
    }

    /// May this node say something of it?
    pub(super) fn knows(&self, node: Address) -> bool {
        node == self.coordinator || self.participants.contains(&node)
    }

    /// Is a range among those that it is about, in part?
    pub fn meets(&self, ranges: &[TokenRange]) -> bool {
        let own = TokenRange::normalize(self.ranges.iter().copied());
        let asked = TokenRange::normalize(ranges.iter().copied());
        asked.iter().any(|range| range.without(&own) != [*range])
    }
}
