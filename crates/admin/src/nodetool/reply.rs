//! What nodetool prints, and its exit code.

use super::text;
use super::verb::{RepairVerb, RingVerb, SSTablesVerb, Verb, bad_use};
use crate::model::{Outcome, Refusal, Shown};

/// What nodetool prints, and its exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
    /// 0, or 1 for bad use, or 2 for failure.
    pub exit: u8,
}

/// A node answered with a value that the verb does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node's answer does not fit this command; use the nodetool of the node's release")]
pub struct Mismatch;

impl Reply {
    /// A success with its text for standard output.
    pub(super) fn ok(out: impl Into<String>) -> Self {
        Self { out: out.into(), ..Self::default() }
    }

    /// A failure with its text for standard error.
    pub(super) fn failed(err: String) -> Self {
        Self { out: String::new(), err, exit: 2 }
    }

    /// What Cassandra's nodetool prints of an outcome.
    pub fn text(verb: &Verb, outcome: &Outcome) -> Result<Self, Mismatch> {
        let mut reply = Self::ok(said_first(verb));
        if outcome.shown.is_some() || outcome.refusal.is_none() {
            reply.append(text::print(verb, outcome.shown.as_ref()).ok_or(Mismatch)?);
        }
        if let Some(refusal) = &outcome.refusal {
            reply.append(refused(verb, refusal));
        }
        Ok(reply)
    }

    /// The JSON of what an outcome shows; what went wrong is text on standard error, as standard
    /// output is for JSON alone.
    pub fn json(verb: &Verb, outcome: &Outcome) -> Result<Self, Mismatch> {
        let text = Self::text(verb, outcome)?;
        if let (Some(Shown::Repairs(_)), Some(refusal)) = (&outcome.shown, &outcome.refusal) {
            // what a repair said before it failed is worth having
            let json = serde_json::to_string_pretty(&outcome.shown).map_err(|_| Mismatch)?;
            return Ok(Self { out: json + "\n", ..refused(verb, refusal) });
        }
        if outcome.refusal.is_some() {
            return Ok(Self { out: String::new(), err: text.out + &text.err, exit: text.exit });
        }
        let Some(shown) = &outcome.shown else { return Ok(Self::default()) };
        let json = serde_json::to_string_pretty(shown).map_err(|_| Mismatch)?;
        let reply = Self { exit: text.exit, ..Self::ok(json + "\n") };
        Ok(match shown {
            // those that were refused are an error, too
            Shown::Import { .. } => Self { out: reply.out, ..text },
            _ => reply,
        })
    }

    fn append(&mut self, more: Self) {
        self.out.push_str(&more.out);
        self.err.push_str(&more.err);
        self.exit = more.exit;
    }
}

/// What is said before anything that may fail.
fn said_first(verb: &Verb) -> &'static str {
    match verb {
        Verb::SSTables(SSTablesVerb::Import { quick: true, .. }) => {
            "Doing a quick import - skipping sstable verification and row cache invalidation\n"
        }
        Verb::Repair(RepairVerb::CleanUp { .. }) => "Cleaning up data from completed sessions...\n",
        Verb::SSTables(SSTablesVerb::Refresh(_)) => {
            "nodetool refresh is deprecated, use nodetool import instead\n"
        }
        _ => "",
    }
}

/// As `NodeTool.badUse` and `NodeTool.err`, without a stack trace.
fn refused(verb: &Verb, refusal: &Refusal) -> Reply {
    match refusal {
        Refusal::BadUse(message) => {
            let out = match verb {
                // Cassandra prints this one by itself.
                Verb::Ring(RingVerb::Status { .. } | RingVerb::Ring { .. }) => {
                    format!("\nError: {message}\n")
                }
                _ => bad_use(message),
            };
            Reply { out, err: String::new(), exit: 1 }
        }
        Refusal::Failed(message) => Reply::failed(format!("error: {message}\n")),
        Refusal::UnknownTable(_) => {
            Reply { out: String::new(), err: format!("{refusal}\n"), exit: 1 }
        }
        Refusal::NotLetIn { .. } => {
            Reply { out: String::new(), err: format!("nodetool: {refusal}\n"), exit: 1 }
        }
        Refusal::NotTaken(message) => Reply::failed(format!("nodetool: {message}\n")),
    }
}
