//! The native protocol of Cassandra, versions 3, 4, 5 and 6-beta: bytes to typed requests and
//! responses to bytes, for both sides of a connection. Pure: no clock, no I/O.
//!
//! In: a [`Decoder`] finds [`Frame`]s in the input buffer, [`Request::parse`] reads them in place.
//! Out: [`Reply`] and [`Rows`] write responses into the output buffer, a [`Framer`] packs them.
//!
//! Formats: `doc/native_protocol_v{3,4,5}.spec` of Cassandra, and what 5.0.9 does where those are
//! silent; `testdata/golden.txt` holds exchanges with it.
#![forbid(unsafe_code)]

mod batch;
pub mod class_name;
pub mod client;
mod column;
mod compression;
mod consistency;
mod decoder;
pub mod digest;
mod error;
mod error_code;
mod error_response;
mod event;
mod framer;
pub mod header;
mod metadata;
mod numbers;
mod opcode;
pub mod paging_state;
mod put;
mod query_options;
mod reader;
mod request;
pub mod response;
mod rows;
mod startup;
mod type_option;
mod values;
mod version;
mod write_type;

pub use batch::{Batch, BatchEntry, BatchKind, BatchStatement};
pub use column::Column;
pub use compression::Compression;
pub use consistency::Consistency;
pub use decoder::{
    DEFAULT_MAX_FRAME, Decoder, Frame, Limits, MAX_CONSECUTIVE_ERRORS, Outcome, Refusal, Started,
    Step,
};
pub use digest::{Id, prepared_id, result_metadata_id};
pub use error::ProtocolError;
pub use error_code::ErrorCode;
pub use error_response::{ErrorDetail, ErrorResponse, FailureReason, Failures};
pub use event::{Change, Event, EventType, SchemaChange, StatusChange, Target, TopologyChange};
pub use framer::Framer;
pub use header::{Flags, Header};
pub use metadata::{BindMetadata, MetadataForm, ResultMetadata};
pub use opcode::{Direction, Opcode};
pub use paging_state::PagingState;
pub use query_options::QueryOptions;
pub use request::{Register, Request, wants_tracing};
pub use response::{Prepared, Reply};
pub use rows::Rows;
pub use startup::Startup;
pub use values::{Value, Values};
pub use version::Version;
pub use write_type::WriteType;
