//! One connection, as its driver, its requests and the events hub share it.
//!
//! Answers gather in one buffer a connection, which is written when the turn ends. Metadata and
//! cells of a result go into it at once.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use env::{Instant, TcpStream};
use protocol::{ErrorResponse, Header, Reply, Started, Version};
use tls::TlsStream;

use crate::admission::{OfIp, Permit};
use crate::output::{EncodedEvent, Flushed, Output};
use crate::session::Session;
use crate::settings::{UNREAD_ANSWERS, UNREAD_EVENTS};
use crate::shard::Shard;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// STARTUP is to come.
    Established,
    /// AUTH_RESPONSE is to come.
    Authenticating,
    /// Statements may come.
    Ready,
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub shard: Rc<Shard>,
    pub id: u64,
    pub remote: SocketAddr,
    pub opened: Instant,
    pub account: OfIp,
    /// Requests let in and not finished.
    pub in_flight: Cell<usize>,
    /// Messages of the client so far.
    pub messages: Cell<u64>,
    stage: Cell<Stage>,
    session: OnceCell<Rc<Session>>,
    told_of_shards: Cell<bool>,
    /// None once the connection is closed, even while requests of it still run.
    stream: RefCell<Option<TcpStream>>,
    /// Between the connection and its socket; none where bytes travel as they are.
    tls: Option<Box<RefCell<TlsStream>>>,
    output: RefCell<Output>,
    events: RefCell<Vec<EncodedEvent>>,
    dirty: Cell<bool>,
    /// The socket did not take all of the output.
    blocked: Cell<bool>,
    /// A piece of the output was written, and the driver is to write the next.
    has_more: Cell<bool>,
    /// Answer what is queued, then close.
    closing: Cell<bool>,
    over_limit: Cell<bool>,
    /// Nothing more is read before this.
    paused_until: Cell<Option<Instant>>,
    /// The driver waits until [`Self::may_read`].
    stalled: Cell<bool>,
    last_moved: Cell<Instant>,
    waker: RefCell<Option<Waker>>,
    permit: RefCell<Option<Permit>>,
}

impl Connection {
    /// # Errors
    /// If TLS cannot begin.
    pub fn new(
        shard: Rc<Shard>,
        stream: TcpStream,
        remote: SocketAddr,
        permit: Permit,
    ) -> io::Result<Self> {
        let now = shard.env.now();
        let tls = match &shard.settings.tls {
            Some(tls) => {
                Some(Box::new(RefCell::new(TlsStream::accepting(tls, shard.env.unix_micros())?)))
            }
            None => None,
        };
        Ok(Self {
            tls,
            id: shard.next_id(),
            remote,
            opened: now,
            account: shard.in_flight.of(remote.ip()),
            in_flight: Cell::new(0),
            messages: Cell::new(0),
            stage: Cell::new(Stage::Established),
            session: OnceCell::new(),
            told_of_shards: Cell::new(false),
            stream: RefCell::new(Some(stream)),
            output: RefCell::default(),
            events: RefCell::default(),
            dirty: Cell::new(false),
            blocked: Cell::new(false),
            has_more: Cell::new(false),
            closing: Cell::new(false),
            over_limit: Cell::new(false),
            paused_until: Cell::new(None),
            stalled: Cell::new(false),
            last_moved: Cell::new(now),
            waker: RefCell::default(),
            permit: RefCell::new(Some(permit)),
            shard,
        })
    }

    // ---- state

    /// Protocol and cipher suite, where it is encrypted.
    pub fn agreed_tls(&self) -> Option<(String, String)> {
        self.tls.as_ref()?.borrow().agreed()
    }

    pub fn stage(&self) -> Stage {
        self.stage.get()
    }

    pub fn set_stage(&self, stage: Stage) {
        self.stage.set(stage);
        if stage == Stage::Ready {
            self.shard.handshake_over(self.id);
        }
    }

    /// The session; none before STARTUP.
    pub fn session(&self) -> Option<&Rc<Session>> {
        self.session.get()
    }

    pub fn set_session(&self, session: Session) {
        // A connection is started once; a second STARTUP is refused.
        let _ = self.session.set(Rc::new(session));
    }

    /// Has an answer to OPTIONS named the node's shards?
    pub fn was_told_of_shards(&self) -> bool {
        self.told_of_shards.get()
    }

    pub fn tell_of_shards(&self) {
        self.told_of_shards.set(true);
    }

    pub fn last_moved(&self) -> Instant {
        self.last_moved.get()
    }

    pub fn moved(&self) {
        self.last_moved.set(self.shard.env.turn_now());
    }

    pub fn is_closed(&self) -> bool {
        self.stream.borrow().is_none()
    }

    pub fn is_closing(&self) -> bool {
        self.closing.get()
    }

    pub fn is_blocked(&self) -> bool {
        self.blocked.get()
    }

    /// Is there output that the socket might take?
    pub fn has_more(&self) -> bool {
        self.has_more.get()
    }

    /// Nothing is left to be written?
    pub fn is_flushed(&self) -> bool {
        let is_sent = self.tls.as_ref().is_none_or(|tls| tls.borrow().is_flushed());
        is_sent && self.output.borrow().is_empty() && self.events.borrow().is_empty()
    }

    // ---- wake-ups

    pub fn set_waker(&self, waker: &Waker) {
        match &mut *self.waker.borrow_mut() {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    pub fn wake(&self) {
        let waker = self.waker.borrow().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// May more requests be taken from the client?
    pub fn may_read(&self) -> bool {
        let settings = &self.shard.settings;
        !self.over_limit.get()
            && self.paused_until.get().is_none()
            && self.in_flight.get() < settings.max_requests_per_connection.max(1)
            && self.output.borrow().unsent() <= settings.max_unsent.saturating_mul(UNREAD_ANSWERS)
    }

    /// May more requests of it be started? Not while the client has much to read.
    pub fn may_start(&self) -> bool {
        self.output.borrow().unsent() <= self.shard.settings.max_unsent
    }

    /// The driver stops until [`Self::may_read`] again; counts why.
    pub fn stall(&self) {
        if self.stalled.replace(true) {
            return;
        }
        let tally = &self.shard.tally;
        tally.paused.inc();
        if self.paused_until.get().is_some() {
            tally.paused_rate.inc();
        } else if self.over_limit.get() {
            tally.paused_bytes.inc();
        } else if self.in_flight.get() >= self.shard.settings.max_requests_per_connection.max(1) {
            tally.paused_requests.inc();
        } else {
            tally.paused_unread.inc();
        }
    }

    pub fn unstall(&self) {
        if self.stalled.replace(false) {
            self.shard.tally.paused.dec();
        }
    }

    fn wake_if_stalled(&self) {
        if self.stalled.get() && self.may_read() {
            self.wake();
        }
    }

    /// Until when nothing more is read, if that is still to come.
    pub fn paused_until(&self) -> Option<Instant> {
        let until = self.paused_until.get()?;
        if until <= self.shard.env.turn_now() {
            self.paused_until.set(None);
            return None;
        }
        Some(until)
    }

    /// Reads nothing more for a while.
    pub fn pause(&self, delay: Duration) {
        self.paused_until.set(Some(self.shard.env.turn_now() + delay));
    }

    /// A request was let in above the limits: no more until bytes are given back.
    pub fn breached(self: &Rc<Self>) {
        if !self.over_limit.replace(true) {
            self.shard.wait_for_bytes(Rc::clone(self));
        }
    }

    pub fn bytes_free(&self) {
        self.over_limit.set(false);
        self.wake_if_stalled();
    }

    pub fn request_finished(&self) {
        self.in_flight.set(self.in_flight.get().saturating_sub(1));
        self.wake_if_stalled();
    }

    // ---- output

    /// Queues one message.
    pub fn respond(self: &Rc<Self>, message: impl FnOnce(&mut Vec<u8>)) {
        if self.is_closed() {
            self.shard.tally.answers_dropped.inc();
            return;
        }
        let length = self.output.borrow_mut().write(message);
        let length = length as u64;
        self.shard.tally.bytes_sent.add(length);
        self.shard.tally.bytes_per_response.record(length);
        self.mark_dirty();
    }

    /// Queues an error for a request.
    pub fn respond_error(self: &Rc<Self>, header: &Header, error: &ErrorResponse) {
        let reply = Reply::new(header.version, header.stream);
        self.respond(|out| reply.error(out, error));
    }

    /// Queues READY or what else answers a STARTUP that is agreed on, before or after the framing
    /// changes as the version has it.
    pub fn answer_startup(self: &Rc<Self>, started: Started, message: impl FnOnce(&mut Vec<u8>)) {
        if started.version < Version::V5 {
            self.output.borrow_mut().start(started);
            self.respond(message);
        } else {
            self.respond(message);
            self.output.borrow_mut().start(started);
        }
    }

    /// Queues an event behind the responses of this turn. A client that does not read them is
    /// better off without a connection than without events.
    pub fn event(self: &Rc<Self>, event: EncodedEvent) {
        let limit = self.shard.settings.max_unsent.saturating_mul(UNREAD_EVENTS);
        let queued: usize = self.events.borrow().iter().map(|event| event.len()).sum();
        let unsent = self.output.try_borrow().map_or(0, |output| output.unsent());
        if unsent + queued > limit {
            self.shard.tally.events_unread.inc();
            self.kill();
            return;
        }
        self.shard.tally.events_sent.inc();
        self.events.borrow_mut().push(event);
        self.mark_dirty();
    }

    fn mark_dirty(self: &Rc<Self>) {
        if !self.dirty.replace(true) {
            self.shard.mark_dirty(Rc::clone(self));
        }
    }

    /// Writes what is queued, as far as the socket takes it; of much a piece, and wakes the driver
    /// for the next.
    pub fn flush(&self) {
        self.dirty.set(false);
        self.has_more.set(false);
        let result = {
            let stream = self.stream.borrow();
            let Some(stream) = &*stream else { return };
            let output = &mut *self.output.borrow_mut();
            let before = output.unsent();
            for event in self.events.borrow_mut().drain(..) {
                output.event(&event);
            }
            let result = match &self.tls {
                None => output.flush(|bytes| stream.try_write(bytes)),
                Some(tls) => {
                    let tls = &mut *tls.borrow_mut();
                    let flushed = output.flush(|bytes| tls.try_write(stream, bytes));
                    flushed.and_then(|flushed| match tls.flush(stream)? {
                        true => Ok(flushed),
                        false => Ok(Flushed::Blocked),
                    })
                }
            };
            if output.unsent() < before {
                self.moved();
            }
            result
        };
        if self.may_start() {
            self.shard.queue.may_go_on();
        }
        match result {
            Ok(flushed) => {
                let is_blocked = flushed == Flushed::Blocked;
                let was_blocked = self.blocked.replace(is_blocked);
                self.has_more.set(flushed == Flushed::Piece);
                if is_blocked != was_blocked || self.has_more() || self.closing.get() {
                    self.wake();
                } else {
                    self.wake_if_stalled();
                }
            }
            Err(_) => {
                self.shard.tally.unknown_errors.inc();
                self.kill();
            }
        }
    }

    // ---- the socket

    /// Runs `f` on the socket; none once the connection is closed.
    pub fn with_stream<T>(&self, f: impl FnOnce(&TcpStream) -> T) -> Option<T> {
        self.stream.borrow().as_ref().map(f)
    }

    pub fn try_read(&self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        let read = |stream: &TcpStream| match &self.tls {
            None => stream.try_read(buf),
            Some(tls) => {
                let tls = &mut *tls.borrow_mut();
                let read = tls.try_read(stream, buf);
                if !tls.is_flushed() {
                    // of the handshake: the driver sends the rest
                    self.blocked.set(true);
                }
                read
            }
        };
        self.with_stream(read).unwrap_or(Ok(Some(0)))
    }

    /// Tells the client that nothing more is sent.
    pub fn end_output(&self) -> io::Result<()> {
        let end = |stream: &TcpStream| {
            if let Some(tls) = &self.tls {
                tls.borrow_mut().end(stream);
            }
            stream.shutdown(std::net::Shutdown::Write)
        };
        self.with_stream(end).unwrap_or(Ok(()))
    }

    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.with_stream(|stream| stream.poll_readable(cx)).unwrap_or(Poll::Ready(()))
    }

    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.with_stream(|stream| stream.poll_writable(cx)).unwrap_or(Poll::Ready(()))
    }

    // ---- end

    /// Takes no more requests; closes when what is queued has been written.
    pub fn close_politely(&self) {
        if !self.closing.replace(true) {
            self.wake();
        }
    }

    /// Closes now. Requests that still run go on to their end, and their answers are dropped.
    pub fn kill(&self) {
        let stream = self.stream.borrow_mut().take();
        if stream.is_none() {
            return;
        }
        drop(stream);
        self.unstall();
        self.events.borrow_mut().clear();
        if let Ok(mut output) = self.output.try_borrow_mut() {
            output.clear();
        }
        let permit = self.permit.borrow_mut().take();
        drop(permit);
        self.wake();
    }
}
