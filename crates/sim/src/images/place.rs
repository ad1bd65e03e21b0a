//! What a change of the disk is of: which operation, which kind of file, what for.

use std::fmt;
use std::path::Path;

use env::DiskModel;
use env::sim::Change;
use storage::snapshot::{BACKUPS, MANIFEST, SCHEMA, SNAPSHOTS};

use crate::engine_node::TRUNCATION;
use crate::plan::directories;

/// What the node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Logging writes.
    Log,
    /// Removing segments of the log.
    Recycling,
    /// Writing memtables.
    Flush,
    /// Linking what was flushed.
    Backup,
    /// Merging SSTables.
    Compaction,
    /// Taking a snapshot.
    Snapshot,
    /// Removing one.
    Clear,
    /// Emptying a table.
    Truncate,
    /// Adopting SSTables.
    Import,
    /// Starting, or draining before the end.
    Start,
}

/// The kind of a change: operation, kind of file, purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What for.
    pub purpose: Purpose,
    /// Of which kind of file.
    pub file: &'static str,
    /// What changes.
    pub change: Change,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { purpose, file, change } = self;
        let (purpose, change) = (format!("{purpose:?}"), format!("{change:?}"));
        write!(f, "{purpose:<11}{file:<20}{change:<10}")
    }
}

/// The components of an SSTable.
pub(super) const COMPONENTS: [&str; 9] = [
    "Data.db",
    "Index.db",
    "Summary.db",
    "Filter.db",
    "Statistics.db",
    "CompressionInfo.db",
    "Digest.crc32",
    "TOC.txt",
    "CRC.db",
];

fn component(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix(".tmp").unwrap_or(name);
    COMPONENTS.into_iter().find(|component| name.ends_with(component))
}

impl Place {
    /// Of a change at a path of a disk, of a node that serves or not yet.
    pub fn of(change: Change, path: &Path, disk: &DiskModel, serving: bool) -> Self {
        let (file, purpose) = match change {
            Change::SyncNames => ("directory", purpose_of_sync(path, disk)),
            Change::MakeDir | Change::RemoveDir => ("directory", purpose_of(change, path, disk)),
            _ => (kind(path), purpose_of(change, path, disk)),
        };
        let purpose = if serving { purpose } else { Purpose::Start };
        Self { purpose, file, change }
    }
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn kind(path: &Path) -> &'static str {
    let name = name(path);
    if name.starts_with(TRUNCATION) {
        return "truncation record";
    }
    if name.contains("_txn_") {
        return "transaction log";
    }
    if name.starts_with("CommitLog-") {
        return "log segment";
    }
    if name.starts_with("HelenusSegments-") {
        return "list of segments";
    }
    if name.starts_with(MANIFEST) {
        return MANIFEST;
    }
    if name.starts_with(SCHEMA) {
        return SCHEMA;
    }
    component(name).unwrap_or("other")
}

fn has(path: &Path, part: &str) -> bool {
    path.components().any(|at| at.as_os_str() == part)
}

/// A sync of a directory is for the last name that came or went there.
fn purpose_of_sync(path: &Path, disk: &DiskModel) -> Purpose {
    match disk.unsynced_names(path).last() {
        Some((name, true)) => purpose_of(Change::Remove, &path.join(name), disk),
        Some((name, false)) => purpose_of(Change::Link, &path.join(name), disk),
        None => purpose_of(Change::SyncNames, path, disk),
    }
}

fn purpose_of(change: Change, path: &Path, disk: &DiskModel) -> Purpose {
    let (_, log) = directories();
    if path.starts_with(&log) {
        let recycles = change == Change::Remove;
        return if recycles { Purpose::Recycling } else { Purpose::Log };
    }
    let goes = matches!(change, Change::Remove | Change::RemoveDir);
    if has(path, SNAPSHOTS) {
        return if goes { Purpose::Clear } else { Purpose::Snapshot };
    }
    if has(path, BACKUPS) {
        return Purpose::Backup;
    }
    let name = name(path);
    if name.starts_with(TRUNCATION) {
        return Purpose::Truncate;
    }
    if let Some(operation) = name.split("_txn_").nth(1) {
        return of_transaction(operation);
    }
    let table = path.parent().unwrap_or(path);
    let Some(stem) = component(name).and_then(|component| {
        let name = name.strip_suffix(".tmp").unwrap_or(name);
        name.strip_suffix(component)
    }) else {
        return Purpose::Flush;
    };
    of_sstable(&table.join(stem), goes, disk)
}

fn of_transaction(operation: &str) -> Purpose {
    match operation.split('_').next() {
        Some("flush") => Purpose::Flush,
        Some("truncate") => Purpose::Truncate,
        Some("write") => Purpose::Import,
        _ => Purpose::Compaction,
    }
}

/// The transaction that adds a table, or removes it, says what for.
fn of_sstable(prefix: &Path, goes: bool, disk: &DiskModel) -> Purpose {
    let directory = prefix.parent().unwrap_or(prefix);
    let mut purpose = None;
    for (name, _) in disk.list(directory).unwrap_or_default() {
        let Some(operation) = name.split("_txn_").nth(1).filter(|name| name.ends_with(".log"))
        else {
            continue;
        };
        let text = disk.read_file(&directory.join(&name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let says = |word: &str| text.contains(&format!("{word}:[{},", prefix.display()));
        if goes && says("remove") {
            return of_transaction(operation);
        }
        if says("add") {
            purpose = Some(of_transaction(operation));
        }
    }
    // what no transaction names gets another level, as an import and a compaction by levels do
    purpose.unwrap_or(Purpose::Compaction)
}
