//! `nodetool rebuild`: this node fetches from others what it should have
//! (`StorageService.rebuild`).

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use metrics::Level;
use ring::{NodeIndex, Ring};
use schema::{Keyspace, Strategy};
use streaming::wire::{Operation, Request};
use streaming::{Plan, Streaming};
use thiserror::Error;
use types::{Address, TokenRange};

use super::sources;
use crate::peers::Peers;
use crate::shard_context::ShardContext;

/// What is fetched, and from whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuildRequest {
    /// Only from this data centre.
    pub from_center: Option<String>,
    /// Only this keyspace.
    pub keyspace: Option<String>,
    /// Only these ranges of it, from after the first token up to the second.
    pub ranges: Vec<TokenRange>,
    /// Only from these nodes.
    pub sources: BTreeSet<Address>,
    /// From no node of this node's data centre.
    pub excludes_local_center: bool,
}

/// Why a rebuild ended without all that it was to fetch.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RebuildError {
    /// The request makes no sense.
    #[error("{0}")]
    BadUse(String),
    /// It did not come to its end.
    #[error("{0}")]
    Failed(String),
}

/// The operation; on the first shard.
pub struct Rebuild {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    streaming: Rc<Streaming>,
    is_running: Cell<bool>,
}

/// Lets the next one begin, however this one ends.
struct Running<'a>(&'a Cell<bool>);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Rebuild {
    pub(crate) fn new(
        shard: &Rc<ShardContext>,
        peers: &Rc<Peers>,
        streaming: &Rc<Streaming>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            streaming: Rc::clone(streaming),
            is_running: Cell::new(false),
        })
    }

    /// Fetches what this node should have, and waits until it is there.
    ///
    /// # Errors
    /// If the request makes no sense, nobody has a range, or a session fails. What other sessions
    /// brought stays.
    pub async fn run(&self, request: &RebuildRequest) -> Result<(), RebuildError> {
        let bad = |what: String| Err(RebuildError::BadUse(what));
        let Some(ring) = self.peers.ring() else {
            return bad("this node is in no ring".to_owned());
        };
        self.check(request, &ring)?;
        if self.is_running.replace(true) {
            return bad("Node is still rebuilding. Check nodetool netstats.".to_owned());
        }
        let _running = Running(&self.is_running);
        let plan = self.plan(request)?;
        let from = request.from_center.as_deref().unwrap_or("(any dc)");
        let what = request.keyspace.as_deref().unwrap_or("(All keyspaces)");
        self.peers.note(Level::Info, format!("rebuild from dc: {from}, {what}, (All tokens)"));
        match self.streaming.run(plan).await {
            Ok(_) => Ok(()),
            Err(failed) => {
                let each = failed.iter().map(|(peer, why)| format!("/{peer}: {why}"));
                let why = each.collect::<Vec<_>>().join("; ");
                Err(RebuildError::Failed(format!("Error while rebuilding node: {why}")))
            }
        }
    }

    /// In Cassandra's words.
    fn check(&self, request: &RebuildRequest, ring: &Ring) -> Result<(), RebuildError> {
        let bad = |what: String| Err(RebuildError::BadUse(what));
        if request.keyspace.is_none() && !request.ranges.is_empty() {
            return bad("Cannot specify tokens without keyspace.".to_owned());
        }
        if let Some(center) = &request.from_center {
            let all = ring.members().iter().map(|node| ring.node(*node).data_center.to_string());
            let all: BTreeSet<_> = all.collect();
            if !all.contains(center) {
                return bad(format!(
                    "Provided datacenter '{center}' is not a valid datacenter, available \
                     datacenters are: {}",
                    all.into_iter().collect::<Vec<_>>().join(",")
                ));
            }
            if request.excludes_local_center && *center == self.shard.identity.data_center {
                return bad("Cannot set source data center to be local data center, when \
                            excludeLocalDataCenter flag is set"
                    .to_owned());
            }
        }
        if let Some(name) = &request.keyspace {
            let schema = self.shard.schema();
            match schema.keyspace(name) {
                None => return bad(format!("Keyspace '{name}' does not exist")),
                Some(keyspace) if keyspace.replication.strategy == Strategy::Local => {
                    return bad(format!("Keyspace '{name}' is not replicated"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn plan(&self, request: &RebuildRequest) -> Result<Plan, RebuildError> {
        let schema = self.shard.schema();
        let mut plan = Plan::new(Operation::Rebuild);
        let is_asked = |keyspace: &&Keyspace| {
            let is_named = request.keyspace.as_ref().is_none_or(|name| *name == *keyspace.name);
            is_named && keyspace.replication.strategy != Strategy::Local
        };
        for keyspace in schema.keyspaces().values().map(|keyspace| &**keyspace).filter(is_asked) {
            self.ask(request, keyspace, &mut plan)?;
        }
        Ok(plan)
    }

    /// Asks for what this node has of a keyspace.
    fn ask(
        &self,
        request: &RebuildRequest,
        keyspace: &Keyspace,
        plan: &mut Plan,
    ) -> Result<(), RebuildError> {
        let scope = self.peers.scope(keyspace);
        let scope = scope.map_err(|error| RebuildError::Failed(error.message))?;
        let name = &keyspace.name;
        let nobody = |range: TokenRange| {
            RebuildError::Failed(format!(
                "Unable to find sufficient sources for streaming range ({},{}] in keyspace {name}",
                range.left, range.right
            ))
        };
        let Some(scope) = scope else { return Err(nobody(TokenRange::ALL)) };
        let (ring, placement) = (&scope.ring, &scope.placement);
        let owned: Vec<TokenRange> = placement.ranges_of(ring.local()).collect();
        let wanted = match request.ranges.is_empty() {
            true => owned,
            false => within(&owned, &request.ranges)?,
        };
        let is_source = |node: NodeIndex| {
            let of = ring.node(node);
            ring.is_up(node)
                && request.from_center.as_ref().is_none_or(|center| **center == *of.data_center)
                && (request.sources.is_empty() || request.sources.contains(&of.address))
                && !(request.excludes_local_center && ring.is_near(node))
        };
        let picked = sources::pick(ring, placement, &wanted, is_source);
        if let Some(range) = picked.nowhere.first() {
            // nobody else has what has one replica
            if placement.replication_factor() != 1 {
                return Err(nobody(*range));
            }
            self.peers.note(
                Level::Warn,
                format!(
                    "Unable to find sufficient sources for streaming {} ranges, the first of them \
                 ({},{}], in keyspace {name} with RF=1. Keyspace might be missing data.",
                    picked.nowhere.len(),
                    range.left,
                    range.right
                ),
            );
        }
        let local = ring.node(ring.local()).address;
        for (node, ranges) in picked.of {
            let of = plan.requests.entry(ring.node(node).address).or_default();
            of.push(Request {
                keyspace: keyspace.name.to_string(),
                endpoint: local,
                ranges,
                transient_ranges: Vec::new(),
                tables: Vec::new(),
            });
        }
        Ok(())
    }
}

/// The ranges that are asked for, cut where replicas change.
fn within(owned: &[TokenRange], asked: &[TokenRange]) -> Result<Vec<TokenRange>, RebuildError> {
    let mut wanted = Vec::new();
    let normal: Vec<_> = owned.iter().flat_map(|range| range.unwrap()).collect();
    for range in TokenRange::normalize(asked.iter().copied()) {
        let before = wanted.len();
        let mut covered = 0_u128;
        for piece in &normal {
            let left = piece.left.max(range.left);
            let end = piece.end().min(range.end());
            if left.0 < end {
                let right = if end == i64::MAX { types::Token::MIN } else { types::Token(end) };
                covered += (i128::from(end) - i128::from(left.0)) as u128;
                wanted.push(TokenRange { left, right });
            }
        }
        let all = (i128::from(range.end()) - i128::from(range.left.0)) as u128;
        if covered < all || wanted.len() == before {
            return Err(RebuildError::BadUse(format!(
                "The specified range ({},{}] is not a range that is owned by this node. Please \
                 ensure that all token ranges specified to be rebuilt belong to this node.",
                range.left, range.right
            )));
        }
    }
    Ok(wanted)
}

/// Reads ranges as Cassandra's `rebuild -ts` takes them: `(1,2],(3,4]`.
///
/// # Errors
/// What is none of them, in Cassandra's words.
pub fn parse_ranges(text: &str) -> Result<Vec<TokenRange>, String> {
    let mut ranges = Vec::new();
    let unexpected = |text: &str| format!("Unexpected string: {text}");
    let token = |text: &str| text.trim().parse().map(types::Token).map_err(|_| unexpected(text));
    for part in text.split_inclusive(']') {
        let inner = part.trim().trim_start_matches(',').trim();
        let inner = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(']'));
        let (left, right) =
            inner.and_then(|inner| inner.split_once(',')).ok_or_else(|| unexpected(part.trim()))?;
        ranges.push(TokenRange { left: token(left)?, right: token(right)? });
    }
    Ok(ranges)
}
