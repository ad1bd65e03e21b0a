//! Streams between nodes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What a node fetches from others or gives to them, together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPlan {
    /// What for, in Cassandra's words.
    pub operation: String,
    /// A time-UUID.
    pub id: String,
    /// With whom.
    pub sessions: Vec<StreamSession>,
}

/// Streams with one other node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSession {
    /// The other node.
    pub peer: SocketAddr,
    /// Which of the plan's with that node.
    pub index: i32,
    /// How far it is, in Cassandra's words.
    pub state: String,
    /// What comes.
    pub receiving: StreamSum,
    /// What goes.
    pub sending: StreamSum,
    /// How fast it goes, both ways together.
    pub bytes_per_second: u64,
    /// How long it takes at that rate; none where nothing goes.
    pub seconds_left: Option<u64>,
    /// Files under way and done.
    pub files: Vec<StreamFile>,
}

/// What goes one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSum {
    /// Files in all; an SSTable that goes whole has several.
    pub files: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Files that are done.
    pub files_done: u64,
    /// Bytes that are done.
    pub bytes_done: u64,
}

/// A file that goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamFile {
    /// Its path on this node.
    pub name: String,
    /// Does this node send it?
    pub is_sent: bool,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes that are done.
    pub bytes_done: u64,
}

/// How fast files are sent, in bytes a second; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamLimits {
    /// Parts of SSTables, to all nodes together.
    pub parts: u64,
    /// The same to nodes of other data centres.
    pub far_parts: u64,
    /// Whole SSTables, to all nodes together.
    pub whole: u64,
    /// The same to nodes of other data centres.
    pub far_whole: u64,
}
