//! What can be wrong with a text, worded as Cassandra words it.

use crate::REDACTED;
use crate::lexer::{Keyword as K, Kind, LexError, Token};

/// The text is no CQL: the client gets `SYNTAX_ERROR` (0x2000) with `message`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// Line of the fault, from 1; 0 where the text ended too early.
    pub line: u32,
    /// Column of the fault in UTF-16 units, from 0; -1 where the text ended too early.
    pub column: i32,
    /// The whole message, position and excerpt included.
    pub message: String,
}

impl SyntaxError {
    /// A syntax error that is found after parsing, such as an unknown property: Cassandra gives it
    /// no position.
    pub fn unplaced(message: String) -> Self {
        Self { line: 0, column: -1, message }
    }
}

/// Why [`parse`](super::parse) refused a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is no CQL.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The text is CQL, and breaks a rule that Cassandra checks while parsing: the client gets
    /// `INVALID` (0x2200).
    #[error("{0}")]
    Invalid(String),
}

/// A fault before it is worded: most of those that look-ahead meets are thrown away.
#[derive(Debug)]
pub(super) enum Fault {
    /// The token of this index is not the one that must stand there (in ANTLR's notation).
    Mismatch(usize, &'static str),
    /// No production continues with the token of this index.
    NoViable(usize),
    /// A rule of the grammar's actions, noticed at the token of this index: always a syntax error.
    Rule(usize, String),
    /// A rule whose violation Cassandra calls an invalid request.
    Invalid(String),
}

impl Fault {
    /// How far the parser had come; the end of numbers where what it read was CQL.
    pub(super) fn token(&self) -> usize {
        match self {
            Self::Mismatch(at, _) | Self::NoViable(at) | Self::Rule(at, _) => *at,
            Self::Invalid(_) => usize::MAX,
        }
    }
}

/// Words a fault of the parser.
pub(super) fn word(text: &str, tokens: &[Token], fault: Fault) -> ParseError {
    let (at, what) = match fault {
        Fault::Invalid(message) => return ParseError::Invalid(shorten(message)),
        Fault::Rule(at, message) => {
            let message = shorten(message);
            let (line, column) = position_of(text, tokens, at);
            return SyntaxError { line, column, message }.into();
        }
        Fault::Mismatch(at, expected) => {
            (at, format!("mismatched input '{}' expecting {expected}", shown(text, tokens, at)))
        }
        Fault::NoViable(at) => {
            (at, format!("no viable alternative at input '{}'", shown(text, tokens, at)))
        }
    };
    let (line, column) = position_of(text, tokens, at);
    let message = format!("line {line}:{column} {what}{}", excerpt(text, tokens, at));
    SyntaxError { line, column, message }.into()
}

/// Words a fault of the lexer.
pub(super) fn word_lexical(text: &str, error: &LexError) -> ParseError {
    let (line, column) = position(text, error.at);
    let found = text.get(error.at..).and_then(|rest| rest.chars().next());
    let found = found.map_or_else(|| "<EOF>".to_owned(), |c| c.to_string());
    let message = match error.expected {
        Some(expected) => {
            format!("line {line}:{column} mismatched character '{found}' expecting {expected}")
        }
        None => format!("line {line}:{column} no viable alternative at character '{found}'"),
    };
    SyntaxError { line, column, message }.into()
}

fn position_of(text: &str, tokens: &[Token], at: usize) -> (u32, i32) {
    match tokens.get(at) {
        Some(token) if token.kind != Kind::End => position(text, token.start as usize),
        _ => (0, -1),
    }
}

fn position(text: &str, offset: usize) -> (u32, i32) {
    let before = text.get(..offset).unwrap_or(text);
    let lines = before.bytes().filter(|&b| b == b'\n').count();
    let last = before.rsplit('\n').next().unwrap_or(before);
    let column: usize = last.chars().map(char::len_utf16).sum();
    (
        u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1),
        i32::try_from(column).unwrap_or(i32::MAX),
    )
}

fn source<'a>(text: &'a str, token: &Token) -> &'a str {
    text.get(token.start as usize..token.end as usize).unwrap_or("")
}

/// Longest message, in bytes: some of Cassandra's repeat the whole statement.
const MAX_MESSAGE: usize = 4096;

fn shorten(mut message: String) -> String {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.truncate(end);
    message
}

/// Longest piece of a text that a message repeats, in bytes.
const MAX_SHOWN: usize = 256;

fn clip(text: &str) -> &str {
    let mut end = text.len().min(MAX_SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("")
}

/// Is this the token of a password, or of what may have been meant for one? In statements about
/// roles no string is shown, nor any word after PASSWORD.
fn is_secret(text: &str, tokens: &[Token], at: usize) -> bool {
    let kind = |at: usize| tokens.get(at).map_or(Kind::End, |token| token.kind);
    let is_about_roles = matches!(kind(0), Kind::Keyword(K::Create | K::Alter))
        && matches!(kind(1), Kind::Keyword(K::Role | K::User));
    let before = tokens.get(..at).unwrap_or(tokens);
    let is_after = || before.iter().any(|token| token.kind == Kind::Keyword(K::Password));
    let is_word = || {
        let first = tokens.get(at).and_then(|token| source(text, token).bytes().next());
        first.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'"' | b'$'))
    };
    is_about_roles && (kind(at) == Kind::String || (is_word() && is_after()))
}

fn shown(text: &str, tokens: &[Token], at: usize) -> String {
    match tokens.get(at) {
        Some(token) if token.kind != Kind::End && is_secret(text, tokens, at) => {
            REDACTED.to_owned()
        }
        Some(token) if token.kind != Kind::End => {
            let raw = source(text, token);
            let quotes = match token.kind {
                Kind::String if raw.starts_with('$') => 2,
                Kind::String | Kind::QuotedName => 1,
                _ => 0,
            };
            clip(raw.get(quotes..raw.len().saturating_sub(quotes)).unwrap_or(raw)).to_owned()
        }
        _ => "<EOF>".to_owned(),
    }
}

/// Tokens before the fault that the excerpt shows. Cassandra counts ten, white space included.
const EXCERPT: usize = 5;

/// ` (...before [fault]...)`; nothing at the end of the text, as in Cassandra.
fn excerpt(text: &str, tokens: &[Token], at: usize) -> String {
    let Some(token) = tokens.get(at).filter(|token| token.kind != Kind::End) else {
        return String::new();
    };
    let start = at.saturating_sub(EXCERPT);
    if (start..=at).any(|at| is_secret(text, tokens, at)) {
        return format!(" (...[{REDACTED}]...)");
    }
    let first = tokens.get(start).unwrap_or(token);
    let before = text.get(first.start as usize..token.start as usize).unwrap_or("");
    let lead = if at <= EXCERPT { "" } else { "..." };
    let tail = if token.end as usize >= text.len() { "" } else { "..." };
    let before: String = before.chars().filter(|c| *c != '\n').collect();
    let before = if before.len() > MAX_SHOWN { "" } else { &before };
    format!(" ({lead}{before}[{}]{tail})", clip(source(text, token)))
}
