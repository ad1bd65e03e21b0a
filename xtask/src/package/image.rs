//! An image of OCI, without a daemon: a tar of blobs, of an index, and of the older list by which
//! `docker load` finds them. Its layers are a small Debian, cqlsh, and the node.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::files::{self, Entry, PLAIN, PROGRAM, Programs};
use super::{VERSION, deb, linux};
use crate::machine::{self, Outcome};

/// The release of Debian below it, its glibc and its Python.
const SUITE: &str = "bookworm";
const GLIBC: (u32, u32) = (2, 36);
const PYTHON: &str = "3.11";
/// What it has beyond the essential packages.
const INCLUDED: &str = "python3,passwd,hostname,procps";
const CQLSH: &str = "cqlsh==6.2.2";
/// The number of the user and group cassandra in the official image.
const OWNER: u64 = 999;
const PORTS: [&str; 6] = ["7000/tcp", "7001/tcp", "7199/tcp", "9042/tcp", "9160/tcp", "7070/tcp"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const HEALTH: &str = "/usr/local/bin/helenus-health";
const SECOND_NANOS: u64 = 1_000_000_000;

pub fn make(programs: &Programs, into: &Path) -> Outcome<PathBuf> {
    if programs.glibc_numbers > GLIBC {
        return Err(format!("Debian {SUITE} is too old for glibc {}", programs.glibc).into());
    }
    let own = files::tar(&files::with_folders(entries(programs)?), "", programs.time, OWNER)?;
    let layers = [base(programs.time)?, cqlsh(programs.time)?, own];
    let mut blobs = Blobs::default();
    let (mut described, mut diffs) = (Vec::new(), Vec::new());
    for layer in &layers {
        diffs.push(digest(layer));
        let kind = "application/vnd.oci.image.layer.v1.tar+gzip";
        described.push(blobs.add(kind, files::gzip(layer)?));
    }
    let config = serde_json::to_vec(&configuration(&diffs)?)?;
    let config = blobs.add("application/vnd.oci.image.config.v1+json", config);
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": described});
    let mut manifest = blobs.add(kind, serde_json::to_vec(&manifest)?);
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": VERSION,
        "io.containerd.image.name": format!("helenus:{VERSION}"),
    });
    let kind = "application/vnd.oci.image.index.v1+json";
    let index = json!({"schemaVersion": 2, "mediaType": kind, "manifests": [manifest]});
    let paths: Vec<String> = described.iter().map(path_of).collect();
    let older = json!([{
        "Config": path_of(&config),
        "RepoTags": [format!("helenus:{VERSION}")],
        "Layers": paths,
    }]);
    let mut all = blobs.0;
    for (name, value) in [
        ("oci-layout", json!({"imageLayoutVersion": "1.0.0"})),
        ("index.json", index),
        ("manifest.json", older),
    ] {
        all.push(Entry::file(name, PLAIN, serde_json::to_vec(&value)?));
    }
    let path = into.join(format!("helenus-{VERSION}-{}.oci.tar", deb::architecture()?));
    fs::write(&path, files::tar(&files::with_folders(all), "", programs.time, 0)?)?;
    Ok(path)
}

#[derive(Default)]
struct Blobs(Vec<Entry>);

impl Blobs {
    /// Adds one, once; how a manifest names it.
    fn add(&mut self, kind: &str, bytes: Vec<u8>) -> Value {
        let described = json!({"mediaType": kind, "digest": digest(&bytes), "size": bytes.len()});
        let path = path_of(&described);
        if self.0.iter().all(|entry| entry.path != path) {
            self.0.push(Entry::file(path, PLAIN, bytes));
        }
        described
    }
}

fn digest(bytes: &[u8]) -> String {
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}

fn path_of(described: &Value) -> String {
    let digest = described["digest"].as_str().unwrap_or_default();
    format!("blobs/{}", digest.replace(':', "/"))
}

/// How a container of it is run.
fn configuration(diffs: &[String]) -> Outcome<Value> {
    let ports: serde_json::Map<String, Value> =
        PORTS.iter().map(|port| ((*port).to_owned(), json!({}))).collect();
    Ok(json!({
        "architecture": deb::architecture()?,
        "os": "linux",
        "config": {
            "Env": [
                format!("PATH=/opt/cassandra/bin:{PATH}"),
                "CASSANDRA_HOME=/opt/cassandra",
                "CASSANDRA_CONF=/etc/cassandra",
                "CASSANDRA_LOG_DIR=/var/log/cassandra",
                "LANG=C.UTF-8",
            ],
            "Entrypoint": ["docker-entrypoint.sh"],
            "Cmd": ["cassandra", "-f"],
            "ExposedPorts": ports,
            "Volumes": {"/var/lib/cassandra": {}},
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "helenus",
                "org.opencontainers.image.version": VERSION,
                "org.springframework.boot.service-connection": "cassandra",
            },
            "Healthcheck": {
                "Test": ["CMD", HEALTH],
                "Interval": 10 * SECOND_NANOS,
                "Timeout": 5 * SECOND_NANOS,
                "StartPeriod": 60 * SECOND_NANOS,
                "Retries": 3,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": diffs},
    }))
}

/// The layer of the node.
pub fn entries(programs: &Programs) -> Outcome<Vec<Entry>> {
    let script = |path: &str, name: &str| -> Outcome<Entry> {
        Ok(Entry::file(path, PROGRAM, files::packaged(name)?))
    };
    let mut entries = files::home(programs, "opt/cassandra")?;
    for mut entry in linux::configuration("etc/cassandra")? {
        // a container may run as any user (--user), and its entry point writes here
        (entry.mode, entry.is_of_node) = (0o666, true);
        entries.push(entry);
    }
    for folder in ["etc/cassandra", "var/lib/cassandra", "var/log/cassandra"] {
        entries.push(Entry { mode: 0o1777, ..Entry::folder_of_node(folder) });
    }
    entries.extend([
        script("opt/cassandra/bin/cassandra", "bin/cassandra")?,
        script("opt/cassandra/bin/nodetool", "bin/nodetool")?,
        Entry::file("opt/cassandra/bin/cassandra.in.sh", PLAIN, files::packaged(IN_SH)?),
        Entry::link("opt/cassandra/bin/helenus", "../lib/helenus"),
        script("usr/local/bin/docker-entrypoint.sh", "image/entrypoint.sh")?,
        script("usr/local/bin/cqlsh", "image/cqlsh")?,
        script(HEALTH.trim_start_matches('/'), "image/health")?,
    ]);
    Ok(entries)
}

const IN_SH: &str = "image/cassandra.in.sh";

/// A tar of Debian's essential packages, made once. It is as old as the file in `.cache`: delete
/// that to have Debian's updates.
fn base(time: u64) -> Outcome<Vec<u8>> {
    let path = machine::cache().join(format!("package/{SUITE}.tar"));
    if !path.exists() {
        fs::create_dir_all(machine::cache().join("package"))?;
        let made = path.with_extension("part.tar");
        let user = "chroot \"$1\" sh -c 'groupadd -r -g 999 cassandra && useradd -r -g cassandra \
                    -u 999 -d /var/lib/cassandra -s /bin/bash cassandra'";
        let mut debian = Command::new("mmdebstrap");
        debian
            .args(["--quiet", "--variant=essential", "--dpkgopt=path-exclude=/usr/share/doc/*"])
            .arg(format!("--include={INCLUDED}"))
            .arg(format!("--customize-hook={user}"))
            .arg(SUITE)
            .arg(&made)
            .env("SOURCE_DATE_EPOCH", time.to_string());
        machine::run(&mut debian)?;
        fs::rename(made, &path)?;
    }
    Ok(fs::read(path)?)
}

/// A tar of cqlsh with what it needs, from PyPI, for Debian's Python.
fn cqlsh(time: u64) -> Outcome<Vec<u8>> {
    let tree = machine::cache().join("package").join(CQLSH);
    if !tree.exists() {
        let platform = format!("manylinux2014_{}", std::env::consts::ARCH);
        let part = tree.with_extension("part");
        let _ = fs::remove_dir_all(&part);
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--no-compile", "--only-binary=:all:"])
            .args(["--python-version", PYTHON, "--platform", &platform, "--target"])
            .arg(&part)
            .arg(CQLSH);
        machine::run(&mut pip)?;
        fs::rename(part, &tree)?;
    }
    let mut entries = Vec::new();
    gather(&tree, "opt/cqlsh", &mut entries)?;
    files::tar(&files::with_folders(entries), "", time, 0)
}

fn gather(folder: &Path, path: &str, entries: &mut Vec<Entry>) -> Outcome {
    for found in fs::read_dir(folder)? {
        let found = found?;
        let path = format!("{path}/{}", found.file_name().to_string_lossy());
        match found.file_type()?.is_dir() {
            true => gather(&found.path(), &path, entries)?,
            false => entries.push(Entry::file(path, PLAIN, fs::read(found.path())?)),
        }
    }
    Ok(())
}
