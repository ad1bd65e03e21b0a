//! Sends a node what is kept for it, file by file, in order, a number of hints at a time
//! (`HintsDispatcher`).
//!
//! A file goes once all in it is acknowledged. Where one is not, the delivery ends, and the next
//! one begins with the first that was not: some behind it may be delivered twice, which does no
//! harm.
//!
//! Hints that are due (`speed`) are sent, with no more under way than the node takes without a
//! queue (`pace`). The place in the file moves on behind what is acknowledged, and is saved beside
//! the file.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use env::sync::Notify;
use hints::{HintFile, PageHint, record};
use internode::payload::Hint as HintMessage;
use internode::{Flags, Params, Verb};
use messaging::Failed;
use metrics::Level;
use types::{Address, Uuid};

use super::pace::Pace;
use super::speed::Speed;
use super::targets::{Target, Targets};

/// Bytes under way at most, but for a hint that has more.
const BYTES_UNDER_WAY: usize = 2 << 20;
/// How long hints that are not due yet are waited for: those that are due then are sent together.
const TOGETHER: Duration = Duration::from_millis(50);
/// How long to wait for a file's writer before it is looked again whether there is more.
const WRITER: Duration = Duration::from_millis(10);

/// A hint that was sent, or passed over.
struct Sent {
    number: u64,
    /// Where to go on once it is delivered.
    end: u64,
    bytes: usize,
    is_done: bool,
}

/// What is under way.
struct Flight {
    sent: RefCell<VecDeque<Sent>>,
    next: Cell<u64>,
    under_way: Cell<usize>,
    bytes: Cell<usize>,
    pace: RefCell<Pace>,
    speed: RefCell<Speed>,
    has_failed: Cell<bool>,
    bell: Notify,
}

impl Flight {
    fn new(now: Instant) -> Self {
        Self {
            sent: RefCell::default(),
            next: Cell::default(),
            under_way: Cell::default(),
            bytes: Cell::default(),
            pace: RefCell::new(Pace::new(now)),
            speed: RefCell::new(Speed::new(now)),
            has_failed: Cell::default(),
            bell: Notify::new(),
        }
    }

    fn has_room(&self) -> bool {
        let is_first = self.under_way.get() == 0;
        let has_room = self.pace.borrow().has_room(self.under_way.get());
        is_first || (has_room && self.bytes.get() < BYTES_UNDER_WAY)
    }

    fn push(&self, end: u64, bytes: usize, is_done: bool) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.sent.borrow_mut().push_back(Sent { number, end, bytes, is_done });
        if !is_done {
            self.under_way.set(self.under_way.get() + 1);
            self.bytes.set(self.bytes.get() + bytes);
        }
        number
    }

    fn answered(&self, number: u64, is_done: bool) {
        let mut sent = self.sent.borrow_mut();
        // one that is not answered stays, and so do those behind it
        let first = sent.front().expect("a hint that is answered is under way").number;
        let place = number.checked_sub(first).expect("a hint is answered once");
        let sent = sent.get_mut(place as usize).expect("a hint that is answered was sent");
        assert_eq!(sent.number, number, "hints are counted in the order in which they are sent");
        sent.is_done = is_done;
        self.under_way.set(self.under_way.get() - 1);
        self.bytes.set(self.bytes.get() - sent.bytes);
        self.bell.notify_one();
    }

    /// Moves a file's place on behind what is delivered.
    fn settle(&self, file: &HintFile) {
        let mut sent = self.sent.borrow_mut();
        while let Some(done) = sent.pop_front_if(|sent| sent.is_done) {
            file.set_sent(done.end);
        }
    }

    /// Waits until everything under way came to an end.
    async fn landed(&self) {
        while self.under_way.get() > 0 {
            self.bell.notified().await;
        }
    }
}

/// One node's delivery.
pub(super) struct Delivery<'a> {
    targets: &'a Rc<Targets>,
    /// Whose hints.
    host: Uuid,
    /// Who is sent them, and where it is.
    to: Uuid,
    address: Address,
    flight: Rc<Flight>,
    /// When the next may be sent, where a number of bytes a second is set.
    next: Cell<Instant>,
}

impl<'a> Delivery<'a> {
    pub fn new(targets: &'a Rc<Targets>, host: Uuid, to: Uuid, address: Address) -> Self {
        let now = targets.env.now();
        let (flight, next) = (Rc::new(Flight::new(now)), Cell::new(now));
        Self { targets, host, to, address, flight, next }
    }

    /// Delivers all that there is. False if it stopped before.
    pub async fn run(&self) -> io::Result<bool> {
        while let Some(file) = self.targets.store.first(self.host) {
            match self.deliver(&file).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                // it was thrown away meanwhile
                Err(_) if !self.is_first(&file) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn is_first(&self, file: &Rc<HintFile>) -> bool {
        self.targets.store.first(self.host).is_some_and(|first| Rc::ptr_eq(&first, file))
    }

    fn may_go_on(&self, file: &Rc<HintFile>) -> bool {
        let is_there = matches!(self.targets.target(self.to), Target::Up(at) if at == self.address);
        let goes_on = is_there && !self.targets.has_stopped() && !self.flight.has_failed.get();
        goes_on && self.is_first(file)
    }

    async fn deliver(&self, file: &Rc<HintFile>) -> io::Result<bool> {
        let sent = self.send_file(file).await;
        self.flight.landed().await;
        self.flight.settle(file);
        self.flight.sent.borrow_mut().clear();
        if !self.is_first(file) {
            return sent;
        }
        self.targets.store.save_progress(file).await?;
        sent
    }

    async fn send_file(&self, file: &Rc<HintFile>) -> io::Result<bool> {
        let store = &self.targets.store;
        let mut reader = match store.read(file).await {
            Ok(reader) => reader,
            Err(error) => return self.put_aside(file, &error).await,
        };
        loop {
            let page = match reader.page().await {
                Ok(page) => page,
                Err(error) => return self.put_aside(file, &error).await,
            };
            if page.damaged > 0 {
                let (bytes, path) = (page.damaged, file.path());
                let text = format!(
                    "skipped {bytes} damaged bytes of hints file {path:?}: no hint in them can be \
                     delivered"
                );
                self.targets.note(Level::Error, text);
            }
            if page.hints.is_empty() {
                self.flight.landed().await;
                self.flight.settle(file);
                if !self.may_go_on(file) {
                    return Ok(!self.is_first(file));
                }
                file.set_sent(page.next);
                if store.finish(file).await? {
                    return Ok(true);
                }
                self.targets.env.sleep(WRITER).await;
                continue;
            }
            for hint in &page.hints {
                if !self.send(file, hint).await {
                    return Ok(!self.is_first(file));
                }
            }
            self.flight.settle(file);
            store.save_progress(file).await?;
        }
    }

    /// A file that cannot be read keeps no other waiting.
    async fn put_aside(&self, file: &Rc<HintFile>, why: &io::Error) -> io::Result<bool> {
        if self.is_first(file) {
            self.targets.store.put_aside(file, &why.to_string()).await?;
        }
        Ok(true)
    }

    /// Sends one as soon as there is room. False if the delivery is to end.
    async fn send(&self, file: &Rc<HintFile>, hint: &PageHint) -> bool {
        let read = hint.hint();
        let env = &self.targets.env;
        if record::is_expired(read.created, read.gc_grace, env.unix_micros() / 1000) {
            self.flight.push(hint.end, 0, true);
            return true;
        }
        self.wait_until_due(file, read.created).await;
        while !self.flight.has_room() {
            self.flight.bell.notified().await;
        }
        self.flight.settle(file);
        let mut payload = Vec::new();
        let (created, gc_grace, mutation) = (read.created, read.gc_grace, read.mutation);
        HintMessage { host: self.host, created, gc_grace, mutation }.write(&mut payload);
        self.wait_for_throttle(payload.len()).await;
        if !self.may_go_on(file) {
            return false;
        }
        let number = self.flight.push(hint.end, payload.len(), false);
        if env.planted("hint_not_sent") && number.is_multiple_of(13) {
            self.flight.answered(number, true);
            return true;
        }
        self.ask(number, payload.into());
        true
    }

    fn ask(&self, number: u64, payload: Arc<[u8]>) {
        let Some(handoff) = self.targets.handoff.upgrade() else { return };
        let Some(messenger) = handoff.peers.messenger() else {
            self.flight.has_failed.set(true);
            return self.flight.answered(number, false);
        };
        let (flight, began) = (Rc::clone(&self.flight), self.targets.env.now());
        let counted = Rc::downgrade(&handoff);
        messenger.ask(
            self.address,
            Verb::HintReq,
            Flags::NONE,
            Params::NONE,
            &payload,
            move |answer| {
                if let Some(handoff) = counted.upgrade() {
                    let counts = &handoff.counts;
                    match &answer {
                        Ok(_) => {
                            handoff.shard.env.mark("hint.delivered");
                            counts.succeeded.inc();
                        }
                        Err(Failed::Replica(_)) => counts.failed.inc(),
                        Err(Failed::Timeout | Failed::NotSent) => counts.timed_out.inc(),
                    }
                    let (mut pace, now) = (flight.pace.borrow_mut(), handoff.shard.env.now());
                    match answer.is_ok() {
                        true => {
                            let is_slow = pace.acknowledged(now, now.since(began));
                            flight.speed.borrow_mut().acknowledged(now, is_slow);
                        }
                        false => pace.failed(),
                    }
                }
                if answer.is_err() {
                    flight.has_failed.set(true);
                }
                flight.answered(number, answer.is_ok());
            },
        );
    }

    /// Hints that are handed over are wanted at once, and so is a number of bytes a second where it
    /// is set.
    async fn wait_until_due(&self, file: &Rc<HintFile>, created: i64) {
        let env = &self.targets.env;
        let is_hand_over = self.to != self.host;
        if is_hand_over || self.targets.throttle(is_hand_over).is_some() {
            return;
        }
        let is_due = || {
            let at_least = !self.targets.may_be_fast(self.host);
            self.flight.speed.borrow_mut().is_due(env.now(), created, at_least)
        };
        while !is_due() && self.may_go_on(file) {
            env.sleep(TOGETHER).await;
        }
    }

    async fn wait_for_throttle(&self, bytes: usize) {
        let env = &self.targets.env;
        let Some(rate) = self.targets.throttle(self.to != self.host) else { return };
        env.sleep_until(self.next.get()).await;
        let takes = Duration::from_secs_f64(bytes as f64 / rate as f64);
        self.next.set(self.next.get().max(env.now()) + takes);
    }
}
