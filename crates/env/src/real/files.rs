//! Files through the ring.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use io_uring::{opcode, squeue, types};

use super::Driver;
use super::helper::Pool;
use super::sys;
use crate::buf::Bytes;
use crate::class::Class;
use crate::env::{Env, Make};
use crate::io_history::Ended;
use crate::io_kind::IoKind;
use crate::io_queue::{SYNC_COST, cost};
use crate::recorder::{Begun, RecordedOp, Recorder};

/// An open file; closed on a helper thread, for the last close of a removed file frees its blocks.
pub(crate) struct RealFile {
    file: Option<std::fs::File>,
    /// The recorder that covers it, and its number there.
    pub recorded: Option<(Recorder, u64)>,
    closer: Arc<Pool>,
}

impl RealFile {
    pub fn new(
        file: std::fs::File,
        recorded: Option<(Recorder, u64)>,
        closer: Arc<Pool>,
    ) -> Rc<Self> {
        Rc::new(Self { file: Some(file), recorded, closer })
    }

    /// Logs the begin of an operation, if a recorder covers the file.
    pub fn record(&self, op: impl FnOnce(u64) -> RecordedOp) -> Record<'_> {
        Record(self.recorded.as_ref().map(|(recorder, handle)| {
            let begun = recorder.begin(op(*handle));
            (recorder, begun)
        }))
    }

    /// A second handle for a helper thread.
    pub fn try_clone(&self) -> io::Result<std::fs::File> {
        match &self.file {
            Some(file) => file.try_clone(),
            None => Err(io::Error::from_raw_os_error(libc::EBADF)),
        }
    }
}

impl AsRawFd for RealFile {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

impl Drop for RealFile {
    fn drop(&mut self) {
        let file = self.file.take();
        self.closer.submit(move || drop(file));
    }
}

/// An operation in the log of a recorder, if there is one.
pub(crate) struct Record<'a>(pub Option<(&'a Recorder, Begun)>);

impl Record<'_> {
    pub fn end(self, ok: bool) {
        if let Some((recorder, begun)) = self.0 {
            recorder.end(begun, ok);
        }
    }
}

/// What to do with a file, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileOp {
    Read {
        offset: u64,
        len: usize,
    },
    /// At most `most` bytes of the buffer, from its byte `from` on.
    Write {
        offset: u64,
        from: usize,
        most: usize,
    },
    /// Waits for what of these bytes is on its way to the device, and sends the rest of them on it.
    WriteBack {
        offset: u64,
        len: u64,
    },
    SyncData,
    SyncAll,
    Allocate {
        offset: u64,
        len: u64,
    },
}

impl FileOp {
    pub fn kind(self) -> IoKind {
        match self {
            Self::Read { .. } => IoKind::Read,
            Self::Write { .. } => IoKind::Write,
            Self::WriteBack { .. } => IoKind::WriteBack,
            Self::SyncData | Self::SyncAll => IoKind::Sync,
            Self::Allocate { .. } => IoKind::Allocate,
        }
    }

    /// The part of a buffer of `len` bytes that a write takes.
    pub fn written(from: usize, most: usize, len: usize) -> std::ops::Range<usize> {
        let from = from.min(len);
        from..from.saturating_add(most).min(len)
    }

    /// What it costs of the device, with a buffer of `len` bytes.
    pub fn cost(self, len: usize) -> u64 {
        match self {
            Self::Read { len: want, .. } => cost(want),
            Self::Write { from, most, .. } => cost(Self::written(from, most, len).len()),
            Self::WriteBack { len, .. } => cost(usize::try_from(len).unwrap_or(usize::MAX)),
            Self::SyncData | Self::SyncAll => SYNC_COST,
            Self::Allocate { .. } => cost(0),
        }
    }

    #[expect(unsafe_code, reason = "the io_uring seam")]
    pub fn entry(self, fd: RawFd, start: *mut u8, len: usize) -> squeue::Entry {
        let fd = types::Fd(fd);
        // The kernel takes at most 2 GiB at once; the caller comes again for the rest.
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).min(0x7fff_f000);
        match self {
            Self::Read { offset, len: want } => {
                opcode::Read::new(fd, start, clamp(want.min(len))).offset(offset).build()
            }
            Self::Write { offset, from, most } => {
                let part = Self::written(from, most, len);
                // SAFETY: the part's start is within the buffer or one past its end.
                let start = unsafe { start.add(part.start) };
                opcode::Write::new(fd, start, clamp(part.len())).offset(offset).build()
            }
            Self::WriteBack { offset, len } => {
                let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE;
                let len = u32::try_from(len).unwrap_or(u32::MAX);
                opcode::SyncFileRange::new(fd, len).offset(offset).flags(flags).build()
            }
            Self::SyncData => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
            Self::SyncAll => opcode::Fsync::new(fd).build(),
            Self::Allocate { offset, len } => {
                opcode::Fallocate::new(fd, len).offset(offset).build()
            }
        }
    }
}

/// Runs an operation, and logs it if a recorder covers the file.
pub(crate) async fn run(
    env: &Env,
    driver: &Driver,
    file: &Rc<RealFile>,
    op: FileOp,
    buf: Bytes,
    class: Class,
) -> (io::Result<usize>, Bytes) {
    // Sending bytes on their way makes nothing durable.
    if file.recorded.is_none() || matches!(op, FileOp::Read { .. } | FileOp::WriteBack { .. }) {
        return start(env, driver, file, op, buf, class).await;
    }
    let part = |buf: &Bytes, from: usize, most: usize| -> Arc<[u8]> {
        let bytes = buf.as_slice();
        bytes.get(FileOp::written(from, most, bytes.len())).unwrap_or_default().into()
    };
    let record = file.record(|handle| match op {
        FileOp::Write { offset, from, most } => {
            RecordedOp::Write { handle, offset, bytes: part(&buf, from, most) }
        }
        FileOp::Allocate { offset, len } => RecordedOp::Allocate { handle, len: offset + len },
        _ => RecordedOp::Sync { handle },
    });
    let (result, buf) = start(env, driver, file, op, buf, class).await;
    match (&result, op) {
        // Short: what was written counts, the rest may or may not be there.
        (Ok(n), FileOp::Write { offset, from, most })
            if *n < FileOp::written(from, most, buf.as_slice().len()).len() =>
        {
            record.end(false);
            let bytes = part(&buf, from, *n);
            file.record(|handle| RecordedOp::Write { handle, offset, bytes }).end(true);
        }
        _ => record.end(result.is_ok()),
    }
    (result, buf)
}

/// A write to the kernel's pages that takes so many nanoseconds was held up, by the device or by
/// who else writes.
const HELD_UP_NS: u64 = 2_000_000;
/// For so many nanoseconds after it writes go through the queue, where nothing waits for them.
const HELD_UP_REST_NS: u64 = 100_000_000;

/// Writes at once, and logs it if a recorder covers the file.
pub(crate) fn write_now(
    env: &Env,
    driver: &Driver,
    file: &Rc<RealFile>,
    bytes: &[u8],
    offset: u64,
    class: Class,
) -> io::Result<()> {
    let Some(open) = &file.file else { return Err(io::Error::from_raw_os_error(libc::EBADF)) };
    let record =
        file.record(|handle| RecordedOp::Write { handle, offset, bytes: Arc::from(bytes) });
    let counters = &env.0.counters;
    counters.io_started();
    let started = driver.now_ns();
    let result = open.write_all_at(bytes, offset);
    let now = driver.now_ns();
    if now.saturating_sub(started) > HELD_UP_NS {
        driver.held_up_until.set(now + HELD_UP_REST_NS);
    }
    record.end(result.is_ok());
    let ended = Ended {
        class,
        kind: IoKind::Write,
        bytes: result.is_ok().then_some(bytes.len() as u64),
        queue_ns: 0,
        device_ns: now.saturating_sub(started),
    };
    counters.io_ended(now, &ended);
    result
}

/// Reads what the kernel has of a file in its pages.
pub(crate) fn read_now(
    env: &Env,
    driver: &Driver,
    file: &RealFile,
    to: &mut [u8],
    offset: u64,
    class: Class,
) -> io::Result<usize> {
    let Some(open) = &file.file else { return Err(io::Error::from_raw_os_error(libc::EBADF)) };
    let read = sys::read_in_memory(open, to, offset)?;
    // what the device is asked for is counted by whoever asks it
    if read == to.len() {
        let counters = &env.0.counters;
        counters.io_started();
        let bytes = Some(read as u64);
        let ended = Ended { class, kind: IoKind::Read, bytes, queue_ns: 0, device_ns: 0 };
        counters.io_ended(driver.now_ns(), &ended);
    }
    Ok(read)
}

/// Starts an operation on the shard's ring.
fn start(
    env: &Env,
    driver: &Driver,
    file: &Rc<RealFile>,
    op: FileOp,
    buf: Bytes,
    class: Class,
) -> OpFuture {
    let counters = &env.0.counters;
    let now = driver.now_ns();
    let key = driver.ring.start(counters, file.clone(), buf, class, op, now);
    OpFuture { env: env.clone(), key: Some(key) }
}

/// Future of an operation: the result as the kernel gave it, and the buffer. Dropped, the operation
/// still ends; its buffer is freed after that.
pub(crate) struct OpFuture {
    env: Env,
    key: Option<usize>,
}

impl OpFuture {
    fn driver(&self) -> Option<&Driver> {
        match &self.env.0.make {
            Make::Real(driver) => Some(driver),
            Make::Sim(_) => None,
        }
    }
}

impl Future for OpFuture {
    type Output = (io::Result<usize>, Bytes);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (Some(key), Some(driver)) = (self.key, self.driver()) else {
            return Poll::Ready((Err(io::ErrorKind::Other.into()), Bytes::default()));
        };
        let Poll::Ready((result, buf)) = driver.ring.poll_op(key, cx) else {
            return Poll::Pending;
        };
        self.key = None;
        let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        Poll::Ready((result, buf))
    }
}

impl Drop for OpFuture {
    fn drop(&mut self) {
        if let (Some(key), Some(driver)) = (self.key.take(), self.driver()) {
            driver.ring.abandon(key);
        }
    }
}
