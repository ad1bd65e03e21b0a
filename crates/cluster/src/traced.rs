//! Requests to other nodes that are part of a trace.

use env::Env;
use internode::{Param, Params, TraceType};
use messaging::{Answer, Failed};
use storage::Trace;
use types::{Address, Uuid};

/// What messages say of the trace that they are sent for (`Tracing.addTraceHeaders`).
pub(crate) fn traced(trace: &Trace) -> Params {
    let Some(id) = trace.id() else { return Params::NONE };
    let session = Param::TraceSession(Uuid::from_bytes(id));
    Params::NONE.with(session).with(Param::TraceType(TraceType::Query))
}

/// Notes that another node answered.
pub(crate) fn note_answer(
    trace: &Trace,
    env: &Env,
    from: Address,
    answer: &Result<Answer, Failed>,
) {
    trace.note(env, || match answer {
        Ok(answer) => format!("{} message received from /{from}", answer.header.verb.name()),
        Err(Failed::Replica(_)) => format!("FAILURE_RSP message received from /{from}"),
        Err(_) => format!("No message received from /{from}"),
    });
}
