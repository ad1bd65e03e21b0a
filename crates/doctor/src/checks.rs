//! All checks: name, how serious, what, why, and what to do. `docs/doctor.md` has the same table.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the node runs as well without the change, or the change may not help it.
    Note,
    /// The node will be slower, or will fail sooner, than it need be.
    Warn,
    /// The node does not start, loses data, or breaks its ring.
    Serious,
}

impl Severity {
    /// As it is printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Serious => "serious",
        }
    }
}

/// One thing that is looked at.
#[derive(Debug)]
pub struct Check {
    /// Its name.
    pub id: &'static str,
    /// How serious a finding is.
    pub severity: Severity,
    /// What is found.
    pub what: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// What to do; `{subject}` is what it was found in.
    pub fix: &'static str,
}

/// The checks as a table of Markdown.
pub fn markdown() -> String {
    let mut table = "| id | severity | what | fix |\n|---|---|---|---|\n".to_owned();
    for Check { id, severity, what, fix, .. } in ALL {
        let fix = fix.replace('|', "\\|");
        let _ = writeln!(table, "| `{id}` | {} | {what} | {fix} |", severity.word());
    }
    table
}

macro_rules! checks {
    ($($name:ident $severity:ident $id:literal: $what:literal, $why:literal, $fix:literal;)*) => {
        $(pub(crate) static $name: Check = Check {
            id: $id,
            severity: Severity::$severity,
            what: $what,
            why: $why,
            fix: $fix,
        };)*
        /// All checks, in the order of the documentation.
        pub static ALL: &[&Check] = &[$(&$name),*];
    };
}

checks! {
    KERNEL_OLD Serious "kernel_old": "Linux older than 5.13",
        "The node does not start: older io_uring lacks operations that it needs.",
        "install Linux 5.13 or newer";
    IO_URING_REFUSED Serious "io_uring_refused": "the kernel refuses io_uring",
        "The node does all its input and output through io_uring, and does not start without it.",
        "sysctl -w kernel.io_uring_disabled=0; in a container, permit io_uring_setup, \
         io_uring_enter and io_uring_register in the seccomp profile";
    KERNEL_EXT4 Serious "kernel_ext4": "Linux 6.1.64 or 6.1.65 with ext4 and direct I/O",
        "These kernels damage files that are written by direct I/O on ext4 (Debian bug 1057843). \
         Cassandra refuses to start, too.",
        "install another kernel, or set io_background_access_mode to standard";
    DIRECTORY_WRITABLE Serious "directory_writable": "a directory that the user cannot write",
        "The node does not start.",
        "chown the user of the node on {subject}";
    FS_READ_ONLY Serious "fs_read_only": "a directory on a file system mounted read-only",
        "The node does not start. A file system may be read-only because the disk failed.",
        "look into dmesg, then: mount -o remount,rw {subject}";
    FS_MEMORY Serious "fs_memory": "a directory in memory (tmpfs, ramfs)",
        "All data is lost when the machine restarts.",
        "mount a disk on {subject}";
    FS_OVERLAY Serious "fs_overlay": "a directory in a container's own layer (overlay)",
        "All data is lost with the container, and writes take another way than on a disk.",
        "mount a volume on {subject}";
    FS_NETWORK Serious "fs_network": "a directory on a network file system",
        "Its latency, its locks and what it does on a failure are not those of a disk.",
        "use a local disk or a block device for {subject}";
    FS_COPY_ON_WRITE Warn "fs_copy_on_write": "a directory on btrfs or zfs",
        "Each write is copied once more below the node, which merges files itself. Free space is \
         harder to tell.",
        "use xfs or ext4 for {subject}";
    FS_UNTRIED Note "fs_untried": "a file system other than ext4, xfs, btrfs, zfs",
        "Nobody has tried it with this node.",
        "use xfs or ext4 for {subject}";
    MOUNT_NOBARRIER Serious "mount_nobarrier": "write barriers are off",
        "What was acknowledged may be lost in a power cut: the disk may keep it in its cache.",
        "remove nobarrier or barrier=0 from /etc/fstab, then: mount -o remount,barrier=1 {subject}";
    MOUNT_SYNC Warn "mount_sync": "mounted with sync",
        "Every write waits for the disk. The node itself waits where it must.",
        "mount -o remount,async {subject}";
    MOUNT_ATIME Warn "mount_atime": "neither noatime nor relatime",
        "Every read of a file writes its time of access to the disk.",
        "mount -o remount,noatime {subject}, and in /etc/fstab";
    MOUNT_DISCARD Note "mount_discard": "mounted with discard",
        "After a flush or compaction gigabytes are discarded at once, while reads wait.",
        "remove discard from /etc/fstab and enable fstrim.timer: \
         mount -o remount,nodiscard {subject}";
    LOG_XFS Note "log_xfs": "an uncompressed commit log on xfs",
        "A cloud vendor found Cassandra's commit log slower on xfs than on ext4, unless it is \
         compressed. Not measured with this node.",
        "set commitlog_compression to LZ4Compressor, or use ext4 for {subject}";
    LOG_SHARES_SPINNING_DISK Warn "log_shares_spinning_disk":
        "commit log and data on one spinning disk",
        "The head moves between the log and the data for every sync of the log.",
        "set commitlog_directory to another disk than {subject}";
    LOG_SHARES_DISK Note "log_shares_disk": "commit log and data on one disk",
        "Flushes fill its queue, and a sync of the log waits behind them. A stripe of two to four \
         disks for both is as good.",
        "set commitlog_directory to another disk than {subject}, or make a stripe";
    SPACE_LOW Serious "space_low": "less than 10 % free",
        "A compaction writes the new files before it deletes the old ones. Without room for them \
         it stops, and reads become slower until the disk is full.",
        "add a disk or a node, or delete snapshots (nodetool clearsnapshot) on {subject}";
    SPACE_COMPACTION Warn "space_compaction": "less than 30 % free in a data directory",
        "The largest compaction with SizeTieredCompactionStrategy may need as much as the table.",
        "add a disk or a node, or delete snapshots (nodetool clearsnapshot) on {subject}";
    DATA_LARGE Note "data_large": "more than 2 TB used in a data directory",
        "1 to 2 TB a node is advised: to stream or repair more takes long.",
        "add nodes to the ring, then nodetool cleanup";
    INODES_LOW Warn "inodes_low": "less than 10 % of the inodes free",
        "Every SSTable is about nine files. Without inodes none can be made.",
        "delete what is not needed, or make {subject} anew with more inodes (mkfs.ext4 -N)";
    READ_AHEAD Warn "read_ahead": "read-ahead over 128 KB",
        "Reads are small and random: what is read ahead is thrown away and evicts what is needed. \
         Cassandra warns above 128 KB, and 8 KB is advised. This node asks for none of the files \
         that it reads at random; repair tools and a Cassandra on the same disk do not.",
        "blockdev --setra 16 /dev/{subject}, for good by a rule of udev (sectors of 512 bytes)";
    READ_AHEAD_ADVICE Note "read_ahead_advice":
        "read-ahead over what is advised (8 KB; 64 KB on spinning disks), up to 128 KB",
        "Reads are small and random: what is read ahead evicts what is needed.",
        "blockdev --setra 16 /dev/{subject} (128 on a spinning disk), for good by a rule of udev";
    SCHEDULER Warn "scheduler": "bfq or cfq as I/O scheduler",
        "They order requests for spinning desktops, and cost CPU and latency. The node orders its \
         own requests.",
        "echo none > /sys/block/{subject}/queue/scheduler, for good by a rule of udev";
    SCHEDULER_NVME Note "scheduler_nvme": "an I/O scheduler on an NVMe drive",
        "The drive has queues of its own; a scheduler only costs CPU.",
        "echo none > /sys/block/{subject}/queue/scheduler, for good by a rule of udev";
    ROTATIONAL Warn "rotational": "data on a spinning disk",
        "A read waits some 10 ms for the head. Some virtual disks only say that they spin.",
        "use an SSD; if it is one: echo 0 > /sys/block/{subject}/queue/rotational";
    RAID_DEGRADED Serious "raid_degraded": "an array without all its disks",
        "It is slower, and the next failure loses it.",
        "look into /proc/mdstat and replace the disk: mdadm --manage /dev/{subject} --add DISK";
    RAID_PARITY Warn "raid_parity": "data on RAID 4, 5 or 6",
        "Each small write reads and writes the parity. The ring has replicas already.",
        "make a stripe (RAID 0) of the disks of {subject}";
    RAID_CHUNK Note "raid_chunk": "a chunk outside 64 to 256 KB",
        "64, 128 and 256 KB made no difference in a cloud vendor's tests; 128 KB is advised for \
         new arrays.",
        "make the array anew: mdadm --create /dev/{subject} --chunk=128";
    STRIPE_SAME_DISK Warn "stripe_same_disk": "an array with two parts of one disk",
        "It is no faster than the disk, which serves two places by turns.",
        "make {subject} anew from one part of each disk";
    STRIPE_UNEVEN Note "stripe_uneven": "members of an array that differ in size by over 10 %",
        "The array is as fast as its slowest member, and larger cloud disks have other limits.",
        "make {subject} anew from equal disks";
    STRIPE_SINGLE Note "stripe_single": "a stripe of one disk",
        "Two to four smaller disks give more operations a second than one large disk.",
        "make {subject} anew from two to four disks";
    MEMORY_EXCEEDS Serious "memory_exceeds": "memory_budget larger than the machine's memory",
        "The kernel or the cgroup kills the node when it has used what there is.",
        "lower memory_budget, or raise the limit of {subject}";
    MEMORY_TIGHT Warn "memory_tight": "memory_budget over three quarters of the memory",
        "The page cache has the index pages and repeated reads, and needs the rest.",
        "lower memory_budget, or raise the limit of {subject}";
    SWAP Warn "swap": "swap is on",
        "A node that waits for swapped pages is slow and looks dead to its ring. The ring works \
         better without it.",
        "swapoff -a, and remove swap from /etc/fstab";
    SWAPPINESS Warn "swappiness": "vm.swappiness over 1 with swap on",
        "The kernel swaps the node's memory out in favour of the page cache.",
        "sysctl -w vm.swappiness=1, and in /etc/sysctl.d";
    OVERCOMMIT Warn "overcommit": "vm.overcommit_memory is 2",
        "Memory that was reserved and not used counts; an allocation may fail while there is room.",
        "sysctl -w vm.overcommit_memory=0, and in /etc/sysctl.d";
    HUGE_PAGES Note "huge_pages": "transparent huge pages are always used",
        "The kernel stops programs to put pages together. The node turns them off for itself \
         once it has its first memory; a Cassandra beside it does not.",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    MAP_COUNT Note "map_count": "vm.max_map_count below 1,048,575",
        "Cassandra warns, as it maps its files. This node maps few.",
        "sysctl -w vm.max_map_count=1048575, and in /etc/sysctl.d";
    ZONE_RECLAIM Warn "zone_reclaim": "vm.zone_reclaim_mode is on",
        "The kernel drops the page cache of one NUMA node while another has free memory.",
        "sysctl -w vm.zone_reclaim_mode=0, and in /etc/sysctl.d";
    NUMA_NODES Note "numa_nodes": "several NUMA nodes",
        "Memory of the other NUMA node is slower. Shards are not spread by NUMA node.",
        "run one node for each NUMA node with numactl, or use machines with one";
    FILES_LOW Serious "files_low": "fewer than 10,000 open files allowed",
        "The node cannot open its SSTables or accept clients once it has as many.",
        "set LimitNOFILE=100000 in the service, or nofile 100000 in /etc/security/limits.d";
    FILES_ADVICE Note "files_advice": "fewer than 100,000 open files allowed",
        "Cassandra's packages set 100,000. Many tables with many SSTables need it.",
        "set LimitNOFILE=100000 in the service, or nofile 100000 in /etc/security/limits.d";
    PROCESSES Note "processes": "fewer than 32,768 processes and threads allowed",
        "Cassandra's packages set 32,768. This node has a few threads for each shard.",
        "set LimitNPROC=32768 in the service, or nproc 32768 in /etc/security/limits.d";
    LOCKED_MEMORY Note "locked_memory": "less than 8 MiB of memory may be locked",
        "Cassandra's packages set unlimited. Before Linux 5.12 the rings of io_uring count as \
         locked memory.",
        "set LimitMEMLOCK=infinity in the service, or memlock unlimited in /etc/security/limits.d";
    CLOCK_UNSYNCHRONIZED Serious "clock_unsynchronized": "no time service keeps the clock",
        "The last write wins by its timestamp. A node with a wrong clock loses or hides writes.",
        "install chrony and enable its service; check with chronyc tracking";
    CLOCK_ERROR Warn "clock_error": "the clock may be off by more than 500 ms",
        "The last write wins by its timestamp.",
        "check with chronyc tracking, and use nearer time servers";
    CLOCK_SOURCE Warn "clock_source": "a slow clock source",
        "Each look at the clock is a system call or a read of a slow device.",
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource, if tsc is \
         in available_clocksource beside it";
    SOMAXCONN Warn "somaxconn": "net.core.somaxconn below 1,024",
        "The node asks for 1,024 connections that wait to be accepted. When all clients come back \
         at once, the rest is refused.",
        "sysctl -w net.core.somaxconn=4096, and in /etc/sysctl.d";
    SYN_BACKLOG Note "syn_backlog": "net.ipv4.tcp_max_syn_backlog below 1,024",
        "When all clients come back at once, handshakes are dropped and tried again after 1 s.",
        "sysctl -w net.ipv4.tcp_max_syn_backlog=4096, and in /etc/sysctl.d";
    SOCKET_BUFFERS Note "socket_buffers": "net.core.rmem_max or wmem_max below 4 MiB",
        "A setting for larger socket buffers is cut to it; distant data centers need them.",
        "sysctl -w {subject}=16777216, and in /etc/sysctl.d";
    TCP_BUFFERS Warn "tcp_buffers": "the largest TCP buffer below 4 MiB",
        "A connection carries at most a buffer in each round trip: 40 MB/s with 4 MiB and 100 ms.",
        "sysctl -w {subject}='4096 87380 16777216', and in /etc/sysctl.d";
    KEEPALIVE Note "keepalive": "net.ipv4.tcp_keepalive_time over 300 s",
        "Firewalls and load balancers drop idle connections sooner. Cassandra's packages set 300.",
        "sysctl -w net.ipv4.tcp_keepalive_time=300, and in /etc/sysctl.d";
    CONGESTION Note "congestion": "TCP congestion control other than cubic, bbr, dctcp or reno",
        "Nobody has tried it with this node.",
        "sysctl -w net.ipv4.tcp_congestion_control=cubic, and in /etc/sysctl.d";
    PORT_TAKEN Warn "port_taken": "a port of the node within the range of outgoing connections",
        "Some outgoing connection may have the port when the node starts.",
        "sysctl -w net.ipv4.ip_local_reserved_ports={subject}, and in /etc/sysctl.d";
    CARD_SLOW Warn "card_slow": "a network card with less than 1 Gbit/s",
        "Streaming and repair need hours more. A worn cable or port falls back to 100 Mbit/s.",
        "check cable and port: ethtool {subject}";
    CARD_HALF_DUPLEX Warn "card_half_duplex": "a network card with half duplex",
        "Card and switch did not agree; packets collide and are lost.",
        "ethtool -s {subject} autoneg on";
    CARD_MTU Warn "card_mtu": "a network card with an MTU below 1,280",
        "Small packets cost CPU, and IPv6 does not work below 1,280.",
        "ip link set {subject} mtu 1500";
    CARD_ERRORS Note "card_errors": "a network card that lost over one packet in 10,000",
        "Lost packets are sent again after a while: latency has peaks.",
        "ethtool -S {subject}; larger rings (ethtool -G {subject} rx 4096), or a new cable";
    CARD_ONE_QUEUE Note "card_one_queue": "a network card with one queue on 8 or more CPUs",
        "One CPU takes all packets, and is the first to be busy.",
        "ethtool -L {subject} combined 8, or set rps_cpus below /sys/class/net/{subject}/queues";
    SHARDS_MANY Warn "shards_many": "more shards than CPUs",
        "Each shard is a thread that expects a CPU of its own; two on one wait for each other.",
        "lower shards to at most {subject}";
    CPU_QUOTA Warn "cpu_quota": "the cgroup allows less CPU time than the shards use",
        "When the quota is used the kernel stops all shards until the next period, up to 100 ms.",
        "lower shards, or raise the limit of CPU of the container";
    GOVERNOR Warn "governor": "a CPU frequency governor that saves power",
        "The CPU is slow when a request comes, and becomes fast after it.",
        "cpupower frequency-set -g performance";
    STEAL Warn "steal": "over 5 % of the CPU time stolen by the hypervisor since boot",
        "Shards stop while other machines run on their CPU: latency has peaks.",
        "use a machine with CPUs of its own";
    NODE_DOWN Warn "node_down": "a node of the ring that is down",
        "Its data has one replica less. After max_hint_window it misses writes for good.",
        "start the node {subject}, then nodetool repair on it; nodetool removenode if it is lost";
    SCHEMA_DISAGREEMENT Serious "schema_disagreement": "nodes with different schemas",
        "A node refuses reads and writes of tables and columns that it does not know.",
        "wait a minute and look again (nodetool describecluster); then restart the nodes of the \
         smaller part, one by one";
    RELEASES_DIFFER Note "releases_differ": "nodes of different releases",
        "While an upgrade is under way, change no schema and repair nothing.",
        "finish the upgrade: nodetool version on each node";
    REPLICAS_NOWHERE Serious "replicas_nowhere": "a keyspace stored in a data center without nodes",
        "Levels of that data center and EACH_QUORUM cannot be reached. The name may be misspelt.",
        "ALTER KEYSPACE {subject} with the names that nodetool status shows";
    REPLICAS_EXCEED Serious "replicas_exceed": "a keyspace with more replicas than nodes",
        "Levels such as ALL, and QUORUM too, ask for replicas that are not there.",
        "add nodes, or ALTER KEYSPACE {subject} with fewer replicas";
    REPLICA_SINGLE Warn "replica_single": "a keyspace with one replica in a ring of several nodes",
        "When a node is down, so is its part of the data. With a lost disk it is lost.",
        "ALTER KEYSPACE {subject} with three replicas, then nodetool repair -full {subject}";
    REPLICATION_SIMPLE Warn "replication_simple": "SimpleStrategy in several data centers",
        "Replicas lie wherever the ring has its next node: one data center may have none.",
        "ALTER KEYSPACE {subject} WITH replication = {'class': 'NetworkTopologyStrategy', ...}, \
         then nodetool repair -full {subject}";
    RACKS_FEWER Note "racks_fewer":
        "a data center with fewer racks than replicas, but more than one",
        "A rack has two replicas of some data, and is lost with both.",
        "use as many racks as replicas in {subject}, or one";
    RACKS_UNEVEN Warn "racks_uneven": "a rack with at least twice the nodes of another",
        "Each rack stores as much as another: the nodes of the small one have more to do.",
        "add nodes to the smaller racks of {subject}";
    TOKENS_DIFFER Note "tokens_differ": "nodes of a data center with different numbers of tokens",
        "A node with twice the tokens stores about twice the data.",
        "use one num_tokens in {subject}, but for machines that are meant to do more";
    OWNERSHIP_UNEVEN Warn "ownership_uneven":
        "a node that stores over 30 % more than the mean of its data center",
        "It is the first to be full and busy.",
        "let new nodes of {subject} choose their tokens by \
         allocate_tokens_for_local_replication_factor; nodetool plan says what each would store";
}
