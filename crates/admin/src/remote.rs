//! The operator's port: nodetool over the network, off unless the operator sets it.
//!
//! Whoever connects is a stranger until it has logged in, where logins are demanded. Strangers may
//! send little, for a short time, and be few; who guesses passwords has to wait, and is soon turned
//! away.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use env::{Class, Env, Instant, ListenOptions, Task, TcpListener, TcpStream};
use metrics::{Counter, Name, Registry, Unit};
use tls::{Tls, Wire, explain};

use crate::connections::{self, BindError};
use crate::conversation::{Conversation, RequestError, refuse_more, runs_many};
use crate::model::{Outcome, Refusal};
use crate::operator::Operator;
use crate::wire::{Login, MAX_LOGIN, MAX_REQUEST, decode_login};

/// Connections at a time.
pub const MAX_CONNECTIONS: u64 = 32;
/// Connections at a time that have not logged in.
pub const MAX_STRANGERS: usize = 16;
/// The same, of one address.
pub const MAX_STRANGERS_PER_ADDRESS: usize = 8;
/// Failed logins of one address within [`FAILURES_WINDOW`], beyond which none is looked at.
pub const MAX_FAILURES: u32 = 5;
/// How long an address that failed to log in is remembered after its first failure.
pub const FAILURES_WINDOW: Duration = Duration::from_secs(60);
/// How long a failed login waits for its answer.
pub const FAILURE_DELAY: Duration = Duration::from_secs(1);
/// Addresses that are remembered for failed logins; the oldest go.
pub const MAX_ADDRESSES: usize = 1024;

/// What of Java's nodetool prints where a login is missing (`JMXPluggableAuthenticator`).
const CREDENTIALS_REQUIRED: &str = "Authentication failed! Credentials required";

/// Who may use the port, and who is told of those that may not.
#[allow(async_fn_in_trait, reason = "a node's shard is one thread: no future need be Send")]
pub trait Gate: 'static {
    /// Must who connects log in?
    fn demands_login(&self) -> bool;

    /// Judges a login from an address; the refusal is what nodetool is told.
    async fn log_in(&self, login: Login, from: IpAddr) -> Result<(), Refusal>;

    /// Tells the operator of somebody who was turned away.
    fn warn(&self, text: String);

    /// The same of what may happen often.
    fn warn_seldom(&self, text: String);
}

/// The listening port; dropping it closes it. Verbs that run go on.
#[derive(Debug)]
#[must_use = "dropping it closes the port"]
pub struct Remote {
    /// Where it listens.
    pub address: SocketAddr,
    _task: Task<()>,
}

/// Listens on an address, with TLS where there is some, and runs verbs on `operator` for whom
/// `gate` lets in.
///
/// # Errors
/// If the address cannot be listened on.
pub fn serve<O: Operator, G: Gate>(
    env: &Env,
    address: SocketAddr,
    tls: Option<Tls>,
    registry: &Registry,
    (operator, gate): (Rc<O>, Rc<G>),
) -> Result<Remote, BindError> {
    let listener = TcpListener::bind(env, address, ListenOptions::default());
    let listener = listener.map_err(BindError::new(address))?;
    let address = listener.local_addr().unwrap_or(address);
    let count = |name, help| registry.counter(Name::new("Admin", name), Unit::Count, help);
    let refused = count(
        "RemoteConnectionsRefused",
        "Connections of nodetool to admin_port beyond its limit.",
    );
    let is_encrypted = tls.is_some();
    let door = Rc::new(Door {
        tls,
        strangers: Rc::default(),
        failures: RefCell::default(),
        refused: refused.clone(),
        failed: count("RemoteLoginsFailed", "Logins of nodetool to admin_port that failed."),
        gate,
    });
    let handle = move |env: Env, stream: TcpStream| {
        let (operator, door) = (Rc::clone(&operator), Rc::clone(&door));
        async move { door.serve_one(&env, stream, operator.as_ref()).await }
    };
    let refuse = move |stream: &TcpStream| {
        // who expects TLS would not understand it
        if !is_encrypted {
            refuse_more(stream, runs_many(MAX_CONNECTIONS));
        }
    };
    let serving =
        connections::accept(env.clone(), listener, MAX_CONNECTIONS, refused, handle, refuse);
    Ok(Remote { address, _task: env.spawn_task(Class::Admin, serving) })
}

/// Why a connection is not let in.
enum Kept {
    /// What it sent could not be read.
    By(RequestError),
    /// It may not.
    Out(Refusal),
}

/// What all connections share.
struct Door<G> {
    tls: Option<Tls>,
    gate: Rc<G>,
    strangers: Rc<Strangers>,
    failures: RefCell<Failures>,
    refused: Counter,
    failed: Counter,
}

impl<G: Gate> Door<G> {
    async fn serve_one<O: Operator>(&self, env: &Env, stream: TcpStream, operator: &O) {
        let from = stream.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip());
        let demands = self.gate.demands_login();
        let stranger = Stranger::new(&self.strangers, from);
        let Some(stranger) = stranger.filter(|_| demands || from.is_loopback()) else {
            self.refused.inc();
            if self.tls.is_none() {
                let why = "too many connections have not logged in yet; try again later";
                refuse_more(&stream, why.to_owned());
            }
            return;
        };
        let Ok(wire) = Wire::accepted(env, stream, self.tls.as_ref()) else { return };
        let mut conversation = Conversation::new(env, &wire);
        let first = conversation.line(if demands { MAX_LOGIN } else { MAX_REQUEST }).await;
        self.tell_of_tls(&first, from);
        let line = match demands {
            true => {
                match self.admit(env, first, from).await {
                    Ok(()) => {}
                    Err(Kept::By(error)) => return conversation.fail(error).await,
                    Err(Kept::Out(why)) => return conversation.end(Outcome::refused(why)).await,
                }
                drop(stranger);
                conversation.line(MAX_REQUEST).await
            }
            false => {
                drop(stranger);
                match first.as_ref().ok().and_then(|line| decode_login(line)) {
                    None => first,
                    // nobody looks at it, as in Cassandra
                    Some(_) => conversation.line(MAX_REQUEST).await,
                }
            }
        };
        conversation.carry_out(line, operator).await;
    }

    /// Tells the operator of a connection that fails at its TLS.
    fn tell_of_tls(&self, first: &Result<Vec<u8>, RequestError>, from: IpAddr) {
        if let Err(RequestError::Io(error)) = first
            && error.kind() == io::ErrorKind::InvalidData
        {
            let why = explain(error);
            self.gate.warn_seldom(format!("refused nodetool from {from} at admin_port: {why}"));
        }
    }

    /// Whether the first line of a connection lets it in.
    async fn admit(
        &self,
        env: &Env,
        first: Result<Vec<u8>, RequestError>,
        from: IpAddr,
    ) -> Result<(), Kept> {
        let login = first.as_ref().ok().and_then(|line| decode_login(line));
        match (login, first) {
            (Some(login), _) => self.log_in(env, login, from).await.map_err(Kept::Out),
            (None, Err(error @ (RequestError::Io(_) | RequestError::Version(_)))) => {
                Err(Kept::By(error))
            }
            // a request, or what is too long for a login, too late or none
            (None, _) => {
                let why = Refusal::not_let_in("SecurityException", CREDENTIALS_REQUIRED);
                Err(Kept::Out(why))
            }
        }
    }

    /// Judges a login; one that fails is slow, counted and told of.
    async fn log_in(&self, env: &Env, login: Login, from: IpAddr) -> Result<(), Refusal> {
        if !self.failures.borrow_mut().may_try(from, env.now()) {
            let text = format!(
                "refused logins of nodetool from {from}: more than {MAX_FAILURES} failed within \
                 {} s",
                FAILURES_WINDOW.as_secs()
            );
            self.gate.warn_seldom(text);
            let why = "Too many failed logins; try again in a minute";
            return Err(Refusal::not_let_in("SecurityException", why));
        }
        let user = shown(&login.user);
        match self.gate.log_in(login, from).await {
            Ok(()) => {
                self.failures.borrow_mut().forget(from);
                Ok(())
            }
            Err(why) => {
                self.failed.inc();
                self.failures.borrow_mut().count(from, env.now());
                let text = shown(&why.to_string());
                self.gate.warn(format!(
                    "refused a login of nodetool from {from} as '{user}' at admin_port: {text}"
                ));
                env.sleep(FAILURE_DELAY).await;
                Err(why)
            }
        }
    }
}

/// Characters in the log of what a stranger sent.
const SHOWN_MAX: usize = 128;

/// What a stranger sent, as one short line of the log.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { '?' } else { c };
    text.chars().take(SHOWN_MAX).map(plain).collect()
}

/// Connections that have not logged in, by address.
#[derive(Debug, Default)]
struct Strangers(RefCell<BTreeMap<IpAddr, usize>>);

/// One of them, for as long as it is.
struct Stranger {
    all: Rc<Strangers>,
    from: IpAddr,
}

impl Stranger {
    /// One more; none where there are too many.
    fn new(all: &Rc<Strangers>, from: IpAddr) -> Option<Self> {
        let mut counts = all.0.borrow_mut();
        let of_address = counts.get(&from).copied().unwrap_or_default();
        if counts.values().sum::<usize>() >= MAX_STRANGERS
            || of_address >= MAX_STRANGERS_PER_ADDRESS
        {
            return None;
        }
        counts.insert(from, of_address + 1);
        Some(Self { all: Rc::clone(all), from })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut counts = self.all.0.borrow_mut();
        match counts.get_mut(&self.from) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.from)),
        }
    }
}

/// Logins that failed, by address: since when, and how many.
#[derive(Debug, Default)]
struct Failures(BTreeMap<IpAddr, (Instant, u32)>);

impl Failures {
    /// May this address try once more?
    fn may_try(&mut self, from: IpAddr, now: Instant) -> bool {
        self.0.retain(|_, (since, _)| now.since(*since) < FAILURES_WINDOW);
        self.0.get(&from).is_none_or(|(_, count)| *count < MAX_FAILURES)
    }

    fn count(&mut self, from: IpAddr, now: Instant) {
        if self.0.len() >= MAX_ADDRESSES && !self.0.contains_key(&from) {
            let oldest = self.0.iter().min_by_key(|(_, (since, _))| *since);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.0.remove(&oldest);
            }
        }
        self.0.entry(from).or_insert((now, 0)).1 += 1;
    }

    fn forget(&mut self, from: IpAddr) {
        self.0.remove(&from);
    }
}
