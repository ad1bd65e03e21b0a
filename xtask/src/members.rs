//! `cargo xtask ring`: a ring on 127.0.0.x that stays until it is told to stop.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine::{self, Outcome};
use crate::{node, peer};

/// The name that `conformance/peer` gives its clusters.
const CLUSTER: &str = "peer";
/// The first node has 127.0.0.1, and so on.
const MEMBERS_MAX: u8 = 16;
/// How long a node may take until it serves.
const START_LIMIT: Duration = Duration::from_secs(90);
/// What a node says that serves clients.
const SERVES: &str = "Starting listening for CQL clients";

const USAGE: &str = "ring N [--cassandra M] | ring stop";

/// `ring N [--cassandra M]` starts N nodes of Helenus, and M real ones before them; `ring stop` stops them all.
pub fn run(args: &[String]) -> Outcome {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let number =
        |text: &str| text.parse::<u8>().map_err(|_| format!("{USAGE}: {text} is no number"));
    let (ours, theirs) = match words.as_slice() {
        ["stop"] => return stop(),
        [ours] => (number(ours)?, 0),
        [ours, "--cassandra", theirs] => (number(ours)?, number(theirs)?),
        _ => return Err(USAGE.into()),
    };
    let all = ours.checked_add(theirs).filter(|all| (1..=MEMBERS_MAX).contains(all));
    let all = all.ok_or_else(|| format!("a ring has 1 to {MEMBERS_MAX} nodes here"))?;
    stop()?;
    node::build()?;
    node::build_nodetool()?;
    let (seed, mut ready) = (ip(1), Vec::new());
    for number in 1..=all {
        let (dir, ip) = (home().join(number.to_string()), ip(number));
        match number <= theirs {
            true => start_cassandra(&dir, &ip, &seed)?,
            false => start_helenus(&dir, &ip, &seed)?,
        }
        let kind = if number <= theirs { "Cassandra" } else { "Helenus" };
        println!("{ip}  {kind}  {}", dir.display());
        ready.push(dir);
    }
    let last = home().join(all.to_string()).join("data");
    println!("a shell: pipx run cqlsh {} 9042", ip(all));
    if ours > 0 {
        println!(
            "its view: {} --data-dir {} status",
            node::nodetool_path().display(),
            last.display()
        );
    }
    println!("to stop it: cargo xtask ring stop");
    Ok(())
}

fn ip(number: u8) -> String {
    format!("127.0.0.{number}")
}

fn home() -> PathBuf {
    machine::cache().join("run/ring")
}

fn start_cassandra(dir: &Path, ip: &str, seed: &str) -> Outcome {
    machine::need(&["bash", "java", "mvn", "python3"])?;
    let mut start = peer::script();
    start.arg("start").arg(dir).args([ip, peer::ORACLE_HEAP]);
    machine::run(start.env("FAST", "1").env("SEEDS", seed))
}

fn start_helenus(dir: &Path, ip: &str, seed: &str) -> Outcome {
    fs::create_dir_all(dir)?;
    let (out, log) = (dir.join("stdout.log"), dir.join("stderr.log"));
    let child = node::command()
        .arg("--data-dir")
        .arg(dir.join("data"))
        .args(["--listen", ip, "--set", &format!("metrics_address={ip}")])
        .args(node::member_args(CLUSTER, seed))
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&log)?)
        // it outlives this command, and the terminal's interrupts
        .process_group(0)
        .spawn()?;
    fs::write(dir.join("helenus.pid"), child.id().to_string())?;
    let until = Instant::now() + START_LIMIT;
    while !fs::read_to_string(&out)?.contains(SERVES) {
        if Instant::now() > until {
            return Err(format!("{ip} does not serve; see {}", log.display()).into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Stops what was started, and forgets its data.
fn stop() -> Outcome {
    let Ok(members) = fs::read_dir(home()) else { return Ok(()) };
    for member in members.filter_map(Result::ok).map(|entry| entry.path()) {
        if let Ok(pid) = fs::read_to_string(member.join("helenus.pid")) {
            // one that has ended is stopped
            let _ = Command::new("kill").arg(pid.trim()).status();
            while Path::new("/proc").join(pid.trim()).exists() {
                std::thread::sleep(Duration::from_millis(100));
            }
        } else if member.join("pid").exists() {
            machine::run(peer::script().arg("stop").arg(&member))?;
        }
    }
    Ok(fs::remove_dir_all(home())?)
}
