//! What `nodetool doctor` looks at: the machine, by a way in that whoever composes the node hands
//! over, and the ring, as this node knows it. And what the machine was measured to do before.

use std::path::Path;
use std::sync::Arc;

use cluster::Shard;
use config::Config;
use doctor::{Baseline, Copies, Report, RingFacts, RingKeyspace, RingNode};
use env::Env;
use schema::{ReplicaCount, Strategy};
use types::Uuid;

/// Looks at the machine of this process; it may take long, and is not called on a shard.
pub type Examine = Arc<dyn Fn(RingFacts) -> Report + Send + Sync>;

/// Where `helenus doctor --measure` keeps what it measured, below the data directory.
const BASELINES: &str = "doctor";
const PREFIX: &str = "baseline-";
const SUFFIX: &str = ".json";
/// No baseline is larger.
const BASELINE_BYTES_MAX: u64 = 1 << 20;

/// The newest baseline that can be read.
pub(crate) async fn baseline(env: &Env, config: &Config) -> Option<Baseline> {
    let folder = config.data_dir.join(BASELINES);
    let entries = env.read_dir(&folder).await.ok()?;
    let is_one = |name: &str| name.starts_with(PREFIX) && name.ends_with(SUFFIX);
    let names = entries.into_iter().map(|entry| entry.name);
    let mut names: Vec<String> = names.filter(|name| is_one(name)).collect();
    // they sort by time
    names.sort_unstable();
    for name in names.iter().rev() {
        let path: &Path = &folder.join(name);
        let Ok(bytes) = env.read_file(path, BASELINE_BYTES_MAX).await else { continue };
        if let Ok(of) = serde_json::from_slice(&bytes) {
            return Some(of);
        }
    }
    None
}

/// The ring, as far as the doctor looks at it.
pub(crate) fn ring_facts(shard: &Shard) -> RingFacts {
    let schema = shard.engine().schema();
    let Some(ring) = shard.peers().ring() else { return RingFacts::default() };
    let others = shard.membership().map(|membership| membership.nodes()).unwrap_or_default();
    let version = |bytes: [u8; 16]| Uuid::from_bytes(bytes).to_string();
    // those that have a part of the ring
    let owned = ring.ownership();
    let members: Vec<(usize, &ring::Node)> = ring.nodes().iter().enumerate().collect();
    let is_member = |(at, _): &(usize, &ring::Node)| owned.get(*at).is_some_and(Option::is_some);
    let members: Vec<_> = members.into_iter().filter(is_member).collect();
    let node = |node: &ring::Node| {
        let known = others.get(&node.address);
        let (schema, release) = match (node.is_local, known) {
            (true, _) => (Some(schema.version()), shard.identity().release_version.clone()),
            (false, Some(known)) => (known.schema, known.release.clone()),
            (false, None) => (None, String::new()),
        };
        RingNode {
            address: node.address.ip.to_string(),
            data_center: node.data_center.to_string(),
            rack: node.rack.to_string(),
            tokens: node.tokens.len() as u64,
            is_up: node.is_up || node.is_local,
            schema: schema.map(version),
            release,
        }
    };
    let mut keyspaces = Vec::new();
    for keyspace in schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual) {
        let copies = |of: &ReplicaCount| u64::from(of.all);
        let copies = match &keyspace.replication.strategy {
            Strategy::Simple(of) => Copies::Anywhere(copies(of)),
            Strategy::NetworkTopology(of) => Copies::ByCenter(
                of.iter().map(|(center, of)| (center.clone(), copies(of))).collect(),
            ),
            _ => continue,
        };
        let Some(placement) = ring.placement(&keyspace.replication.strategy) else { continue };
        let shares = placement.effective_ownership();
        let share = |at: usize| shares.get(at).copied().flatten().unwrap_or_default();
        let shares = members.iter().map(|(at, _)| f64::from(share(*at)));
        let (name, shares) = (keyspace.name.clone(), shares.collect());
        keyspaces.push(RingKeyspace { name, copies, shares });
    }
    RingFacts { nodes: members.iter().map(|(_, of)| node(of)).collect(), keyspaces }
}
