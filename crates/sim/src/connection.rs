//! A client's connection over the simulated network: one request at a time.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use env::{Env, TcpStream};
use protocol::client::{
    self, Answer, BatchRequest, Body, Call, Parameters, PreparedAnswer, Response,
};
use protocol::{
    Consistency, Decoder, Direction, ErrorDetail, Frame, Framer, Limits, Outcome, Started, Version,
};

use crate::failed::Failed;

/// Bytes read at a time.
const CHUNK: usize = 16 << 10;

/// A connection that is started.
pub struct Connection {
    stream: TcpStream,
    decoder: Decoder,
    framer: Framer,
    input: Vec<u8>,
    stream_id: i16,
    /// The shard where it ends, as OPTIONS tells drivers.
    pub shard: Option<usize>,
    prepared: BTreeMap<String, PreparedAnswer>,
}

fn gone(error: impl std::fmt::Display) -> Failed {
    Failed::Unknown(format!("the connection broke: {error}"))
}

/// What an error of the node means for what was asked.
fn failed(error: &protocol::ErrorResponse) -> Failed {
    let text = format!("{:?}: {}", error.detail, error.message);
    match error.detail {
        ErrorDetail::Overloaded | ErrorDetail::IsBootstrapping => Failed::Refused(text),
        ErrorDetail::WriteTimeout { .. }
        | ErrorDetail::ReadTimeout { .. }
        | ErrorDetail::WriteFailure { .. }
        | ErrorDetail::CasWriteUnknown { .. }
        // a serial read writes that it was there
        | ErrorDetail::ReadFailure {
            consistency: Consistency::Serial | Consistency::LocalSerial, ..
        }
        | ErrorDetail::TruncateError => Failed::Unknown(text),
        _ => Failed::Wrong(text),
    }
}

impl Connection {
    /// Connects and starts.
    ///
    /// # Errors
    /// If nobody answers, or otherwise than with READY.
    pub async fn open(env: &Env, address: SocketAddr) -> Result<Self, Failed> {
        let refused = |error: std::io::Error| Failed::Refused(error.to_string());
        let stream = TcpStream::connect(env, address).await.map_err(refused)?;
        let mut connection = Self {
            stream,
            decoder: Decoder::reading(Direction::Response, Limits::default()),
            framer: Framer::new(),
            input: Vec::new(),
            stream_id: 0,
            shard: None,
            prepared: BTreeMap::new(),
        };
        let unknown = |error| match error {
            // nothing was asked for yet
            Failed::Unknown(text) => Failed::Refused(text),
            error => error,
        };
        match connection.call(client::options).await.map_err(unknown)? {
            Body::Supported(options) => {
                let shard = options.iter().find(|(name, _)| name == "SCYLLA_SHARD");
                let shard = shard.and_then(|(_, values)| values.first()?.parse().ok());
                connection.shard = shard;
            }
            other => return Err(Failed::Wrong(format!("OPTIONS: {other:?}"))),
        }
        let options = [("CQL_VERSION", "3.0.0")];
        let started = connection.call(|out, call| client::startup(out, call, &options)).await;
        match started.map_err(unknown)? {
            Body::Ready => {}
            other => return Err(Failed::Wrong(format!("STARTUP: {other:?}"))),
        }
        let started = Started { version: Version::V5, compression: None };
        connection.decoder.start(started);
        connection.framer.start(started);
        Ok(connection)
    }

    async fn call(&mut self, message: impl FnOnce(&mut Vec<u8>, Call)) -> Result<Body, Failed> {
        self.stream_id = (self.stream_id + 1) & 0x7f;
        let call = Call::new(Version::V5, self.stream_id);
        let mut out = Vec::new();
        self.framer.write(&mut out, |out| message(out, call));
        self.framer.flush(&mut out);
        self.stream.write_all(&out).await.map_err(gone)?;
        let response = self.receive().await?;
        if response.stream != self.stream_id {
            return Err(Failed::Wrong(format!("an answer on stream {}", response.stream)));
        }
        match response.body {
            Body::Error(error) => Err(failed(&error)),
            body => Ok(body),
        }
    }

    async fn receive(&mut self) -> Result<Response, Failed> {
        loop {
            let step = self.decoder.next(&self.input);
            let used = step.consumed;
            let found = match step.outcome {
                Outcome::Frame(frame) => Some((frame.header, frame.body.to_vec())),
                Outcome::Wait(_) => None,
                Outcome::Refused(refusal) => {
                    return Err(Failed::Wrong(format!("not the protocol: {refusal:?}")));
                }
            };
            self.input.drain(..used);
            if let Some((header, body)) = found {
                let response = Response::parse(Frame { header, body: &body });
                return response.map_err(|error| Failed::Wrong(error.to_string()));
            }
            let mut chunk = vec![0; CHUNK];
            match self.stream.read(&mut chunk).await {
                Ok(0) => return Err(gone("it was closed")),
                Ok(n) => self.input.extend_from_slice(chunk.get(..n).unwrap_or_default()),
                Err(error) => return Err(gone(error)),
            }
        }
    }

    /// Runs a statement, prepared or not.
    ///
    /// # Errors
    /// What the node says, or that it is gone.
    pub async fn run(
        &mut self,
        text: &str,
        parameters: &Parameters,
        prepared: bool,
    ) -> Result<Answer, Failed> {
        if !prepared {
            return result(
                self.call(|out, call| client::query(out, call, text, parameters)).await?,
            );
        }
        if !self.prepared.contains_key(text) {
            match result(self.call(|out, call| client::prepare(out, call, text, None)).await?)? {
                Answer::Prepared(answer) => self.prepared.insert(text.to_string(), answer),
                other => return Err(Failed::Wrong(format!("PREPARE: {other:?}"))),
            };
        }
        let Some(answer) = self.prepared.get(text) else {
            return Err(Failed::Wrong("no prepared statement".into()));
        };
        let (id, result_id) = (answer.id.clone(), answer.result_metadata_id.clone());
        let result_id = result_id.unwrap_or_default();
        let execute = |out: &mut Vec<u8>, call: Call| {
            client::execute(out, call, &id, &result_id, parameters);
        };
        result(self.call(execute).await?)
    }

    /// Runs a batch.
    ///
    /// # Errors
    /// What the node says, or that it is gone.
    pub async fn batch(&mut self, batch: &BatchRequest) -> Result<Answer, Failed> {
        result(self.call(|out, call| client::batch(out, call, batch)).await?)
    }
}

fn result(body: Body) -> Result<Answer, Failed> {
    match body {
        Body::Result(answer) => Ok(answer),
        other => Err(Failed::Wrong(format!("no result: {other:?}"))),
    }
}
