//! The kernel's counters below `/proc` (proc(5); Documentation/admin-guide/iostats.rst): parsers.

use std::collections::BTreeMap;

/// Disks, or network interfaces, that are looked at.
pub const MAX_DEVICES: usize = 16;
/// The unit of `/proc/diskstats`, whatever the device's.
const SECTOR: u64 = 512;

/// A file did not say what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} does not say {what}")]
pub struct ProcError {
    /// Which.
    pub file: &'static str,
    /// What is missing.
    pub what: &'static str,
}

/// Time of all CPUs since the start, in ticks (of a hundredth of a second, mostly).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// In programs, nice ones included.
    pub user: u64,
    /// In the kernel, interrupts included.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a disk was waited for.
    pub iowait: u64,
    /// Taken by other machines on the same host.
    pub steal: u64,
}

/// Memory now, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All.
    pub total: u64,
    /// That programs could still have.
    pub available: u64,
    /// Of which files fill.
    pub cached: u64,
}

/// A disk since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Milliseconds in which it had something to do.
    pub busy_millis: u64,
}

/// A network interface since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCounters {
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
}

/// `/proc/stat`: its line `cpu`.
pub fn cpu(text: &str) -> Result<CpuTimes, ProcError> {
    const MISSING: ProcError = ProcError { file: "/proc/stat", what: "the CPU's times" };
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).ok_or(MISSING)?;
    let times: Vec<u64> = line.split_ascii_whitespace().map_while(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest times are in user and nice already.
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = times[..] else {
        return Err(MISSING);
    };
    let system = system.saturating_add(irq).saturating_add(softirq);
    Ok(CpuTimes { user: user.saturating_add(nice), system, idle, iowait, steal })
}

/// `/proc/meminfo`.
pub fn memory(text: &str) -> Result<Memory, ProcError> {
    let bytes = |name: &str| {
        let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    let missing = |what| ProcError { file: "/proc/meminfo", what };
    Ok(Memory {
        total: bytes("MemTotal").ok_or(missing("MemTotal"))?,
        available: bytes("MemAvailable").ok_or(missing("MemAvailable"))?,
        cached: bytes("Cached").ok_or(missing("Cached"))?,
    })
}

/// `/proc/diskstats`: whole disks that were ever used, but for those in memory or in a file.
pub fn disks(text: &str) -> Result<BTreeMap<String, DiskCounters>, ProcError> {
    let mut disks = BTreeMap::<String, DiskCounters>::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        // major minor name, then reads merged sectors ms, writes merged sectors ms, in-flight, ms
        // busy
        let [_, _, name, _, _, read, _, _, _, written, _, _, busy, ..] = words[..] else {
            return Err(ProcError { file: "/proc/diskstats", what: "a disk's counters" });
        };
        let number = |word: &str| word.parse::<u64>().unwrap_or(0);
        let disk = DiskCounters {
            read: number(read).saturating_mul(SECTOR),
            written: number(written).saturating_mul(SECTOR),
            busy_millis: number(busy),
        };
        let in_memory = ["loop", "ram", "zram"].iter().any(|prefix| name.starts_with(prefix));
        let used = disk != DiskCounters::default();
        let partition = disks.keys().any(|whole| is_partition(whole, name));
        if used && !in_memory && !partition && disks.len() < MAX_DEVICES {
            disks.insert(name.to_owned(), disk);
        }
    }
    Ok(disks)
}

/// `sda1` of `sda`, `nvme0n1p1` of `nvme0n1`: the kernel lists a disk before its partitions.
fn is_partition(disk: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    let digits = match disk.ends_with(|c: char| c.is_ascii_digit()) {
        true => rest.strip_prefix('p').unwrap_or_default(),
        false => rest,
    };
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// `/proc/net/dev`: interfaces that ever carried anything.
pub fn networks(text: &str) -> Result<BTreeMap<String, NetworkCounters>, ProcError> {
    const MISSING: ProcError = ProcError { file: "/proc/net/dev", what: "an interface's counters" };
    let mut networks = BTreeMap::new();
    // Two lines of titles.
    for line in text.lines().skip(2) {
        let (name, counters) = line.split_once(':').ok_or(MISSING)?;
        let words: Vec<&str> = counters.split_ascii_whitespace().collect();
        // Received: bytes and seven more; then sent.
        let (Some(received), Some(sent)) = (words.first(), words.get(8)) else {
            return Err(MISSING);
        };
        let (Ok(received), Ok(sent)) = (received.parse(), sent.parse()) else {
            return Err(MISSING);
        };
        let counters = NetworkCounters { received, sent };
        if counters != NetworkCounters::default() && networks.len() < MAX_DEVICES {
            networks.insert(name.trim().to_owned(), counters);
        }
    }
    Ok(networks)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str = include_str!("../../testdata/proc/stat");
    const MEMINFO: &str = include_str!("../../testdata/proc/meminfo");
    const DISKSTATS: &str = include_str!("../../testdata/proc/diskstats");
    const NET_DEV: &str = include_str!("../../testdata/proc/net_dev");

    #[test]
    fn reads_the_cpu() {
        assert_eq!(
            cpu(STAT),
            Ok(CpuTimes {
                user: 150_501 + 220_663,
                system: 86_386 + 3_396,
                idle: 476_328,
                iowait: 3_574,
                steal: 6_339
            })
        );
        assert!(cpu("cpu0 1 2 3\n").is_err());
        assert!(cpu("cpu  1 2 3\n").is_err());
    }

    #[test]
    fn reads_memory() {
        assert_eq!(
            memory(MEMINFO),
            Ok(Memory {
                total: 24_684_092 << 10,
                available: 17_762_856 << 10,
                cached: 2_687_892 << 10
            })
        );
        assert_eq!(memory("MemTotal: 5 kB\n").unwrap_err().what, "MemAvailable");
        assert!(memory(&format!("MemTotal: {} kB\n", u64::MAX)).is_err());
    }

    #[test]
    fn reads_whole_disks() {
        let vda = DiskCounters {
            read: 26_876_386 * 512,
            written: 32_328_048 * 512,
            busy_millis: 172_684,
        };
        assert_eq!(disks(DISKSTATS), Ok([("vda".to_owned(), vda)].into()));
        let line = |name: &str| format!("259 0 {name} 1 0 2 0 1 0 4 0 0 7 0\n");
        let lines: String =
            ["nvme0n1", "nvme0n1p1", "sda", "sda1", "sdb", "loop0"].map(line).concat();
        let names: Vec<String> = disks(&lines).unwrap().into_keys().collect();
        assert_eq!(names, ["nvme0n1", "sda", "sdb"]);
        let many: String = (0..100).map(|n| line(&format!("d{n}x"))).collect();
        assert_eq!(disks(&many).unwrap().len(), MAX_DEVICES);
        assert!(disks("8 0 sda 1\n").is_err());
    }

    #[test]
    fn reads_interfaces() {
        let found = networks(NET_DEV).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["eth0", "lo"]);
        assert_eq!(found["eth0"], NetworkCounters { received: 309_698_580, sent: 1_809_819 });
        assert!(networks("\n\nlo 1 2\n").is_err());
        assert_eq!(networks(""), Ok(BTreeMap::new()));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z0-9: \n]{0,200}") {
            let _ = (cpu(&text), memory(&text), disks(&text), networks(&text));
        }
    }
}
