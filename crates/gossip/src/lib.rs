//! Who is in the ring, what each says of itself, and who is up (`org.apache.cassandra.gms`). Pure:
//! no clock, no I/O, no randomness of its own.
//!
//! Each node has a state: a heartbeat and some values, each with a version that grows. Once a
//! second a node sends another the digests of all states that it knows (SYN); that one answers with
//! what it knows better and asks for what it knows worse (ACK), which it then gets (ACK2). A
//! [`Gossiper`] is one node's part of it: a step takes an event and says what is to be done about
//! it.
//!
//! ```
//! use gossip::{Config, Effect, Event, Gossiper, Message, Now};
//! use types::Address;
//!
//! let [one, two] = [1, 2].map(|host| Address::new([127, 0, 0, host], 7000));
//! let mut gossiper = Gossiper::new(Config::new(one, "Test Cluster", [two]));
//! let now = Now { nanos: 0, unix_millis: 1_700_000_000_000 };
//! gossiper.step(now, Event::Start { generation: 1_700_000_000, states: vec![] }, &mut || 0);
//! let effects = gossiper.step(now, Event::Tick, &mut || 0);
//! assert!(matches!(&effects[..], [Effect::Send(to, Message::Syn(_))] if *to == two));
//! ```
//!
//! A node is up once it answers an echo. What is known of all nodes is bounded in bytes
//! (`apply.rs`).
//!
//! `tests/world.rs` runs rings by seed, under loss, delay, repetition, partition, crash and
//! restart. Bugs are planted in them.
#![forbid(unsafe_code)]

mod app_state;
mod apply;
mod assassination;
mod config;
mod detector;
mod endpoint;
mod gossiper;
mod heard;
mod message;
mod phase;
mod refusal;
mod removal;
mod round;
mod shadow;
mod status;
mod tokens;

pub use app_state::AppState;
pub use config::Config;
pub use detector::FailureDetector;
pub use endpoint::{EndpointState, HeartBeat, Versioned};
pub use gossiper::{Effect, Event, Gossiper, Now, Peer};
pub use message::{Ack, Digest, Message, States, Syn, read_states, write_states};
pub use refusal::Refusal;
pub use removal::REMEMBERED;
pub use status::Status;
pub use tokens::{read_tokens, write_tokens};
