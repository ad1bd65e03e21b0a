//! `cargo xtask campaign roundtrip`: one data directory, served by Helenus and by Cassandra in
//! turn. Both must read in it what the other one wrote.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::peer::{ORACLE_HEAP, Peer};

/// The address of either server: a node's address is in its tables.
const ADDRESS: &str = "127.0.0.33";
/// Files of the corpus that leave tables behind, of every type.
const FILES: &[&str] = &[
    "alter",
    "collections",
    "counters",
    "dml",
    "gen_literals",
    "gen_merge",
    "gen_paging",
    "ttl",
    "udt",
    "tables",
    "select",
    "syntax",
    "bind",
    "names",
    "names_rows",
    "names_many",
];

/// `campaign roundtrip`
pub fn campaign() -> Outcome {
    machine::need(&["python3", "java", "mvn", "bash"])?;
    node::build()?;
    println!("== drained, then compacted by Cassandra, then back");
    let run = Run::new("roundtrip")?;
    let written = {
        let node = run.helenus()?;
        run.tables(&["fill", &node.ip], FILES)?;
        run.dump("written")?
    };
    {
        let _peer = run.cassandra()?;
        run.same(&written, "by-cassandra")?;
        run.nodetool("flush")?;
        run.nodetool("compact")?;
        run.same(&written, "compacted-by-cassandra")?;
    }
    {
        let _node = run.helenus()?;
        run.same(&written, "back")?;
    }
    println!("== killed: Cassandra replays the log");
    let run = Run::new("roundtrip-killed")?;
    let written = {
        let node = run.helenus()?;
        run.tables(&["fill", &node.ip], FILES)?;
        // the last changes of the schema are written to SSTables soon after
        run.tables(&["settle", &node.ip], &[])?;
        let written = run.dump("written")?;
        node.kill();
        written
    };
    {
        let _peer = run.cassandra()?;
        run.same(&written, "by-cassandra")?;
    }
    println!("== an index that Cassandra built, and of which Helenus keeps no files");
    let run = Run::new("roundtrip-indexed")?;
    {
        let peer = run.cassandra()?;
        run.tables(&["index", &peer.ip, "0"], &[])?;
        let _ = run.dump("first")?;
    }
    let written = {
        let node = run.helenus()?;
        run.tables(&["index", &node.ip, "20"], &[])?;
        run.dump("written")?
    };
    {
        let _peer = run.cassandra()?;
        run.same(&written, "by-cassandra")?;
    }
    compressed()
}

/// Both logs compressed, and neither drained: each replays the other's. Then what Cassandra's
/// reader says of ours, for each compressor.
fn compressed() -> Outcome {
    println!("== killed, compressed: Cassandra replays our log, and we replay its");
    let run = Run::new("roundtrip-compressed")?;
    let settings = ["cluster_name=peer", "commitlog_compression.class_name=LZ4Compressor"];
    let written = {
        let node = Node::start_again(run.name, ADDRESS, &settings)?;
        run.tables(&["fill", &node.ip], FILES)?;
        run.tables(&["settle", &node.ip], &[])?;
        let written = run.dump("written")?;
        node.kill();
        written
    };
    let yaml = "commitlog_compression:\n  - class_name: LZ4Compressor\ncommitlog_sync_period: 20ms";
    let settings_of_peer = [("EXTRA_YAML", Path::new(yaml))];
    let written = {
        let peer = Peer::start_again_with(run.name, ADDRESS, ORACLE_HEAP, &settings_of_peer)?;
        run.same(&written, "by-cassandra")?;
        run.tables(&["fill", &peer.ip], FILES)?;
        let written = run.dump("by-cassandra-again")?;
        peer.kill()?;
        written
    };
    {
        let _node = Node::start_again(run.name, ADDRESS, &settings)?;
        run.same(&written, "back")?;
    }
    for class in ["", "LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor"] {
        println!("== Cassandra's reader of our segments: {class}");
        let run = Run::new("roundtrip-reader")?;
        let compression = format!("commitlog_compression.class_name={class}");
        let settings = if class.is_empty() { vec![] } else { vec![compression.as_str()] };
        let node = Node::start_again(run.name, ADDRESS, &settings)?;
        run.tables(&["fill", &node.ip], &FILES[..3])?;
        node.kill();
        let mut script = crate::peer::script();
        script.arg("run").arg(machine::root().join("conformance/commitlog")).arg("ReadLog");
        machine::run(script.arg(run.dir.join("data/commitlog")))?;
    }
    Ok(())
}

/// One data directory.
struct Run {
    name: &'static str,
    dir: PathBuf,
}

impl Run {
    fn new(name: &'static str) -> Outcome<Self> {
        let dir = machine::cache().join("run").join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        Ok(Self { name, dir })
    }

    fn helenus(&self) -> Outcome<Node> {
        Node::start_again(self.name, ADDRESS, &["cluster_name=peer"])
    }

    fn cassandra(&self) -> Outcome<Peer> {
        Peer::start_again(self.name, ADDRESS, ORACLE_HEAP)
    }

    fn nodetool(&self, verb: &str) -> Outcome {
        machine::run(crate::peer::script().arg("nodetool").arg(&self.dir).arg(verb))
    }

    fn tables(&self, words: &[&str], more: &[&str]) -> Outcome {
        let script = machine::root().join("conformance/roundtrip/tables.py");
        machine::run(Command::new("python3").arg(script).args(words).args(more))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name).with_extension("json")
    }

    fn dump(&self, name: &str) -> Outcome<PathBuf> {
        let file = self.file(name);
        self.tables(&["dump", ADDRESS, &file.display().to_string()], &[])?;
        Ok(file)
    }

    /// What is in the tables now must be what was.
    fn same(&self, before: &Path, name: &str) -> Outcome {
        let now = self.dump(name)?;
        let (before, now) = (before.display().to_string(), now.display().to_string());
        self.tables(&["compare", &before, &now], &[])
    }
}
