//! Which requests have a guard: those of ordinary users.

use std::rc::Rc;

use protocol::ErrorResponse;

use crate::auth::Auth;
use crate::guardrails::Rails;
use crate::request::Request;

/// Gives requests their guards.
pub(crate) struct Watch {
    auth: Rc<Auth>,
    rails: Rc<Rails>,
}

impl Watch {
    pub fn new(auth: &Rc<Auth>, rails: &Rc<Rails>) -> Rc<Self> {
        Rc::new(Self { auth: Rc::clone(auth), rails: Rc::clone(rails) })
    }

    /// Is there anything to watch a user for? Superusers are not watched, nor is anybody where nobody has to say who it is.
    pub async fn is_guarded(
        &self,
        user: &Rc<str>,
        is_warned_anyway: bool,
    ) -> Result<bool, ErrorResponse> {
        if !self.auth.authenticates() || !self.rails.want(is_warned_anyway) {
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
            let _ = request.guard.set(self.rails.new_guard());
        }
        Ok(())
    }
}
