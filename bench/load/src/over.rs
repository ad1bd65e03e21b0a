//! Whether a load is over, for all that work on it.

use std::time::Duration;

use tokio::sync::watch;

pub struct Over(watch::Sender<bool>);

impl Over {
    pub fn not_yet() -> Self {
        Self(watch::Sender::new(false))
    }

    pub fn end(&self) {
        self.0.send_replace(true);
    }

    pub fn is(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits so long, or until it is over: is it?
    pub async fn within(&self, limit: Duration) -> bool {
        let mut end = self.0.subscribe();
        let _ = tokio::time::timeout(limit, end.wait_for(|is_over| *is_over)).await;
        self.is()
    }
}
