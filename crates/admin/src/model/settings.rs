//! Settings that an operator sees and changes while the node runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A key of the configuration with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The key.
    pub name: String,
    /// The value; none is null.
    pub value: Option<String>,
}

/// A logger with its level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggerLevel {
    /// Its name.
    pub logger: String,
    /// Logback's word.
    pub level: String,
}

/// A timeout of the node, by nodetool's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timeout {
    /// `read_request_timeout`
    Read,
    /// `range_request_timeout`
    Range,
    /// `write_request_timeout`
    Write,
    /// `counter_write_request_timeout`
    CounterWrite,
    /// `cas_contention_timeout`
    CasContention,
    /// `truncate_request_timeout`
    Truncate,
    /// `internode_tcp_connect_timeout`
    InternodeConnect,
    /// `internode_tcp_user_timeout`
    InternodeUser,
    /// `internode_streaming_tcp_user_timeout`
    InternodeStreamingUser,
    /// `request_timeout`
    Misc,
}

/// No timeout has that name; the text is Cassandra's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Timeout type requires one of ({})", Timeout::NAMES)]
pub struct UnknownTimeout;

impl Timeout {
    /// All names, as Cassandra lists them.
    pub const NAMES: &str = "read, range, write, counterwrite, cascontention, truncate, \
         internodeconnect, internodeuser, internodestreaminguser, misc (general rpc_timeout_in_ms)";

    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Range,
        Self::Write,
        Self::CounterWrite,
        Self::CasContention,
        Self::Truncate,
        Self::InternodeConnect,
        Self::InternodeUser,
        Self::InternodeStreamingUser,
        Self::Misc,
    ];

    /// nodetool's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Range => "range",
            Self::Write => "write",
            Self::CounterWrite => "counterwrite",
            Self::CasContention => "cascontention",
            Self::Truncate => "truncate",
            Self::InternodeConnect => "internodeconnect",
            Self::InternodeUser => "internodeuser",
            Self::InternodeStreamingUser => "internodestreaminguser",
            Self::Misc => "misc",
        }
    }

    /// The key of `cassandra.yaml` that sets it.
    pub fn config_key(self) -> &'static str {
        match self {
            Self::Read => "read_request_timeout",
            Self::Range => "range_request_timeout",
            Self::Write => "write_request_timeout",
            Self::CounterWrite => "counter_write_request_timeout",
            Self::CasContention => "cas_contention_timeout",
            Self::Truncate => "truncate_request_timeout",
            Self::InternodeConnect => "internode_tcp_connect_timeout",
            Self::InternodeUser => "internode_tcp_user_timeout",
            Self::InternodeStreamingUser => "internode_streaming_tcp_user_timeout",
            Self::Misc => "request_timeout",
        }
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Timeout {
    type Err = UnknownTimeout;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|t| t.name() == name).ok_or(UnknownTimeout)
    }
}
