//! `cargo xtask campaign hostile`: what clients that mean harm do to one that does not.

use std::process::Command;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};

const IP: &str = "127.0.0.33";
/// Seconds of each measurement, where no number is given.
const SECONDS: u32 = 20;

/// `campaign hostile [SECONDS]`
pub fn campaign(words: &[&str]) -> Outcome {
    let seconds = match words {
        [] => SECONDS,
        [seconds] => seconds.parse().map_err(|_| format!("{seconds} is no number"))?,
        _ => return Err(super::USAGE.into()),
    };
    node::build()?;
    let node = Node::start("hostile", IP)?;
    let (done, _) = clients(&node, &[])?;
    drop(node);
    // One shard, which is given a core of its own.
    let node = Node::start_with("hostile", IP, &["shards=1"])?;
    let (measured, _) = clients(&node, &["--measure".to_owned(), seconds.to_string()])?;
    drop(node);
    let passwords = crate::test::door(&["wrong_passwords_do_not_hurt_others"], true)?.0;
    if done && measured && passwords { Ok(()) } else { Err("not all ended as it should".into()) }
}

/// Every case once: (did all end as they should, what was printed).
pub fn short() -> Outcome<(bool, String)> {
    clients(&Node::start("hostile", IP)?, &[])
}

fn clients(node: &Node, options: &[String]) -> Outcome<(bool, String)> {
    let mut python = Command::new("python3");
    python.arg(machine::root().join("conformance/hostile/hostile.py"));
    python.args([&node.ip, "9042", &node.pid().to_string()]).args(options);
    machine::output(&mut python)
}
