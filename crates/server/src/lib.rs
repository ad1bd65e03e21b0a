//! The native protocol's server: listeners, sessions, admission and events of one shard.
//!
//! It does not know how statements run: the composition root gives it a [`Coordinator`]. A
//! connection lives on one shard. Its task decodes all frames that a wake-up brought and starts
//! their requests; what is ready at once is answered at once, the rest as tasks of
//! `Class::Statement`. Answers of one turn of the loop leave in one write at the turn's end.
//!
//! ```text
//! listener -> connection (driver) -> request -> Coordinator
//!                  ^ input, stages      | Outcome
//!                  +---- output <-------+---- EventHub
//! ```
#![forbid(unsafe_code)]

mod admission;
mod coordinator;
mod driver;
mod events;
mod listener;
mod output;
mod parsed;
mod place;
mod rate;
mod request;
mod seen;
mod server;
mod session;
mod settings;
mod shard;
mod supported;
mod tally;
mod turns;
mod view;

pub use admission::ConnectionLimits;
pub use coordinator::{
    Answer, AuthStep, Authentication, Coordinator, Execute, Outcome, PrepareOutcome,
    PreparedAnswer, RowsAnswer, metadata_form,
};
pub use events::EventHub;
pub use seen::SeenClient;
pub use server::{HandOver, Server};
pub use session::{Context, Session};
pub use settings::Settings;
pub use view::{ClientView, RunningView};
