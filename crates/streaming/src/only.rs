//! What a session is about, and what it announced.

use storage::RepairedState;
use types::Uuid;

use crate::wire::{Preview, Summary};

/// Which SSTables a session is about, and whether any are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Only {
    /// The incremental repair of which they are.
    pub pending_repair: Option<Uuid>,
    /// It only says what it would send.
    pub preview: Preview,
}

impl Only {
    /// All of them, and they are sent.
    pub const ALL: Self = Self { pending_repair: None, preview: Preview::None };

    /// In what state those are.
    pub fn state(self) -> RepairedState {
        match (self.preview, self.pending_repair) {
            (Preview::None, None) | (Preview::All, _) => RepairedState::All,
            (Preview::None, Some(session)) => RepairedState::Pending(session),
            (Preview::Unrepaired, _) => RepairedState::Unrepaired,
            (Preview::Repaired, _) => RepairedState::Repaired,
        }
    }
}

/// What a session announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    /// What comes.
    pub receiving: Vec<Summary>,
    /// What goes.
    pub sending: Vec<Summary>,
}
