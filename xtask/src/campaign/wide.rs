//! `cargo xtask campaign wide`: a partition far larger than the memory of the node that has it.

use std::process::Command;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};

const NAME: &str = "wide";
const IP: &str = "127.0.0.46";
/// Rows of 200 bytes, where no number is given: 2 GB.
const ROWS: u64 = 10_000_000;
/// What the process may take, whatever it does, in bytes.
const MEMORY_MAX: u64 = 512 << 20;
const SETTINGS: [&str; 2] = ["memory_budget=512MiB", "compaction_throughput=0MiB/s"];
const MIB: u64 = 1 << 20;

/// `campaign wide [ROWS]`
pub fn campaign(words: &[&str]) -> Outcome {
    let rows = match words {
        [] => ROWS,
        [rows] => rows.parse().map_err(|_| format!("{rows} is no number"))?,
        _ => return Err(super::USAGE.into()),
    };
    node::build()?;
    node::build_nodetool()?;
    let data = machine::cache().join("run").join(NAME).join("data");
    let mut lines =
        vec!["| step | seconds | memory at most, MiB |".to_owned(), "|---|---|---|".to_owned()];
    let mut step = |node: &Node, name: &str, run: &mut dyn FnMut() -> Outcome| -> Outcome {
        let started = Instant::now();
        run()?;
        let most = node.most_resident()?;
        let line = format!("| {name} | {:.1} | {} |", started.elapsed().as_secs_f64(), most / MIB);
        println!("{line}");
        lines.push(line);
        match most <= MEMORY_MAX {
            true => Ok(()),
            false => Err(format!("{name}: {} MiB of memory", most / MIB).into()),
        }
    };
    let client = |what: &str| {
        let mut python = Command::new("python3");
        python.arg(machine::root().join("conformance/wide/wide.py"));
        machine::run(python.args([IP, &rows.to_string(), what]))
    };
    let nodetool = |words: &[&str]| machine::run(node::nodetool(&data).args(words));
    let node = Node::start_with(NAME, IP, &SETTINGS)?;
    step(&node, "write", &mut || client("write"))?;
    step(&node, "read", &mut || client("check"))?;
    step(&node, "flush", &mut || nodetool(&["flush", "wide", "t"]))?;
    step(&node, "read after the flush", &mut || client("check"))?;
    step(&node, "compact", &mut || nodetool(&["compact", "wide", "t"]))?;
    step(&node, "read after the compaction", &mut || client("check"))?;
    drop(node);
    let node = Node::start_again(NAME, IP, &SETTINGS)?;
    step(&node, "read after a restart", &mut || client("check"))?;
    drop(node);
    let text = format!(
        "One partition of {rows} rows of 200 bytes, on commit {}; the process may take {} MiB.\n\n{}\n",
        super::commit()?,
        MEMORY_MAX / MIB,
        lines.join("\n")
    );
    let path = super::record(NAME, &text)?;
    println!("recorded in {}", path.display());
    Ok(())
}
