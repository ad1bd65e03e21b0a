//! The asking side of the operator's protocol, over any blocking stream.

use std::io::{self, BufRead, BufReader, Read, Write};

use crate::wire::{self, Event, MAGIC, MAX_EVENT, MAX_MAGIC, WireError};

/// The node could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The stream failed.
    #[error("the connection to the node failed: {0}")]
    Io(#[from] io::Error),
    /// The text could not be printed.
    #[error("cannot print: {0}")]
    Output(#[source] io::Error),
    /// The stream ended before the answer did.
    #[error("the node closed the connection before it answered")]
    Closed,
    /// The other side is of another version, or no node.
    #[error("the other side says '{0}', this nodetool speaks '{MAGIC}'")]
    Version(String),
    /// A line was not of the protocol.
    #[error("the node's answer was {0}")]
    Wire(#[from] WireError),
}

/// Sends the command line `args`, copies the answer's text to `out` and `err`, and returns the exit
/// code. Waits as long as the verb takes.
pub fn call(
    stream: &mut (impl Read + Write),
    args: &[String],
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<u8, ClientError> {
    let request = wire::encode_request(args)?;
    stream.write_all(format!("{MAGIC}\n{request}").as_bytes())?;
    stream.flush()?;
    let mut lines = BufReader::new(stream);
    let magic = read_line(&mut lines, MAX_MAGIC)?;
    if magic != MAGIC.as_bytes() {
        let said = String::from_utf8_lossy(&magic).escape_default().to_string();
        return Err(ClientError::Version(said));
    }
    loop {
        match Event::decode(&read_line(&mut lines, MAX_EVENT)?)? {
            Event::Out(text) => print(out, &text)?,
            Event::Err(text) => print(err, &text)?,
            Event::Exit(code) => return Ok(code),
        }
    }
}

fn print(to: &mut impl Write, text: &str) -> Result<(), ClientError> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(ClientError::Output)
}

/// A line of at most `limit` bytes, without its end.
fn read_line(lines: &mut impl BufRead, limit: usize) -> Result<Vec<u8>, ClientError> {
    let mut line = Vec::new();
    lines.take(limit as u64 + 1).read_until(b'\n', &mut line)?;
    match line.pop() {
        Some(b'\n') => Ok(line),
        _ if line.len() >= limit => Err(WireError::TooMuch(limit, "bytes in a line").into()),
        _ => Err(ClientError::Closed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that answers with fixed bytes.
    struct Canned {
        answer: io::Cursor<Vec<u8>>,
        sent: Vec<u8>,
    }

    impl Read for Canned {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.answer.read(buf)
        }
    }

    impl Write for Canned {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.sent.write(buf)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn ask(answer: &str) -> (Result<u8, ClientError>, String, String, String) {
        let mut stream =
            Canned { answer: io::Cursor::new(answer.as_bytes().to_vec()), sent: Vec::new() };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let result = call(&mut stream, &["info".to_owned()], &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (result, text(stream.sent), text(out), text(err))
    }

    #[test]
    fn copies_the_answer() {
        let (code, sent, out, err) = ask(
            "helenus-admin 1\n{\"out\":\"a\\n\"}\n{\"err\":\"b\"}\n{\"out\":\"c\"}\n{\"exit\":2}\n",
        );
        assert_eq!(code.unwrap(), 2);
        assert_eq!(sent, "helenus-admin 1\n{\"args\":[\"info\"]}\n");
        assert_eq!((out.as_str(), err.as_str()), ("a\nc", "b"));
    }

    #[test]
    fn says_what_is_wrong_with_an_answer() {
        assert!(matches!(ask("").0, Err(ClientError::Closed)));
        assert!(matches!(ask("helenus-admin 1\n{\"out\":\"\"}\n").0, Err(ClientError::Closed)));
        let Err(ClientError::Version(said)) = ask("HTTP/1.1 400\r\n").0 else { panic!() };
        assert_eq!(said, "HTTP/1.1 400\\r");
        assert!(matches!(ask(&"x".repeat(1000)).0, Err(ClientError::Wire(_))));
        assert!(matches!(ask("helenus-admin 1\n7\n").0, Err(ClientError::Wire(_))));
    }
}
