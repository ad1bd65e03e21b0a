//! [`Env`]: what a shard knows of the outside.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::class::Class;
use crate::executor::{Executor, HookGuard, Remote, Task};
use crate::io_history::IoPattern;
use crate::real::driver::{self, Driver};
use crate::sim::port::Port;
use crate::slice::{BULK_SLICE, SLICE};
use crate::stats::{Counters, Stats, bump};
use crate::sync::Notify;
use crate::time::Instant;
use crate::timer::{TimerKey, Timers};

/// The outside of one shard: clock, randomness, tasks, timers, files, sockets. Cheap to clone,
/// bound to its thread.
#[derive(Clone)]
pub struct Env(pub(crate) Rc<Shard>);

/// Which world is outside.
#[expect(clippy::large_enum_variant, reason = "one per shard, never moved")]
pub(crate) enum Make {
    Real(Driver),
    Sim(Port),
}

/// One shard.
pub(crate) struct Shard {
    pub exec: Executor,
    pub timers: Timers,
    pub counters: Counters,
    pub make: Make,
    pub node: Arc<Node>,
    pub shard: usize,
    pub shards: usize,
    /// When the poll that runs now began, in monotonic nanoseconds.
    pub slice_start: Cell<u64>,
    terminated: Notify,
    told_terminated: Cell<bool>,
    hung_up: Notify,
    was_hung_up: Cell<bool>,
    /// Set by the mesh: sends what the turn left in the outboxes; looks into the rings.
    pub mesh: std::cell::OnceCell<MeshHooks>,
}

/// What the loop asks of the mesh, whose message type it does not know.
pub(crate) struct MeshHooks {
    pub flush: Box<dyn Fn()>,
    pub has_work: Box<dyn Fn() -> bool>,
}

/// What the shards of one node share.
pub(crate) struct Node {
    /// The last unique microsecond given out.
    pub unique: AtomicI64,
    /// The wall clock counts for unique microseconds only up to here.
    pub unique_ceiling: AtomicI64,
    pub terminated: AtomicBool,
    pub remotes: Vec<Arc<Remote>>,
    pub done: AtomicUsize,
}

impl Node {
    pub fn new(remotes: Vec<Arc<Remote>>) -> Self {
        Self {
            unique: AtomicI64::new(0),
            unique_ceiling: AtomicI64::new(i64::MAX),
            terminated: AtomicBool::new(false),
            remotes,
            done: AtomicUsize::new(0),
        }
    }

    /// Asks every shard to end.
    pub fn terminate(&self) {
        self.terminated.store(true, Ordering::Release);
        self.wake_all();
    }

    fn wake_all(&self) {
        for remote in &self.remotes {
            remote.wake();
        }
    }

    pub fn one_done(&self) {
        self.done.fetch_add(1, Ordering::AcqRel);
        self.wake_all();
    }

    pub fn all_done(&self) -> bool {
        self.done.load(Ordering::Acquire) >= self.remotes.len()
    }
}

/// A single poll longer than this counts as a stall of its class.
pub const STALL: Duration = Duration::from_nanos(crate::executor::STALL_NS);

impl Env {
    pub(crate) fn new(
        exec: Executor,
        make: Make,
        node: Arc<Node>,
        shard: usize,
        shards: usize,
    ) -> Self {
        Self(Rc::new(Shard {
            exec,
            timers: Timers::default(),
            counters: Counters::default(),
            make,
            node,
            shard,
            shards,
            slice_start: Cell::new(0),
            terminated: Notify::new(),
            told_terminated: Cell::new(false),
            hung_up: Notify::new(),
            was_hung_up: Cell::new(false),
            mesh: std::cell::OnceCell::new(),
        }))
    }

    // ---- identity

    /// Number of this shard, from 0.
    pub fn shard(&self) -> usize {
        self.0.shard
    }

    /// Shards of this node.
    pub fn shards(&self) -> usize {
        self.0.shards
    }

    // ---- time

    /// Monotonic time.
    pub fn now(&self) -> Instant {
        match &self.0.make {
            Make::Real(driver) => Instant::from_nanos(driver.now_ns()),
            Make::Sim(port) => Instant::from_nanos(port.now_ns()),
        }
    }

    /// Monotonic time when the current poll began: no system call, good enough for deadlines.
    pub fn turn_now(&self) -> Instant {
        Instant::from_nanos(self.0.slice_start.get())
    }

    /// The wall clock, in microseconds since 1970. It may jump both ways.
    pub fn unix_micros(&self) -> i64 {
        match &self.0.make {
            Make::Real(_) => {
                match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
                    Ok(d) => i64::try_from(d.as_micros()).unwrap_or(i64::MAX),
                    Err(e) => -i64::try_from(e.duration().as_micros()).unwrap_or(i64::MAX),
                }
            }
            Make::Sim(port) => port.unix_micros(),
        }
    }

    /// A microsecond since 1970 that no shard of this node was given before: the wall clock, or one
    /// more than the last when the clock stands still, behind or above the ceiling.
    pub fn unique_micros(&self) -> i64 {
        let wall = self.unix_micros();
        let wall = match wall <= self.0.node.unique_ceiling.load(Ordering::Relaxed) {
            true => wall,
            false => i64::MIN,
        };
        let next = |last: i64| wall.max(last.saturating_add(1));
        let last = self
            .0
            .node
            .unique
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        match last {
            Ok(last) | Err(last) => next(last),
        }
    }

    /// Makes every later [`Env::unique_micros`] larger than `floor`: what a node gave out before
    /// its restart stays unique.
    pub fn raise_unique_floor(&self, floor: i64) {
        self.0.node.unique.fetch_max(floor, Ordering::Relaxed);
    }

    /// Lets [`Env::unique_micros`] follow the wall clock up to `ceiling`, which the node has noted
    /// as perhaps given out; while the clock stands above it, a microsecond is one more than the
    /// last.
    pub fn set_unique_ceiling(&self, ceiling: i64) {
        self.0.node.unique_ceiling.store(ceiling, Ordering::Relaxed);
    }

    /// The last unique microsecond given out, or the floor.
    pub fn unique_floor(&self) -> i64 {
        self.0.node.unique.load(Ordering::Relaxed)
    }

    /// By how much the wall clock stands behind the last unique microsecond: more than a few
    /// microseconds means that the clock was set back (or more than one timestamp per microsecond
    /// was drawn for a while).
    pub fn clock_behind(&self) -> Duration {
        let behind = self.unique_floor().saturating_sub(self.unix_micros());
        Duration::from_micros(u64::try_from(behind).unwrap_or(0))
    }

    // ---- randomness

    /// Fills `out` with randomness fit for secrets (the world's dice, in `sim`).
    pub fn fill_random(&self, out: &mut [u8]) {
        match &self.0.make {
            Make::Real(_) => driver::fill_random(out),
            Make::Sim(port) => port.world.rng.fill(out),
        }
    }

    /// 64 random bits, from the same source.
    pub fn random_u64(&self) -> u64 {
        match &self.0.make {
            Make::Real(driver) => driver.random.next(),
            Make::Sim(port) => port.world.rng.next(),
        }
    }

    // ---- tasks

    /// Runs a future on this shard to its end, or to the shard's.
    pub fn spawn<F: Future<Output = ()> + 'static>(&self, class: Class, future: F) {
        self.spawn_task(class, future).detach();
    }

    /// Runs a future on this shard; dropping the [`Task`] cancels it.
    pub fn spawn_task<F>(&self, class: Class, future: F) -> Task<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.0.counters.spawned(class);
        self.0.exec.spawn_task(class, future)
    }

    /// Class of the task that runs now; `Background` outside of any.
    pub fn class(&self) -> Class {
        self.0.exec.current().unwrap_or(Class::Background)
    }

    /// Calls `hook` at the end of every turn of the loop in which a task ran, before the ring gets
    /// its entries: sockets and logs batch their writes there. If hooks wake tasks, these may run
    /// in the same turn, and the hooks again after them. One hook with a list of what is dirty is
    /// cheaper than a hook for each.
    pub fn at_turn_end(&self, hook: impl Fn() + 'static) -> HookGuard {
        self.0.exec.at_turn_end(hook)
    }

    /// True when the task has used up its [`SLICE`] or [`BULK_SLICE`]: loops over partitions, rows
    /// or chunks ask this and then [`Env::yield_now`]. In `sim` the dice say so, now and then.
    pub fn should_yield(&self) -> bool {
        match &self.0.make {
            Make::Real(driver) => {
                let used = driver.now_ns().saturating_sub(self.0.slice_start.get());
                let slice = if self.class().is_bulk() { BULK_SLICE } else { SLICE };
                used > crate::time::nanos(slice)
            }
            Make::Sim(port) => port.should_yield(self.0.slice_start.get()),
        }
    }

    /// Lets other tasks run.
    pub fn yield_now(&self) -> Yield {
        Yield(false)
    }

    /// Lets other tasks run if this one [should yield](Env::should_yield).
    pub fn maybe_yield(&self) -> Yield {
        Yield(!self.should_yield())
    }

    // ---- timers

    /// Waits for `duration`.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleep_until(self.now() + duration)
    }

    /// Waits until `deadline`.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        Sleep { env: self.clone(), deadline, key: None }
    }

    /// Runs `future` for at most `duration`, then drops it.
    pub fn timeout<F: Future>(
        &self,
        duration: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, TimedOut>> + use<F> {
        self.timeout_at(self.now() + duration, future)
    }

    /// Runs `future` until `deadline` at the latest, then drops it. What is ready at once arms no
    /// timer.
    pub fn timeout_at<F: Future>(
        &self,
        deadline: Instant,
        future: F,
    ) -> impl Future<Output = Result<F::Output, TimedOut>> + use<F> {
        let mut sleep = self.sleep_until(deadline);
        async move {
            let mut future = std::pin::pin!(future);
            std::future::poll_fn(move |cx| {
                if let Poll::Ready(value) = future.as_mut().poll(cx) {
                    return Poll::Ready(Ok(value));
                }
                Pin::new(&mut sleep).poll(cx).map(|()| Err(TimedOut))
            })
            .await
        }
    }

    // ---- helpers

    /// Runs `f` where it may take its time: on a helper thread (`real`), or at a later point that
    /// the dice choose (`sim`). For what cannot yield for 500 us.
    pub async fn helper<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        bump(&self.0.counters.helper_jobs, 1);
        match &self.0.make {
            Make::Real(driver) => driver.helpers.run(f).await,
            Make::Sim(port) => port.helper(f).await,
        }
    }

    /// Runs `f`, which may take long and whose latency is nobody's concern, with the CPU time that
    /// nobody else wants: on a busy machine that may be none for a long while, so that whoever
    /// calls must know what else to do. Dropped, `f` may never run.
    pub async fn spare<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> T {
        bump(&self.0.counters.helper_jobs, 1);
        match &self.0.make {
            Make::Real(driver) => driver.spare.run_wanted(f).await,
            Make::Sim(port) => port.helper(f).await,
        }
    }

    // ---- end

    /// Waits for the order to end: SIGTERM, SIGINT, [`Env::terminate`] or an error on another
    /// shard.
    pub async fn terminated(&self) {
        while !self.is_terminated() {
            self.0.terminated.notified().await;
        }
    }

    /// Waits for the next SIGHUP, or takes one that came since the last: whoever rotates logs or
    /// renews certificates sends it. The first shard has it; a simulated node never does.
    pub async fn hung_up(&self) {
        while !self.0.was_hung_up.replace(false) {
            self.0.hung_up.notified().await;
        }
    }

    /// True once the order to end was given.
    pub fn is_terminated(&self) -> bool {
        self.0.node.terminated.load(Ordering::Acquire)
    }

    /// Gives the order to end to all shards of this node.
    pub fn terminate(&self) {
        self.0.node.terminate();
        self.0.tell_terminated();
    }

    // ---- observation

    /// This shard's counters.
    pub fn stats(&self) -> Stats {
        self.0.counters.snapshot(self.0.timers.len() as u64, self.0.exec.tasks() as u64)
    }

    /// The number of the window of [`Env::io_pattern`] that is being filled.
    pub fn io_window(&self) -> u64 {
        crate::io_history::window_of(self.now().as_nanos())
    }

    /// This shard's I/O in these windows, of which the last [`IO_WINDOWS`](crate::IO_WINDOWS) are
    /// kept. All shards of a node number them alike.
    pub fn io_pattern(&self, windows: std::ops::Range<u64>) -> IoPattern {
        self.0.counters.history.pattern(windows)
    }

    /// A place that tests shall reach: counted in `sim`, nothing in `real`.
    pub fn mark(&self, name: &'static str) {
        match &self.0.make {
            Make::Real(_) => {}
            Make::Sim(port) => port.world.mark(port.node.id, name),
        }
    }

    /// Shall the bug of this name show here? Only a simulated world can have it planted, to prove
    /// that its checks would find it; in `real` the answer is always no.
    pub fn planted(&self, name: &'static str) -> bool {
        match &self.0.make {
            Make::Real(_) => false,
            Make::Sim(port) => port.world.has_planted(name),
        }
    }
}

impl Env {
    /// The simulated side.
    pub(crate) fn port(&self) -> Option<&Port> {
        match &self.0.make {
            Make::Sim(port) => Some(port),
            Make::Real(_) => None,
        }
    }
}

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Env({}/{})", self.0.shard, self.0.shards)
    }
}

impl Shard {
    /// Wakes what is due.
    pub fn fire_timers(&self) {
        if self.timers.len() > 0 {
            let now = match &self.make {
                Make::Real(driver) => driver.now_ns(),
                Make::Sim(port) => port.now_ns(),
            };
            self.timers.fire(Instant::from_nanos(now));
        }
        self.tell_terminated();
    }

    pub fn hang_up(&self) {
        self.was_hung_up.set(true);
        self.hung_up.notify_all();
    }

    pub fn tell_terminated(&self) {
        if !self.told_terminated.get() && self.node.terminated.load(Ordering::Acquire) {
            self.told_terminated.set(true);
            self.terminated.notify_all();
        }
    }

    /// Wakes another shard, where it sleeps, at this turn's end at the latest; true if it sleeps.
    pub fn wake_other(&self, shard: usize) -> bool {
        let remote = &self.node.remotes[shard];
        let is_asleep = remote.end_sleep();
        if is_asleep {
            match (&self.make, remote.ring.get()) {
                (Make::Real(driver), Some(ring)) if driver.ring.wake_other(*ring) => {}
                _ => remote.ring_bell(),
            }
        }
        is_asleep
    }

    pub fn flush_mesh(&self) {
        if let Some(mesh) = self.mesh.get() {
            (mesh.flush)();
        }
    }

    /// Anything from other threads that should keep this one awake?
    pub fn has_foreign_work(&self) -> bool {
        self.exec.remote().has_injected()
            || self.mesh.get().is_some_and(|mesh| (mesh.has_work)())
            || (!self.told_terminated.get() && self.node.terminated.load(Ordering::Acquire))
            || self.node.all_done()
    }
}

/// Future of [`Env::yield_now`].
#[derive(Debug)]
#[must_use = "nothing yields until it is awaited"]
pub struct Yield(pub(crate) bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("timed out")]
pub struct TimedOut;

/// Future of [`Env::sleep`].
#[derive(Debug)]
#[must_use = "nothing waits until it is awaited"]
pub struct Sleep {
    env: Env,
    deadline: Instant,
    key: Option<TimerKey>,
}

impl Sleep {
    /// When it ends.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Moves the end.
    pub fn reset(&mut self, deadline: Instant) {
        if let Some(key) = self.key.take() {
            self.env.0.timers.cancel(key);
        }
        self.deadline = deadline;
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(key) = self.key {
            if self.env.0.timers.update(key, cx.waker()) {
                return Poll::Pending;
            }
            self.key = None;
            return Poll::Ready(());
        }
        if self.env.now() >= self.deadline {
            return Poll::Ready(());
        }
        self.key = Some(self.env.0.timers.insert(self.deadline, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.env.0.timers.cancel(key);
        }
    }
}
