//! A client, as plain as can be.

use std::net::SocketAddr;
use std::time::Duration;

use env::{Env, TcpStream};
use protocol::client::{self, Body, Call, Parameters, Response};
use protocol::{
    Compression, Decoder, Direction, EventType, Framer, Header, Limits, Outcome, Started, Version,
};

/// How long a client waits before its test fails.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Client {
    pub env: Env,
    pub stream: TcpStream,
    pub version: Version,
    decoder: Decoder,
    framer: Framer,
    input: Vec<u8>,
    out: Vec<u8>,
}

impl Client {
    pub async fn connect(env: &Env, address: SocketAddr) -> Self {
        Self::over(env, TcpStream::connect(env, address).await.unwrap())
    }

    pub fn over(env: &Env, stream: TcpStream) -> Self {
        Self {
            env: env.clone(),
            stream,
            version: Version::V5,
            decoder: Decoder::reading(Direction::Response, Limits::default()),
            framer: Framer::new(),
            input: Vec::new(),
            out: Vec::new(),
        }
    }

    pub fn call(&self, stream: i16) -> Call {
        Call::new(self.version, stream)
    }

    /// Writes a message to the client's buffer.
    pub fn put(&mut self, message: impl FnOnce(&mut Vec<u8>)) {
        self.framer.write(&mut self.out, message);
    }

    pub fn put_query(&mut self, stream: i16, text: &str) {
        let call = self.call(stream);
        self.put(|out| client::query(out, call, text, &Parameters::default()));
    }

    /// Sends what is in the buffer.
    pub async fn flush(&mut self) {
        self.framer.flush(&mut self.out);
        let out = std::mem::take(&mut self.out);
        self.stream.write_all(&out).await.unwrap();
    }

    pub async fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next message's header and body; none at the end of the stream.
    pub async fn next(&mut self) -> Option<(Header, Vec<u8>)> {
        loop {
            let step = self.decoder.next(&self.input);
            let used = step.consumed;
            let found = match step.outcome {
                Outcome::Frame(frame) => Some((frame.header, frame.body.to_vec())),
                Outcome::Wait(_) => None,
                Outcome::Refused(refusal) => panic!("{refusal:?}"),
            };
            self.input.drain(..used);
            if found.is_some() {
                return found;
            }
            let mut chunk = vec![0; 64 << 10];
            let read = self.env.timeout(PATIENCE, self.stream.read(&mut chunk)).await;
            match read.expect("an answer in time") {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.input.extend_from_slice(&chunk[..n]),
            }
        }
    }

    /// The next response.
    pub async fn receive(&mut self) -> Response {
        let (header, body) = self.next().await.expect("an answer before the end");
        Response::parse(protocol::Frame { header, body: &body }).unwrap()
    }

    pub async fn is_closed(&mut self) -> bool {
        self.next().await.is_none()
    }

    pub async fn startup(&mut self, version: Version, compression: Option<Compression>) {
        self.startup_with(version, compression, &[]).await;
    }

    pub async fn startup_with(
        &mut self,
        version: Version,
        compression: Option<Compression>,
        more: &[(&str, &str)],
    ) {
        self.version = version;
        let mut options = vec![("CQL_VERSION", "3.0.0")];
        options.extend(compression.map(|it| ("COMPRESSION", it.name())));
        options.extend_from_slice(more);
        let call = self.call(1);
        self.put(|out| client::startup(out, call, &options));
        self.flush().await;
        let started = Started { version, compression };
        // Before version 5 the answer itself may be compressed.
        if !version.is_segmented() {
            self.decoder.start(started);
        }
        assert_eq!(self.receive().await.body, Body::Ready);
        self.start(started);
    }

    pub fn start(&mut self, started: Started) {
        self.decoder.start(started);
        self.framer.start(started);
    }

    pub async fn ready(env: &Env, address: SocketAddr, version: Version) -> Self {
        let mut client = Self::connect(env, address).await;
        client.startup(version, None).await;
        client
    }

    pub async fn register(&mut self, events: &[EventType]) {
        let call = self.call(2);
        self.put(|out| client::register(out, call, events));
        self.flush().await;
        assert_eq!(self.receive().await.body, Body::Ready);
    }

    pub async fn query(&mut self, text: &str) -> Response {
        self.put_query(3, text);
        self.flush().await;
        self.receive().await
    }
}

/// The message of an error.
pub fn error(response: &Response) -> &str {
    match &response.body {
        Body::Error(error) => &error.message,
        other => panic!("no error: {other:?}"),
    }
}

/// The first cell of the first row.
pub fn cell(response: &Response) -> Vec<u8> {
    match &response.body {
        Body::Result(client::Answer::Rows(rows)) => rows.rows[0][0].clone().unwrap(),
        other => panic!("no rows: {other:?}"),
    }
}
