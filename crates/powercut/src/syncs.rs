//! The syncs of a recorded run, by what they are for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use env::{Entry, Moment, RecordedOp, Recording};

use crate::node::Place;

/// The components of an SSTable.
const COMPONENTS: [&str; 8] = [
    "Data.db",
    "Index.db",
    "Summary.db",
    "Filter.db",
    "Statistics.db",
    "CompressionInfo.db",
    "Digest.crc32",
    "TOC.txt",
];

/// Why a directory was last changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    Table,
    Transaction,
    Removal,
    Other,
}

/// A sync in the log.
#[derive(Clone, Copy, Debug)]
pub struct Sync {
    /// Its number.
    pub id: u64,
    /// The places of its begin and end; one that did not end has its begin.
    pub begun: usize,
    /// See `begun`.
    pub ended: usize,
}

/// Syncs by what they are for.
pub type Classes = BTreeMap<String, Vec<Sync>>;

#[derive(Default)]
struct Walk {
    /// Path of each handle, whether it was opened to be created, and whether it was synced.
    handles: BTreeMap<u64, (PathBuf, bool, bool)>,
    changed: BTreeMap<PathBuf, Change>,
}

/// Sorts the syncs of a recording. `records` are the spans of log in which something was asked for
/// that is durable when it is acknowledged, whatever the mode, each with its name. The process that
/// syncs from `started` on knows nothing of what was done before.
pub fn classes(
    place: &Place,
    recording: &Recording,
    started: usize,
    records: &[(&str, Moment, Moment)],
) -> Classes {
    let mut walk = Walk::default();
    let mut classes = Classes::new();
    let mut open: BTreeMap<u64, (String, Sync)> = BTreeMap::new();
    for (at, entry) in recording.entries().iter().enumerate() {
        if at == started {
            walk.changed.clear();
        }
        match entry {
            Entry::Begin { id, op } => {
                if let Some(class) = walk.class(place, op) {
                    open.insert(*id, (class, Sync { id: *id, begun: at, ended: at }));
                }
            }
            Entry::End { id, .. } => {
                let Some((class, mut sync)) = open.remove(id) else { continue };
                sync.ended = at;
                if class == RECORDS {
                    for (name, from, to) in records {
                        if from.place <= sync.begun && sync.ended <= to.place {
                            classes
                                .entry(format!("fsync of the log: {name}"))
                                .or_default()
                                .push(sync);
                        }
                    }
                }
                classes.entry(class).or_default().push(sync);
            }
        }
    }
    classes
}

/// The class of the commit log's own syncs.
pub const RECORDS: &str = "fsync of the log: records";

impl Walk {
    fn class(&mut self, place: &Place, op: &RecordedOp) -> Option<String> {
        match op {
            RecordedOp::Open { handle, path, create, .. } => {
                if *create {
                    self.note(path);
                }
                self.handles.insert(*handle, (path.clone(), *create, false));
                None
            }
            RecordedOp::Rename { to, .. } => {
                self.note(to);
                None
            }
            RecordedOp::HardLink { to, .. } | RecordedOp::CreateDirAll { path: to } => {
                self.change(to, Change::Other);
                None
            }
            RecordedOp::RemoveFile { path } | RecordedOp::RemoveDirAll { path } => {
                self.change(path, Change::Removal);
                None
            }
            RecordedOp::Sync { handle } => {
                let (path, created, synced) = self.handles.get_mut(handle)?;
                let first = !std::mem::replace(synced, true);
                Some(file_class(path, *created, first))
            }
            RecordedOp::SyncDir { path } => {
                let why = self.changed.remove(path);
                Some(directory_class(place, path, why))
            }
            _ => None,
        }
    }

    fn note(&mut self, path: &Path) {
        let name = name(path);
        let change = if name.contains("_txn_") {
            Change::Transaction
        } else if name.starts_with("nb-") {
            Change::Table
        } else {
            Change::Other
        };
        self.change(path, change);
    }

    fn change(&mut self, path: &Path, change: Change) {
        if let Some(parent) = path.parent() {
            self.changed.insert(parent.to_path_buf(), change);
        }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn file_class(path: &Path, created: bool, first: bool) -> String {
    let name = name(path);
    if name.starts_with("CommitLog-") {
        return match (created, first) {
            (false, _) => "fsync of the log: replayed segment".into(),
            (true, true) => "fsync of the log: new segment".into(),
            (true, false) => RECORDS.into(),
        };
    }
    if name.starts_with("HelenusSegments-") {
        return "fsync of the list of segments".into();
    }
    if name.contains("_txn_") {
        return "fsync of a transaction's log".into();
    }
    if name.starts_with("clock_reserve") {
        return "fsync of the clock's reserve".into();
    }
    match COMPONENTS.iter().find(|component| name.ends_with(**component)) {
        Some(component) => format!("fsync of an SSTable's {component}"),
        None => format!("fsync of {name}"),
    }
}

fn directory_class(place: &Place, path: &Path, why: Option<Change>) -> String {
    let node = place.data_dir();
    let data = node.join("data");
    let depth = path.strip_prefix(&data).map(|rest| rest.components().count());
    let what = match depth {
        Ok(0) => "data: keyspaces",
        Ok(1) => "keyspace: tables",
        Ok(2) => match why {
            Some(Change::Table) => "table: SSTable written",
            Some(Change::Transaction) => "table: transaction's log",
            Some(Change::Removal) => "table: SSTable removed",
            Some(Change::Other) => "table: other",
            None => "table: nothing new",
        },
        Ok(3) => "snapshots",
        Ok(_) => "snapshot",
        Err(_) if path == place.log_dir() => "log",
        Err(_) if place.log_dir().starts_with(path) && path != place.root => "above the log",
        Err(_) if path == node => "node",
        Err(_) => "above everything",
    };
    format!("dirsync of {what}")
}

/// Where it may show that a sync is left out: from its end to the end of the next one of its file
/// or directory that is not.
pub struct Window {
    /// Its first place and its last.
    pub span: (usize, usize),
    /// Places in it where something was done to the file or in the directory.
    pub places: Vec<usize>,
}

/// The windows of syncs that are left out.
pub fn windows(recording: &Recording, syncs: &[Sync]) -> Vec<Window> {
    let left_out = numbers(syncs);
    let mut handles: BTreeMap<u64, &Path> = BTreeMap::new();
    let mut touched: BTreeMap<&Path, Vec<(usize, bool)>> = BTreeMap::new();
    let mut of: BTreeMap<u64, &Path> = BTreeMap::new();
    for (at, entry) in recording.entries().iter().enumerate() {
        let (id, paths, kept_sync) = match entry {
            Entry::End { id, .. } => match of.get(id) {
                Some(path) => (*id, vec![*path], false),
                None => continue,
            },
            Entry::Begin { id, op } => {
                if let RecordedOp::Open { handle, path, .. } = op {
                    handles.insert(*handle, path);
                }
                let (paths, is_sync) = targets(op, &handles);
                (*id, paths, is_sync && !left_out.contains(id))
            }
        };
        for path in paths {
            of.insert(id, path);
            touched.entry(path).or_default().push((at, kept_sync));
        }
    }
    let end = recording.entries().len();
    let window = |sync: &Sync| {
        let mut window = Window { span: (sync.ended + 1, end), places: vec![sync.ended + 1] };
        let all = of.get(&sync.id).and_then(|path| touched.get(path)).into_iter().flatten();
        let mut has_kept = false;
        for (at, kept) in all.skip_while(|(at, _)| *at <= sync.ended) {
            window.places.push(at + 1);
            if has_kept {
                // The end of the one that began; of another, at worst.
                window.span.1 = at + 1;
                break;
            }
            has_kept = *kept;
        }
        window
    };
    syncs.iter().map(window).collect()
}

/// Where transactions that remove SSTables were committed and the sync of that has not begun: after
/// the rename of a truncation's log, or the second one of a compaction's.
pub fn commits(recording: &Recording) -> Vec<usize> {
    let mut written: BTreeMap<&Path, usize> = BTreeMap::new();
    let mut under_way = BTreeSet::new();
    let mut places = Vec::new();
    for (at, entry) in recording.entries().iter().enumerate() {
        match entry {
            Entry::Begin { id, op: RecordedOp::Rename { to, .. } } => {
                let times = written.entry(to).or_default();
                *times += 1;
                let name = name(to);
                if name.contains("_txn_truncate_")
                    || (name.contains("_txn_compaction_") && *times >= 2)
                {
                    under_way.insert(*id);
                }
            }
            Entry::End { id, .. } if under_way.remove(id) => places.push(at + 1),
            _ => {}
        }
    }
    places
}

/// The file whose data or the directories whose names an operation changes or syncs.
fn targets<'a>(op: &'a RecordedOp, handles: &BTreeMap<u64, &'a Path>) -> (Vec<&'a Path>, bool) {
    let parent = |path: &'a Path| path.parent();
    match op {
        RecordedOp::Write { handle, .. }
        | RecordedOp::SetLen { handle, .. }
        | RecordedOp::Allocate { handle, .. } => {
            (handles.get(handle).copied().into_iter().collect(), false)
        }
        RecordedOp::Sync { handle } => (handles.get(handle).copied().into_iter().collect(), true),
        RecordedOp::SyncDir { path } => (vec![path], true),
        RecordedOp::Open { path, create: true, .. }
        | RecordedOp::CreateDirAll { path }
        | RecordedOp::RemoveFile { path }
        | RecordedOp::RemoveDirAll { path } => (parent(path).into_iter().collect(), false),
        RecordedOp::Rename { from, to } | RecordedOp::HardLink { from, to } => {
            // A file that gets its name shows what it lacks.
            (vec![Some(from.as_path()), parent(to)].into_iter().flatten().collect(), false)
        }
        RecordedOp::Open { .. } => (Vec::new(), false),
    }
}

/// The numbers of these syncs.
pub fn numbers(syncs: &[Sync]) -> BTreeSet<u64> {
    syncs.iter().map(|sync| sync.id).collect()
}
