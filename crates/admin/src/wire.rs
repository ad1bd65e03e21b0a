//! The operator's protocol: lines over a stream, each ended by `\n`.
//!
//! Both sides begin with [`MAGIC`], the name and version. The client then sends one request,
//! `{"args":["flush","ks"]}`, the node one [`Outcome`] in JSON: a value, which the client prints,
//! or why there is none. Of a verb that runs for long, outcomes with parts of its value come
//! before, each with `"has_more":true`. Over the network, a [`Login`] may come before the request:
//! `{"login":{"user":"u","password":"p"}}`.

use serde_json::{Value, json};

use crate::model::{Outcome, Refusal};

/// The first line of either side: protocol and version. It changes with what a verb or a value is
/// made of.
pub const MAGIC: &str = "helenus-admin 3";
/// Bytes of a first line that are worth reading.
pub const MAX_MAGIC: usize = 64;
/// Bytes of a request's line.
pub const MAX_REQUEST: usize = 64 << 10;
/// Bytes of a login's line: nobody is known before it is read.
pub const MAX_LOGIN: usize = 4 << 10;
/// Arguments of a request.
pub const MAX_ARGS: usize = 1024;
/// Bytes of an outcome's line: ten thousand tables take an eighth of it.
pub const MAX_OUTCOME: usize = 128 << 20;

/// A line could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not the JSON that stands here.
    #[error("it is not {0}")]
    Malformed(&'static str),
    /// Not an outcome of this version.
    #[error("this nodetool does not know it: {0}")]
    Outcome(String),
    /// More than a limit allows.
    #[error("it has more than {0} {1}")]
    TooMuch(usize, &'static str),
}

/// As whom a client logs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// A role's name.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A login's line, with its end.
pub fn encode_login(login: &Login) -> Result<String, WireError> {
    let Login { user, password } = login;
    let (user, password) = (json!(user), json!(password));
    let line = format!("{{\"login\":{{\"user\":{user},\"password\":{password}}}}}\n");
    if line.len() > MAX_LOGIN {
        return Err(WireError::TooMuch(MAX_LOGIN, "bytes of user and password"));
    }
    Ok(line)
}

/// The login in a line; none of a line that is something else.
pub fn decode_login(line: &[u8]) -> Option<Login> {
    if line.len() > MAX_LOGIN {
        return None;
    }
    let Ok(Value::Object(mut request)) = serde_json::from_slice(line) else { return None };
    let Some(Value::Object(mut login)) = request.remove("login") else { return None };
    let (user, password) = (login.remove("user"), login.remove("password"));
    match (user, password, request.is_empty() && login.is_empty()) {
        (Some(Value::String(user)), Some(Value::String(password)), true) => {
            Some(Login { user, password })
        }
        _ => None,
    }
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

/// An outcome's line, with its end; one that is too long becomes a refusal that says so.
pub fn encode_outcome(outcome: &Outcome) -> String {
    let refused = |why: String| json!(Outcome::refused(Refusal::Failed(why))).to_string();
    let mut line = match serde_json::to_string(outcome) {
        Ok(line) if line.len() < MAX_OUTCOME => line,
        Ok(line) => refused(format!("the answer has {} bytes, {MAX_OUTCOME} at most", line.len())),
        Err(error) => refused(format!("cannot encode the answer: {error}")),
    };
    line.push('\n');
    line
}

/// The outcome in a line.
pub fn decode_outcome(line: &[u8]) -> Result<Outcome, WireError> {
    serde_json::from_slice(line).map_err(|error| WireError::Outcome(error.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{ChunkCache, Shown};

    fn strings(args: &[&str]) -> Vec<String> {
        args.iter().map(|a| (*a).to_owned()).collect()
    }

    #[test]
    fn lines_are_as_documented() {
        let args = strings(&["flush", "ks", "a\nb"]);
        let line = encode_request(&args).unwrap();
        assert_eq!(line, "{\"args\":[\"flush\",\"ks\",\"a\\nb\"]}\n");
        assert_eq!(decode_request(line.as_bytes()).unwrap(), args);
        let outcome = Outcome::shown(Shown::ConcurrentCompactors(2));
        let line = encode_outcome(&outcome);
        assert_eq!(line, "{\"shown\":{\"concurrent_compactors\":2},\"refusal\":null}\n");
        assert_eq!(decode_outcome(line.as_bytes()).unwrap(), outcome);
        let line = encode_outcome(&Outcome::refused(Refusal::BadUse("a\nb".into())));
        assert_eq!(line, "{\"shown\":null,\"refusal\":{\"bad_use\":\"a\\nb\"}}\n");
    }

    #[test]
    fn logins_are_as_documented() {
        let login = Login { user: "a\"b".into(), password: "p\n".into() };
        let line = encode_login(&login).unwrap();
        assert_eq!(line, "{\"login\":{\"user\":\"a\\\"b\",\"password\":\"p\\n\"}}\n");
        assert_eq!(decode_login(line.as_bytes()), Some(login));
        assert!(!format!("{:?}", decode_login(line.as_bytes())).contains("p\\n"));
        let deep = format!("{{\"login\":{}", "[".repeat(3_000));
        for line in [
            "",
            "{}",
            "{\"args\":[]}",
            "{\"login\":{\"user\":\"u\"}}",
            "{\"login\":{\"user\":\"u\",\"password\":7}}",
            "{\"login\":{\"user\":\"u\",\"password\":\"p\",\"x\":1}}",
            "{\"login\":{\"user\":\"u\",\"password\":\"p\"},\"args\":[]}",
            &deep,
        ] {
            assert_eq!(decode_login(line.as_bytes()), None, "{line:.60}");
        }
        let long = Login { user: "u".into(), password: "p".repeat(MAX_LOGIN) };
        let wrong = Err(WireError::TooMuch(MAX_LOGIN, "bytes of user and password"));
        assert_eq!(encode_login(&long), wrong);
        let line = json!({ "login": { "user": "u", "password": long.password } }).to_string();
        assert_eq!(decode_login(line.as_bytes()), None);
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
    }

    #[test]
    fn an_outcome_of_another_build_is_refused_in_words() {
        let said = |line: &str| decode_outcome(line.as_bytes()).unwrap_err().to_string();
        let unknown = said("{\"shown\":{\"weather\":7},\"refusal\":null}");
        assert!(unknown.starts_with("this nodetool does not know it: unknown variant `weather`"));
        let other = said("{\"shown\":{\"release\":{\"version\":\"5\"}},\"refusal\":null}");
        assert!(other.contains("missing field `git_sha`"), "{other}");
    }

    #[test]
    fn an_outcome_that_is_too_long_says_so() {
        let seed = "s".repeat(1 << 20);
        let outcome = Outcome::shown(Shown::Import { refused_directories: vec![seed; 129] });
        let outcome = decode_outcome(encode_outcome(&outcome).as_bytes()).unwrap();
        let said = outcome.refusal.unwrap().to_string();
        assert!(said.ends_with("bytes, 134217728 at most"), "{said}");
    }

    proptest! {
        #[test]
        fn nothing_panics(line: Vec<u8>) {
            let _ = decode_request(&line);
            let _ = decode_login(&line);
            let _ = decode_outcome(&line);
        }

        #[test]
        fn numbers_come_back_as_they_were(bits: u64) {
            let millis = f64::from_bits(bits);
            let cache = ChunkCache { miss_latency_micros: millis, ..ChunkCache::default() };
            let text = serde_json::to_string(&cache).unwrap();
            let back: ChunkCache = serde_json::from_str(&text).unwrap();
            let back = back.miss_latency_micros;
            prop_assert!(back == millis || (back.is_nan() && !millis.is_finite()), "{text}");
        }
    }
}
