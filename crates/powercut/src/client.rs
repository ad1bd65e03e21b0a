//! A client of the native protocol over a blocking socket, for threads outside of any shard.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::time::Duration;

use protocol::client::{self, Answer, Body, Call, OwnedRows, Parameters, Response};
use protocol::{Consistency, Decoder, Direction, Limits, Outcome, Started, Version};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Rows of a page.
const PAGE_ROWS: i32 = 2000;
/// Statements that are under way at a time.
const PIPELINE: usize = 64;

/// Why there is no result.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The connection broke: whatever was asked for may have happened.
    Gone(String),
    /// The node answered with an error.
    Refused(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gone(what) => write!(f, "the connection broke: {what}"),
            Self::Refused(what) => write!(f, "the node answered: {what}"),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Gone(error.to_string())
    }
}

/// A row: its cells.
pub type Row = Vec<Option<Vec<u8>>>;

/// One connection, in version 4: messages without segments.
pub struct Client {
    stream: TcpStream,
    decoder: Decoder,
    input: Vec<u8>,
}

impl Client {
    /// Connects and shakes hands.
    pub fn connect(ip: IpAddr, port: u16) -> Result<Self, Failure> {
        let stream = TcpStream::connect((ip, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut decoder = Decoder::reading(Direction::Response, Limits::default());
        decoder.start(Started { version: Version::V4, compression: None });
        let mut client = Self { stream, decoder, input: Vec::new() };
        let mut out = Vec::new();
        client::startup(&mut out, Call::new(Version::V4, 0), &[("CQL_VERSION", "3.0.0")]);
        client.stream.write_all(&out)?;
        match client.response()?.body {
            Body::Ready => Ok(client),
            other => Err(Failure::Refused(format!("{other:?}"))),
        }
    }

    fn response(&mut self) -> Result<Response, Failure> {
        loop {
            let step = self.decoder.next(&self.input);
            let used = step.consumed;
            let response = match step.outcome {
                Outcome::Frame(frame) => {
                    Some(Response::parse(frame).map_err(|e| Failure::Gone(format!("{e:?}")))?)
                }
                Outcome::Wait(_) => None,
                Outcome::Refused(refusal) => return Err(Failure::Gone(format!("{refusal:?}"))),
            };
            self.input.drain(..used);
            if let Some(response) = response {
                return Ok(response);
            }
            let mut chunk = vec![0; 64 << 10];
            let read = self.stream.read(&mut chunk)?;
            if read == 0 {
                return Err(Failure::Gone("the node closed it".into()));
            }
            self.input.extend_from_slice(chunk.get(..read).unwrap_or_default());
        }
    }

    fn send(&mut self, stream: i16, text: &str, page: Option<Vec<u8>>) -> Result<(), Failure> {
        let mut out = Vec::new();
        let mut parameters = Parameters::at(Consistency::One);
        parameters.page_size = Some(PAGE_ROWS);
        parameters.paging_state = page;
        client::query(&mut out, Call::new(Version::V4, stream), text, &parameters);
        Ok(self.stream.write_all(&out)?)
    }

    fn rows(response: Response, text: &str) -> Result<Option<OwnedRows>, Failure> {
        match response.body {
            Body::Result(Answer::Rows(rows)) => Ok(Some(rows)),
            Body::Result(_) => Ok(None),
            other => Err(Failure::Refused(format!("{text}: {other:?}"))),
        }
    }

    /// Runs a statement; all its rows, if it has any.
    pub fn query(&mut self, text: &str) -> Result<Vec<Row>, Failure> {
        let mut all = Vec::new();
        let mut page = None;
        loop {
            self.send(1, text, page.take())?;
            let Some(rows) = Self::rows(self.response()?, text)? else { return Ok(all) };
            all.extend(rows.rows);
            page = rows.metadata.paging_state;
            if page.is_none() {
                return Ok(all);
            }
        }
    }

    /// Runs reads of one page each, many at a time; their rows in the order of the statements.
    pub fn queries(&mut self, texts: &[String]) -> Result<Vec<Vec<Row>>, Failure> {
        let mut all = Vec::with_capacity(texts.len());
        for part in texts.chunks(PIPELINE) {
            let mut answers = vec![Vec::new(); part.len()];
            for (stream, text) in part.iter().enumerate() {
                self.send(stream as i16, text, None)?;
            }
            for _ in part {
                let response = self.response()?;
                let at = usize::try_from(response.stream).unwrap_or(usize::MAX);
                let text = part.get(at).map_or("", String::as_str);
                let rows = Self::rows(response, text)?.map(|rows| rows.rows).unwrap_or_default();
                match answers.get_mut(at) {
                    Some(answer) => *answer = rows,
                    None => return Err(Failure::Gone(format!("an answer on stream {at}"))),
                }
            }
            all.extend(answers);
        }
        Ok(all)
    }
}
