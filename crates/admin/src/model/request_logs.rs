//! Options of the audit log and of the full query log.

use serde::{Deserialize, Serialize};

use super::Setting;

/// A log of requests: is it on, and with which options?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLog {
    /// Is it on?
    pub enabled: bool,
    /// Its options by Cassandra's names, in nodetool's order.
    pub options: Vec<Setting>,
}

/// What `enableauditlog` and `enablefullquerylog` set; what is none stays as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogChanges {
    /// `--logger`
    pub logger: Option<String>,
    /// `--included-keyspaces` and `--excluded-keyspaces`, the same of categories and of users.
    pub lists: [Option<String>; 6],
    /// `--path`
    pub path: Option<String>,
    /// `--archive-command`
    pub archive_command: Option<String>,
    /// `--roll-cycle`
    pub roll_cycle: Option<String>,
    /// `--blocking`
    pub block: Option<bool>,
    /// `--max-queue-weight`
    pub max_queue_weight: Option<i64>,
    /// `--max-log-size`
    pub max_log_size: Option<i64>,
    /// `--max-archive-retries`
    pub max_archive_retries: Option<i64>,
}
