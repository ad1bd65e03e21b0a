//! The operator's socket: permissions, framing, limits, hostile clients.
#![allow(clippy::disallowed_methods, reason = "looks at the socket behind the door's back")]

use crate::common;

use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use admin::socket::{self, MAX_CONNECTIONS, Socket};
use admin::wire::{self, MAGIC, MAX_REQUEST};
use admin::{Outcome, Refusal, Release, RepairEnd, RepairEventKind, Ring, Shown, client};
use common::Fake;
use common::repair::{Script, event};
use env::real::{RealOptions, run};
use env::{Env, Mesh, TcpStream};
use metrics::{Registry, prometheus};

/// Runs a test on one real shard with a directory of its own.
fn real<F, Fut>(test: F)
where
    F: Fn(Env, PathBuf) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = io::Result<()>> + 'static,
{
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let dir = std::env::temp_dir().join(format!("helenus-admin-{}-{n}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let options = RealOptions { signals: false, ring_entries: 256, ..RealOptions::default() };
    let theirs = dir.clone();
    run(options, move |env: Env, _: Mesh<()>| test(env, theirs.clone())).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}

fn serve(env: &Env, dir: &std::path::Path) -> (Socket, Rc<Fake>) {
    let fake = Rc::new(Fake::default());
    (socket::serve(env, dir, &Registry::new(0), fake.clone()).unwrap(), fake)
}

/// Sends bytes and gives the lines of the answer.
async fn ask(env: &Env, socket: &Socket, bytes: &[u8]) -> io::Result<Vec<String>> {
    let stream = TcpStream::connect_unix(env, &socket.path).await?;
    // The node may have refused before it read everything.
    let _ = stream.write_all(bytes).await;
    let (mut all, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buf).await {
            Ok(0) => break,
            Ok(n) => all.extend_from_slice(&buf[..n]),
            // Unread bytes reset a unix stream after what was sent before.
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => break,
            Err(e) => return Err(e),
        }
    }
    Ok(String::from_utf8(all).unwrap().lines().map(str::to_owned).collect())
}

/// The outcome in a well-formed answer.
fn read(lines: &[String]) -> Outcome {
    let [first, outcome] = lines else { panic!("an answer has two lines: {lines:?}") };
    assert_eq!(first, MAGIC);
    wire::decode_outcome(outcome.as_bytes()).unwrap()
}

/// Why the answer's request was not taken.
fn not_taken(lines: &[String]) -> String {
    match read(lines) {
        Outcome { shown: None, refusal: Some(Refusal::NotTaken(why)), .. } => why,
        other => panic!("{other:?}"),
    }
}

fn version() -> Outcome {
    let release = Release { version: "5.0.9".into(), git_sha: "0123abc".into() };
    Outcome::shown(Shown::Release(release))
}

fn request(line: &str) -> Vec<u8> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    format!("{MAGIC}\n{}", wire::encode_request(&words).unwrap()).into_bytes()
}

#[test]
fn the_socket_is_its_owners_alone_and_goes_with_it() {
    real(|env, dir| async move {
        let (socket, _) = serve(&env, &dir);
        assert_eq!(socket.path, dir.join("admin.sock"));
        let facts = std::fs::metadata(&socket.path)?;
        assert!(facts.file_type().is_socket());
        assert_eq!(facts.permissions().mode() & 0o777, 0o600);
        // A dead node's socket is in nobody's way.
        drop(std::os::unix::net::UnixListener::bind(dir.join("left"))?);
        std::fs::rename(dir.join("left"), &socket.path)?;
        let (again, _) = serve(&env, &dir);
        let said = read(&ask(&env, &again, &request("version")).await?);
        assert_eq!(said, version());
        drop((socket, again));
        env.yield_now().await;
        assert!(!dir.join("admin.sock").exists());
        Ok(())
    });
}

#[test]
fn a_path_too_long_for_a_socket_is_named() {
    real(|env, dir| async move {
        let deep = dir.join("d".repeat(120));
        std::fs::create_dir_all(&deep)?;
        let e = socket::serve(&env, &deep, &Registry::new(0), Rc::new(Fake::default()))
            .expect_err("a path beyond sun_path");
        assert!(e.to_string().contains("dddd"), "{e}");
        Ok(())
    });
}

#[test]
fn runs_verbs() {
    real(|env, dir| async move {
        let (socket, fake) = serve(&env, &dir);
        let said = read(&ask(&env, &socket, &request("flush system local")).await?);
        assert_eq!(said, Outcome::default());
        assert_eq!(*fake.done.borrow(), ["flush system [\"local\"]"]);
        let refused = |why: Refusal| Outcome::refused(why);
        let said = read(&ask(&env, &socket, &request("flush system nosuch")).await?);
        let unknown = "Unknown keyspace/cf pair (system.nosuch)".to_owned();
        assert_eq!(said, refused(Refusal::Failed(unknown)));
        let said = read(&ask(&env, &socket, &request("bogus")).await?);
        let unexpected = "Found unexpected parameters: [bogus]".to_owned();
        assert_eq!(said, refused(Refusal::BadUse(unexpected)));
        let said = not_taken(&ask(&env, &socket, &request("gcstats")).await?);
        assert_eq!(said, "gcstats is not supported: there is no garbage collector");
        Ok(())
    });
}

/// The blocking client against the node, with more than fits a piece or a socket's buffer.
#[test]
fn long_answers_come_in_pieces() {
    real(|env, dir| async move {
        let (socket, fake) = serve(&env, &dir);
        let node = common::ring().nodes[0].clone();
        *fake.ring.borrow_mut() = Some(Ring { nodes: vec![node; 20_000], note: None });
        let path = socket.path.clone();
        let call = move || {
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let code = client::call(&mut stream, &["status".to_owned()], &mut out, &mut err);
            (code.unwrap(), out, err)
        };
        let (code, out, err) = env.helper(call).await;
        assert_eq!((code, err), (0, Vec::new()));
        assert_eq!(String::from_utf8(out).unwrap().matches("\nUN").count(), 20_000);
        Ok(())
    });
}

/// The fake with a repair of `system_auth` that says three things, one an answer.
fn repairing(fake: &Fake, end: Option<RepairEnd>) {
    use RepairEventKind::{Complete, Start, Success};
    let events = [(Start, "gr\u{fc}\u{df}e"), (Success, "done"), (Complete, "finished")];
    let events = events.map(|(kind, message)| event(kind, message, 0, 7)).to_vec();
    let script = Script::Runs(events, end);
    fake.repairs.scripts.borrow_mut().insert("system_auth".to_owned(), script);
}

/// The blocking client sees each part of a repair as it comes.
#[test]
fn a_repair_is_watched_in_parts() {
    real(|env, dir| async move {
        let (socket, fake) = serve(&env, &dir);
        let end = RepairEnd { has_failed: false, messages: vec!["done".to_owned()] };
        repairing(&fake, Some(end));
        let lines = ask(&env, &socket, &request("repair")).await?;
        let outcomes = lines[1..].iter().map(|line| wire::decode_outcome(line.as_bytes()).unwrap());
        let outcomes: Vec<_> = outcomes.collect();
        let (last, parts) = outcomes.split_last().unwrap();
        assert_eq!((lines[0].as_str(), last), (MAGIC, &Outcome::default()));
        // one of system_traces, which needs none
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|of| of.has_more && of.shown.is_some()), "{parts:?}");
        let path = socket.path.clone();
        let call = move |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let code = client::call(&mut stream, &words, &mut out, &mut err);
            assert_eq!((code.unwrap(), err), (0, Vec::new()));
            String::from_utf8(out).unwrap()
        };
        let again = call.clone();
        let text = env.helper(move || call(&["repair", "--watch", "1"])).await;
        let said: Vec<_> = text.lines().filter_map(|line| line.split_once("] ")).collect();
        let said: Vec<_> = said.into_iter().map(|(_, message)| message).collect();
        let found = "condition satisfied queried for parent session status and discovered repair \
                     completed.";
        assert_eq!(said, ["gr\u{fc}\u{df}e", "done", "finished", found, "done"]);
        let json = env.helper(move || again(&["--format", "json", "repair"])).await;
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let repairs = value["repairs"].as_array().unwrap();
        let events: Vec<_> =
            repairs.iter().map(|of| of["events"].as_array().unwrap().len()).collect();
        assert_eq!(events, [0, 3]);
        Ok(())
    });
}

#[test]
fn a_repair_that_nobody_watches_any_more_is_let_alone() {
    real(|env, dir| async move {
        let (socket, fake) = serve(&env, &dir);
        let unwatched = Rc::strong_count(&fake);
        repairing(&fake, None);
        let stream = TcpStream::connect_unix(&env, &socket.path).await?;
        stream.write_all(&request("repair system_auth")).await?;
        let (mut read, mut buf) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&read).contains("finished") {
            let n = stream.read(&mut buf).await?;
            read.extend_from_slice(&buf[..n]);
        }
        assert!(Rc::strong_count(&fake) > unwatched, "it runs and is watched");
        drop(stream);
        let let_alone = async {
            while Rc::strong_count(&fake) > unwatched {
                env.yield_now().await;
            }
        };
        let end = env.timeout(Duration::from_secs(20), let_alone).await;
        assert!(end.is_ok(), "it is still watched");
        Ok(())
    });
}

#[test]
fn who_stops_the_node_is_answered_before_it_ends() {
    real(|env, dir| async move {
        let (socket, fake) = serve(&env, &dir);
        let mut client = UnixStream::connect(&socket.path)?;
        client.write_all(&request("stopdaemon"))?;
        client.set_nonblocking(true)?;
        let seen = move || {
            let mut text = String::new();
            // To its end, without waiting.
            (&client).read_to_string(&mut text).map(|_| text).unwrap_or_else(|e| e.to_string())
        };
        *fake.seen_at_the_end.borrow_mut() = Some(Box::new(seen));
        let is_told = async {
            while fake.done.borrow().len() < 2 {
                env.yield_now().await;
            }
        };
        assert!(env.timeout(Duration::from_secs(20), is_told).await.is_ok(), "it goes on");
        let answer = format!("{MAGIC}\n{}", wire::encode_outcome(&Outcome::default()));
        assert_eq!(*fake.done.borrow(), ["drain".to_owned(), format!("terminate {answer}")]);
        Ok(())
    });
}

#[test]
fn refuses_hostile_requests_and_serves_on() {
    real(|env, dir| async move {
        let (socket, fake) = serve(&env, &dir);
        let framed = |line: &str| format!("{MAGIC}\n{line}\n").into_bytes();
        let deep = framed(&"[".repeat(MAX_REQUEST - 1));
        let cases: &[(&[u8], &str)] = &[
            (b"GET /metrics HTTP/1.1\r\n\r\n", "the client speaks 'GET /metrics HTTP/1.1\\r'"),
            (b"helenus-admin 1\n{}\n", "the client speaks 'helenus-admin 1'"),
            (b"\xff\x00\n", "the client speaks"),
            (&[b'x'; 100_000], "more than 64 bytes in a line"),
            (&framed("{}"), "not a request"),
            (&framed("{\"args\":[1]}"), "not a request"),
            (&framed("{\"args\":[\"drain\"]"), "not a request"),
            (&deep, "not a request"),
            (&framed(&"x".repeat(MAX_REQUEST + 1)), "more than 65536 bytes in a line"),
        ];
        for (bytes, expected) in cases {
            let why = not_taken(&ask(&env, &socket, bytes).await?);
            assert!(why.contains(expected), "{why}");
        }
        // Gone before the request was whole.
        for bytes in [&b""[..], b"helenus-adm", b"helenus-admin 3\n{\"args\":[\"drain\"]}"] {
            let stream = TcpStream::connect_unix(&env, &socket.path).await?;
            stream.write_all(bytes).await?;
            stream.shutdown(std::net::Shutdown::Write)?;
            assert_eq!(stream.read(&mut [0]).await?, 0);
        }
        assert!(fake.done.borrow().is_empty());
        assert_eq!(read(&ask(&env, &socket, &request("drain")).await?), Outcome::default());
        Ok(())
    });
}

#[test]
fn at_the_limit_of_connections_the_next_is_refused() {
    real(|env, dir| async move {
        let registry = Registry::new(0);
        let fake = Rc::new(Fake::default());
        let socket = socket::serve(&env, &dir, &registry, fake).unwrap();
        let mut open = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            open.push(TcpStream::connect_unix(&env, &socket.path).await?);
        }
        let why = not_taken(&ask(&env, &socket, b"").await?);
        assert_eq!(why, "the node runs 32 commands already; try again later");
        let text = prometheus::write(&[registry.snapshot()]);
        assert!(text.contains("operatorconnectionsrefused_total{shard=\"0\"} 1\n"), "{text}");
        open.clear();
        loop {
            let lines = ask(&env, &socket, &request("version")).await?;
            if read(&lines) == version() {
                return Ok(());
            }
            assert!(not_taken(&lines).contains("commands already"));
            env.yield_now().await;
        }
    });
}
