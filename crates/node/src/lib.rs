//! The node, composed: what one shard runs, in production and in simulated worlds alike.
//!
//! What a node has once lives on the first shard: flushes, compactions, the set of SSTables, the
//! schema, gossip, hints and the queue of passwords.
#![forbid(unsafe_code)]

mod adapter;
mod demo;
mod error;
mod failure;
mod guardrails;
mod hint_view;
mod histograms;
mod loop_metrics;
mod memory;
mod message;
mod network_view;
mod node;
mod node_metrics;
mod operator;
mod peers;
mod ring_view;
mod saved_caches;
mod settings;
mod snapshots;
mod table_metrics;
mod table_stats;
mod tls;
mod upkeep;
mod views;

pub use error::NodeError;
pub use memory::Memory;
pub use message::Message;
pub use node::{Node, Ready, run_shard};
pub use settings::{io_depth, server_settings, storage_options};
