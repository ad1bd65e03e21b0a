//! Networks of nodes on this machine that can be parted: a network namespace each, behind a bridge,
//! or behind another one while they are cut off. Needs root and `ip`.

use std::process::Command;

use crate::machine::{self, Outcome};

const BRIDGE: &str = "helenus-br";
/// Of those who are cut off from the others.
const ELSEWHERE: &str = "helenus-br2";
/// Of the bridge, and so of clients.
const OUTSIDE: &str = "10.77.0.254";

/// The namespace of a node.
pub fn name(number: u8) -> String {
    format!("helenus-{number}")
}

/// The address of a node.
pub fn address(number: u8) -> String {
    format!("10.77.0.{number}")
}

/// The bridge's end of a node's wire.
fn wire(number: u8) -> String {
    format!("helenus-w{number}")
}

/// A command, run in a namespace if there is one.
pub fn within(namespace: Option<&str>, command: Command) -> Command {
    let Some(namespace) = namespace else { return command };
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", namespace]).arg(command.get_program()).args(command.get_args());
    inside
}

/// Namespaces for nodes 1 to N; they go with this value.
pub struct Networks {
    nodes: u8,
}

impl Networks {
    /// Makes them.
    pub fn make(nodes: u8) -> Outcome<Self> {
        machine::need(&["ip"])?;
        let made = Self { nodes };
        made.remove();
        ip(&["link", "add", BRIDGE, "type", "bridge"])?;
        ip(&["addr", "add", &format!("{OUTSIDE}/24"), "dev", BRIDGE])?;
        ip(&["link", "set", BRIDGE, "up"])?;
        ip(&["link", "add", ELSEWHERE, "type", "bridge"])?;
        ip(&["link", "set", ELSEWHERE, "up"])?;
        for number in 1..=nodes {
            let (name, wire) = (name(number), wire(number));
            ip(&["netns", "add", &name])?;
            ip(&["link", "add", &wire, "type", "veth", "peer", "name", "eth0", "netns", &name])?;
            ip(&["link", "set", &wire, "master", BRIDGE, "up"])?;
            let place = format!("{}/24", address(number));
            ip(&["-n", &name, "addr", "add", &place, "dev", "eth0"])?;
            ip(&["-n", &name, "link", "set", "eth0", "up"])?;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
        }
        Ok(made)
    }

    /// Nothing gets to nodes any more but from each other, nor from them.
    pub fn cut(&self, numbers: &[u8]) -> Outcome {
        numbers.iter().try_for_each(|n| ip(&["link", "set", &wire(*n), "master", ELSEWHERE]))
    }

    /// All is as before.
    pub fn heal(&self, numbers: &[u8]) -> Outcome {
        numbers.iter().try_for_each(|n| ip(&["link", "set", &wire(*n), "master", BRIDGE]))
    }

    fn remove(&self) {
        for number in 1..=self.nodes {
            // a process that is left keeps its namespace, and the wire to it
            let _ = quiet(&["link", "del", &wire(number)]);
            let _ = quiet(&["netns", "del", &name(number)]);
        }
        for bridge in [BRIDGE, ELSEWHERE] {
            let _ = quiet(&["link", "del", bridge]);
        }
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        self.remove();
    }
}

fn ip(words: &[&str]) -> Outcome {
    machine::run(Command::new("ip").args(words))
}

/// The same where it may fail.
fn quiet(words: &[&str]) -> std::io::Result<std::process::Output> {
    Command::new("ip").args(words).output()
}
