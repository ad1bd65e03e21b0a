//! Connections that other nodes open, and what comes over them.
//!
//! A large message grows with what has come of it. It gives its memory back when it should have
//! come.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::time::Duration;

use env::sync::Notify;
use env::{Class, Instant, ListenOptions, TcpListener, TcpStream};
use internode::quota::Lease;
use internode::receiver::{Corruption, Outcome, Refusal};
use internode::{Accepted, Arrival, Connection, Header, Incoming, Initiate, Verb};
use metrics::Level;
use tls::Wire;
use types::Address;

use crate::messenger::{Held, Intake, Messenger, Serve, Served};
use crate::open::{Entered, PER_IP_MAX};
use crate::settings::Settings;
use crate::stream_socket::StreamSocket;

/// How long to wait where no connection can be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// However long a large message is said to be worth anything: by then all of it has come, or the
/// room for it is needed for others.
const LARGE_PATIENCE: Duration = Duration::from_secs(300);
/// No message of gossip is longer: what 3,000 nodes with 256 tokens each say, in bytes.
const GOSSIP_BYTES_MAX: u64 = 16 << 20;
/// Room for input where nothing says how much is needed, in bytes.
const READ_BYTES: usize = 16 << 10;

/// What a step over the input found, on its own feet.
enum Found {
    Read(usize),
    Opened(Initiate),
    Message(Header, Vec<u8>, u64),
    /// A message that came in parts, whose payload the receiver has.
    Whole(Header, u64),
    Large(Header, u64),
    Refused(Refusal),
    /// Messages that are lost; is a large one, for which room was taken, among them?
    Lost(bool),
    End(String),
}

fn found(arrival: Arrival<'_>) -> Found {
    match arrival {
        Arrival::Wait(needed) => Found::Read(needed),
        Arrival::Opened(initiate) => Found::Opened(initiate),
        Arrival::Stream => unreachable!("who streams has the connection by now"),
        Arrival::Refused(error) => Found::End(error.to_string()),
        Arrival::Messages(outcome) => match outcome {
            Outcome::Wait(needed) => Found::Read(needed),
            Outcome::Message(message) if message.is_large => {
                Found::Whole(message.header, message.size)
            }
            Outcome::Message(message) => {
                Found::Message(message.header, message.payload.to_vec(), message.size)
            }
            Outcome::Large { header, size } => Found::Large(header.clone(), size),
            Outcome::Refused(refusal) => Found::Refused(refusal),
            Outcome::Lost(Corruption::Segment(_)) => Found::Lost(false),
            Outcome::Lost(Corruption::Large { .. }) => Found::Lost(true),
            Outcome::Failed(error) => Found::End(error.to_string()),
        },
    }
}

/// Bytes that a message of a verb may have, whatever `internode_max_message_size` is.
fn most_bytes(verb: Verb) -> u64 {
    match verb {
        Verb::GossipDigestSyn
        | Verb::GossipDigestAck
        | Verb::GossipDigestAck2
        | Verb::GossipShutdown
        | Verb::EchoReq
        | Verb::EchoRsp => GOSSIP_BYTES_MAX,
        _ => u64::MAX,
    }
}

/// Where a node listens, and whether nothing but TLS is taken there.
fn listened(settings: &Settings) -> Vec<(SocketAddr, bool)> {
    let for_tls = settings.encryption.as_ref().and_then(|encryption| encryption.listen);
    let open = (for_tls != Some(settings.listen)).then_some((settings.listen, false));
    open.into_iter().chain(for_tls.map(|address| (address, true))).collect()
}

/// Finds out whether anybody listens where the shards are to: they share their ports, and would
/// share them with another node too.
fn claim(messenger: &Messenger) -> std::io::Result<()> {
    let options = ListenOptions { reuse_port: false };
    let claim = |address| TcpListener::bind(&messenger.env, address, options).map(drop);
    listened(&messenger.settings).into_iter().try_for_each(|(address, _)| claim(address))
}

fn listen_all(messenger: &Rc<Messenger>) -> std::io::Result<Vec<env::Task<()>>> {
    let listen = |(address, takes_tls_only)| listen_at(messenger, address, takes_tls_only);
    listened(&messenger.settings).into_iter().map(listen).collect()
}

fn listen_at(
    messenger: &Rc<Messenger>,
    address: SocketAddr,
    takes_tls_only: bool,
) -> std::io::Result<env::Task<()>> {
    let env = &messenger.env;
    let options = ListenOptions { reuse_port: env.shards() > 1 };
    let listener = TcpListener::bind(env, address, options)?;
    let messenger = Rc::clone(messenger);
    Ok(env.spawn_task(Class::Statement, async move {
        loop {
            match listener.accept().await {
                Ok((stream, remote)) => {
                    let Some(entered) = messenger.open.enter(remote.ip()) else {
                        messenger.tally.refused.inc();
                        let why = format!("it has {PER_IP_MAX} connections to one shard already");
                        messenger.note_inbound(remote.ip(), Level::Warn, &why);
                        continue;
                    };
                    let taking = Rc::clone(&messenger);
                    messenger.env.spawn(Class::Statement, async move {
                        let inbound = Inbound::new(&taking, remote.ip(), takes_tls_only);
                        if let Err((level, end)) = inbound.run(stream, entered).await {
                            taking.note_inbound(remote.ip(), level, &end);
                        }
                    });
                }
                Err(_) => {
                    messenger.tally.accept_errors.inc();
                    messenger.env.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }))
}

/// A connection that another node opened.
struct Inbound {
    messenger: Rc<Messenger>,
    incoming: Incoming,
    input: Vec<u8>,
    /// Where the input that is not done with starts.
    start: usize,
    intake: Option<Rc<Intake>>,
    /// Room that was taken for a large message before all of it came, and until when it is kept.
    large: Cell<Option<(Held, Instant)>>,
    remote: IpAddr,
    /// Does it come in where nothing but TLS is taken?
    takes_tls_only: bool,
    /// Who opened it, if it is for streams.
    streams: Option<Address>,
}

impl Inbound {
    fn new(messenger: &Rc<Messenger>, remote: IpAddr, takes_tls_only: bool) -> Self {
        let accepted =
            Accepted { max_message: messenger.settings.max_message, ..Accepted::default() };
        Self {
            messenger: Rc::clone(messenger),
            incoming: Incoming::new(accepted),
            input: Vec::new(),
            start: 0,
            intake: None,
            large: Cell::new(None),
            remote,
            takes_tls_only,
            streams: None,
        }
    }

    /// Serves it until it ends, and says why that was; or hands it on to who streams. A connection
    /// that never served is refused, which is graver.
    async fn run(mut self, socket: TcpStream, entered: Entered) -> Result<(), (Level, String)> {
        let messenger = Rc::clone(&self.messenger);
        let offered = messenger.settings.encryption.as_ref();
        let offered = offered.filter(|of| of.is_offered || self.takes_tls_only);
        let stream = match Wire::accepted(&messenger.env, socket, offered.map(|of| &of.tls)) {
            Ok(stream) => stream,
            Err(error) => return Err((Level::Warn, tls::explain(&error))),
        };
        let patience = messenger.patience().handshake();
        match messenger.env.timeout(patience, self.until(&stream, true)).await {
            Err(_) => {
                messenger.tally.refused.inc();
                let why = "it did not complete the handshake in time".to_owned();
                return Err((Level::Warn, why));
            }
            Ok(Some(end)) => {
                messenger.tally.refused.inc();
                return Err((Level::Warn, end));
            }
            Ok(None) => {}
        }
        if let Some(from) = self.streams {
            self.input.drain(..self.start);
            let socket = StreamSocket::accepted(stream, from, self.input, entered);
            if let Some(server) = messenger.server.get().and_then(Weak::upgrade) {
                server.stream(socket);
            }
            return Ok(());
        }
        Err((Level::Info, self.until(&stream, false).await.unwrap_or_default()))
    }

    /// Goes on until the connection ends, and says why; or until the handshake is done.
    async fn until(&mut self, stream: &Wire, in_handshake: bool) -> Option<String> {
        let mut out = Vec::new();
        loop {
            let input = self.input.get(self.start..).unwrap_or_default();
            if in_handshake && input.first() == Some(&tls::HANDSHAKE) {
                let options = "server_encryption_options (internode_encryption, optional)";
                return Some(format!("it speaks TLS, which {options} of this node do not offer"));
            }
            let (consumed, arrival) = self.incoming.next(input, &mut out);
            let found = found(arrival);
            self.start += consumed;
            if let Found::Opened(initiate) = &found
                && let Some(why) = self.refuses(stream, initiate.from)
            {
                // without an answer: who is answered sends what it has
                return Some(why);
            }
            if !out.is_empty() {
                if let Err(error) = stream.write_all(&out).await {
                    return Some(tls::explain(&error));
                }
                out.clear();
            }
            match found {
                Found::Read(needed) => match self.read(stream, needed).await {
                    Ok(Some(0)) => return Some("the other node closed it".to_owned()),
                    Ok(Some(_)) => {}
                    Ok(None) => self.give_up_large(),
                    Err(error) => return Some(tls::explain(&error)),
                },
                Found::Opened(initiate) => {
                    if initiate.connection == Connection::Streaming {
                        self.streams = Some(initiate.from);
                        return None;
                    }
                    self.intake = Some(self.messenger.intake(initiate.from));
                    if in_handshake {
                        return None;
                    }
                }
                Found::Large(header, size) => self.large(&header, size).await,
                Found::Message(header, payload, size) => self.message(header, payload, size).await,
                Found::Whole(header, size) => {
                    let receiver = self.incoming.receiver();
                    let payload = receiver.map_or_else(Vec::new, |receiver| receiver.take_large());
                    self.message(header, payload, size).await;
                }
                Found::Refused(refusal) => {
                    self.messenger.tally.received_unknown.inc();
                    if let Some(intake) = &self.intake {
                        self.messenger.refuse(intake.from, &refusal);
                    }
                }
                Found::Lost(is_large) => {
                    if is_large {
                        self.large.take();
                    }
                    self.messenger.tally.received_corrupt.inc();
                }
                Found::End(why) => return Some(why),
            }
            self.messenger.env.maybe_yield().await;
        }
    }

    /// Why a node may not speak over a connection (`InboundConnectionInitiator`): one that should
    /// be encrypted and is not, or whose other side does not show who it is.
    fn refuses(&self, stream: &Wire, from: Address) -> Option<String> {
        let encryption = self.messenger.settings.encryption.as_ref();
        if stream.is_encrypted() {
            let verifies = encryption.is_some_and(|encryption| encryption.verifies_address);
            let is_good = !verifies || stream.is_certified_as(self.remote);
            let why = format!(
                "/{from} has no certificate for its address {}, which \
                 require_endpoint_verification requires",
                self.remote
            );
            return (!is_good).then_some(why);
        }
        if self.takes_tls_only {
            return Some(format!(
                "/{from} sent plaintext to ssl_storage_port, which accepts only TLS"
            ));
        }
        if encryption.is_some_and(|encryption| encryption.is_optional) {
            return None;
        }
        if self.messenger.encrypts(from) {
            let option = "server_encryption_options.internode_encryption";
            return Some(format!("/{from} sent plaintext, while {option} requires TLS from it"));
        }
        let checks = encryption.is_some_and(|encryption| encryption.checks_plain_address);
        let why = format!(
            "it claims to be /{from} and sent plaintext from /{}, which \
             internode_plaintext_checks_address refuses",
            self.remote
        );
        (checks && self.remote != from.ip).then_some(why)
    }

    /// Reads more behind what is not done with; none, where a large message should have come by
    /// now.
    async fn read(&mut self, stream: &Wire, needed: usize) -> std::io::Result<Option<usize>> {
        self.input.drain(..self.start);
        self.start = 0;
        let held = self.input.len();
        // never more than a frame has
        let room = needed.saturating_sub(held).max(READ_BYTES);
        self.input.resize(held + room, 0);
        let read = stream.read(self.input.get_mut(held..).unwrap_or_default());
        let read = match self.large.get_mut() {
            None => read.await.map(Some),
            Some((_, until)) => {
                let in_time = self.messenger.env.timeout_at(*until, read).await;
                in_time.map_or(Ok(None), |read| read.map(Some))
            }
        };
        let came = read.as_ref().ok().copied().flatten().unwrap_or_default();
        self.input.truncate(held + came);
        read
    }

    /// A large message is worth nothing any more.
    fn give_up_large(&mut self) {
        self.messenger.tally.received_late.inc();
        self.pass_over_large();
    }

    /// What came of a large message is dropped, and what comes of it is passed over.
    fn pass_over_large(&mut self) {
        self.large.take();
        if let Some(receiver) = self.incoming.receiver() {
            receiver.discard();
        }
    }

    /// Waits until there is room for a message of so many bytes.
    async fn take(&self, intake: &Rc<Intake>, bytes: u64) -> Held {
        let messenger = &self.messenger;
        let mut is_paused = false;
        loop {
            let (own, all) = (intake.freed.notified(), messenger.received_freed.notified());
            let taken = messenger.with_receive_quotas(intake.from, |[endpoint, global]| {
                intake.lease.borrow_mut().take(bytes, endpoint, global)
            });
            if taken.is_ok() {
                let (messenger, intake) = (Rc::clone(messenger), Rc::clone(intake));
                return Held { messenger, intake, bytes };
            }
            if !is_paused {
                is_paused = true;
                messenger.tally.paused.inc();
            }
            crate::messenger::either(own, all).await;
        }
    }

    async fn large(&mut self, header: &Header, size: u64) {
        let Some(intake) = self.intake.clone() else { return };
        if size > most_bytes(header.verb) {
            self.messenger.tally.received_unknown.inc();
            let verb = header.verb.name();
            let text = format!(
                "ignored {verb} from /{}: its {size} bytes exceed the limit for this message",
                intake.from
            );
            self.messenger.note(Level::Warn, text);
            return self.pass_over_large();
        }
        let now = self.messenger.unix_millis();
        let expires_at = header.expires_at(now, self.messenger.settings.believes_clocks);
        let Some(left) = u64::try_from(expires_at.saturating_sub(now)).ok().filter(|l| *l > 0)
        else {
            self.messenger.counts.received(header.verb, true);
            return self.give_up_large();
        };
        let until = self.messenger.env.now() + Duration::from_millis(left).min(LARGE_PATIENCE);
        let held = self.take(&intake, size).await;
        self.large.set(Some((held, until)));
    }

    async fn message(&mut self, header: Header, payload: Vec<u8>, size: u64) {
        let Some(intake) = self.intake.clone() else { return };
        let messenger = &self.messenger;
        messenger.tally.received.inc();
        messenger.tally.received_bytes.add(size);
        let now = messenger.unix_millis();
        let believes = messenger.settings.believes_clocks;
        let created_at = header.created_at(now, believes);
        let expires_at = header.expires_at(now, believes);
        messenger.counts.received(header.verb, expires_at <= now);
        if expires_at <= now {
            messenger.tally.received_late.inc();
            messenger.dropped(header.verb, &payload);
            self.large.take();
            return;
        }
        if header.verb.is_answer() {
            self.large.take();
            messenger.route_answer(intake.from, header, payload);
            return;
        }
        let held = match self.large.take() {
            Some((held, _)) => held,
            None => self.take(&intake, size).await,
        };
        let from = intake.from;
        messenger.serve(Served { from, header, payload, created_at, expires_at, held });
    }
}

impl Messenger {
    /// Finds out whether the port is free, before any shard listens.
    ///
    /// # Errors
    /// If it is not.
    pub fn claim(&self) -> std::io::Result<()> {
        claim(self)
    }

    /// Listens for other nodes on this shard, and lets `server` serve what they ask, until the
    /// tasks are dropped.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub fn listen(self: &Rc<Self>, server: Weak<dyn Serve>) -> std::io::Result<Vec<env::Task<()>>> {
        let _ = self.server.set(server);
        listen_all(self)
    }

    fn intake(&self, from: Address) -> Rc<Intake> {
        let lease = RefCell::new(Lease::new(self.settings.receive.connection));
        Rc::new(Intake { from, lease, freed: Notify::new() })
    }
}
