//! `cargo xtask bench insn --socket`: instructions and allocations of a request that comes through
//! a socket: the node's and the client's, each counted in its own process, and the node's by layer.
//! What the kernel does for both is in neither.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::callgrind::Counted;
use super::point;
use crate::machine::{self, Outcome};
use crate::node::{self, Node};

const NODE: &str = "127.0.0.27";
const SECONDS: &str = "20";
const ROWS: &str = "1000";
/// Who is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Node,
    Client,
}

/// Prints what a read and an update cost, one at a time and many.
pub fn run() -> Outcome {
    machine::need(&["valgrind", "cc"])?;
    node::build()?;
    point::build()?;
    let wait = build_wait()?;
    println!(
        "through a socket: one shard, one connection; rows of 1 KB; the kernel's part is in neither"
    );
    println!(
        "{:<8}{:>6}{:>20}{:>13}{:>22}",
        "", "depth", "node: instructions", "allocations", "client: instructions"
    );
    let mut layers: BTreeMap<&str, Vec<(usize, f64)>> = BTreeMap::new();
    let kinds = [("read", "1"), ("read", "16"), ("update", "1"), ("update", "16")];
    for (place, (operation, depth)) in kinds.into_iter().enumerate() {
        let (node, node_count) = count(Side::Node, operation, depth, &wait)?;
        let (client, client_count) = count(Side::Client, operation, depth, &wait)?;
        println!(
            "{operation:<8}{depth:>6}{:>20.0}{:>13.2}{:>22.0}",
            node.instructions as f64 / node_count,
            node.allocations as f64 / node_count,
            client.instructions as f64 / client_count,
        );
        for (layer, instructions) in node.layers {
            layers.entry(layer).or_default().push((place, instructions as f64 / node_count));
        }
    }
    println!(
        "\n{:<22}{:>12}{:>12}{:>12}{:>12}",
        "the node's by layer", "read 1", "16", "update 1", "16"
    );
    for (layer, counts) in layers {
        let of =
            |place| counts.iter().find(|(at, _)| *at == place).map_or(0.0, |(_, count)| *count);
        println!("{layer:<22}{:>12.0}{:>12.0}{:>12.0}{:>12.0}", of(0), of(1), of(2), of(3));
    }
    Ok(())
}

/// Builds what lets a program with a ring run under valgrind.
fn build_wait() -> Outcome<PathBuf> {
    let (source, built) =
        (machine::root().join("bench/insn/wait.c"), machine::root().join("target/wait.so"));
    let mut cc = Command::new("cc");
    machine::run(
        cc.args(["-shared", "-fPIC", "-O2", "-Wall", "-o"]).arg(&built).arg(source).arg("-ldl"),
    )?;
    Ok(built)
}

/// A program under valgrind, which writes what it counted to files that begin so.
fn under(wait: &Path, out: &Path, program: &Command) -> Command {
    let mut command = Command::new("valgrind");
    command.env("LD_PRELOAD", wait).args(["--tool=callgrind", "--quiet"]);
    command.arg(format!("--callgrind-out-file={}", out.display())).arg(program.get_program());
    command
}

/// Has one side counted while a client drives a node; and how many operations it did.
fn count(side: Side, operation: &str, depth: &str, wait: &Path) -> Outcome<(Counted, f64)> {
    let folder = machine::cache().join("run").join("insn-socket");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let out = folder.join("counted");
    let settings = ["shards=1"];
    let node = match side {
        Side::Node => {
            let program = under(wait, &out, &node::command());
            Node::start_as(program, "insn-socket-node", NODE, &settings)?
        }
        Side::Client => Node::start_with("insn-socket-node", NODE, &settings)?,
    };
    let mut client = match side {
        Side::Node => point::tool(),
        Side::Client => under(wait, &out, &point::tool()),
    };
    client.args(["drive", &format!("{NODE}:9042"), operation, "--depth", depth]);
    client.args(["--connections", "1", "--seconds", SECONDS, "--rows", ROWS]);
    let mut client = client.stdout(Stdio::piped()).spawn()?;
    let counted = if side == Side::Node { node.pid() } else { client.id() };
    let said = watch(&mut client, side, counted)?;
    client.wait()?;
    drop(node);
    let count = said.split(' ').find_map(|word| word.strip_prefix("operations="));
    let count: f64 = count.ok_or_else(|| format!("no operations in `{said}`"))?.parse()?;
    if !said.contains(" errors=0 ") || count == 0.0 {
        return Err(format!("not all was answered: {said}").into());
    }
    // a file that was asked for has a number
    let file = if side == Side::Node { out.with_extension("1") } else { out };
    Ok((Counted::parse(&fs::read_to_string(file)?)?, count))
}

/// Counts from when the client is warm until it has said what it did: that is its end, and
/// valgrind's file of it.
fn watch(client: &mut Child, side: Side, counted: u32) -> Outcome<String> {
    let out = client.stdout.take().ok_or("no output")?;
    let mut lines = BufReader::new(out).lines().map_while(Result::ok);
    if lines.next().as_deref() != Some("warm") {
        return Err("the client did not become warm".into());
    }
    control("--zero", counted)?;
    let said = lines.next().ok_or("the client said nothing")?;
    if side == Side::Node {
        control("--dump", counted)?;
    }
    Ok(said)
}

fn control(what: &str, process: u32) -> Outcome {
    let mut control = Command::new("callgrind_control");
    machine::run(
        control.args([what, &process.to_string()]).stdout(Stdio::null()).stderr(Stdio::null()),
    )
}
