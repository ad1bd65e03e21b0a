//! A node: what each of its shards runs, from its start to its end, in production and in simulated
//! worlds alike.
//!
//! What a node has once lives on the first shard: flushes, compactions, the set of SSTables, the
//! schema, gossip, hints and the queue of passwords.
#![forbid(unsafe_code)]

mod adapter;
mod addresses;
mod all_shards;
mod background;
mod caches;
mod client_server;
mod context;
mod demo;
mod directories;
mod drain;
mod encryption;
mod engine_metrics;
mod error;
mod examination;
mod failure;
mod figures;
mod first_certificates;
mod first_superuser;
mod guardrails;
mod histograms;
mod inbox;
mod journal;
mod key_stores;
mod life;
mod log_file;
mod log_files;
mod loop_metrics;
mod measures;
mod memory;
mod message;
mod messages;
mod metadata_service;
mod metrics_view;
mod mode;
mod node;
mod notes;
mod operator;
mod operator_port;
mod own_keyspaces;
mod peers;
mod pending_compactions;
mod pools;
mod prepared;
mod race;
mod request_logs;
mod request_writer;
mod ring_entry;
mod samplings;
mod saved_caches;
mod scrape;
mod settings;
mod snapshots;
mod start_log;
mod table_metrics;
mod table_stats;
mod upkeep;
mod views;

pub use error::NodeError;
pub use examination::Examine;
pub use life::{NOT_LISTENING, Ready, check, run_logged_shard, run_shard};
pub use log_files::{Logs, LogsEnd};
pub use memory::Memory;
pub use message::Message;
pub use metadata_service::{Discovered, discover};
pub use node::Node;
pub use settings::{io_depth, server_settings, storage_options};
