//! Incremental repair: all nodes set apart what is to be repaired, and end the repair alike
//! (`repair.consistent`).
//!
//! ```text
//! coordinator                  each participant, the coordinator too
//! PREPARE_CONSISTENT_REQ   ->  sets SSTables apart            PREPARING
//!                          <-  PREPARE_CONSISTENT_RSP         PREPARED
//! validations, streams     ->                                 REPAIRING
//! FINALIZE_PROPOSE         ->  saves that it will commit
//!                          <-  FINALIZE_PROMISE               FINALIZE_PROMISED
//! FINALIZE_COMMIT          ->  what was set apart is repaired FINALIZED
//! FAILED_SESSION           ->  it is unrepaired again         FAILED
//! ```
//!
//! Who has promised does not fail by itself: it asks the others how the repair ended.

mod coordinated;
mod report;
mod sections;
mod session;
mod sessions;
mod store;
mod upkeep;

pub(super) use coordinated::Coordinated;
pub use report::{CleanedUp, PendingOf, PendingPart, RepairReport, RepairedParts};
pub use session::LocalSession;
pub use sessions::LocalSessions;
pub(super) use upkeep::Upkeep;
