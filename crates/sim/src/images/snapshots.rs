//! Snapshots and backups in an image: what was acknowledged is there, what says that it is whole
//! is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use env::DiskModel;
use storage::snapshot::{BACKUPS, MANIFEST, SNAPSHOTS};

use crate::engine_node::SnapshotsKnown;

/// The files of a directory with their bytes.
fn files(disk: &DiskModel, directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = disk.list(directory).unwrap_or_default();
    let read = |name: String| Some((name.clone(), disk.read_file(&directory.join(name))?));
    entries.into_iter().filter_map(|(name, _)| read(name)).collect()
}

/// The directories below one that are called so.
fn called(disk: &DiskModel, top: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![top.to_path_buf()];
    while let Some(at) = todo.pop() {
        for (entry, is_dir) in disk.list(&at).unwrap_or_default() {
            let path = at.join(&entry);
            if is_dir && entry == name {
                found.push(path);
            } else if is_dir {
                todo.push(path);
            }
        }
    }
    found
}

/// What a power cut left of the snapshots of a disk.
pub fn check_snapshots(
    live: &DiskModel,
    left: &DiskModel,
    known: &SnapshotsKnown,
) -> Result<(), String> {
    for place in &known.taken {
        if files(left, place) != files(live, place) {
            return Err(format!("the snapshot {place:?} was acknowledged and is not whole"));
        }
    }
    for all in called(left, Path::new("/var/data"), SNAPSHOTS) {
        for (name, _) in left.list(&all).unwrap_or_default() {
            let place = all.join(name);
            let there = files(left, &place);
            let Some(manifest) = there.get(MANIFEST).filter(|_| !known.going.contains(&place))
            else {
                continue;
            };
            let manifest = String::from_utf8_lossy(manifest).into_owned();
            let named = manifest.split('"').filter(|word| word.ends_with("-Data.db"));
            for data in named {
                let stem = data.trim_end_matches("Data.db");
                let of = |files: &BTreeMap<String, Vec<u8>>| -> Vec<(String, Vec<u8>)> {
                    let of = files.iter().filter(|(name, _)| name.starts_with(stem));
                    of.map(|(name, bytes)| (name.clone(), bytes.clone())).collect()
                };
                if of(&there).is_empty() || of(&there) != of(&files(live, &place)) {
                    return Err(format!("{place:?} has a manifest, and {data} is not whole"));
                }
            }
        }
    }
    Ok(())
}

/// After a start: an SSTable of which there is a backup is in it as a whole, and no file is of an
/// SSTable that is none. What a transaction names is under way.
pub fn check_tables(disk: &DiskModel) -> Result<(), String> {
    let mut tables = called(disk, Path::new("/var/data"), BACKUPS);
    tables.iter_mut().for_each(|backups| backups.set_file_name(""));
    for table in tables {
        let (own, copies) = (files(disk, &table), files(disk, &table.join(BACKUPS)));
        let logs = own.iter().filter(|(name, _)| name.contains("_txn_"));
        let logs: String = logs.map(|(_, text)| String::from_utf8_lossy(text)).collect();
        let is_under_way = |stem: &str| logs.contains(&format!("{},", table.join(stem).display()));
        for name in own.keys().filter(|name| name.ends_with("-TOC.txt")) {
            let stem = name.trim_end_matches("TOC.txt");
            if is_under_way(stem) {
                continue;
            }
            let of = |files: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
                files.keys().filter(|name| name.starts_with(stem)).cloned().collect()
            };
            let copied = of(&copies);
            if !copied.is_empty() && copied != of(&own) {
                return Err(format!("the backup of {stem} in {table:?} is not whole: {copied:?}"));
            }
        }
        let has_contents = |name: &str| {
            let stem = name.rfind('-').and_then(|at| name.get(..=at)).unwrap_or_default();
            is_under_way(stem) || own.contains_key(&format!("{stem}TOC.txt"))
        };
        let stray = own.keys().find(|name| name.starts_with("nb-") && !has_contents(name));
        if let Some(stray) = stray {
            return Err(format!("{stray} is left over in {table:?}"));
        }
    }
    Ok(())
}
