//! `cargo xtask bench insn`: instructions and allocations of point reads and of one update, called in process.

use std::process::Command;

use crate::machine::{self, Outcome};

/// Operations of the two runs whose difference is divided.
const FEW: u64 = 1_000;
const MANY: u64 = 11_000;

/// An operation, and what DESIGN.md aims at: instructions, allocations. Reads are from the memtable, from an SSTable whose
/// chunks are in memory, from one where places of keys are not kept, and from the cache of rows.
const KINDS: [(&str, f64, f64); 5] = [
    ("read", 10_000.0, 2.0),
    ("disk", 10_000.0, 2.0),
    ("search", 10_000.0, 2.0),
    ("rows", 10_000.0, 2.0),
    ("update", 12_000.0, 4.0),
];

/// `bench insn`
pub fn run() -> Outcome {
    machine::need(&["valgrind"])?;
    let root = machine::root();
    machine::run(
        Command::new("cargo")
            .args(["build", "--release", "--quiet", "--package", "insn"])
            .current_dir(root),
    )?;
    println!(
        "in process: a frame of EXECUTE parsed and run, one shard, 1 KB row in memory, 100 byte update"
    );
    println!(
        "{:<10}{:>14}{:>8}{:>14}{:>8}{:>12}",
        "operation", "instructions", "goal", "allocations", "goal", "bytes"
    );
    for (kind, instructions, allocations) in KINDS {
        let few = counted(kind, FEW)?;
        let many = counted(kind, MANY)?;
        let each = many.0.saturating_sub(few.0) as f64 / (MANY - FEW) as f64;
        println!(
            "{kind:<10}{each:>14.0}{instructions:>8}{:>14.2}{allocations:>8}{:>12.0}",
            many.1, many.2
        );
    }
    Ok(())
}

/// Instructions of a whole run; allocations and allocated bytes of an operation of it.
fn counted(kind: &str, count: u64) -> Outcome<(u64, f64, f64)> {
    let done = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(machine::root().join("target/release/insn"))
        .args([kind, &count.to_string()])
        .output()?;
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !done.status.success() {
        return Err(format!("insn {kind} {count} failed\n{out}{err}").into());
    }
    let refs = err.lines().find_map(|line| line.split_once("I   refs:").map(|(_, n)| n));
    let refs = refs.and_then(|n| n.trim().replace(',', "").parse().ok());
    let words: Vec<&str> = out.split_whitespace().collect();
    match (refs, &words[..]) {
        (Some(refs), &["allocations", allocations, "bytes", bytes]) => {
            Ok((refs, allocations.parse()?, bytes.parse()?))
        }
        _ => Err(format!("insn {kind} {count} printed something else\n{out}{err}").into()),
    }
}
