//! `cargo xtask bench ring`: three nodes of Helenus and three of Cassandra, in turn, on this
//! machine: YCSB at several levels, numbers of replicas and sizes of rows.

use std::path::PathBuf;
use std::process::Command;

use crate::machine::{self, Outcome};
use crate::members::{self, Layout};

pub const HELP: &str = "\
cargo xtask bench ring [--cells a,b,...] [--pairs N] [--operations N] [--threads N] [--heap 2G] [--workloads a,b,...]
  starts 3 nodes of each system in turn, N pairs (3); cells (all of them):
    rf1-one rf3-one rf3-local_quorum rf3-quorum rf3-each_quorum (two data centres), rows of 1 KB
    100b 100kb: rf3-local_quorum with rows of that size
  a node of Helenus has one shard, since three of them share the cores of this machine, and takes at its start the memory that a JVM
  takes as its heap
  raw results are kept under bench/results/";

/// Nodes of each ring.
const NODES: u8 = 3;
/// Columns of a row.
const COLUMNS: u32 = 10;

/// What is measured.
struct Cell {
    name: &'static str,
    replicas: u32,
    level: &'static str,
    centers: u8,
    /// Bytes of a column.
    column: u32,
    /// Rows that are loaded, and operations, where no number is given.
    records: u32,
}

const CELLS: &[Cell] = &[
    Cell { name: "rf1-one", replicas: 1, level: "ONE", centers: 1, column: 100, records: 100_000 },
    Cell { name: "rf3-one", replicas: 3, level: "ONE", centers: 1, column: 100, records: 100_000 },
    Cell {
        name: "rf3-local_quorum",
        replicas: 3,
        level: "LOCAL_QUORUM",
        centers: 1,
        column: 100,
        records: 100_000,
    },
    Cell {
        name: "rf3-quorum",
        replicas: 3,
        level: "QUORUM",
        centers: 1,
        column: 100,
        records: 100_000,
    },
    Cell {
        name: "rf3-each_quorum",
        replicas: 3,
        level: "EACH_QUORUM",
        centers: 2,
        column: 100,
        records: 100_000,
    },
    Cell {
        name: "100b",
        replicas: 3,
        level: "LOCAL_QUORUM",
        centers: 1,
        column: 10,
        records: 100_000,
    },
    Cell {
        name: "100kb",
        replicas: 3,
        level: "LOCAL_QUORUM",
        centers: 1,
        column: 10_000,
        records: 3_000,
    },
];

impl Cell {
    /// Replicas as CQL writes them: of two data centres the first has two nodes.
    fn replication(&self) -> String {
        let Self { replicas, centers, .. } = self;
        match centers {
            1 => format!("{{'class': 'NetworkTopologyStrategy', 'datacenter1': {replicas}}}"),
            _ => {
                let (first, second) = (replicas - 1, 1);
                format!(
                    "{{'class': 'NetworkTopologyStrategy', 'datacenter1': {first}, 'datacenter2': {second}}}"
                )
            }
        }
    }
}

struct Options {
    cells: Vec<&'static Cell>,
    pairs: u32,
    heap: String,
    operations: Option<String>,
    passed: Vec<String>,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self {
            cells: CELLS.iter().collect(),
            pairs: 3,
            heap: "2G".to_owned(),
            operations: None,
            passed: Vec::new(),
        };
        for option in super::options(args) {
            let (name, value) = option?;
            match name {
                "--cells" => {
                    let cell = |name: &str| CELLS.iter().find(|cell| cell.name == name);
                    let cells = value.split(',').map(cell).collect::<Option<Vec<_>>>();
                    options.cells = cells.ok_or_else(|| format!("unknown cell\n{HELP}"))?;
                }
                "--pairs" => options.pairs = value.parse()?,
                "--heap" => options.heap = value.to_owned(),
                "--operations" => options.operations = Some(value.to_owned()),
                "--threads" | "--workloads" => {
                    options.passed.extend([name.to_owned(), value.to_owned()])
                }
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }
}

/// `bench ring [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["java", "mvn", "python3"])?;
    super::build_client()?;
    let stamp = super::stamp()?;
    let mut files = Vec::new();
    for pair in 1..=options.pairs {
        for ours in [true, false] {
            files.extend(one_system(&options, ours, &format!("{stamp}-{pair}"))?);
        }
    }
    machine::run(Command::new("python3").arg(script()).arg("pairs").args(&files))
}

fn script() -> PathBuf {
    machine::root().join("bench/ycsb/run.py")
}

/// All cells on one system; a ring of its own for each number of data centres.
fn one_system(options: &Options, ours: bool, stamp: &str) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for centers in [1, 2] {
        let cells: Vec<&&Cell> = options.cells.iter().filter(|it| it.centers == centers).collect();
        if cells.is_empty() {
            continue;
        }
        let (us, them) = if ours { (NODES, 0) } else { (0, NODES) };
        let layout = Layout {
            ours: us,
            theirs: them,
            centers,
            shards: Some(1),
            memory: Some(format!("{}iB", options.heap)),
            ..Layout::default()
        };
        let ring = members::start_with(&layout, &options.heap)?;
        let pids: Outcome<Vec<String>> = ring.iter().map(members::Member::pid).collect();
        for cell in cells {
            files.push(measure(
                options,
                cell,
                ours,
                &pids.as_ref().map_err(|e| e.to_string())?.join(","),
                stamp,
            )?);
        }
        members::stop()?;
    }
    Ok(files)
}

fn measure(
    options: &Options,
    cell: &Cell,
    ours: bool,
    pids: &str,
    stamp: &str,
) -> Outcome<PathBuf> {
    let name = if ours { "Helenus" } else { "Cassandra" };
    let file = format!("ring-{stamp}-{}-{}.json", cell.name, name.to_lowercase());
    let out = super::results()?.join(file);
    let records = cell.records.to_string();
    let operations = options.operations.clone().unwrap_or_else(|| records.clone());
    let keyspace = format!("ycsb_{}", cell.name.replace('-', "_"));
    let mut command = Command::new("python3");
    command.arg(script()).args(["measure", name, "127.0.0.1", "9042", pids]).arg(&out);
    command.args(["--records", &records, "--operations", &operations, "--cell", cell.name]);
    for (property, value) in [
        ("keyspace", keyspace),
        ("replication", cell.replication()),
        ("consistency", cell.level.to_owned()),
        ("fieldcount", COLUMNS.to_string()),
        ("fieldlength", cell.column.to_string()),
    ] {
        command.args(["--property", &format!("{property}={value}")]);
    }
    if !options.passed.iter().any(|word| word == "--workloads") {
        command.args(["--workloads", "read95-update5,update50-read50"]);
    }
    machine::run(command.args(&options.passed))?;
    Ok(out)
}
