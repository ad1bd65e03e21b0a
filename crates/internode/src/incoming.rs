//! A connection that another node opened: its handshake, then its messages
//! (`net.InboundConnectionInitiator`).

use crate::handshake::{Connection, HandshakeError, Initiate, MAX_INITIATE, Versions};
use crate::receiver::{Outcome, Receiver};

/// What is expected of who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Versions of messages.
    pub messaging: Versions,
    /// Versions of streams.
    pub streaming: Versions,
    /// `internode_max_message_size`, in bytes.
    pub max_message: u64,
}

impl Default for Accepted {
    fn default() -> Self {
        let max_message = crate::receiver::DEFAULT_MAX_MESSAGE;
        Self { messaging: Versions::OURS, streaming: Versions::OURS, max_message }
    }
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum Arrival<'a> {
    /// Nothing yet; behind what is consumed at least this many bytes must be there for the next
    /// step to find anything.
    Wait(usize),
    /// The other side said who it is, and was answered; messages follow, or the bytes of a stream.
    Opened(Initiate),
    /// Messages, and what else a [`Receiver`] finds.
    Messages(Outcome<'a>),
    /// Of a stream's bytes nothing is known here.
    Stream,
    /// No node, or none to talk to: what was answered, if anything was, is to be written, then the
    /// connection ends.
    Refused(HandshakeError),
}

#[derive(Debug)]
enum State {
    Handshake,
    Messages(Box<Receiver>),
    Stream,
    Refused(HandshakeError),
}

/// A connection that another node opened.
#[derive(Debug)]
pub struct Incoming {
    accepted: Accepted,
    state: State,
}

impl Incoming {
    /// A new one.
    pub fn new(accepted: Accepted) -> Self {
        Self { accepted, state: State::Handshake }
    }

    /// Looks at the front of `input`, what was not consumed and what came since; appends what is to
    /// be answered to `out`. How many bytes at the front of the input are done with, and what was
    /// found.
    pub fn next<'a>(&'a mut self, input: &'a [u8], out: &mut Vec<u8>) -> (usize, Arrival<'a>) {
        if matches!(self.state, State::Handshake) {
            return self.handshake(input, out);
        }
        match &mut self.state {
            State::Messages(receiver) => {
                let step = receiver.next(input);
                (step.consumed, Arrival::Messages(step.outcome))
            }
            State::Refused(error) => (0, Arrival::Refused(error.clone())),
            State::Stream | State::Handshake => (0, Arrival::Stream),
        }
    }

    /// Who receives messages, once they may come.
    pub fn receiver(&mut self) -> Option<&mut Receiver> {
        match &mut self.state {
            State::Messages(receiver) => Some(receiver),
            _ => None,
        }
    }

    fn handshake(&mut self, input: &[u8], out: &mut Vec<u8>) -> (usize, Arrival<'static>) {
        let read = Initiate::read(input, self.accepted.messaging);
        let (initiate, used) = match read {
            Ok(Some(read)) => read,
            Ok(None) => return (0, Arrival::Wait((input.len() + 1).min(MAX_INITIATE))),
            Err(error) => return self.refuse(0, error),
        };
        let ours = match initiate.connection {
            Connection::Streaming => self.accepted.streaming,
            _ => self.accepted.messaging,
        };
        let (answer, agreed) = initiate.accept(ours);
        answer.write(out);
        if let Err(error) = agreed {
            return self.refuse(used, error);
        }
        self.state = match initiate.connection {
            Connection::Streaming => State::Stream,
            _ => State::Messages(Box::new(Receiver::new(
                initiate.framing,
                self.accepted.max_message,
            ))),
        };
        (used, Arrival::Opened(initiate))
    }

    fn refuse(&mut self, used: usize, error: HandshakeError) -> (usize, Arrival<'static>) {
        self.state = State::Refused(error.clone());
        (used, Arrival::Refused(error))
    }
}
