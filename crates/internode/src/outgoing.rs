//! A connection to another node: what waits to be sent over it, its handshake, and the way out
//! (`net.OutboundConnection`).
//!
//! Messages wait whether it is open or not, each no longer than it is worth anything, all together
//! no more than their quota. What was handed to the socket is gone: nobody knows whether it
//! arrived, and nothing is sent twice.
//!
//! The quota (`quota.rs`) bounds what waits, and what is late is dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use thiserror::Error;

use crate::handshake::{ACCEPT_LENGTH, Accept, Connection, Framing, HandshakeError, Initiate};
use crate::header::Header;
use crate::quota::{Lease, Quota, Shortage};
use crate::sender::{SendError, Sender};

/// A message that waits.
#[derive(Clone, Debug)]
pub struct Queued {
    /// Its header.
    pub header: Header,
    /// Its payload; the same may go to several nodes.
    pub payload: Arc<[u8]>,
    /// When it is worth nothing any more, in milliseconds since 1970.
    pub expires_at: i64,
}

/// Why a message does not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QueueError {
    /// Too much waits.
    #[error("too many messages wait to be sent: {0}")]
    Full(#[from] Shortage),
}

/// What became of a message that does not wait any more.
#[derive(Debug)]
pub enum Gone {
    /// It is in the output.
    Sent(Queued),
    /// Its time was over.
    Expired(Queued),
    /// It cannot be sent.
    Failed(Queued, SendError),
}

#[derive(Debug)]
enum State {
    Closed,
    Handshake,
    Open(Box<Sender>),
}

/// A connection to another node.
#[derive(Debug)]
pub struct Outgoing {
    /// What is said first on each new connection.
    initiate: Initiate,
    max_message: u64,
    state: State,
    queue: VecDeque<(Queued, u64)>,
    /// Nothing that waits expires before this.
    soonest: i64,
    lease: Lease,
}

impl Outgoing {
    /// One that is not open. `max_message` is `internode_max_message_size`, `capacity`
    /// `internode_application_send_queue_capacity`, in bytes.
    pub fn new(initiate: Initiate, max_message: u64, capacity: u64) -> Self {
        let lease = Lease::new(capacity);
        let (state, queue) = (State::Closed, VecDeque::new());
        Self { initiate, max_message, state, queue, soonest: i64::MAX, lease }
    }

    /// What it is for.
    pub fn connection(&self) -> Connection {
        self.initiate.connection
    }

    /// How its messages are framed.
    pub fn framing(&self) -> Framing {
        self.initiate.framing
    }

    /// A message is to be sent. What waits and is worth nothing any more makes room for it first;
    /// `gone` is told of that.
    pub fn push(
        &mut self,
        message: Queued,
        now_millis: i64,
        [endpoint, global]: [&mut Quota; 2],
        gone: &mut impl FnMut(Gone),
    ) -> Result<(), QueueError> {
        let size = held_by(&message);
        if let Err(shortage) = self.lease.take(size, endpoint, global) {
            self.drop_expired(now_millis, [endpoint, global], gone);
            self.lease.take(size, endpoint, global).map_err(|_| shortage)?;
        }
        self.soonest = self.soonest.min(message.expires_at);
        self.queue.push_back((message, size));
        Ok(())
    }

    /// A socket is connected: appends what is said first.
    pub fn connected(&mut self, out: &mut Vec<u8>) {
        self.state = State::Handshake;
        self.initiate.write(out);
    }

    /// Looks at what the other side sent: its answer to the handshake, after which it says nothing
    /// more. How many bytes of it are done with; none if more must come.
    pub fn received(&mut self, input: &[u8]) -> Result<Option<usize>, HandshakeError> {
        if !matches!(self.state, State::Handshake) {
            return Ok(None);
        }
        let Some(answer) = Accept::read(input, self.initiate.versions)? else { return Ok(None) };
        answer.agreed(self.initiate.versions)?;
        let sender = Sender::new(self.initiate.framing, self.max_message);
        self.state = State::Open(Box::new(sender));
        Ok(Some(ACCEPT_LENGTH))
    }

    /// The socket is closed. What waits goes on waiting.
    pub fn closed(&mut self) {
        self.state = State::Closed;
    }

    /// May messages be sent?
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Appends messages that wait to `out` until that has `limit` bytes, and seals them: it may be
    /// handed to the socket. `gone` is told what became of each. Without an open connection only
    /// those leave whose time is over.
    pub fn flush(
        &mut self,
        now_millis: i64,
        [endpoint, global]: [&mut Quota; 2],
        limit: usize,
        out: &mut Vec<u8>,
        gone: &mut impl FnMut(Gone),
    ) {
        let State::Open(sender) = &mut self.state else {
            return self.drop_expired(now_millis, [endpoint, global], gone);
        };
        while out.len() < limit {
            let Some((message, size)) = self.queue.pop_front() else { break };
            self.lease.give_back(size, endpoint, global);
            gone(if message.expires_at <= now_millis {
                Gone::Expired(message)
            } else {
                match sender.push(&message.header, &message.payload, out) {
                    Ok(_) => Gone::Sent(message),
                    Err(error) => Gone::Failed(message, error),
                }
            });
        }
        sender.flush(out);
    }

    /// Messages that wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Bytes that wait.
    pub fn waiting_bytes(&self) -> u64 {
        self.lease.held()
    }

    fn drop_expired(
        &mut self,
        now_millis: i64,
        [endpoint, global]: [&mut Quota; 2],
        gone: &mut impl FnMut(Gone),
    ) {
        if self.soonest > now_millis {
            return;
        }
        self.soonest = i64::MAX;
        for (message, size) in std::mem::take(&mut self.queue) {
            if message.expires_at <= now_millis {
                self.lease.give_back(size, endpoint, global);
                gone(Gone::Expired(message));
            } else {
                self.soonest = self.soonest.min(message.expires_at);
                self.queue.push_back((message, size));
            }
        }
    }
}

/// Bytes that a waiting message is counted as.
fn held_by(message: &Queued) -> u64 {
    (message.payload.len() + size_of::<Queued>()) as u64
}
