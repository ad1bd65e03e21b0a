//! Traced requests: what each is, and its rows in `system_traces` (`tracing.TraceKeyspace`).
//!
//! Events are gathered in a [`Trace`] that travels with the request; the rows are written after its
//! answer, all of them in one mutation, so that a session with a duration has all its events.
//!
//! Messages name the session. A replica writes its own events (`PeerTrace`).

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use cql::{Values, redacted};
use env::{Class, Env, Instant};
use internode::Verb;
use messaging::Served;
use metrics::{Counter, Name, Registry, Unit};
use protocol::{Consistency, QueryOptions};
use rows::{Mutation, RowBuilder, UpdateBuilder};
use schema::Table;
use storage::{StorageError, Trace};
use types::CqlType;

use crate::answer::{Answer, Outcome};
use crate::internal::{self, Internal, Times};
use crate::peers::Peers;
use crate::prepared::Entry;
use crate::ring_write::{RingWrite, RingWrites};
use crate::shard_context::ShardContext;
use crate::values::Bound;

/// What kind of session it is, in Cassandra's word (`Tracing.TraceType`).
const COMMAND: &str = "QUERY";
/// Characters of a bound value that a trace shows.
const VALUE_CHARS_MAX: usize = 1_000;
/// Requests of other nodes that a shard traces at once; of more nothing is noted.
const PEER_TRACES_MAX: usize = 256;

/// A traced request, on the shard that its client talks to.
#[derive(Debug)]
pub struct Tracing {
    trace: Trace,
    client: IpAddr,
    started_at: i64,
    begun: RefCell<Option<Begun>>,
}

/// What the request turned out to be.
#[derive(Debug)]
struct Begun {
    request: &'static str,
    parameters: Vec<(String, String)>,
}

impl Tracing {
    /// Where events are noted.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The session's id.
    pub fn id(&self) -> Option<[u8; 16]> {
        self.trace.id()
    }

    fn begin(&self, request: &'static str, parameters: Vec<(String, String)>) {
        *self.begun.borrow_mut() = Some(Begun { request, parameters });
    }

    /// A statement is run from its text.
    pub(crate) fn begin_query(&self, text: &str, options: &QueryOptions<'_>) {
        let mut parameters = paging(options);
        parameters.push(("query".to_owned(), redacted(text).into_owned()));
        self.begin("Execute CQL3 query", parameters);
    }

    /// A statement is prepared.
    pub(crate) fn begin_prepare(&self, text: &str) {
        self.begin("Preparing CQL3 query", vec![("query".to_owned(), redacted(text).into_owned())]);
    }

    /// A prepared statement is run.
    pub(crate) fn begin_execute(&self, entry: &Entry, options: &QueryOptions<'_>) {
        let mut parameters = paging(options);
        parameters.push(("query".to_owned(), redacted(&entry.text).into_owned()));
        let variables = &entry.prepared.variables;
        if let Ok(values) = Bound::new(options.values, variables) {
            for (n, variable) in variables.iter().enumerate() {
                let value = literal(&variable.ty, values.get(n));
                parameters.push((format!("bound_var_{n}_{}", variable.name), value));
            }
        }
        self.begin("Execute CQL3 prepared query", parameters);
    }

    /// A BATCH message is run.
    pub(crate) fn begin_batch(&self, options: &QueryOptions<'_>) {
        self.begin("Execute batch of CQL3 queries", levels(options));
    }
}

fn levels(options: &QueryOptions<'_>) -> Vec<(String, String)> {
    let level = |name: &str, level: Consistency| (name.to_owned(), level.name().to_owned());
    vec![
        level("consistency_level", options.consistency),
        level("serial_consistency_level", options.serial_consistency),
    ]
}

fn paging(options: &QueryOptions<'_>) -> Vec<(String, String)> {
    let mut parameters = levels(options);
    let size = options.page_size.filter(|size| *size > 0);
    parameters.extend(size.map(|size| ("page_size".to_owned(), size.to_string())));
    parameters
}

/// A bound value as a literal, cut where it is long.
fn literal(ty: &CqlType, value: cql::Value<'_>) -> String {
    let mut text = match value {
        cql::Value::Unset => "<unset>".to_owned(),
        cql::Value::Null => "null".to_owned(),
        cql::Value::Bytes(bytes) => ty.to_cql_literal(bytes),
    };
    if let Some((end, _)) = text.char_indices().nth(VALUE_CHARS_MAX) {
        text.truncate(end);
        text.push_str("...'");
    }
    text
}

/// Traces requests.
pub struct Tracer {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    writes: Rc<RingWrites>,
    /// The share of requests that are traced though nobody asked for it: `nodetool
    /// settraceprobability`.
    probability: Cell<f64>,
    /// As many handles as requests of other nodes are being traced, and one more.
    of_peers: Rc<()>,
    /// Traces that could not be written.
    lost: Counter,
}

impl Tracer {
    pub(crate) fn new(
        shard: &Rc<ShardContext>,
        peers: &Rc<Peers>,
        writes: &Rc<RingWrites>,
        registry: &Registry,
    ) -> Rc<Self> {
        let lost = Name::new("Coordinator", "TracesLost");
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            writes: Rc::clone(writes),
            probability: Cell::new(0.0),
            of_peers: Rc::default(),
            lost: registry.counter(lost, Unit::Count, "Traces that could not be written."),
        })
    }

    /// The share of requests that are traced though nobody asked for it.
    pub fn probability(&self) -> f64 {
        self.probability.get()
    }

    /// Traces this share of the requests of this shard.
    pub fn set_probability(&self, probability: f64) {
        self.probability.set(probability);
    }

    fn is_drawn(&self) -> bool {
        let probability = self.probability.get();
        // 53 bits: as many as a double tells apart
        probability > 0.0
            && ((self.shard.env.random_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// A request begins; of almost all nothing is traced.
    #[inline]
    pub fn start(&self, is_asked_for: bool, client: IpAddr) -> Option<Rc<Tracing>> {
        if !is_asked_for && !self.is_drawn() {
            return None;
        }
        let trace = Trace::start(&self.shard.env, self.shard.time_uuid());
        let started_at = self.shard.unix_millis();
        Some(Rc::new(Tracing { trace, client, started_at, begun: RefCell::default() }))
    }

    /// A traced request ends with an outcome: its rows are written while the answer is on its way.
    pub fn end(self: &Rc<Self>, tracing: Option<&Rc<Tracing>>, outcome: &Outcome) {
        let Some(tracing) = tracing else { return };
        tracing.trace.note(&self.shard.env, || match &outcome.result {
            Ok(Answer::Rows(page)) => format!("Answering with {} rows", page.rows),
            Ok(_) => "Answering".to_owned(),
            Err(error) => format!("Answering with an error: {}", error.message),
        });
        self.write_tracing(tracing);
    }

    /// As [`Self::end`], of a request that prepared a statement.
    pub fn end_prepare(self: &Rc<Self>, tracing: Option<&Rc<Tracing>>) {
        let Some(tracing) = tracing else { return };
        tracing.trace.note(&self.shard.env, || "Answering with a prepared statement".to_owned());
        self.write_tracing(tracing);
    }

    fn write_tracing(self: &Rc<Self>, tracing: &Rc<Tracing>) {
        let (this, tracing) = (Rc::clone(self), Rc::clone(tracing));
        let started = tracing.trace.started().unwrap_or(Instant::ZERO);
        let took = self.shard.env.now().since(started);
        self.shard.env.spawn(Class::Background, async move {
            // a trace that cannot be written is no reason to fail anything
            if this.write_session(&tracing, took).await.is_err() {
                this.lost.inc();
            }
        });
    }

    async fn write_session(
        self: &Rc<Self>,
        tracing: &Tracing,
        took: Duration,
    ) -> Result<(), StorageError> {
        let schema = self.shard.schema();
        let table = |name| schema.table("system_traces", name);
        let (Some(sessions), Some(events), Some(id)) =
            (table("sessions"), table("events"), tracing.id())
        else {
            return Ok(());
        };
        let (timestamp, times) = self.times_of_trace();
        let session = self.session_row(sessions, id, tracing, int(took.as_micros()), &times);
        let mut mutation = session;
        // of the same key as the session, and of another table
        drop(mutation.push(self.event_rows(events, id, &tracing.trace, &times)));
        self.write_traced(mutation, timestamp).await
    }

    /// Writes rows of a session to whoever has them; nobody waits for others.
    async fn write_traced(
        self: &Rc<Self>,
        mutation: Mutation,
        timestamp: i64,
    ) -> Result<(), StorageError> {
        let schema = self.shard.schema();
        let keyspace = schema.keyspace("system_traces");
        let scope = keyspace.and_then(|keyspace| self.peers.scope(keyspace).ok().flatten());
        let Some(scope) = scope else { return internal::apply(&self.shard.engine, mutation).await };
        let plan = scope.write_plan(mutation.token(), Consistency::Any);
        let Ok(plan) = plan else { return Err(StorageError::Deadline) };
        let write =
            RingWrite { scope, plan, mutation, is_durable: true, made_at: timestamp / 1000 };
        self.writes.send_write(write, false, &Trace::OFF).map(drop)
    }

    fn times_of_trace(&self) -> (i64, Times) {
        let timestamp = self.shard.env.unique_micros();
        let ttl = i32::try_from(self.shard.config.trace_query_ttl.as_secs()).unwrap_or(i32::MAX);
        (timestamp, Times { timestamp, now_seconds: timestamp / 1_000_000, ttl })
    }

    fn session_row(
        &self,
        table: &Arc<Table>,
        id: [u8; 16],
        tracing: &Tracing,
        took: Vec<u8>,
        times: &Times,
    ) -> Mutation {
        let text = |text: &str| Internal::Value(text.as_bytes().to_vec());
        let begun = tracing.begun.borrow();
        let mut columns = vec![
            ("command", text(COMMAND)),
            ("client", address(tracing.client)),
            ("coordinator", address(self.shard.identity.broadcast)),
            ("coordinator_port", port(self.shard.identity.storage_port)),
            ("duration", Internal::Value(took)),
            ("started_at", Internal::Value(tracing.started_at.to_be_bytes().to_vec())),
        ];
        if let Some(begun) = &*begun {
            columns.push(("request", text(begun.request)));
            columns.extend(begun.parameters.iter().map(|(name, value)| {
                ("parameters", Internal::Entry(name.clone().into(), value.clone().into()))
            }));
        }
        internal::insert(table, &[&id], &[], &columns, times)
    }

    fn event_rows(
        &self,
        table: &Arc<Table>,
        id: [u8; 16],
        trace: &Trace,
        times: &Times,
    ) -> rows::PartitionUpdate {
        let noted = trace.take();
        let (mut row, mut scratch) = (RowBuilder::new(), RowBuilder::new());
        let mut update = UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &id);
        let left_out = (noted.left_out > 0).then(|| storage::TraceEvent {
            at: self.shard.env.unique_micros(),
            elapsed: noted.events.last().map(|event| event.elapsed).unwrap_or_default(),
            shard: self.shard.env.shard(),
            activity: format!("{} more events are left out", noted.left_out),
        });
        for event in noted.events.iter().chain(&left_out) {
            let key = self.shard.time_uuid_at(event.at).to_bytes();
            let columns = [
                ("activity", Internal::Value(event.activity.clone().into())),
                ("source", address(self.shard.identity.broadcast)),
                ("source_port", port(self.shard.identity.storage_port)),
                ("source_elapsed", Internal::Value(int(event.elapsed.as_micros()))),
                ("thread", Internal::Value(format!("shard-{}", event.shard).into())),
            ];
            internal::build_row(table, &[&key], &columns, times, &mut row);
            update.add(row.finish_row(&table.layout), &mut scratch);
        }
        update.finish(&mut scratch)
    }
}

/// What happens here of a session of another node, which writes its own part of it itself
/// (`Tracing.initializeFromMessage`).
pub(crate) struct PeerTrace {
    trace: Trace,
    /// One of those that there may be at once.
    slot: Option<Rc<()>>,
}

impl PeerTrace {
    /// Where events are noted.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The request is answered now.
    pub fn answers(&self, env: &Env, request: &Served) {
        let to = request.header.params.respond_to().unwrap_or(request.from);
        self.trace.note(env, || format!("Enqueuing response to /{to}"));
        self.trace.note(env, || {
            let verb = request.header.verb.answer().map_or("", Verb::name);
            format!("Sending {verb} message to /{to}")
        });
    }
}

impl Tracer {
    /// A request of another node begins, which may be traced there.
    pub(crate) fn begin_of_peer(&self, request: &Served) -> PeerTrace {
        let off = PeerTrace { trace: Trace::OFF, slot: None };
        let Some(id) = request.header.params.trace_session() else { return off };
        if Rc::strong_count(&self.of_peers) > PEER_TRACES_MAX {
            self.lost.inc();
            return off;
        }
        let trace = Trace::start(&self.shard.env, id.to_bytes());
        trace.note(&self.shard.env, || {
            format!("{} message received from /{}", request.header.verb.name(), request.from)
        });
        PeerTrace { trace, slot: Some(Rc::clone(&self.of_peers)) }
    }

    /// Its answer is on its way: what happened here goes to its session.
    pub(crate) async fn end_of_peer(self: &Rc<Self>, traced: PeerTrace) {
        let PeerTrace { trace, slot } = traced;
        let schema = self.shard.schema();
        let Some((id, events)) = trace.id().zip(schema.table("system_traces", "events")) else {
            return;
        };
        let (timestamp, times) = self.times_of_trace();
        let mutation = Mutation::new(self.event_rows(events, id, &trace, &times));
        if self.write_traced(mutation, timestamp).await.is_err() {
            self.lost.inc();
        }
        drop(slot);
    }
}

fn int(value: impl TryInto<i32>) -> Vec<u8> {
    value.try_into().unwrap_or(i32::MAX).to_be_bytes().to_vec()
}

fn port(port: u16) -> Internal {
    Internal::Value(int(port))
}

fn address(ip: IpAddr) -> Internal {
    Internal::Value(match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    })
}
