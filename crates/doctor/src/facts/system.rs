//! What `/proc` and `/sys` say of kernel, memory, limits, clock, network and CPUs.

use super::{Card, Clock, Cpu, Kernel, Limits, Memory, Network, chosen, number, word};
use crate::source::Source;

const KIB: u64 = 1_024;
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
/// What version 1 of cgroups writes for no limit: all above it.
const CGROUP_UNLIMITED: u64 = 1 << 60;

pub fn kernel(source: &dyn Source) -> Kernel {
    Kernel {
        version: source.read("/proc/version").and_then(|text| version(&text)),
        io_uring_disabled: number(source, "/proc/sys/kernel/io_uring_disabled"),
        io_uring: source.io_uring(),
    }
}

/// `Linux version 6.1.64-cloud (...) ...`
fn version(text: &str) -> Option<(u32, u32, u32)> {
    let version = text.split(' ').nth(2)?;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next()?.ok();
    Some((next()?, next()?, next().unwrap_or(0)))
}

pub fn memory(source: &dyn Source) -> Memory {
    let vm = |name: &str| number(source, &format!("/proc/sys/vm/{name}"));
    let swaps = source.read("/proc/swaps").map(|text| {
        let device = |line: &str| Some(line.split_whitespace().next()?.to_owned());
        text.lines().skip(1).filter_map(device).collect()
    });
    let nodes = source.list("/sys/devices/system/node");
    let is_node =
        |name: &&String| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let nodes = nodes.iter().filter(is_node).count() as u64;
    Memory {
        total: source.read("/proc/meminfo").and_then(|text| meminfo(&text, "MemTotal:")),
        cgroup: cgroup_memory(source),
        swaps,
        swappiness: vm("swappiness"),
        overcommit: vm("overcommit_memory"),
        map_count: vm("max_map_count"),
        zone_reclaim: vm("zone_reclaim_mode"),
        huge_pages: chosen(source, HUGE_PAGES),
        numa_nodes: (nodes > 0).then_some(nodes),
    }
}

fn meminfo(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(kib.saturating_mul(KIB))
}

/// The folders of this process' cgroup and of those above it, for a controller.
fn cgroups(source: &dyn Source, controller: &str) -> Vec<String> {
    let text = source.read("/proc/self/cgroup").unwrap_or_default();
    let mut folders = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let root = if controllers.is_empty() {
            "/sys/fs/cgroup".to_owned()
        } else if controllers.split(',').any(|name| name == controller) {
            format!("/sys/fs/cgroup/{controllers}")
        } else {
            continue;
        };
        let mut path = path.trim_end_matches('/');
        while let Some((above, _)) = path.rsplit_once('/') {
            folders.push(format!("{root}{path}"));
            path = above;
        }
        folders.push(root);
    }
    folders
}

fn cgroup_memory(source: &dyn Source) -> Option<u64> {
    let files = ["memory.max", "memory.limit_in_bytes"];
    let folders = cgroups(source, "memory");
    let paths = folders.iter().flat_map(|folder| files.map(|file| format!("{folder}/{file}")));
    paths.filter_map(|path| number(source, &path)).filter(|max| *max < CGROUP_UNLIMITED).min()
}

fn cgroup_cpu(source: &dyn Source) -> Option<u64> {
    let quota = |folder: &String| {
        let (quota, period) = match source.read(&format!("{folder}/cpu.max")) {
            Some(text) => {
                let (quota, period) = text.trim().split_once(' ')?;
                (quota.parse().ok()?, period.parse().ok()?)
            }
            None => (
                number(source, &format!("{folder}/cpu.cfs_quota_us"))?,
                number(source, &format!("{folder}/cpu.cfs_period_us"))?,
            ),
        };
        u64::saturating_mul(quota, 1_000).checked_div(period)
    };
    cgroups(source, "cpu").iter().filter_map(quota).min()
}

pub fn limits(source: &dyn Source) -> Limits {
    let text = source.read("/proc/self/limits").unwrap_or_default();
    let soft = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        match rest.split_whitespace().next()? {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        }
    };
    Limits {
        files: soft("Max open files"),
        processes: soft("Max processes"),
        locked: soft("Max locked memory"),
    }
}

pub fn clock(source: &dyn Source) -> Clock {
    Clock { state: source.clock(), source: word(source, CLOCK_SOURCE) }
}

pub fn network(source: &dyn Source) -> Network {
    let core = |name: &str| number(source, &format!("/proc/sys/net/core/{name}"));
    let ipv4 = |name: &str| word(source, &format!("/proc/sys/net/ipv4/{name}"));
    let largest = |name| ipv4(name)?.split_whitespace().nth(2)?.parse().ok();
    let outgoing = ipv4("ip_local_port_range").and_then(|text| {
        let mut numbers = text.split_whitespace().map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    Network {
        somaxconn: core("somaxconn"),
        syn_backlog: ipv4("tcp_max_syn_backlog").and_then(|text| text.parse().ok()),
        buffers: vec![
            ("net.core.rmem_max", core("rmem_max")),
            ("net.core.wmem_max", core("wmem_max")),
        ],
        tcp_buffers: vec![
            ("net.ipv4.tcp_rmem", largest("tcp_rmem")),
            ("net.ipv4.tcp_wmem", largest("tcp_wmem")),
        ],
        keepalive: ipv4("tcp_keepalive_time").and_then(|text| text.parse().ok()),
        congestion: ipv4("tcp_congestion_control"),
        outgoing,
        reserved: ranges(&ipv4("ip_local_reserved_ports").unwrap_or_default()),
        cards: cards(source),
    }
}

/// `7000,9042-9043`
fn ranges(text: &str) -> Vec<(u16, u16)> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some((from.parse().ok()?, to.parse().ok()?))
    };
    text.split(',').filter_map(range).collect()
}

/// Cards of hardware that are up.
fn cards(source: &dyn Source) -> Vec<Card> {
    let all = source.list("/sys/class/net").into_iter();
    let is_used = |name: &String| {
        let at = format!("/sys/class/net/{name}");
        let is_up = word(source, &format!("{at}/operstate")).is_some_and(|state| state == "up");
        is_up && source.list(&at).iter().any(|entry| entry == "device")
    };
    all.filter(is_used).map(|name| card(source, name)).collect()
}

fn card(source: &dyn Source, name: String) -> Card {
    let at = |rest: &str| format!("/sys/class/net/{name}/{rest}");
    let count = |of: &[&str]| {
        let counts = of.iter().map(|one| number(source, &at(&format!("statistics/{one}"))));
        counts.sum::<Option<u64>>()
    };
    let queues = source.list(&at("queues"));
    let received: Vec<&String> = queues.iter().filter(|queue| queue.starts_with("rx-")).collect();
    let is_spread = |queue: &&String| {
        let mask = word(source, &at(&format!("queues/{queue}/rps_cpus"))).unwrap_or_default();
        mask.chars().any(|c| c != '0' && c != ',')
    };
    Card {
        speed: number(source, &at("speed")).filter(|speed| *speed > 0),
        duplex: word(source, &at("duplex")).filter(|duplex| duplex != "unknown"),
        mtu: number(source, &at("mtu")),
        packets: count(&["rx_packets", "tx_packets"]),
        errors: count(&["rx_errors", "tx_errors", "rx_dropped", "tx_dropped"]),
        queues: (!received.is_empty()).then_some(received.len() as u64),
        is_spread: received.iter().any(is_spread),
        name,
    }
}

pub fn cpu(source: &dyn Source) -> Cpu {
    Cpu {
        count: word(source, "/sys/devices/system/cpu/online").and_then(|text| count(&text)),
        quota: cgroup_cpu(source),
        governors: governors(source),
        stolen: source.read("/proc/stat").and_then(|text| stolen(&text)),
    }
}

/// `0-3,5`
fn count(text: &str) -> Option<u64> {
    let all = ranges(text);
    let of = |(from, to): &(u16, u16)| u64::from(to.saturating_sub(*from)) + 1;
    (!all.is_empty()).then(|| all.iter().map(of).sum())
}

fn governors(source: &dyn Source) -> Option<Vec<String>> {
    let folder = "/sys/devices/system/cpu";
    let governor =
        |name: &String| word(source, &format!("{folder}/{name}/cpufreq/scaling_governor"));
    let mut all: Vec<String> = source.list(folder).iter().filter_map(governor).collect();
    all.sort();
    all.dedup();
    (!all.is_empty()).then_some(all)
}

/// user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
fn stolen(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    let all = times.iter().fold(0_u64, |sum, time| sum.saturating_add(*time));
    times.get(7)?.saturating_mul(1_000).checked_div(all)
}
