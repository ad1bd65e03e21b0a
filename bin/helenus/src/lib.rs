//! The node, composed: what one shard runs, in production and in simulated worlds alike.
#![forbid(unsafe_code)]

mod adapter;
mod error;
mod message;
mod node;
mod settings;

pub use error::NodeError;
pub use message::Message;
pub use node::{Node, Ready, run_shard};
pub use settings::{memory_budget, metrics_address, server_settings, storage_options};
