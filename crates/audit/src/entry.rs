//! An entry of the audit log, and what becomes one (`AuditLogEntry`, `AuditLogManager`).

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use crate::kind::Kind;
use crate::secret::{conceal, conceal_all, has_token};

/// What stands for an error that could show a password.
const OBSCURED: &str = "Syntax Exception. Obscured for security reasons.";

/// An entry.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is about.
    pub kind: Kind,
    /// Who asked, if that is known.
    pub user: Option<String>,
    /// The node.
    pub host: SocketAddr,
    /// The client.
    pub source: SocketAddr,
    /// When, in milliseconds since 1970.
    pub millis: i64,
    /// The batch that it is part of.
    pub batch: Option<String>,
    /// The keyspace that it is about.
    pub keyspace: Option<String>,
    /// What it is about within the keyspace.
    pub scope: Option<String>,
    /// The statement, and what went wrong.
    pub operation: String,
}

/// What an entry needs to know of a statement (`AuditLogContext`).
#[derive(Clone, PartialEq, Eq)]
pub struct Statement {
    /// What it does.
    pub kind: Kind,
    /// The keyspace that it names.
    pub keyspace: Option<String>,
    /// The table or other object that it names.
    pub scope: Option<String>,
    /// A password that its text has.
    pub password: Option<String>,
}

/// Who asks, and where.
#[derive(Clone, Debug)]
pub struct Client<'a> {
    /// Who, if that is known.
    pub user: Option<&'a str>,
    /// The node.
    pub host: SocketAddr,
    /// The client.
    pub source: SocketAddr,
    /// The session's keyspace.
    pub keyspace: Option<&'a str>,
}

/// What an error is, as far as entries tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The user may not.
    Unauthorized,
    /// The user is not who they say.
    Authentication,
    /// The statement could not be parsed.
    Syntax,
    /// A prepared statement that is not there.
    Unprepared,
    /// Something else.
    Other,
}

/// An error.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// Which.
    pub kind: FailureKind,
    /// Its text.
    pub message: &'a str,
}

impl Statement {
    /// One that names nothing.
    pub fn new(kind: Kind) -> Self {
        Self { kind, keyspace: None, scope: None, password: None }
    }

    /// One that names a keyspace, and perhaps something in it.
    pub fn within(kind: Kind, keyspace: &str, scope: Option<&str>) -> Self {
        let scope = scope.map(str::to_owned);
        Self { kind, keyspace: Some(keyspace.to_owned()), scope, password: None }
    }

    /// A text of it that may be logged.
    pub fn conceal(&self, text: &str) -> String {
        match &self.password {
            Some(password) => conceal(text, password),
            None => text.to_owned(),
        }
    }
}

impl Failure<'_> {
    fn entry_kind(self) -> Kind {
        match self.kind {
            FailureKind::Unauthorized => Kind::UnauthorizedAttempt,
            FailureKind::Authentication => Kind::LoginError,
            _ => Kind::RequestFailure,
        }
    }

    /// Its text, as far as it may be logged: that of a syntax error repeats a part of the
    /// statement.
    fn text<'a>(self, mut statements: impl Iterator<Item = &'a str>) -> String {
        match self.kind == FailureKind::Syntax && statements.any(has_token) {
            true => OBSCURED.to_owned(),
            false => conceal_all(self.message),
        }
    }
}

fn joined(operation: String, error: &str) -> String {
    match (operation.is_empty(), error.trim().is_empty()) {
        (_, true) => operation,
        (true, false) => error.to_owned(),
        (false, false) => format!("{operation}; {error}"),
    }
}

impl Client<'_> {
    fn entry(&self, kind: Kind, millis: i64, operation: String) -> Entry {
        Entry {
            kind,
            user: self.user.map(str::to_owned),
            host: self.host,
            source: self.source,
            millis,
            batch: None,
            keyspace: self.keyspace.map(str::to_owned),
            scope: None,
            operation,
        }
    }

    /// A statement that was run.
    pub fn ran(&self, statement: &Statement, text: &str, millis: i64) -> Entry {
        let mut entry = self.entry(statement.kind, millis, statement.conceal(text));
        if let Some(keyspace) = &statement.keyspace {
            entry.keyspace = Some(keyspace.clone());
        }
        entry.scope.clone_from(&statement.scope);
        entry
    }

    /// A statement that failed; `statement` if it was understood.
    pub fn failed(
        &self,
        statement: Option<&Statement>,
        text: &str,
        failure: Failure<'_>,
        millis: i64,
    ) -> Entry {
        let concealed = match statement {
            Some(statement) => statement.conceal(text),
            None => conceal_all(text),
        };
        let error = failure.text(std::iter::once(text));
        self.entry(failure.entry_kind(), millis, joined(concealed, &error))
    }

    /// A prepared statement that failed; of one that is not there nothing is known. None where
    /// nothing is logged.
    pub fn failed_prepared(
        &self,
        statement: Option<(&Statement, &str)>,
        failure: Failure<'_>,
        millis: i64,
    ) -> Option<Entry> {
        if failure.kind == FailureKind::Unprepared {
            let operation = joined("null".to_owned(), &failure.text(std::iter::empty()));
            return Some(self.entry(failure.entry_kind(), millis, operation));
        }
        let (statement, text) = statement?;
        let operation = joined(statement.conceal(text), &failure.text(std::iter::once(text)));
        let ran = self.ran(statement, text, millis);
        Some(Entry { kind: failure.entry_kind(), operation, ..ran })
    }

    /// A statement that was prepared; it has no keyspace but that of its own.
    pub fn prepared(&self, statement: &Statement, text: &str, millis: i64) -> Entry {
        let mut entry = self.entry(Kind::PrepareStatement, millis, statement.conceal(text));
        entry.keyspace.clone_from(&statement.keyspace);
        entry.scope.clone_from(&statement.scope);
        entry
    }

    /// A statement that could not be prepared. Cassandra logs what a syntax error says even where
    /// the statement has a password; an entry here never does.
    pub fn not_prepared(&self, text: &str, failure: Failure<'_>, millis: i64) -> Entry {
        self.failed(None, text, failure, millis)
    }

    /// A batch that was run, with a random id: an entry of its own, and one of each statement.
    pub fn ran_batch<'b>(
        &self,
        statements: impl ExactSizeIterator<Item = (&'b Statement, &'b str)>,
        id: &str,
        millis: i64,
    ) -> Vec<Entry> {
        let operation = format!("BatchId:[{id}] - BATCH of [{}] statements", statements.len());
        let whole = self.entry(Kind::Batch, millis, operation);
        // passwords are no part of what batches may have
        let parts = statements.map(|(statement, text)| self.ran(statement, text, millis));
        let of_batch = |entry| Entry { batch: Some(id.to_owned()), ..entry };
        std::iter::once(whole).chain(parts).map(of_batch).collect()
    }

    /// A batch that failed, of which these statements were understood.
    pub fn failed_batch<'b>(
        &self,
        texts: impl ExactSizeIterator<Item = &'b str>,
        consistency: &str,
        failure: Failure<'_>,
        millis: i64,
    ) -> Entry {
        let operation = format!("BATCH of {} statements at consistency {consistency}", texts.len());
        let operation = joined(operation, &failure.text(texts));
        self.entry(failure.entry_kind(), millis, operation)
    }

    /// Somebody logged in.
    pub fn logged_in(&self, millis: i64) -> Entry {
        self.entry(Kind::LoginSuccess, millis, "LOGIN SUCCESSFUL".to_owned())
    }

    /// Somebody could not log in.
    pub fn not_logged_in(&self, failure: Failure<'_>, millis: i64) -> Entry {
        let error = failure.text(std::iter::empty());
        let failure = Failure { kind: FailureKind::Authentication, ..failure };
        self.entry(failure.entry_kind(), millis, joined("LOGIN FAILURE".to_owned(), &error))
    }
}

/// An address as Java has it: IPv6 without an abbreviation.
fn address(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => ip.segments().map(|segment| format!("{segment:x}")).join(":"),
    }
}

impl Entry {
    /// As it is logged (`AuditLogEntry.getLogString`).
    pub fn text(&self) -> String {
        let Self { kind, user, host, source, millis, .. } = self;
        let mut text = format!("user:{}|host:/", user.as_deref().unwrap_or("null"));
        // writing to a string cannot fail
        let _ = match host {
            SocketAddr::V4(host) => write!(text, "{host}"),
            SocketAddr::V6(host) => {
                write!(text, "[{}]:{}", address(IpAddr::V6(*host.ip())), host.port())
            }
        };
        let _ = write!(text, "|source:/{}", address(source.ip()));
        if source.port() > 0 {
            let _ = write!(text, "|port:{}", source.port());
        }
        let (name, category) = (kind.name(), kind.category().name());
        let _ = write!(text, "|timestamp:{millis}|type:{name}|category:{category}");
        let more = [
            ("batch", self.batch.as_deref()),
            ("ks", self.keyspace.as_deref()),
            ("scope", self.scope.as_deref()),
            ("operation", Some(self.operation.as_str())),
        ];
        for (name, value) in more {
            if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
                let _ = write!(text, "|{name}:{value}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client<'a>() -> Client<'a> {
        let host = "[2001:db8::1]:7000".parse().unwrap();
        Client { user: None, host, source: "[::1]:4711".parse().unwrap(), keyspace: Some("own") }
    }

    #[test]
    fn addresses_are_javas() {
        let text = client().logged_in(5).text();
        assert!(text.contains("|host:/[2001:db8:0:0:0:0:0:1]:7000|source:/0:0:0:0:0:0:0:1|"));
        assert!(text.starts_with("user:null|"), "{text}");
        let source = "127.0.0.1:0".parse().unwrap();
        let text = Client { user: Some("u"), source, ..client() }.logged_in(5).text();
        assert!(text.contains("|source:/127.0.0.1|timestamp:5|type:LOGIN_SUCCESS|"), "{text}");
    }

    #[test]
    fn no_error_shows_a_password() {
        let of = |kind, message| Failure { kind, message };
        let text = "CREATE ROLE r WITH PASSWORD 'geheim'";
        let syntax = of(FailureKind::Syntax, "line 1:28 mismatched input 'geheim'");
        for entry in [
            client().failed(None, text, syntax, 1),
            client().not_prepared(text, syntax, 1),
            client().failed_batch([text].into_iter(), "ONE", syntax, 1),
            client().failed(None, text, of(FailureKind::Other, "bad password geheim"), 1),
        ] {
            assert!(!entry.text().contains("geheim"), "{}", entry.text());
        }
    }

    #[test]
    fn what_is_blank_is_left_out() {
        let mut statement = Statement::within(Kind::Select, " ", Some(""));
        let text = client().ran(&statement, "SELECT", 1).text();
        assert!(text.ends_with("|type:SELECT|category:QUERY|operation:SELECT"), "{text}");
        statement.keyspace = None;
        let text = client().ran(&statement, "SELECT", 1).text();
        assert!(text.ends_with("|category:QUERY|ks:own|operation:SELECT"), "{text}");
    }
}
