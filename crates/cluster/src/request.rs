//! What a client asks for.

use std::cell::OnceCell;
use std::rc::Rc;

use cql::Prepared;
use cql::guard::Guard;
use env::Instant;
use protocol::{QueryOptions, Version};
use storage::Trace;

use crate::observed::Observed;
use crate::tracing::Tracing;

/// What a request brings beside its statement.
#[derive(Clone)]
pub struct Request<'a> {
    /// The session's keyspace.
    pub keyspace: Option<Rc<str>>,
    /// The protocol's version.
    pub version: Version,
    /// Options and values.
    pub options: &'a QueryOptions<'a>,
    /// When the client stops waiting.
    pub deadline: Instant,
    /// Who asks; none where nobody has to say.
    pub user: Option<Rc<str>>,
    /// Its trace, if it has one.
    pub tracing: Option<Rc<Tracing>>,
    /// Who watches over it: set where the user is known to be an ordinary one.
    pub guard: OnceCell<Rc<Guard>>,
    /// Who logs it; none where nobody does.
    pub observed: Option<Rc<Observed>>,
    /// Was its client told of shards, and may ask for metadata as such drivers do?
    pub is_shard_aware: bool,
}

impl Request<'_> {
    /// Where what happens is noted.
    pub(crate) fn trace(&self) -> &Trace {
        self.tracing.as_deref().map_or(&Trace::OFF, Tracing::trace)
    }

    /// Who logs it sees a statement of it.
    pub(crate) fn see(&self, text: &str, prepared: &Prepared) {
        if let Some(observed) = &self.observed {
            observed.see(text, prepared);
        }
    }

    /// It is planned, perhaps anew.
    pub(crate) fn see_none(&self) {
        if let Some(observed) = &self.observed {
            observed.forget();
        }
    }
}
