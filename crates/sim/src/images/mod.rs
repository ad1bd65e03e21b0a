//! Crash images: the power is cut before, in and after changes of a node's disk of every kind, and
//! a node starts on what is left.
//!
//! A world of clients and an operator runs twice. The first run counts the changes of the disk by
//! what changes, of which kind of file, and what for; the second, the same to the last step, keeps
//! the disk at those that the seed chooses, as a power cut would leave it, with the history up to
//! there. Then a node in a world of its own starts on each: it must show what the history allows,
//! take writes, flush, compact, and start once more after another power cut.
//!
//! The operator flushes, compacts, truncates, takes and removes snapshots, imports and backs up. A
//! hook of the disk (`World::watch_disk`) hears of each change. A disk is kept as it would be
//! before the change, torn in it, and after it.
//!
//! `cargo xtask campaign images` prints how many images there were of each kind of change.

mod operated;
mod place;
mod recovery;
mod seed;
mod snapshots;
mod table;

pub use place::{Place, Purpose};
pub use seed::{Seed, run};
pub use table::Table;

/// Where a change of the disk is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// Before it.
    Before,
    /// In it: of what it changes, each sector or name may be there or not.
    Torn,
    /// After it, before anybody knows.
    After,
}

/// All of them, in order.
pub const CUTS: [Cut; 3] = [Cut::Before, Cut::Torn, Cut::After];
