//! `cargo xtask bench streams`: how fast whole SSTables go from one node to another, beside a plain
//! copy over loopback to the same disk.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::{MB, NO_THROTTLE, Ring, System, TABLE, Taken, stored};
use crate::machine::{self, Outcome};
use crate::{load, members};

pub const HELP: &str = "\
cargo xtask bench streams [--gb 2] [--repeats 3] [--systems helenus,cassandra]
  a node has N GB in one table, and another one without data fetches it (`nodetool rebuild`), not
  throttled; with each system in turn, and beside it the same files copied over a TCP connection of
  loopback to the same disk
  prints MB/s, MB for each second of CPU of both nodes together, and ratios
  raw results are kept under bench/results/";

/// How much is read at once for the plain copy.
const BUFFER: usize = 1 << 20;

struct Options {
    gb: f64,
    repeats: usize,
    systems: Vec<System>,
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let mut options = Self { gb: 2.0, repeats: 3, systems: System::ALL.to_vec() };
        for option in crate::bench::options(args) {
            let (name, value) = option?;
            match name {
                "--gb" => options.gb = value.parse()?,
                "--repeats" => options.repeats = value.parse()?,
                "--systems" => options.systems = System::parse_all(value)?,
                other => return Err(format!("unknown option {other}\n{HELP}").into()),
            }
        }
        Ok(options)
    }
}

/// What came of one run.
struct Run {
    system: System,
    /// MB/s of the rebuild.
    rate: f64,
    /// MB for each second of CPU of both nodes.
    per_cpu: f64,
    /// MB/s of the plain copy beside it.
    copy: f64,
}

/// `bench streams [OPTIONS]`
pub fn run(args: &[String]) -> Outcome {
    let options = Options::parse(args)?;
    machine::need(&["java", "mvn", "python3"])?;
    load::build()?;
    let stamp = crate::bench::stamp()?;
    let (mut raw, mut all) = (String::new(), Vec::new());
    for _ in 0..options.repeats {
        for system in &options.systems {
            let run = measure(*system, options.gb)?;
            let (word, of_copy) = (system.word(), 100.0 * run.rate / run.copy);
            let line = format!(
                "{word:<10}{:>8.1} MB/s {:>8.1} MB/s copied ({of_copy:>5.1} %) \
                 {:>8.1} MB per CPU second",
                run.rate, run.copy, run.per_cpu
            );
            println!("{line}");
            writeln!(raw, "{line}")?;
            fs::write(crate::bench::results()?.join(format!("streams-{stamp}.txt")), &raw)?;
            all.push(run);
        }
    }
    let of = |system: System, figure: fn(&Run) -> f64| {
        let mut figures: Vec<f64> =
            all.iter().filter(|run| run.system == system).map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    };
    let ours = (of(System::Helenus, |run| run.rate / run.copy), of(System::Helenus, per_cpu));
    if let (Some(share), Some(ours)) = ours {
        println!("Helenus: {:.0} % of a plain copy (60 wanted, 80 hoped for)", 100.0 * share);
        if let Some(theirs) = of(System::Cassandra, per_cpu) {
            println!(
                "{:.1} times Cassandra's MB per CPU second (5 wanted, 10 hoped for)",
                ours / theirs
            );
        }
    }
    Ok(())
}

fn per_cpu(run: &Run) -> f64 {
    run.per_cpu
}

fn measure(system: System, gb: f64) -> Outcome<Run> {
    // both are filled; what the second one has is removed, and fetched again from the first
    let ring = Ring::start(system, 2, 1, NO_THROTTLE)?;
    ring.fill(super::rows(gb), 2)?;
    let [from, to] = &ring.members[..] else { return Err("a ring of two".into()) };
    let size = stored(from);
    to.end(members::End::Drained)?;
    forget(&to.dir)?;
    ring.start_in_place(to)?;
    let before = stored(to);
    let taken = Taken::by(&[from, to], || {
        super::quietly(to.tool().args(["rebuild", "--keyspace", keyspace()]))
    })?;
    let arrived = stored(to).saturating_sub(before);
    if arrived < size / 10 * 9 {
        return Err(format!("{arrived} bytes arrived of {size}").into());
    }
    let copy = copied(&from.dir, &to.dir.join("copied"))?;
    members::stop()?;
    let mb = arrived as f64 / MB;
    Ok(Run {
        system,
        rate: mb / taken.time.as_secs_f64(),
        per_cpu: mb / taken.cpu.as_secs_f64(),
        copy,
    })
}

fn keyspace() -> &'static str {
    TABLE.split_once('.').map_or(TABLE, |(keyspace, _)| keyspace)
}

/// Removes the files of the table of a node that has ended.
fn forget(dir: &Path) -> Outcome {
    for table in fs::read_dir(dir.join("data/data").join(keyspace()))? {
        for file in fs::read_dir(table?.path())? {
            let path = file?.path();
            if path.is_file() {
                fs::remove_file(path)?;
            }
        }
    }
    Ok(())
}

/// Copies the files of the table of a node over loopback, one after the other, and makes them
/// durable: MB/s.
fn copied(from: &Path, to: &Path) -> Outcome<f64> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to)?;
    let mut files = Vec::new();
    for table in fs::read_dir(from.join("data/data").join(keyspace()))? {
        for file in fs::read_dir(table?.path())? {
            let path = file?.path();
            if path.is_file() {
                files.push(path);
            }
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let begin = Instant::now();
    let sender = std::thread::spawn(move || -> std::io::Result<()> {
        for path in files {
            let mut stream = TcpStream::connect(address)?;
            // sendfile, where the system can
            std::io::copy(&mut File::open(path)?, &mut stream)?;
        }
        // nothing more comes
        TcpStream::connect(address).map(drop)
    });
    let (mut bytes, mut buffer) = (0, vec![0; BUFFER]);
    for n in 0.. {
        let (mut stream, _) = listener.accept()?;
        let mut file = File::create(to.join(n.to_string()))?;
        let mut of_one = 0;
        loop {
            let read = stream.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            file.write_all(buffer.get(..read).unwrap_or_default())?;
            of_one += read;
        }
        file.sync_all()?;
        bytes += of_one;
        if of_one == 0 {
            break;
        }
    }
    sender.join().map_err(|_| "the sender panicked")??;
    let took = begin.elapsed().as_secs_f64();
    let _ = Command::new("rm").arg("-rf").arg(to).status();
    Ok(bytes as f64 / MB / took)
}
