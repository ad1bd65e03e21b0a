//! A disk of our own: a file as a loop device, which bypasses the page cache under it, with a file
//! system that is mounted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::{self, Outcome};

/// Bytes of a sector, in which the kernel counts.
const SECTOR: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    Ext4,
    Xfs,
}

impl FileSystem {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// What makes it.
    pub fn maker(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
        }
    }
}

/// It goes with this value; whoever has files on it must have ended.
pub struct Disk {
    file: PathBuf,
    place: PathBuf,
    device: Option<PathBuf>,
    is_mounted: bool,
}

/// What a device has done until now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    pub reads: u64,
    pub read: u64,
    pub written: u64,
}

impl Disk {
    /// One of so many bytes, mounted at a place; one that is left there from before goes.
    pub fn make(kind: FileSystem, bytes: u64, place: &Path) -> Outcome<Self> {
        machine::need(&[kind.maker()])?;
        fs::create_dir_all(place)?;
        let file = place.with_extension("disk");
        let mut disk = Self { file, place: place.to_owned(), device: None, is_mounted: false };
        disk.clear();
        // not sparse: a write is not to wait until the disk below has found room
        let mut allocate = Command::new("fallocate");
        machine::run(allocate.args(["--length", &bytes.to_string()]).arg(&disk.file))?;
        let mut attach = Command::new("losetup");
        attach.args(["--find", "--show", "--direct-io=on"]).arg(&disk.file);
        let said = attach.output()?;
        let device = PathBuf::from(String::from_utf8_lossy(&said.stdout).trim());
        if !said.status.success() || device.as_os_str().is_empty() {
            let why = String::from_utf8_lossy(&said.stderr).into_owned();
            return Err(format!("cannot make a loop device: {why}").into());
        }
        disk.device = Some(device.clone());
        let mut maker = Command::new(kind.maker());
        machine::run(maker.arg("-q").args(options(kind)).arg(&device))?;
        machine::run(Command::new("mount").arg(&device).arg(place))?;
        disk.is_mounted = true;
        Ok(disk)
    }

    /// Removes what a run that was killed left.
    fn clear(&self) {
        // most of the time there is nothing of it
        let _ = Command::new("umount").arg("--lazy").arg(&self.place).output();
        let mut list = Command::new("losetup");
        list.args(["--noheadings", "--output", "NAME", "--associated"]).arg(&self.file);
        let said = list.output().map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
        for device in said.unwrap_or_default().split_whitespace() {
            let _ = Command::new("losetup").args(["--detach", device]).output();
        }
        let _ = fs::remove_file(&self.file);
    }

    fn device(&self) -> Outcome<&Path> {
        Ok(self.device.as_deref().ok_or("the disk has no device")?)
    }

    /// Files that are opened from now on are read ahead so far.
    pub fn read_ahead(&self, kib: u64) -> Outcome {
        let sectors = (kib * 1024 / SECTOR).to_string();
        let mut set = Command::new("blockdev");
        machine::run(set.args(["--setra", &sectors]).arg(self.device()?))
    }

    /// What its device has done until now.
    pub fn done(&self) -> Outcome<Done> {
        let name = self.device()?.file_name().ok_or("a device has a name")?;
        let stat = Path::new("/sys/block").join(name).join("stat");
        Done::parse(&fs::read_to_string(stat)?)
    }
}

impl Done {
    fn parse(stat: &str) -> Outcome<Self> {
        let fields = stat.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        let [reads, _, read, _, _, _, written, ..] = fields[..] else {
            return Err("the device's stat is short".into());
        };
        Ok(Self { reads, read: read * SECTOR, written: written * SECTOR })
    }

    /// Since an earlier moment.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(earlier.reads),
            read: self.read.saturating_sub(earlier.read),
            written: self.written.saturating_sub(earlier.written),
        }
    }
}

/// Nothing of it is made later, while something is measured.
fn options(kind: FileSystem) -> &'static [&'static str] {
    match kind {
        FileSystem::Ext4 => &["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
        FileSystem::Xfs => &["-f"],
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let gone = |what: &str, command: &mut Command| {
            if let Err(e) = machine::run(command) {
                eprintln!("{what} stays: {e}");
            }
        };
        if self.is_mounted {
            gone("a mount", Command::new("umount").arg(&self.place));
        }
        if let Some(device) = &self.device {
            gone("a loop device", Command::new("losetup").arg("--detach").arg(device));
        }
        // there is none where it could not be made
        let _ = fs::remove_file(&self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::Done;

    #[test]
    fn a_device_says_what_it_has_done() {
        let stat = "  10  1  200  5  20  2  400  7  0 12 12 0 0 0 0 3 4\n";
        let done = Done::parse(stat).expect("a stat");
        assert_eq!(done, Done { reads: 10, read: 102_400, written: 204_800 });
        assert_eq!(done.since(done), Done { reads: 0, read: 0, written: 0 });
        assert!(Done::parse("1 2 3").is_err());
    }
}
