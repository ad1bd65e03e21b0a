//! A group of processes that may have so much memory, page cache and all: a control group of the
//! kernel, version 1 or 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::machine::Outcome;

/// Where groups are: of version 1, the controller's own folder.
const FIRST: &str = "/sys/fs/cgroup/memory";
const SECOND: &str = "/sys/fs/cgroup";
/// How long the kernel may take until a process that has ended is in it no more.
const EMPTY_LIMIT: Duration = Duration::from_secs(10);

/// It goes with this value; whoever is in it must have ended.
pub struct Memory(PathBuf);

impl Memory {
    /// A group of that name for so many bytes.
    pub fn new(name: &str, bytes: u64) -> Outcome<Self> {
        let is_first = Path::new(FIRST).is_dir();
        let folder = Path::new(if is_first { FIRST } else { SECOND }).join(name);
        let limit = folder.join(if is_first { "memory.limit_in_bytes" } else { "memory.max" });
        let made = || {
            fs::create_dir_all(&folder)?;
            fs::write(&limit, bytes.to_string())
        };
        made().map_err(|e| format!("{}: {e} (it wants root)", limit.display()))?;
        Ok(Self(folder))
    }

    /// Its list of processes: who writes 0 there is in it.
    pub fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let until = Instant::now() + EMPTY_LIMIT;
        while let Err(e) = fs::remove_dir(&self.0) {
            if Instant::now() > until {
                eprintln!("{} stays: {e}", self.0.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
