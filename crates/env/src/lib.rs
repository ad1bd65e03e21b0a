//! The only door to the outside: clock, randomness, tasks, timers, files, sockets, helper threads.
//!
//! Two makes stand behind the same [`Env`]: [`real`], one pinned thread and io_uring per shard, and
//! [`sim`], a seeded world of nodes on one thread with virtual time. Code that holds an `Env`
//! cannot tell which; that is what makes whole clusters testable in one process.
//!
//! Nothing here blocks a shard's thread except its own sleep when there is no work.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "this crate is the door that the lints point to"
)]

mod buf;
mod class;
mod disk_model;
mod env;
mod executor;
mod file;
mod file_op;
mod fs;
mod io_history;
mod io_kind;
mod io_queue;
mod memory;
mod mesh;
mod net;
mod open_options;
mod pipe;
mod process;
mod process_stats;
pub mod real;
mod recorder;
mod rng;
pub mod sim;
mod slice;
mod stats;
pub mod sync;
mod time;
mod timer;

pub use buf::{ALIGNMENT, AlignedBuf, IoBuf};
pub use class::{CLASSES, Class};
pub use disk_model::{Cut, DiskModel, SECTOR, Tear};
pub use env::{Env, STALL, Sleep, TimedOut, Yield};
pub use executor::{HookGuard, Task};
pub use file::File;
pub use fs::{DirEntry, Directory, LockGuard, Metadata};
pub use io_history::{
    IO_SIZES, IO_TIMES, IO_WINDOW, IO_WINDOWS, IoFlow, IoPattern, IoSums, IoTimes, IoWindow,
    io_size_limit,
};
pub use io_kind::{IO_KINDS, IoKind};
pub use mesh::Mesh;
pub use net::{ListenOptions, MAX_SLICES, StreamHandle, TcpListener, TcpStream};
pub use open_options::OpenOptions;
pub use pipe::Pipe;
pub use process_stats::ProcessStats;
pub use recorder::{Entry, Moment, Player, RecordedOp, Recorder, Recording};
pub use rng::Rng;
pub use slice::SLICE;
pub use stats::{ClassStats, IoStats, Stats};
pub use time::Instant;
