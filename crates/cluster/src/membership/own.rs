//! Where this node stands in the ring, and what it says of that.

use std::collections::BTreeSet;
use std::rc::Rc;

use gossip::{AppState, Status, write_tokens};
use types::{Address, Token, Uuid};

use super::Membership;

/// Where this node stands in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// It has no part in it.
    #[default]
    Apart,
    /// It is about to own its tokens: what is written to their ranges is written here too.
    Joining,
    /// The same, in place of the node of that address.
    Replacing(Address),
    /// It owns its tokens, but does not serve: nobody writes to it or reads from it.
    Hibernating,
    /// It owns its tokens.
    Member,
    /// It owns its tokens, and is about to give them up.
    Leaving,
    /// It owns its token, and is about to own this one instead.
    Moving(Token),
}

/// This node's place in the ring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Where it stands.
    pub stage: Stage,
    /// Its tokens: those that it owns or is about to own.
    pub tokens: BTreeSet<Token>,
}

impl Place {
    /// The tokens that are nobody else's.
    pub(super) fn owned(&self) -> BTreeSet<Token> {
        match self.stage {
            Stage::Hibernating | Stage::Member | Stage::Leaving | Stage::Moving(_) => {
                self.tokens.clone()
            }
            Stage::Apart | Stage::Joining | Stage::Replacing(_) => BTreeSet::new(),
        }
    }

    /// What is said of it by gossip: tokens first, for a status without them says nothing.
    pub(super) fn states(&self) -> Vec<(AppState, String)> {
        let first = self.tokens.first().map_or(0, |token| token.0);
        let both = |status: String| Some((status.clone(), status));
        let status = match self.stage {
            Stage::Apart => None,
            Stage::Joining => both(Status::boot(first)),
            // the old form has no port
            Stage::Replacing(node) => {
                Some((Status::boot_replace(node), Status::boot_replace(node.ip)))
            }
            Stage::Hibernating => both(Status::HIBERNATE.to_owned()),
            Stage::Member => both(Status::normal(first)),
            Stage::Leaving => both(Status::leaving(first)),
            Stage::Moving(to) => both(Status::moving(to.0)),
        };
        let mut states = Vec::new();
        if !self.tokens.is_empty() {
            let tokens: Vec<Token> = self.tokens.iter().copied().collect();
            states.push((AppState::TOKENS, write_tokens(&tokens)));
        }
        if let Some((with_port, without)) = status {
            states.push((AppState::STATUS_WITH_PORT, with_port));
            states.push((AppState::STATUS, without));
        }
        states
    }
}

impl Place {
    /// What is said of it at the start: a node that owns tokens says so only once it has heard of
    /// the others.
    pub(super) fn first_states(&self) -> Vec<(AppState, String)> {
        let is_member = self.stage == Stage::Member;
        let mut states = self.states();
        states.retain(|(kind, _)| !is_member || *kind == AppState::TOKENS);
        states
    }
}

impl Membership {
    /// Where this node stands.
    pub fn place(&self) -> Place {
        self.place.borrow().clone()
    }

    /// This node stands elsewhere from now on: it says so, and every shard knows.
    pub(crate) fn take_place(self: &Rc<Self>, place: Place) {
        let states = place.states();
        if let Stage::Replacing(node) = place.stage {
            self.replaced.set(Some(node));
        }
        let before = self.place.replace(place).stage;
        if matches!(before, Stage::Joining | Stage::Replacing(_) | Stage::Moving(_)) {
            self.remember_ring();
        }
        self.publish(states);
        self.look_around();
    }

    /// This node as the ring sees it.
    pub(super) fn own_node(&self) -> ring::Node {
        let (identity, place) = (&self.shard.identity, self.place.borrow());
        ring::Node {
            address: self.local(),
            host_id: Uuid::from_bytes(self.shard.engine.host_id()),
            data_center: identity.data_center.as_str().into(),
            rack: identity.rack.as_str().into(),
            tokens: place.tokens.iter().copied().collect(),
            state: match place.stage {
                Stage::Apart | Stage::Joining => ring::State::Joining,
                Stage::Replacing(node) => ring::State::Replacing(node),
                Stage::Hibernating | Stage::Member => ring::State::Normal,
                Stage::Leaving => ring::State::Leaving,
                Stage::Moving(to) => ring::State::Moving(to),
            },
            is_up: true,
            is_local: true,
            accepts_clients: self.serves_clients.get(),
        }
    }
}
