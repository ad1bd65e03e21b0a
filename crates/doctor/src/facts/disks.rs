//! From directories to file systems, and from those to the disks below.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Array, Device, Directory, Mount, NodeFacts, Role, chosen, number, word};
use crate::source::Source;

const SECTOR_BYTES: u64 = 512;
/// Devices that are looked at: more than any machine has, should one stand on itself.
const DEVICES_MAX: usize = 1_024;

pub fn directories(source: &dyn Source, node: &NodeFacts) -> Vec<Directory> {
    let mounts = mounts(&source.read("/proc/self/mountinfo").unwrap_or_default());
    let data = node.data.iter().map(|path| (Role::Data, path));
    let others = [(Role::CommitLog, &node.commit_log), (Role::Hints, &node.hints)];
    let all = data.chain(others).filter(|(_, path)| !path.is_empty());
    all.map(|(role, path)| {
        let real = existing(source, path);
        let mount = mount_of(&mounts, &real);
        Directory {
            role,
            path: path.clone(),
            space: source.space(&real),
            is_writable: source.is_writable(&real),
            device: mount.as_ref().and_then(|mount| device_of(source, mount)),
            mount,
        }
    })
    .collect()
}

/// Where a path leads; of what is not there yet, where the folder leads that it will be made in.
fn existing(source: &dyn Source, path: &str) -> String {
    let mut above = Path::new(path).ancestors().filter_map(Path::to_str);
    above.find_map(|path| source.resolve(path)).unwrap_or_else(|| path.to_owned())
}

/// The lines of `mountinfo`.
fn mounts(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let options = [left.get(5)?, right.get(2).unwrap_or(&"")];
        Some(Mount {
            point: plain(left.get(4)?),
            kind: (*right.first()?).to_owned(),
            options: options.iter().flat_map(|all| all.split(',').map(str::to_owned)).collect(),
            device: (*left.get(2)?).to_owned(),
            source: plain(right.get(1)?),
        })
    };
    text.lines().filter_map(mount).collect()
}

/// The kernel writes a blank as `\040`.
fn plain(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

/// The file system of a path: the longest mount above it, of several on one point the last.
fn mount_of(mounts: &[Mount], path: &str) -> Option<Mount> {
    let holds = |point: &str| {
        point == "/" || path.strip_prefix(point).is_some_and(|r| r.is_empty() || r.starts_with('/'))
    };
    mounts.iter().filter(|mount| holds(&mount.point)).max_by_key(|mount| mount.point.len()).cloned()
}

/// The disk or array that is mounted: of a partition its disk.
fn device_of(source: &dyn Source, mount: &Mount) -> Option<String> {
    if !mount.device.starts_with("0:") {
        let by_number = source.resolve(&format!("/sys/dev/block/{}", mount.device));
        if let Some(name) = by_number.and_then(|path| name_of(&path)) {
            return Some(disk_of(source, &name));
        }
    }
    // btrfs has numbers of its own
    mount.source.starts_with("/dev/").then_some(())?;
    let name = name_of(&source.resolve(&mount.source)?)?;
    Some(disk_of(source, &name))
}

fn name_of(path: &str) -> Option<String> {
    // a number that led nowhere
    let name = path.rsplit('/').next().filter(|name| !name.contains(':'))?;
    Some(name.to_owned())
}

/// The disk of a partition; what is no partition is itself.
fn disk_of(source: &dyn Source, name: &str) -> String {
    let place = format!("/sys/class/block/{name}");
    if source.read(&format!("{place}/partition")).is_none() {
        return name.to_owned();
    }
    let path = source.resolve(&place).unwrap_or_default();
    let parent = path.rsplit('/').nth(1).filter(|parent| *parent != "block");
    parent.unwrap_or(name).to_owned()
}

/// Reads a device and all that it was made of.
pub fn read_below(source: &dyn Source, name: &str, devices: &mut BTreeMap<String, Device>) {
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        if devices.contains_key(&name) || devices.len() >= DEVICES_MAX {
            continue;
        }
        let device = read(source, &name);
        open.extend(device.members.iter().map(|(disk, _)| disk.clone()));
        devices.insert(name, device);
    }
}

fn read(source: &dyn Source, name: &str) -> Device {
    let at = |rest: &str| format!("/sys/block/{name}/{rest}");
    let members = source.list(&at("slaves")).into_iter().map(|member| {
        let bytes = number(source, &format!("/sys/class/block/{member}/size"));
        (disk_of(source, &member), bytes.map(|sectors| sectors.saturating_mul(SECTOR_BYTES)))
    });
    Device {
        read_ahead_kb: number(source, &at("queue/read_ahead_kb")),
        scheduler: chosen(source, &at("queue/scheduler")),
        is_rotational: number(source, &at("queue/rotational")).map(|spins| spins != 0),
        bytes: number(source, &at("size")).map(|sectors| sectors.saturating_mul(SECTOR_BYTES)),
        members: members.collect(),
        array: word(source, &at("md/level")).map(|level| Array {
            level,
            chunk: number(source, &at("md/chunk_size")).unwrap_or(0),
            degraded: number(source, &at("md/degraded")).unwrap_or(0),
        }),
    }
}
