//! A package of Debian: an `ar` of a version, a tar of control files and a tar of the files.

use std::fs;
use std::path::{Path, PathBuf};

use md5::{Digest as _, Md5};

use super::VERSION;
use super::files::{self, Content, Entry, PLAIN, PROGRAM, Programs};
use super::linux;
use crate::machine::{self, Outcome};

/// What runs on installing and removing.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

pub fn make(programs: &Programs, into: &Path) -> Outcome<PathBuf> {
    let mut entries = linux::entries(programs)?;
    let license = fs::read(machine::root().join("LICENSE"))?;
    entries.push(Entry::file("usr/share/doc/helenus/copyright", PLAIN, license));
    let entries = files::with_folders(entries);
    // nobody can say now which number the user will have: postinst gives the folders to it
    let data = files::tar(&entries, "./", programs.time, 0)?;
    let control = files::tar(&control(programs, &entries)?, "./", programs.time, 0)?;

    let path = into.join(format!("helenus_{VERSION}_{}.deb", architecture()?));
    let mut ar = ar::Builder::new(fs::File::create(&path)?);
    for (name, bytes) in [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", files::gzip(&control)?),
        ("data.tar.gz", files::gzip(&data)?),
    ] {
        let mut header = ar::Header::new(name.into(), bytes.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime(programs.time);
        ar.append(&header, bytes.as_slice())?;
    }
    Ok(path)
}

/// Debian's name of this machine's kind.
pub fn architecture() -> Outcome<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => Err(format!("what is {other} called at Debian?").into()),
    }
}

/// The control files.
fn control(programs: &Programs, entries: &[Entry]) -> Outcome<Vec<Entry>> {
    let kib: usize = entries.iter().map(|entry| entry.bytes().len().div_ceil(1024)).sum();
    let fields = format!(
        "Package: helenus\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {}\n\
         Installed-Size: {kib}\nDepends: libc6 (>= {}), libgcc-s1, passwd\nProvides: cassandra\n\
         Conflicts: cassandra\nReplaces: cassandra\nSection: database\nPriority: optional\n\
         Description: {}\n {}\n",
        architecture()?,
        linux::MAINTAINER,
        programs.glibc,
        linux::SUMMARY,
        linux::DESCRIPTION,
    );
    let is_file = |entry: &&Entry| matches!(entry.content, Content::File(_));
    let (mut sums, mut operators) = (String::new(), String::new());
    for entry in entries.iter().filter(is_file) {
        if entry.path.starts_with("etc/") {
            operators.push_str(&format!("/{}\n", entry.path));
        } else {
            let sum = Md5::digest(entry.bytes());
            let digits: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
            sums.push_str(&format!("{digits}  {}\n", entry.path));
        }
    }
    let mut control = vec![
        Entry::file("control", PLAIN, fields),
        Entry::file("conffiles", PLAIN, operators),
        Entry::file("md5sums", PLAIN, sums),
    ];
    for name in SCRIPTS {
        control.push(Entry::file(name, PROGRAM, files::packaged(&format!("linux/{name}"))?));
    }
    Ok(control)
}
