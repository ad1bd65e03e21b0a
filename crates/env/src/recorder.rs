//! Writes down what is done to the disk, so that tests can build what a power cut may leave.
//!
//! A [`Recorder`] given to [`real::run`](crate::real::run) logs, for the directory trees it was
//! made for, the begin and the end of each operation that changes them, in the order in which they
//! happened. [`Recording::crash_image`] cuts that log at any place and draws one of the states that
//! the disk may then be in, by the same rules as the simulator's disks. For tests: it keeps every
//! byte written.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::disk_model::{DiskModel, Ino, OpId};
use crate::rng::Rng;

/// An operation that changes files or directories. Files are named by a handle, given when they
/// were opened.
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

impl RecordedOp {
    /// The paths that it names.
    fn paths(&mut self) -> [Option<&mut PathBuf>; 2] {
        match self {
            Self::Open { path, .. }
            | Self::CreateDirAll { path }
            | Self::RemoveFile { path }
            | Self::RemoveDirAll { path }
            | Self::SyncDir { path } => [Some(path), None],
            Self::Rename { from, to } | Self::HardLink { from, to } => [Some(from), Some(to)],
            Self::Write { .. }
            | Self::SetLen { .. }
            | Self::Allocate { .. }
            | Self::Sync { .. } => [None, None],
        }
    }
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
    log: Mutex<Log>,
    next: AtomicU64,
    started: Instant,
}

/// The entries, and for each when it was made.
#[derive(Clone, Debug, Default)]
struct Log {
    entries: Vec<Entry>,
    times: Vec<Duration>,
    /// Where processes were killed: before these entries.
    kills: Vec<usize>,
}

/// A moment of a recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// How many entries the log had.
    pub place: usize,
    /// How long after the recorder was made.
    pub time: Duration,
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
        let started = Instant::now();
        Ok(Self(Arc::new(Shared { roots, base, log, next, started })))
    }

    /// A recorder that goes on where a process was killed after the first `cut` entries of a
    /// recording: what it had written and not synced is in the page cache still, and no more
    /// durable than before. The directories must hold the recording's
    /// [`kill_image`](Recording::kill_image).
    pub fn after_kill(recording: &Recording, cut: usize) -> Self {
        let mut log = recording.log.clone();
        log.entries.truncate(cut);
        log.times.truncate(cut);
        log.kills.push(log.entries.len());
        let last = log.times.last().copied().unwrap_or_default();
        let now = Instant::now();
        let started = now.checked_sub(last).unwrap_or(now);
        let (base, roots) = (recording.base.clone(), recording.roots.clone());
        let next = AtomicU64::new(recording.next);
        Self(Arc::new(Shared { roots, base, log: Mutex::new(log), next, started }))
    }

    /// Now.
    pub fn moment(&self) -> Moment {
        let log = self.log();
        Moment { place: log.entries.len(), time: self.0.started.elapsed() }
    }

    /// True if changes at `path` are logged.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.0.roots.iter().any(|root| path.starts_with(root))
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, entry: Entry) {
        let mut log = self.log();
        log.times.push(self.0.started.elapsed());
        log.entries.push(entry);
    }

    /// A number for a file that is being opened.
    pub(crate) fn handle(&self) -> u64 {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, op: RecordedOp) -> Begun {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.push(Entry::Begin { id, op });
        Begun(id)
    }

    pub(crate) fn end(&self, begun: Begun, ok: bool) {
        self.push(Entry::End { id: begun.0, ok });
    }

    /// The log so far.
    pub fn recording(&self) -> Recording {
        let (base, roots) = (self.0.base.clone(), self.0.roots.clone());
        let log = self.log().clone();
        let next = self.0.next.load(Ordering::Relaxed);
        Recording { base, roots, log, next, omitted: BTreeSet::new() }
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
    roots: Vec<PathBuf>,
    log: Log,
    /// The next number of a handle or operation.
    next: u64,
    omitted: BTreeSet<u64>,
}

/// What the end of an operation has to report to the model.
#[derive(Clone, Debug)]
enum Open {
    Data(Ino, OpId),
    Names(Vec<OpId>),
    Sync(Ino, u64),
    SyncDir(Ino, u64),
}

impl Recording {
    /// The log.
    pub fn entries(&self) -> &[Entry] {
        &self.log.entries
    }

    /// When an entry was made, counted from when the recorder was.
    pub fn time(&self, entry: usize) -> Duration {
        self.log.times.get(entry).copied().unwrap_or_default()
    }

    /// Places where the log can be cut: after 0, 1, ... entries.
    pub fn cuts(&self) -> std::ops::RangeInclusive<usize> {
        0..=self.log.entries.len()
    }

    /// The same run with some operations left out, by their numbers: what the disk would have been
    /// told by a program that forgets them.
    #[must_use]
    pub fn without(mut self, operations: BTreeSet<u64>) -> Self {
        self.omitted = operations;
        self
    }

    /// The same run in another directory: paths below `from` are below `to`.
    #[must_use]
    pub fn moved(mut self, from: &Path, to: &Path) -> Self {
        let moved = |path: &mut PathBuf| {
            if let Ok(rest) = path.strip_prefix(from) {
                *path = to.join(rest);
            }
        };
        self.roots.iter_mut().for_each(moved);
        self.base.iter_mut().for_each(|(path, _)| moved(path));
        for entry in &mut self.log.entries {
            let Entry::Begin { op, .. } = entry else { continue };
            op.paths().into_iter().flatten().for_each(moved);
        }
        self
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
        let mut player = self.player()?;
        player.play_to(cut);
        Ok(player.model)
    }

    /// The disk before the first entry, to be played on from: for many cuts of a long log.
    pub fn player(&self) -> io::Result<Player<'_>> {
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
        let (handles, open) = (BTreeMap::new(), BTreeMap::new());
        Ok(Player { recording: self, model, handles, open, place: 0 })
    }
}

/// A recording being played: the disk at one place of the log after the other.
#[derive(Clone, Debug)]
pub struct Player<'a> {
    recording: &'a Recording,
    model: DiskModel,
    handles: BTreeMap<u64, Ino>,
    open: BTreeMap<u64, Open>,
    place: usize,
}

impl Player<'_> {
    /// Lets the entries up to the first `cut` happen; those that have happened already stay.
    pub fn play_to(&mut self, cut: usize) {
        let log = &self.recording.log;
        while self.place < cut
            && let Some(entry) = log.entries.get(self.place)
        {
            if log.kills.contains(&self.place) {
                self.kill();
            }
            self.play(entry);
            self.place += 1;
        }
    }

    /// The process dies: the kernel ends what it was given, and nobody waits for a sync any more.
    fn kill(&mut self) {
        self.handles.clear();
        for begun in std::mem::take(&mut self.open).into_values() {
            if matches!(begun, Open::Data(..) | Open::Names(_)) {
                end(&mut self.model, begun, true);
            }
        }
    }

    fn play(&mut self, entry: &Entry) {
        match entry {
            Entry::Begin { id, .. } if self.recording.omitted.contains(id) => {}
            Entry::Begin { id, op } => {
                // What failed for real fails here, and has no effect in either.
                if let Ok(begun) = begin(&mut self.model, &mut self.handles, op) {
                    self.open.insert(*id, begun);
                }
            }
            Entry::End { id, ok } => {
                if let Some(begun) = self.open.remove(id) {
                    end(&mut self.model, begun, *ok);
                }
            }
        }
    }

    /// The disk if the process is killed here.
    pub fn kill_image(&self) -> DiskModel {
        self.model.clone()
    }

    /// One of the states that a power cut here may leave.
    pub fn crash_image(&self, rng: &Rng) -> DiskModel {
        let mut model = self.model.clone();
        model.power_cut(rng);
        model
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
            // A file without a name is as good as gone: handles keep nothing here.
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
