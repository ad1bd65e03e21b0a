//! The executor of one shard: tasks by class, hooks at the end of a turn, wake-ups from elsewhere.
//!
//! A waker may travel to any thread. On its own thread a wake-up is a push to a local queue, found
//! through a thread-local table; from another thread it goes through [`Remote`]'s list and, if the
//! shard sleeps, one write to its eventfd.
//!
//! Classes of tasks share the CPU (`class.rs`). A statement that used up a slice (200 us) and has
//! more to do goes to a lane of its own. A scan is such a one, or a connection with hundreds of
//! requests. It stands there behind those that have little to do.
//!
//! A turn ends when short statements have run, so that their answers do not wait for anybody's
//! slice. After 100 us it ends if the ring or another shard has news, and after 500 us in any case.
//! Work that nobody waits for has slices of 100 us.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::class::{CLASSES, Class};
use crate::rng::Rng;
use crate::stats::{Counters, bump};

/// What the executor knows of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub class: Class,
    pub id: u64,
}

pub(crate) type Runnable = async_task::Runnable<Meta>;

thread_local! {
    static LOCAL: LocalTable = LocalTable::new();
}

/// The run queues of the executors that live on this thread: one in `real`, many in `sim`.
struct LocalTable {
    thread: u64,
    queues: RefCell<slab::Slab<(u64, Rc<RunQueue>)>>,
}

impl LocalTable {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { thread: NEXT.fetch_add(1, Ordering::Relaxed), queues: RefCell::default() }
    }
}

/// Where on which thread a run queue lives.
#[derive(Clone, Copy, Debug)]
struct Home {
    thread: u64,
    slot: usize,
    /// Tells a reused slot from the old one.
    unique: u64,
}

/// How a sleeping shard is woken.
pub(crate) trait Bell: Send + Sync {
    fn ring(&self);
}

/// The part of an executor that other threads may touch.
pub(crate) struct Remote {
    home: OnceLock<Home>,
    injected: Mutex<Vec<Runnable>>,
    has_injected: AtomicBool,
    sleeping: AtomicBool,
    bell: Option<Box<dyn Bell>>,
    /// The descriptor of the shard's io_uring, once it has one.
    pub ring: OnceLock<i32>,
}

impl Remote {
    pub fn new(bell: Option<Box<dyn Bell>>) -> Self {
        Self {
            home: OnceLock::new(),
            injected: Mutex::default(),
            has_injected: AtomicBool::new(false),
            sleeping: AtomicBool::new(false),
            bell,
            ring: OnceLock::new(),
        }
    }

    fn schedule(&self, runnable: Runnable) {
        let Some(home) = self.home.get() else { return };
        let mut runnable = Some(runnable);
        // At the end of a thread its table is gone: then the runnable goes the long way.
        let _ = LOCAL.try_with(|local| {
            if local.thread != home.thread {
                return;
            }
            if let Some((unique, queue)) = local.queues.borrow().get(home.slot)
                && *unique == home.unique
                && let Some(runnable) = runnable.take()
            {
                queue.push(runnable);
            }
        });
        if let Some(runnable) = runnable {
            self.injected.lock().unwrap_or_else(PoisonError::into_inner).push(runnable);
            self.has_injected.store(true, Ordering::Release);
            self.wake();
        }
    }

    /// Wakes the shard if it sleeps; true if that took a system call. Whoever calls this has
    /// published its work before.
    pub fn wake(&self) -> bool {
        let is_asleep = self.end_sleep();
        if is_asleep {
            self.ring_bell();
        }
        is_asleep
    }

    /// Ends the shard's sleep, in name: true if it sleeps. Then the caller has to wake it, and
    /// nobody else does.
    pub fn end_sleep(&self) -> bool {
        fence(Ordering::SeqCst);
        self.sleeping.load(Ordering::Relaxed) && self.sleeping.swap(false, Ordering::AcqRel)
    }

    pub fn ring_bell(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// Announces sleep. The caller looks for work once more before it really sleeps.
    pub fn going_to_sleep(&self) {
        self.sleeping.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    pub fn awake(&self) {
        self.sleeping.store(false, Ordering::Relaxed);
    }

    pub fn has_injected(&self) -> bool {
        self.has_injected.load(Ordering::Acquire)
    }
}

/// Queues of runnable tasks: one for each class, and the [`LONG`] one.
const LANES: usize = CLASSES + 1;
/// Where statements stand that have just used up a slice and have more to do: a scan, or a
/// connection with very many requests. One that has little to do waits for a slice of one of them,
/// not of all.
const LONG: usize = CLASSES;
/// Share of the CPU that they have while other statements want it too.
const LONG_SHARES: u32 = 300;

fn shares(lane: usize) -> u32 {
    Class::ALL.get(lane).map_or(LONG_SHARES, |class| class.shares())
}

/// Does somebody wait for each of its tasks, and for no long one? When all of those have run, what
/// they say goes out before others begin.
fn is_light(lane: usize) -> bool {
    lane == Class::Statement.index() || lane == Class::CommitLog.index()
}

/// Runnable tasks of one shard, by lane.
pub(crate) struct RunQueue {
    queues: RefCell<[VecDeque<Runnable>; LANES]>,
    /// CPU used over shares; the smallest among the runnable lanes runs next.
    virtual_time: [Cell<u64>; LANES],
    ready: Cell<usize>,
    /// Virtual time of the lane that ran last: what a lane starts from after idling.
    floor: Cell<u64>,
    /// The statement's task that is being polled, and itself if it woke itself meanwhile: its lane
    /// is not known before the end of the poll.
    polled: Cell<Option<u64>>,
    again: RefCell<Option<Runnable>>,
}

/// Most time that one poll is charged for, in nanoseconds: more is most likely the time of other
/// processes, for which a class of few shares would pay with a long wait.
const CHARGE_MAX: u64 = 2_000_000;
/// How far (virtual nanoseconds) a class that was idle may stand behind: it runs soon, but cannot
/// save up its idle time.
const WAKE_CREDIT: u64 = 200_000;

impl RunQueue {
    fn new() -> Self {
        Self {
            queues: RefCell::default(),
            virtual_time: Default::default(),
            ready: Cell::new(0),
            floor: Cell::new(0),
            polled: Cell::new(None),
            again: RefCell::default(),
        }
    }

    fn push(&self, runnable: Runnable) {
        let meta = runnable.metadata();
        if self.polled.get() == Some(meta.id) {
            self.again.replace(Some(runnable));
            return;
        }
        let lane = meta.class.index();
        self.push_to(lane, runnable);
    }

    fn push_to(&self, lane: usize, runnable: Runnable) {
        let mut queues = self.queues.borrow_mut();
        let queue = &mut queues[lane];
        if queue.is_empty() {
            let start = self.floor.get().saturating_sub(WAKE_CREDIT);
            let time = &self.virtual_time[lane];
            time.set(time.get().max(start));
        }
        queue.push_back(runnable);
        self.ready.set(self.ready.get() + 1);
    }

    /// A poll begins.
    fn begin(&self, meta: Meta) {
        self.polled.set((meta.class == Class::Statement).then_some(meta.id));
    }

    /// It has ended, after so many nanoseconds. Was it a slice of one that has more to do?
    fn end(&self, meta: Meta, took: u64) -> bool {
        self.polled.set(None);
        let again = self.again.take();
        let is_long = again.is_some() && took >= crate::time::nanos(crate::slice::SLICE);
        if let Some(runnable) = again {
            self.push_to(if is_long { LONG } else { meta.class.index() }, runnable);
        }
        is_long
    }

    fn pop(&self, rng: Option<&Rng>) -> Option<(usize, Runnable)> {
        if self.ready.get() == 0 {
            return None;
        }
        let mut queues = self.queues.borrow_mut();
        let waiting = || (0..LANES).filter(|&lane| !queues[lane].is_empty());
        let lane = match rng {
            // The world tries orders that shares would never give.
            Some(rng) if rng.one_in(8) => {
                let n = rng.below(waiting().count() as u64);
                waiting().nth(n as usize)
            }
            _ => waiting().min_by_key(|&lane| self.virtual_time[lane].get()),
        }?;
        self.floor.set(self.floor.get().max(self.virtual_time[lane].get()));
        let queue = &mut queues[lane];
        let runnable = match rng {
            Some(rng) if rng.one_in(2) => {
                queue.swap_remove_front(rng.below(queue.len() as u64) as usize)
            }
            _ => queue.pop_front(),
        };
        self.ready.set(self.ready.get() - usize::from(runnable.is_some()));
        Some((lane, runnable?))
    }

    fn has_light(&self) -> bool {
        let queues = self.queues.borrow();
        (0..LANES).any(|lane| is_light(lane) && !queues[lane].is_empty())
    }

    fn charge(&self, lane: usize, nanos: u64) {
        let time = &self.virtual_time[lane];
        let weighted = nanos.min(CHARGE_MAX) * 1000 / u64::from(shares(lane));
        time.set(time.get().saturating_add(weighted.max(1)));
    }

    fn clear(&self) -> Vec<Runnable> {
        self.ready.set(0);
        let again = self.again.take();
        self.queues.borrow_mut().iter_mut().flat_map(std::mem::take).chain(again).collect()
    }
}

type Hook = Rc<dyn Fn()>;
type HookSlab = Rc<RefCell<slab::Slab<Hook>>>;

/// Keeps a hook at the end of the turn alive.
#[must_use = "dropping the guard removes the hook"]
pub struct HookGuard {
    hooks: HookSlab,
    key: usize,
}

impl std::fmt::Debug for HookGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HookGuard({})", self.key)
    }
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        let hook = self.hooks.borrow_mut().try_remove(self.key);
        drop(hook);
    }
}

/// The executor of one shard.
pub(crate) struct Executor {
    queue: Rc<RunQueue>,
    remote: Arc<Remote>,
    home: Home,
    /// A waker of every live task, to drop them all at the end.
    active: Rc<RefCell<slab::Slab<Waker>>>,
    turn_end: HookSlab,
    turn_start: HookSlab,
    next_task: Cell<u64>,
    current: Cell<Option<Meta>>,
    closed: Cell<bool>,
}

/// Longest time a turn runs tasks before it looks at the ring again, in nanoseconds.
pub(crate) const TURN_NS: u64 = 500_000;
/// Most times that the hooks run in one turn because they woke something.
const HOOK_ROUNDS: usize = 4;

impl Executor {
    /// An executor on the calling thread.
    pub fn new(remote: Arc<Remote>) -> Self {
        static UNIQUE: AtomicU64 = AtomicU64::new(1);
        let queue = Rc::new(RunQueue::new());
        let unique = UNIQUE.fetch_add(1, Ordering::Relaxed);
        let home = LOCAL.with(|local| {
            let slot = local.queues.borrow_mut().insert((unique, queue.clone()));
            Home { thread: local.thread, slot, unique }
        });
        let taken = remote.home.set(home).is_err();
        debug_assert!(!taken, "a remote serves one executor");
        Self {
            queue,
            remote,
            home,
            active: Rc::default(),
            turn_end: Rc::default(),
            turn_start: Rc::default(),
            next_task: Cell::new(0),
            current: Cell::new(None),
            closed: Cell::new(false),
        }
    }

    pub fn remote(&self) -> &Arc<Remote> {
        &self.remote
    }

    pub fn spawn_task<F>(&self, class: Class, future: F) -> Task<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let id = self.next_task.get();
        self.next_task.set(id + 1);
        let mut active = self.active.borrow_mut();
        let entry = active.vacant_entry();
        let tracked = Tracked { key: entry.key(), active: self.active.clone(), future };
        let remote = self.remote.clone();
        let (runnable, task) = async_task::Builder::new()
            .metadata(Meta { class, id })
            .spawn_local(move |_| tracked, move |runnable| remote.schedule(runnable));
        entry.insert(runnable.waker());
        drop(active);
        if self.closed.get() {
            // Dropped at once, and with it the future: nothing starts on a shard that ended.
            drop(runnable);
        } else {
            runnable.schedule();
        }
        Task(task)
    }

    /// Moves wake-ups from other threads to the local queue.
    pub fn take_injected(&self) -> usize {
        if !self.remote.has_injected.load(Ordering::Acquire) {
            return 0;
        }
        let taken = {
            let mut list = self.remote.injected.lock().unwrap_or_else(PoisonError::into_inner);
            self.remote.has_injected.store(false, Ordering::Release);
            std::mem::take(&mut *list)
        };
        let n = taken.len();
        taken.into_iter().for_each(|runnable| self.queue.push(runnable));
        n
    }

    pub fn is_ready(&self) -> bool {
        self.queue.ready.get() > 0
    }

    pub fn tasks(&self) -> usize {
        self.active.borrow().len()
    }

    /// Class of the task being polled.
    pub fn current(&self) -> Option<Class> {
        self.current.get().map(|meta| meta.class)
    }

    /// Runs the hooks of a turn's start (the mesh looks into its rings).
    pub fn start_turn(&self) {
        run_hooks(&self.turn_start);
    }

    /// Runs tasks and the hooks of the turn's end: `Work` gives the clock and takes the tally.
    pub fn run_turn(&self, work: &dyn Work, counters: &Counters) -> bool {
        bump(&counters.turns, 1);
        bump(&counters.wakes_foreign, self.take_injected() as u64);
        let start = work.now();
        let mut now = start;
        let mut any = false;
        for _ in 0..HOOK_ROUNDS {
            let mut ran = false;
            while let Some((lane, runnable)) = self.queue.pop(work.rng()) {
                let meta = *runnable.metadata();
                self.current.set(Some(meta));
                self.queue.begin(meta);
                work.poll_starts(meta, now);
                runnable.run();
                self.current.set(None);
                let after = work.poll_ended(meta);
                let took = after.saturating_sub(now);
                counters.polled(meta.class, took, took > STALL_NS);
                let is_long = self.queue.end(meta, took);
                self.queue.charge(if is_long { LONG } else { lane }, took);
                now = after;
                ran = true;
                let lasted = now.saturating_sub(start);
                let is_answered = is_light(lane) && !self.queue.has_light();
                if lasted > TURN_NS || work.cut_turn(lasted, is_answered) {
                    break;
                }
            }
            if !ran {
                break;
            }
            any = true;
            run_hooks(&self.turn_end);
            let lasted = now.saturating_sub(start);
            if lasted > TURN_NS || (!self.queue.has_light() && work.cut_turn(lasted, true)) {
                break;
            }
        }
        any
    }

    pub fn at_turn_end(&self, hook: impl Fn() + 'static) -> HookGuard {
        let key = self.turn_end.borrow_mut().insert(Rc::new(hook));
        HookGuard { hooks: self.turn_end.clone(), key }
    }

    pub fn at_turn_start(&self, hook: impl Fn() + 'static) -> HookGuard {
        let key = self.turn_start.borrow_mut().insert(Rc::new(hook));
        HookGuard { hooks: self.turn_start.clone(), key }
    }

    /// Drops every task, and refuses new ones.
    pub fn close(&self) {
        self.closed.set(true);
        loop {
            let wakers: Vec<Waker> = self.active.borrow_mut().drain().collect();
            let none = wakers.is_empty();
            wakers.into_iter().for_each(Waker::wake);
            self.take_injected();
            let runnables = self.queue.clear();
            if none && runnables.is_empty() {
                break;
            }
            drop(runnables);
        }
        let hooks = (self.turn_end.take(), self.turn_start.take());
        drop(hooks);
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.close();
        let queue = LOCAL.try_with(|local| local.queues.borrow_mut().try_remove(self.home.slot));
        drop(queue);
    }
}

/// A poll longer than this is a stall, in nanoseconds.
pub(crate) const STALL_NS: u64 = 1_000_000;

/// What the executor asks of its make while it runs tasks.
pub(crate) trait Work {
    /// Monotonic nanoseconds.
    fn now(&self) -> u64;
    /// The world's dice, in `sim`.
    fn rng(&self) -> Option<&Rng>;
    fn poll_starts(&self, meta: Meta, now: u64);
    /// Monotonic nanoseconds after the poll.
    fn poll_ended(&self, meta: Meta) -> u64;
    /// True to end the turn here, after so many nanoseconds of it; `is_answered`: those that
    /// somebody waits for have run.
    fn cut_turn(&self, lasted: u64, is_answered: bool) -> bool;
}

fn run_hooks(hooks: &HookSlab) {
    // A hook may add or remove hooks: hold no borrow while it runs.
    let mut at = 0;
    loop {
        let hook = {
            let hooks = hooks.borrow();
            if at >= hooks.capacity() || hooks.is_empty() {
                return;
            }
            hooks.get(at).cloned()
        };
        if let Some(hook) = hook {
            hook();
        }
        at += 1;
    }
}

/// A future that takes itself off the list of live tasks.
struct Tracked<F> {
    key: usize,
    active: Rc<RefCell<slab::Slab<Waker>>>,
    future: F,
}

impl<F: Future> Future for Tracked<F> {
    type Output = F::Output;

    #[expect(unsafe_code, reason = "pin projection without a crate for it")]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `future` is pinned whenever `self` is: it is never moved out, and the drop of
        // `Tracked` touches only `key` and `active`.
        unsafe { self.map_unchecked_mut(|this| &mut this.future) }.poll(cx)
    }
}

impl<F> Drop for Tracked<F> {
    fn drop(&mut self) {
        let waker = self.active.try_borrow_mut().ok().and_then(|mut a| a.try_remove(self.key));
        drop(waker);
    }
}

/// A task and its result. Dropped, the task is cancelled: its future is dropped at its next
/// turn, what it had in flight ends on its own.
#[must_use = "a dropped task is cancelled; use detach"]
pub struct Task<T>(async_task::Task<T, Meta>);

impl<T> std::fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Task({})", self.0.metadata().id)
    }
}

impl<T> Task<T> {
    /// Lets the task run on without anyone waiting for it.
    pub fn detach(self) {
        self.0.detach();
    }

    /// Cancels the task and waits until its future is dropped; its result if it was done before.
    pub async fn cancel(self) -> Option<T> {
        self.0.cancel().await
    }

    /// True once the result is there.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::env::Yield;
    use crate::slice::SLICE;

    /// A clock that tasks move.
    struct Clock(Rc<Cell<u64>>);

    impl Work for Clock {
        fn now(&self) -> u64 {
            self.0.get()
        }

        fn rng(&self) -> Option<&Rng> {
            None
        }

        fn poll_starts(&self, _: Meta, _: u64) {}

        fn poll_ended(&self, _: Meta) -> u64 {
            self.0.get()
        }

        fn cut_turn(&self, _: u64, is_answered: bool) -> bool {
            is_answered
        }
    }

    /// Runs statements that take so many slices of so long, and one that comes when each of them
    /// has had one: how much longer than that it waited.
    fn waited(slice: Duration) -> Duration {
        let (long, slices) = (20, 10);
        let slice = slice.as_nanos() as u64;
        let executor = Executor::new(Arc::new(Remote::new(None)));
        let clock = Rc::new(Cell::new(0));
        let ended = Rc::new(Cell::new(None));
        for _ in 0..long {
            let clock = Rc::clone(&clock);
            let task = executor.spawn_task(Class::Statement, async move {
                for _ in 0..slices {
                    clock.set(clock.get() + slice);
                    Yield(false).await;
                }
            });
            task.detach();
        }
        let counters = Counters::default();
        while clock.get() < long * slice {
            executor.run_turn(&Clock(Rc::clone(&clock)), &counters);
        }
        let begun = clock.get();
        let (at, seen) = (Rc::clone(&clock), Rc::clone(&ended));
        let short = executor.spawn_task(Class::Statement, async move { seen.set(Some(at.get())) });
        short.detach();
        while executor.is_ready() {
            executor.run_turn(&Clock(Rc::clone(&clock)), &counters);
        }
        assert_eq!(clock.get(), long * slices * slice);
        Duration::from_nanos(ended.get().expect("it ran") - begun)
    }

    #[test]
    fn who_wants_little_does_not_wait_for_all_who_want_much() {
        assert!(waited(SLICE) <= SLICE, "{:?}", waited(SLICE));
        // what yields before its slice is used up keeps its place
        assert!(waited(SLICE / 2) > SLICE);
    }
}
