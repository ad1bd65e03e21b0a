//! Nodes as they start: those that the ring has from the beginning, with tokens dealt evenly, and
//! one that comes later.

use std::fs;

use crate::machine::{self, Outcome};
use crate::members::{self, Member};
use crate::peer;

use super::scenario::{Kind, Place, Scenario};

const HEAP: &str = "768M";
/// How long news may take to be known, in milliseconds: each step of an operation waits as long.
const RING_DELAY_MS: u32 = 5000;
/// How often a Cassandra says how much data it has: one that replaces another waits as long.
const BROADCAST_MS: u32 = 5000;
/// How long a Cassandra may take until it serves, in seconds.
const START_SECONDS: &str = "120";

/// How a node comes into the ring.
pub enum Entry {
    /// With these tokens, before there is data.
    First(Vec<i64>),
    /// With data from others, for so many tokens, in place of another address if there is one.
    Later { tokens: usize, replaces: Option<String> },
}

/// A node of a scenario, at an address.
pub fn member(scenario: &Scenario, place: Place, kind: Kind, ip: String) -> Member {
    Member {
        ip,
        dir: members::home().join(place.to_string()),
        is_ours: kind == Kind::H,
        center: scenario.center(place).to_owned(),
        network: None,
    }
}

/// The address of a place.
pub fn address(place: Place) -> Outcome<String> {
    Ok(members::loopback(u8::try_from(place)?))
}

/// Starts the ring of a scenario: the first node, then the others at once.
pub fn start_ring(scenario: &Scenario, release: &str) -> Outcome<Vec<Member>> {
    let places = scenario.ring.iter().enumerate();
    let ring = places
        .map(|(at, kind)| Ok(member(scenario, at + 1, *kind, address(at + 1)?)))
        .collect::<Outcome<Vec<Member>>>()?;
    let seed = address(1)?;
    let first = |at: usize| Entry::First(tokens(at, ring.len(), scenario.tokens()));
    let begin = |at: usize, member| start(member, first(at), &seed, release);
    let mut started = ring.iter().enumerate();
    if let Some((at, member)) = started.next() {
        begin(at, member)?;
    }
    std::thread::scope(|scope| {
        let begin =
            |(at, member)| scope.spawn(move || begin(at, member).map_err(|e| e.to_string()));
        let others: Vec<_> = started.map(begin).collect();
        for other in others {
            other.join().map_err(|_| "a start panicked")??;
        }
        Outcome::Ok(())
    })?;
    Ok(ring)
}

/// Every so many tokens of the ring belong to a node.
fn tokens(at: usize, nodes: usize, each: usize) -> Vec<i64> {
    let all = (nodes * each) as i128;
    let token = |n: usize| i128::from(i64::MIN) + (1 << 64) / all * (n * nodes + at) as i128;
    // the lowest token is none that a node may have
    (0..each).filter_map(|n| i64::try_from(token(n) + 1).ok()).collect()
}

/// A token that no node has: halfway from the third node's to the next one.
pub fn token_between(nodes: usize) -> i64 {
    let (third, fourth) = (tokens(2, nodes, 1), tokens(3, nodes, 1));
    third.first().zip(fourth.first()).map_or(0, |(third, fourth)| third.midpoint(*fourth))
}

/// Starts a node, and waits until it serves.
pub fn start(member: &Member, entry: Entry, seed: &str, release: &str) -> Outcome {
    match member.is_ours {
        false => start_cassandra(member, &entry, seed, release),
        true => start_helenus(member, &entry, seed, release),
    }
}

fn start_cassandra(member: &Member, entry: &Entry, seed: &str, release: &str) -> Outcome {
    let mut jvm = format!(
        "-Dcassandra.skip_wait_for_gossip_to_settle=0 -Dcassandra.ring_delay_ms={RING_DELAY_MS} \
         -Dcassandra.broadcast_interval_ms={BROADCAST_MS}"
    );
    let mut start = peer::script();
    start.arg("start").arg(&member.dir).args([&member.ip, HEAP]);
    start.env("WAIT", START_SECONDS);
    start.env("SEEDS", seed).env("CASSANDRA_VERSION", release).env("DC", &member.center);
    match entry {
        Entry::First(tokens) => {
            start.env("NUM_TOKENS", tokens.len().to_string()).env("INITIAL_TOKEN", list(tokens));
            start.env("EXTRA_YAML", "auto_bootstrap: false");
        }
        Entry::Later { tokens, replaces } => {
            start.env("NUM_TOKENS", tokens.to_string());
            let replaced = replaces.iter();
            jvm.extend(replaced.map(|ip| format!(" -Dcassandra.replace_address_first_boot={ip}")));
        }
    }
    machine::run(start.env("EXTRA_JVM", jvm))
}

fn start_helenus(member: &Member, entry: &Entry, seed: &str, release: &str) -> Outcome {
    configure_helenus(member, entry, seed)?;
    members::launch(member, release)
}

/// Writes the configuration of a Helenus into its directory.
pub fn configure_helenus(member: &Member, entry: &Entry, seed: &str) -> Outcome {
    let mut own = format!("ring_delay: {RING_DELAY_MS}ms\n");
    let how = match entry {
        Entry::First(tokens) => format!(
            "num_tokens: {}\ninitial_token: \"{}\"\nauto_bootstrap: false\n",
            tokens.len(),
            list(tokens)
        ),
        Entry::Later { tokens, replaces } => {
            own.extend(replaces.iter().map(|ip| format!("replace_address_first_boot: {ip}\n")));
            format!("num_tokens: {tokens}\n")
        }
    };
    let settings = format!(
        "cluster_name: {}\nendpoint_snitch: GossipingPropertyFileSnitch\n\
         {how}seed_provider: [ {{ class_name: SimpleSeedProvider, \
         parameters: [ {{ seeds: \"{seed}\" }} ] }} ]\n",
        members::CLUSTER
    );
    let conf = member.dir.join("conf");
    fs::create_dir_all(&conf)?;
    fs::write(conf.join("cassandra.yaml"), settings)?;
    fs::write(conf.join("helenus.yaml"), own)?;
    let place = format!("dc={}\nrack=rack1\n", member.center);
    Ok(fs::write(conf.join("cassandra-rackdc.properties"), place)?)
}

fn list(tokens: &[i64]) -> String {
    tokens.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_dealt_evenly() {
        assert_eq!(tokens(0, 4, 1), [i64::MIN + 1]);
        assert_eq!(tokens(2, 4, 1), [1]);
        assert_eq!(token_between(4), (1 << 61) + 1);
        let mut all: Vec<i64> = (0..3).flat_map(|at| tokens(at, 3, 4)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12);
    }
}
