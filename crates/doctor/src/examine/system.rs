//! Kernel, memory, limits, clock and CPUs.

use crate::checks as c;
use crate::facts::Facts;
use crate::report::Report;

/// The first with all operations that the node's rings need.
const KERNEL_MIN: (u32, u32) = (5, 13);
/// `kernel.io_uring_disabled`: nobody may.
const IO_URING_OFF: u64 = 2;
/// From here on up to the fix, ext4 loses what direct I/O wrote (Debian bug 1057843).
const KERNEL_EXT4: [(u32, u32, u32); 2] = [(6, 1, 64), (6, 1, 65)];
const MEMORY_TIGHT_PERCENT: u64 = 75;
/// As Cassandra's `StartupChecks.checkMaxMapCount`.
const MAP_COUNT_MIN: u64 = 1_048_575;
const SWAPPINESS_MAX: u64 = 1;
/// `vm.overcommit_memory`: nothing beyond what there is.
const OVERCOMMIT_NEVER: u64 = 2;
/// As Cassandra's `SigarLibrary` has them.
const FILES_MIN: u64 = 10_000;
const PROCESSES_MIN: u64 = 32_768;
/// As Cassandra's packages set it.
const FILES_ADVISED: u64 = 100_000;
const LOCKED_MIN_BYTES: u64 = 8 << 20;
const CLOCK_ERROR_MAX_US: u64 = 500_000;
const FAST_CLOCKS: [&str; 5] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "xen"];
const SLOW_GOVERNORS: [&str; 3] = ["powersave", "conservative", "ondemand"];
const STOLEN_MAX_PERMILLE: u64 = 50;

pub fn kernel(facts: &Facts, report: &mut Report) {
    let kernel = &facts.kernel;
    report.look(&c::KERNEL_OLD, "kernel", kernel.version, |(major, minor, patch)| {
        ((major, minor) < KERNEL_MIN).then(|| format!("Linux {major}.{minor}.{patch}"))
    });
    report.look(&c::IO_URING_REFUSED, "kernel.io_uring_disabled", kernel.io_uring_disabled, |by| {
        (by == IO_URING_OFF).then(|| format!("kernel.io_uring_disabled is {by}"))
    });
    if kernel.io_uring_disabled != Some(IO_URING_OFF) {
        report.look(&c::IO_URING_REFUSED, "io_uring", kernel.io_uring.as_ref(), |tried| {
            tried.clone().err()
        });
    }
    let on_ext4 = facts
        .directories
        .iter()
        .find(|directory| directory.mount.as_ref().is_some_and(|mount| mount.kind == "ext4"));
    report.look(&c::KERNEL_EXT4, "kernel", kernel.version, |version| {
        let directory =
            on_ext4.filter(|_| facts.node.is_direct && KERNEL_EXT4.contains(&version))?;
        let (major, minor, patch) = version;
        Some(format!("Linux {major}.{minor}.{patch}, and {} is on ext4", directory.path))
    });
}

pub fn memory(facts: &Facts, report: &mut Report) {
    let memory = &facts.memory;
    let limits = [("the machine", memory.total), ("the cgroup", memory.cgroup)];
    let least = limits.iter().filter_map(|(name, limit)| Some((*name, (*limit)?)));
    let least = least.min_by_key(|(_, limit)| *limit);
    let budget = facts.node.memory;
    let subject = least.map_or("the machine", |(name, _)| name);
    let found = |limit: u64| {
        format!("memory_budget is {} MiB, {subject} has {} MiB", budget >> 20, limit >> 20)
    };
    let limit = least.map(|(_, limit)| limit);
    report.look(&c::MEMORY_EXCEEDS, subject, limit, |limit| (budget > limit).then(|| found(limit)));
    report.look(&c::MEMORY_TIGHT, subject, limit, |limit| {
        let most = limit / 100 * MEMORY_TIGHT_PERCENT;
        (budget > most && budget <= limit).then(|| found(limit))
    });
    let is_swapped = memory.swaps.as_ref().is_some_and(|swaps| !swaps.is_empty());
    report.look(&c::SWAP, "swap", memory.swaps.as_ref(), |swaps| {
        (!swaps.is_empty()).then(|| swaps.join(", "))
    });
    let is = |value: u64| format!("it is {value}");
    report.look(&c::SWAPPINESS, "vm.swappiness", memory.swappiness, |value| {
        (is_swapped && value > SWAPPINESS_MAX).then(|| is(value))
    });
    report.look(&c::OVERCOMMIT, "vm.overcommit_memory", memory.overcommit, |value| {
        (value == OVERCOMMIT_NEVER).then(|| is(value))
    });
    report.look(&c::HUGE_PAGES, "huge pages", memory.huge_pages.as_deref(), |when| {
        (when == "always").then(|| "always".to_owned())
    });
    report.look(&c::MAP_COUNT, "vm.max_map_count", memory.map_count, |value| {
        (value < MAP_COUNT_MIN).then(|| is(value))
    });
    report.look(&c::ZONE_RECLAIM, "vm.zone_reclaim_mode", memory.zone_reclaim, |value| {
        (value != 0).then(|| is(value))
    });
    report.look(&c::NUMA_NODES, "NUMA", memory.numa_nodes, |nodes| {
        (nodes > 1).then(|| format!("{nodes} nodes"))
    });
}

pub fn limits(facts: &Facts, report: &mut Report) {
    let limits = &facts.limits;
    let is = |value: u64| format!("{value} for the process that asks");
    report.look(&c::FILES_LOW, "nofile", limits.files, |value| {
        (value < FILES_MIN).then(|| is(value))
    });
    report.look(&c::FILES_ADVICE, "nofile", limits.files, |value| {
        (FILES_MIN..FILES_ADVISED).contains(&value).then(|| is(value))
    });
    report.look(&c::PROCESSES, "nproc", limits.processes, |value| {
        (value < PROCESSES_MIN).then(|| is(value))
    });
    report.look(&c::LOCKED_MEMORY, "memlock", limits.locked, |value| {
        (value < LOCKED_MIN_BYTES).then(|| is(value))
    });
}

pub fn clock(facts: &Facts, report: &mut Report) {
    let clock = &facts.clock;
    report.look(&c::CLOCK_UNSYNCHRONIZED, "clock", clock.state, |state| {
        (!state.is_synchronized).then(|| "the kernel says: not synchronized".to_owned())
    });
    let synchronized = clock.state.filter(|state| state.is_synchronized);
    report.look(&c::CLOCK_ERROR, "clock", synchronized, |state| {
        let is_much = state.error_max_us > CLOCK_ERROR_MAX_US;
        is_much.then(|| format!("up to {} ms", state.error_max_us / 1_000))
    });
    report.look(&c::CLOCK_SOURCE, "clock", clock.source.as_deref(), |source| {
        (!FAST_CLOCKS.contains(&source)).then(|| format!("it is read from {source}"))
    });
}

pub fn cpu(facts: &Facts, report: &mut Report) {
    let cpu = &facts.cpu;
    let shards = facts.node.shards.or(cpu.count);
    if let (Some(shards), Some(count)) = (shards, cpu.count) {
        report.look(&c::SHARDS_MANY, &count.to_string(), Some(shards), |shards| {
            (shards > count).then(|| format!("{shards} shards, {count} CPUs"))
        });
        report.look(&c::CPU_QUOTA, "cgroup", Some(cpu.quota), |quota| {
            let quota = quota.filter(|quota| *quota < shards.saturating_mul(1_000))?;
            let (whole, rest) = (quota / 1_000, quota % 1_000);
            Some(format!("{shards} shards, {whole}.{rest:03} CPUs allowed"))
        });
    }
    report.look(&c::GOVERNOR, "CPU", cpu.governors.as_ref(), |governors| {
        let mut slow = governors.iter().filter(|name| SLOW_GOVERNORS.contains(&name.as_str()));
        slow.next().cloned()
    });
    report.look(&c::STEAL, "CPU", cpu.stolen, |permille| {
        let is_much = permille > STOLEN_MAX_PERMILLE;
        is_much.then(|| format!("{}.{} %", permille / 10, permille % 10))
    });
}
