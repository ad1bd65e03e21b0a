//! A client that keeps requests under way.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use env::{Class, Env, Instant, TcpStream};
use hdrhistogram::Histogram;
use protocol::client::{self, Answer, Body, BoundValue, Call, Parameters, Response};
use protocol::{Decoder, Direction, Limits, Outcome, Started, Version};
use types::{Token, shard_of};

use crate::frames::{self, READ};
use crate::options::{Drive, Operation};

/// Fields of a row, and bytes of each.
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
/// How long requests are sent before they count.
const WARM: Duration = Duration::from_secs(2);
/// An id of a statement that nobody prepared: for a server that does not look.
const NO_ID: [u8; 16] = [7; 16];
/// Latencies are kept to so many digits, up to so many nanoseconds.
const DIGITS: u8 = 3;
const LATENCY_MAX: u64 = 60_000_000_000;

/// What was seen since all is warm.
struct Seen {
    is_warm: Cell<bool>,
    is_over: Cell<bool>,
    latency: RefCell<Histogram<u64>>,
    errors: Cell<u64>,
    answer_bytes: Cell<usize>,
}

/// Drives, and prints what was seen as a line of names and numbers.
pub async fn run(env: &Env, drive: &Drive) -> io::Result<()> {
    let id = match drive.is_bare {
        true => NO_ID.to_vec(),
        false => prepare(env, drive).await?,
    };
    let frames: Rc<Vec<Vec<u8>>> = Rc::new((0..drive.rows).map(|n| frame(drive, &id, n)).collect());
    let latency = Histogram::new_with_max(LATENCY_MAX, DIGITS).map_err(io::Error::other)?;
    let seen = Rc::new(Seen {
        is_warm: Cell::default(),
        is_over: Cell::default(),
        latency: RefCell::new(latency),
        errors: Cell::default(),
        answer_bytes: Cell::default(),
    });
    let mut tasks = Vec::new();
    for number in 0..drive.connections {
        let mut plain = Plain::open(env, drive).await?;
        let mut rows: Vec<usize> = (0..drive.rows).collect();
        if drive.is_shard_aware {
            let (shard, shards) = plain.shard().await?;
            rows.retain(|row| shard_of(token(drive, *row), shards) == shard);
        }
        let first = number * rows.len() / drive.connections;
        rows.rotate_left(first);
        let (env_, frames, seen) = (env.clone(), Rc::clone(&frames), Rc::clone(&seen));
        let (stream, depth) = (plain.stream, drive.depth);
        tasks.push(env.spawn_task(Class::Statement, async move {
            let requests = rows.iter().cycle().filter_map(|row| frames.get(*row));
            keep_under_way(&env_, &stream, requests, depth, &seen).await
        }));
    }
    env.sleep(WARM).await;
    seen.is_warm.set(true);
    println!("warm");
    let began = env.now();
    env.sleep(drive.lasts).await;
    seen.is_over.set(true);
    let seconds = env.now().since(began).as_secs_f64();
    for task in tasks {
        task.await?;
    }
    say(&seen, seconds);
    Ok(())
}

fn say(seen: &Seen, seconds: f64) {
    let latency = seen.latency.borrow();
    let micros = |quantile| latency.value_at_quantile(quantile) as f64 / 1000.0;
    println!(
        "operations={} seconds={seconds} errors={} answer_bytes={} p50_us={} p99_us={} p999_us={}",
        latency.len(),
        seen.errors.get(),
        seen.answer_bytes.get(),
        micros(0.5),
        micros(0.99),
        micros(0.999),
    );
}

/// Sends the next request for each answer, together with those for others that came at the same
/// time.
async fn keep_under_way<'a>(
    env: &Env,
    stream: &TcpStream,
    mut requests: impl Iterator<Item = &'a Vec<u8>>,
    depth: usize,
    seen: &Seen,
) -> io::Result<()> {
    let mut sent = vec![Instant::ZERO; depth];
    let (mut input, mut out, mut free) = (Vec::new(), Vec::new(), (0..depth).collect::<Vec<_>>());
    let mut buffer = vec![0; READ];
    while !seen.is_over.get() {
        let now = env.now();
        for slot in free.drain(..) {
            let at = out.len();
            out.extend_from_slice(requests.next().map_or(&[][..], Vec::as_slice));
            frames::set_stream(out.get_mut(at..).unwrap_or_default(), slot);
            if let Some(sent) = sent.get_mut(slot) {
                *sent = now;
            }
        }
        stream.write_all(&out).await?;
        out.clear();
        stream.readable().await;
        let Some(read) = stream.try_read(&mut buffer)? else { continue };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        input.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let (now, mut used) = (env.now(), 0);
        while let Some(answer) = frames::first(input.get(used..).unwrap_or_default()) {
            let slot = frames::stream(answer);
            free.push(slot);
            used += answer.len();
            if !seen.is_warm.get() {
                continue;
            }
            let took = sent.get(slot).map_or(0, |sent| now.since(*sent).as_nanos() as u64);
            seen.latency.borrow_mut().saturating_record(took);
            seen.errors.set(seen.errors.get() + u64::from(frames::is_error(answer)));
            seen.answer_bytes.set(answer.len());
        }
        input.drain(..used);
    }
    Ok(())
}

fn key(number: usize) -> Vec<u8> {
    format!("user{number:019}").into_bytes()
}

/// The key of a request's row: neighbours are far from each other.
fn key_of(drive: &Drive, number: usize) -> Vec<u8> {
    key(number * 7919 % drive.rows)
}

fn token(drive: &Drive, number: usize) -> Token {
    Token::of(&key_of(drive, number))
}

fn field(number: usize) -> BoundValue {
    BoundValue::Bytes(vec![b'a' + (number % 26) as u8; FIELD_BYTES])
}

/// A request for a row.
fn frame(drive: &Drive, id: &[u8], number: usize) -> Vec<u8> {
    let key = BoundValue::Bytes(key_of(drive, number));
    let values = match drive.operation {
        Operation::Update => vec![field(number), key],
        Operation::Read => vec![key],
    };
    let mut frame = Vec::new();
    let parameters = Parameters { values, skip_metadata: true, ..Parameters::default() };
    client::execute(&mut frame, Call::new(Version::V4, 0), id, &[], &parameters);
    frame
}

/// Fills the table, and prepares the statement.
async fn prepare(env: &Env, drive: &Drive) -> io::Result<Vec<u8>> {
    let mut plain = Plain::open(env, drive).await?;
    let names: Vec<String> = (0..FIELDS).map(|n| format!("field{n}")).collect();
    let columns: String = names.iter().map(|name| format!(", {name} text")).collect();
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    plain
        .text(&format!("CREATE KEYSPACE IF NOT EXISTS point WITH replication = {replication}"))
        .await?;
    plain
        .text(&format!(
            "CREATE TABLE IF NOT EXISTS point.usertable (y_id text PRIMARY KEY{columns})"
        ))
        .await?;
    let marks = ", ?".repeat(FIELDS);
    let names = names.join(", ");
    let insert = plain
        .prepare(&format!("INSERT INTO point.usertable (y_id, {names}) VALUES (?{marks})"))
        .await?;
    for row in 0..drive.rows {
        let fields = (0..FIELDS).map(|n| field(row + n));
        let values = std::iter::once(BoundValue::Bytes(key(row))).chain(fields).collect();
        let parameters = Parameters { values, ..Parameters::default() };
        plain.ask(|out, call| client::execute(out, call, &insert, &[], &parameters)).await?;
    }
    let statement = match drive.operation {
        Operation::Update => "UPDATE point.usertable SET field3 = ? WHERE y_id = ?",
        Operation::Read => "SELECT * FROM point.usertable WHERE y_id = ?",
    };
    plain.prepare(statement).await
}

/// A connection with one request at a time.
struct Plain {
    stream: TcpStream,
    decoder: Decoder,
}

impl Plain {
    /// Opens it; a server that echoes takes requests at once.
    async fn open(env: &Env, drive: &Drive) -> io::Result<Self> {
        let stream = TcpStream::connect(env, drive.address).await?;
        let mut decoder = Decoder::reading(Direction::Response, Limits::default());
        decoder.start(Started { version: Version::V4, compression: None });
        let mut plain = Self { stream, decoder };
        if !drive.is_bare {
            plain.ask(|out, call| client::startup(out, call, &[("CQL_VERSION", "3.4.7")])).await?;
        }
        Ok(plain)
    }

    async fn ask(&mut self, write: impl FnOnce(&mut Vec<u8>, Call)) -> io::Result<Body> {
        let mut out = Vec::new();
        write(&mut out, Call::new(Version::V4, 0));
        self.stream.write_all(&out).await?;
        let (mut input, mut buffer) = (Vec::new(), vec![0; READ]);
        loop {
            if frames::first(&input).is_some() {
                break;
            }
            let read = self.stream.read(&mut buffer).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            input.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
        let Outcome::Frame(frame) = self.decoder.next(&input).outcome else {
            return Err(io::Error::other("an answer that is no frame"));
        };
        match Response::parse(frame).map_err(|e| io::Error::other(format!("{e:?}")))?.body {
            Body::Error(error) => Err(io::Error::other(format!("{error:?}"))),
            body => Ok(body),
        }
    }

    /// The shard that serves it, and how many there are.
    async fn shard(&mut self) -> io::Result<(u32, u32)> {
        let Body::Supported(options) = self.ask(client::options).await? else {
            return Err(io::Error::other("OPTIONS was not answered"));
        };
        let number = |name: &str| {
            let values = options.iter().find(|(known, _)| known == name).map(|(_, values)| values);
            let number = values.and_then(|values| values.first()?.parse().ok());
            number.ok_or_else(|| io::Error::other(format!("no {name}")))
        };
        Ok((number("SCYLLA_SHARD")?, number("SCYLLA_NR_SHARDS")?))
    }

    async fn text(&mut self, text: &str) -> io::Result<()> {
        let parameters = Parameters::default();
        self.ask(|out, call| client::query(out, call, text, &parameters)).await.map(drop)
    }

    async fn prepare(&mut self, text: &str) -> io::Result<Vec<u8>> {
        match self.ask(|out, call| client::prepare(out, call, text, None)).await? {
            Body::Result(Answer::Prepared(prepared)) => Ok(prepared.id.to_vec()),
            body => Err(io::Error::other(format!("{text} was answered with {body:?}"))),
        }
    }
}
