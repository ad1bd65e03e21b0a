//! `campaign files [SEED [TABLES [compact]]]`: a generated family of tables, written by Helenus and
//! by Cassandra with the same statements (`conformance/family`). What Helenus wrote must pass
//! Cassandra's verifier, look to its tools like its own SSTables, and serve a Cassandra that starts
//! on it; what Cassandra wrote, in each of its formats, must serve Helenus. `compact`: all tables
//! WITH COMPACT STORAGE.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::machine::{self, Outcome};
use crate::node::{self, Node};
use crate::peer::{self, ORACLE_HEAP, Peer};

/// The address of every server: a node's address is in its tables.
const ADDRESS: &str = "127.0.0.81";
const TABLES: &str = "200";
/// Rounds of writes, each ended by a flush (`writes.py`).
const ROUNDS: u32 = 3;
const KEYSPACE: &str = "family";
/// Small blocks of the index, so that not every wide partition has to be large.
const INDEX_BLOCK: &str = "4KiB";

/// Something that Cassandra writes.
struct Format {
    name: &'static str,
    /// The family's: 4.1 knows fewer types.
    release: &'static str,
    version: &'static str,
    settings: &'static str,
}

/// The first is compared with Helenus' files.
const FORMATS: [Format; 4] = [
    Format { name: "nb", release: "5.0", version: "5.0.9", settings: "" },
    Format {
        name: "oa",
        release: "5.0",
        version: "5.0.9",
        settings: "storage_compatibility_mode: NONE\n",
    },
    Format {
        name: "da",
        release: "5.0",
        version: "5.0.9",
        settings: "storage_compatibility_mode: NONE\nsstable:\n  selected_format: bti\n",
    },
    Format { name: "nb-4.1", release: "4.1", version: "4.1.10", settings: "" },
];

/// What is recorded for machines without a JVM.
const RECORDED_SEED: &str = "1";
const RECORDED_TABLES: &str = "12";

/// The formats that are recorded (`conformance/family/recorded`).
pub fn recorded() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|format| format.name)
}

/// `campaign files [SEED [TABLES [compact]]]`, `campaign files record`
pub fn campaign(words: &[&str]) -> Outcome {
    if words == ["record"] {
        return record();
    }
    let (seed, tables, kind) = match *words {
        [] => (super::drawn()?.to_string(), TABLES, ""),
        [seed] => (seed.to_owned(), TABLES, ""),
        [seed, tables] => (seed.to_owned(), tables, ""),
        [seed, tables, "compact"] => (seed.to_owned(), tables, "-compact"),
        _ => return Err(super::USAGE.into()),
    };
    machine::need(&["python3", "java", "mvn", "bash"])?;
    node::build()?;
    node::build_nodetool()?;
    let begun = Instant::now();
    let mut run = Run { kind, ..Run::new()? };
    let counts = run.family("5.0", &seed, tables)?;
    run.family("4.1", &seed, tables)?;
    run.ours()?;
    for format in &FORMATS {
        run.theirs(format)?;
    }
    let text = format!(
        "Commit {}, seed {seed}, {} s. Again: `cargo xtask campaign files {}`.\n\n\
         ```\n{}```\n\nThe tables, and how many of them have what:\n\n```\n{counts}```\n",
        super::commit()?,
        begun.elapsed().as_secs(),
        [&*seed, tables, kind.trim_start_matches('-')].join(" ").trim_end(),
        run.summary,
    );
    println!("{}", super::record(&format!("files{kind}-{seed}"), &text)?.display());
    println!("{}", run.summary);
    if run.failed == 0 { Ok(()) } else { Err(format!("{} comparisons failed", run.failed).into()) }
}

/// Records a small family in each format, and Cassandra's answers.
fn record() -> Outcome {
    machine::need(&["python3", "java", "mvn", "bash"])?;
    let run = Run::new()?;
    for release in ["5.0", "4.1"] {
        run.family(release, RECORDED_SEED, RECORDED_TABLES)?;
    }
    for format in &FORMATS {
        let data = path(&run.written(format)?);
        let answers = run.answers(format.release, format.name);
        let script = machine::root().join("conformance/family/recorded.py");
        let mut command = Command::new("python3");
        machine::run(command.arg(script).args(["record", format.name, &data, &answers]))?;
    }
    Ok(())
}

/// All folders of one campaign, and what it found.
struct Run {
    dir: PathBuf,
    /// Of the tables: nothing, or `-compact`.
    kind: &'static str,
    summary: String,
    failed: usize,
}

impl Run {
    fn new() -> Outcome<Self> {
        let dir = machine::cache().join("run/files");
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        Ok(Self { dir, kind: "", summary: String::new(), failed: 0 })
    }

    /// Writes the statements and questions of a family; what is in them.
    fn family(&self, release: &str, seed: &str, tables: &str) -> Outcome<String> {
        let folder = self.dir.join(release);
        let of = format!("{release}{}", self.kind);
        let (done, counts) = self.script(&["write", &path(&folder), seed, tables, &of])?;
        if done { Ok(counts) } else { Err("no family".into()) }
    }

    /// Helenus writes each family: what it answers, and its files flushed and in the end.
    fn ours(&mut self) -> Outcome {
        for release in ["5.0", "4.1"] {
            let name = format!("files/helenus-{release}");
            let node = Node::start_again(&name, ADDRESS, &Self::node_settings())?;
            let data = machine::cache().join("run").join(&name).join("data");
            let nodetool = |words: &[&str]| machine::run(node::nodetool(&data).args(words));
            self.filled(release, &data, &nodetool)?;
            self.ask(release, "helenus")?;
            drop(node);
        }
        Ok(())
    }

    fn node_settings() -> [&'static str; 3] {
        // what is flushed is read from files
        ["cluster_name=peer", "column_index_size=4KiB", "memtable_keeps_flushed=false"]
    }

    /// Cassandra writes a family in one format; then each reads what it did not write.
    fn theirs(&mut self, format: &Format) -> Outcome {
        let data = self.written(format)?;
        if !format.settings.is_empty() {
            // drained; a log of mutations at messaging version 13 is none that Helenus reads
            std::fs::remove_dir_all(data.join("commitlog"))?;
        }
        let ours = format!("helenus-{}", format.release);
        self.same(
            format.release,
            "helenus",
            format.name,
            "Helenus and Cassandra, of the same statements",
        )?;
        if format.name == FORMATS[0].name {
            self.exports(&ours, &format!("cassandra-{}", format.name))?;
            let _peer = Self::cassandra(&format!("files/{ours}"), format)?;
            self.ask(format.release, "cassandra-on-ours")?;
            self.same(
                format.release,
                "helenus",
                "cassandra-on-ours",
                "Cassandra on what Helenus wrote",
            )?;
        }
        let _node = Node::start_again(&Self::name_of(format), ADDRESS, &Self::node_settings())?;
        let asked = format!("helenus-on-{}", format.name);
        self.ask(format.release, &asked)?;
        let what = format!("Helenus on what Cassandra {} wrote as {}", format.version, format.name);
        self.same(format.release, format.name, &asked, &what)
    }

    /// Cassandra writes a family in one format and is stopped: its data directory.
    fn written(&self, format: &Format) -> Outcome<PathBuf> {
        let name = Self::name_of(format);
        let dir = machine::cache().join("run").join(&name);
        let _peer = Self::cassandra(&name, format)?;
        let nodetool =
            |words: &[&str]| machine::run(peer::script().arg("nodetool").arg(&dir).args(words));
        self.filled(format.release, &dir.join("data"), &nodetool)?;
        self.ask(format.release, format.name)?;
        Ok(dir.join("data"))
    }

    fn name_of(format: &Format) -> String {
        format!("files/cassandra-{}", format.name)
    }

    fn cassandra(name: &str, format: &Format) -> Outcome<Peer> {
        let yaml = format!("{}column_index_size: {INDEX_BLOCK}", format.settings);
        let settings =
            [("EXTRA_YAML", Path::new(&yaml)), ("CASSANDRA_VERSION", Path::new(format.version))];
        Peer::start_again_with(name, ADDRESS, ORACLE_HEAP, &settings)
    }

    /// All rounds, a flush after each; then some tables are compacted, and those of before are kept
    /// beside.
    fn filled(&self, release: &str, data: &Path, nodetool: &dyn Fn(&[&str]) -> Outcome) -> Outcome {
        let folder = path(&self.dir.join(release));
        for round in 0..ROUNDS {
            self.must(&["fill", ADDRESS, &folder, &round.to_string()])?;
            nodetool(&["flush", KEYSPACE])?;
        }
        let flushed = data.with_file_name("flushed");
        machine::run(
            Command::new("cp").arg("-r").arg(data.join("data").join(KEYSPACE)).arg(flushed),
        )?;
        let tables = self.must(&["compacted", &folder])?;
        let mut compact = vec!["compact", KEYSPACE];
        compact.extend(tables.split_whitespace());
        nodetool(&compact)
    }

    /// Cassandra's verifier and tools over the files of both makes.
    fn exports(&mut self, ours: &str, theirs: &str) -> Outcome {
        let mut folders = Vec::new();
        for name in [ours, theirs] {
            let dir = self.dir.join(name);
            let out = dir.join("exports");
            let live = dir.join("data/data").join(KEYSPACE);
            let found = examine(&dir, &out, &[("flushed", &dir.join("flushed")), ("live", &live)])?;
            self.note(&format!("sstableverify of {name}"), found);
            folders.push(path(&out));
        }
        let found = self.script(&["exports", &folders[0], &folders[1]])?;
        self.note("sstabledump and metadata", found);
        self.planted(&self.dir.join(ours), &folders[0], &folders[1])
    }

    /// The same must find what is wrong on purpose.
    fn planted(&mut self, dir: &Path, ours: &str, theirs: &str) -> Outcome {
        let (folder, out) = (dir.join("planted"), dir.join("planted-exports"));
        self.must(&["plant", ours, &path(&folder)])?;
        examine(dir, &out, &[("planted", &folder)])?;
        let found = self.script(&["found", &path(&folder), &path(&out), theirs])?;
        self.note("mistakes on purpose", found);
        Ok(())
    }

    fn answers(&self, release: &str, name: &str) -> String {
        path(&self.dir.join(format!("{release}-{name}.json.gz")))
    }

    fn ask(&self, release: &str, name: &str) -> Outcome {
        let folder = path(&self.dir.join(release));
        self.must(&["ask", ADDRESS, &folder, &self.answers(release, name)]).map(|_| ())
    }

    fn same(&mut self, release: &str, a: &str, b: &str, what: &str) -> Outcome {
        let found =
            self.script(&["answers", &self.answers(release, a), &self.answers(release, b)])?;
        self.note(what, found);
        Ok(())
    }

    /// Keeps the last line of what a comparison printed.
    fn note(&mut self, what: &str, (done, text): (bool, String)) {
        self.failed += usize::from(!done);
        let last = text.lines().last().unwrap_or_default();
        let _ = writeln!(self.summary, "{what}: {last}{}", if done { "" } else { "  FAILED" });
    }

    fn must(&self, words: &[&str]) -> Outcome<String> {
        let (done, text) = self.script(words)?;
        if done { Ok(text) } else { Err(format!("{} failed", words[0]).into()) }
    }

    fn script(&self, words: &[&str]) -> Outcome<(bool, String)> {
        let script = machine::root().join("conformance/family/family.py");
        machine::output(Command::new("python3").arg(script).args(words))
    }
}

/// What Cassandra's tools say of SSTables, by label, into `out`; the tables are those of a node's
/// directory.
fn examine(node: &Path, out: &Path, labelled: &[(&str, &Path)]) -> Outcome<(bool, String)> {
    let mut java = peer::script();
    java.arg("run").arg(machine::root().join("conformance/family"));
    java.arg("org.apache.cassandra.tools.Examine").arg(node.join("scratch"));
    java.arg(node.join("data/data")).arg(KEYSPACE).arg(out);
    java.args(labelled.iter().map(|(label, folder)| format!("{label}={}", path(folder))));
    machine::output(&mut java)
}

fn path(path: &Path) -> String {
    path.display().to_string()
}
