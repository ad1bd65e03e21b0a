//! Streaming: SSTables, or parts of them, that go from node to node
//! (`org.apache.cassandra.streaming`, `org.apache.cassandra.db.streaming`).
//!
//! Two nodes have a session. The one that opens it, the initiator, says what it wants and what it
//! has to give; the other, the follower, answers what it gives. Both then send their files, each
//! over a connection that it opens for that, and say on the first connection what arrived.
//!
//! [`wire`] has the messages, [`session`] the steps of a session without any I/O. [`Streaming`] is
//! a shard's part: connections come in at any shard, the sessions are on the first one. A [`Plan`]
//! says what this node wants of all others together. The node is seen through a [`Host`].
#![forbid(unsafe_code)]

mod channel;
mod channels;
mod chooser;
mod host;
mod ledger;
mod limits;
mod measured;
mod meter;
mod only;
mod plan;
mod progress;
mod receiver;
mod said;
mod sender;
pub mod session;
mod sessions;
mod settings;
mod states;
mod stream_metrics;
mod streaming;
mod watch;
pub mod wire;
mod wire_input;

pub use host::Host;
pub use limits::Limits;
pub use measured::Measured;
pub use only::{Announced, Only};
pub use plan::{Give, Plan};
pub use progress::{Direction, FileView, SessionView, Speed, Sum};
pub use settings::Settings;
pub use states::{PlanView, Remembered, Status};
pub use streaming::Streaming;
