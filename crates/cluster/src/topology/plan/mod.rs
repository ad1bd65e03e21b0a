//! What would move, before anything does: the plan of a change of the ring, and what keyspaces
//! withstand.
//!
//! - `changes`: rings that are made up, and what moves between them, by the operations' own choice.
//! - `estimate`: bytes and time.
//! - `odds`: what keyspaces withstand.
//! - `value`: what a plan says.
//! - `error`: why there is none.
//!
//! All of it is computed by helper threads, in parts that take up to about a second: no shard waits
//! for it. Nothing is changed by it.

mod changes;
mod error;
mod estimate;
mod odds;
mod value;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use ring::{Newcomer, Node, Ring, State, choose_tokens, resized};
use schema::{Keyspace, Schema, Strategy};
use streaming::Streaming;
use types::{Address, Token, Uuid};

pub use error::PlanError;
pub use estimate::Rate;
pub use odds::{Failing, KeyspaceOdds, Missing, OddsRow};
pub use value::{
    FailurePlan, MovePlan, NewNodes, NodeShare, PlanRequest, PlannedShares, PlannedStream,
    PlannedTokens,
};

use super::join::{allocation, list, most_replicas};
use super::relocation::{Relocation, RelocationError, enough};
use super::removal::Removal;
use crate::membership::Membership;
use crate::shard_context::ShardContext;
use changes::{Change, Changed, Flow, shares};
use estimate::{Densities, Rates, Sizes};

/// Nodes that one plan may add.
const NODES_MAX: u32 = 32;
/// Nodes and racks that fail in a plan of a change.
const FAILING: Failing = Failing { nodes: 3, racks: 2 };

/// The rings that are compared in a plan of a change.
const RINGS: [&str; 2] = ["now", "after"];

/// Makes plans; on the first shard.
pub struct Planner {
    shard: Rc<ShardContext>,
    membership: Rc<Membership>,
    relocation: Rc<Relocation>,
    removal: Rc<Removal>,
    streaming: Rc<Streaming>,
}

/// What a plan is made of.
#[derive(Clone)]
struct Ground {
    ring: Arc<Ring>,
    schema: Arc<Schema>,
    keyspaces: Arc<[Arc<Keyspace>]>,
    is_consistent: bool,
}

/// One change after another.
struct Course {
    ring: Arc<Ring>,
    tokens: Vec<PlannedTokens>,
    /// By step.
    flows: Vec<Vec<Flow>>,
    refusals: Vec<String>,
    names: BTreeMap<Address, String>,
}

impl Planner {
    pub(super) fn new(
        shard: &Rc<ShardContext>,
        membership: &Rc<Membership>,
        (relocation, removal): (&Rc<Relocation>, &Rc<Removal>),
        streaming: &Rc<Streaming>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            membership: Rc::clone(membership),
            relocation: Rc::clone(relocation),
            removal: Rc::clone(removal),
            streaming: Rc::clone(streaming),
        })
    }

    /// What a change would move, and what would be then.
    ///
    /// # Errors
    /// If there is no such change.
    pub async fn plan(&self, request: &PlanRequest) -> Result<MovePlan, PlanError> {
        let ground = self.ground()?;
        let mut course = Course {
            ring: Arc::clone(&ground.ring),
            tokens: Vec::new(),
            flows: Vec::new(),
            refusals: Vec::new(),
            names: names(&ground.ring),
        };
        let title = match request {
            PlanRequest::Add(new) => {
                course.refusals.extend(self.of_join());
                self.add(&ground, new, &mut course).await?
            }
            PlanRequest::Decommission(of) => {
                let node = found(&ground.ring, of.as_deref())?;
                course.refusals.extend(self.of_leaving(&ground, node).await);
                self.change(&ground, Change::Leaves(node), &mut course).await?;
                format!("decommission of {}", course.names[&node])
            }
            PlanRequest::Remove(of) => {
                let node = found(&ground.ring, Some(of))?;
                let index = ground.ring.find(node).map(|node| ground.ring.node(node).host_id);
                let may = index.map(|host| self.removal.may_remove(host));
                course.refusals.extend(may.and_then(Result::err).map(|why| why.to_string()));
                self.change(&ground, Change::IsRemoved(node), &mut course).await?;
                format!("removal of {}", course.names[&node])
            }
            PlanRequest::Move(to) => {
                let node = found(&ground.ring, None)?;
                self.relocation.check_token(*to)?;
                let may = self.relocation.check(true).await;
                course.refusals.extend(may.err().map(|why| why.to_string()));
                self.change(&ground, Change::Moves(node, *to), &mut course).await?;
                course.tokens.push(planned(&ground.ring, node, vec![*to], &course.names, false));
                format!("move of {} to token {to}", course.names[&node])
            }
        };
        self.told(&ground, course, title).await
    }

    /// What keyspaces withstand, now and with another number of tokens.
    ///
    /// # Errors
    /// If there is no such ring.
    pub async fn failures(
        &self,
        failing: Failing,
        num_tokens: Option<u32>,
    ) -> Result<FailurePlan, PlanError> {
        let ground = self.ground()?;
        let now = usual_tokens(&ground.ring);
        let other = num_tokens.unwrap_or(if now == 1 { 16 } else { 1 });
        let (nodes, schema) = (ground.ring.nodes().to_vec(), Arc::clone(&ground.schema));
        let made = self
            .shard
            .env
            .helper(move || resized(&nodes, other, |center| most_replicas(&schema, center)));
        let made = made.await?;
        let mut nodes = made.nodes;
        if nodes.iter().all(|node| !node.is_local)
            && let Some(first) = nodes.first_mut()
        {
            first.is_local = true;
        }
        let keyspaces = ground.keyspaces.iter().map(|keyspace| &keyspace.replication.strategy);
        let other_ring = Arc::new(Ring::new(nodes, keyspaces)?);
        let rings = [Arc::clone(&ground.ring), other_ring];
        let now = format!("now ({})", plural(now as u32, "token"));
        let names = [now, plural(other, "token")];
        let odds = self.odds(&ground, rings, names, failing).await;
        let mut notes = vec![
            "Chances are those that some range lacks it when so many fail at the same time, all \
             choices being equally likely."
                .to_owned(),
        ];
        if !made.is_even {
            notes.push(format!(
                "The tokens of the other ring, {other} a node, were drawn: to place so many evenly \
                 takes too long."
            ));
        }
        notes.extend(about(&odds));
        Ok(FailurePlan { odds, notes })
    }

    fn ground(&self) -> Result<Ground, PlanError> {
        let ring = self.membership.ring().ok_or(PlanError::NoRing)?;
        let schema = self.shard.schema();
        let all = schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual);
        let keyspaces: Arc<[Arc<Keyspace>]> = all.cloned().collect();
        // keyspaces that are new may not be in it yet
        let strategies = keyspaces.iter().map(|keyspace| &keyspace.replication.strategy);
        let ring = Arc::new(ring.with_strategies(strategies));
        let is_consistent = self.shard.config.joining.is_consistent;
        Ok(Ground { ring, schema: Arc::clone(&schema), keyspaces, is_consistent })
    }

    /// Nodes join one after the other, as they do.
    async fn add(
        &self,
        ground: &Ground,
        new: &NewNodes,
        course: &mut Course,
    ) -> Result<String, PlanError> {
        if new.count == 0 || new.count > NODES_MAX {
            return Err(PlanError::Nodes(new.count));
        }
        let center = new.data_center.as_ref().unwrap_or(&self.shard.identity.data_center).clone();
        let racks = match &new.rack {
            Some(rack) => vec![rack.clone()],
            None => racks(&ground.ring, &center, &self.shard.identity.rack),
        };
        if racks.is_empty() {
            return Err(PlanError::NoRack(center));
        }
        let mut how = allocation(&self.shard.config.joining.tokens, &ground.schema, &center)?;
        if self.shard.env.planted("plan_counts_other_replicas") {
            how = how.map(|(method, replicas)| (method, replicas + 1));
        }
        let num_tokens = new.num_tokens.unwrap_or(self.shard.config.num_tokens.max(1));
        for (number, rack) in (1..=new.count as u8).zip(racks.iter().cycle()) {
            // an address that no node can have
            let address = Address::new([0, 0, 0, number], 0);
            let (nodes, center, rack) =
                (course.ring.nodes().to_vec(), center.clone(), rack.clone());
            let of = (center.clone(), rack.clone());
            let chosen = self.shard.env.helper(move || {
                let (data_center, rack) = (of.0.as_str(), of.1.as_str());
                let newcomer = Newcomer { address, data_center, rack, num_tokens };
                choose_tokens(&nodes, &newcomer, how)
            });
            let chosen = chosen.await?;
            course.names.insert(address, format!("new-{number}"));
            let node = Node {
                address,
                host_id: Uuid(u128::from(number)),
                data_center: center.as_str().into(),
                rack: rack.as_str().into(),
                tokens: chosen.tokens.clone(),
                state: State::Joining,
                is_up: true,
                is_local: false,
                accepts_clients: true,
            };
            self.change(ground, Change::Joins(node), course).await?;
            let ring = Arc::clone(&course.ring);
            let tokens = planned(&ring, address, chosen.tokens, &course.names, chosen.is_drawn);
            course.tokens.push(tokens);
        }
        let (nodes, tokens) = (plural(new.count, "node"), plural(num_tokens, "token"));
        let each = if new.count > 1 { " each" } else { "" };
        Ok(format!("add {nodes} with {tokens}{each} to data center {center}"))
    }

    /// Goes on to the ring after a change.
    async fn change(
        &self,
        ground: &Ground,
        change: Change,
        course: &mut Course,
    ) -> Result<(), PlanError> {
        let (ground, ring) = (ground.clone(), Arc::clone(&course.ring));
        let of = match &change {
            Change::Joins(node) => node.address,
            Change::Leaves(node) | Change::IsRemoved(node) | Change::Moves(node, _) => *node,
        };
        let computed = self.shard.env.helper(move || {
            let Some(changed) = Changed::new(&ring, &ground.keyspaces, change)? else {
                return Err(PlanError::Alone(of));
            };
            let (mut flows, mut refusals) = (Vec::new(), Vec::new());
            for keyspace in ground.keyspaces.iter() {
                match changed.flows(keyspace, ground.is_consistent) {
                    Ok(of) => flows.extend(of),
                    Err(why) => refusals.push(why.to_string()),
                }
            }
            Ok((changed.after, flows, refusals))
        });
        let (after, mut flows, refusals) = computed.await?;
        if self.shard.env.planted("plan_forgets_a_stream") {
            flows.drain(..flows.len().min(1));
        }
        course.ring = Arc::new(after);
        course.flows.push(flows);
        course.refusals.extend(refusals);
        Ok(())
    }

    /// All of it, with bytes, time and chances.
    async fn told(
        &self,
        ground: &Ground,
        course: Course,
        title: String,
    ) -> Result<MovePlan, PlanError> {
        let rings = [Arc::clone(&ground.ring), Arc::clone(&course.ring)];
        let odds = self.odds(ground, rings, RINGS.map(str::to_owned), FAILING).await;
        let Course { ring, tokens, flows, mut refusals, names } = course;
        let sizes = self.sizes(&ground.ring);
        let densities = Densities::new(&ground.ring, &ground.keyspaces, &sizes);
        let (mut streams, mut seconds) = (Vec::new(), Some(0.0));
        let (mut rate, mut comes_here) = (None, 0);
        for (step, flows) in (1..).zip(flows) {
            let sized: Vec<_> =
                flows.iter().map(|flow| (flow.from, flow.to, densities.bytes(flow))).collect();
            let rates = self.rates(&sized, [&ground.ring, &ring]);
            rate = Some(rates.of_sender());
            seconds = seconds.zip(rates.seconds(&sized)).map(|(all, more)| all + more);
            for (Flow { from, to, keyspace, ranges }, (.., bytes)) in flows.into_iter().zip(sized) {
                comes_here += if to == self.membership.local() { bytes } else { 0 };
                let (from, to) = (names[&from].clone(), names[&to].clone());
                streams.push(PlannedStream { step, from, to, keyspace, ranges, bytes });
            }
        }
        refusals.extend(self.of_space(comes_here).await);
        let mut notes = notes(&tokens, &streams, rate);
        notes.extend(about(&odds));
        let shares = owned(&ground.keyspaces, [&ground.ring, &ring], &names);
        Ok(MovePlan { title, refusals, notes, tokens, shares, streams, seconds, rate, odds })
    }

    async fn odds<const N: usize>(
        &self,
        ground: &Ground,
        rings: [Arc<Ring>; N],
        names: [String; N],
        failing: Failing,
    ) -> Vec<KeyspaceOdds> {
        let mut known: Vec<(Strategy, Vec<OddsRow>)> = Vec::new();
        let mut all = Vec::new();
        for (strategy, keyspaces) in odds::groups(&ground.keyspaces) {
            let rows = match known.iter().find(|(other, _)| *other == strategy) {
                Some((_, rows)) => rows.clone(),
                None => {
                    let mut tables = Vec::new();
                    for ring in &rings {
                        let (ring, strategy) = (Arc::clone(ring), strategy.clone());
                        let rows = move || odds::rows(&ring, &strategy, failing);
                        tables.push(self.shard.env.helper(rows).await);
                    }
                    let rows = odds::beside(tables);
                    known.push((strategy, rows.clone()));
                    rows
                }
            };
            all.push(KeyspaceOdds { keyspaces, rings: names.to_vec(), rows });
        }
        all
    }

    fn sizes(&self, ring: &Ring) -> Sizes {
        let schema = self.shard.schema();
        let mut sizes = Sizes { local: Some(self.membership.local()), ..Sizes::default() };
        for (id, store) in self.shard.engine.stores() {
            let Some(table) = schema.table_by_id(&id) else { continue };
            let bytes: u64 = store.live().tables().iter().map(|table| table.bytes_on_disk).sum();
            *sizes.own.entry(table.keyspace.to_string()).or_default() += bytes;
        }
        let load = |node: &crate::membership::NodeInfo| Some((node.address, node.load? as u64));
        sizes.loads = self.membership.nodes().values().filter_map(load).collect();
        let own = ring.node(ring.local()).address;
        sizes.loads.insert(own, self.shard.engine.disk_bytes());
        sizes
    }

    fn rates(&self, flows: &[(Address, Address, u64)], rings: [&Ring; 2]) -> Rates {
        let center = |node: Address| {
            let found = rings.iter().find_map(|ring| Some((ring, ring.find(node)?)));
            found.map(|(ring, node)| Arc::clone(&ring.node(node).data_center))
        };
        let is_far = flows.iter().any(|(from, to, _)| center(*from) != center(*to));
        Rates { limits: self.streaming.limits(), measured: self.streaming.measured(), is_far }
    }

    /// Why a node could not join.
    fn of_join(&self) -> Vec<String> {
        let mut refusals = Vec::new();
        let mut moving = self.membership.moving();
        if self.relocation.mode().is_some() {
            moving.push(self.membership.local());
        }
        if !moving.is_empty() && self.shard.config.joining.is_consistent {
            refusals.push(super::join::JoinError::OthersMove(moving).to_string());
        }
        let own = self.shard.schema().version();
        let nodes = self.membership.nodes();
        let others = nodes.values().filter(|node| node.is_up && node.schema != Some(own));
        let others: Vec<_> = others.map(|node| node.address).collect();
        if !others.is_empty() {
            refusals.push(format!(
                "the schema of {} is not that of this node: wait until nodetool describecluster \
                 shows one version",
                list(&others)
            ));
        }
        refusals
    }

    /// Why a node could not leave: what it would check itself.
    async fn of_leaving(&self, ground: &Ground, node: Address) -> Vec<String> {
        if node == self.membership.local() {
            return self
                .relocation
                .check(false)
                .await
                .err()
                .map(|e| e.to_string())
                .into_iter()
                .collect();
        }
        let ring = &ground.ring;
        let Some(index) = ring.find(node) else { return Vec::new() };
        let mut refusals = Vec::new();
        if !ring.is_up(index) {
            refusals.push(format!("/{node} is down: nodetool removenode removes it"));
        }
        for keyspace in ground.keyspaces.iter() {
            let strategy = &keyspace.replication.strategy;
            let Some(placement) = ring.placement(strategy) else { continue };
            if *strategy == Strategy::Local {
                continue;
            }
            refusals.extend(enough::check(ring, keyspace, index).err().map(|e| e.to_string()));
            if placement.pending_ranges_of(index).next().is_some() {
                refusals.push(RelocationError::Gaining.to_string());
            }
        }
        let mut moving = self.membership.moving();
        moving.retain(|other| *other != node);
        if !moving.is_empty() && ground.is_consistent {
            refusals.push(RelocationError::OthersMove(moving).to_string());
        }
        refusals
    }

    /// Is there room for what comes here? Of other nodes nobody knows it.
    async fn of_space(&self, bytes: u64) -> Option<String> {
        if bytes == 0 || self.shard.config.streams.skips_space_check {
            return None;
        }
        let room = self.shard.engine.room().await.ok()?;
        (bytes > room).then(|| {
            format!(
                "not enough space: about {bytes} bytes come to this node, which has {room} free"
            )
        })
    }
}

/// How nodes are called: by their address, with the port where another node has the same.
fn names(ring: &Ring) -> BTreeMap<Address, String> {
    let is_single =
        |ip: IpAddr| ring.nodes().iter().filter(|node| node.address.ip == ip).count() == 1;
    let name = |address: Address| match is_single(address.ip) {
        true => address.ip.to_string(),
        false => address.to_string(),
    };
    ring.nodes().iter().map(|node| (node.address, name(node.address))).collect()
}

/// A member by its address or host ID; this one, if none is named.
fn found(ring: &Ring, of: Option<&str>) -> Result<Address, PlanError> {
    let Some(of) = of else { return Ok(ring.node(ring.local()).address) };
    let text = of.trim_start_matches('/');
    let is_it = |node: &&Node| {
        node.address.to_string() == text
            || node.address.ip.to_string() == text
            || Uuid::parse(text) == Some(node.host_id)
    };
    let node = ring.nodes().iter().filter(|node| node.state.is_member()).find(is_it);
    Ok(node.ok_or_else(|| PlanError::UnknownNode(of.to_owned()))?.address)
}

/// The racks of a data centre, the one with the fewest nodes first: nodes come to them in turn.
fn racks(ring: &Ring, center: &str, own: &str) -> Vec<String> {
    let mut racks: BTreeMap<&str, usize> = BTreeMap::new();
    for node in ring.nodes().iter().filter(|node| *node.data_center == *center) {
        *racks.entry(&*node.rack).or_default() += 1;
    }
    let mut racks: Vec<_> = racks.into_iter().collect();
    racks.sort_by_key(|(rack, nodes)| (*nodes, *rack != own));
    racks.into_iter().map(|(rack, _)| rack.to_owned()).collect()
}

fn planned(
    ring: &Ring,
    node: Address,
    tokens: Vec<Token>,
    names: &BTreeMap<Address, String>,
    are_drawn: bool,
) -> PlannedTokens {
    let found = ring.find(node).map(|index| ring.node(index));
    let of = |text: fn(&Node) -> String| found.map(text).unwrap_or_default();
    PlannedTokens {
        node: names[&node].clone(),
        data_center: of(|node| node.data_center.to_string()),
        rack: of(|node| node.rack.to_string()),
        tokens,
        are_drawn,
    }
}

/// What nodes replicate before and after.
fn owned(
    keyspaces: &[Arc<Keyspace>],
    rings: [&Ring; 2],
    names: &BTreeMap<Address, String>,
) -> Vec<PlannedShares> {
    let of = |(strategy, keyspaces): (Strategy, Vec<String>)| {
        let [before, after] = rings.map(|ring| shares(ring, &strategy));
        let node = |(address, name): (&Address, &String)| {
            let found = rings.iter().find_map(|ring| Some(ring.node(ring.find(*address)?)))?;
            let (before, after) = (before.get(address).copied(), after.get(address).copied());
            Some(NodeShare {
                node: name.clone(),
                data_center: found.data_center.to_string(),
                rack: found.rack.to_string(),
                before,
                after,
            })
        };
        PlannedShares { keyspaces, nodes: names.iter().filter_map(node).collect() }
    };
    odds::groups(keyspaces).into_iter().map(of).collect()
}

/// The number of tokens that most nodes have.
fn usual_tokens(ring: &Ring) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for node in ring.nodes().iter().filter(|node| node.state.is_member()) {
        *counts.entry(node.tokens.len()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, nodes)| *nodes).map_or(0, |(tokens, _)| tokens)
}

fn notes(tokens: &[PlannedTokens], streams: &[PlannedStream], rate: Option<Rate>) -> Vec<String> {
    let mut notes = Vec::new();
    if tokens.iter().any(|of| of.are_drawn) {
        notes.push(
            "Tokens were drawn: a node that joins draws others, and moves other ranges.".to_owned(),
        );
    }
    if streams.is_empty() {
        return notes;
    }
    notes.push(
        "Bytes are estimates: the load of each node, by what it replicates, with the keyspaces' \
         sizes on this node."
            .to_owned(),
    );
    notes.push(match rate {
        Some(Rate::Measured(_)) => {
            "Time is that of the busiest node, at the rate of this node's last streams.".to_owned()
        }
        Some(Rate::Limit(_)) => "Time is that of the busiest node, at the throughput limit of \
            streams: nothing was measured yet, or the limit is lower."
            .to_owned(),
        Some(Rate::Unknown) | None => "Time is not known: this node has streamed nothing yet, and \
            streams have no throughput limit."
            .to_owned(),
    });
    notes.push("Whether other nodes have the space is not known here.".to_owned());
    notes
}

fn about(odds: &[KeyspaceOdds]) -> Option<String> {
    value::are_drawn(odds.iter()).then(|| {
        "Chances with ~ are of 50000 drawn choices, right within half a percent.".to_owned()
    })
}

fn plural(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
