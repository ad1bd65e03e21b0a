//! A connection's task: reads, finds frames, takes them through the connection's stages.
//!
//! It reads all bytes that are there at once. `protocol::Decoder` finds frames in place.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use env::{Instant, Sleep};
use protocol::{
    Decoder, ErrorDetail, ErrorResponse, Frame, Limits, Opcode, Outcome, ProtocolError, Refusal,
    Reply, Request, Started, Startup, Version, response,
};

use crate::coordinator::{Authentication, Coordinator};
use crate::parsed::Parsed;
use crate::request;
use crate::session::Session;
use crate::settings::{HANDSHAKE_FRAME, KEPT_BUFFER, LINGER, READ_CHUNK, TAKEN_IN, UNWANTED_REST};
use crate::shard::connection::{Connection, Stage};

/// The task of one connection.
pub(crate) struct Driver<C> {
    stages: Stages<C>,
    decoder: Decoder,
    /// What was read and is not done with.
    input: Vec<u8>,
    /// Bytes that `input` must hold for the decoder to find something; 0 where the decoder itself
    /// may hold messages still, in a segment that it has decompressed.
    needed: usize,
    /// When `input` was last added to.
    received: Instant,
    sleep: Option<Sleep>,
    /// Ends a pause of the connection.
    pause: Option<Sleep>,
    /// Bytes that were read since the last rest and that nobody wants.
    unwanted: usize,
    /// Ends a rest from reading such.
    rest: Option<Sleep>,
    /// Set once all answers are written and the client was told that no more follow.
    lingering: bool,
    /// When the connection began to close.
    closing_since: Option<Instant>,
}

/// Why decoding stopped.
enum Progress {
    /// At least this many bytes must be there.
    Needs(usize),
    /// The client must wait.
    Paused,
    /// Others shall have their turn.
    Yield,
    /// The connection is done for.
    Close,
}

/// What follows from a frame.
enum After {
    Next,
    /// Its body was malformed.
    Bad,
    Started(Started),
    Close,
}

/// What a step of the driver came to.
enum Step {
    Again,
    Wait,
    End,
}

impl<C: Coordinator> Driver<C> {
    pub fn new(connection: Rc<Connection>, coordinator: Rc<C>) -> Self {
        let settings = &connection.shard.settings;
        let frame = settings.max_frame_size.min(HANDSHAKE_FRAME);
        let limits = Limits { frame, message: frame };
        let received = connection.opened;
        Self {
            stages: Stages { connection, coordinator },
            decoder: Decoder::new(limits),
            input: Vec::new(),
            needed: 1,
            received,
            sleep: None,
            pause: None,
            unwanted: 0,
            rest: None,
            lingering: false,
            closing_since: None,
        }
    }

    fn poll_once(&mut self, cx: &mut Context<'_>) -> Step {
        let connection = Rc::clone(&self.stages.connection);
        if connection.is_closed() {
            return Step::End;
        }
        if self.is_expired(&connection, cx) {
            return Step::End;
        }
        if connection.is_blocked() && connection.poll_writable(cx).is_ready() {
            connection.flush();
            return Step::Again;
        }
        if connection.has_more() {
            connection.flush();
            // it has woken this task where more is left
            return if connection.has_more() { Step::Wait } else { Step::Again };
        }
        if connection.is_closing() {
            return self.close(&connection, cx);
        }
        if let Some(until) = connection.paused_until() {
            return self.wait_until(&connection, until, cx);
        }
        if !connection.may_read() {
            connection.stall();
            return Step::Wait;
        }
        connection.unstall();
        if self.input.len() >= self.needed {
            let input = std::mem::take(&mut self.input);
            let (used, progress) = self.decode(&input);
            self.keep(input, used);
            return self.after(progress, cx);
        }
        if self.is_resting(cx) {
            return Step::Wait;
        }
        self.read(&connection, cx)
    }

    /// More of what nobody wants is not read yet.
    fn is_resting(&mut self, cx: &mut Context<'_>) -> bool {
        let is_over = match &mut self.rest {
            Some(sleep) => Pin::new(sleep).poll(cx).is_ready(),
            None => return false,
        };
        if is_over {
            self.rest = None;
        }
        !is_over
    }

    /// So much was read that nobody wants.
    fn rest_after(&mut self, bytes: usize) {
        self.unwanted += bytes;
        if self.unwanted >= READ_CHUNK {
            self.unwanted = 0;
            self.rest = Some(self.stages.connection.shard.env.sleep(UNWANTED_REST));
        }
    }

    /// The connection is paused.
    fn wait_until(
        &mut self,
        connection: &Connection,
        until: Instant,
        cx: &mut Context<'_>,
    ) -> Step {
        connection.stall();
        let sleep = self.pause.insert(connection.shard.env.sleep_until(until));
        match Pin::new(sleep).poll(cx) {
            Poll::Ready(()) => Step::Again,
            Poll::Pending => Step::Wait,
        }
    }

    /// Reads once, and decodes from the shard's buffer what needs nothing from before.
    fn read(&mut self, connection: &Connection, cx: &mut Context<'_>) -> Step {
        let mut scratch = connection.shard.scratch();
        let step = match connection.try_read(&mut scratch) {
            Ok(None) => match connection.poll_readable(cx) {
                Poll::Ready(()) => Step::Again,
                Poll::Pending => Step::Wait,
            },
            Ok(Some(0)) => Step::End,
            Ok(Some(n)) => {
                connection.moved();
                self.received = connection.shard.env.turn_now();
                if self.decoder.is_discarding() {
                    self.rest_after(n);
                }
                let new = scratch.get(..n).unwrap_or_default();
                if self.input.is_empty() && n >= self.needed {
                    let (used, progress) = self.decode(new);
                    self.input.extend_from_slice(new.get(used..).unwrap_or_default());
                    self.after(progress, cx)
                } else {
                    self.input.extend_from_slice(new);
                    if connection.shard.env.should_yield() {
                        // A large message that comes in as fast as it is read.
                        cx.waker().wake_by_ref();
                        Step::Wait
                    } else {
                        Step::Again
                    }
                }
            }
            Err(_) => {
                connection.shard.tally.unknown_errors.inc();
                Step::End
            }
        };
        connection.shard.keep_scratch(scratch);
        step
    }

    /// Puts back what decoding left of the input.
    fn keep(&mut self, mut input: Vec<u8>, used: usize) {
        if used >= input.len() {
            input.clear();
            if input.capacity() > KEPT_BUFFER {
                return;
            }
        } else {
            input.drain(..used);
        }
        self.input = input;
    }

    fn after(&mut self, progress: Progress, cx: &Context<'_>) -> Step {
        self.needed = 0;
        match progress {
            Progress::Needs(bytes) => {
                self.needed = bytes.max(1);
                Step::Again
            }
            Progress::Paused => Step::Again,
            Progress::Yield => {
                cx.waker().wake_by_ref();
                Step::Wait
            }
            Progress::Close => {
                self.stages.connection.close_politely();
                Step::Again
            }
        }
    }

    /// Handles all messages in `input`, as far as the connection may go on; how much of it is used.
    fn decode(&mut self, input: &[u8]) -> (usize, Progress) {
        let Self { stages, decoder, received, .. } = self;
        let connection = &stages.connection;
        let shard = &connection.shard;
        let (mut used, mut taken_in) = (0, 0);
        let progress = loop {
            if connection.is_closed() || connection.is_closing() {
                break Progress::Close;
            }
            if !connection.may_read() {
                break Progress::Paused;
            }
            if shard.env.should_yield() {
                // behind requests that take long others are taken in all the same, to wait where
                // they are seen
                if connection.in_flight.get() == 0 || taken_in == TAKEN_IN {
                    break Progress::Yield;
                }
                taken_in += 1;
            }
            if connection.stage() == Stage::Ready {
                decoder.allow_large();
            }
            let step = decoder.next(input.get(used..).unwrap_or_default());
            used += step.consumed;
            let after = match step.outcome {
                Outcome::Wait(bytes) => break Progress::Needs(bytes),
                Outcome::Frame(frame) => stages.frame(&frame, *received),
                Outcome::Refused(refusal) => stages.refused(refusal),
            };
            match after {
                After::Next => {}
                After::Bad => {
                    if decoder.report_bad_body() {
                        break Progress::Close;
                    }
                }
                After::Started(started) => {
                    let settings = &shard.settings;
                    let (frame, message) = (settings.max_frame_size, settings.max_message_size);
                    *decoder = Decoder::new(Limits { frame, message });
                    decoder.start(started);
                }
                After::Close => break Progress::Close,
            }
        };
        (used, progress)
    }

    /// Waits until the last answers are written, says so, and gives the client time to take them:
    /// a socket closed with input unread would take its own last words back.
    fn close(&mut self, connection: &Connection, cx: &mut Context<'_>) -> Step {
        connection.unstall();
        if self.closing_since.is_none() {
            self.closing_since = Some(connection.shard.env.turn_now());
            self.input = Vec::new();
            return Step::Again;
        }
        if !self.lingering {
            if !connection.is_flushed() {
                return Step::Wait;
            }
            self.lingering = true;
            if connection.end_output().is_err() {
                return Step::End;
            }
        }
        if self.is_resting(cx) {
            return Step::Wait;
        }
        let mut scratch = connection.shard.scratch();
        let step = match connection.try_read(&mut scratch) {
            Ok(None) => match connection.poll_readable(cx) {
                Poll::Ready(()) => Step::Again,
                Poll::Pending => Step::Wait,
            },
            Ok(Some(0)) | Err(_) => Step::End,
            Ok(Some(n)) => {
                self.rest_after(n);
                Step::Again
            }
        };
        connection.shard.keep_scratch(scratch);
        step
    }

    // ---- time

    /// When the connection has had its time, as it stands.
    fn deadline(&self, connection: &Connection) -> Option<Instant> {
        let settings = &connection.shard.settings;
        if let Some(since) = self.closing_since {
            Some(since + LINGER)
        } else if connection.stage() != Stage::Ready {
            Some(connection.opened + settings.handshake_timeout)
        } else {
            settings.idle_timeout.map(|idle| connection.last_moved() + idle)
        }
    }

    fn is_expired(&mut self, connection: &Connection, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = self.deadline(connection) else {
            self.sleep = None;
            return false;
        };
        let now = connection.shard.env.turn_now();
        let is_waiting = connection.stage() == Stage::Ready && connection.in_flight.get() > 0;
        if now >= deadline {
            let tally = &connection.shard.tally;
            if self.closing_since.is_some() {
                tally.linger_timeouts.inc();
            } else if connection.stage() != Stage::Ready {
                tally.handshake_timeouts.inc();
            } else if is_waiting {
                // The client waits for us, not we for it.
                connection.moved();
                return false;
            } else {
                tally.idle_timeouts.inc();
            }
            return true;
        }
        // A timer that fires too early is set again then; one that would fire too late, now.
        let is_armed = self
            .sleep
            .as_ref()
            .is_some_and(|sleep| sleep.deadline() > now && sleep.deadline() <= deadline);
        if !is_armed {
            let sleep = self.sleep.insert(connection.shard.env.sleep_until(deadline));
            if Pin::new(sleep).poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        false
    }
}

impl<C: Coordinator> Future for Driver<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.stages.connection.set_waker(cx.waker());
        loop {
            match self.poll_once(cx) {
                Step::Again => {}
                Step::Wait => return Poll::Pending,
                Step::End => {
                    self.stages.connection.kill();
                    return Poll::Ready(());
                }
            }
        }
    }
}

impl<C> Unpin for Driver<C> {}

impl<C> Drop for Driver<C> {
    fn drop(&mut self) {
        let connection = &self.stages.connection;
        connection.kill();
        connection.shard.closed(connection.id);
    }
}

/// What a connection's messages mean at its stage.
struct Stages<C> {
    connection: Rc<Connection>,
    coordinator: Rc<C>,
}

impl<C: Coordinator> Stages<C> {
    /// A message that the decoder did not take.
    fn refused(&self, mut refusal: Refusal) -> After {
        let shard = &self.connection.shard;
        shard.tally.protocol_errors.inc();
        // The limit before STARTUP is ours alone; name the one that Cassandra would.
        if let ProtocolError::FrameTooBig { length, limit } = &mut refusal.error
            && *length > u64::from(shard.settings.max_frame_size)
        {
            *limit = shard.settings.max_frame_size;
        }
        self.connection.respond(|out| response::refusal(out, &refusal));
        if refusal.close { After::Close } else { After::Next }
    }

    fn protocol_error(&self, frame: &Frame<'_>, error: &ProtocolError) {
        self.connection.shard.tally.protocol_errors.inc();
        self.connection.respond_error(&frame.header, &error.into());
    }

    fn unexpected(&self, frame: &Frame<'_>, expected: &'static str) {
        let error = ProtocolError::UnexpectedMessage { got: frame.header.opcode, expected };
        self.protocol_error(frame, &error);
    }

    fn frame(&self, frame: &Frame<'_>, received: Instant) -> After {
        let tally = &self.connection.shard.tally;
        let size = (protocol::header::HEADER_LENGTH + frame.body.len()) as u64;
        self.connection.messages.set(self.connection.messages.get() + 1);
        tally.bytes_received.add(size);
        tally.bytes_per_request.record(size);
        let opcode = frame.header.opcode;
        if self.connection.stage() == Stage::Established {
            if !matches!(opcode, Opcode::Startup | Opcode::Options) {
                self.unexpected(frame, ProtocolError::EXPECTING_STARTUP);
                return After::Close;
            }
            if !self.is_version_allowed(frame) {
                return After::Next;
            }
        }
        let Some(session) = self.connection.session() else { return self.open(frame) };
        // before its body is kept and parsed: who is refused is to cost little
        if self.starts(opcode)
            && let Some(refusal) =
                request::refuse(&self.connection, session, frame.body.len() as u64, received)
        {
            self.connection.respond_error(&frame.header, &refusal);
            return After::Next;
        }
        let body = self.connection.shard.body(frame.body);
        let request = match Parsed::new(frame.header, body) {
            Ok(request) => Rc::new(request),
            Err(error) => {
                self.protocol_error(frame, &error);
                return After::Bad;
            }
        };
        if self.connection.stage() == Stage::Ready {
            return self.ready(frame, request, session, received);
        }
        if opcode == Opcode::AuthResponse {
            self.start(frame, request, session, received);
        } else {
            self.unexpected(frame, ProtocolError::EXPECTING_AUTH);
        }
        After::Next
    }

    /// Is it a request that takes a place among those under way?
    fn starts(&self, opcode: Opcode) -> bool {
        let is_statement =
            matches!(opcode, Opcode::Query | Opcode::Prepare | Opcode::Execute | Opcode::Batch);
        opcode == Opcode::AuthResponse || (is_statement && self.connection.stage() == Stage::Ready)
    }

    /// What comes before a session.
    fn open(&self, frame: &Frame<'_>) -> After {
        match Request::parse(*frame) {
            Ok(Request::Startup(startup)) => self.startup(frame, &startup),
            Ok(_) => self.options(frame),
            Err(error) => {
                self.protocol_error(frame, &error);
                // Cassandra hangs up on a STARTUP that it cannot read, even without an answer.
                After::Close
            }
        }
    }

    fn ready(
        &self,
        frame: &Frame<'_>,
        request: Rc<Parsed>,
        session: &Rc<Session>,
        received: Instant,
    ) -> After {
        match request.get() {
            Request::Startup(_) => self.unexpected(frame, ProtocolError::ALREADY_STARTED),
            Request::Options => return self.options(frame),
            Request::Register(register) => {
                let hub = &self.connection.shard.hub;
                hub.register(&self.connection, session.version, register.events());
                let reply = Reply::new(frame.header.version, frame.header.stream);
                self.connection.respond(|out| reply.ready(out));
            }
            _ => self.start(frame, request, session, received),
        }
        After::Next
    }

    fn start(
        &self,
        frame: &Frame<'_>,
        request: Rc<Parsed>,
        session: &Rc<Session>,
        received: Instant,
    ) {
        let header = frame.header;
        request::start(&self.coordinator, &self.connection, session, header, request, received);
    }

    fn options(&self, frame: &Frame<'_>) -> After {
        let reply = Reply::new(frame.header.version, frame.header.stream);
        let supported = &self.connection.shard.supported;
        if supported.names_shards() {
            self.connection.tell_of_shards();
        }
        self.connection.respond(|out| supported.write(out, &reply));
        After::Next
    }

    fn startup(&self, frame: &Frame<'_>, startup: &Startup<'_>) -> After {
        let (version, stream) = (frame.header.version, frame.header.stream);
        let started = match startup.negotiate(version) {
            Ok(started) => started,
            Err(error) => {
                self.protocol_error(frame, &error);
                return After::Next;
            }
        };
        let connection = &self.connection;
        let (id, remote) = (connection.id, connection.remote);
        let shards = connection.was_told_of_shards();
        let shard = &connection.shard;
        shard.seen.see(version.number(), remote.ip(), shard.env.unix_micros());
        connection.set_session(Session::new(id, version, remote, shards, startup));
        let reply = Reply::new(version, stream);
        match self.coordinator.authentication() {
            Authentication::None => {
                connection.set_stage(Stage::Ready);
                connection.answer_startup(started, |out| reply.ready(out));
            }
            Authentication::Required(class) => {
                connection.set_stage(Stage::Authenticating);
                connection.answer_startup(started, |out| reply.authenticate(out, class));
            }
        }
        After::Started(started)
    }

    /// `native_transport_allow_older_protocols: false` refuses what is older than version 5.
    fn is_version_allowed(&self, frame: &Frame<'_>) -> bool {
        let version = frame.header.version;
        if version >= Version::CURRENT || self.connection.shard.allows_older_protocols.get() {
            return true;
        }
        self.connection.shard.tally.protocol_errors.inc();
        let error = ErrorResponse {
            message: format!("Rejecting Protocol Version {version} < {}.", Version::CURRENT),
            detail: ErrorDetail::ProtocolError,
        };
        let reply = Reply::new(Version::CURRENT, frame.header.stream);
        self.connection.respond(|out| reply.error(out, &error));
        false
    }
}
