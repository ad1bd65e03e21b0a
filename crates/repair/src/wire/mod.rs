//! Payloads of repair's verbs at messaging 12 (`repair.messages`).
//!
//! | verb | number | payload |
//! |---|---|---|
//! | VALIDATION_REQ | 101 | [`ValidationRequest`] |
//! | VALIDATION_RSP | 102 | [`ValidationResponse`] |
//! | SYNC_REQ | 103 | [`SyncRequest`] |
//! | SYNC_RSP | 104 | [`SyncResponse`] |
//! | PREPARE_MSG | 105 | [`Prepare`] |
//! | SNAPSHOT_MSG | 106 | [`Snapshot`] |
//! | CLEANUP_MSG | 107 | [`Cleanup`] |
//! | PREPARE_CONSISTENT_REQ | 108 | [`PrepareConsistentRequest`] |
//! | PREPARE_CONSISTENT_RSP | 109 | [`PrepareConsistentResponse`] |
//! | FINALIZE_PROPOSE_MSG | 110 | [`FinalizePropose`] |
//! | FINALIZE_PROMISE_MSG | 111 | [`FinalizePromise`] |
//! | FINALIZE_COMMIT_MSG | 112 | [`FinalizeCommit`] |
//! | FAILED_SESSION_MSG | 113 | [`FailSession`] |
//! | STATUS_REQ | 114 | [`StatusRequest`] |
//! | STATUS_RSP | 115 | [`StatusResponse`] |
//!
//! REPAIR_RSP (100), which acknowledges each of them, has no payload.
//!
//! All integers are big endian, counts 4 bytes, texts modified UTF-8 behind 2 bytes, ids 16 bytes.
//! A range of tokens is a byte of flags and two tokens. A count never sizes an allocation unless
//! the bytes that are left could hold as many. What is left behind a payload is the caller's to
//! refuse ([`types::Reader::finish`]).
//!
//! `conformance/repair` prints what the classes of Cassandra 5.0.9 and 4.1.10 write. The tests hold
//! it against ours, both ways. The two releases write the same bytes.

mod consistent;
mod error;
mod job;
mod kinds;
mod parts;
mod prepare;
mod sync;
mod validation;

pub use consistent::{
    FailSession, FinalizeCommit, FinalizePromise, FinalizePropose, PrepareConsistentRequest,
    PrepareConsistentResponse, StatusRequest, StatusResponse,
};
pub use error::PayloadError;
pub use job::JobDescription;
pub use kinds::{PreviewKind, SessionState};
pub use parts::Unwritable;
pub use prepare::{Cleanup, Prepare, Snapshot};
pub use sync::{SessionSummary, StreamSummary, SyncRequest, SyncResponse};
pub use validation::{ValidationRequest, ValidationResponse};
