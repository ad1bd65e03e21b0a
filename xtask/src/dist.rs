//! `cargo xtask dist`: the node as it is to be installed, compiled for what a node does most. A
//! node that counts what it does serves a load of all kinds; what it counted tells the compiler
//! which way branches go, what to inline and what lies together.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::load;
use crate::machine::{self, Outcome};
use crate::node::{self, Node};

const HELP: &str = "\
cargo xtask dist
  builds the node twice and leaves target/dist/helenus and target/dist/nodetool: first one that counts what it does, which
  serves rows of 1 KB for a minute, then the one to install, optimised for what was counted
  --if-old: only if a source is newer than what is there
  takes a quarter of an hour on two cores; needs llvm-profdata (rustup component add llvm-tools)";

/// Where the node listens that counts.
const ADDRESS: &str = "127.0.0.78";
/// Its memory, and its shards: some requests cross them.
const SETTINGS: [&str; 2] = ["memory_budget=1GiB", "shards=2"];
/// Rows of the table.
const ROWS: u32 = 400_000;
/// What its rows are; nothing is left out before requests count.
const LOAD: [&str; 6] = ["--columns", "10", "--bytes", "100", "--warm", "0"];
/// Requests in flight, where they are many, and over how many connections.
const MANY: [&str; 4] = ["--connections", "8", "--depth", "64"];
/// What it does, one after the other.
const TRAINING: [Step; 13] = [
    Step::Many(0, &["--load"]),
    Step::Verb("flush"),
    Step::Many(8, &["--reads", "0.95"]),
    Step::Many(8, &["--reads", "0.5"]),
    Step::Many(8, &["--reads", "0.65", "--inserts", "0.1"]),
    Step::Many(10, &["--reads", "0.1", "--inserts", "0.9"]),
    Step::One(5, &["--shard-aware", "false", "--reads", "0.5"]),
    Step::One(4, &["--scans", "1", "--scanned", "100", "--reads", "0"]),
    Step::Verb("flush"),
    Step::Verb("compact"),
    Step::Many(6, &["--reads", "1"]),
    Step::Many(3, &["--reads", "1", "--absent"]),
    Step::One(4, &["--reads", "0.5"]),
];

/// A part of the training.
enum Step {
    /// So many seconds of `load point` with these options, one request after the other.
    One(u32, &'static [&'static str]),
    /// The same with many in flight.
    Many(u32, &'static [&'static str]),
    /// A verb of nodetool.
    Verb(&'static str),
}

/// How much of it there is.
#[derive(Clone, Copy)]
enum Extent {
    Whole,
    /// A second of each and few rows: that each can be done is all there is to see.
    Brief,
}

/// `dist`
pub fn run(args: &[String]) -> Outcome {
    if args.iter().any(|arg| arg == "--help") {
        println!("{HELP}");
        return Ok(());
    }
    match args {
        [] => build()?,
        [only] if only == "--if-old" => return build_if_old(),
        [arg, ..] => return Err(format!("unknown option {arg}\n{HELP}").into()),
    }
    println!("{}", node::installed().join("helenus").display());
    println!("{}", node::installed().join("nodetool").display());
    Ok(())
}

/// Builds them, unless they are newer than all sources.
fn build_if_old() -> Outcome {
    let built = fs::metadata(node::installed().join("helenus")).and_then(|of| of.modified());
    let sources = ["crates", "bin", "Cargo.toml", "Cargo.lock"];
    let mut newest = SystemTime::UNIX_EPOCH;
    for source in sources {
        newest = newest.max(newest_below(&machine::root().join(source))?);
    }
    if built.is_ok_and(|built| built > newest) { Ok(()) } else { build() }
}

/// When a file was last written to, or the newest of a folder.
fn newest_below(path: &Path) -> Outcome<SystemTime> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(SystemTime::UNIX_EPOCH) };
    if !metadata.is_dir() {
        return Ok(metadata.modified()?);
    }
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(path)? {
        newest = newest.max(newest_below(&entry?.path())?);
    }
    Ok(newest)
}

fn build() -> Outcome {
    let compiler = Compiler::find()?;
    let work = machine::cache().join("dist");
    let (counts, profile) = (work.join("counts"), work.join("helenus.profdata"));
    let _ = fs::remove_dir_all(&counts);
    fs::create_dir_all(&counts)?;

    let counting = compiler.build("helenus", &work.join("counting"), "generate", &counts)?;
    let load = load::build()?;
    let mut nodetool = Command::new("cargo");
    nodetool.args(["build", "--release", "--package", "nodetool"]);
    machine::run(nodetool.current_dir(machine::root()))?;
    let nodetool = machine::root().join("target/release/nodetool");
    train(Command::new(counting), &load, &nodetool, Extent::Whole)?;
    let mut merge = Command::new(&compiler.merger);
    machine::run(merge.args(["merge", "-o"]).arg(&profile).arg(&counts))?;

    let helenus = compiler.build("helenus", &work.join("final"), "use", &profile)?;
    fs::create_dir_all(node::installed())?;
    put(&nodetool, "nodetool")?;
    put(&helenus, "helenus")
}

/// Leaves a program in the folder, in the place of one that may be running.
fn put(program: &Path, name: &str) -> Outcome {
    let new = node::installed().join(format!("{name}.new"));
    fs::copy(program, &new)?;
    Ok(fs::rename(new, node::installed().join(name))?)
}

/// Lets a node do it all; one that counts writes what it counted when it stops.
fn train(node: Command, load: &Path, nodetool: &Path, extent: Extent) -> Outcome {
    let name = "dist";
    let node = Node::start_as(node, name, ADDRESS, &SETTINGS)?;
    let data = machine::cache().join("run").join(name).join("data");
    let (rows, most_seconds) = match extent {
        Extent::Whole => (ROWS, u32::MAX),
        Extent::Brief => (ROWS / 100, 1),
    };
    let point = |seconds: u32, options: &[&str]| {
        let mut command = Command::new(load);
        command.args(["point", &node.ip, "--rows", &rows.to_string()]).args(LOAD);
        command.args(["--seconds", &seconds.min(most_seconds).to_string()]).args(options);
        command
    };
    for step in &TRAINING {
        let mut command = match step {
            Step::One(seconds, options) => point(*seconds, options),
            Step::Many(seconds, options) => {
                let mut command = point(*seconds, options);
                command.args(MANY);
                command
            }
            Step::Verb(verb) => {
                let mut command = Command::new(nodetool);
                command.arg("--data-dir").arg(&data).arg(verb);
                command
            }
        };
        machine::run(&mut command)?;
    }
    Ok(())
}

/// The training in brief, of the node as it is built for tests.
pub fn rehearse() -> Outcome {
    node::build()?;
    node::build_nodetool()?;
    train(node::command(), &load::build_soon()?, &node::nodetool_path(), Extent::Brief)
}

/// The compiler that builds this, and the tool of its that puts counts together.
struct Compiler {
    host: String,
    merger: PathBuf,
}

impl Compiler {
    fn find() -> Outcome<Self> {
        let says = |args: &[&str]| -> Outcome<String> {
            let output = Command::new("rustc").args(args).current_dir(machine::root()).output()?;
            Ok(String::from_utf8(output.stdout)?)
        };
        let version = says(&["-vV"])?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or("rustc -vV names no host")?.to_owned();
        let sysroot = says(&["--print", "sysroot"])?;
        let tools = Path::new(sysroot.trim()).join("lib/rustlib").join(&host).join("bin");
        let merger = tools.join("llvm-profdata");
        if !merger.is_file() {
            return Err("llvm-profdata is missing: rustup component add llvm-tools".into());
        }
        Ok(Self { host, merger })
    }

    /// Builds a package that generates counts, or uses them: its program. The host is named as a
    /// target, so that what runs while it is built counts nothing.
    fn build(&self, package: &str, folder: &Path, how: &str, counts: &Path) -> Outcome<PathBuf> {
        let mut flag = OsString::from(format!("-Cprofile-{how}="));
        flag.push(counts);
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--package", package, "--target", &self.host]);
        cargo.arg("--target-dir").arg(folder).env("CARGO_ENCODED_RUSTFLAGS", flag);
        machine::run(cargo.current_dir(machine::root()))?;
        Ok(folder.join(&self.host).join("release").join(package))
    }
}
