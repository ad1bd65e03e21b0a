//! What the operator sees of a node: its metrics over HTTP, nodetool's verbs over a unix socket and
//! the network, and a writer of demonstration data.
//!
//! A verb's way: `nodetool` checks the command line ([`Command::parse`]) and sends it ([`client`],
//! [`wire`]) through the socket ([`socket`]) or to the port ([`remote`]); the node parses it again,
//! asks the traits of its domain ([`Operator`]) for a value ([`ask`]) and sends that back as it is
//! ([`model`]). `nodetool` prints it as Cassandra's does ([`Reply::text`]), or as JSON
//! ([`Reply::json`]).

#![forbid(unsafe_code)]

mod ask;
pub mod client;
mod connections;
mod conversation;
pub mod demo;
pub mod http;
pub mod model;
pub mod nodetool;
pub mod operator;
pub mod remote;
pub mod socket;
pub mod wire;

pub use ask::{Watcher, ask, ask_watched};
pub use connections::{ACCEPT_PAUSE, BindError};
pub use model::*;
pub use nodetool::{Command, Format, Reply, Verb, VerbError, help, samples_text};
pub use operator::*;
