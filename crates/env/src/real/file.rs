//! An open file, and its operations as the ring takes them.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use io_uring::{opcode, squeue, types};

use super::helper::Pool;
use super::sys;
use crate::file_op::FileOp;
use crate::open_options::OpenOptions;
use crate::recorder::{Begun, RecordedOp, Recorder};

/// Opens a file; without direct I/O where the file system refuses it. Who reads asks for what it
/// wants: the kernel is to read nothing ahead of that. Says, too, whether it passes the page cache
/// by.
pub(crate) fn open(path: &Path, options: OpenOptions) -> io::Result<(std::fs::File, bool)> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut how = std::fs::OpenOptions::new();
    how.read(options.read)
        .write(options.write)
        .create(options.create)
        .create_new(options.create_new)
        .truncate(options.truncate);
    if !options.direct {
        let file = how.open(path)?;
        if options.read {
            sys::read_what_is_asked(&file);
        }
        return Ok((file, false));
    }
    match how.clone().custom_flags(libc::O_DIRECT).open(path) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
            // Some file systems create the file before they refuse the flag.
            if options.create_new {
                how.create_new(false).create(true);
            }
            Ok((how.open(path)?, false))
        }
        other => Ok((other?, true)),
    }
}

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

    /// The file, which is there until this is dropped.
    pub(super) fn opened(&self) -> io::Result<&std::fs::File> {
        self.file.as_ref().ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    }

    /// A second handle for a helper thread.
    pub fn try_clone(&self) -> io::Result<std::fs::File> {
        self.opened()?.try_clone()
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

/// The entry of an operation on a buffer of `len` bytes, or with the end of a pipe that takes.
#[expect(unsafe_code, reason = "the io_uring seam")]
pub(super) fn entry(
    op: FileOp,
    (fd, pipe): (RawFd, RawFd),
    start: *mut u8,
    len: usize,
) -> squeue::Entry {
    let (fd, pipe) = (types::Fd(fd), types::Fd(pipe));
    // The kernel takes at most 2 GiB at once; the caller comes again for the rest.
    let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).min(0x7fff_f000);
    match op {
        FileOp::Read { offset, len: want } => {
            opcode::Read::new(fd, start, clamp(want.min(len))).offset(offset).build()
        }
        FileOp::Splice { offset, len } => {
            // -1 is for a pipe, which has no places
            let offset = i64::try_from(offset).unwrap_or(i64::MAX);
            opcode::Splice::new(fd, offset, pipe, -1, clamp(len)).build()
        }
        FileOp::Write { offset, from, most } => {
            let part = FileOp::written(from, most, len);
            // SAFETY: the part's start is within the buffer or one past its end.
            let start = unsafe { start.add(part.start) };
            opcode::Write::new(fd, start, clamp(part.len())).offset(offset).build()
        }
        FileOp::WriteBack { offset, len } => {
            let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE;
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            opcode::SyncFileRange::new(fd, len).offset(offset).flags(flags).build()
        }
        FileOp::SyncData => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
        FileOp::SyncAll => opcode::Fsync::new(fd).build(),
        FileOp::Allocate { offset, len } => opcode::Fallocate::new(fd, len).offset(offset).build(),
    }
}
