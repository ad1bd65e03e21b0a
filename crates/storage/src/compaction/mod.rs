//! Compaction: which files to merge, and their merge.

pub mod size_tiered;
mod task;
