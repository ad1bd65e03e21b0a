//! A client of the native protocol over a blocking socket, as plain as can be.

use std::io::{Read, Write};
use std::net::TcpStream;

use protocol::client::{
    self, Answer, BatchItem, BatchRequest, Body, BoundValue, Call, OwnedRows, Parameters, Response,
};
use protocol::{
    BatchKind, Consistency, Decoder, Direction, ErrorDetail, Limits, Outcome, Started, Version,
};

use crate::node::PATIENCE;

/// One connection, in version 4: messages without segments.
pub struct Client {
    stream: TcpStream,
    decoder: Decoder,
    input: Vec<u8>,
}

impl Client {
    /// Connects and shakes hands.
    pub fn connect(ip: &str) -> Self {
        let (client, first) = Self::begin(ip);
        assert_eq!(first, Body::Ready);
        client
    }

    /// Connects as a role.
    pub fn connect_as(ip: &str, user: &str, password: &str) -> Self {
        Self::try_connect_as(ip, user, password).expect("a login")
    }

    /// Connects as a role, if it may.
    pub fn try_connect_as(ip: &str, user: &str, password: &str) -> Option<Self> {
        let (mut client, first) = Self::begin(ip);
        assert!(matches!(first, Body::Authenticate(_)), "{first:?}");
        let token = format!("\0{user}\0{password}");
        let answer = client.call(|out, call| client::auth_response(out, call, token.as_bytes()));
        matches!(answer.body, Body::AuthSuccess(_)).then_some(client)
    }

    fn begin(ip: &str) -> (Self, Body) {
        let stream = TcpStream::connect((ip, 9042)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut decoder = Decoder::reading(Direction::Response, Limits::default());
        decoder.start(Started { version: Version::V4, compression: None });
        let mut client = Self { stream, decoder, input: Vec::new() };
        let ready =
            client.call(|out, call| client::startup(out, call, &[("CQL_VERSION", "3.0.0")]));
        (client, ready.body)
    }

    fn call(&mut self, message: impl FnOnce(&mut Vec<u8>, Call)) -> Response {
        let mut out = Vec::new();
        message(&mut out, Call::new(Version::V4, 1));
        self.stream.write_all(&out).unwrap();
        loop {
            let step = self.decoder.next(&self.input);
            let used = step.consumed;
            let response = match step.outcome {
                Outcome::Frame(frame) => Some(Response::parse(frame).unwrap()),
                Outcome::Wait(_) => None,
                Outcome::Refused(refusal) => panic!("{refusal:?}"),
            };
            self.input.drain(..used);
            if let Some(response) = response {
                return response;
            }
            let mut chunk = vec![0; 16 << 10];
            let read = self.stream.read(&mut chunk).expect("an answer in time");
            assert_ne!(read, 0, "the node closed the connection");
            self.input.extend_from_slice(&chunk[..read]);
        }
    }

    /// Runs a statement; its rows, if it has any.
    pub fn query(&mut self, text: &str) -> Vec<Vec<Option<Vec<u8>>>> {
        match self.answer(text, Consistency::One) {
            Body::Result(Answer::Rows(rows)) => rows.rows,
            Body::Result(_) => Vec::new(),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Prepares a statement; its id.
    pub fn prepare(&mut self, text: &str) -> Vec<u8> {
        self.try_prepare(text).expect("a statement")
    }

    /// Prepares a statement; its id, if it makes sense.
    pub fn try_prepare(&mut self, text: &str) -> Option<Vec<u8>> {
        match self.call(|out, call| client::prepare(out, call, text, None)).body {
            Body::Result(Answer::Prepared(prepared)) => Some(prepared.id),
            _ => None,
        }
    }

    /// Runs a batch, well or not.
    pub fn batch(&mut self, kind: BatchKind, items: Vec<(BatchItem, Vec<BoundValue>)>) {
        let parameters = Parameters::at(Consistency::One);
        let batch = BatchRequest { kind, items, parameters };
        self.call(|out, call| client::batch(out, call, &batch));
    }

    /// Runs a prepared statement; a page of its rows, or no rows.
    pub fn execute(
        &mut self,
        id: &[u8],
        parameters: &Parameters,
    ) -> Result<Option<OwnedRows>, ErrorDetail> {
        match self.call(|out, call| client::execute(out, call, id, &[], parameters)).body {
            Body::Result(Answer::Rows(rows)) => Ok(Some(rows)),
            Body::Result(_) => Ok(None),
            Body::Error(error) => Err(error.detail),
            other => panic!("{other:?}"),
        }
    }

    fn answer(&mut self, text: &str, consistency: Consistency) -> Body {
        let parameters = Parameters::at(consistency);
        self.call(|out, call| client::query(out, call, text, &parameters)).body
    }

    /// Runs a statement; its rows, if it has any, or the error.
    pub fn try_query(
        &mut self,
        text: &str,
        consistency: Consistency,
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, ErrorDetail> {
        match self.answer(text, consistency) {
            Body::Result(Answer::Rows(rows)) => Ok(rows.rows),
            Body::Result(_) => Ok(Vec::new()),
            Body::Error(error) => Err(error.detail),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Runs a statement that fails.
    pub fn error(&mut self, text: &str, consistency: Consistency) -> ErrorDetail {
        match self.answer(text, consistency) {
            Body::Error(error) => error.detail,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// A keyspace and a table `ks.t` with the rows `0..rows`.
    pub fn fill(&mut self, rows: i32) {
        self.query(
            "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', \
             'replication_factor': 1}",
        );
        self.query("CREATE TABLE IF NOT EXISTS ks.t (k int PRIMARY KEY, v int)");
        for k in 0..rows {
            self.query(&format!("INSERT INTO ks.t (k, v) VALUES ({k}, {})", k * 2));
        }
    }

    /// Looks for the rows that `fill` wrote.
    pub fn check(&mut self, rows: i32) {
        assert_eq!(self.query("SELECT k FROM ks.t").len(), rows as usize);
        for k in 0..rows {
            let found = self.query(&format!("SELECT v FROM ks.t WHERE k = {k}"));
            assert_eq!(found, [vec![Some((k * 2).to_be_bytes().to_vec())]], "row {k}");
        }
    }
}
