//! The operator's protocol: lines over a stream, each ended by `\n`.
//!
//! Both sides begin with [`MAGIC`], the name and version. The client then sends one request,
//! `{"args":["flush","ks"]}`, the node any number of `{"out":"..."}` and `{"err":"..."}` (text for
//! the client's standard output and error) and, last, `{"exit":0}`.

use serde_json::{Value, json};

/// The first line of either side: protocol and version.
pub const MAGIC: &str = "helenus-admin 1";
/// Bytes of a first line that are worth reading.
pub const MAX_MAGIC: usize = 64;
/// Bytes of a request's line.
pub const MAX_REQUEST: usize = 64 << 10;
/// Arguments of a request.
pub const MAX_ARGS: usize = 1024;
/// Bytes of text in one event.
pub const MAX_TEXT: usize = 16 << 10;
/// Bytes of an event's line: JSON writes a byte of text as six at most.
pub const MAX_EVENT: usize = 6 * MAX_TEXT + 64;

/// A line could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not the JSON that stands here.
    #[error("not {0}")]
    Malformed(&'static str),
    /// More than a limit allows.
    #[error("more than {0} {1}")]
    TooMuch(usize, &'static str),
}

/// One step of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Text for standard output.
    Out(String),
    /// Text for standard error.
    Err(String),
    /// The end, with the exit code.
    Exit(u8),
}

/// A request's line, with its end.
pub fn encode_request(args: &[String]) -> Result<String, WireError> {
    if args.len() > MAX_ARGS {
        return Err(WireError::TooMuch(MAX_ARGS, "arguments"));
    }
    let line = format!("{}\n", json!({ "args": args }));
    if line.len() > MAX_REQUEST {
        return Err(WireError::TooMuch(MAX_REQUEST, "bytes of arguments"));
    }
    Ok(line)
}

/// The arguments in a request's line.
pub fn decode_request(line: &[u8]) -> Result<Vec<String>, WireError> {
    const MALFORMED: WireError = WireError::Malformed("a request {\"args\": [strings]}");
    let Ok(Value::Object(mut request)) = serde_json::from_slice(line) else {
        return Err(MALFORMED);
    };
    let Some(Value::Array(args)) = request.remove("args") else { return Err(MALFORMED) };
    if !request.is_empty() {
        return Err(MALFORMED);
    }
    if args.len() > MAX_ARGS {
        return Err(WireError::TooMuch(MAX_ARGS, "arguments"));
    }
    let strings = args.into_iter().map(|arg| match arg {
        Value::String(arg) => Ok(arg),
        _ => Err(MALFORMED),
    });
    strings.collect()
}

impl Event {
    /// The event's line, with its end.
    pub fn encode(&self) -> String {
        let value = match self {
            Self::Out(text) => json!({ "out": text }),
            Self::Err(text) => json!({ "err": text }),
            Self::Exit(code) => json!({ "exit": code }),
        };
        format!("{value}\n")
    }

    /// The event in a line.
    pub fn decode(line: &[u8]) -> Result<Self, WireError> {
        const MALFORMED: WireError = WireError::Malformed("an event of an answer");
        let Ok(Value::Object(event)) = serde_json::from_slice(line) else {
            return Err(MALFORMED);
        };
        let mut entries = event.into_iter();
        let (Some((name, value)), None) = (entries.next(), entries.next()) else {
            return Err(MALFORMED);
        };
        match (name.as_str(), value) {
            ("out", Value::String(text)) => Ok(Self::Out(text)),
            ("err", Value::String(text)) => Ok(Self::Err(text)),
            ("exit", Value::Number(code)) => {
                let code = code.as_u64().and_then(|code| u8::try_from(code).ok());
                code.map(Self::Exit).ok_or(MALFORMED)
            }
            _ => Err(MALFORMED),
        }
    }
}

/// Cuts text into pieces of at most [`MAX_TEXT`] bytes, between characters.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at_checked(rest.floor_char_boundary(MAX_TEXT))?;
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(args: &[&str]) -> Vec<String> {
        args.iter().map(|a| (*a).to_owned()).collect()
    }

    #[test]
    fn lines_are_as_documented() {
        let args = strings(&["flush", "ks", "a\nb"]);
        let line = encode_request(&args).unwrap();
        assert_eq!(line, "{\"args\":[\"flush\",\"ks\",\"a\\nb\"]}\n");
        assert_eq!(decode_request(line.as_bytes()).unwrap(), args);
        assert_eq!(Event::Out("a\n".into()).encode(), "{\"out\":\"a\\n\"}\n");
        assert_eq!(Event::Exit(2).encode(), "{\"exit\":2}\n");
    }

    #[test]
    fn refuses_what_is_not_a_request() {
        let deep = format!("{{\"args\":{}", "[".repeat(30_000));
        for line in
            ["", "{}", "[]", "{\"args\":[1]}", "{\"args\":[],\"x\":1}", "{\"args\":[]", &deep]
        {
            assert!(decode_request(line.as_bytes()).is_err(), "{line:.40}");
        }
        assert!(decode_request(b"{\"args\":[\"\xff\"]}").is_err());
    }

    #[test]
    fn limits_hold_on_both_sides() {
        let args = vec![String::new(); MAX_ARGS];
        let line = encode_request(&args).unwrap();
        assert_eq!(decode_request(line.as_bytes()).unwrap(), args);
        let args = vec![String::new(); MAX_ARGS + 1];
        assert_eq!(encode_request(&args), Err(WireError::TooMuch(MAX_ARGS, "arguments")));
        let line = json!({ "args": args }).to_string();
        assert!(decode_request(line.as_bytes()).is_err());
        assert!(encode_request(&["x".repeat(MAX_REQUEST)]).is_err());
        let worst = Event::Err("\u{1}".repeat(MAX_TEXT)).encode();
        assert!(worst.len() <= MAX_EVENT);
    }

    proptest! {
        #[test]
        fn events_come_back(text: String, code: u8) {
            for event in [Event::Out(text.clone()), Event::Err(text.clone()), Event::Exit(code)] {
                let line = event.encode();
                prop_assert_eq!(line.find('\n'), Some(line.len() - 1));
                prop_assert_eq!(Event::decode(line.as_bytes()).unwrap(), event);
            }
        }

        #[test]
        fn nothing_panics(line: Vec<u8>) {
            let _ = decode_request(&line);
            let _ = Event::decode(&line);
        }

        #[test]
        fn pieces_make_the_whole(text in "[a-z\u{e9}\u{1f600}]{0,50}", times in 1usize..2000) {
            let text = text.repeat(times);
            prop_assert!(pieces(&text).all(|p| p.len() <= MAX_TEXT && !p.is_empty()));
            prop_assert_eq!(pieces(&text).collect::<String>(), text);
        }
    }
}
