//! Files: positioned reads and writes with owned buffers, syncs, sizes.
//!
//! Files are opened for random reads: the kernel reads nothing ahead.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::buf::{Bytes, IoBuf};
use crate::class::Class;
use crate::env::{Env, Make};
use crate::file_op::FileOp;
use crate::io_kind::IoKind;
use crate::open_options::OpenOptions;
use crate::real::file::{self, RealFile};
use crate::real::files;
use crate::real::pipe::RealPipe;
use crate::recorder::RecordedOp;
use crate::sim::files::{self as sim_files, SimFile};

#[derive(Clone)]
enum Kind {
    Real(Rc<RealFile>),
    Sim(Rc<SimFile>),
}

/// Bytes that a class which nobody waits for writes at once: a read that waits behind it does not
/// wait for megabytes.
const BULK_PIECE: usize = 256 << 10;

/// An open file; clones share it. Its operations are accounted to (and scheduled as) a class: that
/// of the task that asks for them, or the one given.
#[derive(Clone)]
pub struct File {
    env: Env,
    class: Option<Class>,
    kind: Kind,
    path: Rc<PathBuf>,
    is_direct: bool,
}

impl File {
    /// Opens a file.
    pub async fn open(env: &Env, path: impl AsRef<Path>, options: OpenOptions) -> io::Result<Self> {
        let path = path.as_ref().to_path_buf();
        let (kind, is_direct) = match &env.0.make {
            Make::Real(driver) => {
                let recorder = driver.recorder.clone().filter(|r| r.covers(&path));
                let recorded = recorder.map(|r| {
                    let handle = r.handle();
                    (r, handle)
                });
                let (p, closer) = (path.clone(), driver.files.clone());
                let record = file::Record(recorded.as_ref().map(|(recorder, handle)| {
                    let op = RecordedOp::Open {
                        handle: *handle,
                        path: path.clone(),
                        create: options.create || options.create_new,
                        truncate: options.truncate,
                    };
                    (recorder, recorder.begin(op))
                }));
                let opened = env.blocking(move || file::open(&p, options)).await;
                record.end(opened.is_ok());
                let (file, is_direct) = opened?;
                (Kind::Real(RealFile::new(file, recorded, closer)), is_direct)
            }
            Make::Sim(port) => {
                (Kind::Sim(sim_files::open(env, port, &path, options).await?), options.direct)
            }
        };
        Ok(Self { env: env.clone(), class: None, kind, path: Rc::new(path), is_direct })
    }

    /// The same file, its operations accounted to (and scheduled as) `class`, whoever asks for
    /// them.
    pub fn with_class(&self, class: Class) -> Self {
        Self { class: Some(class), ..self.clone() }
    }

    /// Does it pass the page cache by? A file system may have refused it.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    fn class(&self) -> Class {
        self.class.unwrap_or_else(|| self.env.class())
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes bytes into a pipe, fewer at the end of the file.
    pub(crate) async fn splice(
        &self,
        pipe: &Rc<RealPipe>,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        let (Kind::Real(file), Make::Real(driver)) = (&self.kind, &self.env.0.make) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        loop {
            let taken = files::splice(&self.env, driver, file, pipe, (offset, len), self.class());
            match taken.await {
                Err(e) if transient(&e) => {}
                taken => return taken,
            }
        }
    }

    async fn run(&self, op: FileOp, buf: Bytes) -> (io::Result<usize>, Bytes) {
        match (&self.kind, &self.env.0.make) {
            (Kind::Real(file), Make::Real(driver)) => {
                files::run(&self.env, driver, file, op, buf, self.class()).await
            }
            (Kind::Sim(file), Make::Sim(port)) => {
                sim_files::file_op(&self.env, port, file, op, buf, self.class()).await
            }
            _ => (Err(io::ErrorKind::Other.into()), buf),
        }
    }

    /// Reads up to `len` bytes at `offset`: fewer only at the end of the file or by the device's
    /// leave. The buffer then holds what was read.
    pub async fn read_at<B: IoBuf>(
        &self,
        buf: B,
        offset: u64,
        len: usize,
    ) -> (io::Result<usize>, B) {
        let mut bytes = buf.into_bytes();
        bytes.make_room(len);
        loop {
            let (result, back) = self.run(FileOp::Read { offset, len }, bytes).await;
            bytes = back;
            match result {
                Err(e) if transient(&e) => {}
                result => {
                    bytes.truncate(*result.as_ref().unwrap_or(&0));
                    return (result, B::from_bytes(bytes));
                }
            }
        }
    }

    /// Reads exactly `len` bytes at `offset`, or fails with `UnexpectedEof`.
    pub async fn read_exact_at<B: IoBuf>(
        &self,
        buf: B,
        offset: u64,
        len: usize,
    ) -> (io::Result<()>, B) {
        let (result, buf) = self.read_at(buf, offset, len).await;
        match result {
            Ok(n) if n == len => (Ok(()), buf),
            Ok(0) => (Err(io::ErrorKind::UnexpectedEof.into()), buf),
            Ok(n) => self.read_rest(buf, offset, n, len).await,
            Err(e) => (Err(e), buf),
        }
    }

    /// A read came back short: on to the end, through a second buffer.
    async fn read_rest<B: IoBuf>(
        &self,
        buf: B,
        offset: u64,
        had: usize,
        len: usize,
    ) -> (io::Result<()>, B) {
        let mut all = buf.into_bytes();
        let mut had = had;
        // Direct I/O wants aligned offsets: read the last block again.
        let mut piece = crate::buf::AlignedBuf::with_capacity(len.min(REREAD));
        while had < len {
            let at = had - had % crate::buf::ALIGNMENT;
            let want = (len - at).min(REREAD);
            let (result, back) = self.read_at(piece, offset + at as u64, want).await;
            piece = back;
            match result {
                Ok(n) if at + n > had => {
                    all.make_room(at + n);
                    if let Some(to) = all.as_mut_slice().get_mut(at..at + n) {
                        to.copy_from_slice(&piece[..n]);
                    }
                    had = at + n;
                }
                Ok(_) => {
                    all.truncate(had);
                    return (Err(io::ErrorKind::UnexpectedEof.into()), B::from_bytes(all));
                }
                Err(e) => {
                    all.truncate(had);
                    return (Err(e), B::from_bytes(all));
                }
            }
        }
        (Ok(()), B::from_bytes(all))
    }

    /// Writes the whole buffer at `offset`. On an error any part may have been written.
    pub async fn write_all_at<B: IoBuf>(&self, buf: B, offset: u64) -> (io::Result<()>, B) {
        let mut bytes = buf.into_bytes();
        let len = bytes.as_slice().len();
        let in_pieces = self.class().is_bulk() && !self.env.planted("disk_whole_writes");
        let most = if in_pieces { BULK_PIECE } else { len };
        let mut from = 0;
        while from < len {
            let op = FileOp::Write { offset: offset + from as u64, from, most };
            let (result, back) = self.run(op, bytes).await;
            bytes = back;
            match result {
                Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), B::from_bytes(bytes)),
                Ok(n) => from += n,
                Err(e) if transient(&e) => {}
                Err(e) => return (Err(e), B::from_bytes(bytes)),
            }
        }
        (Ok(()), B::from_bytes(bytes))
    }

    /// Reads `len` bytes at `offset` if the kernel has all of them in memory: nothing waits. Says
    /// whether it had; then the buffer holds them. If not, it may have begun to read them from the
    /// device.
    pub fn read_now<B: IoBuf>(&self, buf: B, offset: u64, len: usize) -> (bool, B) {
        let mut bytes = buf.into_bytes();
        bytes.make_room(len);
        let to = bytes.as_mut_slice();
        let read = match (&self.kind, &self.env.0.make) {
            (Kind::Real(file), Make::Real(driver)) => {
                files::read_now(&self.env, driver, file, to, offset, self.class())
            }
            (Kind::Sim(file), Make::Sim(port)) => {
                sim_files::read_now(&self.env, port, file, to, offset, self.class())
            }
            _ => Err(io::ErrorKind::Other.into()),
        };
        // an error is met again by whoever waits for the device
        (read.is_ok_and(|read| read == len), B::from_bytes(bytes))
    }

    /// Is this a time for [`File::write_now`]? Not soon after one that was held up.
    pub fn takes_now(&self) -> bool {
        match &self.env.0.make {
            Make::Real(driver) => driver.now_ns() >= driver.held_up_until.get(),
            Make::Sim(port) => sim_files::takes_now(port),
        }
    }

    /// Writes the whole buffer at `offset` before it returns: for a little that much waits for. It
    /// goes to the kernel's pages past the queue of the disk, and its thread waits with it should
    /// the kernel hold writers back. On an error any part may have been written.
    ///
    /// # Errors
    /// Of the file system.
    pub fn write_now(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match (&self.kind, &self.env.0.make) {
            (Kind::Real(file), Make::Real(driver)) => {
                files::write_now(&self.env, driver, file, bytes, offset, self.class())
            }
            (Kind::Sim(file), Make::Sim(port)) => {
                sim_files::write_now(&self.env, port, file, bytes, offset, self.class())
            }
            _ => Err(io::ErrorKind::Other.into()),
        }
    }

    /// Sends bytes that were written on their way to the device, and waits for those of them that
    /// are on it: called for a stretch after the other, each overlapping the one before, it lets
    /// the device have two stretches at most, and leaves a later sync little to do. It makes
    /// nothing durable. An error is the device's and is reported only once: the file is lost, as
    /// after a sync that failed.
    pub async fn write_back(&self, offset: u64, len: u64) -> io::Result<()> {
        self.run(FileOp::WriteBack { offset, len }, Bytes::default()).await.0.map(drop)
    }

    /// Makes the data written before the call durable, and the size if it grew. After an error
    /// nothing is known of what reached the disk: never call it again and believe it.
    pub async fn sync_data(&self) -> io::Result<()> {
        self.run(FileOp::SyncData, Bytes::default()).await.0.map(drop)
    }

    /// [`File::sync_data`], with times and the like. The file's name is not covered: see
    /// [`Env::sync_dir`].
    pub async fn sync_all(&self) -> io::Result<()> {
        self.run(FileOp::SyncAll, Bytes::default()).await.0.map(drop)
    }

    /// Does a kernel keep pages of it? None does of a simulated file.
    pub fn has_pages(&self) -> bool {
        matches!(self.kind, Kind::Real(_)) && !self.is_direct
    }

    /// Lets the kernel forget its pages of the file, which nobody is to read soon: others need not
    /// make room for new ones. What is not on the device yet stays.
    ///
    /// # Errors
    /// If no more files can be open.
    pub async fn forget_pages(&self) -> io::Result<()> {
        let Kind::Real(file) = &self.kind else { return Ok(()) };
        let file = file.try_clone()?;
        let forget = move || {
            crate::real::forget_pages(&file);
            Ok(())
        };
        self.env.blocking(forget).await
    }

    /// Reserves space for the first `len` bytes; a shorter file grows to that, with zeros.
    pub async fn allocate(&self, len: u64) -> io::Result<()> {
        loop {
            let op = FileOp::Allocate { offset: 0, len };
            match self.run(op, Bytes::default()).await.0 {
                Err(e) if transient(&e) => {}
                result => return result.map(drop),
            }
        }
    }

    /// Cuts the file, or lets it grow with zeros.
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        match &self.kind {
            Kind::Real(file) => {
                let record = file.record(|handle| RecordedOp::SetLen { handle, len });
                let clone = file.try_clone()?;
                let cut = move || {
                    let gone = clone.metadata()?.len().saturating_sub(len);
                    clone.set_len(len).map(|()| ((), gone))
                };
                let result = self.env.blocking_as(IoKind::Discard, cut).await;
                record.end(result.is_ok());
                result
            }
            Kind::Sim(file) => match &self.env.0.make {
                Make::Sim(port) => sim_files::set_len(&self.env, port, file, len).await,
                Make::Real(_) => Err(io::ErrorKind::Other.into()),
            },
        }
    }

    /// The file's size in bytes.
    pub async fn len(&self) -> io::Result<u64> {
        match &self.kind {
            Kind::Real(file) => {
                let file = file.try_clone()?;
                self.env.blocking(move || Ok(file.metadata()?.len())).await
            }
            Kind::Sim(file) => match &self.env.0.make {
                Make::Sim(port) => sim_files::len(&self.env, port, file).await,
                Make::Real(_) => Err(io::ErrorKind::Other.into()),
            },
        }
    }
}

/// Piece that a short read goes on with, in bytes.
const REREAD: usize = 1 << 20;

fn transient(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({:?}, {:?})", self.path, self.class)
    }
}
