//! What the kernel says of this process.

use std::io;

use crate::env::{Env, Make};

/// What a process has of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessStats {
    /// Bytes in memory.
    pub resident_bytes: u64,
    /// Files and sockets that are open.
    pub open_files: u64,
    /// How many may be; `u64::MAX` without a limit.
    pub open_files_max: u64,
}

impl Env {
    /// What this process has now. A simulated node has none of its own.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub async fn process_stats(&self) -> io::Result<ProcessStats> {
        match &self.0.make {
            Make::Real(_) => self.blocking(read).await,
            Make::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

fn read() -> io::Result<ProcessStats> {
    let text = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}"));
    let missing = || io::Error::from(io::ErrorKind::InvalidData);
    // the listing is open itself while it is read
    let open = std::fs::read_dir("/proc/self/fd")?.count().saturating_sub(1);
    Ok(ProcessStats {
        resident_bytes: resident_bytes(&text("status")?).ok_or_else(missing)?,
        open_files: open as u64,
        open_files_max: open_files_max(&text("limits")?).ok_or_else(missing)?,
    })
}

/// `VmRSS:   12345 kB`
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// `Max open files            1024                 524288               files`: the first binds.
fn open_files_max(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_understood() {
        assert_eq!(resident_bytes("VmHWM:\t 99 kB\nVmRSS:\t   12 kB\n"), Some(12 << 10));
        assert_eq!(resident_bytes("VmRSS:\t many\n"), None);
        let line =
            |soft| format!("Max processes   1 2 processes\nMax open files   {soft} 9 files\n");
        assert_eq!(open_files_max(&line("1024")), Some(1024));
        assert_eq!(open_files_max(&line("unlimited")), Some(u64::MAX));
        assert_eq!(open_files_max(""), None);
    }

    #[test]
    fn this_process_has_something() {
        let stats = read().unwrap();
        assert!(stats.resident_bytes > 1 << 20, "{stats:?}");
        assert!((3..stats.open_files_max).contains(&stats.open_files), "{stats:?}");
    }
}
