//! The metrics endpoint over loopback, against clients of every kind.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use admin::http::{self, Endpoint, MAX_CONNECTIONS, MAX_HEAD};
use env::real::{RealOptions, run};
use env::sim::{World, WorldOptions};
use env::{Env, Mesh, TcpStream};
use metrics::{Registry, prometheus};

const LOOPBACK: &str = "127.0.0.1:0";
const BODY: &str = "# TYPE a counter\na 1\n";

/// Runs a test on one real shard.
fn real<F, Fut>(test: F)
where
    F: Fn(Env) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = io::Result<()>> + 'static,
{
    let options = RealOptions { signals: false, ring_entries: 256, ..RealOptions::default() };
    run(options, move |env: Env, _: Mesh<()>| test(env)).unwrap();
}

fn endpoint(env: &Env, registry: &Registry) -> Endpoint {
    http::serve(env, LOOPBACK.parse().unwrap(), registry, async |_| BODY.to_owned()).unwrap()
}

/// Sends `request` and reads to the end; the client's sending side stays open.
async fn ask(env: &Env, address: SocketAddr, request: &[u8]) -> io::Result<String> {
    let stream = TcpStream::connect(env, address).await?;
    // A server that has answered already may have closed.
    let _ = stream.write_all(request).await;
    read_all(&stream).await
}

async fn read_all(stream: &TcpStream) -> io::Result<String> {
    let (mut bytes, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            n => bytes.extend_from_slice(&buf[..n]),
        }
    }
}

fn status(answer: &str) -> &str {
    answer.strip_prefix("HTTP/1.1 ").and_then(|a| a.get(..3)).unwrap_or(answer)
}

#[test]
fn serves_the_metrics() {
    real(|env| async move {
        let at = endpoint(&env, &Registry::new(0)).address;
        assert!(at.ip().is_loopback());
        assert!(ask(&env, at, b"GET /metrics HTTP/1.0\r\n\r\n").await.is_err(), "dropped, closed");
        let endpoint = endpoint(&env, &Registry::new(0));
        let at = endpoint.address;
        let answer = ask(&env, at, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: 21\r\nX-Content-Type-Options: nosniff\r\nConnection: close"
        );
        assert_eq!(body, BODY);
        let answer = ask(&env, at, b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await?;
        assert!(answer.contains("Content-Length: 21\r\n") && answer.ends_with("\r\n\r\n"));
        Ok(())
    });
}

#[test]
fn serves_what_a_registry_holds() {
    real(|env| async move {
        let registry = Rc::new(Registry::new(0));
        let shown = registry.clone();
        let body = async move |_| prometheus::write(&[shown.snapshot()]);
        let endpoint = http::serve(&env, LOOPBACK.parse().unwrap(), &registry, body).unwrap();
        let answer = ask(&env, endpoint.address, b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        assert!(answer.contains("\ncassandra_admin_metricsconnectionsrefused_total{"), "{answer}");
        Ok(())
    });
}

#[test]
fn a_large_body_arrives_whole() {
    real(|env| async move {
        let registry = Registry::new(0);
        let body = async |_| "x".repeat(8 << 20);
        let endpoint = http::serve(&env, LOOPBACK.parse().unwrap(), &registry, body).unwrap();
        let answer = ask(&env, endpoint.address, b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        assert_eq!(answer.split_once("\r\n\r\n").unwrap().1.len(), 8 << 20);
        Ok(())
    });
}

#[test]
fn refuses_hostile_requests_and_serves_on() {
    real(|env| async move {
        let endpoint = endpoint(&env, &Registry::new(0));
        let at = endpoint.address;
        let get = b"GET /metrics HTTP/1.1\r\nHost: a\r\n".to_vec();
        let with = |rest: &[u8]| [&get, rest].concat();
        let long_header = with(&[&b"A: "[..], &[b'x'; MAX_HEAD]].concat());
        let endless_target = [&b"GET /"[..], &[b'a'; 4 * MAX_HEAD]].concat();
        let much_behind = with(&[&b"\r\n"[..], &[b'z'; 32 << 10]].concat());
        let cases: &[(&[u8], &str)] = &[
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "405"),
            (b"GET /metrics HTTP/1.1\r\n\r\n", "400"),
            (b"\x00\x01\x02\xff\xfe\n", "400"),
            (b"GET /metrics\xff HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
            (b"GET  /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
            (&long_header, "431"),
            (&endless_target, "431"),
            (&much_behind, "200"),
        ];
        for (request, expected) in cases {
            let answer = ask(&env, at, request).await?;
            let shown = String::from_utf8_lossy(request.get(..60).unwrap_or(request));
            assert_eq!(status(&answer), *expected, "{shown}");
        }
        // Gone in the middle, or without a word.
        for part in [&b""[..], b"GET /met"] {
            let stream = TcpStream::connect(&env, at).await?;
            stream.write_all(part).await?;
            stream.shutdown(std::net::Shutdown::Write)?;
            let answer = read_all(&stream).await?;
            assert_eq!(status(&answer), if part.is_empty() { "" } else { "400" });
        }
        assert_eq!(status(&ask(&env, at, b"GET /metrics HTTP/1.0\r\n\r\n").await?), "200");
        Ok(())
    });
}

#[test]
fn at_the_limit_of_connections_the_next_is_refused() {
    real(|env| async move {
        let registry = Registry::new(0);
        let endpoint = endpoint(&env, &registry);
        let at = endpoint.address;
        let mut open = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            open.push(TcpStream::connect(&env, at).await?);
        }
        let answer = ask(&env, at, b"GET /metrics HTTP/1.0\r\n\r\n").await;
        // What the server did not read may have reset the connection.
        assert!(answer.is_err() || answer.is_ok_and(|a| status(&a) == "503"));
        let text = prometheus::write(&[registry.snapshot()]);
        assert!(text.contains("metricsconnectionsrefused_total{shard=\"0\"} 1\n"), "{text}");
        let last = open.pop().unwrap();
        last.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        assert_eq!(status(&read_all(&last).await?), "200");
        drop((open, last));
        // Ended connections give their places back.
        loop {
            match ask(&env, at, b"GET /metrics HTTP/1.0\r\n\r\n").await {
                Ok(answer) if status(&answer) == "200" => return Ok(()),
                _ => env.yield_now().await,
            }
        }
    });
}

#[test]
fn metrics_that_do_not_come_are_an_error() {
    let world = World::new(3, WorldOptions::default());
    let node = world.node("10.0.0.1".parse().unwrap());
    let address: SocketAddr = "10.0.0.1:7070".parse().unwrap();
    world.start(node, 1, move |env: Env, _: Mesh<()>| async move {
        let registry = Registry::new(0);
        let body = async |_| std::future::pending().await;
        let _endpoint = http::serve(&env, address, &registry, body).map_err(io::Error::other)?;
        let answer = ask(&env, address, b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        assert_eq!(status(&answer), "503");
        Ok::<(), io::Error>(())
    });
    world.run_until(|| !world.is_up(node), Duration::from_secs(60)).unwrap();
    assert!(world.exits(node).iter().all(Result::is_ok), "{:?}", world.exits(node));
}

/// In virtual time: a client that sends a byte a second, and one that reads nothing.
#[test]
fn slow_clients_are_cut_off() {
    let world = World::new(3, WorldOptions::default());
    let node = world.node("10.0.0.1".parse().unwrap());
    let address: SocketAddr = "10.0.0.1:7070".parse().unwrap();
    world.start(node, 1, move |env: Env, _: Mesh<()>| async move {
        let registry = Registry::new(0);
        let body = async |_| "x".repeat(64 << 20);
        let endpoint = http::serve(&env, address, &registry, body).map_err(io::Error::other)?;
        env.terminated().await;
        drop(endpoint);
        Ok::<(), io::Error>(())
    });
    let client = world.client("10.0.0.9".parse().unwrap());
    let (env, done) = (client.clone(), Rc::new(Cell::new(false)));
    let seen = done.clone();
    let slow = async move {
        let stream = loop {
            match TcpStream::connect(&env, address).await {
                Ok(stream) => break stream,
                Err(_) => env.sleep(Duration::from_millis(10)).await,
            }
        };
        for byte in b"GET /metrics HTTP" {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            env.sleep(Duration::from_secs(1)).await;
        }
        let answer = read_all(&stream).await.unwrap_or_default();
        assert!(answer.is_empty() || status(&answer) == "408", "{answer}");
        let deaf = TcpStream::connect(&env, address).await.unwrap();
        deaf.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.unwrap();
        env.sleep(http::ANSWER_DEADLINE + Duration::from_secs(5)).await;
        let got = read_all(&deaf).await.unwrap_or_default();
        assert!(got.len() < 64 << 20);
        seen.set(true);
    };
    world.block_on(&client, Duration::from_secs(120), slow).unwrap();
    assert!(done.get());
}
