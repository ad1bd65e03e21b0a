//! From counters to what they say: shares and rates between two samples.

use super::Sample;
use super::proc::CpuTimes;

/// One value of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Such as `cpu.busy_percent` or `disk.vda.read_bytes_per_second`.
    pub metric: String,
    /// The value.
    pub value: f64,
}

/// What happened between two samples; memory is that of the later one. A device that appeared in
/// between, or whose counter went back, is left out.
pub fn measure(before: &Sample, after: &Sample) -> Vec<Measurement> {
    let mut measured = Vec::new();
    let mut add = |metric: String, value: f64| measured.push(Measurement { metric, value });
    for (name, percent) in cpu(before.cpu, after.cpu) {
        add(format!("cpu.{name}_percent"), percent);
    }
    let memory = after.memory;
    add("memory.used_bytes".into(), memory.total.saturating_sub(memory.available) as f64);
    add("memory.available_bytes".into(), memory.available as f64);
    add("memory.cached_bytes".into(), memory.cached as f64);
    let seconds = after.at.since(before.at).as_secs_f64();
    let rate = |from: u64, to: u64| {
        let growth = to.checked_sub(from).filter(|_| seconds > 0.0);
        growth.map(|growth| growth as f64 / seconds)
    };
    for (name, now) in &after.disks {
        let Some(then) = before.disks.get(name) else { continue };
        let values = [
            ("read_bytes_per_second", rate(then.read, now.read)),
            ("written_bytes_per_second", rate(then.written, now.written)),
            // Milliseconds a second are tenths of percents.
            ("busy_percent", rate(then.busy_millis, now.busy_millis).map(|ms| ms / 10.0)),
        ];
        values.into_iter().filter_map(|(what, value)| Some((what, value?))).for_each(
            |(what, value)| {
                add(format!("disk.{name}.{what}"), value);
            },
        );
    }
    for (name, now) in &after.networks {
        let Some(then) = before.networks.get(name) else { continue };
        let values = [
            ("received_bytes_per_second", rate(then.received, now.received)),
            ("sent_bytes_per_second", rate(then.sent, now.sent)),
        ];
        for (what, value) in values {
            if let Some(value) = value {
                add(format!("network.{name}.{what}"), value);
            }
        }
    }
    measured
}

/// Shares of the time between, in percent; nothing if no time passed or a counter went back.
fn cpu(from: CpuTimes, to: CpuTimes) -> Vec<(&'static str, f64)> {
    let parts = |t: CpuTimes| [t.user, t.system, t.iowait, t.steal, t.idle];
    let mut passed = [0; 5];
    for ((passed, from), to) in passed.iter_mut().zip(parts(from)).zip(parts(to)) {
        // iowait is known to go back a little.
        *passed = to.saturating_sub(from);
    }
    let total = passed.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
    if total == 0 {
        return Vec::new();
    }
    let percent = |part: u64| part as f64 * 100.0 / total as f64;
    let [user, system, iowait, steal, _] = passed;
    vec![
        ("busy", percent(user.saturating_add(system).saturating_add(steal))),
        ("user", percent(user)),
        ("system", percent(system)),
        ("iowait", percent(iowait)),
        ("steal", percent(steal)),
    ]
}

#[cfg(test)]
mod tests {
    use env::Instant;

    use super::*;
    use crate::demo::{DiskCounters, Memory, NetworkCounters};

    fn at(seconds: u64) -> Sample {
        Sample { at: Instant::from_nanos(seconds * 1_000_000_000), ..Sample::default() }
    }

    fn value(measured: &[Measurement], metric: &str) -> Option<f64> {
        measured.iter().find(|m| m.metric == metric).map(|m| m.value)
    }

    #[test]
    fn shares_and_rates() {
        let (mut a, mut b) = (at(10), at(12));
        a.cpu = CpuTimes { user: 100, system: 50, idle: 1000, iowait: 7, steal: 0 };
        b.cpu = CpuTimes { user: 140, system: 60, idle: 1145, iowait: 7, steal: 5 };
        b.memory = Memory { total: 1000, available: 400, cached: 100 };
        let disk = |read, written, busy_millis| DiskCounters { read, written, busy_millis };
        a.disks.insert("vda".into(), disk(0, 1024, 500));
        b.disks.insert("vda".into(), disk(4096, 1024, 1500));
        b.disks.insert("new".into(), disk(1, 1, 1));
        a.networks.insert("lo".into(), NetworkCounters { received: 5, sent: 100 });
        b.networks.insert("lo".into(), NetworkCounters { received: 25, sent: 0 });
        let measured = measure(&a, &b);
        let value = |metric| value(&measured, metric);
        assert_eq!(value("cpu.busy_percent"), Some(27.5));
        assert_eq!(value("cpu.user_percent"), Some(20.0));
        assert_eq!(value("memory.used_bytes"), Some(600.0));
        assert_eq!(value("disk.vda.read_bytes_per_second"), Some(2048.0));
        assert_eq!(value("disk.vda.written_bytes_per_second"), Some(0.0));
        assert_eq!(value("disk.vda.busy_percent"), Some(50.0));
        assert_eq!(value("disk.new.busy_percent"), None);
        assert_eq!(value("network.lo.received_bytes_per_second"), Some(10.0));
        assert_eq!(value("network.lo.sent_bytes_per_second"), None, "went back");
    }

    #[test]
    fn no_time_is_no_rate() {
        let measured = measure(&at(1), &at(1));
        assert!(measured.iter().all(|m| m.metric.starts_with("memory.")));
    }
}
