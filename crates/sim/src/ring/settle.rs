//! What must be so once nothing goes wrong any more: all nodes know the same of each other, have
//! one schema and all that was acknowledged.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use cluster::Answer;
use env::Env;
use env::sim::World;
use protocol::Consistency;

use super::ask::{Failed, Statement, ask, number, rows};
use super::member::{Members, Way, address};
use super::model::{Model, PAIRS, Spot, center_of, value_in};

/// Time until all nodes know the same of each other.
const AGREED_AFTER: Duration = Duration::from_secs(150);
/// Time until each has what was kept for it, and batches are written.
const DELIVERED_AFTER: Duration = Duration::from_secs(90);
/// How often something is asked before it counts as refused.
const TRIES: usize = 4;
/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Who looks after a ring that is left in peace.
pub struct Settle<'a> {
    /// The world.
    pub world: &'a World,
    /// Where clients are.
    pub clients: &'a Env,
    /// The nodes.
    pub members: &'a Members,
    /// What they must have.
    pub model: &'a Rc<Model>,
    /// Data centres.
    pub centers: usize,
    /// Are hints kept?
    pub hints: bool,
}

impl Settle<'_> {
    /// Lets time go by until something is so.
    fn until(
        &self,
        within: Duration,
        mut differs: impl FnMut() -> Result<Option<String>, String>,
    ) -> Result<(), String> {
        let end = self.world.now() + within;
        loop {
            let Some(what) = differs()? else { return Ok(()) };
            if self.world.now() > end {
                return Err(what);
            }
            for (node, member) in self.members.iter().enumerate() {
                if !self.world.is_up(member.id) {
                    let exits = self.world.exits(member.id);
                    return Err(format!("node {} does not start: {exits:?}", node + 1));
                }
            }
            self.world.run_for(LOOK).map_err(|failure| failure.what.to_string())?;
        }
    }

    /// Waits until all serve, and know the same.
    pub fn agree(&self) -> Result<(), String> {
        self.until(AGREED_AFTER, || Ok(self.disagreement().err()))
    }

    fn ways(&self) -> Result<Vec<Way>, String> {
        let ways = self.members.iter().enumerate().map(|(node, member)| {
            member.way().ok_or_else(|| format!("node {} does not serve", node + 1))
        });
        ways.collect()
    }

    fn disagreement(&self) -> Result<(), String> {
        let ways = self.ways()?;
        let all = ways.len();
        let own = ways.iter().map(|way| {
            let membership = way.shard.membership().ok_or("a node is in no ring")?;
            membership.endpoints().into_iter().next().ok_or("a node knows nothing of itself")
        });
        let own = own.collect::<Result<Vec<_>, _>>()?;
        for (node, way) in ways.iter().enumerate() {
            let name = format!("node {}", node + 1);
            let ring = way.shard.peers().ring().ok_or_else(|| format!("{name} has no ring"))?;
            let up = ring.nodes().iter().filter(|node| node.is_up).count();
            if (ring.nodes().len(), up) != (all, all) {
                let nodes = ring.nodes().len();
                return Err(format!("{name} sees {nodes} nodes of {all}, {up} of them up"));
            }
            let Some(membership) = way.shard.membership() else { continue };
            let seen: BTreeMap<_, _> = membership
                .endpoints()
                .into_iter()
                .map(|endpoint| (endpoint.address, endpoint.state))
                .collect();
            for said in &own {
                let address = said.address;
                let known = seen.get(&address);
                let Some(known) = known else { return Err(format!("{name}: no {address}")) };
                if known.heartbeat.generation != said.state.heartbeat.generation {
                    let (theirs, ours) = (known.heartbeat, said.state.heartbeat);
                    return Err(format!("{name} has {theirs:?} of {address}, which has {ours:?}"));
                }
                let mut said_of = said.state.values.keys().filter(|kind| {
                    let with_port = kind.with_port();
                    with_port.is_none_or(|with_port| !said.state.values.contains_key(&with_port))
                });
                if let Some(kind) = said_of.find(|kind| !known.values.contains_key(kind)) {
                    return Err(format!("{name} has no {kind:?} of {address}"));
                }
                for (kind, value) in &known.values {
                    if said.state.values.get(kind) != Some(value) {
                        let is = said.state.values.get(kind);
                        return Err(format!(
                            "{name} has {kind:?} {value:?} of {address}, which says {is:?}"
                        ));
                    }
                }
            }
            let schema = way.shard.schema();
            let first = ways[0].shard.schema();
            if schema.version() != first.version() {
                return Err(format!("the schema of {name} is not that of node 1"));
            }
            if let Some(missing) = self.model.definitions.borrow().missing(&schema) {
                return Err(format!("in the schema of {name} {missing}"));
            }
        }
        Ok(())
    }

    /// Everything that was acknowledged is there: on each replica where hints bring it, and to who
    /// asks all.
    pub fn has_all(&self) -> Result<(), String> {
        let all = self.used();
        if self.hints {
            let is_hinted = |spot: &&Spot| !matches!(spot, Spot::Count(_) | Spot::Condition(_));
            let mut left: Vec<Spot> = all.iter().filter(is_hinted).copied().collect();
            self.until(DELIVERED_AFTER, || self.lacking(&mut left))?;
        }
        self.until(DELIVERED_AFTER, || self.torn())?;
        self.all_have(&all)
    }

    /// Who asks all replicas finds all that was acknowledged.
    fn all_have(&self, all: &[Spot]) -> Result<(), String> {
        for spot in all {
            let value = self.value(0, *spot, Consistency::All)?;
            self.model.with(*spot, |register| {
                let floor = register.floor();
                let now = self.world.now();
                let read = register.read((floor, now), value, now);
                read.map_err(|why| format!("{spot:?} in the end: {why}"))
            })?;
        }
        Ok(())
    }

    fn used(&self) -> Vec<Spot> {
        let once = (0..self.model.written_once.get()).map(Spot::Once);
        Spot::all().filter(|spot| self.is_used(*spot)).chain(once).collect()
    }

    /// Which of the members are the replicas of a place.
    fn replicas(&self, spot: Spot) -> Result<Vec<usize>, String> {
        self.replicas_of(spot.key())
    }

    /// Which of the members are the replicas of a key.
    pub fn replicas_of(&self, key: usize) -> Result<Vec<usize>, String> {
        let way = self.members[0].way().ok_or("the first node does not serve")?;
        let ring = way.shard.peers().ring().ok_or("the first node has no ring")?;
        let schema = way.shard.schema();
        let keyspace = schema.keyspace("ring").ok_or("there is no keyspace")?;
        let placement = ring.placement(&keyspace.replication.strategy);
        let placement = placement.ok_or("the placement of replicas is not known")?;
        let key = i32::try_from(key).unwrap_or(i32::MAX);
        let replicas = placement.at(types::Token::of(&key.to_be_bytes())).natural.iter();
        let member = |ip| self.members.iter().position(|member| address(member.number) == ip);
        let found = replicas.map(|replica| {
            let ip = ring.node(*replica).address.ip;
            member(ip).ok_or_else(|| format!("{ip} is a replica and no member"))
        });
        found.collect()
    }

    /// What was acknowledged is on so many replicas that each quorum has it. Each replica is asked
    /// alone, before anybody asks several of them, which mends what one lacks.
    pub fn each_quorum_has_all(&self) -> Result<(), String> {
        for spot in self.used() {
            let mut values = Vec::new();
            for at in self.replicas(spot)? {
                let value = self.value(at, spot, Consistency::One)?;
                values.push((address(self.members[at].number), value));
            }
            let has = |(_, value): &&(_, Option<i64>)| {
                self.model.with(spot, |register| register.has_all(*value))
            };
            let (all, have) = (values.len(), values.iter().filter(has).count());
            if have + all / 2 < all {
                let floor = self.model.with(spot, |register| register.floor());
                return Err(format!("{spot:?} is {values:?} on its replicas, and was {floor}"));
            }
        }
        Ok(())
    }

    /// What was acknowledged is on all replicas: those that missed it have it by hints, and those
    /// that are new by what they fetched.
    pub fn each_replica_has_all(&self) -> Result<(), String> {
        let is_hinted = |spot: &Spot| !matches!(spot, Spot::Count(_) | Spot::Condition(_));
        let mut left: Vec<Spot> = self.used().into_iter().filter(is_hinted).collect();
        self.until(DELIVERED_AFTER, || {
            while let Some(spot) = left.last().copied() {
                for at in self.replicas(spot)? {
                    let value = self.value(at, spot, Consistency::One)?;
                    let (is_there, hinted) = self
                        .model
                        .with(spot, |register| (register.is_there(value), register.hinted()));
                    if !is_there {
                        let by = address(self.members[at].number);
                        return Ok(Some(format!(
                            "{spot:?} is {value:?} on {by}, and not {hinted}"
                        )));
                    }
                }
                left.pop();
            }
            Ok(None)
        })
    }

    /// Who asks all finds all that was acknowledged. `with_batches`: and none is torn.
    pub fn has_all_at_all(&self, with_batches: bool) -> Result<(), String> {
        if with_batches {
            self.until(DELIVERED_AFTER, || self.torn())?;
        }
        self.all_have(&self.used())
    }

    fn is_used(&self, spot: Spot) -> bool {
        let Spot::Cell(key, _) = spot else { return true };
        center_of(key).is_none_or(|center| center < self.centers)
    }

    /// What a replica lacks that hints were to bring it, of places that were not found everywhere
    /// yet.
    fn lacking(&self, left: &mut Vec<Spot>) -> Result<Option<String>, String> {
        while let Some(spot) = left.last().copied() {
            for node in 0..self.members.len() {
                let value = self.value(node, spot, Consistency::One)?;
                let (is_there, hinted) =
                    self.model.with(spot, |register| (register.is_there(value), register.hinted()));
                if !is_there {
                    let by = node + 1;
                    return Ok(Some(format!(
                        "{spot:?} by node {by} is {value:?} and not {hinted}"
                    )));
                }
            }
            left.pop();
        }
        Ok(None)
    }

    /// A batch of which one part alone is there.
    fn torn(&self) -> Result<Option<String>, String> {
        for pair in 0..PAIRS {
            let [one, other] = [0, 1].map(|at| Spot::Half(2 * pair + at));
            let one = self.value(0, one, Consistency::All)?;
            let other = self.value(0, other, Consistency::All)?;
            if one != other {
                return Ok(Some(format!("a batch is torn: {one:?} and {other:?}")));
            }
        }
        Ok(None)
    }

    /// What a node says of a place.
    fn value(&self, node: usize, spot: Spot, level: Consistency) -> Result<Option<i64>, String> {
        let text = spot.text();
        let way = self.members[node].way();
        let way = way.ok_or_else(|| format!("node {} does not serve", node + 1))?;
        let (clients, asked) = (self.clients.clone(), Statement::new(level, text.clone()));
        let answer = async move {
            // a connection to a machine that lost power is found to be gone by the first that is
            // sent over it
            for _ in 1..TRIES {
                match ask(&clients, &way, asked.clone()).await {
                    Err(Failed::Error(_)) => {}
                    answer => return answer,
                }
            }
            ask(&clients, &way, asked).await
        };
        let answer = self.world.block_on(self.clients, DELIVERED_AFTER, answer);
        match answer.map_err(|failure| failure.what.to_string())? {
            Ok(Answer::Rows(page)) => {
                let value = number(rows(&page).first().and_then(|row| row.first()));
                let column = if let Spot::Cell(_, column) = spot { column } else { 0 };
                Ok(value.map(|value| value_in(column, value)))
            }
            Ok(other) => Err(format!("{text}: {other:?}")),
            Err(Failed::Error(why)) => {
                Err(format!("node {} at {}, {text}: {why}", node + 1, address(node)))
            }
            Err(failed) => Err(format!("{text}: {failed:?}")),
        }
    }
}
