//! The machine under the checkout: where things are, which tools exist, how commands are run.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Tools that some stages need, and how to get them on Debian or by the maker's own way.
const TOOLS: &[(&str, &str)] = &[
    ("java", "a JDK 17: apt-get install openjdk-17-jdk-headless"),
    ("mvn", "Maven: apt-get install maven"),
    ("python3", "Python 3.9 or later with venv: apt-get install python3 python3-venv"),
    ("node", "Node.js 18 or later: apt-get install nodejs"),
    ("npm", "npm: apt-get install npm"),
    ("go", "Go 1.23 or later: https://go.dev/dl/"),
    ("valgrind", "Valgrind: apt-get install valgrind"),
    ("fio", "fio: apt-get install fio"),
    ("perf", "perf: apt-get install linux-perf"),
    ("bash", "bash: apt-get install bash"),
    ("ip", "iproute2: apt-get install iproute2"),
    ("losetup", "util-linux: apt-get install mount"),
    ("fallocate", "util-linux: apt-get install util-linux"),
    ("mkfs.ext4", "e2fsprogs: apt-get install e2fsprogs"),
    ("mkfs.xfs", "xfsprogs: apt-get install xfsprogs"),
];

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// The checkout's own ignored folder for whatever is fetched or built beside the node.
pub fn cache() -> PathBuf {
    root().join(".cache")
}

/// Where cargo builds.
pub fn target() -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    set.unwrap_or_else(|| root().join("target"))
}

/// Those of the tools that are not on PATH, each with the way to get it.
pub fn missing(tools: &[&str]) -> Vec<String> {
    let on_path = |tool: &str| {
        std::env::var_os("PATH").is_some_and(|path| {
            std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
        })
    };
    tools
        .iter()
        .filter(|tool| !on_path(tool))
        .map(|tool| {
            let how = TOOLS.iter().find(|t| t.0 == *tool).map_or("", |t| t.1);
            format!("{tool} is missing ({how})")
        })
        .collect()
}

/// Fails with what is missing, if anything is.
pub fn need(tools: &[&str]) -> Outcome {
    let missing = missing(tools);
    if missing.is_empty() { Ok(()) } else { Err(missing.join("; ").into()) }
}

/// Memory of a process as `/proc/PID/status` names it (`VmRSS:`), in bytes.
pub fn memory(pid: u32, name: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| format!("no {name} of process {pid}"))? * 1024)
}

/// Runs to the end with our own output; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}").into()) }
}

/// Runs to the end, copies the output through and keeps it: (succeeded, output).
pub fn output(command: &mut Command) -> Outcome<(bool, String)> {
    let (done, text, _) = outputs(command)?;
    Ok((done, text))
}

/// Runs to the end, copies both outputs through and keeps them: (succeeded, output, errors).
pub fn outputs(command: &mut Command) -> Outcome<(bool, String, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{command:?}: {e}"))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(format!("{command:?}: its outputs are not pipes").into());
    };
    let errors = thread::spawn(move || copied(stderr, &mut std::io::stderr()));
    let text = copied(stdout, &mut std::io::stdout())?;
    let errors = errors.join().map_err(|_| "the copy of standard error panicked")??;
    Ok((child.wait()?.success(), text, errors))
}

/// What `from` gives, written to `to` line by line.
fn copied(from: impl Read, to: &mut impl Write) -> std::io::Result<String> {
    let mut text = String::new();
    for line in BufReader::new(from).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(to, "{line}")?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

/// Has apt-get install tools that are missing, each given with the package of Debian that has it.
pub fn install(tools: &[(&str, &str)]) -> Outcome {
    let names: Vec<&str> = tools.iter().map(|(tool, _)| *tool).collect();
    if missing(&names).is_empty() {
        return Ok(());
    }
    let packages = tools.iter().map(|(_, package)| *package);
    let mut apt = Command::new("apt-get");
    apt.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
    run(&mut apt)
}

/// The Python of the checkout's own virtual environment, made on first use with the drivers'
/// packages in it.
pub fn python() -> Outcome<PathBuf> {
    venv("venv", "conformance/drivers/python/requirements.txt")
}

/// The Python of a virtual environment of the checkout, made on first use with what a file of the
/// checkout requires.
pub fn venv(name: &str, requirements: &str) -> Outcome<PathBuf> {
    need(&["python3"])?;
    let (venv, requirements) = (cache().join(name), root().join(requirements));
    let mark = venv.join(".installed");
    // its scripts name their interpreter by its path: a checkout that moved makes a new one
    let wanted = format!("{}\n{}", venv.display(), std::fs::read_to_string(&requirements)?);
    if std::fs::read_to_string(&mark).is_ok_and(|have| have == wanted) {
        return Ok(venv.join("bin/python"));
    }
    std::fs::create_dir_all(cache())?;
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    run(Command::new(venv.join("bin/pip"))
        .args(["install", "--quiet", "--requirement"])
        .arg(&requirements))?;
    std::fs::write(&mark, wanted)?;
    Ok(venv.join("bin/python"))
}
