//! The operator's port: logins, limits of strangers, TLS with and without certificates of clients.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "plays nodetool, beside the door"
)]

use crate::common::Fake;

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use admin::Refusal;
use admin::client::{self, ClientError};
use admin::remote::{Gate, MAX_FAILURES, MAX_STRANGERS_PER_ADDRESS, Remote, serve as serve_port};
use admin::wire::{self, Login, MAGIC, MAX_LOGIN};
use env::Env;
use env::real::{RealOptions, run};
use metrics::Registry;
use tls::{Certificates, ClientCertificates, ClientOptions, Tls, TlsOptions};

/// Lets `ada` in with the password `secret`.
#[derive(Default)]
struct Guard {
    demands: Cell<bool>,
    asked: Cell<u32>,
    said: RefCell<Vec<String>>,
}

impl Gate for Guard {
    fn demands_login(&self) -> bool {
        self.demands.get()
    }

    async fn log_in(&self, login: Login, _: IpAddr) -> Result<(), Refusal> {
        self.asked.set(self.asked.get() + 1);
        match (login.user.as_str(), login.password.as_str()) {
            ("ada", "secret") => Ok(()),
            _ => Err(Refusal::not_let_in("FailedLoginException", "wrong")),
        }
    }

    fn warn(&self, text: String) {
        self.said.borrow_mut().push(text);
    }

    fn warn_seldom(&self, text: String) {
        self.warn(text);
    }
}

/// Runs a test on one real shard, with a directory of its own.
fn real<F, Fut>(test: F)
where
    F: Fn(Env, PathBuf) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + 'static,
{
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("helenus-remote-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let options = RealOptions { signals: false, ring_entries: 256, ..RealOptions::default() };
    let theirs = dir.clone();
    let test = move |env: Env, _: env::Mesh<()>| {
        let done = test(env, theirs.clone());
        async move {
            done.await;
            Ok::<_, io::Error>(())
        }
    };
    run(options, test).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

fn serve(env: &Env, demands: bool, tls: Option<Tls>) -> (Remote, Rc<Fake>, Rc<Guard>) {
    let (fake, guard) = (Rc::new(Fake::default()), Rc::new(Guard::default()));
    guard.demands.set(demands);
    let address = "127.0.0.1:0".parse().unwrap();
    let to = (fake.clone(), guard.clone());
    (serve_port(env, address, tls, &Registry::new(0), to).unwrap(), fake, guard)
}

fn login(user: &str, password: &str) -> Login {
    Login { user: user.to_owned(), password: password.to_owned() }
}

/// What nodetool prints on its standard output, or why not.
fn say(stream: &mut (impl Read + Write), login: Option<Login>) -> Result<String, ClientError> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let words = ["version".to_owned()];
    let code = client::call_as(stream, login.as_ref(), &words, (&mut out, &mut err))?;
    assert_eq!(code == 0, err.is_empty());
    Ok(String::from_utf8([out, err].concat()).unwrap())
}

/// The same over a connection of its own.
async fn talk(env: &Env, remote: &Remote, login: Option<Login>) -> Result<String, ClientError> {
    let address = remote.address;
    env.helper(move || say(&mut std::net::TcpStream::connect(address)?, login)).await
}

/// Sends bytes; gives all that is answered until the end.
async fn exchange(env: &Env, remote: &Remote, bytes: Vec<u8>) -> String {
    let address = remote.address;
    let exchange = move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        // who has answered already may not read all of it
        let _ = stream.write_all(&bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    };
    env.helper(exchange).await
}

const VERSION: &str = "ReleaseVersion: 5.0.9\n";
const REQUIRED: &str = "SecurityException: 'Authentication failed! Credentials required'";

#[test]
fn who_must_log_in_is_not_answered_without() {
    real(|env, _| async move {
        let (remote, fake, guard) = serve(&env, true, None);
        let wrong = talk(&env, &remote, None).await.unwrap_err();
        assert_eq!(wrong.to_string(), REQUIRED);
        let wrong = talk(&env, &remote, Some(login("ada", "guess"))).await.unwrap_err();
        assert_eq!(wrong.to_string(), "FailedLoginException: 'wrong'");
        let said = guard.said.borrow_mut().remove(0);
        assert!(said.starts_with("refused a login of nodetool from 127.0.0.1 as 'ada'"), "{said}");
        assert!(!said.contains("guess"), "{said}");
        assert_eq!(*fake.done.borrow(), [""; 0]);
        assert_eq!(talk(&env, &remote, Some(login("ada", "secret"))).await.unwrap(), VERSION);
    });
}

#[test]
fn where_nobody_must_log_in_a_login_is_not_looked_at() {
    real(|env, _| async move {
        let (remote, _, guard) = serve(&env, false, None);
        assert_eq!(talk(&env, &remote, None).await.unwrap(), VERSION);
        assert_eq!(talk(&env, &remote, Some(login("a", "b"))).await.unwrap(), VERSION);
        assert_eq!(guard.asked.get(), 0);
    });
}

#[test]
fn who_guesses_is_turned_away() {
    real(|env, _| async move {
        let (remote, _, guard) = serve(&env, true, None);
        for _ in 0..MAX_FAILURES {
            let wrong = talk(&env, &remote, Some(login("ada", "guess"))).await.unwrap_err();
            assert_eq!(wrong.to_string(), "FailedLoginException: 'wrong'");
        }
        // the right one too: nobody looks at it
        let wrong = talk(&env, &remote, Some(login("ada", "secret"))).await.unwrap_err();
        assert!(wrong.to_string().contains("Too many failed logins"), "{wrong}");
        assert_eq!(guard.asked.get(), MAX_FAILURES);
    });
}

#[test]
fn a_stranger_may_send_little() {
    real(|env, _| async move {
        let (remote, fake, guard) = serve(&env, true, None);
        let begin = |rest: &str| format!("{MAGIC}\n{rest}").into_bytes();
        let endless = exchange(&env, &remote, begin(&"x".repeat(1 << 20))).await;
        assert!(endless.contains("Credentials required") || endless.is_empty(), "{endless:.200}");
        let long = json_login(&"p".repeat(MAX_LOGIN));
        let answer = exchange(&env, &remote, begin(&long)).await;
        assert!(answer.contains("Credentials required") || answer.is_empty(), "{answer:.200}");
        let other = exchange(&env, &remote, b"GET / HTTP/1.1\r\n\r\n".to_vec()).await;
        assert!(other.contains("the client speaks 'GET / HTTP/1.1"), "{other}");
        // a request cannot come in a login's place, nor both in one line
        let both = "{\"login\":{\"user\":\"ada\",\"password\":\"secret\"},\"args\":[\"drain\"]}\n";
        for line in ["{\"args\":[\"drain\"]}\n", both, "\n", "[]\n"] {
            let answer = exchange(&env, &remote, begin(line)).await;
            assert!(answer.contains("Credentials required"), "{answer}");
        }
        assert_eq!((guard.asked.get(), fake.drained.get()), (0, false));
    });
}

fn json_login(password: &str) -> String {
    format!("{{\"login\":{{\"user\":\"u\",\"password\":\"{password}\"}}}}\n")
}

#[test]
fn strangers_are_few() {
    real(|env, _| async move {
        let (remote, _, _) = serve(&env, true, None);
        let address = remote.address;
        let idle = move || -> Vec<_> {
            let open = || std::net::TcpStream::connect(address).unwrap();
            (0..MAX_STRANGERS_PER_ADDRESS).map(|_| open()).collect()
        };
        let idle = env.helper(idle).await;
        let talks = async || talk(&env, &remote, Some(login("ada", "secret"))).await;
        let more = talks().await;
        let is_refused = more.is_err() || more.unwrap().contains("too many connections");
        assert!(is_refused);
        drop(idle);
        while !talks().await.is_ok_and(|said| said == VERSION) {}
    });
}

/// The keys of a test, made by openssl.
fn keys(dir: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/certificates.sh");
    let made = std::process::Command::new("sh").arg(script).arg(dir).arg("127.0.0.1").output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn offered(dir: &Path, clients: ClientCertificates) -> Tls {
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let options = TlsOptions {
        keystore: read("node.pem"),
        truststore: Some(read("ca.pem")),
        clients,
        ..TlsOptions::default()
    };
    Tls::new(&Certificates::new(&options).unwrap(), false)
}

/// Talks over TLS to a host of a name, trusting an authority and showing a key.
async fn talk_over_tls(
    env: &Env,
    remote: &Remote,
    dir: &Path,
    (host, trusted, shown): (&str, &str, Option<&str>),
) -> Result<String, String> {
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let options = ClientOptions {
        truststore: read(trusted),
        keystore: shown.map(|name| (read(name), String::new())),
        ..ClientOptions::default()
    };
    let (address, host) = (remote.address, host.to_owned());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64;
    let fault = |error: &io::Error| ClientOptions::fault(error).0.to_owned();
    let talk = move || {
        let stream = std::net::TcpStream::connect(address).unwrap();
        let mut stream = options.dial(&host, stream, now).map_err(|error| fault(&error))?;
        say(&mut stream, Some(login("ada", "secret"))).map_err(|error| match error {
            ClientError::Io(error) => fault(&error),
            other => other.to_string(),
        })
    };
    env.helper(talk).await
}

#[test]
fn with_tls_nothing_goes_in_plaintext() {
    real(|env, dir| async move {
        keys(&dir);
        let (remote, fake, guard) =
            serve(&env, true, Some(offered(&dir, ClientCertificates::None)));
        let talk_to = async |what| talk_over_tls(&env, &remote, &dir, what).await;
        assert_eq!(talk_to(("127.0.0.1", "ca.pem", None)).await.unwrap(), VERSION);
        let of_others = talk_to(("127.0.0.1", "other.pem", None)).await.unwrap_err();
        assert_eq!(of_others, "SunCertPathBuilderException");
        let elsewhere = talk_to(("127.0.0.2", "ca.pem", None)).await.unwrap_err();
        assert_eq!(elsewhere, "CertificateException");
        // plaintext gets no line of the protocol
        let plain = format!("{MAGIC}\n{}", json_login("secret").replace("\"u\"", "\"ada\""));
        let request = wire::encode_request(&["drain".to_owned()]).unwrap();
        let answer = exchange(&env, &remote, (plain + &request).into_bytes()).await;
        assert!(!answer.contains("helenus-admin"), "{answer}");
        assert_eq!((guard.asked.get(), fake.drained.get()), (1, false));
        let plain = talk(&env, &remote, Some(login("ada", "secret"))).await.unwrap_err();
        assert!(matches!(plain, ClientError::Closed | ClientError::Io(_)), "{plain}");
    });
}

#[test]
fn a_certificate_is_asked_for_where_it_is_required() {
    real(|env, dir| async move {
        keys(&dir);
        let tls = offered(&dir, ClientCertificates::Required);
        let (remote, fake, guard) = serve(&env, false, Some(tls));
        let talk_to = async |what| talk_over_tls(&env, &remote, &dir, what).await;
        let shown = talk_to(("127.0.0.1", "ca.pem", Some("operator.pem"))).await;
        assert_eq!(shown.unwrap(), VERSION);
        for shown in [None, Some("stranger.pem")] {
            let refused = talk_to(("127.0.0.1", "ca.pem", shown)).await.unwrap_err();
            let is_refused = ["SSLHandshakeException", "SocketException", "EOFException"];
            assert!(is_refused.contains(&refused.as_str()), "{shown:?}: {refused}");
        }
        let said = guard.said.borrow();
        assert!(said[0].contains("it sent no certificate"), "{said:?}");
        assert!(said[1].contains("is signed by no authority"), "{said:?}");
        assert_eq!(*fake.done.borrow(), [""; 0]);
    });
}
