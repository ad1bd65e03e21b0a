//! Stage `package`: packages of every kind, made of the programs that the other stages start, each
//! installed and used as far as that goes without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Tally;
use crate::machine::{self, Outcome};
use crate::node;
use crate::package::{self, Kind};

/// Where the node of the tarball listens.
const ADDRESS: &str = "127.0.0.35";
const START_LIMIT: Duration = Duration::from_secs(60);
/// Tools, and the packages of Debian that have them.
const TOOLS: [(&str, &str); 4] =
    [("strip", "binutils"), ("dpkg-deb", "dpkg"), ("rpm", "rpm"), ("systemd-analyze", "systemd")];

/// Variables of the image, and a line that each writes; `auto` and what follows from others too.
const VARIABLES: [(&str, &str, &str, &str); 12] = [
    ("CASSANDRA_LISTEN_ADDRESS", "10.0.0.1", "cassandra.yaml", "listen_address: 10.0.0.1"),
    ("CASSANDRA_LISTEN_ADDRESS", "10.0.0.1", "cassandra.yaml", "broadcast_rpc_address: 10.0.0.1"),
    ("CASSANDRA_BROADCAST_ADDRESS", "10.0.0.2", "cassandra.yaml", "broadcast_address: 10.0.0.2"),
    ("CASSANDRA_RPC_ADDRESS", "10.0.0.3", "cassandra.yaml", "rpc_address: 10.0.0.3"),
    (
        "CASSANDRA_BROADCAST_RPC_ADDRESS",
        "10.0.0.4",
        "cassandra.yaml",
        "broadcast_rpc_address: 10.0.0.4",
    ),
    ("CASSANDRA_START_RPC", "true", "cassandra.yaml", "rpc_address: 0.0.0.0"),
    ("CASSANDRA_SEEDS", "a,b:7001", "cassandra.yaml", "      - seeds: \"a,b:7001\""),
    ("CASSANDRA_CLUSTER_NAME", "it's: one", "cassandra.yaml", "cluster_name: 'it''s: one'"),
    ("CASSANDRA_NUM_TOKENS", "8", "cassandra.yaml", "num_tokens: 8"),
    (
        "CASSANDRA_ENDPOINT_SNITCH",
        "GossipingPropertyFileSnitch",
        "cassandra.yaml",
        "endpoint_snitch: GossipingPropertyFileSnitch",
    ),
    ("CASSANDRA_DC", "east", "cassandra-rackdc.properties", "dc=east"),
    ("CASSANDRA_RACK", "r7", "cassandra-rackdc.properties", "rack=r7"),
];

pub(super) fn run() -> Outcome<Tally> {
    machine::install(&TOOLS)?;
    node::build()?;
    node::build_nodetool()?;
    let work = machine::cache().join("run/package");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work)?;
    let kinds = [Kind::Tarball, Kind::Wheel, Kind::Deb, Kind::Rpm];
    let made = package::make(&node::built_folder(), &kinds, &work)?;
    let [tarball, wheel, deb, rpm] = made.as_slice() else { return Err("not all made".into()) };
    let mut tally = Tally::default();
    let mut check = |what: &str, done: Outcome| match done {
        Ok(()) => tally.passed += 1,
        Err(error) => tally.problems.push(format!("{what}: {error}")),
    };
    check("tarball", try_tarball(tarball, &work));
    check("wheel", try_wheel(wheel, &work));
    check("deb", try_deb(deb, &work));
    check("rpm", try_rpm(rpm));
    check("unit", try_unit(&work));
    for (name, value, file, line) in VARIABLES {
        check(name, try_variable((name, value), file, line, &work));
    }
    let _ = fs::remove_dir_all(&work);
    Ok(tally)
}

/// What a command says; it has to succeed.
fn said(command: &mut Command) -> Outcome<String> {
    let done = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&done.stderr);
    Err(format!("{command:?} ended with {}: {text}{errors}", done.status).into())
}

fn holds(text: &str, what: &str) -> Outcome {
    if text.contains(what) { Ok(()) } else { Err(format!("lacks `{what}`: {text}").into()) }
}

/// A script of the tarball, without variables of whoever runs the tests.
fn script(home: &Path, name: &str) -> Command {
    let mut command = Command::new(home.join("bin").join(name));
    for variable in ["CASSANDRA_HOME", "CASSANDRA_CONF", "CASSANDRA_INCLUDE", "JVM_OPTS"] {
        command.env_remove(variable);
    }
    command
}

/// A node of the tarball starts in the background, answers nodetool, drains, and is gone.
fn try_tarball(tarball: &Path, work: &Path) -> Outcome {
    said(Command::new("tar").arg("-xzf").arg(tarball).arg("-C").arg(work))?;
    let home = work.join(format!("helenus-{}", package::VERSION));
    holds(&said(script(&home, "cassandra").arg("-v"))?, "5.0.9")?;
    let yaml = home.join("conf/cassandra.yaml");
    let text = fs::read_to_string(&yaml)?
        .replace("listen_address: localhost", &format!("listen_address: {ADDRESS}"))
        .replace("rpc_address: localhost", &format!("rpc_address: {ADDRESS}"))
        .replace("127.0.0.1:7000", &format!("{ADDRESS}:7000"));
    fs::write(&yaml, text)?;
    let (pid, log) = (home.join("pid"), home.join("own logs/system.log"));
    let logs = format!("-Dcassandra.logdir={}", home.join("own logs").display());
    let refused = script(&home, "cassandra").output()?;
    if machine_user_is_root()? && refused.status.code() != Some(1) {
        return Err("root may start it without -R".into());
    }
    said(script(&home, "cassandra").args(["-R", "-p"]).arg(&pid).args(["-D", &logs[2..]]))?;
    let stopped = until_served(&home, &log).and_then(|()| {
        let status =
            said(script(&home, "nodetool").args(["-h", "localhost", "-p", "7199", "status"]))?;
        holds(&status, &format!("UN  {ADDRESS}"))
    });
    said(Command::new("kill").arg(fs::read_to_string(&pid)?))?;
    stopped?;
    until(&log, "DRAINED", &home)
}

fn machine_user_is_root() -> Outcome<bool> {
    Ok(said(Command::new("id").arg("-u"))?.trim() == "0")
}

fn until_served(home: &Path, log: &Path) -> Outcome {
    until(log, "Startup complete", home)
}

fn until(log: &Path, what: &str, home: &Path) -> Outcome {
    let until = Instant::now() + START_LIMIT;
    loop {
        let text = fs::read_to_string(log).unwrap_or_default();
        if text.contains(what) {
            return Ok(());
        }
        if Instant::now() > until {
            let errors = fs::read_to_string(home.join("own logs/startup.log"));
            return Err(format!("no `{what}`: {text}{}", errors.unwrap_or_default()).into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Installed into a fresh environment, its programs are on the path.
fn try_wheel(wheel: &Path, work: &Path) -> Outcome {
    let venv = work.join("venv");
    said(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    let pip = venv.join("bin/pip");
    said(Command::new(&pip).args(["install", "--no-index", "--quiet"]).arg(wheel))?;
    let version = said(Command::new(venv.join("bin/helenus")).arg("--version"))?;
    holds(&version, package::VERSION)?;
    holds(&said(Command::new(venv.join("bin/nodetool")).arg("help"))?, "status")?;
    said(Command::new(&pip).args(["uninstall", "--yes", "--quiet", "helenus"]))?;
    if venv.join("bin/helenus").exists() { Err("is not uninstalled".into()) } else { Ok(()) }
}

/// Installed below a folder, upgraded, removed: what the operator changed stays, and so does data.
fn try_deb(deb: &Path, work: &Path) -> Outcome {
    let root = work.join("root");
    for folder in ["var/lib/dpkg/updates", "var/lib/dpkg/info"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(root.join("var/lib/dpkg/status"), "")?;
    fs::write(root.join("var/lib/dpkg/available"), "")?;
    // The folder has no shell: what scripts do is tried in a chroot (docs/packages.md).
    let dpkg = |verb: &str, what: &Path| {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", root.display()))
            .args(["--force-depends", "--force-script-chrootless", "--force-confold"])
            .args(["--force-not-root", "--path-include=*"])
            .env("PATH", format!("{}:{}", stubs(work)?.display(), std::env::var("PATH")?))
            .arg(verb)
            .arg(what);
        said(&mut dpkg)
    };
    dpkg("--install", deb)?;
    for path in ["usr/sbin/cassandra", "usr/bin/nodetool", "usr/lib/helenus/helenus"] {
        fs::metadata(root.join(path)).map_err(|e| format!("{path}: {e}"))?;
    }
    let yaml = root.join("etc/cassandra/cassandra.yaml");
    fs::write(&yaml, "cluster_name: mine\n")?;
    let data = root.join("var/lib/cassandra/data");
    fs::create_dir_all(&data)?;
    dpkg("--install", deb)?;
    holds(&fs::read_to_string(&yaml)?, "mine")?;
    dpkg("--remove", Path::new("helenus"))?;
    holds(&fs::read_to_string(&yaml)?, "mine")?;
    if root.join("usr/sbin/cassandra").exists() || !data.exists() {
        return Err("removing it left programs, or took data".into());
    }
    Ok(())
}

/// Programs that would make users of this machine, and give files to them.
fn stubs(work: &Path) -> Outcome<PathBuf> {
    let folder = work.join("stubs");
    if !folder.exists() {
        fs::create_dir_all(&folder)?;
        for name in ["groupadd", "useradd", "chown", "systemctl", "stat"] {
            std::os::unix::fs::symlink("/bin/true", folder.join(name))?;
        }
    }
    Ok(folder)
}

fn try_rpm(rpm: &Path) -> Outcome {
    let listed = said(Command::new("rpm").args(["--query", "--package", "--list"]).arg(rpm))?;
    for path in ["/usr/sbin/cassandra", "/usr/bin/nodetool", "/etc/cassandra/cassandra.yaml"] {
        holds(&listed, path)?;
    }
    let files = said(Command::new("rpm").args(["-qp", "--configfiles"]).arg(rpm))?;
    holds(&files, "/etc/cassandra/cassandra.yaml")?;
    holds(&said(Command::new("rpm").args(["--checksig"]).arg(rpm))?, "OK")
}

/// The unit as systemd reads it, with a program in place of the one that is not installed here.
fn try_unit(work: &Path) -> Outcome {
    let unit = machine::root().join("packaging/linux/helenus.service");
    let text = fs::read_to_string(unit)?.replace("/usr/sbin/cassandra", "/bin/true");
    let here = work.join("helenus.service");
    fs::write(&here, text)?;
    let mut analyze = Command::new("systemd-analyze");
    let done = analyze.args(["verify", "--man=no"]).arg(&here).output()?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("helenus.service")).collect();
    if done.status.success() && ours.is_empty() { Ok(()) } else { Err(said.into()) }
}

/// The image's entry point with one variable: a file of its configuration has a line afterwards.
fn try_variable((name, value): (&str, &str), file: &str, line: &str, work: &Path) -> Outcome {
    let (conf, bin) = (work.join("conf"), work.join("entry"));
    let _ = fs::remove_dir_all(&conf);
    fs::create_dir_all(&conf)?;
    fs::create_dir_all(&bin)?;
    let sources = machine::root().join("packaging");
    for name in ["cassandra.yaml", "cassandra-rackdc.properties"] {
        fs::copy(sources.join("conf").join(name), conf.join(name))?;
    }
    // it is not root that starts a node, and the node is none
    fs::write(bin.join("id"), "#!/bin/sh\necho 999\n")?;
    fs::write(bin.join("hostname"), "#!/bin/sh\necho '10.9.9.9 fe80::1'\n")?;
    fs::write(bin.join("cassandra"), "#!/bin/sh\necho \"$@\" \"$HELENUS_ARGS\"\n")?;
    for name in ["id", "hostname", "cassandra"] {
        said(Command::new("chmod").arg("+x").arg(bin.join(name)))?;
    }
    let mut entry = Command::new(sources.join("image/entrypoint.sh"));
    entry
        .env_clear()
        .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH")?))
        .env("CASSANDRA_CONF", &conf)
        .env(name, value);
    holds(&said(entry.arg("-R"))?, "-f -R --set open_without_authentication=true")?;
    let text = fs::read_to_string(conf.join(file))?;
    match text.lines().filter(|found| *found == line).count() {
        1 => Ok(()),
        count => Err(format!("{count} lines `{line}` in {file}: {text}").into()),
    }
}
