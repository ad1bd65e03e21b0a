//! The memory of the machine.

use std::path::{Path, PathBuf};

use crate::env::{Env, Make};

/// What a simulated machine has: little, so that what is sized by it shows its limits.
const SIMULATED_BYTES: u64 = 4 << 20;
/// Where the kernel has its control groups: of version 2, and the one for memory of version 1.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

impl Env {
    /// The memory of the machine, in bytes, or of the control group that this process is in, where
    /// that has less; `None` where the kernel does not say.
    pub fn machine_memory(&self) -> Option<u64> {
        match &self.0.make {
            Make::Real(_) => real_memory(),
            Make::Sim(_) => Some(SIMULATED_BYTES),
        }
    }
}

fn real_memory() -> Option<u64> {
    let all = std::fs::read_to_string("/proc/meminfo").ok()?;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(group_files);
    let limits = limits.filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    limits.chain(total(&all)).min()
}

/// `MemTotal:  16318480 kB`
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// `0::/system.slice/helenus.service` or `4:memory:/helenus`: where the limits of a group and of
/// those around it may be.
fn group_files(line: &str) -> Vec<PathBuf> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
    let place = match controllers {
        Some("") => 0,
        Some(names) if names.split(',').any(|name| name == "memory") => 1,
        _ => return Vec::new(),
    };
    let (root, file) = GROUPS[place];
    let group = Path::new(path.unwrap_or_default().trim_start_matches('/'));
    group.ancestors().map(|group| Path::new(root).join(group).join(file)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_has_is_less_in_a_group() {
        assert_eq!(total("MemTotal:       16318480 kB\nMemFree: 1 kB\n"), Some(16_318_480 << 10));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        let files = |line| {
            let files = group_files(line);
            files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>()
        };
        let second = [
            "/sys/fs/cgroup/a/b/memory.max",
            "/sys/fs/cgroup/a/memory.max",
            "/sys/fs/cgroup/memory.max",
        ];
        assert_eq!(files("0::/a/b"), second);
        assert_eq!(files("0::/"), second[2..]);
        let first = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        assert_eq!(files("4:memory:/a")[1..], [first]);
        assert!(files("5:cpu,cpuacct:/a").is_empty() && files("").is_empty());
        assert!(real_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
