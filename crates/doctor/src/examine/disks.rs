//! Directories, file systems, disks and arrays.

use std::collections::BTreeSet;

use crate::checks as c;
use crate::facts::{Array, Device, Directory, Facts, Mount, Role};
use crate::report::Report;
use crate::source::Space;

/// Cassandra warns above it (`StartupChecks.checkReadAheadKbSetting`).
const READ_AHEAD_WARN_KB: u64 = 128;
/// What is advised.
const READ_AHEAD_KB: u64 = 8;
/// The same for disks that spin.
const READ_AHEAD_SPINNING_KB: u64 = 64;
const CHUNK_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=256 << 10;
const FREE_LOW_PERCENT: u64 = 10;
const FREE_COMPACTION_PERCENT: u64 = 30;
const INODES_LOW_PERCENT: u64 = 10;
const USED_ADVISED_BYTES: u64 = 2_000_000_000_000;
const MEMBERS_DIFFER_PERCENT: u64 = 10;
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];
const OVERLAYS: [&str; 3] = ["overlay", "aufs", "fuse.fuse-overlayfs"];
const COPY_ON_WRITE: [&str; 2] = ["btrfs", "zfs"];
const TRIED: [&str; 2] = ["ext4", "xfs"];
const ON_NETWORKS: [&str; 10] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "ceph",
    "fuse.sshfs",
    "fuse.glusterfs",
    "fuse.ceph",
    "lustre",
];

pub fn directories(facts: &Facts, report: &mut Report) {
    for directory in &facts.directories {
        let path = directory.path.as_str();
        report.look(&c::DIRECTORY_WRITABLE, path, directory.is_writable, |is_writable| {
            (!is_writable).then(|| "the user who asks may not write there".to_owned())
        });
        if let Some(mount) = &directory.mount {
            file_system(directory, mount, report);
            options(mount, report);
        }
        if let (Some(space), Some(mount)) = (directory.space, &directory.mount) {
            room(directory.role, &mount.point, space, report);
        }
    }
    commit_log(facts, report);
}

fn file_system(directory: &Directory, mount: &Mount, report: &mut Report) {
    let kind = mount.kind.as_str();
    let found = || format!("{kind}, mounted on {}", mount.point);
    let kinds: [(_, &[&str]); 4] = [
        (&c::FS_MEMORY, &IN_MEMORY),
        (&c::FS_OVERLAY, &OVERLAYS),
        (&c::FS_NETWORK, &ON_NETWORKS),
        (&c::FS_COPY_ON_WRITE, &COPY_ON_WRITE),
    ];
    for (check, of) in kinds {
        report.look(check, &directory.path, Some(kind), |kind| of.contains(&kind).then(found));
    }
    let is_known = TRIED.contains(&kind) || kinds.iter().any(|(_, of)| of.contains(&kind));
    report.look(&c::FS_UNTRIED, &directory.path, Some(()), |()| (!is_known).then(found));
}

fn options(mount: &Mount, report: &mut Report) {
    let has = |option: &str| mount.options.iter().any(|other| other == option);
    let all = mount.options.join(",");
    let point = mount.point.as_str();
    let mut look = |check, is_wrong: bool| {
        report.look(check, point, Some(()), |()| is_wrong.then(|| format!("options {all}")));
    };
    look(&c::FS_READ_ONLY, has("ro"));
    look(&c::MOUNT_NOBARRIER, has("nobarrier") || has("barrier=0"));
    look(&c::MOUNT_SYNC, has("sync"));
    look(&c::MOUNT_DISCARD, has("discard"));
    // in memory there are no times to write
    let is_on_disk = !IN_MEMORY.contains(&mount.kind.as_str());
    look(&c::MOUNT_ATIME, is_on_disk && !has("noatime") && !has("relatime"));
}

fn room(role: Role, point: &str, space: Space, report: &mut Report) {
    let Space { bytes, free, inodes, inodes_free } = space;
    let percent = |part: u64, of: u64| part.saturating_mul(100).checked_div(of);
    let free_percent = percent(free, bytes);
    let found = |percent: u64| format!("{percent} % of {} GB free", bytes / 1_000_000_000);
    report.look(&c::SPACE_LOW, point, free_percent, |percent| {
        (percent < FREE_LOW_PERCENT).then(|| found(percent))
    });
    report.look(&c::INODES_LOW, point, percent(inodes_free, inodes), |percent| {
        (percent < INODES_LOW_PERCENT).then(|| format!("{percent} % of {inodes} inodes free"))
    });
    if role != Role::Data {
        return;
    }
    report.look(&c::SPACE_COMPACTION, point, free_percent, |percent| {
        let is_little = (FREE_LOW_PERCENT..FREE_COMPACTION_PERCENT).contains(&percent);
        is_little.then(|| found(percent))
    });
    report.look(&c::DATA_LARGE, point, Some(bytes.saturating_sub(free)), |used| {
        (used > USED_ADVISED_BYTES).then(|| format!("{} GB used", used / 1_000_000_000))
    });
}

/// The disks that a device ends in.
fn disks_below<'a>(facts: &'a Facts, name: &'a str) -> BTreeSet<&'a str> {
    let (mut disks, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![name]);
    while let Some(name) = open.pop() {
        let Some(device) = facts.devices.get(name).filter(|_| seen.insert(name)) else { continue };
        if device.members.is_empty() {
            disks.insert(name);
        }
        open.extend(device.members.iter().map(|(disk, _)| disk.as_str()));
    }
    disks
}

fn commit_log(facts: &Facts, report: &mut Report) {
    let mut logs = facts.directories.iter().filter(|d| d.role == Role::CommitLog);
    let Some(log) = logs.next() else { return };
    let is_plain = !facts.node.is_log_compressed;
    report.look(&c::LOG_XFS, &log.path, log.mount.as_ref(), |mount| {
        (is_plain && mount.kind == "xfs").then(|| "xfs, commitlog_compression not set".to_owned())
    });
    let Some(device) = &log.device else { return };
    let below = disks_below(facts, device);
    for data in facts.directories.iter().filter(|d| d.role == Role::Data) {
        let Some(other) = &data.device else { continue };
        let shared: Vec<&str> = disks_below(facts, other).intersection(&below).copied().collect();
        let spins = |name: &&&str| {
            facts.devices.get(**name).is_some_and(|device| device.is_rotational == Some(true))
        };
        let found = || format!("{} and {} are both on it", log.path, data.path);
        let spinning = shared.iter().find(spins).copied();
        report.look(&c::LOG_SHARES_SPINNING_DISK, spinning.unwrap_or(other), Some(()), |()| {
            spinning.map(|_| found())
        });
        let is_one = spinning.is_none() && shared.len() == 1 && below.len() == 1;
        report.look(&c::LOG_SHARES_DISK, other, Some(()), |()| is_one.then(found));
    }
}

pub fn devices(facts: &Facts, report: &mut Report) {
    let is_data = |device: &String| {
        let on = |d: &&Directory| d.device.as_ref() == Some(device) && d.role == Role::Data;
        facts.directories.iter().find(on).is_some()
    };
    let below_data: BTreeSet<&str> = facts
        .devices
        .keys()
        .filter(|name| is_data(name))
        .flat_map(|name| disks_below(facts, name))
        .collect();
    for (name, device) in &facts.devices {
        read_ahead(name, device, report);
        let scheduler = device.scheduler.as_deref();
        report.look(&c::SCHEDULER, name, scheduler, |in_use| {
            ["bfq", "cfq"].contains(&in_use).then(|| format!("{in_use} is in use"))
        });
        if name.starts_with("nvme") {
            report.look(&c::SCHEDULER_NVME, name, scheduler, |in_use| {
                let is_plain = ["none", "bfq", "cfq"].contains(&in_use);
                (!is_plain).then(|| format!("{in_use} is in use"))
            });
        }
        if below_data.contains(name.as_str()) {
            report.look(&c::ROTATIONAL, name, device.is_rotational, |spins| {
                spins.then(|| "the kernel says that it spins".to_owned())
            });
        }
        if let Some(array) = &device.array {
            raid(name, device, array, report);
        }
        if device.members.len() > 1 {
            members(name, device, report);
        }
    }
}

fn read_ahead(name: &str, device: &Device, report: &mut Report) {
    let advised = match device.is_rotational {
        Some(true) => READ_AHEAD_SPINNING_KB,
        _ => READ_AHEAD_KB,
    };
    let found = |kb: u64| format!("{kb} KB");
    report.look(&c::READ_AHEAD, name, device.read_ahead_kb, |kb| {
        (kb > READ_AHEAD_WARN_KB).then(|| found(kb))
    });
    report.look(&c::READ_AHEAD_ADVICE, name, device.read_ahead_kb, |kb| {
        (kb > advised && kb <= READ_AHEAD_WARN_KB).then(|| found(kb))
    });
}

fn raid(name: &str, device: &Device, array: &Array, report: &mut Report) {
    let Array { level, chunk, degraded } = array;
    report.look(&c::RAID_DEGRADED, name, Some(*degraded), |missing| {
        (missing > 0).then(|| format!("{missing} disks are missing of its {level}"))
    });
    report.look(&c::RAID_PARITY, name, Some(level.as_str()), |level| {
        ["raid4", "raid5", "raid6"].contains(&level).then(|| level.to_owned())
    });
    report.look(&c::RAID_CHUNK, name, (*chunk > 0).then_some(*chunk), |chunk| {
        (!CHUNK_BYTES.contains(&chunk)).then(|| format!("{} KB", chunk >> 10))
    });
    report.look(&c::STRIPE_SINGLE, name, Some(level.as_str()), |level| {
        (level == "raid0" && device.members.len() == 1).then(|| "one member".to_owned())
    });
}

fn members(name: &str, device: &Device, report: &mut Report) {
    let disks: BTreeSet<&String> = device.members.iter().map(|(disk, _)| disk).collect();
    report.look(&c::STRIPE_SAME_DISK, name, Some(()), |()| {
        let is_shared = disks.len() < device.members.len();
        is_shared.then(|| format!("{} parts of {} disks", device.members.len(), disks.len()))
    });
    let sizes: Option<Vec<u64>> = device.members.iter().map(|(_, bytes)| *bytes).collect();
    report.look(&c::STRIPE_UNEVEN, name, sizes, |sizes| {
        let (least, most) = (sizes.iter().min()?, sizes.iter().max()?);
        let is_uneven = (most - least).saturating_mul(100) / most.max(&1) > MEMBERS_DIFFER_PERCENT;
        is_uneven.then(|| format!("{} to {} GB", least / 1_000_000_000, most / 1_000_000_000))
    });
}
