//! Networks of nodes on this machine that can be parted: a network namespace each, behind a bridge,
//! or behind another one while they are cut off, or far away. Needs root and `ip`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::machine::{self, Outcome};

const BRIDGE: &str = "helenus-br";
/// Of those who are cut off from the others.
const ELSEWHERE: &str = "helenus-br2";
/// Of the bridge, and so of clients.
const OUTSIDE: &str = "10.77.0.254";
/// Of clients among those who are far away.
const FAR_OUTSIDE: &str = "10.77.0.253";
/// The ends of the way to those who are far away.
const FAR_WAY: [&str; 2] = ["helenus-way", "helenus-way2"];

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

/// Some nodes are far from the others: what goes there takes its time. The clients on this machine
/// are near to all. It goes with this value, before its networks do.
///
/// Not by `tc netem`, which not every kernel has.
pub struct Distance {
    way: Child,
    says: ChildStdin,
}

impl Distance {
    /// Parts them, at no distance yet.
    pub fn between(networks: &Networks, far: &[u8]) -> Outcome<Self> {
        machine::need(&["python3"])?;
        networks.cut(far)?;
        // each bridge answers for its own address alone, though the other one is reached by it
        for bridge in [BRIDGE, ELSEWHERE] {
            std::fs::write(format!("/proc/sys/net/ipv4/conf/{bridge}/arp_ignore"), "1")?;
        }
        ip(&["addr", "add", &format!("{FAR_OUTSIDE}/32"), "dev", ELSEWHERE])?;
        for number in far {
            let node = format!("{}/32", address(*number));
            ip(&["route", "add", &node, "dev", ELSEWHERE, "src", FAR_OUTSIDE])?;
        }
        let mut way = Command::new("python3");
        way.arg(machine::root().join("bench/distance/way.py")).args(FAR_WAY);
        let mut way = way.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(says), Some(told)) = (way.stdin.take(), way.stdout.take()) else {
            return Err("the way has no input or no output".into());
        };
        let made = Self { way, says };
        let mut line = String::new();
        // it says so once its ends are there
        BufReader::new(told).read_line(&mut line)?;
        for (end, bridge) in FAR_WAY.into_iter().zip([BRIDGE, ELSEWHERE]) {
            ip(&["link", "set", end, "txqueuelen", "10000", "master", bridge, "up"])?;
        }
        Ok(made)
    }

    /// From now on it takes so long there and back, in milliseconds.
    pub fn set(&mut self, ms: u32) -> Outcome {
        Ok(writeln!(self.says, "{ms}")?)
    }
}

impl Drop for Distance {
    fn drop(&mut self) {
        // its ends go with it; it may have ended by itself
        let _ = self.way.kill();
        let _ = self.way.wait();
    }
}

fn ip(words: &[&str]) -> Outcome {
    machine::run(Command::new("ip").args(words))
}

/// The same where it may fail.
fn quiet(words: &[&str]) -> std::io::Result<std::process::Output> {
    Command::new("ip").args(words).output()
}
