//! Compaction: which files to merge, and their merge.

pub mod size_tiered;
mod task;

pub(crate) use self::task::forget_everywhere;
