//! Directories and whole files.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::env::{Env, Make};
use crate::file::File;
use crate::io_history::Ended;
use crate::io_kind::IoKind;
use crate::open_options::OpenOptions;
use crate::real;
use crate::real::file::Record;
use crate::recorder::RecordedOp;
use crate::sim::Change;
use crate::sim::files::{self, SimLock};

/// Facts of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Size in bytes.
    pub len: u64,
    /// True for a directory.
    pub is_dir: bool,
    /// When it was last written, in milliseconds since 1970; `None` where nobody knows.
    pub modified_millis: Option<i64>,
    /// Device and number, the same for all paths that lead to it.
    pub identity: (u64, u64),
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// Its name (bytes that are not UTF-8 are replaced).
    pub name: String,
    /// True for a directory.
    pub is_dir: bool,
}

/// Keeps a directory for this process; see [`Env::lock_file`].
#[derive(Debug)]
#[must_use = "dropping the guard gives the lock back"]
pub struct LockGuard {
    _kind: LockKind,
}

#[derive(Debug)]
enum LockKind {
    Real(#[expect(dead_code, reason = "open is locked")] std::fs::File),
    Sim(#[expect(dead_code, reason = "alive is locked")] SimLock),
}

/// A directory that is open. A failed sync of it is one of all who had it open: the kernel reports
/// it to each of them once, and to nobody who opens it later (`errseq_t` of Linux).
#[derive(Clone)]
pub struct Directory {
    env: Env,
    path: PathBuf,
    handle: DirHandle,
}

#[derive(Clone)]
enum DirHandle {
    Real(Arc<std::fs::File>),
    /// The moment at which it was opened.
    Sim(u64),
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Directory {
    /// Makes the names in it durable.
    ///
    /// # Errors
    /// If the disk fails, or failed another sync of it since it was opened: names that changed
    /// meanwhile may be lost at a power cut.
    pub async fn sync(&self) -> io::Result<()> {
        match (&self.env.0.make, &self.handle) {
            (Make::Real(_), DirHandle::Real(file)) => {
                let op = |path| RecordedOp::SyncDir { path };
                let file = Arc::clone(file);
                self.env.changing(&self.path, op, move || file.sync_all()).await
            }
            (Make::Sim(port), DirHandle::Sim(opened)) => {
                files::sync_dir(&self.env, port, &self.path, Some(*opened)).await
            }
            _ => unreachable!("a directory stays in the world that it was opened in"),
        }
    }
}

impl Env {
    /// Runs a blocking file operation on a helper thread, and accounts it.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.blocking_as(IoKind::Meta, || f().map(|value| (value, 0))).await
    }

    /// The same for an operation of a kind, which says how many bytes it was about.
    pub(crate) async fn blocking_as<T: Send + 'static>(
        &self,
        kind: IoKind,
        f: impl FnOnce() -> io::Result<(T, u64)> + Send + 'static,
    ) -> io::Result<T> {
        let Make::Real(driver) = &self.0.make else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let class = self.class();
        let start = driver.now_ns();
        self.0.counters.io_started();
        let bytes = std::cell::Cell::new(None);
        let ended = Accounted { env: self, class, kind, start, bytes };
        let (value, bytes) = driver.files.run(f).await?;
        ended.bytes.set(Some(bytes));
        Ok(value)
    }

    /// A blocking operation that changes names, logged if a recorder covers `path`.
    async fn changing(
        &self,
        path: &Path,
        op: impl FnOnce(PathBuf) -> RecordedOp,
        f: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        self.changing_as(IoKind::Meta, path, op, || f().map(|()| 0)).await
    }

    /// The same for an operation of a kind, which says how many bytes it was about.
    async fn changing_as(
        &self,
        kind: IoKind,
        path: &Path,
        op: impl FnOnce(PathBuf) -> RecordedOp,
        f: impl FnOnce() -> io::Result<u64> + Send + 'static,
    ) -> io::Result<()> {
        let recorder = match &self.0.make {
            Make::Real(driver) => driver.recorder.as_ref().filter(|r| r.covers(path)),
            Make::Sim(_) => None,
        };
        let record = Record(recorder.map(|r| (r, r.begin(op(path.to_path_buf())))));
        let result = self.blocking_as(kind, || f().map(|bytes| ((), bytes))).await;
        record.end(result.is_ok());
        result
    }

    /// Makes a directory and those above it.
    pub async fn create_dir_all(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref().to_path_buf();
        match &self.0.make {
            Make::Real(_) => {
                let op = |path| RecordedOp::CreateDirAll { path };
                self.changing(&path.clone(), op, move || std::fs::create_dir_all(path)).await
            }
            Make::Sim(port) => {
                files::change_names(self, port, Change::MakeDir, path.clone(), move |model| {
                    let ops = model.create_dir_all(&path)?;
                    ops.into_iter().for_each(|op| model.name_ended(op));
                    Ok(())
                })
                .await
            }
        }
    }

    /// The entries of a directory, by name.
    pub async fn read_dir(&self, path: impl AsRef<Path>) -> io::Result<Vec<DirEntry>> {
        let path = path.as_ref().to_path_buf();
        match &self.0.make {
            Make::Real(_) => self.blocking(move || read_dir_real(&path)).await,
            Make::Sim(port) => {
                files::meta(self, port, move |model, _| {
                    let entries = model.list(&path)?.into_iter();
                    Ok(entries.map(|(name, is_dir)| DirEntry { name, is_dir }).collect())
                })
                .await
            }
        }
    }

    /// Renames a file or directory, replacing a file at `to`.
    pub async fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let (from, to) = (from.as_ref().to_path_buf(), to.as_ref().to_path_buf());
        match &self.0.make {
            Make::Real(_) => {
                let target = to.clone();
                let op = |from| RecordedOp::Rename { from, to: target };
                self.changing(&from.clone(), op, move || std::fs::rename(from, to)).await
            }
            Make::Sim(port) => {
                files::change_names(self, port, Change::Rename, to.clone(), move |model| {
                    let op = model.rename(&from, &to)?;
                    model.name_ended(op);
                    Ok(())
                })
                .await
            }
        }
    }

    /// Removes a file.
    pub async fn remove_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref().to_path_buf();
        let removed = path.clone();
        match &self.0.make {
            Make::Real(_) => {
                let op = |path| RecordedOp::RemoveFile { path };
                let remove = move || {
                    let gone = blocks_of(&path);
                    std::fs::remove_file(path).map(|()| gone)
                };
                self.changing_as(IoKind::Discard, &removed, op, remove).await
            }
            Make::Sim(port) => {
                files::change_names(self, port, Change::Remove, path.clone(), move |model| {
                    let op = model.remove_file(&path)?;
                    model.name_ended(op);
                    Ok(())
                })
                .await
            }
        }
    }

    /// Removes a directory and all below it.
    pub async fn remove_dir_all(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref().to_path_buf();
        let removed = path.clone();
        match &self.0.make {
            Make::Real(_) => {
                let op = |path| RecordedOp::RemoveDirAll { path };
                let remove = move || {
                    let gone = blocks_below(&path);
                    std::fs::remove_dir_all(path).map(|()| gone)
                };
                self.changing_as(IoKind::Discard, &removed, op, remove).await
            }
            Make::Sim(port) => {
                files::change_names(self, port, Change::RemoveDir, path.clone(), move |model| {
                    let ops = model.remove_dir_all(&path)?;
                    ops.into_iter().for_each(|op| model.name_ended(op));
                    Ok(())
                })
                .await
            }
        }
    }

    /// Gives a file a second name.
    pub async fn hard_link(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let (from, to) = (from.as_ref().to_path_buf(), to.as_ref().to_path_buf());
        match &self.0.make {
            Make::Real(_) => {
                let target = to.clone();
                let op = |from| RecordedOp::HardLink { from, to: target };
                self.changing(&from.clone(), op, move || std::fs::hard_link(from, to)).await
            }
            Make::Sim(port) => {
                files::change_names(self, port, Change::Link, to.clone(), move |model| {
                    let op = model.hard_link(&from, &to)?;
                    model.name_ended(op);
                    Ok(())
                })
                .await
            }
        }
    }

    /// Opens a directory before names in it change: its [`Directory::sync`] answers for all that
    /// changed since.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub async fn open_dir(&self, path: impl AsRef<Path>) -> io::Result<Directory> {
        let path = path.as_ref().to_path_buf();
        let handle = match &self.0.make {
            Make::Real(_) => {
                let path = path.clone();
                let file = self.blocking(move || std::fs::File::open(path)).await?;
                DirHandle::Real(Arc::new(file))
            }
            Make::Sim(port) => DirHandle::Sim(files::moment(port)),
        };
        Ok(Directory { env: self.clone(), path, handle })
    }

    /// Makes the names in a directory durable: files created, renamed, linked or removed in it. If
    /// another sync of it failed before, names of then may be lost all the same: whoever needs to
    /// know opens it first ([`Self::open_dir`]).
    pub async fn sync_dir(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref().to_path_buf();
        match &self.0.make {
            Make::Real(_) => {
                let op = |path| RecordedOp::SyncDir { path };
                let dir = path.clone();
                let sync = move || std::fs::File::open(path)?.sync_all();
                self.changing(&dir, op, sync).await
            }
            Make::Sim(port) => files::sync_dir(self, port, &path, None).await,
        }
    }

    /// Facts of a path; None when there is nothing.
    pub async fn metadata(&self, path: impl AsRef<Path>) -> io::Result<Option<Metadata>> {
        let path = path.as_ref().to_path_buf();
        match &self.0.make {
            Make::Real(_) => {
                self.blocking(move || match std::fs::metadata(path) {
                    Ok(m) => Ok(Some(Metadata {
                        len: m.len(),
                        is_dir: m.is_dir(),
                        modified_millis: modified(&m),
                        identity: (m.dev(), m.ino()),
                    })),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(e) => Err(e),
                })
                .await
            }
            Make::Sim(port) => {
                files::meta(self, port, move |model, _| match model.lookup(&path) {
                    Ok(ino) => {
                        let len = model.len(ino);
                        let is_dir = len.is_none();
                        let len = len.unwrap_or(0);
                        let identity = (0, ino.number());
                        Ok(Some(Metadata { len, is_dir, modified_millis: None, identity }))
                    }
                    Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(e) => Err(e),
                })
                .await
            }
        }
    }

    /// True if there is something at `path`.
    pub async fn exists(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        Ok(self.metadata(path).await?.is_some())
    }

    /// Total and free bytes of the disk that holds `path`.
    pub async fn disk_space(&self, path: impl AsRef<Path>) -> io::Result<(u64, u64)> {
        let path = path.as_ref().to_path_buf();
        match &self.0.make {
            Make::Real(_) => self.blocking(move || real::disk_space(&path)).await,
            Make::Sim(port) => {
                let total = port.world.options.disk_bytes;
                files::meta(self, port, move |model, node| {
                    let full = node.disk.no_space.get();
                    let free = if full { 0 } else { total.saturating_sub(model.used()) };
                    Ok((total, free))
                })
                .await
            }
        }
    }

    /// Locks a file (created if missing) against every other process and every other guard, until
    /// the guard is dropped or the process dies. `WouldBlock` when it is taken.
    pub async fn lock_file(&self, path: impl AsRef<Path>) -> io::Result<LockGuard> {
        let path = path.as_ref().to_path_buf();
        let kind = match &self.0.make {
            Make::Real(_) => LockKind::Real(self.blocking(move || lock_real(&path)).await?),
            Make::Sim(port) => LockKind::Sim(files::lock(self, port, &path).await?),
        };
        Ok(LockGuard { _kind: kind })
    }

    /// The whole of a file, which must not be larger than `limit` bytes.
    pub async fn read_file(&self, path: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        let file = File::open(self, path, OpenOptions::READ).await?;
        let len = file.len().await?;
        if len > limit {
            let what = format!("{:?} has {len} bytes, more than the limit of {limit}", file.path());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        let (result, bytes) = file.read_exact_at(Vec::new(), 0, len as usize).await;
        result.map(|()| bytes)
    }

    /// Replaces a file's content, durably and all at once: after a crash the old or the new is
    /// there. The new content goes to `path` + `.tmp` first.
    pub async fn write_file_atomically(
        &self,
        path: impl AsRef<Path>,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        let path = path.as_ref();
        let mut temporary = path.as_os_str().to_os_string();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        let options = OpenOptions { truncate: true, ..OpenOptions::READ_WRITE };
        let file = File::open(self, &temporary, options).await?;
        file.write_all_at(bytes, 0).await.0?;
        file.sync_all().await?;
        drop(file);
        let directory = self.open_dir(parent(path)).await?;
        self.rename(&temporary, path).await?;
        if self.planted("rename_not_synced") {
            return Ok(());
        }
        directory.sync().await
    }
}

pub(crate) fn modified(metadata: &std::fs::Metadata) -> Option<i64> {
    let since = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// The directory that holds `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if p.as_os_str().is_empty() => Path::new("."),
        Some(p) => p,
        None => Path::new("/"),
    }
}

/// Accounts a blocking operation, also one that is dropped.
struct Accounted<'a> {
    env: &'a Env,
    class: crate::class::Class,
    kind: IoKind,
    start: u64,
    /// Of one that succeeded.
    bytes: std::cell::Cell<Option<u64>>,
}

impl Drop for Accounted<'_> {
    fn drop(&mut self) {
        let Make::Real(driver) = &self.env.0.make else { return };
        let now = driver.now_ns();
        let (class, kind, bytes) = (self.class, self.kind, self.bytes.get());
        let device_ns = now.saturating_sub(self.start);
        let ended = Ended { class, kind, bytes, queue_ns: 0, device_ns };
        self.env.0.counters.io_ended(now, &ended);
    }
}

/// Bytes of a file that go with its name: all, unless it has another.
fn blocks_of(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).map_or(0, |m| if m.nlink() == 1 { m.len() } else { 0 })
}

/// Bytes of the files that go with a directory.
fn blocks_below(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    let of = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => blocks_below(&entry.path()),
        _ => blocks_of(&entry.path()),
    };
    entries.map(of).sum()
}

fn read_dir_real(path: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(DirEntry { name, is_dir: entry.file_type()?.is_dir() });
    }
    entries.sort();
    Ok(entries)
}

fn lock_real(path: &Path) -> io::Result<std::fs::File> {
    let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            format!("{path:?} is locked: another node runs on this directory"),
        )),
        Err(std::fs::TryLockError::Error(e)) => Err(e),
    }
}
