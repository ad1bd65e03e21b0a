//! What is known of a node of the ring, out of what it says of itself by gossip.
//!
//! No other node gets this node's host id or tokens, whatever it says.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use gossip::{AppState, EndpointState, Status, read_tokens};
use metrics::Level;
use types::{Address, Token, Uuid};

/// Conflicts that the operator is told of at once, at most.
const CONFLICTS_TOLD: usize = 16;

/// Where a node stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It is about to own its tokens.
    Joining,
    /// It is about to own them in place of the node of that address.
    Replacing(Address),
    /// It owns its tokens.
    Normal,
    /// It owns its tokens, and is about to give them up.
    Leaving,
    /// It owns its tokens, and is about to own that one instead, if it said which.
    Moving(Option<Token>),
}

impl Life {
    /// Of what a node says; a node of before 4.0 names the one it replaces without its port, which
    /// is its own.
    fn of(status: &Status, own_port: u16) -> Option<Self> {
        match status {
            Status::Boot => Some(Self::Joining),
            Status::BootReplace(node) => {
                let of_ip = |ip: IpAddr| SocketAddr::new(ip, own_port);
                let address = node.parse().or_else(|_| node.parse().map(of_ip)).ok()?;
                Some(Self::Replacing(Address::new(address.ip(), address.port())))
            }
            Status::Normal | Status::Shutdown | Status::Hibernate => Some(Self::Normal),
            // who is removed owns its tokens until its replicas are elsewhere
            Status::Leaving | Status::Removing => Some(Self::Leaving),
            Status::Moving(to) => Some(Self::Moving(to.map(Token))),
            _ => None,
        }
    }

    /// Does it own its tokens?
    pub fn is_member(self) -> bool {
        !matches!(self, Self::Joining | Self::Replacing(_))
    }
}

/// A node of the ring.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeInfo {
    /// Where other nodes reach it.
    pub address: Address,
    /// Where clients reach it.
    pub native: SocketAddr,
    /// Its host id.
    pub host_id: [u8; 16],
    /// Its data center.
    pub data_center: String,
    /// Its rack.
    pub rack: String,
    /// Its release.
    pub release: String,
    /// Its tokens, in order.
    pub tokens: Vec<Token>,
    /// Its version of the schema.
    pub schema: Option<[u8; 16]>,
    /// Bytes that it stores.
    pub load: Option<f64>,
    /// Where it stands.
    pub life: Life,
    /// Is it up?
    pub is_up: bool,
    /// Does it serve clients?
    pub serves_clients: bool,
    /// When it was last started, in seconds since 1970.
    pub generation: i32,
    /// The host id of who removes it, if it is being removed.
    pub remover: Option<[u8; 16]>,
}

/// The port of clients where a node does not say it: one of before 4.0.
const NATIVE_PORT: u16 = 9042;

/// Who removes a node (`VersionedValue.REMOVAL_COORDINATOR`).
fn remover(state: &EndpointState) -> Option<[u8; 16]> {
    let said = state.get(AppState::REMOVAL_COORDINATOR)?.strip_prefix("REMOVER,")?;
    uuid(said).filter(|_| state.status() == Status::Removing)
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    Uuid::parse(text).map(Uuid::to_bytes)
}

impl NodeInfo {
    /// Of what it says; none of one that is no part of the ring, or does not say enough yet.
    pub fn of(address: Address, state: &EndpointState, is_up: bool) -> Option<Self> {
        let text = |kind| state.get(kind).unwrap_or_default();
        let life = Life::of(&state.status(), address.port)?;
        let mut tokens = read_tokens(text(AppState::TOKENS)).ok().filter(|t| !t.is_empty())?;
        tokens.sort_unstable();
        tokens.dedup();
        let rpc = text(AppState::RPC_ADDRESS).parse::<IpAddr>().unwrap_or(address.ip);
        let native = text(AppState::NATIVE_ADDRESS_AND_PORT).parse();
        Some(Self {
            address,
            native: native.unwrap_or_else(|_| SocketAddr::new(rpc, NATIVE_PORT)),
            host_id: uuid(text(AppState::HOST_ID))?,
            data_center: text(AppState::DC).to_owned(),
            rack: text(AppState::RACK).to_owned(),
            release: text(AppState::RELEASE_VERSION).to_owned(),
            tokens,
            schema: uuid(text(AppState::SCHEMA)),
            load: text(AppState::LOAD).parse().ok(),
            life,
            is_up,
            serves_clients: text(AppState::RPC_READY).eq_ignore_ascii_case("true"),
            generation: state.heartbeat.generation,
            remover: remover(state),
        })
    }

    /// A node that started again, and does not say yet what it is: it owns what it owned, and what
    /// it was about to own it is written to still (`StorageService` takes nothing from one that
    /// says nothing): it may have become a member just before it died. None if it says what it is,
    /// or is another node.
    pub fn starting(&self, state: &EndpointState, is_up: bool) -> Option<Self> {
        let said = state.get(AppState::HOST_ID).and_then(uuid);
        let is_same = self.life.is_member() || said.is_none_or(|said| said == self.host_id);
        let is_silent = state.status() == Status::None && is_same;
        is_silent.then(|| Self {
            is_up,
            serves_clients: state
                .get(AppState::RPC_READY)
                .is_some_and(|ready| ready.eq_ignore_ascii_case("true")),
            generation: state.heartbeat.generation,
            ..self.clone()
        })
    }

    /// As the ring sees it.
    pub(super) fn node(&self) -> ring::Node {
        ring::Node {
            address: self.address,
            host_id: Uuid::from_bytes(self.host_id),
            data_center: self.data_center.as_str().into(),
            rack: self.rack.as_str().into(),
            tokens: self.tokens.clone(),
            state: match self.life {
                Life::Joining => ring::State::Joining,
                Life::Replacing(node) => ring::State::Replacing(node),
                Life::Normal => ring::State::Normal,
                Life::Leaving => ring::State::Leaving,
                Life::Moving(Some(to)) => ring::State::Moving(to),
                Life::Moving(None) => ring::State::Normal,
            },
            is_up: self.is_up,
            is_local: false,
            accepts_clients: self.serves_clients,
        }
    }

    /// May clients be told that it is up?
    pub fn is_usable(&self) -> bool {
        self.is_up && self.serves_clients && self.life.is_member()
    }

    /// Is it the same but for what changes all the time and is not stored?
    pub fn is_stored_alike(&self, other: &Self) -> bool {
        let stored = |node: &Self| Self {
            load: None,
            is_up: false,
            serves_clients: false,
            generation: 0,
            remover: None,
            ..node.clone()
        };
        stored(self) == stored(other)
    }
}

/// The other nodes of the ring, by address.
pub type Nodes = BTreeMap<Address, NodeInfo>;

/// What two nodes say that only one of them can be. The operator is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// One has this node's host id.
    OwnHost(Address),
    /// Two have one host id.
    Host {
        /// Who has it.
        kept: Address,
        /// Who is in the ring no more.
        gone: Address,
    },
    /// One says that it owns this node's tokens.
    OwnTokens {
        /// Who.
        node: Address,
        /// How many.
        tokens: usize,
    },
    /// Two say that they own the same tokens.
    Tokens {
        /// Whose they are.
        owner: Address,
        /// Who else says so.
        node: Address,
        /// How many.
        tokens: usize,
    },
    /// One took all tokens of another that is down.
    Replaced {
        /// Who is in the ring no more.
        old: Address,
        /// Who owns its tokens.
        by: Address,
    },
}

impl Conflict {
    /// How grave it is: a node that took the place of another was to do so.
    pub fn level(&self) -> Level {
        match self {
            Self::Replaced { .. } => Level::Info,
            _ => Level::Warn,
        }
    }
}

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OwnHost(node) => {
                write!(
                    f,
                    "left /{node} out of the ring: it has the host ID of this node; check that it \
                     does not run on a copy of this data directory"
                )
            }
            Self::Host { kept, gone } => write!(
                f,
                "left /{gone} out of the ring: /{kept} has the same host ID and started last; \
                 check that they do not run on copies of one data directory"
            ),
            Self::OwnTokens { node, tokens } => {
                write!(
                    f,
                    "/{node} claims {tokens} tokens of this node: this node keeps them; stop \
                     /{node} and start it with other tokens"
                )
            }
            Self::Tokens { owner, node, tokens } => write!(
                f,
                "/{owner} and /{node} both claim {tokens} tokens: counted them as tokens of \
                 /{owner}, as it started last; stop one of the two and start it with other tokens"
            ),
            Self::Replaced { old, by } => {
                write!(
                    f,
                    "/{by} owns all tokens of /{old}, which is down: took /{old} out of the ring"
                )
            }
        }
    }
}

/// What this node is, whatever others say.
pub struct Own {
    /// Where it is.
    pub address: Address,
    /// Its host id.
    pub host_id: [u8; 16],
    /// The tokens that it owns.
    pub tokens: BTreeSet<Token>,
    /// Whose place it took in this start.
    pub replaced: Option<Address>,
    /// The nodes that were members of the ring until now.
    pub members: BTreeSet<Address>,
}

/// Takes out what two nodes cannot both be: of two with the same host id the one that started last
/// is in the ring, and of a token that two say to own that one is the owner
/// (`StorageService.handleStateNormal`). Who is down and lost all its tokens to one that started
/// later was replaced. This node is who it is, and its tokens are its own, whatever others say:
/// Cassandra would give up tokens to a node that started later.
pub fn settle(nodes: &mut Nodes, own: &Own) -> Vec<Conflict> {
    let mut newest_first: Vec<_> =
        nodes.values().map(|node| (Reverse(node.generation), node.address)).collect();
    newest_first.sort_unstable();
    let newest_first: Vec<_> = newest_first.into_iter().map(|(_, address)| address).collect();
    let mut conflicts = settle_hosts(nodes, own, &newest_first);
    let mut owners: BTreeMap<Token, Address> = BTreeMap::new();
    for address in newest_first {
        let Some(node) = nodes.get_mut(&address).filter(|n| n.life.is_member()) else {
            continue;
        };
        let mut lost: BTreeMap<Address, usize> = BTreeMap::new();
        node.tokens.retain(|token| {
            let owner = match own.tokens.contains(token) {
                true => own.address,
                false => *owners.entry(*token).or_insert(address),
            };
            if owner != address {
                *lost.entry(owner).or_default() += 1;
            }
            owner == address
        });
        let is_gone = node.tokens.is_empty();
        let may_be_replaced = is_gone && !node.is_up;
        // a stranger that claims tokens was never there to be replaced
        let was_replaced = |by: Address| match by == own.address {
            true => own.replaced == Some(address),
            false => own.members.contains(&address),
        };
        match lost.keys().next().copied().filter(|by| may_be_replaced && was_replaced(*by)) {
            Some(by) if lost.len() == 1 => {
                conflicts.push(Conflict::Replaced { old: address, by });
            }
            _ => conflicts.extend(lost.into_iter().map(|(owner, tokens)| {
                match owner == own.address {
                    true => Conflict::OwnTokens { node: address, tokens },
                    false => Conflict::Tokens { owner, node: address, tokens },
                }
            })),
        }
        if is_gone {
            nodes.remove(&address);
        }
    }
    // one that a thousand nodes are in is told of by its first lines
    conflicts.truncate(CONFLICTS_TOLD);
    conflicts
}

/// Of nodes with one host id only the newest stays, and none with that of this node.
fn settle_hosts(nodes: &mut Nodes, own: &Own, newest_first: &[Address]) -> Vec<Conflict> {
    let (mut conflicts, mut hosts) = (Vec::new(), BTreeMap::new());
    for address in newest_first {
        let Some(host_id) = nodes.get(address).map(|node| node.host_id) else { continue };
        let newer = hosts.get(&host_id).copied();
        if host_id == own.host_id {
            conflicts.push(Conflict::OwnHost(*address));
        } else if let Some(kept) = newer {
            conflicts.push(Conflict::Host { kept, gone: *address });
        } else {
            hosts.insert(host_id, *address);
            continue;
        }
        nodes.remove(address);
    }
    conflicts
}

#[cfg(test)]
mod tests {
    use super::*;
    use gossip::{HeartBeat, Versioned, write_tokens};

    fn state(generation: i32, host: u8, status: &str, tokens: &[i64]) -> EndpointState {
        let mut state = EndpointState::new(HeartBeat { generation, version: 1 });
        let tokens: Vec<_> = tokens.iter().copied().map(Token).collect();
        let host_id = Uuid::from_random([host; 16]).to_string();
        for (kind, value) in [
            (AppState::HOST_ID, host_id),
            (AppState::STATUS_WITH_PORT, status.to_owned()),
            (AppState::TOKENS, write_tokens(&tokens)),
            (AppState::DC, "dc1".to_owned()),
            (AppState::RACK, "r1".to_owned()),
            (AppState::RELEASE_VERSION, "5.0.9".to_owned()),
            (AppState::NATIVE_ADDRESS_AND_PORT, "10.0.0.7:9043".to_owned()),
            (AppState::RPC_READY, "true".to_owned()),
            (AppState::LOAD, "12.5".to_owned()),
        ] {
            state.values.insert(kind, Versioned::new(value, 1));
        }
        state
    }

    fn node(host: u8) -> Address {
        Address::new([10, 0, 0, host], 7000)
    }

    fn nodes(states: &[(u8, EndpointState)]) -> Nodes {
        let of = |(n, state): &(u8, EndpointState)| NodeInfo::of(node(*n), state, true);
        states.iter().filter_map(of).map(|node| (node.address, node)).collect()
    }

    #[test]
    fn a_node_is_what_it_says() {
        let info = NodeInfo::of(node(1), &state(5, 1, "NORMAL,-9", &[7, -9, 7]), true);
        let info = info.expect("complete");
        assert_eq!(info.tokens, [Token(-9), Token(7)]);
        assert_eq!(info.native, "10.0.0.7:9043".parse().expect("address"));
        assert_eq!((info.load, info.life, info.is_usable()), (Some(12.5), Life::Normal, true));
        for (status, life) in [
            ("shutdown,true", Some(Life::Normal)),
            ("BOOT,1", Some(Life::Joining)),
            (
                "BOOT_REPLACE,10.0.0.9:7001",
                Some(Life::Replacing(Address::new([10, 0, 0, 9], 7001))),
            ),
            ("BOOT_REPLACE,10.0.0.9", Some(Life::Replacing(node(9)))),
            ("MOVING,7", Some(Life::Moving(Some(Token(7))))),
            ("LEAVING,1", Some(Life::Leaving)),
            ("LEFT,1,2", None),
            ("removed,x,1", None),
            ("", None),
        ] {
            let info = NodeInfo::of(node(1), &state(5, 1, status, &[1]), true);
            assert_eq!(info.map(|info| info.life), life, "{status}");
        }
        let mut silent = state(5, 1, "NORMAL,1", &[1]);
        silent.values.remove(&AppState::HOST_ID);
        assert_eq!(NodeInfo::of(node(1), &silent, true), None);
    }

    #[test]
    fn a_node_that_starts_again_has_the_place_it_had() {
        let info = NodeInfo::of(node(1), &state(5, 1, "NORMAL,1", &[1, 2]), true);
        let info = info.expect("complete");
        let silent = state(6, 1, "", &[1, 2]);
        assert_eq!(NodeInfo::of(node(1), &silent, true), None);
        let starting = info.starting(&silent, false).expect("a member");
        assert_eq!((&starting.tokens, starting.life), (&info.tokens, Life::Normal));
        assert_eq!((starting.generation, starting.is_up), (6, false));
        assert_eq!(info.starting(&state(6, 1, "LEFT,1,2", &[1]), true), None);
        let joining = NodeInfo::of(node(1), &state(5, 1, "BOOT,1", &[1]), true).expect("complete");
        assert_eq!(joining.starting(&silent, true).map(|node| node.life), Some(Life::Joining));
        let other = state(6, 2, "", &[1, 2]);
        assert_eq!(joining.starting(&other, true), None, "it is another one");
    }

    #[test]
    fn who_started_last_is_who_it_says() {
        let mut all = nodes(&[
            (1, state(5, 1, "NORMAL,1", &[1, 2])),
            (2, state(9, 1, "NORMAL,1", &[1, 2])),
            (3, state(7, 3, "NORMAL,1", &[2, 3])),
            (4, state(8, 4, "NORMAL,3", &[3])),
            (5, state(99, 5, "BOOT,1", &[1])),
        ]);
        settle(&mut all, &own(99, &[]));
        let owned = |n: u8| all.get(&node(n)).map(|node| node.tokens.clone());
        assert_eq!(owned(1), None);
        assert_eq!(owned(2), Some(vec![Token(1), Token(2)]));
        assert_eq!(owned(3), None, "others own its tokens");
        assert_eq!(owned(4), Some(vec![Token(3)]));
        assert_eq!(owned(5), Some(vec![Token(1)]), "it owns nothing yet");
    }

    fn own(n: u8, tokens: &[i64]) -> Own {
        let tokens = tokens.iter().copied().map(Token).collect();
        let (replaced, members) = (Some(node(1)), [node(1)].into());
        Own { address: node(n), host_id: host(n), tokens, replaced, members }
    }

    #[test]
    fn who_is_down_and_lost_all_tokens_was_replaced() {
        let settled = |is_up: bool, its: &[i64], own: &Own| {
            let mut all =
                nodes(&[(1, state(5, 1, "NORMAL,1", its)), (2, state(9, 2, "NORMAL,1", &[1, 2]))]);
            all.get_mut(&node(1)).expect("it is there").is_up = is_up;
            let conflicts = settle(&mut all, own);
            (all.contains_key(&node(1)), conflicts)
        };
        let (nobody, by) =
            (own(99, &[]), |by: u8| Conflict::Replaced { old: node(1), by: node(by) });
        assert_eq!(settled(false, &[1, 2], &nobody), (false, vec![by(2)]));
        let both = Conflict::Tokens { owner: node(2), node: node(1), tokens: 2 };
        assert_eq!(settled(true, &[1, 2], &nobody), (false, vec![both.clone()]));
        assert_eq!(settled(false, &[1, 2, 3], &nobody), (true, vec![both.clone()]));
        let strangers = Own { members: BTreeSet::new(), ..own(99, &[]) };
        assert_eq!(settled(false, &[1, 2], &strangers), (false, vec![both.clone()]));
        let mut taker = own(99, &[4, 5]);
        assert_eq!(settled(false, &[4, 5], &taker), (false, vec![by(99)]));
        taker.replaced = None;
        let claim = Conflict::OwnTokens { node: node(1), tokens: 2 };
        assert_eq!(settled(false, &[4, 5], &taker), (false, vec![claim]));
    }

    fn host(n: u8) -> [u8; 16] {
        Uuid::from_random([n; 16]).to_bytes()
    }

    #[test]
    fn this_node_stays_who_it_is_whatever_others_say() {
        let mut all = nodes(&[
            (1, state(i32::MAX, 7, "NORMAL,1", &[1, 2])),
            (2, state(9, 2, "NORMAL,2", &[2, 3])),
            (3, state(8, 3, "NORMAL,3", &[3])),
            (4, state(i32::MIN, 4, "NORMAL,4", &[5])),
            (5, state(6, 4, "NORMAL,6", &[6])),
            (6, state(7, 6, "NORMAL,2", &[2])),
        ]);
        let conflicts = settle(&mut all, &own(7, &[2, 4]));
        let owned = |n: u8| all.get(&node(n)).map(|node| node.tokens.clone());
        assert_eq!(owned(1), None, "its host id is this node's");
        assert_eq!(owned(2), Some(vec![Token(3)]), "a token of it is this node's");
        assert_eq!([3, 4, 6].map(owned), [None, None, None]);
        assert_eq!(owned(5), Some(vec![Token(6)]));
        let expected = [
            Conflict::OwnHost(node(1)),
            Conflict::Host { kept: node(5), gone: node(4) },
            Conflict::OwnTokens { node: node(2), tokens: 1 },
            Conflict::Tokens { owner: node(2), node: node(3), tokens: 1 },
            Conflict::OwnTokens { node: node(6), tokens: 1 },
        ];
        assert_eq!(conflicts.len(), expected.len());
        assert!(expected.iter().all(|conflict| conflicts.contains(conflict)), "{conflicts:?}");
    }
}
