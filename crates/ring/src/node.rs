//! A node as the ring sees it.

use std::sync::Arc;

use types::{Address, Token, Uuid};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What the others know it by.
    pub address: Address,
    /// Its id, which outlives its address.
    pub host_id: Uuid,
    /// Its data centre.
    pub data_center: Arc<str>,
    /// Its rack there.
    pub rack: Arc<str>,
    /// The tokens that it owns, or is to own once it has joined.
    pub tokens: Vec<Token>,
    /// What it is doing.
    pub state: State,
    /// Does the failure detector believe in it?
    pub is_up: bool,
    /// Is it this node?
    pub is_local: bool,
    /// Does it take statements of clients (RPC_READY)?
    pub accepts_clients: bool,
}

impl Node {
    /// Does it say the same of where replicas are?
    pub(crate) fn is_placed_as(&self, other: &Self) -> bool {
        let place = |node: &Self| (node.address, node.state, node.is_local);
        place(self) == place(other)
            && self.data_center == other.data_center
            && self.rack == other.rack
            && self.tokens == other.tokens
    }
}

/// What a node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It owns its tokens.
    Normal,
    /// It is about to own them.
    Joining,
    /// It is about to own them, in place of the node of this address.
    Replacing(Address),
    /// It owns them, and gives them up.
    Leaving,
    /// It owns them, and is about to own this one instead.
    Moving(Token),
    /// It owns nothing any more. Whoever has not heard so still reads from it.
    Left,
}

impl State {
    /// Does it own the tokens already?
    pub fn is_member(self) -> bool {
        !matches!(self, Self::Joining | Self::Replacing(_) | Self::Left)
    }

    /// As the second letter of `nodetool status` says it.
    pub fn letter(self) -> char {
        match self {
            Self::Normal => 'N',
            Self::Joining | Self::Replacing(_) => 'J',
            Self::Leaving | Self::Left => 'L',
            Self::Moving(_) => 'M',
        }
    }
}

/// A node by its place among those of one [`Ring`](crate::Ring): means nothing in another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub(crate) u16);

impl NodeIndex {
    /// Place in [`Ring::nodes`](crate::Ring::nodes).
    pub fn at(self) -> usize {
        self.0.into()
    }
}
