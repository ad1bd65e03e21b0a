//! One request: admitted, started, answered.
//!
//! A request is a future. It is polled at once, and becomes a task only if that does not end it.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};

use env::{Class, Instant, SLICE};
use protocol::{ErrorDetail, ErrorResponse, Header, Prepared, Reply, Request, Rows, wants_tracing};

use crate::coordinator::{
    Answer, AuthStep, Authentication, Coordinator, Execute, Outcome, PrepareOutcome, PreparedAnswer,
};
use crate::parsed::Parsed;
use crate::place::Place;
use crate::session::{Context, Session};
use crate::shard::connection::{Connection, Stage};
use crate::shard::queue::Waiting;
use crate::view::What;

/// Answer to requests that come while the node drains, in Cassandra's words.
const SHUTTING_DOWN: &str = "Server is shutting down";
/// Answer to requests whose time was up before they were started, in Cassandra's words.
const TOO_LATE: &str = "Query timed out before it could start";

fn overloaded(message: impl Into<String>) -> ErrorResponse {
    ErrorResponse { message: message.into(), detail: ErrorDetail::Overloaded }
}

/// Starts a request that [`refuse`] let in; what needs no waiting is answered when this returns.
pub(crate) fn start<C: Coordinator>(
    coordinator: &Rc<C>,
    connection: &Rc<Connection>,
    session: &Rc<Session>,
    header: Header,
    request: Rc<Parsed>,
    received: Instant,
) {
    let shard = &connection.shard;
    let bytes = request.bytes();
    let deadline = received + shard.settings.request_timeout;
    let mut warning = None;
    if !shard.in_flight.fits(&connection.account, bytes) {
        warning = Some(shard.in_flight.warning());
        connection.breached();
    }
    if let Some(rate) = shard.rate.as_ref().filter(|_| !session.throw_on_overload) {
        let delay = rate.reserve(shard.env.turn_now());
        if !delay.is_zero() {
            warning.get_or_insert_with(|| rate.warning());
            connection.pause(delay);
        }
    }
    let tracing = wants_tracing(&header);
    let context = Context { session: Rc::clone(session), received, deadline, tracing };
    shard.tally.dispatched.inc();
    let has_some = connection.in_flight.get() > 0;
    let must_wait = shard.queue.has(connection.id)
        || !connection.may_start()
        || (has_some && (shard.is_full() || shard.env.should_yield()));
    let place = Place::take(connection, bytes);
    let waiting = Waiting { context, header, request, place, warning };
    match must_wait {
        true => shard.queue.push(shard.env.turn_now(), waiting),
        false => begin(coordinator, waiting),
    }
}

/// Starts a request that was let in.
pub(crate) fn begin<C: Coordinator>(coordinator: &Rc<C>, waiting: Waiting) {
    let Waiting { context, header, request, place, warning } = waiting;
    let connection = Rc::clone(&place.connection);
    let shard = &connection.shard;
    let (received, started) = (context.received, shard.env.turn_now());
    let coordinator = Rc::clone(coordinator);
    let run = run(coordinator, context, header, Rc::clone(&request), place, warning);
    let mut future = Box::pin(run);
    // Spawned, a task is polled afresh: the first poll needs no waker.
    match poll_once(future.as_mut()) {
        Poll::Ready(()) => shard.tally.answered_inline.inc(),
        Poll::Pending => {
            let running = shard.running.enter(What::of(request.get()), received, started);
            let watched = Watched { future, connection: Rc::clone(&connection), is_long: false };
            shard.env.spawn(Class::Statement, async move {
                watched.await;
                drop(running);
            });
        }
    }
}

/// A request under way, which counts among the long ones of its shard while it uses up its slices.
struct Watched<F> {
    future: Pin<Box<F>>,
    connection: Rc<Connection>,
    is_long: bool,
}

impl<F> Watched<F> {
    fn set_long(&mut self, is_long: bool) {
        let long = &self.connection.shard.long;
        match (std::mem::replace(&mut self.is_long, is_long), is_long) {
            (false, true) => long.set(long.get() + 1),
            (true, false) => long.set(long.get() - 1),
            _ => {}
        }
    }
}

impl<F: Future<Output = ()>> Future for Watched<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<()> {
        let connection = Rc::clone(&self.connection);
        let env = &connection.shard.env;
        let begun = env.now();
        let polled = self.future.as_mut().poll(cx);
        let took = env.now().since(begun);
        // the slice began a little before this poll
        self.set_long(polled.is_pending() && took >= SLICE / 2);
        polled
    }
}

impl<F> Drop for Watched<F> {
    fn drop(&mut self) {
        self.set_long(false);
    }
}

/// Answers a request that has waited for too long.
pub(crate) fn too_late(waiting: &Waiting) {
    let connection = &waiting.place.connection;
    connection.shard.tally.timed_out_before.inc();
    connection.respond_error(&waiting.header, &overloaded(TOO_LATE));
}

fn poll_once(future: Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
    future.poll(&mut TaskContext::from_waker(Waker::noop()))
}

/// Why a request of so many bytes is not even started.
pub(crate) fn refuse(
    connection: &Rc<Connection>,
    session: &Session,
    bytes: u64,
    received: Instant,
) -> Option<ErrorResponse> {
    let shard = &connection.shard;
    if shard.draining.get() {
        shard.tally.discarded_draining.inc();
        return Some(overloaded(SHUTTING_DOWN));
    }
    if shard.env.turn_now() > received + shard.settings.request_timeout {
        shard.tally.timed_out_before.inc();
        return Some(overloaded(TOO_LATE));
    }
    if session.throw_on_overload && !shard.in_flight.fits(&connection.account, bytes) {
        shard.tally.discarded.inc();
        return Some(overloaded(shard.in_flight.overloaded(&connection.account, session.version)));
    }
    if let Some(rate) = shard.rate.as_ref().filter(|_| session.throw_on_overload)
        && !rate.try_reserve(shard.env.turn_now())
    {
        shard.tally.discarded.inc();
        return Some(overloaded(rate.overloaded()));
    }
    None
}

async fn run<C: Coordinator>(
    coordinator: Rc<C>,
    context: Context,
    header: Header,
    request: Rc<Parsed>,
    place: Place,
    warning: Option<String>,
) {
    let connection = Rc::clone(&place.connection);
    let tally = &connection.shard.tally;
    let answering = Answering { connection: &connection, header: &header, warning };
    match request.get() {
        Request::Query { text, options } => {
            let outcome = coordinator.query(&context, text, options).await;
            tally.regular.add(u64::from(was_executed(&outcome)));
            answering.outcome(&context, outcome);
        }
        Request::Execute { id, result_metadata_id, options } => {
            let execute = Execute { id, result_metadata_id: *result_metadata_id, options };
            let outcome = coordinator.execute(&context, &execute).await;
            tally.prepared.add(u64::from(was_executed(&outcome)));
            answering.outcome(&context, outcome);
        }
        Request::Batch(batch) => {
            answering.outcome(&context, Box::pin(coordinator.batch(&context, batch)).await);
        }
        Request::Prepare { text, keyspace } => {
            answering.prepared(Box::pin(coordinator.prepare(&context, text, *keyspace)).await);
        }
        Request::AuthResponse(token) => {
            let step = match coordinator.authentication() {
                Authentication::None => {
                    return connection.respond(|out| {
                        Reply::new(header.version, header.stream).auth_success(out, None)
                    });
                }
                Authentication::Required(_) => coordinator.authenticate(&context, token).await,
            };
            answering.authentication(&context, step);
        }
        Request::Startup(_) | Request::Options | Request::Register(_) => {
            unreachable!("the driver answers what needs no coordinator")
        }
    }
    drop(place);
}

/// Did a statement run, well or not? What cannot be parsed or was never prepared did not.
fn was_executed(outcome: &Outcome) -> bool {
    !matches!(
        &outcome.result,
        Err(ErrorResponse {
            detail: ErrorDetail::SyntaxError | ErrorDetail::Unprepared { .. },
            ..
        })
    )
}

/// Writes the answer of one request.
struct Answering<'a> {
    connection: &'a Rc<Connection>,
    header: &'a Header,
    warning: Option<String>,
}

impl Answering<'_> {
    fn outcome(self, context: &Context, outcome: Outcome) {
        let Outcome { result, mut warnings, tracing } = outcome;
        warnings.extend(self.warning);
        let (version, stream) = (self.header.version, self.header.stream);
        let reply = Reply { version, stream, tracing, warnings: &warnings };
        if let Ok(Answer::SetKeyspace(keyspace)) = &result {
            context.session.set_keyspace(keyspace);
        }
        self.connection.respond(|out| match &result {
            Ok(answer) => write(out, &reply, answer),
            Err(error) => reply.error(out, error),
        });
    }

    fn prepared(self, outcome: PrepareOutcome) {
        let (version, stream) = (self.header.version, self.header.stream);
        let PrepareOutcome { result, mut warnings, tracing } = outcome;
        warnings.extend(self.warning);
        let reply = Reply { version, stream, tracing, warnings: &warnings };
        match result {
            Ok(PreparedAnswer { id, variables, result, names }) => {
                let prepared = Prepared { id, variables: &variables, result: &result, names };
                self.connection.respond(|out| reply.prepared(out, &prepared));
            }
            Err(error) => self.connection.respond(|out| reply.error(out, &error)),
        }
    }

    fn authentication(self, context: &Context, step: Result<AuthStep, ErrorResponse>) {
        let reply = Reply::new(self.header.version, self.header.stream);
        let tally = &self.connection.shard.tally;
        match step {
            Ok(AuthStep::Challenge(token)) => {
                self.connection.respond(|out| reply.auth_challenge(out, &token));
            }
            Ok(AuthStep::Success { user, token }) => {
                tally.auth_success.inc();
                context.session.set_user(user);
                self.connection.set_stage(Stage::Ready);
                self.connection.respond(|out| reply.auth_success(out, token.as_deref()));
            }
            Err(error) => {
                tally.auth_failure.inc();
                self.connection.respond(|out| reply.error(out, &error));
            }
        }
    }
}

fn write(out: &mut Vec<u8>, reply: &Reply<'_>, answer: &Answer) {
    match answer {
        Answer::Void => reply.void(out),
        Answer::SetKeyspace(keyspace) => reply.set_keyspace(out, keyspace),
        Answer::SchemaChange(change) => reply.schema_change(out, change),
        Answer::Rows(answer) => {
            let mut rows = Rows::begin(out, reply, &answer.metadata, answer.form);
            out.extend_from_slice(&answer.cells);
            for _ in 0..answer.rows {
                rows.end_row();
            }
            rows.finish(out, answer.paging_state.as_deref());
        }
    }
}
