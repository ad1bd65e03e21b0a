//! What a hint's acknowledgement waits for.

use std::sync::Arc;

use env::sync::OneshotReceiver;
use thiserror::Error;

/// Why a hint is not kept.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HintError {
    /// Too many bytes wait to be written.
    #[error("cannot store the hint: {0} bytes of hints wait to be written already")]
    Overloaded(usize),
    /// It could not be written or synced.
    #[error("cannot write hints: {0}")]
    Failed(Arc<str>),
    /// The node ends.
    #[error("the node is stopping and stores no more hints")]
    Closed,
}

/// A hint that was taken: it is durable once `durable` says so.
#[derive(Debug)]
#[must_use = "the hint is not durable before `durable` says so"]
pub struct Ticket(pub(crate) Result<Option<OneshotReceiver<Result<(), HintError>>>, HintError>);

impl Ticket {
    /// Is the hint as durable as an acknowledged write, without waiting?
    pub fn is_ready(&self) -> bool {
        matches!(self.0, Ok(None))
    }

    /// Waits until the hint is as durable as an acknowledged write is.
    ///
    /// # Errors
    /// If it is not kept.
    pub async fn durable(self) -> Result<(), HintError> {
        match self.0? {
            None => Ok(()),
            Some(wait) => wait.await.unwrap_or(Err(HintError::Closed)),
        }
    }
}
