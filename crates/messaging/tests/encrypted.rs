//! Nodes of a simulated world that are to encrypt what they say to each other, and those that do
//! not, or cannot, or are not who they say they are.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::Command;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use env::sim::{NodeId, World, WorldOptions};
use env::{Class, Env, Mesh, TcpStream};
use internode::{Connection, Flags, Framing, Initiate, Params, Verb, Versions};
use messaging::{Encryption, Failed, Job, Messenger, Serve, Served, Settings};
use metrics::{Level, Registry};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tls::{Certificates, ClientCertificates, Dialing, Tls, TlsOptions};
use types::Address;

const PORT: u16 = 7000;
const TLS_PORT: u16 = 7001;
const PATIENCE: Duration = Duration::from_secs(120);
const YEARS: i64 = 366 * 24 * 3600 * 1_000_000;

fn node(n: u8) -> Address {
    Address::new([10, 0, 0, n], PORT)
}

/// Keys and certificates by name, in PEM.
struct Keys(BTreeMap<String, String>);

impl Keys {
    fn make() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificates.sh");
        let made = Command::new("sh").arg(script).output().expect("sh");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let text = String::from_utf8(made.stdout).expect("text");
        let parts = text.split("== ").filter_map(|part| part.split_once('\n'));
        Self(parts.map(|(name, pem)| (name.to_owned(), pem.to_owned())).collect())
    }

    /// Microseconds since 1970 at which all are good.
    fn now(&self) -> i64 {
        (self.0["now"].trim().parse::<i64>().expect("seconds") + 3600) * 1_000_000
    }

    fn certificates(&self, shows: &str, side: &Side) -> Certificates {
        let options = TlsOptions {
            keystore: self.0[shows].as_bytes().to_vec(),
            truststore: Some(self.0[side.trusts].as_bytes().to_vec()),
            clients: match side.asks {
                true => ClientCertificates::Required,
                false => ClientCertificates::None,
            },
            dialing: Some(Dialing { keystore: None, verifies_address: side.verifies }),
            ..TlsOptions::default()
        };
        Certificates::new(&options).expect("good stores")
    }
}

/// How a node speaks to others.
#[derive(Clone)]
struct Side {
    /// Whose certificate it shows; none: it has no TLS.
    shows: Option<&'static str>,
    trusts: &'static str,
    /// Must all show certificates, and of their address?
    asks: bool,
    verifies: bool,
    is_optional: bool,
    is_offered: bool,
    checks_plain_address: bool,
    has_tls_port: bool,
    /// Nodes with which it must encrypt.
    encrypts: &'static [u8],
    /// Which node it says it is, where that is not so.
    claims: Option<u8>,
}

const ALL: &[u8] = &[1, 2, 3];

/// Without TLS.
const PLAIN: Side = Side {
    shows: None,
    trusts: "ca",
    asks: false,
    verifies: false,
    is_optional: false,
    is_offered: true,
    checks_plain_address: false,
    has_tls_port: false,
    encrypts: &[],
    claims: None,
};

/// `internode_encryption: all`, with everything that can be asked of others.
fn strict(shows: &'static str) -> Side {
    Side { shows: Some(shows), asks: true, verifies: true, encrypts: ALL, ..PLAIN }
}

/// What all nodes of a world did.
#[derive(Default)]
struct Seen {
    served: RefCell<Vec<(u8, Verb)>>,
    messengers: RefCell<Vec<(u8, usize, Rc<Messenger>, Option<Tls>)>>,
    envs: RefCell<BTreeMap<u8, Env>>,
    notes: RefCell<Vec<(u8, Level, String)>>,
}

impl Seen {
    fn messenger(&self, n: u8, shard: usize) -> Rc<Messenger> {
        let all = self.messengers.borrow();
        let found = all.iter().find(|(node, at, ..)| (*node, *at) == (n, shard));
        Rc::clone(&found.expect("runs").2)
    }

    /// Did a node say so, as a warning?
    fn said(&self, n: u8, what: &str) -> bool {
        let is_so = |(node, level, note): &(u8, Level, String)| {
            (*node, *level) == (n, Level::Warn) && note.contains(what)
        };
        self.notes.borrow().iter().any(is_so)
    }
}

struct Echo {
    n: u8,
    seen: Rc<Seen>,
    encrypts: &'static [u8],
}

impl Serve for Echo {
    fn serve(&self, messenger: &Rc<Messenger>, request: Served) {
        self.seen.served.borrow_mut().push((self.n, request.header.verb));
        let payload = request.payload.clone();
        messenger.answer(&request, Params::NONE, payload);
    }

    fn knows(&self, _: Address) -> bool {
        true
    }

    fn compresses(&self, _: Address) -> bool {
        false
    }

    fn encrypts(&self, with: Address) -> bool {
        self.encrypts.iter().any(|n| node(*n).ip == with.ip)
    }

    fn stream(&self, _: messaging::StreamSocket) {}

    fn note_at(&self, _: &'static std::panic::Location<'static>, level: Level, message: String) {
        self.seen.notes.borrow_mut().push((self.n, level, message));
    }
}

async fn run(
    n: u8,
    side: Side,
    certificates: Option<Certificates>,
    seen: Rc<Seen>,
    env: Env,
    mesh: Mesh<Job>,
) -> std::io::Result<()> {
    let mut settings = Settings::new(node(side.claims.unwrap_or(n)), ([0, 0, 0, 0], PORT).into());
    let tls = certificates.map(|certificates| Tls::new(&certificates, true));
    settings.encryption = tls.clone().map(|tls| Encryption {
        is_optional: side.is_optional,
        is_offered: side.is_offered,
        verifies_address: side.verifies && side.asks,
        checks_plain_address: side.checks_plain_address,
        listen: side.has_tls_port.then(|| ([0, 0, 0, 0], TLS_PORT).into()),
        ..Encryption::new(tls)
    });
    let (registry, others) = (Registry::new(env.shard() as u32), mesh.clone());
    let messenger =
        Messenger::new(&env, settings, &registry, move |shard, job| others.send(shard, job));
    seen.messengers.borrow_mut().push((n, env.shard(), Rc::clone(&messenger), tls));
    seen.envs.borrow_mut().insert(n, env.clone());
    let server: Rc<dyn Serve> = Rc::new(Echo { n, seen, encrypts: side.encrypts });
    let _listening = messenger.listen(Rc::downgrade(&server))?;
    let jobs = Rc::clone(&messenger);
    env.spawn(Class::Statement, async move {
        loop {
            let (_, job) = mesh.recv().await;
            job(&jobs);
        }
    });
    env.terminated().await;
    Ok(())
}

/// Nodes 1, 2 and so on, one a side.
fn world_at(keys: &Keys, unix_micros: i64, shards: usize, sides: &[Side]) -> (World, Rc<Seen>) {
    let world =
        World::new(unix_micros as u64, WorldOptions { unix_micros, ..WorldOptions::default() });
    let seen = Rc::new(Seen::default());
    for (n, side) in (1..).zip(sides) {
        let id = address_of(&world, n);
        let (weak, side) = (Rc::downgrade(&seen), side.clone());
        let shown = side.shows.map(|shows| keys.certificates(shows, &side));
        world.start(id, shards, move |env, mesh| {
            let seen = Weak::upgrade(&weak).expect("the test holds it");
            run(n, side.clone(), shown.clone(), seen, env, mesh)
        });
    }
    let up = || seen.messengers.borrow().len() == sides.len() * shards;
    world.run_until(up, PATIENCE).expect("started");
    (world, seen)
}

fn address_of(world: &World, n: u8) -> NodeId {
    world.node(std::net::Ipv4Addr::new(10, 0, 0, n).into())
}

fn world(keys: &Keys, sides: &[Side]) -> (World, Rc<Seen>) {
    world_at(keys, keys.now(), 1, sides)
}

type Outcome = Rc<RefCell<Option<Result<Vec<u8>, Failed>>>>;

fn ask(
    world: &World,
    from: &Rc<Messenger>,
    to: Address,
    verb: Verb,
    payload: &[u8],
) -> Result<Vec<u8>, Failed> {
    let outcome = Outcome::default();
    let kept = Rc::clone(&outcome);
    from.ask(to, verb, Flags::NONE, Params::NONE, &Arc::from(payload), move |answer| {
        *kept.borrow_mut() = Some(answer.map(|answer| answer.payload));
    });
    world.run_until(|| outcome.borrow().is_some(), PATIENCE).expect("it ends");
    let outcome = outcome.borrow_mut().take();
    outcome.expect("it ended")
}

fn read(world: &World, seen: &Seen, from: u8, to: u8) -> Result<Vec<u8>, Failed> {
    ask(world, &seen.messenger(from, 0), node(to), Verb::ReadReq, b"row")
}

const ANSWERED: Result<&[u8], &Failed> = Ok(b"row");

#[test]
fn all_three_kinds_of_connections_are_encrypted_and_large_messages_pass() {
    let keys = Keys::make();
    let (world, seen) = world_at(&keys, keys.now(), 2, &[strict("one"), strict("two")]);
    for shard in 0..2 {
        for (from, to) in [(1, 2), (2, 1)] {
            let messenger = seen.messenger(from, shard);
            for size in [0, 10, 60_000, 70_000, 10_000_000] {
                let payload: Vec<u8> = (0..size).map(|n: usize| (n * 31 + size) as u8).collect();
                let verb = if size == 10 { Verb::EchoReq } else { Verb::ReadReq };
                let answer = ask(&world, &messenger, node(to), verb, &payload);
                assert!(answer == Ok(payload), "{size} bytes");
            }
            let open = messenger.waiting().into_iter().filter(|(.., is_open)| *is_open);
            assert_eq!(open.count(), 3, "urgent, small and large");
        }
    }
}

/// One side asks the other: nothing is served, and who refused says why.
fn refused(keys: &Keys, sides: &[Side], unix_micros: i64, by: u8, why: &str) {
    let (world, seen) = world_at(keys, unix_micros, 1, sides);
    assert_eq!(read(&world, &seen, 1, 2), Err(Failed::Timeout), "{why}");
    assert!(seen.said(by, why), "{why}: {:?}", seen.notes.borrow());
    assert_eq!(*seen.served.borrow(), [], "{why}");
    let failure = seen.messenger(1, 0).failure(node(2));
    let is_told = |said: &String| by != 1 || said.contains(why);
    assert!(failure.as_ref().is_some_and(is_told), "{why}: {failure:?}");
}

#[test]
fn who_is_refused_is_served_nothing_and_told_of() {
    let keys = Keys::make();
    let (good, lax) = (strict("two"), Side { asks: false, verifies: false, ..strict("two") });
    let stranger = strict("stranger");
    refused(&keys, &[PLAIN, good.clone()], keys.now(), 2, "/10.0.0.1:7000 sent plaintext");
    refused(&keys, &[strict("one"), PLAIN], keys.now(), 2, "it speaks TLS");
    // an authority that only one of them knows
    refused(
        &keys,
        &[stranger.clone(), good.clone()],
        keys.now(),
        2,
        "by no authority in the truststore",
    );
    refused(
        &keys,
        &[stranger.clone(), good.clone()],
        keys.now(),
        1,
        "it does not trust the authority",
    );
    let suspicious = Side { trusts: "other-ca", ..strict("one") };
    refused(
        &keys,
        &[suspicious, good.clone()],
        keys.now(),
        1,
        "its certificate is signed by no authority",
    );
    // certificates of other addresses
    let wrong = strict("three");
    refused(&keys, &[strict("one"), wrong.clone()], keys.now(), 1, "does not have its address");
    let careless = Side { verifies: false, ..wrong };
    refused(
        &keys,
        &[careless.clone(), good.clone()],
        keys.now(),
        2,
        "has no certificate for its address 10.0.0.1",
    );
    // before and after their time
    for (years, why) in [(11, "has expired"), (-1, "is not valid yet")] {
        let then = keys.now() + years * YEARS;
        refused(&keys, &[strict("one"), good.clone()], then, 1, why);
        let trusting = Side { verifies: false, ..strict("one") };
        refused(&keys, &[trusting, lax.clone()], then, 1, why);
    }
    // a node that must encrypt and has nothing to do so with
    let bare = Side { encrypts: ALL, ..PLAIN };
    refused(&keys, &[bare, PLAIN], keys.now(), 1, "this node has no certificates");
}

/// Who speaks TLS, trusts the other side and shows no certificate: is it answered?
async fn speak_without_certificate(env: Env, trusted: String) -> std::io::Result<bool> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(trusted.as_bytes()).expect("one");
    roots.add(authority).expect("good");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("some");
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::from(node(2).ip);
    let mut session = ClientConnection::new(Arc::new(config), name).expect("begins");
    let mut said = Vec::new();
    Initiate {
        versions: Versions::OURS,
        connection: Connection::Urgent,
        framing: Framing::Crc,
        from: node(1),
    }
    .write(&mut said);
    session.writer().write_all(&said)?;
    let stream = TcpStream::connect(&env, (node(2).ip, PORT).into()).await?;
    let mut bytes = vec![0; 16 << 10];
    loop {
        let mut out = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut out)?;
        }
        stream.write_all(&out).await?;
        let read = stream.read(&mut bytes).await?;
        if read == 0 {
            return Ok(false);
        }
        let mut came = &bytes[..read];
        while !came.is_empty() {
            session.read_tls(&mut came)?;
            session.process_new_packets().map_err(std::io::Error::other)?;
        }
        let mut answer = [0; 1];
        if session.reader().read(&mut answer).is_ok_and(|read| read > 0) {
            return Ok(true);
        }
    }
}

#[test]
fn who_shows_no_certificate_is_refused_where_one_is_wanted() {
    let keys = Keys::make();
    for asks in [true, false] {
        let (world, seen) = world(&keys, &[PLAIN, Side { asks, ..strict("two") }]);
        let env = seen.envs.borrow()[&1].clone();
        let ended = Rc::new(RefCell::new(None));
        let told = Rc::clone(&ended);
        let speaking = speak_without_certificate(env.clone(), keys.0["ca"].clone());
        env.spawn(Class::Statement, async move {
            *told.borrow_mut() = Some(speaking.await.unwrap_or_default());
        });
        world.run_until(|| ended.borrow().is_some(), PATIENCE).expect("it ends");
        assert_eq!(*ended.borrow(), Some(!asks));
        let why = "it sent no certificate, which require_client_auth";
        assert_eq!(seen.said(2, why), asks, "{:?}", seen.notes.borrow());
    }
}

#[test]
fn what_is_not_asked_for_is_not_looked_at() {
    let keys = Keys::make();
    let unnamed = |shows| Side { verifies: false, ..strict(shows) };
    let (world, seen) = world(&keys, &[unnamed("three"), unnamed("three")]);
    assert_eq!(read(&world, &seen, 1, 2).as_deref(), ANSWERED);
    // nobody need show a certificate: then none is looked at for its address
    let open = |shows| Side { asks: false, ..strict(shows) };
    let (world, seen) = self::world(&keys, &[open("one"), open("two")]);
    assert_eq!(read(&world, &seen, 1, 2).as_deref(), ANSWERED);
}

#[test]
fn optional_takes_both_and_dials_with_tls() {
    let keys = Keys::make();
    let optional = Side { is_optional: true, ..strict("two") };
    let (world, seen) = world(&keys, &[strict("one"), optional.clone(), PLAIN]);
    assert_eq!(read(&world, &seen, 1, 2).as_deref(), ANSWERED);
    assert!(read(&world, &seen, 3, 2).is_err(), "it would have to be answered without TLS");
    assert_eq!(*seen.served.borrow(), [(2, Verb::ReadReq), (2, Verb::ReadReq)]);
    // offered, and nobody has to
    let offers = Side { encrypts: &[], ..optional };
    let (world, seen) = self::world(&keys, &[PLAIN, offers]);
    assert_eq!(read(&world, &seen, 1, 2).as_deref(), ANSWERED);
    assert_eq!(read(&world, &seen, 2, 1).as_deref(), ANSWERED);
}

#[test]
fn places_decide_who_encrypts() {
    let keys = Keys::make();
    let near = |shows| Side { encrypts: &[3], ..strict(shows) };
    let far = Side { encrypts: &[1, 2], ..strict("three") };
    let (world, seen) = world(&keys, &[near("one"), near("two"), far]);
    for (from, to) in [(1, 2), (2, 1), (1, 3), (3, 1), (3, 2)] {
        assert_eq!(read(&world, &seen, from, to).as_deref(), ANSWERED, "{from} to {to}");
    }
    // one that is far and does not encrypt
    let (world, seen) = self::world(&keys, &[near("one"), near("two"), PLAIN]);
    assert!(read(&world, &seen, 3, 2).is_err());
    assert!(seen.said(2, "/10.0.0.3:7000 sent plaintext"), "{:?}", seen.notes.borrow());
    // and says that it is another, which is near
    for checks_plain_address in [false, true] {
        let wary = |shows| Side { checks_plain_address, ..near(shows) };
        let liar = Side { claims: Some(1), ..PLAIN };
        let (world, seen) = self::world(&keys, &[wary("one"), wary("two"), liar]);
        assert!(read(&world, &seen, 3, 2).is_err(), "its answer goes to another");
        let said = seen.said(2, "internode_plaintext_checks_address refuses");
        assert_eq!(
            (said, seen.served.borrow().is_empty()),
            (checks_plain_address, checks_plain_address)
        );
        assert_eq!(read(&world, &seen, 1, 2).as_deref(), ANSWERED);
    }
}

#[test]
fn the_port_for_tls_takes_nothing_else() {
    let keys = Keys::make();
    let both = Side { has_tls_port: true, is_offered: false, encrypts: &[], ..strict("two") };
    let (world, seen) = world(&keys, &[Side { encrypts: &[2], ..strict("one") }, both, PLAIN]);
    let at = Address::new([10, 0, 0, 2], TLS_PORT);
    let ask_at =
        |from: u8, to| ask(&world, &seen.messenger(from, 0), to, Verb::ReadReq, b"x").err();
    assert_eq!(ask_at(3, at), Some(Failed::Timeout));
    assert!(seen.said(2, "to ssl_storage_port"), "{:?}", seen.notes.borrow());
    assert_eq!(*seen.served.borrow(), []);
    // its answer comes from the other port, and so answers nothing
    ask_at(1, at);
    assert_eq!(seen.served.borrow().first(), Some(&(2, Verb::ReadReq)));
    // where TLS is not offered
    ask_at(1, node(2));
    assert!(seen.said(2, "it speaks TLS"));
}

/// Who connects and says nothing, or half of something, is not waited for without end.
#[test]
fn handshakes_end_in_time() {
    let keys = Keys::make();
    let (world, seen) = world(&keys, &[strict("one"), strict("two")]);
    for begun in [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"\xCA\x55"] {
        seen.notes.borrow_mut().clear();
        let (env, kept) = (seen.envs.borrow()[&1].clone(), Rc::new(RefCell::new(None)));
        let (of_task, to) = (Rc::clone(&kept), (node(2).ip, PORT).into());
        env.clone().spawn(Class::Statement, async move {
            let stream = TcpStream::connect(&env, to).await.expect("listens");
            stream.write_all(begun).await.expect("takes it");
            *of_task.borrow_mut() = Some(stream);
        });
        let ended = || seen.said(2, "it did not complete the handshake in time");
        world.run_until(ended, PATIENCE).unwrap_or_else(|e| panic!("{begun:?}: {e}"));
    }
    assert_eq!(read(&world, &seen, 1, 2).as_deref(), ANSWERED);
}

#[test]
fn connections_to_come_have_the_certificates_of_now() {
    let keys = Keys::make();
    let (world, seen) = world(&keys, &[strict("one"), strict("two")]);
    assert_eq!(read(&world, &seen, 1, 2).as_deref(), ANSWERED);
    let other = Side { trusts: "other-ca", ..strict("one") };
    for (n, _, _, tls) in seen.messengers.borrow().iter() {
        if *n == 1 {
            tls.as_ref().expect("it has").set(&keys.certificates("stranger", &other));
        }
    }
    // what is open stays
    assert_eq!(read(&world, &seen, 1, 2).as_deref(), ANSWERED);
    let echo = ask(&world, &seen.messenger(1, 0), node(2), Verb::EchoReq, b"x");
    assert_eq!(echo, Err(Failed::Timeout));
    assert!(seen.said(1, "its certificate is signed by no authority"), "{:?}", seen.notes.borrow());
}

/// Does a world in which node 1 must encrypt and node 2 cannot keep them apart?
fn keeps_apart(keys: &Keys, bug: Option<&'static str>) -> bool {
    let (world, seen) = world(keys, &[strict("one"), PLAIN]);
    if let Some(bug) = bug {
        world.plant(bug);
    }
    let (there, back) = (read(&world, &seen, 1, 2), read(&world, &seen, 2, 1));
    there.is_err() && back.is_err() && seen.served.borrow().is_empty()
}

#[test]
fn nobody_falls_back_to_plain_bytes_and_who_would_is_found() {
    let keys = Keys::make();
    assert!(keeps_apart(&keys, None));
    for bug in ["ring_speaks_plain", "link_falls_back_to_plain"] {
        assert!(!keeps_apart(&keys, Some(bug)), "{bug} is not found");
    }
}
