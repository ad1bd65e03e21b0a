//! A request with the bytes that it was parsed from, so that it is parsed once however long it
//! waits.

use protocol::{Frame, Header, ProtocolError, Request};
use self_cell::self_cell;

use crate::shard::Body;

self_cell!(
    struct Cell {
        owner: Body,
        #[covariant]
        dependent: Request,
    }
);

/// A request and its body.
pub(crate) struct Parsed(Cell);

impl Parsed {
    /// Parses a body.
    ///
    /// # Errors
    /// If it is no request.
    pub fn new(header: Header, body: Body) -> Result<Self, ProtocolError> {
        Cell::try_new(body, |body| Request::parse(Frame { header, body })).map(Self)
    }

    /// The request.
    pub fn get(&self) -> &Request<'_> {
        self.0.borrow_dependent()
    }

    /// Bytes of its body.
    pub fn bytes(&self) -> u64 {
        self.0.borrow_owner().len() as u64
    }
}

impl std::fmt::Debug for Parsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}
