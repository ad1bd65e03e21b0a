//! Waiting among the tasks of one shard: all of it `Rc`, none of it blocks a thread.

mod notify;
mod oneshot;
mod queue;
mod semaphore;
#[cfg(test)]
mod tests;

pub use notify::{Notified, Notify};
pub use oneshot::{Canceled, OneshotReceiver, OneshotSender, oneshot};
pub use queue::{Closed, Full, Queue};
pub use semaphore::{Acquire, Permit, Semaphore, TryAcquireError};
