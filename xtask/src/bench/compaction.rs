//! `cargo xtask bench compaction`: flush, major compaction and scrub of the same data on Helenus
//! and on Cassandra in one run, one server at a time.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::peer::{self, Peer};

pub const HELP: &str = "\
cargo xtask bench compaction [--mb N] [--repeats N] [--schemas rows,collections,counters,tombstones] [--heap 3G]
  fills a table of each schema with N MB (200) in four overlapping parts, each flushed; then compacts and scrubs it; the last of
  the repeats (3) counts, when a JVM is warm. Helenus has as memory_budget what the JVM has as heap, and as the JVM does it touches its
  memory when it starts; prints MB/s, CPU seconds per GB and the ratio of MB per CPU second
  raw results are kept under bench/results/";

/// Addresses of the two servers.
const OURS: &str = "127.0.0.23";
const THEIRS: &str = "127.0.0.24";
/// Memory of memtables, in MiB: nothing is to be flushed but on demand.
const MEMTABLES: u64 = 1024;

/// `bench compaction [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let (mut heap, mut passed) = ("3G".to_owned(), vec!["--".to_owned()]);
    for option in super::options(args) {
        let (name, value) = option?;
        match name {
            "--heap" => heap = value.to_owned(),
            "--mb" | "--repeats" | "--schemas" => {
                passed.extend([name.to_owned(), value.to_owned()])
            }
            other => return Err(format!("unknown option {other}\n{HELP}").into()),
        }
    }
    machine::need(&["java", "python3"])?;
    let results = super::results()?;
    let stamp = super::stamp()?;
    let out = |system: &str| results.join(format!("compaction-{stamp}-{system}.json"));
    let files = [out("helenus"), out("cassandra")];
    helenus(&files[0], &heap, &passed)?;
    cassandra(&files[1], &heap, &passed)?;
    machine::run(Command::new("python3").arg(script()).arg("report").args(&files))
}

fn script() -> PathBuf {
    machine::root().join("bench/compaction/run.py")
}

fn helenus(out: &Path, heap: &str, options: &[String]) -> Outcome {
    node::build()?;
    node::build_nodetool()?;
    let settings = [
        format!("memtable_heap_space={MEMTABLES}MiB"),
        format!("memtable_offheap_space={MEMTABLES}MiB"),
        format!("memory_budget={heap}iB"),
        super::systems::PRETOUCH.to_owned(),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let name = "bench-compaction-helenus";
    let node = Node::start_with(name, OURS, &settings)?;
    let data = machine::cache().join("run").join(name).join("data");
    let server = ("Helenus", node.ip.as_str(), node.pid());
    measure(server, &data.join("data"), out, &node::nodetool(&data), options)
}

fn cassandra(out: &Path, heap: &str, options: &[String]) -> Outcome {
    let yaml = format!(
        "memtable_heap_space: {MEMTABLES}MiB\nmemtable_offheap_space: {MEMTABLES}MiB\n\
         memtable_allocation_type: offheap_objects"
    );
    let name = "bench-compaction-cassandra";
    let peer = Peer::start_with(name, THEIRS, heap, &[("EXTRA_YAML", Path::new(&yaml))])?;
    let dir = machine::cache().join("run").join(name);
    let mut nodetool = peer::script();
    nodetool.arg("nodetool").arg(&dir);
    let server = ("Cassandra", peer.ip.as_str(), peer.pid()?);
    measure(server, &dir.join("data/data"), out, &nodetool, options)
}

fn measure(
    (name, ip, pid): (&str, &str, u32),
    data: &Path,
    out: &Path,
    nodetool: &Command,
    options: &[String],
) -> Outcome {
    machine::run(
        Command::new("python3")
            .arg(script())
            .args(["measure", name, ip, "9042", &pid.to_string()])
            .args([data, out])
            .arg(nodetool.get_program())
            .args(nodetool.get_args())
            .args(options),
    )
}
