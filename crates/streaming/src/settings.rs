//! What an operator says of streams.

use std::time::Duration;

use crate::limits::Limits;
use crate::states::Remembered;

/// It, at the start.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// `stream_entire_sstables`: are SSTables sent whole where all of them is asked for?
    pub whole_files: bool,
    /// How fast files are sent, at the start.
    pub limits: Limits,
    /// `streaming_keep_alive_period`: how often a side says that it is still there; never, if zero.
    pub keep_alive: Duration,
    /// Does a session begin only if there is room for what it brings?
    pub checks_space: bool,
    /// What is remembered of plans.
    pub remembered: Remembered,
    /// `stream_transfer_task_timeout`: how long the other node may take to say that it has a file.
    pub transfer_timeout: Duration,
    /// `streaming_connections_per_host`: sessions with a node when this one joins or rebuilds.
    pub connections: usize,
    /// `streaming_slow_events_log_timeout`: handling an event longer than this is said.
    pub slow_event: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            whole_files: true,
            limits: Limits::default(),
            keep_alive: Duration::from_secs(300),
            checks_space: true,
            remembered: Remembered::default(),
            transfer_timeout: Duration::from_secs(12 * 3600),
            connections: 1,
            slow_event: Duration::from_secs(10),
        }
    }
}
