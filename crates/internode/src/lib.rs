//! What nodes say to each other: internode messaging 12 of Cassandra 4.0 to 5.0
//! (`org.apache.cassandra.net`). Pure: no clock, no I/O.
//!
//! A connection begins with a [`handshake`]. Then messages flow one way, from the side that opened
//! it: a [`Sender`] packs them into the connection's output, a [`Receiver`] finds them in the other
//! side's input. A message is a [`Header`] and a payload, whose form its [`Verb`] says; answers
//! travel on a connection that the other side opened, with the id of what they answer.
//!
//! An [`Incoming`] and an [`Outgoing`] are the two sides of a connection, with what waits to be
//! sent and how much may; [`Callbacks`] are the requests that wait for answers.
#![forbid(unsafe_code)]

mod callbacks;
pub mod handshake;
pub mod header;
mod incoming;
mod outgoing;
mod param;
pub mod payload;
pub mod quota;
mod reason;
pub mod receiver;
mod sender;
mod verb;

pub use callbacks::Callbacks;
pub use handshake::{Accept, Connection, Framing, HandshakeError, Initiate, Versions};
pub use header::{Envelope, Flags, Header, HeaderError};
pub use incoming::{Accepted, Arrival, Incoming};
pub use outgoing::{Gone, Outgoing, QueueError, Queued};
pub use param::{Param, ParamError, Params, TraceType};
pub use quota::{Lease, Quota, Shortage};
pub use reason::FailureReason;
pub use receiver::{
    Corruption, DEFAULT_MAX_MESSAGE, Message, Outcome, Receiver, Refusal, Step, WireError,
};
pub use sender::{SendError, Sender};
pub use verb::{Expiry, LARGE_MESSAGE, Priority, Timeouts, Verb};

/// Messaging of 4.0, 4.1, and of 5.0 in its default compatibility mode: the one that is spoken.
pub const VERSION_40: u8 = 12;
/// Messaging of 5.0 without compatibility with 4.x.
pub const VERSION_50: u8 = 13;
