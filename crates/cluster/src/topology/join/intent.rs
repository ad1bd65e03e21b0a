//! How a node joins: by what it was, by its settings, and by what the ring says. Pure.

use std::collections::{BTreeMap, BTreeSet};

use config::Config;
use gossip::{AppState, States, Status, read_tokens};
use types::{Address, Token, Uuid};

use super::error::JoinError;
use super::steps::Kind;
use crate::membership::{Life, Nodes};
use crate::saved_place::{Bootstrap, SavedPlace};

/// The node whose place is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub address: Address,
    pub tokens: BTreeSet<Token>,
    /// Its host id, where it is the node that was at this address before.
    pub host_id: Option<[u8; 16]>,
}

/// How the node joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Intent {
    pub kind: Kind,
    /// Whose place it takes.
    pub replaces: Option<Replaced>,
    /// Tokens that it has already; none if it is to choose them.
    pub tokens: BTreeSet<Token>,
}

/// This node, and what it heard.
pub(super) struct Situation<'a> {
    pub config: &'a Config,
    pub local: Address,
    pub host_id: [u8; 16],
    pub saved: &'a SavedPlace,
    /// Does the configuration name it as a seed?
    pub is_seed: bool,
    /// What the ring says of all nodes, this one included.
    pub states: &'a States,
    /// The other nodes of the ring.
    pub others: &'a Nodes,
}

impl Situation<'_> {
    /// How this node joins.
    pub fn intent(&self) -> Result<Intent, JoinError> {
        let joining = &self.config.joining;
        let is_complete = self.saved.bootstrap == Bootstrap::Completed;
        if self.saved.bootstrap == Bootstrap::Decommissioned {
            return Err(JoinError::Decommissioned);
        }
        match joining.replaces {
            Some(replaces) if !is_complete || !replaces.at_first_start_only => {
                let address = replaces.address;
                return self.replacement(Address::new(address.ip(), address.port()));
            }
            _ => {}
        }
        self.check_address()?;
        let tokens = self.saved.tokens.clone();
        let of = |kind, tokens| Ok(Intent { kind, replaces: None, tokens });
        if is_complete {
            let (saved, configured) = (tokens.len(), self.config.num_tokens as usize);
            return match saved == configured || saved == 0 {
                true => of(Kind::Return, tokens),
                false => Err(JoinError::TokenCount { saved, configured }),
            };
        }
        let taken = self.taken();
        let are_good = tokens.len() == self.config.num_tokens as usize
            && !tokens.iter().any(|token| taken.contains_key(token));
        let tokens = if are_good { tokens } else { BTreeSet::new() };
        let has_data = self.others.values().any(|node| node.life.is_member());
        if !has_data || !joining.bootstraps {
            return of(Kind::Settle, tokens);
        }
        // whether a seed has anything to fetch is known once it has the schema
        if !self.is_seed {
            self.check_moving()?;
        }
        of(Kind::Fetch, tokens)
    }

    /// Nodes that own tokens and of which the ring does not say what they are, where that matters:
    /// for a node that is to fetch its data.
    pub fn untold(&self) -> Vec<Address> {
        let is_complete = self.saved.bootstrap == Bootstrap::Completed;
        if is_complete || !self.config.joining.bootstraps {
            return Vec::new();
        }
        let others = self.states.iter().filter(|(address, _)| **address != self.local);
        let is_untold = |(_, state): &(&Address, &gossip::EndpointState)| {
            state.status() == Status::None && state.get(AppState::TOKENS).is_some()
        };
        others.filter(is_untold).map(|(address, _)| *address).collect()
    }

    /// Nobody else may be about to own other tokens.
    pub fn check_moving(&self) -> Result<(), JoinError> {
        self.check_moving_but(None)
    }

    /// The same, whatever a node that is dead was about to do.
    fn check_moving_but(&self, dead: Option<Address>) -> Result<(), JoinError> {
        let moving: Vec<_> = self.moving().filter(|node| Some(*node) != dead).collect();
        match moving.is_empty() || !self.config.joining.is_consistent {
            true => Ok(()),
            false => Err(JoinError::OthersMove(moving)),
        }
    }

    /// Others that are about to own other tokens.
    fn moving(&self) -> impl Iterator<Item = Address> {
        let moves = |life: Life| life != Life::Normal;
        self.others.values().filter(move |node| moves(node.life)).map(|node| node.address)
    }

    /// Another that does what must not be done by two at a time, and that goes on: of two that
    /// began at the same time the one of the lower address does.
    pub fn rival(&self, intent: &Intent) -> Option<Address> {
        let mut others = self.others.values();
        let rival = match &intent.replaces {
            Some(replaced) => others.find(|node| match node.life {
                Life::Replacing(node) if node == replaced.address => true,
                Life::Normal => false,
                _ if !self.config.joining.is_consistent || node.address == replaced.address => {
                    false
                }
                Life::Joining | Life::Replacing(_) => node.address < self.local,
                Life::Leaving | Life::Moving(_) => true,
            }),
            None if self.config.joining.is_consistent => others.find(|node| match node.life {
                Life::Normal => false,
                Life::Joining | Life::Replacing(_) => node.address < self.local,
                Life::Leaving | Life::Moving(_) => true,
            }),
            None => None,
        };
        rival.map(|node| node.address)
    }

    /// Tokens of other nodes.
    pub fn taken(&self) -> BTreeMap<Token, Address> {
        let of = |node: &crate::membership::NodeInfo| {
            let address = node.address;
            node.tokens.clone().into_iter().map(move |token| (token, address))
        };
        self.others.values().flat_map(of).collect()
    }

    /// Nobody else may have this node's address. Who was about to join there may be forgotten, and
    /// so may who had not said yet that it would.
    fn check_address(&self) -> Result<(), JoinError> {
        let Some(own) = self.states.get(&self.local) else { return Ok(()) };
        let host_id = Uuid::from_bytes(self.host_id).to_string();
        let is_another = own.get(AppState::HOST_ID).is_some_and(|other| other != host_id);
        let status = own.status();
        let had_only_begun = status == Status::None && own.get(AppState::TOKENS).is_none();
        let may_go = status.is_dead() || status.is_joining() || had_only_begun;
        match is_another && !may_go {
            true => Err(JoinError::AddressTaken(self.local)),
            false => Ok(()),
        }
    }

    fn replacement(&self, address: Address) -> Result<Intent, JoinError> {
        if self.saved.bootstrap == Bootstrap::Completed {
            return Err(JoinError::ReplaceBootstrapped);
        }
        if !self.config.joining.at_start {
            return Err(JoinError::ReplaceApart);
        }
        if !self.config.joining.bootstraps {
            return Err(JoinError::ReplaceWithoutData);
        }
        let is_there = |status: Status| !status.is_dead() || status == Status::Hibernate;
        let state = self.states.get(&address).filter(|state| is_there(state.status()));
        let state = state.ok_or(JoinError::ReplaceUnknown(address))?;
        let tokens = state.get(AppState::TOKENS).and_then(|text| read_tokens(text).ok());
        let tokens: BTreeSet<Token> = tokens.unwrap_or_default().into_iter().collect();
        if tokens.is_empty() {
            return Err(JoinError::ReplaceNoTokens(address));
        }
        let mut host_id = None;
        if address == self.local {
            let its = state.get(AppState::HOST_ID).and_then(Uuid::parse);
            host_id = Some(its.ok_or(JoinError::ReplaceUnknown(address))?.to_bytes());
        } else {
            self.check_address()?;
        }
        self.check_moving_but(Some(address))?;
        let replaces = Some(Replaced { address, tokens: tokens.clone(), host_id });
        Ok(Intent { kind: Kind::Fetch, replaces, tokens })
    }
}

#[cfg(test)]
mod tests {
    use gossip::{EndpointState, HeartBeat, Versioned};

    use super::*;

    fn node(host: u8) -> Address {
        Address::new([10, 0, 0, host], 7000)
    }

    /// Asks about a node that starts without data, where the ring says this of its address, and
    /// that of another node.
    fn starts<T>(
        replaces: bool,
        (said, of_other): (&[(AppState, &str)], &[(AppState, &str)]),
        ask: impl FnOnce(&Situation<'_>) -> T,
    ) -> T {
        let state = |said: &[(AppState, &str)]| {
            let mut state = EndpointState::new(HeartBeat { generation: 1, version: 1 });
            let values = said.iter().map(|(kind, value)| (*kind, Versioned::new(*value, 1)));
            state.values.extend(values);
            state
        };
        let states = States::from([(node(1), state(said)), (node(2), state(of_other))]);
        let mut config = Config::default();
        if replaces {
            config.set_all(["replace_address_first_boot=10.0.0.2"]).expect("a setting");
        }
        ask(&Situation {
            config: &config,
            local: node(1),
            host_id: [7; 16],
            saved: &SavedPlace::default(),
            is_seed: false,
            states: &states,
            others: &Nodes::new(),
        })
    }

    #[test]
    fn an_address_is_free_of_who_had_only_begun() {
        let host = (AppState::HOST_ID, "00000000-0000-4000-8000-000000000001");
        let [tokens, dead_tokens] = [9, 5].map(|token| gossip::write_tokens(&[Token(token)]));
        let dead = [(AppState::STATUS_WITH_PORT, "NORMAL,5"), (AppState::TOKENS, &*dead_tokens)];
        for replaces in [false, true] {
            let is_free = |said: &[_]| {
                let said = [&[host], said].concat();
                starts(replaces, (&said, &dead), |now| now.intent().is_ok())
            };
            let status = |text| (AppState::STATUS_WITH_PORT, text);
            // it took part in gossip, and was killed before it said what it was about to do
            assert!(is_free(&[]));
            assert!(is_free(&[status("BOOT,1")]) && is_free(&[status("LEFT,1,2")]));
            assert!(is_free(&[status("BOOT_REPLACE,10.0.0.2:7000")]));
            assert!(!is_free(&[status("NORMAL,1")]) && !is_free(&[status("shutdown,true")]));
            assert!(!is_free(&[(AppState::TOKENS, &*tokens)]));
        }
    }

    /// A node that started a moment ago knows of others what it saved: their tokens, and no status.
    #[test]
    fn a_ring_of_which_only_tokens_are_told_is_asked_again() {
        let tokens = gossip::write_tokens(&[Token(5)]);
        let untold = |of_other: &[_]| starts(false, (&[], of_other), |now| now.untold());
        assert_eq!(untold(&[(AppState::TOKENS, &*tokens)]), [node(2)]);
        let normal = (AppState::STATUS_WITH_PORT, "NORMAL,5");
        assert_eq!(untold(&[(AppState::TOKENS, &*tokens), normal]), []);
        // one that owns nothing has only begun
        assert_eq!(untold(&[]), []);
    }
}
