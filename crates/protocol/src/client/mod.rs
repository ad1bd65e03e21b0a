//! The client's side: requests into bytes, responses into owned values. For tests, the simulator
//! and load generators; complete rather than fast.

mod request;
mod response;
mod type_option;

pub use request::{
    BatchItem, BatchRequest, BoundValue, Call, OwnedPagingState, Parameters, auth_response, batch,
    execute, options, prepare, query, register, startup,
};
pub use response::{Answer, Body, OwnedRows, PreparedAnswer, Response, RowsMetadata};
