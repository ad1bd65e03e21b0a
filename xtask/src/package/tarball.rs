//! A tarball laid out as Cassandra's, which `ccm create --install-dir` takes too.

use std::fs;
use std::path::{Path, PathBuf};

use super::VERSION;
use super::files::{self, Entry, PLAIN, PROGRAM, Programs};
use crate::machine::{self, Outcome};

pub fn make(programs: &Programs, into: &Path) -> Outcome<PathBuf> {
    let folder = format!("helenus-{VERSION}");
    let mut entries = files::home(programs, &folder)?;
    entries.extend(files::configuration(&format!("{folder}/conf"))?);
    for (name, mode) in [("cassandra", PROGRAM), ("nodetool", PROGRAM), ("cassandra.in.sh", PLAIN)]
    {
        let bytes = files::packaged(&format!("bin/{name}"))?;
        entries.push(Entry::file(format!("{folder}/bin/{name}"), mode, bytes));
    }
    entries.push(Entry::link(format!("{folder}/bin/helenus"), "../lib/helenus"));
    let readme = files::filled("README", &[("VERSION", VERSION), ("GLIBC", &programs.glibc)])?;
    entries.push(Entry::file(format!("{folder}/README"), PLAIN, readme));
    let license = fs::read(machine::root().join("LICENSE"))?;
    entries.push(Entry::file(format!("{folder}/LICENSE"), PLAIN, license));
    let tar = files::tar(&files::with_folders(entries), "", programs.time, 0)?;
    let path = into.join(format!("{folder}-{}.tar.gz", std::env::consts::ARCH));
    fs::write(&path, files::gzip(&tar)?)?;
    Ok(path)
}
