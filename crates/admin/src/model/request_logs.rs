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
