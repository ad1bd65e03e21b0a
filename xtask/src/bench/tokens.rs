//! `cargo xtask bench tokens`: how evenly nodes replicate whose tokens are allocated, beside what
//! Cassandra's own classes allocate.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::machine::{self, Outcome};
use crate::{peer, programs};

pub const HELP: &str = "\
cargo xtask bench tokens [--cassandra yes|no]
  grows rings of one rack and of three node by node, with 1 to 256 tokens a node:
  by chance, by Cassandra's own classes, by our own way
  prints how even they are at each size, what moves, and how many neighbours a node has
  fails if what must hold does not
  cassandra: whether Cassandra's own classes grow their rings too (yes)";

/// The class that grows them.
const CLASS: &str = "org.apache.cassandra.dht.tokenallocator.Grow";
/// As in `bench/tokens`: `num_tokens`, and nodes at the end.
const SIZES: [(u32, u32); 6] = [(1, 300), (3, 300), (4, 300), (8, 300), (16, 300), (256, 60)];
const RACKS: [u32; 2] = [1, 3];
const REPLICAS: u32 = 3;

/// `bench tokens [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let mut with_cassandra = true;
    for option in super::options(args) {
        match option? {
            ("--cassandra", "yes") => with_cassandra = true,
            ("--cassandra", "no") => with_cassandra = false,
            (other, _) => return Err(format!("unknown option {other}\n{HELP}").into()),
        }
    }
    let folder = machine::cache().join("run/tokens");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    if with_cassandra {
        machine::need(&["bash", "java", "mvn"])?;
        for ((tokens, nodes), racks) in SIZES.iter().flat_map(|size| RACKS.map(|r| (*size, r))) {
            grow(&folder, tokens, racks, nodes)?;
        }
    }
    machine::run(Command::new(programs::checked("tokens")?).arg(&folder))
}

/// Has Cassandra's classes grow a ring.
fn grow(folder: &Path, tokens: u32, racks: u32, nodes: u32) -> Outcome {
    let file = std::fs::File::create(folder.join(format!("{tokens}-{racks}.txt")))?;
    let mut command = peer::script();
    command.arg("run").arg(machine::root().join("conformance/tokens")).args([CLASS, "grow"]);
    command.args([tokens, racks, REPLICAS, nodes].map(|number| number.to_string()));
    // it warns of each node that makes the ring less even
    machine::run(command.stdout(file).stderr(Stdio::null()))
}
