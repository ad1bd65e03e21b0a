//! What another node asks of this one as a replica, and what it is answered.

use env::Instant;
use internode::{Flags, Params, Verb};
use storage::Trace;
use types::Address;

/// What another node asks of this one as a replica.
#[derive(Clone, Copy, Debug)]
pub struct PeerRequest<'a> {
    /// Who asks.
    pub from: Address,
    /// For what.
    pub verb: Verb,
    /// What its message says besides.
    pub params: &'a Params,
    /// The flags of its message.
    pub flags: Flags,
    /// The payload, in messaging 12.
    pub payload: &'a [u8],
    /// When the answer is worth nothing any more.
    pub deadline: Instant,
    /// Where what happens is noted.
    pub trace: &'a Trace,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAnswer {
    /// What it is.
    pub verb: Verb,
    /// Its payload.
    pub payload: Vec<u8>,
    /// What its message is to say besides: warnings.
    pub params: Params,
}

impl PeerAnswer {
    pub(crate) fn new(request: Verb, payload: Vec<u8>) -> Self {
        let verb = request.answer().unwrap_or(Verb::FailureRsp);
        Self { verb, payload, params: Params::NONE }
    }

    pub(crate) fn with(mut self, params: Params) -> Self {
        self.params = params;
        self
    }
}
