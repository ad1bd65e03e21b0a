//! Helper threads for what cannot yield: hashing passwords, Zstd, and the rare file operations
//! that block.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    ended: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Who has a CPU first: threads of a pool, or shards.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Standing {
    /// Each has its part.
    Equal,
    /// The pool's threads stand back, and still get on where shards leave nothing over.
    Behind,
    /// The pool's threads have what nobody else wants, which may be nothing.
    Last,
}

/// How far those behind stand back.
const NICENESS: i32 = 10;

/// A small pool of threads, shared by the shards of a node.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Pool {
    pub fn new(name: &str, threads: usize, standing: Standing) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let threads = (0..threads.max(1))
            .map(|n| {
                let shared = shared.clone();
                let run = move || {
                    // where that is not allowed, the thread works as any other
                    let _ = match standing {
                        Standing::Equal => Ok(()),
                        Standing::Behind => super::sys::be_nice(NICENESS),
                        Standing::Last => super::sys::be_last(),
                    };
                    work(&shared);
                };
                std::thread::Builder::new().name(format!("{name}-{n}")).spawn(run)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { shared, threads })
    }

    pub fn submit(&self, job: impl FnOnce() + Send + 'static) {
        lock(&self.shared.state).jobs.push_back(Box::new(job));
        self.shared.work.notify_one();
    }

    /// Runs `f` on a helper thread. Dropped, the result is lost, not the work.
    pub fn run<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> Helped<T> {
        let (job, helped) = helped(f);
        self.submit(job);
        helped
    }

    /// The same of work that is nothing without its result: dropped before a thread takes it up, it
    /// is not done.
    pub fn run_wanted<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Helped<T> {
        let (job, helped) = helped(f);
        let wanted = Arc::downgrade(&helped.0);
        // One of the two is the job's own.
        self.submit(move || {
            if wanted.strong_count() > 1 {
                job()
            }
        });
        helped
    }
}

/// Runs `f` on a thread of its own, which may take as long as it likes. Dropped, the result is
/// lost, not the work.
pub(crate) fn alone<T: Send + 'static>(
    name: &str,
    f: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<Helped<T>> {
    let (job, helped) = helped(f);
    let run = move || super::abort_on_panic(job);
    std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(helped)
}

fn helped<T: Send + 'static>(
    f: impl FnOnce() -> T + Send + 'static,
) -> (impl FnOnce() + Send + 'static, Helped<T>) {
    let cell = Arc::new(Mutex::new(Slot { value: None, waker: None }));
    let theirs = cell.clone();
    let job = move || {
        let value = f();
        let waker = {
            let mut slot = lock(&theirs);
            slot.value = Some(value);
            slot.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    };
    (job, Helped(cell))
}

fn work(shared: &Shared) {
    loop {
        let job = {
            let mut state = lock(&shared.state);
            loop {
                if let Some(job) = state.jobs.pop_front() {
                    break job;
                }
                if state.ended {
                    return;
                }
                state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        super::abort_on_panic(job);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).ended = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A pool may die with its last job's closure, on its own thread.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// Future of a helper's result.
pub(crate) struct Helped<T>(Arc<Mutex<Slot<T>>>);

impl<T> Future for Helped<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut slot = lock(&self.0);
        if let Some(value) = slot.value.take() {
            return Poll::Ready(value);
        }
        slot.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
