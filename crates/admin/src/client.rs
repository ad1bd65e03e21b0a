//! The asking side of the operator's protocol, over any blocking stream.

use std::io::{self, BufRead, BufReader, Read, Write};

use crate::model::{Refusal, Shown};
use crate::nodetool::{Command, Format, Mismatch, Reply};
use crate::wire::{self, Login, MAGIC, MAX_MAGIC, MAX_OUTCOME, WireError};

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
    /// The stream ended while a repair was watched.
    #[error(
        "the node closed the connection while it repaired keyspace {0}; look at its log for how \
         that ended. Keyspaces after this one are not repaired"
    )]
    Unwatched(String),
    /// The other side is of another version, or no node.
    #[error(
        "the node speaks '{0}', this nodetool '{MAGIC}'; use the nodetool of the node's release"
    )]
    Version(String),
    /// A line was not of the protocol.
    #[error("cannot read the node's answer: {0}")]
    Wire(#[from] WireError),
    /// The node does not let this client in.
    #[error("{exception}: '{message}'")]
    NotLetIn {
        /// The name of Java's exception.
        exception: String,
        /// Its message.
        message: String,
    },
    /// The value is none that the verb shows.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// Asks for what the command line `args` says, prints the answer to `out` and `err`, and returns
/// the exit code. Waits as long as the verb takes.
pub fn call(
    stream: &mut (impl Read + Write),
    args: &[String],
    out: &mut impl Write,
    err: &mut impl Write,
) -> Result<u8, ClientError> {
    call_as(stream, None, args, (out, err))
}

/// As [`call`], logged in as somebody, with where to print the answer and what went wrong.
pub fn call_as(
    stream: &mut (impl Read + Write),
    login: Option<&Login>,
    args: &[String],
    (out, err): (&mut impl Write, &mut impl Write),
) -> Result<u8, ClientError> {
    let command = match Command::parse(args) {
        Ok(command) => command,
        Err(refused) => {
            print(out, &refused.text())?;
            return Ok(refused.exit_code());
        }
    };
    let request = wire::encode_request(&command.words)?;
    let login = login.map(wire::encode_login).transpose()?.unwrap_or_default();
    stream.write_all(format!("{MAGIC}\n{login}{request}").as_bytes())?;
    stream.flush()?;
    let mut lines = BufReader::new(stream);
    let magic = read_line(&mut lines, MAX_MAGIC)?;
    if magic != MAGIC.as_bytes() {
        let said = String::from_utf8_lossy(&magic).escape_default().to_string();
        return Err(ClientError::Version(said));
    }
    let mut seen: Option<Shown> = None;
    loop {
        let line =
            read_line(&mut lines, MAX_OUTCOME).map_err(|error| lost(error, seen.as_ref()))?;
        let mut outcome = wire::decode_outcome(&line)?;
        if let Some(Refusal::NotLetIn { exception, message }) = outcome.refusal {
            return Err(ClientError::NotLetIn { exception, message });
        }
        let is_last = !outcome.has_more;
        let reply = match command.format {
            Format::Text => {
                let reply = Reply::text(&command.verb, &outcome)?;
                seen = outcome.shown;
                reply
            }
            Format::Json => {
                outcome.shown = together(seen.take(), outcome.shown);
                match is_last {
                    true => Reply::json(&command.verb, &outcome)?,
                    false => {
                        seen = outcome.shown;
                        Reply::default()
                    }
                }
            }
        };
        print(out, &reply.out)?;
        print(err, &reply.err)?;
        if is_last {
            return Ok(reply.exit);
        }
    }
}

/// Parts of a value as one.
fn together(before: Option<Shown>, later: Option<Shown>) -> Option<Shown> {
    match (before, later) {
        (Some(mut shown), Some(later)) => {
            shown.join(later);
            Some(shown)
        }
        (before, later) => before.or(later),
    }
}

/// What to say where the stream ended before the answer did; `seen` is its last part.
fn lost(error: ClientError, seen: Option<&Shown>) -> ClientError {
    match (error, seen) {
        (ClientError::Closed | ClientError::Io(_), Some(Shown::Repairs(all))) => {
            let keyspace = all.last().map(|of| of.keyspace.clone());
            ClientError::Unwatched(keyspace.unwrap_or_default())
        }
        (error, _) => error,
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

    fn ask(line: &str, answer: &str) -> (Result<u8, ClientError>, String, String, String) {
        let mut stream =
            Canned { answer: io::Cursor::new(answer.as_bytes().to_vec()), sent: Vec::new() };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let result = call(&mut stream, &words, &mut out, &mut err);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (result, text(stream.sent), text(out), text(err))
    }

    #[test]
    fn prints_the_answer_in_either_form() {
        let answer =
            "helenus-admin 3\n{\"shown\":{\"concurrent_compactors\":2},\"refusal\":null}\n";
        let (code, sent, out, err) = ask("getconcurrentcompactors", answer);
        assert_eq!(code.unwrap(), 0);
        assert_eq!(sent, "helenus-admin 3\n{\"args\":[\"getconcurrentcompactors\"]}\n");
        assert_eq!(out, "Current concurrent compactors in the system is: \n2\n");
        assert_eq!(err, "");
        let (code, sent, out, _) = ask("--format json -pp getconcurrentcompactors", answer);
        assert_eq!(code.unwrap(), 0);
        assert!(sent.ends_with("{\"args\":[\"-pp\",\"getconcurrentcompactors\"]}\n"), "{sent}");
        assert_eq!(out, "{\n  \"concurrent_compactors\": 2\n}\n");
    }

    #[test]
    fn parts_are_printed_as_they_come() {
        let part = |number: u64, end: &str| {
            format!(
                "{{\"shown\":{{\"repairs\":[{{\"keyspace\":\"ks\",\"command\":7,\
                 \"at_unix_millis\":0,\"events\":[{{\"number\":{number},\"kind\":\"start\",\
                 \"message\":\"m{number}\",\"done\":0,\"total\":7,\"at_unix_millis\":{number}}}],\
                 \"error\":null,\"end\":{end}}}]}},\"refusal\":null,\"has_more\":true}}\n"
            )
        };
        let end = "{\"has_failed\":false,\"messages\":[]}";
        let parts = format!("helenus-admin 3\n{}{}", part(1, "null"), part(2, end));
        let whole = format!("{parts}{{\"shown\":null,\"refusal\":null}}\n");
        let (code, sent, out, err) = ask("repair ks", &whole);
        assert_eq!((code.unwrap(), err.as_str()), (0, ""));
        assert!(sent.ends_with("{\"args\":[\"repair\",\"ks\"]}\n"), "{sent}");
        let found = "condition satisfied queried for parent session status and discovered repair \
                     completed.";
        assert_eq!(
            out,
            format!(
                "[1970-01-01 00:00:00,001] m1\n[1970-01-01 00:00:00,002] m2\n\
                 [1970-01-01 00:00:00,000] {found}\n"
            )
        );
        let (code, _, out, _) = ask("--format json repair ks", &whole);
        assert_eq!(code.unwrap(), 0);
        assert_eq!(out.matches("\"keyspace\": \"ks\"").count(), 1, "{out}");
        assert_eq!(out.matches("\"message\"").count(), 2, "{out}");
        let (code, _, out, _) = ask("repair ks", &parts);
        let Err(ClientError::Unwatched(keyspace)) = code else { panic!("{code:?}") };
        assert_eq!((keyspace.as_str(), out.lines().count()), ("ks", 3));
    }

    #[test]
    fn a_login_comes_before_the_request() {
        let answer = "helenus-admin 3\n{\"shown\":null,\"refusal\":null}\n";
        let mut stream =
            Canned { answer: io::Cursor::new(answer.as_bytes().to_vec()), sent: Vec::new() };
        let login = Login { user: "u".into(), password: "p".into() };
        let words = ["flush".to_owned()];
        let to = (&mut Vec::new(), &mut Vec::new());
        assert_eq!(call_as(&mut stream, Some(&login), &words, to).unwrap(), 0);
        assert_eq!(
            String::from_utf8(stream.sent).unwrap(),
            "helenus-admin 3\n{\"login\":{\"user\":\"u\",\"password\":\"p\"}}\n\
             {\"args\":[\"flush\"]}\n"
        );
    }

    #[test]
    fn what_went_wrong_is_no_json() {
        let answer = "helenus-admin 3\n{\"shown\":null,\"refusal\":{\"bad_use\":\"no\"}}\n";
        let (code, _, out, err) = ask("status nosuch", answer);
        assert_eq!((code.unwrap(), out.as_str(), err.as_str()), (1, "\nError: no\n", ""));
        let (code, _, out, err) = ask("--format json status nosuch", answer);
        assert_eq!((code.unwrap(), out.as_str(), err.as_str()), (1, "", "\nError: no\n"));
        let (code, sent, out, err) = ask("--format yaml status", "");
        assert_eq!((code.unwrap(), sent.as_str(), err.as_str()), (1, "", ""));
        assert!(out.starts_with("nodetool: unknown format 'yaml': use text or json\n"), "{out}");
    }

    #[test]
    fn says_what_is_wrong_with_an_answer() {
        let ask = |answer: &str| ask("info", answer).0;
        assert!(matches!(ask(""), Err(ClientError::Closed)));
        assert!(matches!(ask("helenus-admin 3\n{\"shown\":null"), Err(ClientError::Closed)));
        let Err(ClientError::Version(said)) = ask("HTTP/1.1 400\r\n") else { panic!() };
        assert_eq!(said, "HTTP/1.1 400\\r");
        assert!(matches!(ask(&"x".repeat(1000)), Err(ClientError::Wire(_))));
        assert!(matches!(ask("helenus-admin 3\n7\n"), Err(ClientError::Wire(_))));
        let no = "helenus-admin 3\n{\"shown\":null,\"refusal\":{\"not_let_in\":{\"exception\":\"E\",\
                  \"message\":\"m\"}}}\n";
        assert_eq!(ask(no).unwrap_err().to_string(), "E: 'm'");
        let other = "helenus-admin 3\n{\"shown\":{\"concurrent_compactors\":2},\"refusal\":null}\n";
        assert!(matches!(ask(other), Err(ClientError::Mismatch(_))));
    }
}
