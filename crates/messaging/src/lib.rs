//! Connections between nodes: the pure sides of crate `internode` on sockets of `env`
//! (`net.MessagingService`, `OutboundConnection`, `InboundMessageHandler`).
//!
//! Each shard has a [`Messenger`] with connections of its own. Those that it opens ([`Link`](link))
//! carry what this shard sends, one each for urgent, small and large messages to a node; those that
//! others open ([`inbound`]) come in at any shard. A request is served where it came in by whoever
//! [`Serve`]s; an answer goes to the shard that its id names.
//!
//! Nothing is sent twice, nothing waits longer than it is worth anything, and what waits, in both
//! directions, is bounded by the quotas of [`Settings`].
//!
//! A shard opens a link when it has something to send, and again after a pause when it ends. Each
//! shard has its part of the quotas. A connection that is over them is not read.
//!
//! `tests/world.rs`: each request ends once, whatever the network does. `tests/encrypted.rs` is
//! about TLS.
#![forbid(unsafe_code)]

mod counts;
mod inbound;
mod link;
mod messenger;
mod open;
mod outbound;
mod quotas;
mod settings;
mod stream_dial;
mod stream_socket;
mod tally;

pub use counts::{Came, Sent};
pub use messenger::{Answer, Failed, Job, Messenger, Serve, Served};
pub use settings::{Capacity, Encryption, Patience, Settings};
pub use stream_socket::StreamSocket;
