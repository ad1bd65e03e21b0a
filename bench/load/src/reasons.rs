//! Why operations failed: some of each kind of failure.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::time::{SystemTime, UNIX_EPOCH};

use scylla::errors::{ExecutionError, RequestAttemptError};

use crate::json::{list, text};

/// Reasons that are kept of each kind.
const KEPT: usize = 5;
/// Characters of a reason that are kept.
const LENGTH: usize = 300;

/// Why one failed.
#[derive(Debug)]
pub struct Failure {
    kind: String,
    reason: String,
}

impl From<ExecutionError> for Failure {
    fn from(error: ExecutionError) -> Self {
        Self { kind: kind(&error), reason: error.to_string() }
    }
}

impl Failure {
    /// The answer is none that the request can have.
    pub fn answer(error: impl Display) -> Self {
        Self { kind: "Answer".to_owned(), reason: error.to_string() }
    }
}

impl Display for Failure {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.kind, self.reason)
    }
}

/// By kind.
#[derive(Default)]
pub struct Reasons(BTreeMap<String, Vec<String>>);

impl Reasons {
    pub fn add(&mut self, failure: &Failure) {
        let known = self.0.entry(failure.kind.clone()).or_default();
        if known.len() < KEPT {
            known.push(format!("{} {}", clock(), brief(&failure.reason)));
        }
    }

    /// Those of another one, too.
    pub fn join(&mut self, other: Self) {
        for (kind, reasons) in other.0 {
            let known = self.0.entry(kind).or_default();
            known.extend(reasons);
            known.truncate(KEPT);
        }
    }

    /// As a JSON object.
    pub fn json(&self) -> String {
        let entries: Vec<String> =
            self.0.iter().map(|(kind, all)| format!("{}: {}", text(kind), list(all))).collect();
        format!("{{{}}}", entries.join(", "))
    }
}

fn brief(reason: &str) -> String {
    reason.chars().take(LENGTH).collect()
}

/// What the driver or the server calls it.
fn kind(error: &ExecutionError) -> String {
    let shown = match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => {
            format!("{error:?}")
        }
        ExecutionError::LastAttemptError(error) => format!("{error:?}"),
        error => format!("{error:?}"),
    };
    shown.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

/// The time of day, UTC.
pub fn clock() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{:02}:{:02}:{:02}", now / 3600 % 24, now / 60 % 60, now % 60)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

    use super::{Reasons, kind};

    #[test]
    fn a_kind_is_the_name_of_an_error() {
        let failed = RequestAttemptError::DbError(DbError::Overloaded, "no".to_owned());
        assert_eq!(kind(&ExecutionError::LastAttemptError(failed)), "Overloaded");
        assert_eq!(kind(&ExecutionError::RequestTimeout(Duration::ZERO)), "RequestTimeout");
    }

    #[test]
    fn some_of_each_kind_are_kept() {
        let mut reasons = Reasons::default();
        assert_eq!(reasons.json(), "{}");
        for _ in 0..9 {
            reasons.add(&ExecutionError::EmptyPlan.into());
            reasons.add(&ExecutionError::RequestTimeout(Duration::ZERO).into());
        }
        assert_eq!(reasons.json().matches("Load balancing policy").count(), super::KEPT);
        assert!(reasons.json().contains("\"RequestTimeout\": [\""));
        let mut all = Reasons::default();
        all.add(&ExecutionError::EmptyPlan.into());
        all.join(reasons);
        assert_eq!(all.json().matches("Load balancing policy").count(), super::KEPT);
        assert!(all.json().contains("\"RequestTimeout\": [\""));
    }
}
