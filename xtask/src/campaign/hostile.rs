//! `cargo xtask campaign hostile`: what clients and nodes that mean harm do to a node, and to a
//! client that means none.

use std::process::Command;

use crate::door;
use crate::machine::{self, Outcome};
use crate::node::{self, Node};

const IP: &str = "127.0.0.33";
/// The other node of a ring; `conformance/hostile/peers.py` has the next two.
const OTHER_IP: &str = "127.0.0.34";
/// The name that `peers.py` says its cluster has.
const CLUSTER: &str = "peer";
/// Handshakes end, and who is no node is forgotten, within seconds.
const HASTY: [&str; 4] =
    ["request_timeout=1s", "read_request_timeout=1s", "range_request_timeout=1s", "ring_delay=2s"];
/// Seconds of each measurement, where no number is given.
const SECONDS: u32 = 20;
/// Seeds of what is drawn, of a campaign and of a stage.
const SEEDS: (u32, u32) = (200, 6);
/// Tries at a port of TLS, of those in `conformance/peers/tls.py`.
const TLS_TRIES: &str = "what_is_no_tls_is_refused";

/// `campaign hostile [SECONDS]`
pub fn campaign(words: &[&str]) -> Outcome {
    let seconds = match words {
        [] => SECONDS,
        [seconds] => seconds.parse().map_err(|_| format!("{seconds} is no number"))?,
        _ => return Err(super::USAGE.into()),
    };
    node::build()?;
    let nodes = peers(&["--all".to_owned(), "--seeds".to_owned(), SEEDS.0.to_string()])?.0;
    let node = Node::start("hostile", IP)?;
    let (done, _) = clients(&node, &[])?;
    drop(node);
    // One shard, which is given a core of its own.
    let node = Node::start_with("hostile", IP, &["shards=1"])?;
    let (measured, _) = clients(&node, &["--measure".to_owned(), seconds.to_string()])?;
    drop(node);
    let passwords = door::run(&["wrong_passwords_do_not_hurt_others"], true)?.0;
    match nodes && done && measured && passwords {
        true => Ok(()),
        false => Err("not all ended as it should".into()),
    }
}

/// Every case of clients once: (did all end as they should, what was printed).
pub fn short() -> Outcome<(bool, String)> {
    clients(&Node::start("hostile", IP)?, &[])
}

/// Every case of other nodes, fewer cuts and seeds than a campaign has: the same.
pub fn short_peers() -> Outcome<(bool, String)> {
    peers(&["--seeds".to_owned(), SEEDS.1.to_string()])
}

/// What speaks no TLS, or none that is any good, at a port where nodes do: the same; a line `ok
/// NAME` for each try.
pub fn short_tls() -> Outcome<(bool, String)> {
    machine::need(&["openssl"])?;
    node::build_nodetool()?;
    let mut python = Command::new("python3");
    python.arg(machine::root().join("conformance/peers/tls.py"));
    python.arg(node::command().get_program()).arg(node::nodetool_path());
    python.arg(machine::cache().join("run/hostile-tls")).args([IP, OTHER_IP, "--only", TLS_TRIES]);
    machine::output(&mut python)
}

fn clients(node: &Node, options: &[String]) -> Outcome<(bool, String)> {
    let mut python = Command::new("python3");
    python.arg(machine::root().join("conformance/hostile/hostile.py"));
    python.args([&node.ip, "9042", &node.pid().to_string()]).args(options);
    machine::output(&mut python)
}

/// Runs `peers.py` on a ring of two.
fn peers(options: &[String]) -> Outcome<(bool, String)> {
    let first = Node::start_member_with("hostile-first", IP, CLUSTER, IP, &HASTY)?;
    let second = Node::start_member_with("hostile-second", OTHER_IP, CLUSTER, IP, &HASTY)?;
    let mut python = Command::new("python3");
    python.arg(machine::root().join("conformance/hostile/peers.py"));
    for node in [&first, &second] {
        python.args([&node.ip, &node.pid().to_string()]);
    }
    machine::output(python.args(options))
}
