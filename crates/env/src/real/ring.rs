//! The io_uring of one shard: disk operations that own their buffers, readiness of sockets, and the
//! one place where an idle shard sleeps.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::StartError;
use super::file::{self, RealFile};
use super::pipe::RealPipe;
use crate::buf::Bytes;
use crate::class::Class;
use crate::file_op::FileOp;
use crate::io_history::Ended;
use crate::io_kind::IoKind;
use crate::io_queue::IoQueue;
use crate::stats::{Counters, bump};

/// `IORING_ENTER_GETEVENTS`, `_EXT_ARG`, `_NO_IOWAIT` (linux/io_uring.h).
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 8;
const ENTER_NO_IOWAIT: u32 = 128;

/// Top byte of `user_data`: what a completion is about.
const TAG_OP: u64 = 0;
const TAG_POLL: u64 = 1;
const TAG_WAKE: u64 = 2;
const TAG_SIGNAL: u64 = 3;
const TAG_NONE: u64 = 4;
const TAG_WAKE_OTHER: u64 = 5;
const TAG_SHIFT: u32 = 56;

/// `struct io_uring_getevents_arg` (linux/io_uring.h).
#[repr(C)]
struct GetEventsArg {
    sigmask: u64,
    sigmask_sz: u32,
    min_wait_usec: u32,
    ts: u64,
}

#[derive(Debug)]
enum OpState {
    Queued,
    InFlight,
    Done(i32),
}

/// A disk operation: it keeps its file open and its buffer alive until the kernel is done.
#[expect(dead_code, reason = "the file is held open, not looked at")]
struct Op {
    state: OpState,
    abandoned: bool,
    waker: Option<Waker>,
    buf: Bytes,
    file: Rc<RealFile>,
    /// Where the bytes go, if not into the buffer.
    pipe: Option<Rc<RealPipe>>,
    entry: Option<squeue::Entry>,
    class: Class,
    kind: IoKind,
    queued_ns: u64,
    submitted_ns: u64,
}

/// Readiness of one descriptor, as its edges were reported.
#[derive(Debug, Default)]
struct PollState {
    fd: RawFd,
    generation: u32,
    readable: bool,
    writable: bool,
    hung_up: bool,
    readers: Vec<Waker>,
    writers: Vec<Waker>,
}

/// Names a descriptor under watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollKey {
    slot: u32,
    generation: u32,
}

impl PollKey {
    fn user_data(self) -> u64 {
        (TAG_POLL << TAG_SHIFT)
            | (u64::from(self.generation & 0x00ff_ffff) << 32)
            | u64::from(self.slot)
    }
}

/// Which way a descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// What happened besides wake-ups of tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Events {
    pub signal: bool,
    /// The kernel did not send a message that was to wake another shard.
    pub unsent: bool,
}

pub(crate) struct Ring {
    ring: RefCell<IoUring>,
    ops: RefCell<slab::Slab<Op>>,
    polls: RefCell<slab::Slab<PollState>>,
    queue: RefCell<IoQueue<usize>>,
    reaped: RefCell<Vec<(u64, i32, u32)>>,
    generation: Cell<u32>,
    no_iowait: bool,
    taskrun_flag: bool,
    wake_fd: RawFd,
    signal_fd: Cell<Option<RawFd>>,
    /// Does the kernel send messages to other rings?
    has_messages: Cell<bool>,
}

/// Opcodes that we use: all there since Linux 5.7.
const OPCODES: [(u8, &str); 8] = [
    (opcode::Read::CODE, "READ"),
    (opcode::Write::CODE, "WRITE"),
    (opcode::Fsync::CODE, "FSYNC"),
    (opcode::Fallocate::CODE, "FALLOCATE"),
    (opcode::SyncFileRange::CODE, "SYNC_FILE_RANGE"),
    (opcode::Splice::CODE, "SPLICE"),
    (opcode::PollAdd::CODE, "POLL_ADD"),
    (opcode::AsyncCancel::CODE, "ASYNC_CANCEL"),
];

impl Ring {
    pub fn new(entries: u32, depth: usize, wake_fd: RawFd) -> Result<Self, StartError> {
        let (ring, taskrun_flag) = build(entries)?;
        let mut probe = io_uring::Probe::new();
        ring.submitter().register_probe(&mut probe).map_err(StartError::Ring)?;
        for (code, name) in OPCODES {
            if !probe.is_supported(code) {
                return Err(StartError::Opcode(name));
            }
        }
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            return Err(StartError::Opcode("ENTER with a timeout"));
        }
        let no_iowait = ring.params().is_feature_no_iowait();
        let ring = Self {
            ring: RefCell::new(ring),
            ops: RefCell::default(),
            polls: RefCell::default(),
            queue: RefCell::new(IoQueue::new(depth)),
            reaped: RefCell::default(),
            generation: Cell::new(0),
            no_iowait,
            taskrun_flag,
            wake_fd,
            signal_fd: Cell::new(None),
            has_messages: Cell::new(probe.is_supported(opcode::MsgRingData::CODE)),
        };
        ring.watch_internal(wake_fd, TAG_WAKE);
        Ok(ring)
    }

    /// Its descriptor, for other shards' messages.
    pub fn descriptor(&self) -> RawFd {
        self.ring.borrow().as_raw_fd()
    }

    /// Watches the descriptor that reports SIGTERM and SIGINT.
    pub fn watch_signals(&self, fd: RawFd) {
        self.signal_fd.set(Some(fd));
        self.watch_internal(fd, TAG_SIGNAL);
    }

    fn watch_internal(&self, fd: RawFd, tag: u64) {
        let entry = opcode::PollAdd::new(types::Fd(fd), libc::POLLIN as u32)
            .multi(true)
            .build()
            .user_data(tag << TAG_SHIFT);
        self.push(&entry);
    }

    /// Wakes the shard of another ring with a message, which leaves with what else this turn hands
    /// over: no system call of its own. False where the kernel has none.
    pub fn wake_other(&self, ring: RawFd) -> bool {
        if self.has_messages.get() {
            let to = types::Fd(ring);
            let entry = opcode::MsgRingData::new(to, 0, TAG_NONE << TAG_SHIFT, None).build();
            let entry = entry.flags(squeue::Flags::SKIP_SUCCESS);
            self.push(&entry.user_data(TAG_WAKE_OTHER << TAG_SHIFT));
        }
        self.has_messages.get()
    }

    #[expect(unsafe_code, reason = "the io_uring seam")]
    fn push(&self, entry: &squeue::Entry) {
        let mut ring = self.ring.borrow_mut();
        loop {
            // SAFETY: an entry points only into an `Op` of `self.ops` (its buffer), which stays
            // until the completion arrives, or into nothing; descriptors live as long as the `Op`
            // or are taken off by an ASYNC_CANCEL behind this entry in the same queue; other
            // shards' rings live until no shard has a turn any more.
            if unsafe { ring.submission().push(entry) }.is_ok() {
                return;
            }
            // The queue is full: hand it over. EBUSY and EINTR pass; the loop tries again.
            let _ = ring.submit();
        }
    }

    // ---- disk operations

    /// Starts an operation.
    pub fn start(
        &self,
        counters: &Counters,
        (file, pipe): (Rc<RealFile>, Option<Rc<RealPipe>>),
        buf: Bytes,
        class: Class,
        op: FileOp,
        now_ns: u64,
    ) -> usize {
        let mut ops = self.ops.borrow_mut();
        let slot = ops.vacant_entry();
        let key = slot.key();
        let fd = file.as_raw_fd();
        let cost = op.cost(buf.as_slice().len());
        let started = slot.insert(Op {
            state: OpState::Queued,
            abandoned: false,
            waker: None,
            buf,
            file,
            pipe,
            entry: None,
            class,
            kind: op.kind(),
            queued_ns: now_ns,
            submitted_ns: now_ns,
        });
        // The heap memory of a buffer does not move when its owner does.
        let bytes = started.buf.as_mut_slice();
        let pipe = started.pipe.as_ref().map_or(-1, |pipe| pipe.writer());
        let entry = file::entry(op, (fd, pipe), bytes.as_mut_ptr(), bytes.len());
        started.entry = Some(entry.user_data((TAG_OP << TAG_SHIFT) | key as u64));
        drop(ops);
        self.queue.borrow_mut().push(class, cost, key);
        self.pump(counters, now_ns);
        key
    }

    /// Submits from the queue while the device has room.
    fn pump(&self, counters: &Counters, now_ns: u64) {
        loop {
            let next = self.queue.borrow_mut().next();
            let Some((class, key)) = next else { break };
            let mut ops = self.ops.borrow_mut();
            let Some(op) = ops.get_mut(key) else { continue };
            if op.abandoned && op.kind == IoKind::Read {
                let op = ops.remove(key);
                drop(ops);
                drop(op);
                self.queue.borrow_mut().ended(class);
                continue;
            }
            op.state = OpState::InFlight;
            op.submitted_ns = now_ns;
            let entry = op.entry.take();
            drop(ops);
            counters.io_started();
            if let Some(entry) = entry {
                self.push(&entry);
            }
        }
        let queue = self.queue.borrow();
        counters.io_depth(now_ns, queue.in_flight(), queue.waiting());
    }

    /// The operation's result and buffer, once the kernel is done with both.
    pub fn poll_op(&self, key: usize, cx: &mut Context<'_>) -> Poll<(i32, Bytes)> {
        let mut ops = self.ops.borrow_mut();
        let Some(op) = ops.get_mut(key) else {
            return Poll::Ready((-libc::ECANCELED, Bytes::default()));
        };
        if let OpState::Done(result) = op.state {
            let op = ops.remove(key);
            drop(ops);
            return Poll::Ready((result, op.buf));
        }
        op.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Nobody waits for the operation any more. What is in flight ends first.
    pub fn abandon(&self, key: usize) {
        let mut ops = self.ops.borrow_mut();
        let Some(op) = ops.get_mut(key) else { return };
        let gone = if matches!(op.state, OpState::Done(_)) {
            (Some(ops.remove(key)), None)
        } else {
            op.abandoned = true;
            (None, op.waker.take())
        };
        drop(ops);
        drop(gone);
    }

    // ---- readiness

    /// Watches a descriptor. `ready`: assumed ready both ways until a call says otherwise.
    pub fn watch(&self, fd: RawFd, ready: bool) -> PollKey {
        let generation = self.generation.get().wrapping_add(1) & 0x00ff_ffff;
        self.generation.set(generation);
        let state =
            PollState { fd, generation, readable: ready, writable: ready, ..PollState::default() };
        let slot = self.polls.borrow_mut().insert(state) as u32;
        let key = PollKey { slot, generation };
        self.arm(fd, key);
        key
    }

    fn arm(&self, fd: RawFd, key: PollKey) {
        let events = (libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP) as u32;
        let entry = opcode::PollAdd::new(types::Fd(fd), events)
            .multi(true)
            .build()
            .user_data(key.user_data());
        self.push(&entry);
    }

    /// Ends the watch. The caller may close the descriptor at once.
    pub fn unwatch(&self, key: PollKey) {
        let state = {
            let mut polls = self.polls.borrow_mut();
            match polls.get(key.slot as usize) {
                Some(state) if state.generation == key.generation => {
                    polls.remove(key.slot as usize)
                }
                _ => return,
            }
        };
        // Not POLL_REMOVE: that gives up (EALREADY) while the poll has an event to report, and the
        // poll would keep the socket open for good.
        let entry = opcode::AsyncCancel::new(key.user_data()).build();
        self.push(&entry.user_data(TAG_NONE << TAG_SHIFT));
        state.readers.into_iter().chain(state.writers).for_each(Waker::wake);
    }

    pub fn is_ready(&self, key: PollKey, direction: Direction) -> bool {
        self.with_poll(key, |state| match direction {
            Direction::Read => state.readable,
            Direction::Write => state.writable,
        })
        .unwrap_or(true)
    }

    /// A call found the descriptor not ready (or drained it). `drained`: known from a short read,
    /// so that an end of stream already reported must stay visible.
    pub fn not_ready(&self, key: PollKey, direction: Direction, drained: bool) {
        self.with_poll(key, |state| match direction {
            Direction::Read if drained && state.hung_up => {}
            Direction::Read => state.readable = false,
            Direction::Write => state.writable = false,
        });
    }

    pub fn poll_ready(&self, key: PollKey, direction: Direction, cx: &mut Context<'_>) -> Poll<()> {
        self.with_poll(key, |state| {
            let (ready, wakers) = match direction {
                Direction::Read => (state.readable, &mut state.readers),
                Direction::Write => (state.writable, &mut state.writers),
            };
            if ready {
                return Poll::Ready(());
            }
            if !wakers.iter().any(|w| w.will_wake(cx.waker())) {
                wakers.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .unwrap_or(Poll::Ready(()))
    }

    fn with_poll<T>(&self, key: PollKey, f: impl FnOnce(&mut PollState) -> T) -> Option<T> {
        let mut polls = self.polls.borrow_mut();
        let state = polls.get_mut(key.slot as usize)?;
        (state.generation == key.generation).then(|| f(state))
    }

    // ---- the loop's side

    /// Would a turn bring something, as far as that is seen without asking the kernel?
    pub fn has_news(&self) -> bool {
        let mut ring = self.ring.borrow_mut();
        ring.submission().taskrun() || !ring.completion().is_empty()
    }

    /// Hands entries over and takes completions; sleeps up to `wait` if given. Enters the kernel
    /// only when there is a reason to.
    pub fn turn(
        &self,
        counters: &Counters,
        wait: Option<std::time::Duration>,
        now: &dyn Fn() -> u64,
    ) -> Events {
        let (pending, owed) = {
            let mut ring = self.ring.borrow_mut();
            let sq = ring.submission();
            (sq.len(), sq.taskrun() || sq.cq_overflow())
        };
        if pending > 0 || owed || !self.taskrun_flag || wait.is_some_and(|w| !w.is_zero()) {
            bump(&counters.ring_enters, 1);
            bump(&counters.ring_submissions, pending as u64);
            self.enter(pending, wait);
        }
        self.reap(counters, now)
    }

    #[expect(unsafe_code, reason = "the io_uring seam")]
    fn enter(&self, pending: usize, wait: Option<std::time::Duration>) {
        let wait = wait.unwrap_or_default();
        let timespec = types::Timespec::new().sec(wait.as_secs()).nsec(wait.subsec_nanos());
        let arg = GetEventsArg {
            sigmask: 0,
            sigmask_sz: 0,
            min_wait_usec: 0,
            ts: std::ptr::from_ref(&timespec) as u64,
        };
        let mut flags = ENTER_GETEVENTS | ENTER_EXT_ARG;
        if self.no_iowait {
            flags |= ENTER_NO_IOWAIT;
        }
        let want = u32::from(!wait.is_zero());
        let ring = self.ring.borrow();
        // SAFETY: `arg` and the timespec that it points to outlive the call, their layout is the
        // kernel's. Buffers of submitted entries: see `push`.
        // Errors: ETIME is the timeout; EINTR, EAGAIN, EBUSY pass, and the loop comes again.
        let _ = unsafe { ring.submitter().enter(pending as u32, want, flags, Some(&arg)) };
    }

    fn reap(&self, counters: &Counters, now: &dyn Fn() -> u64) -> Events {
        let mut reaped = self.reaped.take();
        reaped.extend(
            self.ring.borrow_mut().completion().map(|c| (c.user_data(), c.result(), c.flags())),
        );
        let mut events = Events::default();
        if reaped.is_empty() {
            self.reaped.replace(reaped);
            return events;
        }
        let now_ns = now();
        for (user_data, result, flags) in reaped.drain(..) {
            let more = cqueue::more(flags);
            match user_data >> TAG_SHIFT {
                TAG_OP => {
                    self.op_done(counters, (user_data & 0xffff_ffff) as usize, result, now_ns)
                }
                TAG_POLL => self.poll_event(user_data, result, more),
                TAG_WAKE if !more => self.watch_internal(self.wake_fd, TAG_WAKE),
                TAG_SIGNAL => {
                    events.signal = true;
                    if let (false, Some(fd)) = (more, self.signal_fd.get()) {
                        self.watch_internal(fd, TAG_SIGNAL);
                    }
                }
                // only what failed is told
                TAG_WAKE_OTHER => {
                    self.has_messages.set(false);
                    events.unsent = true;
                }
                _ => {}
            }
        }
        self.reaped.replace(reaped);
        if self.queue.borrow().waiting() > 0 {
            self.pump(counters, now_ns);
        }
        events
    }

    fn op_done(&self, counters: &Counters, key: usize, result: i32, now_ns: u64) {
        let mut ops = self.ops.borrow_mut();
        let Some(op) = ops.get_mut(key) else { return };
        op.state = OpState::Done(result);
        self.queue.borrow_mut().ended(op.class);
        let ended = Ended {
            class: op.class,
            kind: op.kind,
            bytes: u64::try_from(result).ok(),
            queue_ns: op.submitted_ns.saturating_sub(op.queued_ns),
            device_ns: now_ns.saturating_sub(op.submitted_ns),
        };
        counters.io_ended(now_ns, &ended);
        if op.abandoned {
            let op = ops.remove(key);
            drop(ops);
            drop(op);
            return;
        }
        let waker = op.waker.take();
        drop(ops);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll_event(&self, user_data: u64, result: i32, more: bool) {
        let slot = (user_data & 0xffff_ffff) as u32;
        let generation = ((user_data >> 32) & 0x00ff_ffff) as u32;
        let key = PollKey { slot, generation };
        let Some((fd, gone, wakers)) = self.with_poll(key, |state| {
            let mut wakers = Vec::new();
            // An error of the poll itself: let the next call on the socket tell.
            let events = if result < 0 { libc::POLLERR } else { result as libc::c_short };
            let gone = events & (libc::POLLERR | libc::POLLHUP) != 0;
            if gone || events & libc::POLLRDHUP != 0 {
                state.hung_up = true;
            }
            if state.hung_up || events & libc::POLLIN != 0 {
                state.readable = true;
                wakers.append(&mut state.readers);
            }
            if gone || events & libc::POLLOUT != 0 {
                state.writable = true;
                wakers.append(&mut state.writers);
            }
            (state.fd, gone, wakers)
        }) else {
            return;
        };
        // Both ways closed, it stays ready for good: there is nothing left to watch.
        if !more && !gone {
            self.arm(fd, key);
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until the kernel has let go of every buffer.
    pub fn drain(&self, counters: &Counters) {
        let is_busy = || {
            let queue = self.queue.borrow();
            queue.in_flight() + queue.waiting() > 0
        };
        while is_busy() {
            self.turn(counters, Some(std::time::Duration::from_millis(10)), &|| 0);
        }
    }
}

/// The ring with as many of the flags that suit one thread as the kernel has.
fn build(entries: u32) -> Result<(IoUring, bool), StartError> {
    let mut last = None;
    for step in 0..3 {
        let mut builder = IoUring::builder();
        builder.setup_clamp().setup_cqsize(entries.saturating_mul(4));
        match step {
            0 => {
                builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            }
            1 => {
                builder.setup_coop_taskrun().setup_taskrun_flag();
            }
            _ => {}
        }
        match builder.build(entries) {
            Ok(ring) => return Ok((ring, step < 2)),
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => last = Some(e),
            Err(e) => return Err(StartError::Ring(e)),
        }
    }
    Err(StartError::Ring(last.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))))
}
