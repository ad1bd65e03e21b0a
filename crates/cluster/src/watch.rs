//! Which requests have a guard, those of ordinary users, and which reads are slow.

use std::rc::Rc;

use protocol::ErrorResponse;

use crate::auth::Auth;
use crate::guardrails::Guardrails;
use crate::request::Request;
use crate::slow_queries::SlowQueries;

/// Gives requests their guards, and looks how long reads take.
pub(crate) struct Watch {
    auth: Rc<Auth>,
    guardrails: Rc<Guardrails>,
    pub slow: Rc<SlowQueries>,
}

impl Watch {
    pub fn new(auth: &Rc<Auth>, guardrails: &Rc<Guardrails>, slow: Rc<SlowQueries>) -> Self {
        Self { auth: Rc::clone(auth), guardrails: Rc::clone(guardrails), slow }
    }

    /// Is there anything to watch a user for? Superusers are not watched, nor is anybody where
    /// nobody has to say who it is.
    pub async fn is_guarded(
        &self,
        user: &Rc<str>,
        is_warned_anyway: bool,
    ) -> Result<bool, ErrorResponse> {
        if !self.auth.authenticates() || !self.guardrails.want(is_warned_anyway) {
            return Ok(false);
        }
        Ok(!self.auth.is_superuser(user).await?)
    }

    /// Gives a request of an ordinary user its guard.
    pub async fn watch(
        &self,
        request: &Request<'_>,
        is_warned_anyway: bool,
    ) -> Result<(), ErrorResponse> {
        if let Some(user) = &request.user
            && self.is_guarded(user, is_warned_anyway).await?
        {
            let _ = request.guard.set(self.guardrails.new_guard());
        }
        Ok(())
    }
}
