//! The project's commands: `cargo xtask run | package | test | bench | campaign | ring | peer |
//! oracle | drivers | cqlsh | tidy`.
//!
//! Development tooling, not part of the node: it may use processes, files and clocks directly.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tooling outside the node; the door is for the node's own crates"
)]
#![allow(
    clippy::disallowed_types,
    reason = "tooling outside the node; the door is for the node's own crates"
)]

mod bench;
mod campaign;
mod clients;
mod dist;
mod door;
mod drivers;
mod load;
mod machine;
mod members;
mod network;
mod node;
mod oracle;
mod package;
mod peer;
mod programs;
mod ring;
mod run;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND
  run [--demo] [-- ARGS]       build the node and start it on 127.0.0.1:9042, data under ./data
  dist                         build the node to install: a quarter of an hour, for what it does most (`dist --help`)
  package [KIND...] [--from DIR]
                               tarball, wheel, deb, rpm, image (`package --help`)
  test [STAGE...]              all checks, or the named stages; `test --list` names them
  bench ycsb [OPTIONS]         Helenus and Cassandra in turn; operations per CPU second (`bench ycsb --help`)
  bench tails [OPTIONS]        latencies at half of what Cassandra can do, of both (`bench tails --help`)
  bench ring [OPTIONS]         the same for rings of three nodes (`bench ring --help`)
  bench load [OPTIONS]         inserts until all is compacted, of both (`bench load --help`)
  bench cold [OPTIONS]         reads of what is not in memory, beside fio (`bench cold --help`; root)
  bench fair [OPTIONS]         what greedy clients do to another one, and what too many requests do (`bench fair --help`)
  bench io [OPTIONS]           reads and updates beside flushes and compactions, on a time axis (`bench io --help`)
  bench compaction [OPTIONS]   flush, major compaction and scrub beside Cassandra's (`bench compaction --help`)
  bench point [OPTIONS]        a row a request from a native client, beside a server that only echoes (`bench point --help`)
  bench tokens [OPTIONS]       how even rings grow, beside Cassandra's (`bench tokens --help`)
  bench thousand [OPTIONS]     1,000 nodes: gossip, the ring, tokens (`bench thousand --help`)
  bench streams [OPTIONS]      SSTables from node to node, of both (`bench streams --help`)
  bench joins [OPTIONS]        a node comes and goes, 1 to 256 tokens (`bench joins --help`)
  bench scaleout [OPTIONS]     a fourth node joins three under load (`bench scaleout --help`)
  bench doctor [OPTIONS]       the effects that `helenus doctor` cites (`bench doctor --help`; root)
  bench insn [PATH...] [--record REASON]
                               instructions and allocations of the hot paths, in process, beside those recorded
  campaign seeds|engine|conditions|ring-seeds|elastic-seeds|repair-seeds [FROM] [COUNT] | campaign KIND --resume | campaign planted [BUG]
                               simulated worlds of new seeds; bugs planted in them
  campaign images [SEED [IMAGES]]
                               the power cut in every step that changes files, simulated, 5,000 images
  campaign wide [ROWS]         one partition of 10 million rows, within a budget of 512 MB
  campaign compaction [SEED] [SCENARIOS]
                               days of load under each strategy; its choices beside Cassandra's
  campaign power [OPTIONS]     kills and power cuts of real nodes
  campaign fuzz [RUNS] [--seed N]
                               every parser under libFuzzer, 20,000,000 inputs
  campaign hostile [SECONDS]   every attack, then what it does to the latency of others
  campaign applications [HOST] DSBulk, JanusGraph, KairosDB, a Spark connector's scan
  campaign tools [SCRIPT...]   ccm, Medusa, Prometheus; wheel, tarball, deb, image (root)
  campaign yaml FOLDER         which `cassandra.yaml` files start a node, what stops others
  campaign oracle [--seed N] [--rounds N]
                               generated statements on a Cassandra under JaCoCo and on Helenus
  campaign differences         differences planted in answers, found by the corpus
  campaign forms [SHARE] | campaign forms --planted [PLANT...]
                               the corpus in every form: pages, prepared, batches, JSON, shards, files, rings; faults planted
  campaign files [SEED [TABLES [compact]]] | campaign files record
                               generated tables on the other's files, both ways, Cassandra's tools over both
  campaign roundtrip           one data directory served by Helenus and by Cassandra in turn
  campaign ring [RELEASE [OURS THEIRS CENTERS [FILE...]]]
                               the corpus through each node of rings of Cassandra and Helenus, in one data centre and two
  campaign replace [RELEASE]   nodes of a Cassandra ring become Helenus in place, and Cassandra again, under load
  campaign repair RELEASE [--with incremental] [--only NAME | --list]
                               replicas differ in each way; nodes repair them in each way
  campaign elastic RELEASE [--only NAME] | campaign elastic RELEASE --list
                               rings of Cassandra and Helenus grow, shrink and move under load
  campaign kills [COUNT [SEED]]
                               nodes get SIGKILL while others join, leave and are replaced, 30 times
  campaign faults [SECONDS [FAULT]]
                               one of three nodes is killed, stopped, cut off, slow, under load (root: network namespaces)
  campaign apart [SECONDS]     two data centres that do not reach each other, both written to (root: network namespaces)
  ring N [--cassandra M] | ring stop
                               a ring of N Helenus and M real Cassandra nodes on 127.0.0.1, .2, ...
  peer start DIR IP [HEAP] | stop DIR | nodetool DIR ARGS... | libs [VERSION]
                               a real Cassandra of Maven Central's jars (environment: `peer help`)
  oracle HOST_A HOST_B [FILE...] | --golden HOST_A [FILE...] | --record HOST_B [FILE...]
                               the CQL corpus on two servers, or against recorded answers
  drivers HOST:PORT [NAME...]  the driver scenarios: python java go node rust
  cqlsh HOST [HOST_B|--record] the cqlsh script, against Cassandra's transcript
  tidy                         rules of the tree";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let done = match command {
        "run" => run::run(rest),
        "dist" => dist::run(rest),
        "package" => package::run(rest),
        "test" => test::run(rest),
        "bench" => bench::run(rest),
        "campaign" => campaign::run(rest),
        "peer" => peer::run(rest),
        "oracle" => oracle::run(rest),
        "drivers" => drivers::run(rest),
        "cqlsh" => oracle::cqlsh(rest),
        "ring" => members::run(rest),
        "tidy" => tidy::run(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(format!("no command `{other}`\n{HELP}").into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("xtask {command}: {e}");
            ExitCode::FAILURE
        }
    }
}
