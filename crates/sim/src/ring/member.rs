//! A node of a ring over all its lives, and the ring's nodes together.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use cluster::{Shard, Standing};
use config::{Config, Host};
use env::sim::{NodeId, World};
use env::{Env, Instant, Mesh};
use node::{Message, Node, run_shard};
use server::ConnectionLimits;

use super::plan::{Plan, center};

/// `memory_budget` of a node.
const MEMORY_BUDGET: u64 = 8 << 20;
/// Bytes of a segment of the commit log: few, so that some end within a world.
const SEGMENT_BYTES: u64 = 256 << 10;
/// Bytes of the memtables of a node.
const MEMTABLE_BYTES: u64 = 1 << 20;

/// The way in to a node that serves.
#[derive(Clone)]
pub struct Way {
    /// Its first shard.
    pub env: Env,
    /// Who is asked there.
    pub shard: Rc<Shard>,
    /// Who carries out what an operator asks for.
    pub node: Weak<Node>,
}

/// A node.
pub struct Member {
    /// Which of all it is.
    pub number: usize,
    /// In the world.
    pub id: NodeId,
    /// Its data centre.
    pub center: usize,
    /// The way in, while it serves.
    way: Rc<RefCell<Option<Way>>>,
    /// Counts its lives.
    pub life: Cell<u64>,
    /// When it is to start again, if it is down.
    pub back_at: Cell<Option<Instant>>,
    /// By how much its clock is ahead, in microseconds.
    pub ahead: Cell<i64>,
    /// Its disk fails syncs, or has in this life: since when.
    pub bad_since: Cell<Option<Instant>>,
    /// Until when its disk was full, in this life.
    pub full_until: Cell<Option<Instant>>,
}

/// A node whose disk was full may end for so long after that: it drains first.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

impl Member {
    /// May it end by itself, as its disk fails or has failed a moment ago?
    pub fn may_end(&self, now: Instant) -> bool {
        let is_soon = |until| now < until + ENDS_WITHIN;
        self.bad_since.get().is_some() || self.full_until.get().is_some_and(is_soon)
    }

    /// The way in, if it serves.
    pub fn way(&self) -> Option<Way> {
        self.way.borrow().clone()
    }

    /// The way in for clients: a node that is none of the ring has none.
    pub fn door(&self) -> Option<Way> {
        let is_member = |way: &Way| {
            let join = way.shard.join();
            let has_left =
                way.shard.relocation().is_some_and(|it| it.mode() == Some("DECOMMISSIONED"));
            join.is_none_or(|join| join.standing() == Standing::Member) && !has_left
        };
        self.way().filter(is_member)
    }

    /// Nobody comes in any more.
    pub fn close(&self) {
        self.way.borrow_mut().take();
    }
}

/// The nodes of a ring.
pub type Members = Rc<Vec<Rc<Member>>>;

/// Where a node is.
pub fn address(node: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(node + 1).unwrap_or(u8::MAX)).into()
}

fn configuration(plan: &Plan, node: usize, more: &[String]) -> Result<Config, String> {
    let mut config = Config::default();
    let seeds = (0..plan.nodes.len()).filter(|node| plan.is_seed(*node));
    let seeds: Vec<String> = seeds.map(|node| address(node).to_string()).collect();
    let place = plan.nodes[node];
    let hints = format!("hinted_handoff_enabled={}", plan.hints);
    let tokens = format!("num_tokens={}", place.tokens);
    let seeds = format!(
        "seed_provider={{class_name: SimpleSeedProvider, parameters: {{seeds: '{}'}}}}",
        seeds.join(",")
    );
    let settings = [
        "data_dir=/d",
        "open_without_authentication=true",
        "auto_bootstrap=false",
        "ring_delay=2s",
        "endpoint_snitch=GossipingPropertyFileSnitch",
        "read_request_timeout=1500ms",
        "range_request_timeout=2s",
        "write_request_timeout=1s",
        "counter_write_request_timeout=1500ms",
        "cas_contention_timeout=1s",
        &hints,
        &tokens,
        &seeds,
    ];
    let settings = settings.into_iter().chain(plan.settings.iter().chain(more).map(String::as_str));
    config.set_all(settings).map_err(|error| error.to_string())?;
    config.beside.rack_dc = Some(format!("dc={}\nrack=r{}\n", center(place.center), place.rack));
    for host in [
        &mut config.listen_address,
        &mut config.broadcast_address,
        &mut config.rpc_address,
        &mut config.broadcast_rpc_address,
    ] {
        *host = Host::Ip(address(node));
    }
    config.commitlog_sync = plan.sync;
    config.commitlog_segment_size = SEGMENT_BYTES;
    config.memtable_space = Some(MEMTABLE_BYTES);
    config.memory_budget = Some(MEMORY_BUDGET);
    config.disk_failure_policy = plan.disk_policy;
    config.commit_failure_policy = plan.commit_policy;
    Ok(config)
}

/// A node that is not started.
pub fn member(world: &World, plan: &Plan, node: usize) -> Rc<Member> {
    Rc::new(Member {
        number: node,
        id: world.node(address(node)),
        center: plan.nodes[node].center,
        way: Rc::default(),
        life: Cell::new(0),
        back_at: Cell::default(),
        ahead: Cell::default(),
        bad_since: Cell::default(),
        full_until: Cell::default(),
    })
}

impl Member {
    /// Starts it for the first time, or as another node of its address.
    pub fn start(&self, world: &World, plan: &Plan, more: &[String]) -> Result<(), String> {
        let node = self.number;
        let config = Arc::new(configuration(plan, node, more)?);
        let way = Rc::clone(&self.way);
        world.start(self.id, plan.nodes[node].shards, move |env: Env, mesh: Mesh<Message>| {
            let (way, config) = (Rc::clone(&way), Arc::clone(&config));
            run_shard(env.clone(), mesh, config, ConnectionLimits::new(), move |node, _| {
                *way.borrow_mut() =
                    Some(Way { env, shard: Rc::clone(node.shard()), node: Rc::downgrade(node) });
            })
        });
        self.life.set(self.life.get() + 1);
        self.back_at.set(None);
        self.bad_since.set(None);
        self.full_until.set(None);
        Ok(())
    }

    /// Starts it again.
    pub fn restart(&self, world: &World, shards: usize) {
        self.life.set(self.life.get() + 1);
        self.back_at.set(None);
        self.bad_since.set(None);
        self.full_until.set(None);
        world.restart_with(self.id, shards);
    }
}
