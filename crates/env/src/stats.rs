//! What a shard counts about itself: turns, polls, stalls, I/O, mesh traffic.

use std::cell::Cell;

use crate::class::{CLASSES, Class};
use crate::io_history::{Ended, History};
use crate::io_kind::{IO_KINDS, IoKind};

/// Sums over the operations of one kind and class that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoStats {
    /// Operations ended.
    pub ops: u64,
    /// Of these, ended in an error.
    pub errors: u64,
    /// Bytes moved, or given back.
    pub bytes: u64,
    /// Sum of the time from submission to completion, in nanoseconds.
    pub device_ns: u64,
    /// Sum of the time spent in the shard's own queue before submission, in nanoseconds.
    pub queue_ns: u64,
    /// The longest submission to completion, in nanoseconds.
    pub longest_ns: u64,
}

/// What one class used of the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassStats {
    /// Times a task was polled.
    pub polls: u64,
    /// Time in these polls, in nanoseconds.
    pub busy_ns: u64,
    /// Polls longer than [`STALL`](crate::STALL).
    pub stalls: u64,
    /// The longest poll, in nanoseconds.
    pub longest_ns: u64,
    /// Tasks started.
    pub spawned: u64,
}

/// A snapshot of one shard's counters; they only grow, except the gauges named so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Turns of the loop.
    pub turns: u64,
    /// Times the shard went to sleep for want of work.
    pub sleeps: u64,
    /// Calls into the kernel's ring.
    pub ring_enters: u64,
    /// Entries handed to the ring.
    pub ring_submissions: u64,
    /// Wake-ups sent to sleeping shards.
    pub wakes_sent: u64,
    /// Wake-ups of local tasks that came from another thread.
    pub wakes_foreign: u64,
    /// Messages sent over the mesh.
    pub mesh_sent: u64,
    /// Messages received from the mesh.
    pub mesh_received: u64,
    /// Messages that found the ring to their shard full and waited in the sender's outbox.
    pub mesh_spilled: u64,
    /// Jobs given to helper threads.
    pub helper_jobs: u64,
    /// Gauge: disk operations in flight.
    pub io_in_flight: u64,
    /// The most disk operations that were in flight.
    pub io_in_flight_max: u64,
    /// Gauge: disk operations in the shard's own queue.
    pub io_queued: u64,
    /// The most disk operations that were queued.
    pub io_queued_max: u64,
    /// Gauge: live timers.
    pub timers: u64,
    /// Gauge: live tasks.
    pub tasks: u64,
    /// By [`Class`]: the CPU.
    pub classes: [ClassStats; CLASSES],
    /// By [`Class`], then [`IoKind`]: the disk.
    pub io: [[IoStats; IO_KINDS]; CLASSES],
}

impl Stats {
    /// The CPU use of one class.
    pub fn class(&self, class: Class) -> ClassStats {
        self.classes[class.index()]
    }

    /// The disk use of one class and kind.
    pub fn io(&self, class: Class, kind: IoKind) -> IoStats {
        self.io[class.index()][kind as usize]
    }
}

/// The live counters behind a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub turns: Cell<u64>,
    pub sleeps: Cell<u64>,
    pub ring_enters: Cell<u64>,
    pub ring_submissions: Cell<u64>,
    pub wakes_sent: Cell<u64>,
    pub wakes_foreign: Cell<u64>,
    pub mesh_sent: Cell<u64>,
    pub mesh_received: Cell<u64>,
    pub mesh_spilled: Cell<u64>,
    pub helper_jobs: Cell<u64>,
    pub io_in_flight: Cell<u64>,
    pub io_in_flight_max: Cell<u64>,
    pub io_queued: Cell<u64>,
    pub io_queued_max: Cell<u64>,
    pub classes: [Cell<ClassStats>; CLASSES],
    pub io: [[Cell<IoStats>; IO_KINDS]; CLASSES],
    pub history: History,
}

/// Adds to a counter.
pub(crate) fn bump(counter: &Cell<u64>, by: u64) {
    counter.set(counter.get().wrapping_add(by));
}

impl Counters {
    pub fn io_started(&self) {
        let now = self.io_in_flight.get() + 1;
        self.io_in_flight.set(now);
        self.io_in_flight_max.set(self.io_in_flight_max.get().max(now));
    }

    /// An operation that ended at `now_ns`.
    pub fn io_ended(&self, now_ns: u64, ended: &Ended) {
        self.io_in_flight.set(self.io_in_flight.get().saturating_sub(1));
        let cell = &self.io[ended.class.index()][ended.kind as usize];
        let mut io = cell.get();
        io.ops += 1;
        match ended.bytes {
            Some(bytes) => io.bytes += bytes,
            None => io.errors += 1,
        }
        io.queue_ns += ended.queue_ns;
        io.device_ns += ended.device_ns;
        io.longest_ns = io.longest_ns.max(ended.device_ns);
        cell.set(io);
        self.history.ended(now_ns, ended);
    }

    /// So many operations are at the device and in the queue.
    pub fn io_depth(&self, now_ns: u64, in_flight: usize, queued: usize) {
        let queued = queued as u64;
        self.io_queued.set(queued);
        self.io_queued_max.set(self.io_queued_max.get().max(queued));
        self.history.depth(now_ns, in_flight as u64, queued);
    }

    pub fn polled(&self, class: Class, took_ns: u64, stalled: bool) {
        let cell = &self.classes[class.index()];
        let mut c = cell.get();
        c.polls += 1;
        c.busy_ns += took_ns;
        c.stalls += u64::from(stalled);
        c.longest_ns = c.longest_ns.max(took_ns);
        cell.set(c);
    }

    pub fn spawned(&self, class: Class) {
        let cell = &self.classes[class.index()];
        let mut c = cell.get();
        c.spawned += 1;
        cell.set(c);
    }

    pub fn snapshot(&self, timers: u64, tasks: u64) -> Stats {
        let mut stats = Stats {
            turns: self.turns.get(),
            sleeps: self.sleeps.get(),
            ring_enters: self.ring_enters.get(),
            ring_submissions: self.ring_submissions.get(),
            wakes_sent: self.wakes_sent.get(),
            wakes_foreign: self.wakes_foreign.get(),
            mesh_sent: self.mesh_sent.get(),
            mesh_received: self.mesh_received.get(),
            mesh_spilled: self.mesh_spilled.get(),
            helper_jobs: self.helper_jobs.get(),
            io_in_flight: self.io_in_flight.get(),
            io_in_flight_max: self.io_in_flight_max.get(),
            io_queued: self.io_queued.get(),
            io_queued_max: self.io_queued_max.get(),
            timers,
            tasks,
            ..Stats::default()
        };
        for (out, cell) in stats.classes.iter_mut().zip(&self.classes) {
            *out = cell.get();
        }
        for (out, row) in stats.io.iter_mut().zip(&self.io) {
            for (out, cell) in out.iter_mut().zip(row) {
                *out = cell.get();
            }
        }
        stats
    }
}
