//! What a connection of nodetool says and is answered, over a unix socket or the network.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use env::{Env, TcpStream};
use tls::Wire;

use crate::ask::{Watcher, ask_watched};
use crate::model::{Outcome, Refusal, Shown};
use crate::nodetool::{NodeVerb, Verb, VerbError};
use crate::operator::Operator;
use crate::wire::{self, MAGIC, MAX_MAGIC, MAX_REQUEST, WireError};

/// How long a client may take to send its request.
const REQUEST_DEADLINE: Duration = Duration::from_secs(5);
/// How long a client may take to read one piece of an answer.
const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// Bytes of a piece.
const PIECE: usize = 64 << 10;
/// Bytes that are read at a time.
const CHUNK: usize = 4096;

/// Why a request could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client speaks '{0}', this node '{MAGIC}'; use the nodetool of the node's release")]
    Version(String),
    #[error("cannot read the request: {0}")]
    Wire(#[from] WireError),
    #[error("the request took more than {} s", REQUEST_DEADLINE.as_secs())]
    Late,
}

/// One connection.
pub(crate) struct Conversation<'a> {
    env: &'a Env,
    lines: Lines<'a>,
    answer: Answer<'a>,
    /// Is the client's first line read?
    has_begun: bool,
}

impl<'a> Conversation<'a> {
    pub fn new(env: &'a Env, wire: &'a Wire) -> Self {
        let lines = Lines { wire, buf: Vec::new() };
        Self { env, lines, answer: Answer { env, wire, has_begun: false }, has_begun: false }
    }

    /// The client's next line after the first, of at most `limit` bytes, in time.
    pub async fn line(&mut self, limit: usize) -> Result<Vec<u8>, RequestError> {
        let (env, has_begun) = (self.env, &mut self.has_begun);
        let lines = &mut self.lines;
        let read = async {
            if !std::mem::replace(has_begun, true) {
                lines.begin().await?;
            }
            lines.next(limit).await
        };
        env.timeout(REQUEST_DEADLINE, read).await.unwrap_or(Err(RequestError::Late))
    }

    /// Reads a request and carries it out. A verb runs to its end even if its client goes away, as
    /// in Cassandra.
    pub async fn run<O: Operator>(mut self, operator: &O) {
        let line = self.line(MAX_REQUEST).await;
        self.carry_out(line, operator).await;
    }

    /// Carries out the request in a line.
    pub async fn carry_out<O: Operator>(
        mut self,
        line: Result<Vec<u8>, RequestError>,
        operator: &O,
    ) {
        let request = line.and_then(|line| Ok(wire::decode_request(&line)?));
        let mut is_last = false;
        let outcome = match request {
            Err(e) => return self.fail(e).await,
            Ok(args) => match Verb::parse(&args) {
                Err(e) => refuse(&e),
                Ok(verb) => {
                    let stops = matches!(verb, Verb::Node(NodeVerb::StopDaemon));
                    let outcome = ask_watched(self.env, operator, verb, &mut self.answer).await;
                    is_last = stops && outcome.refusal.is_none();
                    outcome
                }
            },
        };
        self.end(outcome).await;
        if is_last {
            // Not sooner: the process could end before the answer is sent.
            operator.terminate();
        }
    }

    /// Answers with what went wrong, if there is anybody to tell.
    pub async fn fail(self, error: RequestError) {
        if !matches!(error, RequestError::Io(_)) {
            self.end(Outcome::refused(Refusal::NotTaken(error.to_string()))).await;
        }
    }

    /// Answers for the last time.
    pub async fn end(mut self, outcome: Outcome) {
        if self.answer.send(outcome).await.is_ok() {
            self.answer.wire.finish();
        }
    }
}

/// Answers a connection that is one too many, without a wait.
pub(crate) fn refuse_more(stream: &TcpStream, why: String) {
    let line = wire::encode_outcome(&Outcome::refused(Refusal::NotTaken(why)));
    let _ = stream.try_write(format!("{MAGIC}\n{line}").as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
}

/// What is said where so many commands run.
pub(crate) fn runs_many(limit: u64) -> String {
    format!("the node runs {limit} commands already; try again later")
}

/// Of what a client of this build would not have sent.
fn refuse(e: &VerbError) -> Outcome {
    match e.exit_code() {
        1 => Outcome::refused(Refusal::BadUse(e.to_string())),
        _ => Outcome::refused(Refusal::NotTaken(e.to_string())),
    }
}

/// What a client gets.
struct Answer<'a> {
    env: &'a Env,
    wire: &'a Wire,
    /// Is the first line sent?
    has_begun: bool,
}

impl Answer<'_> {
    async fn send(&mut self, outcome: Outcome) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.send_piece(format!("{MAGIC}\n").as_bytes()).await?;
        }
        // a value of many tables takes longer to write down than a shard's other tasks may wait
        let line = self.env.helper(move || wire::encode_outcome(&outcome)).await;
        for piece in line.as_bytes().chunks(PIECE) {
            self.send_piece(piece).await?;
        }
        Ok(())
    }

    async fn send_piece(&self, piece: &[u8]) -> io::Result<()> {
        match self.env.timeout(WRITE_DEADLINE, self.wire.write_all(piece)).await {
            Ok(written) => written,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

impl Watcher for Answer<'_> {
    /// A client that went away makes the send fail.
    async fn show(&mut self, part: Shown) -> bool {
        self.send(Outcome::part(part)).await.is_ok()
    }
}

/// Lines of a stream.
struct Lines<'a> {
    wire: &'a Wire,
    /// Read and not yet given out.
    buf: Vec<u8>,
}

impl Lines<'_> {
    /// Reads the first line.
    async fn begin(&mut self) -> Result<(), RequestError> {
        let magic = self.next(MAX_MAGIC).await?;
        match magic == MAGIC.as_bytes() {
            true => Ok(()),
            false => {
                let said = String::from_utf8_lossy(&magic).escape_default().to_string();
                Err(RequestError::Version(said))
            }
        }
    }

    /// The next line, of at most `limit` bytes, without its end.
    async fn next(&mut self, limit: usize) -> Result<Vec<u8>, RequestError> {
        let mut searched = 0;
        loop {
            let new = self.buf.get(searched..).unwrap_or_default();
            if let Some(at) = new.iter().position(|b| *b == b'\n') {
                let rest = self.buf.split_off(searched + at + 1);
                let mut line = std::mem::replace(&mut self.buf, rest);
                line.pop();
                return match line.len() > limit {
                    true => Err(WireError::TooMuch(limit, "bytes in a line").into()),
                    false => Ok(line),
                };
            }
            searched = self.buf.len();
            if searched > limit {
                return Err(WireError::TooMuch(limit, "bytes in a line").into());
            }
            let mut chunk = [0; CHUNK];
            match self.wire.read(&mut chunk).await? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                n => self.buf.extend_from_slice(chunk.get(..n).unwrap_or_default()),
            }
        }
    }
}
