//! What the operator sees of a node: its metrics over HTTP, nodetool's verbs over a unix socket, and
//! a writer of demonstration data.
//!
//! A verb's way: `nodetool` checks the command line ([`Verb::parse`]) and sends it ([`client`])
//! through the socket ([`socket`]) in lines of JSON ([`wire`]); the node parses it again, asks the
//! node's [`Operator`] for facts ([`run`]) and sends back the text that Cassandra's nodetool prints.

#![forbid(unsafe_code)]

pub mod client;
mod connections;
pub mod demo;
mod guardrails;
pub mod http;
mod network;
mod operator;
mod output;
mod run;
pub mod socket;
mod timeout;
mod verb;
pub mod wire;

pub use connections::{ACCEPT_PAUSE, BindError};
pub use guardrails::{Category, Setting, Shown};
pub use network::{
    Messages, NetStats, Pool, PoolStats, ProxyHistograms, RangeReplica, ReadRepairs,
    ReplicatedRange, RingRanges,
};
pub use operator::{
    Answer, Cache, CacheName, ChunkCache, Cluster, CompactionStats, Endpoint, Handoff,
    HandoffChange, HintedNode, IoStats, Life, Liveness, NetworkCache, NewImport, NewSnapshot,
    NodeInfo, Operator, OperatorError, PastCompaction, PendingHints, Percentiles, Release,
    Replication, Ring, RingNode, RunningCompaction, Scrub, Sizes, SnapshotDetails, Snapshots,
    StopWhich, TableHistograms, TableName, TableStats, Verify,
};
pub use run::{Reply, run};
pub use timeout::{Timeout, UnknownTimeout};
pub use verb::{Selection, TableFilter, Verb, VerbError, help};
