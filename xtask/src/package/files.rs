//! What packages consist of: programs, files of `packaging/`, folders and links.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf;
use crate::machine::{self, Outcome};

/// The release that the node claims by default; tools ask the installation for it.
const CASSANDRA_VERSION: &str = "5.0.9";

/// The bits of a program, and of a file that is read.
pub const PROGRAM: u32 = 0o755;
pub const PLAIN: u32 = 0o644;

/// The programs, without what only a debugger reads.
pub struct Programs {
    pub helenus: Vec<u8>,
    pub nodetool: Vec<u8>,
    /// The oldest glibc that they run with.
    pub glibc: String,
    /// The same for a tag of a wheel.
    pub glibc_numbers: (u32, u32),
    /// Seconds of the Unix epoch that all files carry.
    pub time: u64,
}

impl Programs {
    /// Those of a folder; `work` is a folder for copies of them.
    pub fn of(folder: &Path, work: &Path) -> Outcome<Self> {
        let stripped = |name: &str| -> Outcome<PathBuf> {
            let (from, to) = (folder.join(name), work.join(format!(".{name}")));
            let mut strip = Command::new("strip");
            machine::run(strip.arg("--strip-debug").arg("-o").arg(&to).arg(&from))?;
            Ok(to)
        };
        let (helenus, nodetool) = (stripped("helenus")?, stripped("nodetool")?);
        let (major, minor) = elf::glibc(&[&helenus, &nodetool])?;
        let programs = Self {
            helenus: fs::read(&helenus)?,
            nodetool: fs::read(&nodetool)?,
            glibc: format!("{major}.{minor}"),
            glibc_numbers: (major, minor),
            time: time_of_sources()?,
        };
        fs::remove_file(helenus)?;
        fs::remove_file(nodetool)?;
        Ok(programs)
    }
}

/// `SOURCE_DATE_EPOCH`, or when the last commit was made.
fn time_of_sources() -> Outcome<u64> {
    if let Ok(set) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(set.parse()?);
    }
    let mut git = Command::new("git");
    let log = git.args(["log", "-1", "--format=%ct"]).current_dir(machine::root()).output();
    let said = log.map(|log| String::from_utf8_lossy(&log.stdout).trim().to_owned());
    let time = said.unwrap_or_default().parse();
    Ok(time.map_err(|_| "when are the sources of? set SOURCE_DATE_EPOCH")?)
}

/// What stands at a path.
#[derive(Clone)]
pub enum Content {
    File(Vec<u8>),
    Folder,
    /// A symbolic link to this.
    Link(String),
}

/// A file, folder or link of a package.
#[derive(Clone)]
pub struct Entry {
    /// Without a slash in front.
    pub path: String,
    pub mode: u32,
    pub content: Content,
    /// Does it belong to the user cassandra, rather than root?
    pub is_of_node: bool,
}

impl Entry {
    pub fn file(path: impl Into<String>, mode: u32, bytes: impl Into<Vec<u8>>) -> Self {
        let content = Content::File(bytes.into());
        Self { path: path.into(), mode, content, is_of_node: false }
    }

    pub fn folder(path: impl Into<String>) -> Self {
        Self { path: path.into(), mode: 0o755, content: Content::Folder, is_of_node: false }
    }

    /// A folder of the node's own, which others may not look into.
    pub fn folder_of_node(path: impl Into<String>) -> Self {
        Self { path: path.into(), mode: 0o750, content: Content::Folder, is_of_node: true }
    }

    pub fn link(path: impl Into<String>, target: impl Into<String>) -> Self {
        let content = Content::Link(target.into());
        Self { path: path.into(), mode: 0o777, content, is_of_node: false }
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::File(bytes) => bytes,
            Content::Folder | Content::Link(_) => &[],
        }
    }
}

/// A file of `packaging/`.
pub fn packaged(name: &str) -> Outcome<Vec<u8>> {
    let path = machine::root().join("packaging").join(name);
    Ok(fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?)
}

/// A text of `packaging/`, with what stands for `@NAME@` in it.
pub fn filled(name: &str, values: &[(&str, &str)]) -> Outcome<String> {
    let mut text = String::from_utf8(packaged(name)?)?;
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), value);
    }
    Ok(text)
}

/// The configuration, below a folder.
pub fn configuration(folder: &str) -> Outcome<Vec<Entry>> {
    let mut names = Vec::new();
    for found in fs::read_dir(machine::root().join("packaging/conf"))? {
        names.push(found?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let entry = |name: String| {
        let bytes = packaged(&format!("conf/{name}"))?;
        Ok(Entry::file(format!("{folder}/{name}"), PLAIN, bytes))
    };
    names.into_iter().map(entry).collect()
}

/// What `CASSANDRA_HOME` is: the programs, what scripts read, and the release that tools ask for.
pub fn home(programs: &Programs, folder: &str) -> Outcome<Vec<Entry>> {
    let at = |name: &str| format!("{folder}/{name}");
    Ok(vec![
        Entry::file(at("0.version.txt"), PLAIN, format!("{CASSANDRA_VERSION}\n")),
        Entry::file(at("lib/helenus.sh"), PLAIN, packaged("bin/helenus.sh")?),
        Entry::file(at("lib/helenus"), PROGRAM, programs.helenus.clone()),
        Entry::file(at("lib/nodetool"), PROGRAM, programs.nodetool.clone()),
    ])
}

/// Folders above the entries that are not among them, and all in the order of their paths.
pub fn with_folders(mut entries: Vec<Entry>) -> Vec<Entry> {
    let mut above: Vec<String> = Vec::new();
    for entry in &entries {
        above.extend(entry.path.match_indices('/').map(|(at, _)| entry.path[..at].to_owned()));
    }
    above.sort();
    above.dedup();
    above.retain(|folder| entries.iter().all(|entry| entry.path != *folder));
    entries.extend(above.into_iter().map(Entry::folder));
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    entries
}

/// A tar of entries; `owner` is the user and group of those of the node.
pub fn tar(entries: &[Entry], prefix: &str, time: u64, owner: u64) -> Outcome<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(entry.mode);
        header.set_mtime(time);
        let owner = if entry.is_of_node { owner } else { 0 };
        header.set_uid(owner);
        header.set_gid(owner);
        header.set_size(entry.bytes().len() as u64);
        let mut path = format!("{prefix}{}", entry.path);
        match &entry.content {
            Content::File(bytes) => {
                header.set_entry_type(tar::EntryType::Regular);
                tar.append_data(&mut header, &path, bytes.as_slice())?;
            }
            Content::Folder => {
                header.set_entry_type(tar::EntryType::Directory);
                path.push('/');
                tar.append_data(&mut header, &path, std::io::empty())?;
            }
            Content::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                tar.append_link(&mut header, &path, target)?;
            }
        }
    }
    Ok(tar.into_inner()?)
}

/// Compressed by gzip.
pub fn gzip(bytes: &[u8]) -> Outcome<Vec<u8>> {
    use std::io::Write as _;
    let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    to.write_all(bytes)?;
    Ok(to.finish()?)
}

#[cfg(test)]
mod tests {
    use super::{Entry, PLAIN, with_folders};

    #[test]
    fn folders_come_before_what_is_in_them() {
        let entries = vec![Entry::file("a/b/c", PLAIN, "x"), Entry::folder_of_node("a/b")];
        let all = with_folders(entries);
        let paths: Vec<_> = all.iter().map(|e| (e.path.as_str(), e.is_of_node)).collect();
        assert_eq!(paths, [("a", false), ("a/b", true), ("a/b/c", false)]);
    }
}
