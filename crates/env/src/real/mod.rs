//! The make that runs: one pinned thread and one io_uring per shard.
//!
//! A shard that sleeps is woken by a message of io_uring (`Ring::wake_other`). The sender hands it
//! over at its turn's end with its other operations. A kernel before 5.18 has none, and an eventfd
//! does it.

pub(crate) mod driver;
pub(crate) mod file;
pub(crate) mod files;
pub(crate) mod helper;
mod lookup;
pub(crate) mod pipe;
pub(crate) mod ring;
pub(crate) mod sockets;
mod spool;
mod sys;

pub use lookup::{addresses_of, interfaces};

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;

use crate::class::Class;
use crate::env::{Env, Make, Node};
use crate::executor::{Bell, Executor, Meta, Remote, Work};
use crate::mesh::{self, Mesh};
use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::stats::bump;
use driver::{Driver, RandomPool};
use helper::{Pool, Standing};
use ring::Ring;

/// A turn of so many nanoseconds ends where the ring has something to tell: who has just asked for
/// little is not to wait for all who ask for much.
const TURN_LEAST_NS: u64 = 100_000;
/// How long a shard's thread wants to keep a CPU that others wait for: little, to have it at once
/// when it wakes.
const SHARD_TURN: Duration = Duration::from_micros(200);

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The kernel refused an io_uring.
    #[error(
        "io_uring is not available ({0}): allow it (sysctl kernel.io_uring_disabled=0; in a \
         container, a seccomp profile that permits io_uring_setup, io_uring_enter and \
         io_uring_register; enough RLIMIT_MEMLOCK on kernels before 5.12)"
    )]
    Ring(#[source] io::Error),
    /// The kernel's io_uring is too old.
    #[error("this kernel's io_uring lacks {0}: run Linux 5.13 or newer")]
    Opcode(&'static str),
    /// A thread, an eventfd or the signal mask could not be had.
    #[error("cannot start {0}: {1}")]
    System(&'static str, #[source] io::Error),
}

impl From<StartError> for io::Error {
    fn from(e: StartError) -> Self {
        io::Error::other(e)
    }
}

/// How a node runs.
#[derive(Clone, Debug)]
pub struct RealOptions {
    /// Threads, each with its own executor and ring.
    pub shards: usize,
    /// Bind shard `n` to the `n`-th CPU that the process may use.
    pub pin: bool,
    /// Take SIGTERM and SIGINT, and resolve [`Env::terminated`] on them; take SIGHUP, and resolve
    /// [`Env::hung_up`] on it.
    pub signals: bool,
    /// Entries of each shard's submission queue.
    pub ring_entries: u32,
    /// Disk operations in flight per shard; more wait in the shard's queue, by class.
    pub io_depth: usize,
    /// Helper threads of the node for work that cannot yield.
    pub helpers: usize,
    /// Helper threads of the node for file operations that block (open, rename, remove, ...).
    pub file_helpers: usize,
    /// Entries of the ring from each shard to each other.
    pub mesh_entries: usize,
    /// Tests only: writes down what is done to the disk.
    pub recorder: Option<Recorder>,
    /// Tests only: the kernel refuses the messages that are to wake other shards.
    pub refuse_messages: bool,
}

impl Default for RealOptions {
    fn default() -> Self {
        Self {
            shards: 1,
            pin: false,
            signals: true,
            ring_entries: 1024,
            io_depth: 16,
            helpers: 2,
            file_helpers: 2,
            mesh_entries: 4096,
            recorder: None,
            refuse_messages: false,
        }
    }
}

struct EventFd(OwnedFd);

impl Bell for EventFd {
    fn ring(&self) {
        sys::eventfd_ring(&self.0);
    }
}

/// Runs `f`; a panic in it ends the process.
pub(crate) fn abort_on_panic<T>(f: impl FnOnce() -> T) -> T {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            // The panic's message is out already: the hook printed it.
            std::process::abort();
        }
    }
    let bomb = Bomb;
    let value = f();
    std::mem::forget(bomb);
    value
}

/// What the threads of a starting node share.
struct Start<E> {
    error: Mutex<Option<E>>,
    /// Has a shard no ring? Said before the barrier alone: behind it all shards must find the same.
    lacks_a_ring: AtomicBool,
    barrier: Barrier,
}

impl<E> Start<E> {
    fn fail(&self, error: E) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Starts a node: calls `main` on the thread of each shard, and returns when all have returned.
///
/// The first error wins, and the other shards see [`Env::terminated`]. A panic on any shard ends
/// the process. When a shard's `main` returns, its remaining tasks are dropped, after the other
/// shards' mains returned too.
pub fn run<M, F, Fut, E>(options: RealOptions, main: F) -> Result<(), E>
where
    M: Send + 'static,
    F: Fn(Env, Mesh<M>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + 'static,
    E: From<StartError> + Send + 'static,
{
    let shards = options.shards.max(1);
    let signals = match options.signals {
        true => Some(sys::Signals::block().map_err(|e| StartError::System("signals", e))?),
        false => None,
    };
    let mut bells = Vec::with_capacity(shards);
    let mut remotes = Vec::with_capacity(shards);
    for _ in 0..shards {
        let fd = sys::eventfd().map_err(|e| StartError::System("an eventfd", e))?;
        bells.push(fd.as_raw_fd());
        remotes.push(Arc::new(Remote::new(Some(Box::new(EventFd(fd))))));
    }
    let pool = |name, threads, standing| {
        Pool::new(name, threads, standing)
            .map(Arc::new)
            .map_err(|e| StartError::System("helper threads", e))
    };
    let files = pool("files", options.file_helpers, Standing::Equal)?;
    let helpers = pool("helper", options.helpers, Standing::Behind)?;
    let spare = pool("spare", 1, Standing::Last)?;
    let node = Arc::new(Node::new(remotes));
    let start = Arc::new(Start {
        error: Mutex::new(None),
        lacks_a_ring: AtomicBool::new(false),
        barrier: Barrier::new(shards),
    });
    let base = std::time::Instant::now();
    let main = Arc::new(main);
    let options = &options;
    std::thread::scope(|scope| {
        let links = mesh::real_links::<M>(shards, options.mesh_entries);
        for (shard, (link, bell)) in links.into_iter().zip(bells).enumerate() {
            let (node, start, main) = (node.clone(), start.clone(), main.clone());
            let (files, helpers, spare) = (files.clone(), helpers.clone(), spare.clone());
            let signal_fd = signals.as_ref().filter(|_| shard == 0).map(|s| s.fd.as_raw_fd());
            let body = move || {
                if options.pin {
                    // Not worth a start: a container may forbid it.
                    let _ = sys::pin_to(shard);
                }
                // Nor is this: a kernel may not know it.
                let _ = sys::ask_for_short_turns(SHARD_TURN);
                let ring = Ring::new(options.ring_entries, options.io_depth, bell);
                let ring = ring.map_err(|e| {
                    start.lacks_a_ring.store(true, Ordering::Release);
                    start.fail(E::from(e));
                });
                if let Ok(ring) = &ring {
                    // what is no ring takes no messages
                    let to = if options.refuse_messages { bell } else { ring.descriptor() };
                    let _ = node.remotes[shard].ring.set(to);
                }
                start.barrier.wait();
                let is_whole = !start.lacks_a_ring.load(Ordering::Acquire);
                let (Ok(ring), true) = (ring, is_whole) else { return };
                if let Some(fd) = signal_fd {
                    ring.watch_signals(fd);
                }
                let recorder = options.recorder.clone();
                let random = RandomPool::default();
                let held_up_until = Cell::new(0);
                let driver =
                    Driver { ring, base, files, helpers, spare, recorder, random, held_up_until };
                let executor = Executor::new(node.remotes[shard].clone());
                let env = Env::new(executor, Make::Real(driver), node, shard, shards);
                shard_main(&env, &start, link, main.as_ref(), signal_fd);
            };
            let thread = std::thread::Builder::new().name(format!("shard-{shard}"));
            let spawned = thread.spawn_scoped(scope, move || abort_on_panic(body));
            if let Err(e) = spawned {
                // The barrier would never open: nothing can be told from a half-started node.
                eprintln!("cannot start the thread of shard {shard}: {e}");
                std::process::abort();
            }
        }
    });
    let error = start.error.lock().unwrap_or_else(PoisonError::into_inner).take();
    error.map_or(Ok(()), Err)
}

fn shard_main<M, F, Fut, E>(
    env: &Env,
    start: &Arc<Start<E>>,
    link: mesh::RealLink<M>,
    main: &F,
    signal_fd: Option<i32>,
) where
    M: Send + 'static,
    F: Fn(Env, Mesh<M>) -> Fut,
    Fut: Future<Output = Result<(), E>> + 'static,
    E: Send + 'static,
{
    let mesh = Mesh::real(env, link);
    let done = Rc::new(Cell::new(false));
    let future = main(env.clone(), mesh.clone());
    let (flag, ending, node) = (done.clone(), start.clone(), env.0.node.clone());
    env.spawn(Class::Admin, async move {
        if let Err(e) = future.await {
            ending.fail(e);
            node.terminate();
        }
        flag.set(true);
    });
    // Serve on while another shard's main runs: it may still ask us something.
    let everyone = &env.0.node;
    let mut counted = false;
    while !env.0.node.all_done() {
        if done.get() && !counted {
            counted = true;
            everyone.one_done();
            continue;
        }
        turn(env, signal_fd);
    }
    env.0.exec.close();
    drop(mesh);
    if let Make::Real(driver) = &env.0.make {
        driver.ring.drain(&env.0.counters);
    }
    start.barrier.wait();
}

/// One turn of the loop: take what the ring and the mesh brought, run tasks, flush, hand over, and
/// sleep if there is nothing to do.
fn turn(env: &Env, signal_fd: Option<i32>) {
    let shard = &env.0;
    let Make::Real(driver) = &shard.make else { return };
    shard.exec.start_turn();
    shard.fire_timers();
    let ran = shard.exec.run_turn(&RealWork { env, driver }, &shard.counters);
    // Sends of this turn leave in one batch.
    shard.flush_mesh();
    let remote = shard.exec.remote();
    let mut wait = None;
    if !ran && !shard.exec.is_ready() {
        remote.going_to_sleep();
        if shard.has_foreign_work() {
            remote.awake();
        } else {
            bump(&shard.counters.sleeps, 1);
            wait = Some(match shard.timers.next_deadline() {
                Some(deadline) => deadline.since(env.now()),
                None => Duration::from_secs(3600),
            });
        }
    }
    let events = driver.ring.turn(&shard.counters, wait, &|| driver.now_ns());
    remote.awake();
    if events.unsent {
        shard.node.remotes.iter().for_each(|other| other.ring_bell());
    }
    if let (true, Some(fd)) = (events.signal, signal_fd) {
        let taken = sys::Signals::take(fd);
        if taken.ends {
            shard.node.terminate();
        }
        if taken.hangs_up {
            shard.hang_up();
        }
    }
}

struct RealWork<'a> {
    env: &'a Env,
    driver: &'a Driver,
}

impl Work for RealWork<'_> {
    fn now(&self) -> u64 {
        self.driver.now_ns()
    }

    fn rng(&self) -> Option<&Rng> {
        None
    }

    fn poll_starts(&self, _: Meta, now: u64) {
        self.env.0.slice_start.set(now);
    }

    fn poll_ended(&self, _: Meta) -> u64 {
        self.driver.now_ns()
    }

    fn cut_turn(&self, lasted: u64, is_answered: bool) -> bool {
        // what other shards want is news, too
        let has_news = || self.driver.ring.has_news() || self.env.0.has_foreign_work();
        is_answered || (lasted > TURN_LEAST_NS && has_news())
    }
}

pub use spool::{AppendFile, BlockingFiles, RandomFile, Spool, SpoolEnd};
pub use sys::{ClockKept, FileSystem, clock_kept, file_system_of};
pub(crate) use sys::{disk_space, forget_pages};
