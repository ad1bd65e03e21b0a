//! What is known of a machine, as far as it concerns a node.

mod disks;
mod ring;
mod system;

use std::collections::BTreeMap;

pub use self::ring::{Copies, RingFacts, RingKeyspace, RingNode};
use crate::source::{ClockState, Source, Space};

/// What the node is to do here.
#[derive(Clone, Debug, Default)]
pub struct NodeFacts {
    /// `data_file_directories`.
    pub data: Vec<String>,
    /// `commitlog_directory`.
    pub commit_log: String,
    /// `hints_directory`.
    pub hints: String,
    /// `shards`, if set: else one for each CPU.
    pub shards: Option<u64>,
    /// `memory_budget` in bytes.
    pub memory: u64,
    /// Is `commitlog_compression` set?
    pub is_log_compressed: bool,
    /// Does the node write by direct I/O (`io_background_access_mode`)?
    pub is_direct: bool,
    /// Ports on which it listens.
    pub ports: Vec<u16>,
}

/// What a directory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// SSTables.
    Data,
    /// The commit log.
    CommitLog,
    /// Hints.
    Hints,
}

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// Where.
    pub point: String,
    /// `ext4` and so on.
    pub kind: String,
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
    /// Major and minor number of its device.
    pub device: String,
    /// What is mounted, such as `/dev/sda1`.
    pub source: String,
}

/// A directory of the node.
#[derive(Clone, Debug)]
pub struct Directory {
    /// What it is for.
    pub role: Role,
    /// Where it is.
    pub path: String,
    /// On which file system.
    pub mount: Option<Mount>,
    /// What that has.
    pub space: Option<Space>,
    /// May the node write there?
    pub is_writable: Option<bool>,
    /// The device of its file system, a disk or an array; not a partition.
    pub device: Option<String>,
}

/// What an array of `md` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Array {
    /// `raid0` and so on.
    pub level: String,
    /// Bytes of a chunk; 0: it has none.
    pub chunk: u64,
    /// Disks that are missing.
    pub degraded: u64,
}

/// A disk, or what was made of disks.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Read-ahead in KB.
    pub read_ahead_kb: Option<u64>,
    /// The scheduler in use.
    pub scheduler: Option<String>,
    /// Does it spin?
    pub is_rotational: Option<bool>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// What it was made of: disk of each member and bytes of the member; none for a disk.
    pub members: Vec<(String, Option<u64>)>,
    /// If `md` made it.
    pub array: Option<Array>,
}

/// The kernel.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// Its version.
    pub version: Option<(u32, u32, u32)>,
    /// `kernel.io_uring_disabled`.
    pub io_uring_disabled: Option<u64>,
    /// What came of trying.
    pub io_uring: Option<Result<(), String>>,
}

/// Memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Of the machine, in bytes.
    pub total: Option<u64>,
    /// What the cgroup allows, in bytes.
    pub cgroup: Option<u64>,
    /// Devices that are swapped to.
    pub swaps: Option<Vec<String>>,
    /// `vm.swappiness`.
    pub swappiness: Option<u64>,
    /// `vm.overcommit_memory`.
    pub overcommit: Option<u64>,
    /// `vm.max_map_count`.
    pub map_count: Option<u64>,
    /// `vm.zone_reclaim_mode`.
    pub zone_reclaim: Option<u64>,
    /// The word in brackets of `transparent_hugepage/enabled`.
    pub huge_pages: Option<String>,
    /// NUMA nodes.
    pub numa_nodes: Option<u64>,
}

/// Limits of the process that looks; `u64::MAX`: unlimited.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Open files.
    pub files: Option<u64>,
    /// Processes of the user.
    pub processes: Option<u64>,
    /// Bytes that may be locked.
    pub locked: Option<u64>,
}

/// The clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// What keeps it.
    pub state: Option<ClockState>,
    /// What the kernel reads it from.
    pub source: Option<String>,
}

/// A network card.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// Mbit/s.
    pub speed: Option<u64>,
    /// `full` or `half`.
    pub duplex: Option<String>,
    /// Bytes of a packet.
    pub mtu: Option<u64>,
    /// Packets received and sent.
    pub packets: Option<u64>,
    /// Packets that were lost or damaged.
    pub errors: Option<u64>,
    /// Queues of received packets.
    pub queues: Option<u64>,
    /// Are packets spread over CPUs by software?
    pub is_spread: bool,
}

/// The network.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub syn_backlog: Option<u64>,
    /// `net.core.rmem_max`, `wmem_max`: the setting and its value.
    pub buffers: Vec<(&'static str, Option<u64>)>,
    /// The largest of `net.ipv4.tcp_rmem`, `tcp_wmem`.
    pub tcp_buffers: Vec<(&'static str, Option<u64>)>,
    /// `net.ipv4.tcp_keepalive_time`, in seconds.
    pub keepalive: Option<u64>,
    /// `net.ipv4.tcp_congestion_control`.
    pub congestion: Option<String>,
    /// `net.ipv4.ip_local_port_range`.
    pub outgoing: Option<(u16, u16)>,
    /// `net.ipv4.ip_local_reserved_ports`: ranges.
    pub reserved: Vec<(u16, u16)>,
    /// Cards that are in use.
    pub cards: Vec<Card>,
}

/// CPUs.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// How many are online.
    pub count: Option<u64>,
    /// `cpu.max` of the cgroup: thousandths of a CPU.
    pub quota: Option<u64>,
    /// Governors of the CPUs, each once.
    pub governors: Option<Vec<String>>,
    /// Parts of a thousand of the time that were stolen since boot.
    pub stolen: Option<u64>,
}

/// All that is known.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// What the node is to do.
    pub node: NodeFacts,
    /// Its directories.
    pub directories: Vec<Directory>,
    /// The disks and arrays below them.
    pub devices: BTreeMap<String, Device>,
    /// The kernel.
    pub kernel: Kernel,
    /// Memory.
    pub memory: Memory,
    /// Limits.
    pub limits: Limits,
    /// The clock.
    pub clock: Clock,
    /// The network.
    pub network: Network,
    /// CPUs.
    pub cpu: Cpu,
    /// The ring, where a node of it tells.
    pub ring: Option<RingFacts>,
}

impl Facts {
    /// Asks a machine.
    pub fn read(source: &dyn Source, node: NodeFacts) -> Self {
        let directories = disks::directories(source, &node);
        let mut devices = BTreeMap::new();
        for name in directories.iter().filter_map(|directory| directory.device.as_ref()) {
            disks::read_below(source, name, &mut devices);
        }
        Self {
            node,
            directories,
            devices,
            kernel: system::kernel(source),
            memory: system::memory(source),
            limits: system::limits(source),
            clock: system::clock(source),
            network: system::network(source),
            cpu: system::cpu(source),
            ring: None,
        }
    }
}

/// A file with one number.
fn number(source: &dyn Source, path: &str) -> Option<u64> {
    source.read(path)?.trim().parse().ok()
}

/// A file with one word.
fn word(source: &dyn Source, path: &str) -> Option<String> {
    Some(source.read(path)?.trim().to_owned()).filter(|word| !word.is_empty())
}

/// The word in brackets, where a file names all that could be chosen.
fn chosen(source: &dyn Source, path: &str) -> Option<String> {
    let text = word(source, path)?;
    match text.split_once('[') {
        Some((_, rest)) => Some(rest.split(']').next().unwrap_or_default().to_owned()),
        None => Some(text),
    }
}
