//! The operator's socket: `admin.sock` in the data directory, for the node's own user alone.

use std::io;
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use env::{Class, Env, Task, TcpListener, TcpStream};
use metrics::{Name, Registry, Unit};

use crate::ask::{Watcher, ask_watched};
use crate::connections::{self, BindError};
use crate::model::{Outcome, Refusal, Shown};
use crate::nodetool::{NodeVerb, Verb, VerbError};
use crate::operator::Operator;
use crate::wire::{self, MAGIC, MAX_MAGIC, MAX_REQUEST, WireError};

/// The socket's name in the data directory.
pub const NAME: &str = "admin.sock";
/// Verbs that run at a time.
pub const MAX_CONNECTIONS: u64 = 32;
/// How long a client may take to send its request.
pub const REQUEST_DEADLINE: Duration = Duration::from_secs(5);
/// How long a client may take to read one piece of an answer.
pub const WRITE_DEADLINE: Duration = Duration::from_secs(30);
/// Bytes of a piece.
const PIECE: usize = 64 << 10;

/// The listening socket; dropping it removes it. Verbs that run go on.
#[derive(Debug)]
#[must_use = "dropping it closes the socket"]
pub struct Socket {
    /// Where it is.
    pub path: PathBuf,
    _task: Task<()>,
}

/// Listens on [`NAME`] in `data_dir`, whose lock the caller holds, and runs verbs on `operator`. A
/// verb runs to its end even if its client goes away, as in Cassandra.
pub fn serve<O: Operator>(
    env: &Env,
    data_dir: &Path,
    registry: &Registry,
    operator: Rc<O>,
) -> Result<Socket, BindError> {
    let path = data_dir.join(NAME);
    let listener = TcpListener::bind_unix(env, &path).map_err(BindError::new(path.display()))?;
    let refused = registry.counter(
        Name::new("Admin", "OperatorConnectionsRefused"),
        Unit::Count,
        "Connections to the operator's socket beyond its limit.",
    );
    let handle = move |env: Env, stream: TcpStream| {
        let operator = operator.clone();
        async move { serve_one(&env, &stream, operator.as_ref()).await }
    };
    let refuse = |stream: &TcpStream| {
        let outcome =
            not_taken(format!("the node runs {MAX_CONNECTIONS} commands already; try again later"));
        let line = wire::encode_outcome(&outcome);
        let _ = stream.try_write(format!("{MAGIC}\n{line}").as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
    };
    let serving =
        connections::accept(env.clone(), listener, MAX_CONNECTIONS, refused, handle, refuse);
    Ok(Socket { path, _task: env.spawn_task(Class::Admin, serving) })
}

/// Why a request could not be read.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client speaks '{0}', this node '{MAGIC}'; use the nodetool of the node's release")]
    Version(String),
    #[error("cannot read the request: {0}")]
    Wire(#[from] WireError),
    #[error("the request took more than {} s", REQUEST_DEADLINE.as_secs())]
    Late,
}

async fn serve_one<O: Operator>(env: &Env, stream: &TcpStream, operator: &O) {
    let request = match env.timeout(REQUEST_DEADLINE, read_request(stream)).await {
        Ok(request) => request,
        Err(_) => Err(RequestError::Late),
    };
    let mut answer = Answer { env, stream, has_begun: false };
    let mut is_last = false;
    let outcome = match request {
        // There is nobody to tell.
        Err(RequestError::Io(_)) => return,
        Err(e) => not_taken(e.to_string()),
        Ok(args) => match Verb::parse(&args) {
            Err(e) => refuse(&e),
            Ok(verb) => {
                let stops = matches!(verb, Verb::Node(NodeVerb::StopDaemon));
                let outcome = ask_watched(env, operator, verb, &mut answer).await;
                is_last = stops && outcome.refusal.is_none();
                outcome
            }
        },
    };
    if answer.send(outcome).await.is_ok() {
        let _ = stream.shutdown(Shutdown::Write);
    }
    if is_last {
        // Not sooner: the process could end before the answer is sent.
        operator.terminate();
    }
}

fn not_taken(why: String) -> Outcome {
    Outcome::refused(Refusal::NotTaken(why))
}

/// Of what a client of this build would not have sent.
fn refuse(e: &VerbError) -> Outcome {
    match e.exit_code() {
        1 => Outcome::refused(Refusal::BadUse(e.to_string())),
        _ => not_taken(e.to_string()),
    }
}

async fn read_request(stream: &TcpStream) -> Result<Vec<String>, RequestError> {
    let mut lines = Lines { stream, buf: Vec::new() };
    let magic = lines.next(MAX_MAGIC).await?;
    if magic != MAGIC.as_bytes() {
        let said = String::from_utf8_lossy(&magic).escape_default().to_string();
        return Err(RequestError::Version(said));
    }
    Ok(wire::decode_request(&lines.next(MAX_REQUEST).await?)?)
}

/// What a client gets.
struct Answer<'a> {
    env: &'a Env,
    stream: &'a TcpStream,
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
        match self.env.timeout(WRITE_DEADLINE, self.stream.write_all(piece)).await {
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
    stream: &'a TcpStream,
    /// Read and not yet given out.
    buf: Vec<u8>,
}

impl Lines<'_> {
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
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk).await? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                n => self.buf.extend_from_slice(chunk.get(..n).unwrap_or_default()),
            }
        }
    }
}
