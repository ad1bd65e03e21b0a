//! `GET /metrics` and `GET /metrics/k8ssandra`: the Prometheus text over HTTP/1.1 (RFC 9112), one
//! request a connection.

mod target;

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use env::{Class, Env, ListenOptions, Task, TcpListener, TcpStream};
use metrics::{Name, Registry, Unit};

use crate::connections::{self, BindError};
pub use target::Page;

/// Where a node serves its metrics unless the operator says otherwise.
pub const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7070);
/// Connections served at a time.
pub const MAX_CONNECTIONS: u64 = 64;
/// Bytes of a request's line and headers.
pub const MAX_HEAD: usize = 8 << 10;
/// Headers of a request.
pub const MAX_HEADERS: usize = 64;
/// How long a client may take to send its request.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(5);
/// How long the node may take to gather its metrics.
pub const BODY_DEADLINE: Duration = Duration::from_secs(10);
/// How long a client may take to read the answer.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
/// How long, and for how many bytes, to listen on after the answer, so that what a client had
/// still on its way does not make the kernel throw the answer away.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 64 << 10);

/// A listening metrics endpoint; dropping it ends it.
#[derive(Debug)]
#[must_use = "dropping it ends the endpoint"]
pub struct Endpoint {
    /// The address it listens on.
    pub address: SocketAddr,
    _task: Task<()>,
}

/// Serves the text that `body` gives of a page on `address`, without any access control: an
/// address beyond loopback is the operator's word.
pub fn serve<B>(
    env: &Env,
    address: SocketAddr,
    registry: &Registry,
    body: B,
) -> Result<Endpoint, BindError>
where
    B: AsyncFn(Page) -> String + 'static,
{
    let listener = TcpListener::bind(env, address, ListenOptions::default())
        .map_err(BindError::new(address))?;
    let local = listener.local_addr().unwrap_or(address);
    let refused = registry.counter(
        Name::new("Admin", "MetricsConnectionsRefused"),
        Unit::Count,
        "Connections to the metrics endpoint beyond its limit.",
    );
    let body = Rc::new(body);
    let handle = move |env: Env, stream: TcpStream| {
        let body = body.clone();
        async move { serve_one(&env, &stream, body.as_ref()).await }
    };
    let refuse = |stream: &TcpStream| {
        let _ = stream.try_write(refusal(Status::Unavailable).as_bytes());
    };
    let serving =
        connections::accept(env.clone(), listener, MAX_CONNECTIONS, refused, handle, refuse);
    Ok(Endpoint { address: local, _task: env.spawn_task(Class::Admin, serving) })
}

async fn serve_one<B: AsyncFn(Page) -> String>(env: &Env, stream: &TcpStream, body: &B) {
    let asked = match env.timeout(REQUEST_DEADLINE, read_request(stream)).await {
        Ok(Ok(Some(asked))) => asked,
        Ok(Ok(None) | Err(_)) => return,
        Err(_) => Err(Status::Timeout),
    };
    let text = match asked {
        Err(status) => refusal(status),
        Ok((method, page)) => match env.timeout(BODY_DEADLINE, body(page)).await {
            Ok(body) => {
                let head = head(Status::Ok, METRICS_TYPE, body.len());
                if method == Method::Get { head + &body } else { head }
            }
            Err(_) => refusal(Status::Unavailable),
        },
    };
    let sent = env.timeout(ANSWER_DEADLINE, stream.write_all(text.as_bytes())).await;
    if matches!(sent, Ok(Ok(()))) && stream.shutdown(Shutdown::Write).is_ok() {
        let _ = env.timeout(LINGER.0, drain(stream)).await;
    }
}

/// Reads a request; `None` if the client closed before it said anything.
async fn read_request(stream: &TcpStream) -> io::Result<Option<Result<Asked, Status>>> {
    let mut buf = [0; MAX_HEAD];
    let mut len = 0;
    loop {
        let Some(room @ [_, ..]) = buf.get_mut(len..) else {
            return Ok(Some(Err(Status::HeadTooLarge)));
        };
        let n = stream.read(room).await?;
        if n == 0 {
            return Ok((len > 0).then_some(Err(Status::Bad)));
        }
        let ended = room.get(..n).is_some_and(|new| new.contains(&b'\n'));
        len += n;
        // A head ends in a line end: no need to look before one came.
        if ended && let Some(asked) = parse(buf.get(..len).unwrap_or_default()) {
            return Ok(Some(asked));
        }
    }
}

async fn drain(stream: &TcpStream) {
    let mut buf = [0; 4096];
    let mut left = LINGER.1;
    while let Ok(n) = stream.read(&mut buf).await {
        left = left.saturating_sub(n);
        if n == 0 || left == 0 {
            return;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Get,
    Head,
}

/// What a client wants, and of what.
type Asked = (Method, Page);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ok,
    Bad,
    NotFound,
    WrongMethod,
    Timeout,
    HeadTooLarge,
    Unavailable,
    WrongVersion,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::Bad => "400 Bad Request",
            Self::NotFound => "404 Not Found",
            Self::WrongMethod => "405 Method Not Allowed",
            Self::Timeout => "408 Request Timeout",
            Self::HeadTooLarge => "431 Request Header Fields Too Large",
            Self::Unavailable => "503 Service Unavailable",
            Self::WrongVersion => "505 HTTP Version Not Supported",
        }
    }
}

/// Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

fn head(status: Status, content_type: &str, length: usize) -> String {
    let allow = if status == Status::WrongMethod { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {}\r\n{allow}Content-Type: {content_type}\r\nContent-Length: {length}\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        status.line(),
    )
}

fn refusal(status: Status) -> String {
    let body = match status {
        Status::NotFound => "The metrics are at /metrics and /metrics/k8ssandra.\n".to_owned(),
        _ => format!("{}\n", status.line()),
    };
    head(status, "text/plain; charset=utf-8", body.len()) + &body
}

/// What is asked for; `None` while the head is not complete.
fn parse(bytes: &[u8]) -> Option<Result<Asked, Status>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Some(Err(Status::HeadTooLarge)),
        Err(httparse::Error::Version) => return Some(Err(Status::WrongVersion)),
        Err(_) => return Some(Err(Status::Bad)),
    }
    Some(route(&request))
}

fn route(request: &httparse::Request<'_, '_>) -> Result<Asked, Status> {
    let hosts = request.headers.iter().filter(|h| h.name.eq_ignore_ascii_case("host")).count();
    // RFC 9112, 3.2: exactly one, since HTTP/1.1.
    if hosts > 1 || (request.version == Some(1) && hosts == 0) {
        return Err(Status::Bad);
    }
    let page = Page::of(request.path.unwrap_or_default()).ok_or(Status::NotFound)?;
    match request.method {
        Some("GET") => Ok((Method::Get, page)),
        Some("HEAD") => Ok((Method::Head, page)),
        _ => Err(Status::WrongMethod),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Option<Result<Asked, Status>> {
        parse(text.as_bytes())
    }

    #[test]
    fn takes_get_and_head_of_the_metrics() {
        assert_eq!(
            asked("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
            Some(Ok((Method::Get, Page::Metrics)))
        );
        assert_eq!(
            asked("HEAD /metrics HTTP/1.0\r\n\r\n"),
            Some(Ok((Method::Head, Page::Metrics)))
        );
        assert_eq!(
            asked("GET /metrics?collect[]=x HTTP/1.1\nhOST: a\n\n"),
            Some(Ok((Method::Get, Page::Metrics))),
            "a query and bare line ends"
        );
        assert_eq!(
            asked("GET http://a:7070/metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
            Some(Ok((Method::Get, Page::Metrics)))
        );
        let all = Page::K8ssandra { prefixes: Vec::new() };
        assert_eq!(asked("GET /metrics/k8ssandra HTTP/1.0\r\n\r\n"), Some(Ok((Method::Get, all))));
    }

    #[test]
    fn refuses_the_rest_by_name() {
        let not_found = Some(Err(Status::NotFound));
        assert_eq!(asked("GET / HTTP/1.0\r\n\r\n"), not_found);
        assert_eq!(asked("GET /metrics/ HTTP/1.0\r\n\r\n"), not_found);
        assert_eq!(asked("GET /metrics/k8ssandra/x HTTP/1.0\r\n\r\n"), not_found);
        assert_eq!(asked("GET /metrics/../etc HTTP/1.0\r\n\r\n"), not_found);
        assert_eq!(asked("GET http://metrics HTTP/1.0\r\n\r\n"), not_found);
        assert_eq!(asked("POST /metrics HTTP/1.0\r\n\r\n"), Some(Err(Status::WrongMethod)));
        assert_eq!(asked("GET /metrics HTTP/2.0\r\n\r\n"), Some(Err(Status::WrongVersion)));
        let bad = Some(Err(Status::Bad));
        assert_eq!(asked("GET /metrics HTTP/1.1\r\n\r\n"), bad, "no host");
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), bad);
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHo st: a\r\n\r\n"), bad);
        assert_eq!(asked("\x16\x03\x01\x02\n"), bad, "a TLS hello");
        let many = format!("GET /metrics HTTP/1.0\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(asked(&many), Some(Err(Status::HeadTooLarge)));
        assert_eq!(asked("GET /metrics HTTP/1.1\r\nHost: a\r\n"), None);
    }

    #[test]
    fn a_refusal_of_a_method_names_those_allowed() {
        assert!(refusal(Status::WrongMethod).contains("\r\nAllow: GET, HEAD\r\n"));
        assert!(!refusal(Status::Bad).contains("Allow"));
    }
}
