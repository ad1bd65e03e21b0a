//! Files through the ring.

use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::driver::Driver;
use super::file::RealFile;
use super::pipe::RealPipe;
use super::sys;
use crate::buf::Bytes;
use crate::class::Class;
use crate::env::{Env, Make};
use crate::file_op::FileOp;
use crate::io_history::Ended;
use crate::io_kind::IoKind;
use crate::recorder::RecordedOp;

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
    let open = file.opened()?;
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
    let open = file.opened()?;
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

/// Takes bytes of a file into a pipe.
pub(crate) async fn splice(
    env: &Env,
    driver: &Driver,
    file: &Rc<RealFile>,
    pipe: &Rc<RealPipe>,
    (offset, len): (u64, usize),
    class: Class,
) -> io::Result<usize> {
    let (counters, now) = (&env.0.counters, driver.now_ns());
    let held = (file.clone(), Some(pipe.clone()));
    let op = FileOp::Splice { offset, len };
    let key = driver.ring.start(counters, held, Bytes::default(), class, op, now);
    OpFuture { env: env.clone(), key: Some(key) }.await.0
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
    let key = driver.ring.start(counters, (file.clone(), None), buf, class, op, now);
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
