//! A shard's part of messaging: what it sends, what it waits for, and where what comes in goes.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::IpAddr;
use std::panic::Location;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;

use env::sync::{Notify, OneshotSender, oneshot};
use env::{Class, Env, Instant};
use internode::quota::{Lease, Quota};
use internode::{
    Callbacks, Connection, FailureReason, Flags, Framing, Gone, Header, Initiate, Outgoing, Param,
    Queued, Verb, Versions,
};
use metrics::{Level, Registry};
use types::{Address, Reader};

use crate::counts::{Came, Counts, Sent};
use crate::link::Link;
use crate::open::Open;
use crate::quotas::Quotas;
use crate::settings::{Encryption, Patience, Settings};
use crate::stream_socket::StreamSocket;
use crate::tally::Tally;

/// Nodes that are not of the ring, as those that are about to join it, to which a shard has
/// connections at most: whoever connects says who it is, and answers wait for it.
const STRANGERS_MAX: usize = 64;

/// Work for another shard's messenger.
pub type Job = Box<dyn FnOnce(&Rc<Messenger>) + Send>;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// What it says before its payload.
    pub header: Header,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// None came in time.
    Timeout,
    /// The other node says that it failed.
    Replica(FailureReason),
    /// Too much waits to be sent to it, or the request is too large.
    NotSent,
}

/// What of a node's messages is not done with: its connections' share of memory.
#[derive(Debug)]
pub(crate) struct Intake {
    pub from: Address,
    pub lease: RefCell<Lease>,
    pub freed: Notify,
}

/// Bytes of a message in memory; given back when it is dropped.
pub struct Held {
    pub(crate) messenger: Rc<Messenger>,
    pub(crate) intake: Rc<Intake>,
    pub(crate) bytes: u64,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Held({})", self.bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.messenger.with_receive_quotas(self.intake.from, |[endpoint, global]| {
            self.intake.lease.borrow_mut().give_back(self.bytes, endpoint, global);
        });
        self.intake.freed.notify_all();
        self.messenger.received_freed.notify_all();
    }
}

/// A request that came in.
#[derive(Debug)]
pub struct Served {
    /// Who sent it.
    pub from: Address,
    /// What it says before its payload.
    pub header: Header,
    /// Its payload.
    pub payload: Vec<u8>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When it is worth nothing any more, in milliseconds since 1970.
    pub expires_at: i64,
    /// Its share of memory.
    pub held: Held,
}

/// Who serves what other nodes ask, on one shard.
pub trait Serve {
    /// A request came in. It is answered by [`Messenger::answer`] or [`Messenger::fail`], sooner or
    /// later or never.
    fn serve(&self, messenger: &Rc<Messenger>, request: Served);

    /// A request came too late to be served: it is dropped.
    fn dropped(&self, _verb: Verb, _payload: &[u8]) {}

    /// Is it a node of the ring?
    fn knows(&self, node: Address) -> bool;

    /// Are messages to a node compressed (`internode_compression`)?
    fn compresses(&self, to: Address) -> bool;

    /// Are connections with a node encrypted (`internode_encryption`)?
    fn encrypts(&self, with: Address) -> bool;

    /// A node opened a connection for streams.
    fn stream(&self, socket: StreamSocket);

    /// Something that the operator should know; it may come often.
    fn note_at(&self, at: &'static Location<'static>, level: Level, message: String);
}

/// What becomes of an answer.
type OnAnswer = Box<dyn FnOnce(Result<Answer, Failed>)>;

/// The connections to a node, by what they are for.
type Links = [Option<Rc<Link>>; 3];

/// A shard's connections to other nodes.
pub struct Messenger {
    pub(crate) env: Env,
    pub(crate) settings: Settings,
    patience: Cell<Patience>,
    pub(crate) tally: Tally,
    pub(crate) counts: Counts,
    pub(crate) open: Rc<Open>,
    /// Memory of requests was given back.
    pub(crate) received_freed: Notify,
    send_quotas: Quotas,
    receive_quotas: Quotas,
    links: RefCell<BTreeMap<Address, Links>>,
    callbacks: RefCell<Callbacks<OnAnswer>>,
    /// A request waits that is over before all others.
    sooner: Notify,
    pub(crate) server: OnceCell<Weak<dyn Serve>>,
    to_shard: Box<dyn Fn(usize, Job)>,
}

impl std::fmt::Debug for Messenger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Messenger({})", self.settings.local)
    }
}

impl Messenger {
    /// A shard's. `to_shard` runs a job on the messenger of another.
    pub fn new(
        env: &Env,
        settings: Settings,
        registry: &Registry,
        to_shard: impl Fn(usize, Job) + 'static,
    ) -> Rc<Self> {
        // a message of any size that there may be finds room, once there is nothing else
        let part = |bytes: u64| (bytes / env.shards().max(1) as u64).max(settings.max_message);
        let (send, receive) = (settings.send, settings.receive);
        let tally = Tally::new(registry);
        let messenger = Rc::new(Self {
            env: env.clone(),
            patience: Cell::new(settings.patience),
            open: Open::new(&tally.inbound),
            tally,
            counts: Counts::new(),
            received_freed: Notify::new(),
            send_quotas: Quotas::new(part(send.endpoint), part(send.global)),
            receive_quotas: Quotas::new(part(receive.endpoint), part(receive.global)),
            links: RefCell::default(),
            callbacks: RefCell::new(Callbacks::new(env.shard(), env.shards())),
            sooner: Notify::new(),
            server: OnceCell::new(),
            to_shard: Box::new(to_shard),
            settings,
        });
        env.spawn(Class::Statement, Rc::clone(&messenger).expire());
        messenger
    }

    /// Settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How long this shard waits for other nodes.
    pub fn patience(&self) -> Patience {
        self.patience.get()
    }

    /// Has this shard wait so long for other nodes, from the next message on.
    pub fn set_patience(&self, patience: Patience) {
        self.patience.set(patience);
    }

    /// A node is down: connections of this shard to it lead nowhere, and once it is there again are
    /// not to be waited for (`MessagingService.interruptOutbound`).
    pub fn interrupt(&self, node: Address) {
        let links = self.links.borrow();
        links.get(&node).into_iter().flatten().flatten().for_each(|link| link.interrupt());
    }

    /// Milliseconds since 1970.
    pub(crate) fn unix_millis(&self) -> i64 {
        self.env.unix_micros() / 1000
    }

    /// Milliseconds of a clock that nobody sets: how long answers are waited for.
    fn millis(&self) -> i64 {
        let millis = self.env.now().since(Instant::ZERO).as_millis();
        i64::try_from(millis).unwrap_or(i64::MAX)
    }

    /// Waits for an answer: the id that the request is to have.
    fn wait_for_all(&self, verb: Verb, all: Vec<(Address, OnAnswer)>) -> u64 {
        let expires_at = self.millis() + self.patience().expiry(verb) as i64;
        let mut callbacks = self.callbacks.borrow_mut();
        let first = callbacks.next_expiry();
        if first.is_none_or(|first| expires_at < first) {
            self.sooner.notify_one();
        }
        callbacks.wait_for_all(verb, expires_at, all)
    }

    /// Sends what nothing answers.
    pub fn send(self: &Rc<Self>, to: Address, verb: Verb, payload: &Arc<[u8]>) {
        let id = self.callbacks.borrow_mut().next_id();
        let now = self.unix_millis();
        let expires_in = self.patience().expiry(verb);
        let header = Header::new(id, verb, now, expires_in);
        self.queue(to, header, Arc::clone(payload), now + expires_in as i64);
    }

    /// Sends a request; `on_answer` is called once, soon or when the time of its verb is over.
    pub fn ask(
        self: &Rc<Self>,
        to: Address,
        verb: Verb,
        flags: Flags,
        params: internode::Params,
        payload: &Arc<[u8]>,
        on_answer: impl FnOnce(Result<Answer, Failed>) + 'static,
    ) {
        let id = self.wait_for_all(verb, vec![(to, Box::new(on_answer))]);
        self.post(to, id, verb, flags, params, payload);
    }

    /// Sends a request whose answer is waited for.
    fn post(
        self: &Rc<Self>,
        to: Address,
        id: u64,
        verb: Verb,
        flags: Flags,
        params: internode::Params,
        payload: &Arc<[u8]>,
    ) {
        let now = self.unix_millis();
        let expires_in = self.patience().expiry(verb);
        let mut header = Header::new(id, verb, now, expires_in);
        header.flags = flags.with(Flags::CALL_BACK_ON_FAILURE);
        header.params = params;
        self.queue(to, header, Arc::clone(payload), now + expires_in as i64);
    }

    /// Sends a request to one node, which passes it on to others; all answer here. `on_answer` is
    /// told of each.
    pub fn ask_through(
        self: &Rc<Self>,
        to: Address,
        beyond: &[Address],
        verb: Verb,
        mut params: internode::Params,
        payload: &Arc<[u8]>,
        on_answer: &Rc<dyn Fn(Address, Result<Answer, Failed>)>,
    ) {
        let told = |node: Address| {
            let on_answer = Rc::clone(on_answer);
            Box::new(move |answer| on_answer(node, answer)) as OnAnswer
        };
        let all = std::iter::once(to).chain(beyond.iter().copied());
        let id = self.wait_for_all(verb, all.map(|node| (node, told(node))).collect());
        if !beyond.is_empty() {
            params.set(Param::ForwardTo(beyond.iter().map(|node| (*node, id)).collect()));
        }
        self.post(to, id, verb, Flags::NONE, params, payload);
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// See [`Failed`].
    pub async fn request(
        self: &Rc<Self>,
        to: Address,
        verb: Verb,
        params: internode::Params,
        payload: &Arc<[u8]>,
    ) -> Result<Answer, Failed> {
        let (sender, receiver): (OneshotSender<_>, _) = oneshot();
        self.ask(to, verb, Flags::NONE, params, payload, move |answer| drop(sender.send(answer)));
        receiver.await.unwrap_or(Err(Failed::Timeout))
    }

    /// Answers a request; the answer names the session that it was traced under.
    pub fn answer(self: &Rc<Self>, request: &Served, params: internode::Params, payload: Vec<u8>) {
        let now = self.unix_millis();
        if let Some(mut header) = request.header.answer(now, request.expires_at) {
            header.params = params;
            header.params.set_trace_of(&request.header.params);
            self.queue(self.asker(request), header, payload.into(), request.expires_at);
        }
    }

    /// Answers a request that failed, if its sender wants to know.
    pub fn fail(self: &Rc<Self>, request: &Served, reason: FailureReason) {
        let now = self.unix_millis();
        if let Some(mut header) = request.header.failure(now, request.expires_at) {
            header.params.set_trace_of(&request.header.params);
            let mut payload = Vec::new();
            reason.write(&mut payload);
            self.queue(self.asker(request), header, payload.into(), request.expires_at);
        }
    }

    /// Passes a request on to the nodes that it names, which answer its sender themselves.
    pub fn forward(self: &Rc<Self>, request: &Served) {
        let payload: OnceCell<Arc<[u8]>> = OnceCell::new();
        let Some(server) = self.server.get().and_then(Weak::upgrade) else { return };
        let mut done = BTreeSet::new();
        // one message is no way to send a node a million, or to have this node connect to whomever
        let mut is_due = |to: Address| server.knows(to) && done.insert(to);
        let targets = request.header.params.forward_to().iter();
        for (to, id) in targets.filter(|(to, _)| is_due(*to)) {
            let payload = payload.get_or_init(|| request.payload.as_slice().into());
            let mut header = Header { id: *id, ..request.header.clone() };
            header.params = internode::Params::NONE.with(Param::RespondTo(request.from));
            header.params.set_trace_of(&request.header.params);
            self.queue(*to, header, Arc::clone(payload), request.expires_at);
        }
    }

    fn asker(&self, request: &Served) -> Address {
        request.header.params.respond_to().unwrap_or(request.from)
    }

    /// What was not understood failed.
    pub(crate) fn refuse(self: &Rc<Self>, from: Address, refusal: &internode::Refusal) {
        if !refusal.flags.contains(Flags::CALL_BACK_ON_FAILURE) {
            return;
        }
        let now = self.unix_millis();
        let expires_in = self.patience().timeouts.request;
        let header = Header::new(refusal.id, Verb::FailureRsp, now, expires_in);
        let mut payload = Vec::new();
        FailureReason::Unknown.write(&mut payload);
        self.queue(from, header, payload.into(), now + expires_in as i64);
    }

    fn queue(self: &Rc<Self>, to: Address, header: Header, payload: Arc<[u8]>, expires_at: i64) {
        let kind = header.verb.connection(payload.len());
        let Some(link) = self.link(to, kind) else {
            self.tally.overloaded.inc();
            self.counts.dropped(kind);
            return self.not_sent(to, header.id);
        };
        let id = header.id;
        let now = self.unix_millis();
        let queued = Queued { header, payload, expires_at };
        let mut gone = Vec::new();
        let pushed = self.with_send_quotas(to, |quotas| {
            let mut outgoing = link.outgoing.borrow_mut();
            outgoing.push(queued, now, quotas, &mut |message| gone.push(message))
        });
        gone.into_iter().for_each(|message| self.gone(to, kind, message));
        match pushed {
            Ok(()) => link.work.notify_one(),
            Err(_) => {
                self.tally.overloaded.inc();
                self.counts.dropped(kind);
                self.not_sent(to, id);
            }
        }
    }

    /// The connection to a node for a kind of messages.
    fn link(self: &Rc<Self>, to: Address, kind: Connection) -> Option<Rc<Link>> {
        let place = usize::from(kind.number()) - 1;
        let server = self.server.get().and_then(Weak::upgrade);
        let mut links = self.links.borrow_mut();
        if !links.contains_key(&to) {
            let is_stranger =
                |node: &Address| !server.as_ref().is_some_and(|server| server.knows(*node));
            if is_stranger(&to) && !make_room(&mut links, is_stranger) {
                return None;
            }
        }
        let slot = links.entry(to).or_default().get_mut(place)?;
        if let Some(link) = slot {
            return Some(Rc::clone(link));
        }
        let is_compressed = server.is_some_and(|server| server.compresses(to));
        let initiate = Initiate {
            versions: Versions::OURS,
            connection: kind,
            framing: if is_compressed { Framing::Lz4 } else { Framing::Crc },
            from: self.settings.local,
        };
        let (max, capacity) = (self.settings.max_message, self.settings.send.connection);
        let link = Link::new(to, Outgoing::new(initiate, max, capacity));
        *slot = Some(Rc::clone(&link));
        self.env.spawn(Class::Statement, Rc::clone(&link).run(Rc::clone(self)));
        Some(link)
    }

    /// Is a node one of many that are not of the ring? What waits for one that is not reached would
    /// keep others from their answers.
    pub(crate) fn is_one_of_many(&self, node: Address) -> bool {
        let server = self.server.get().and_then(Weak::upgrade);
        let is_stranger =
            |node: &&Address| !server.as_ref().is_some_and(|server| server.knows(**node));
        let links = self.links.borrow();
        is_stranger(&&node) && links.keys().filter(is_stranger).count() >= STRANGERS_MAX / 2
    }

    /// How a connection with a node is encrypted; none where it need not be. Who is not known yet
    /// gets no benefit of the doubt.
    ///
    /// # Errors
    /// If it must be, and there is nothing to encrypt it with: then there is no connection.
    pub(crate) fn encryption(&self, with: Address) -> Result<Option<&Encryption>, String> {
        if !self.encrypts(with) {
            return Ok(None);
        }
        let missing = || {
            "it must be encrypted, and this node has no certificates; set server_encryption_options"
                .to_owned()
        };
        self.settings.encryption.as_ref().ok_or_else(missing).map(Some)
    }

    /// Must connections with a node be encrypted?
    pub(crate) fn encrypts(&self, with: Address) -> bool {
        let server = self.server.get().and_then(Weak::upgrade);
        server.is_none_or(|server| server.encrypts(with)) && !self.env.planted("ring_speaks_plain")
    }

    pub(crate) fn with_send_quotas<T>(
        &self,
        to: Address,
        f: impl FnOnce([&mut Quota; 2]) -> T,
    ) -> T {
        self.send_quotas.with(to, f)
    }

    pub(crate) fn with_receive_quotas<T>(
        &self,
        from: Address,
        f: impl FnOnce([&mut Quota; 2]) -> T,
    ) -> T {
        self.receive_quotas.with(from, f)
    }

    /// A message does not wait any more.
    pub(crate) fn gone(&self, to: Address, kind: Connection, message: Gone) {
        match message {
            Gone::Sent(_) => {
                self.tally.sent.inc();
                self.counts.completed(kind);
            }
            // who waits for its answer finds out at the same time
            Gone::Expired(_) => {
                self.tally.expired.inc();
                self.counts.dropped(kind);
            }
            Gone::Failed(message, error) => {
                self.tally.failed.inc();
                let verb = message.header.verb.name();
                self.note(Level::Warn, format!("did not send {verb} to /{to}: {error}"));
                if !message.header.verb.is_answer() {
                    self.not_sent(to, message.header.id);
                }
            }
        }
    }

    fn not_sent(&self, to: Address, id: u64) {
        let waiting = self.callbacks.borrow_mut().take(to, id);
        if let Some(on_answer) = waiting {
            on_answer(Err(Failed::NotSent));
        }
    }

    /// Hands an answer to the shard that asked.
    pub(crate) fn route_answer(self: &Rc<Self>, from: Address, header: Header, payload: Vec<u8>) {
        let shard = Callbacks::<OnAnswer>::shard_of(header.id, self.env.shards());
        if shard == self.env.shard() {
            return self.answered(from, header, payload);
        }
        (self.to_shard)(
            shard,
            Box::new(move |messenger: &Rc<Self>| messenger.answered(from, header, payload)),
        );
    }

    fn answered(&self, from: Address, header: Header, payload: Vec<u8>) {
        let waiting = self.callbacks.borrow_mut().answered(from, header.id, header.verb);
        let Some(on_answer) = waiting else { return self.tally.unasked.inc() };
        on_answer(match header.verb {
            Verb::FailureRsp => {
                let reason = FailureReason::read(&mut Reader::new(&payload));
                Err(Failed::Replica(reason.unwrap_or(FailureReason::Unknown)))
            }
            _ => Ok(Answer { header, payload }),
        });
    }

    /// Tells requests whose time is over.
    async fn expire(self: Rc<Self>) {
        loop {
            let now = self.millis();
            loop {
                let expired = self.callbacks.borrow_mut().expired(now);
                let Some((_, _, on_answer)) = expired else { break };
                on_answer(Err(Failed::Timeout));
            }
            let next = self.callbacks.borrow().next_expiry();
            let sooner = self.sooner.notified();
            match next {
                None => sooner.await,
                Some(at) => {
                    let left = u64::try_from(at - now).unwrap_or_default();
                    let over = self.env.sleep(std::time::Duration::from_millis(left));
                    either(sooner, over).await;
                }
            }
        }
    }

    /// Hands a request to who serves them.
    pub(crate) fn serve(self: &Rc<Self>, request: Served) {
        match self.server.get().and_then(Weak::upgrade) {
            Some(server) => server.serve(self, request),
            None => self.fail(&request, FailureReason::Unknown),
        }
    }

    /// Lets who serves requests know of one that is not served.
    pub(crate) fn dropped(&self, verb: Verb, payload: &[u8]) {
        if let Some(server) = self.server.get().and_then(Weak::upgrade) {
            server.dropped(verb, payload);
        }
    }

    #[track_caller]
    pub(crate) fn note(&self, level: Level, message: String) {
        if let Some(server) = self.server.get().and_then(Weak::upgrade) {
            server.note_at(Location::caller(), level, message);
        }
    }

    #[track_caller]
    pub(crate) fn note_link(&self, to: Address, kind: Connection, level: Level, why: &str) {
        self.note(level, format!("connection to /{to} ({kind:?}) ended: {why}"));
    }

    /// Without its port, which is another each time: what is said again and again is told once in a
    /// while.
    #[track_caller]
    pub(crate) fn note_inbound(&self, remote: IpAddr, level: Level, why: &str) {
        self.note(level, format!("connection from /{remote} ended: {why}"));
    }

    /// What became of messages to other nodes over a kind of connection.
    pub fn sent(&self, connection: Connection) -> Sent {
        let waiting = self.waiting().into_iter().filter(|(_, kind, ..)| *kind == connection);
        let pending = waiting.map(|(_, _, waiting, _)| waiting as u64).sum();
        Sent { pending, ..self.counts.sent(connection) }
    }

    /// How many messages of a verb came.
    pub fn came(&self, verb: Verb) -> Came {
        self.counts.came(verb)
    }

    /// Why this shard last did not reach a node, where it did not since.
    pub fn failure(&self, to: Address) -> Option<String> {
        let links = self.links.borrow();
        links.get(&to)?.iter().flatten().find_map(|link| link.failure())
    }

    /// Messages that wait to be sent to nodes, by connection, and of each whether it is open.
    pub fn waiting(&self) -> Vec<(Address, Connection, usize, bool)> {
        let links = self.links.borrow();
        let all = links.values().flatten().flatten();
        all.map(|link| {
            let outgoing = link.outgoing.borrow();
            (link.to, outgoing.connection(), outgoing.waiting(), outgoing.is_open())
        })
        .collect()
    }
}

/// Makes room for another stranger, where there are many, by ending connections to others that
/// nothing is done with. Is there any?
fn make_room(links: &mut BTreeMap<Address, Links>, is_stranger: impl Fn(&Address) -> bool) -> bool {
    let strangers =
        |links: &BTreeMap<Address, Links>| links.keys().filter(|node| is_stranger(node)).count();
    if strangers(links) < STRANGERS_MAX {
        return true;
    }
    links.retain(|node, links| {
        let is_needed = !is_stranger(node) || links.iter().flatten().any(|link| !link.is_idle());
        if !is_needed {
            links.iter().flatten().for_each(|link| link.end());
        }
        is_needed
    });
    strangers(links) < STRANGERS_MAX
}

/// Waits for the first of two.
pub(crate) async fn either(a: impl Future<Output = ()>, b: impl Future<Output = ()>) {
    let (mut a, mut b) = (pin!(a), pin!(b));
    std::future::poll_fn(move |cx| match a.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => b.as_mut().poll(cx),
    })
    .await;
}
