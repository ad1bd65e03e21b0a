//! Writes down what is done to the disk, so that tests can build what a power cut may leave.
//!
//! A [`Recorder`] given to [`real::run`](crate::real::run) logs, for the directory trees it was made
//! for, the begin and the end of each operation that changes them, in the order in which they happened.
//! [`Recording::crash_image`] cuts that log at any place and draws one of the states that the disk may then
//! be in, by the same rules as the simulator's disks. For tests: it keeps every byte written.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk_model::{DiskModel, Ino, OpId};
use crate::rng::Rng;

/// An operation that changes files or directories. Files are named by a handle, given when they were
/// opened.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the operations of File and Env")]
pub enum RecordedOp {
    /// A file was opened, and created or cut if the options said so.
    Open { handle: u64, path: PathBuf, create: bool, truncate: bool },
    /// Bytes written.
    Write { handle: u64, offset: u64, bytes: Arc<[u8]> },
    /// Size set.
    SetLen { handle: u64, len: u64 },
    /// Space reserved.
    Allocate { handle: u64, len: u64 },
    /// Data synced.
    Sync { handle: u64 },
    /// Directories made.
    CreateDirAll { path: PathBuf },
    /// A file or directory renamed.
    Rename { from: PathBuf, to: PathBuf },
    /// A file removed.
    RemoveFile { path: PathBuf },
    /// A tree removed.
    RemoveDirAll { path: PathBuf },
    /// A second name given.
    HardLink { from: PathBuf, to: PathBuf },
    /// The names of a directory synced.
    SyncDir { path: PathBuf },
}

/// One line of the log; its place in the log is its time.
#[derive(Clone, Debug)]
pub enum Entry {
    /// An operation began.
    Begin {
        /// Its number.
        id: u64,
        /// What it does.
        op: RecordedOp,
    },
    /// An operation ended. One whose future was dropped never does.
    End {
        /// Its number.
        id: u64,
        /// Whether it succeeded.
        ok: bool,
    },
}

/// What a tree held when the recorder was made: directories have no bytes.
type Base = Vec<(PathBuf, Option<Vec<u8>>)>;

#[derive(Debug)]
struct Shared {
    roots: Vec<PathBuf>,
    base: Base,
    log: Mutex<Vec<Entry>>,
    next: AtomicU64,
}

/// Logs what is done below some directories; clones append to the same log.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Shared>);

/// An operation that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun(u64);

impl Recorder {
    /// A recorder for the trees below `roots`, with what is in them now as the start. Paths are
    /// compared as they are given: use the same spelling as the code under test.
    pub fn new(roots: &[&Path]) -> io::Result<Self> {
        let mut base = Base::new();
        for root in roots {
            base.push((root.to_path_buf(), None));
            if root.exists() {
                load(root, &mut base)?;
            }
        }
        let roots = roots.iter().map(|r| r.to_path_buf()).collect();
        let (log, next) = (Mutex::default(), AtomicU64::new(0));
        Ok(Self(Arc::new(Shared { roots, base, log, next })))
    }

    /// True if changes at `path` are logged.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.0.roots.iter().any(|root| path.starts_with(root))
    }

    fn log(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a file that is being opened.
    pub(crate) fn handle(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, op: RecordedOp) -> Begun {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.log().push(Entry::Begin { id, op });
        Begun(id)
    }

    pub(crate) fn end(&self, begun: Begun, ok: bool) {
        self.log().push(Entry::End { id: begun.0, ok });
    }

    /// The log so far.
    pub fn recording(&self) -> Recording {
        Recording { base: self.0.base.clone(), log: self.log().clone() }
    }
}

fn load(dir: &Path, base: &mut Base) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            base.push((path.clone(), None));
            load(&path, base)?;
        } else {
            let bytes = std::fs::read(&path)?;
            base.push((path, Some(bytes)));
        }
    }
    Ok(())
}

/// A log of disk operations, and the state that it starts from.
#[derive(Clone, Debug)]
pub struct Recording {
    base: Base,
    log: Vec<Entry>,
}

/// What the end of an operation has to report to the model.
enum Open {
    Data(Ino, OpId),
    Names(Vec<OpId>),
    Sync(Ino, u64),
    SyncDir(Ino, u64),
}

impl Recording {
    /// The log.
    pub fn entries(&self) -> &[Entry] {
        &self.log
    }

    /// Places where the log can be cut: after 0, 1, ... entries.
    pub fn cuts(&self) -> std::ops::RangeInclusive<usize> {
        0..=self.log.len()
    }

    /// The disk when the first `cut` entries have happened and the process dies: everything written
    /// is there.
    pub fn kill_image(&self, cut: usize) -> io::Result<DiskModel> {
        self.replay(cut)
    }

    /// One of the states that a power cut after the first `cut` entries may leave, drawn by `rng`.
    /// [`DiskModel::write_tree_to`] puts it into a directory.
    pub fn crash_image(&self, cut: usize, rng: &Rng) -> io::Result<DiskModel> {
        let mut model = self.replay(cut)?;
        model.power_cut(rng);
        Ok(model)
    }

    fn replay(&self, cut: usize) -> io::Result<DiskModel> {
        let mut model = DiskModel::new();
        for (path, bytes) in &self.base {
            match bytes {
                None => drop(model.create_dir_all(path)?),
                Some(bytes) => {
                    let (ino, _) = model.create(path)?;
                    model.write(ino, 0, bytes)?;
                }
            }
        }
        model.settle();
        let mut handles = BTreeMap::new();
        let mut open = BTreeMap::new();
        for entry in self.log.iter().take(cut) {
            match entry {
                Entry::Begin { id, op } => {
                    // What failed for real fails here, and has no effect in either.
                    if let Ok(begun) = begin(&mut model, &mut handles, op) {
                        open.insert(*id, begun);
                    }
                }
                Entry::End { id, ok } => {
                    if let Some(begun) = open.remove(id) {
                        end(&mut model, begun, *ok);
                    }
                }
            }
        }
        Ok(model)
    }
}

fn begin(
    model: &mut DiskModel,
    handles: &mut BTreeMap<u64, Ino>,
    op: &RecordedOp,
) -> io::Result<Open> {
    let file = |handles: &BTreeMap<u64, Ino>, handle: &u64| {
        handles.get(handle).copied().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let data = |ino, op: io::Result<OpId>| Ok(Open::Data(ino, op?));
    match op {
        RecordedOp::Open { handle, path, create, truncate } => {
            let (ino, mut names) = match model.lookup(path) {
                Ok(ino) => (ino, Vec::new()),
                Err(_) if *create => {
                    let (ino, op) = model.create(path)?;
                    (ino, vec![op])
                }
                Err(e) => return Err(e),
            };
            model.opened(ino);
            handles.insert(*handle, ino);
            if *truncate && model.len(ino).is_some_and(|len| len > 0) {
                return data(ino, model.set_len(ino, 0));
            }
            names.sort();
            Ok(Open::Names(names))
        }
        RecordedOp::Write { handle, offset, bytes } => {
            let ino = file(handles, handle)?;
            data(ino, model.write(ino, *offset, bytes))
        }
        RecordedOp::SetLen { handle, len } => {
            let ino = file(handles, handle)?;
            data(ino, model.set_len(ino, *len))
        }
        RecordedOp::Allocate { handle, len } => {
            let ino = file(handles, handle)?;
            data(ino, model.allocate(ino, *len))
        }
        RecordedOp::Sync { handle } => Ok(Open::Sync(file(handles, handle)?, model.sync_begins())),
        RecordedOp::SyncDir { path } => Ok(Open::SyncDir(model.lookup(path)?, model.sync_begins())),
        RecordedOp::CreateDirAll { path } => Ok(Open::Names(model.create_dir_all(path)?)),
        RecordedOp::Rename { from, to } => Ok(Open::Names(vec![model.rename(from, to)?])),
        RecordedOp::RemoveFile { path } => Ok(Open::Names(vec![model.remove_file(path)?])),
        RecordedOp::RemoveDirAll { path } => Ok(Open::Names(model.remove_dir_all(path)?)),
        RecordedOp::HardLink { from, to } => Ok(Open::Names(vec![model.hard_link(from, to)?])),
    }
}

fn end(model: &mut DiskModel, begun: Open, ok: bool) {
    match begun {
        Open::Sync(ino, began) => model.sync_ended(ino, began, ok),
        Open::SyncDir(ino, began) => model.dir_sync_ended(ino, began, ok),
        // A failed operation may be there in part: it stays unsynced for ever.
        _ if !ok => {}
        Open::Data(ino, op) => model.ended(ino, op),
        Open::Names(ops) => ops.into_iter().for_each(|op| model.name_ended(op)),
    }
}
