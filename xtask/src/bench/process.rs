//! What a server used: CPU and the device.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::machine::Outcome;

/// Parts of a second in which the system counts the time of processes: so on each architecture that
/// we run on.
const TICKS: u64 = 100;
/// Where `/proc/PID/stat` has the time in user mode, counted after the name in parentheses; the
/// time in the kernel follows.
const USER_TIME: usize = 11;
/// A server that uses less of a core for so long has nothing left to do.
const REST_SHARE: f64 = 0.1;
const REST: Duration = Duration::from_secs(2);
/// How long it may take until then.
const REST_LIMIT: Duration = Duration::from_secs(1800);

/// All that a process, with all its threads, has used since it began.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub cpu: Duration,
    /// Bytes that it had the device write.
    pub written: u64,
    /// Bytes that it had the device read.
    pub read: u64,
}

impl Used {
    /// Until now.
    pub fn of(pid: u32) -> Outcome<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let (_, fields) = stat.rsplit_once(')').ok_or("/proc/PID/stat has no name")?;
        let times = fields.split_whitespace().skip(USER_TIME).take(2);
        let ticks = times.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
        let io = fs::read_to_string(format!("/proc/{pid}/io"))?;
        let bytes = |name: &str| -> Outcome<u64> {
            let value = io.lines().find_map(|line| line.strip_prefix(name));
            Ok(value.ok_or_else(|| format!("no {name} in /proc/PID/io"))?.trim().parse()?)
        };
        Ok(Self {
            cpu: Duration::from_millis(ticks * 1000 / TICKS),
            written: bytes("write_bytes:")?,
            read: bytes("read_bytes:")?,
        })
    }

    /// Since an earlier moment.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            written: self.written.saturating_sub(earlier.written),
            read: self.read.saturating_sub(earlier.read),
        }
    }
}

/// How long each core has run and how long of that it had nothing to do, since the machine began,
/// in ticks.
pub struct Cores(Vec<[u64; 2]>);

impl Cores {
    /// Until now.
    pub fn now() -> Outcome<Self> {
        Self::parse(&fs::read_to_string("/proc/stat")?)
    }

    /// The lines `cpuN USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL GUEST GUEST_NICE`: the last
    /// two are in the first two, too.
    fn parse(stat: &str) -> Outcome<Self> {
        let lines =
            stat.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "));
        let cores = lines.map(|line| {
            let ticks = line.split_whitespace().skip(1).take(8).map(str::parse::<u64>);
            let ticks = ticks.collect::<Result<Vec<_>, _>>()?;
            let idle = ticks.get(3..5).ok_or("a core without times in /proc/stat")?;
            Ok([ticks.iter().sum(), idle.iter().sum()])
        });
        cores.collect::<Outcome<_>>().map(Self)
    }

    /// The part of the time since an earlier moment that each core had nothing to do.
    pub fn idle_since(&self, earlier: &Self) -> Vec<f64> {
        let parts =
            self.0.iter().zip(&earlier.0).map(|([all, idle], [all_before, idle_before])| {
                idle.saturating_sub(*idle_before) as f64
                    / all.saturating_sub(*all_before).max(1) as f64
            });
        parts.collect()
    }
}

/// Waits until it has done what its clients left to it: no flush and no compaction is left.
pub fn until_rest(pid: u32) -> Outcome {
    let limit = Instant::now() + REST_LIMIT;
    loop {
        let before = Used::of(pid)?;
        thread::sleep(REST);
        let used = Used::of(pid)?.since(before).cpu;
        if used < REST.mul_f64(REST_SHARE) {
            return Ok(());
        }
        if Instant::now() > limit {
            return Err(format!("the server does not come to rest in {REST_LIMIT:?}").into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cores, Used};

    #[test]
    fn this_process_uses_something() {
        let pid = std::process::id();
        let before = Used::of(pid).expect("a Linux");
        while Used::of(pid).expect("a Linux").since(before).cpu.is_zero() {
            std::hint::black_box((0..100_000u64).fold(0, u64::wrapping_add));
        }
    }

    #[test]
    fn a_core_that_waits_for_a_device_has_nothing_to_do() {
        let cores = |idle, waits| {
            Cores::parse(&format!("cpu 9 9 9 9 9\ncpu0 10 0 10 {idle} {waits} 0 5 5 1 1\nintr 1"))
        };
        let (before, after) = (cores(20, 0).expect("a core"), cores(40, 20).expect("a core"));
        assert_eq!(after.idle_since(&before), [1.0]);
        let before = Cores::parse("cpu0 0 0 0 10 0 0 0 0").expect("a core");
        let after = Cores::parse("cpu0 30 20 10 20 10 10 5 5").expect("a core");
        assert_eq!(after.idle_since(&before), [0.2]);
        assert!(Cores::parse("cpu0 1 2 3").is_err());
    }
}
