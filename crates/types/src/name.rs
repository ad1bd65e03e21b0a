//! Type names in CQL (`cql3.CQL3Type`), as they stand in `system_schema`, and identifiers quoted
//! where they must be (`cql3.ColumnIdentifier.maybeQuote`).

use crate::cql_type::{CqlType, MAX_DEPTH, UserType};
use crate::marshal::MarshalError;
use std::borrow::Cow;
use std::sync::Arc;
use thiserror::Error;

/// Words that are no identifier unless quoted: `reserved_keywords.txt` of 5.0.9, in lower case,
/// sorted.
pub const RESERVED: [&str; 57] = [
    "add",
    "allow",
    "alter",
    "and",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "columnfamily",
    "create",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "revoke",
    "schema",
    "select",
    "set",
    "table",
    "to",
    "token",
    "truncate",
    "unlogged",
    "update",
    "use",
    "using",
    "view",
    "where",
    "with",
];

/// Names of the native types. `varchar` is another name of `text`.
const NATIVE: [(&str, CqlType); 22] = [
    ("ascii", CqlType::Ascii),
    ("bigint", CqlType::BigInt),
    ("blob", CqlType::Blob),
    ("boolean", CqlType::Boolean),
    ("counter", CqlType::Counter),
    ("date", CqlType::Date),
    ("decimal", CqlType::Decimal),
    ("double", CqlType::Double),
    ("duration", CqlType::Duration),
    ("empty", CqlType::Empty),
    ("float", CqlType::Float),
    ("inet", CqlType::Inet),
    ("int", CqlType::Int),
    ("smallint", CqlType::SmallInt),
    ("text", CqlType::Text),
    ("time", CqlType::Time),
    ("timestamp", CqlType::Timestamp),
    ("timeuuid", CqlType::TimeUuid),
    ("tinyint", CqlType::TinyInt),
    ("uuid", CqlType::Uuid),
    ("varchar", CqlType::Text),
    ("varint", CqlType::VarInt),
];

/// Is this word reserved, in whichever case?
pub fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word.to_ascii_lowercase().as_str()).is_ok()
}

/// The identifier as CQL text, in double quotes unless it is lower case and not reserved.
pub fn maybe_quote(identifier: &str) -> Cow<'_, str> {
    let plain = identifier.starts_with(|first: char| first.is_ascii_lowercase())
        && identifier.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if plain && !is_reserved(identifier) {
        Cow::Borrowed(identifier)
    } else {
        Cow::Owned(format!("\"{}\"", identifier.replace('"', "\"\"")))
    }
}

/// Why a text is no type name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// The text does not follow the grammar.
    #[error("syntax error in type '{text}' at character {at}: {what}")]
    Syntax {
        /// The whole text.
        text: String,
        /// Where in it, in bytes.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// No native type, and no user type that the resolver knows.
    #[error("Unknown type {0}")]
    Unknown(String),
    /// `frozen<>` around a type that cannot be.
    #[error("frozen<> is only allowed on collections, tuples, and user-defined types (got {0})")]
    Frozen(String),
    /// A quoted class name that is no type.
    #[error(transparent)]
    Class(#[from] MarshalError),
    /// Types nested deeper than [`MAX_DEPTH`].
    #[error("Types are nested more than {MAX_DEPTH} deep")]
    Depth,
}

impl CqlType {
    /// The type's name in CQL as `system_schema.columns.type` has it: frozen types, tuples among
    /// them, in `frozen<>`, user types without their keyspace, classes in single quotes.
    pub fn cql_name(&self) -> String {
        let mut out = String::new();
        write_name(&mut out, self, MAX_DEPTH);
        out
    }

    /// Parses a type's name. `resolve` is asked for user types by keyspace (if the name has one)
    /// and name.
    pub fn parse_cql_name(
        text: &str,
        resolve: &mut dyn FnMut(Option<&str>, &str) -> Option<Arc<UserType>>,
    ) -> Result<Self, NameError> {
        let mut parser = Parser { text, at: 0, resolve };
        let kind = parser.kind(MAX_DEPTH)?;
        parser.blanks();
        if parser.at < text.len() { parser.fail("unexpected text at the end") } else { Ok(kind) }
    }

    /// The native type of this name, in whichever case.
    pub fn native(name: &str) -> Option<Self> {
        let found = NATIVE.iter().find(|(native, _)| native.eq_ignore_ascii_case(name));
        found.map(|(_, kind)| kind.clone())
    }
}

impl std::fmt::Display for CqlType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.cql_name())
    }
}

fn write_name(out: &mut String, kind: &CqlType, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    let (generic, frozen) = match kind {
        CqlType::List { frozen, .. } => ("list", *frozen),
        CqlType::Set { frozen, .. } => ("set", *frozen),
        CqlType::Map { frozen, .. } => ("map", *frozen),
        CqlType::Tuple(_) => ("tuple", true),
        CqlType::Vector { element, dimension } => {
            out.push_str("vector<");
            write_name(out, element, depth);
            return out.push_str(&format!(", {dimension}>"));
        }
        CqlType::Udt { definition, frozen: true } => {
            return out.push_str(&format!("frozen<{}>", maybe_quote(&definition.name)));
        }
        CqlType::Udt { definition, .. } => return out.push_str(&maybe_quote(&definition.name)),
        CqlType::Class(class) => {
            return out.push_str(&format!("'{}'", class.marshal_string()));
        }
        CqlType::Custom(class) => return out.push_str(&format!("'{class}'")),
        native => {
            let name = NATIVE.iter().find(|(_, kind)| kind == native).map(|(name, _)| *name);
            return out.push_str(name.unwrap_or("blob"));
        }
    };
    if frozen {
        out.push_str("frozen<");
    }
    out.push_str(generic);
    out.push('<');
    for (index, inner) in kind.inner().enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        write_name(out, inner, depth);
    }
    out.push_str(if frozen { ">>" } else { ">" });
}

struct Parser<'a, 'r> {
    text: &'a str,
    at: usize,
    resolve: &'r mut dyn FnMut(Option<&str>, &str) -> Option<Arc<UserType>>,
}

impl<'a> Parser<'a, '_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, NameError> {
        Err(NameError::Syntax { text: self.text.to_owned(), at: self.at, what })
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Takes `byte` if it comes next, blanks aside.
    fn take(&mut self, byte: u8) -> bool {
        self.blanks();
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), NameError> {
        if self.take(byte) { Ok(()) } else { self.fail(what) }
    }

    fn run(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// The text up to the closing `quote`, which stands for itself when doubled.
    fn quoted(&mut self, quote: char) -> Result<String, NameError> {
        let mut out = String::new();
        let mut rest = self.text.get(self.at..).unwrap_or_default().chars().peekable();
        while let Some(character) = rest.next() {
            self.at += character.len_utf8();
            if character == quote {
                if rest.peek() != Some(&quote) {
                    return Ok(out);
                }
                rest.next();
                self.at += quote.len_utf8();
            }
            out.push(character);
        }
        self.fail("unexpected end of string")
    }

    fn kind(&mut self, depth: usize) -> Result<CqlType, NameError> {
        let depth = depth.checked_sub(1).ok_or(NameError::Depth)?;
        if self.take(b'\'') {
            return Ok(CqlType::parse_marshal(&self.quoted('\'')?)?.0);
        }
        if self.take(b'"') {
            let name = self.quoted('"')?;
            return self.user_type(name);
        }
        let word = self.run().to_ascii_lowercase();
        if word.is_empty() {
            return self.fail("expecting a type");
        }
        self.blanks();
        if self.peek() == Some(b'<') {
            return self.generic(&word, depth);
        }
        match CqlType::native(&word) {
            Some(kind) if self.peek() != Some(b'.') => Ok(kind),
            _ => self.user_type(word),
        }
    }

    fn generic(&mut self, word: &str, depth: usize) -> Result<CqlType, NameError> {
        self.expect(b'<', "expecting '<'")?;
        let first = self.kind(depth)?;
        let frozen = false;
        let kind = match word {
            "list" => CqlType::List { element: Arc::new(first), frozen },
            "set" => CqlType::Set { element: Arc::new(first), frozen },
            "map" => {
                self.expect(b',', "expecting ','")?;
                let value = Arc::new(self.kind(depth)?);
                CqlType::Map { key: Arc::new(first), value, frozen }
            }
            "tuple" => {
                let mut types = vec![first.freeze()];
                while self.take(b',') {
                    types.push(self.kind(depth)?.freeze());
                }
                CqlType::Tuple(types.into())
            }
            "vector" => {
                self.expect(b',', "expecting ','")?;
                self.blanks();
                let dimension = self.run().parse::<i32>().unwrap_or(0).cast_unsigned();
                if !(1..=i32::MAX.cast_unsigned()).contains(&dimension) {
                    return self.fail("vectors may only have positive dimensions");
                }
                CqlType::Vector { element: Arc::new(first), dimension }
            }
            "frozen" => match first {
                CqlType::List { .. }
                | CqlType::Set { .. }
                | CqlType::Map { .. }
                | CqlType::Tuple(_)
                | CqlType::Vector { .. }
                | CqlType::Udt { .. } => first.freeze(),
                other => return Err(NameError::Frozen(other.cql_name())),
            },
            _ => {
                return self
                    .fail("no type takes parameters but list, set, map, tuple, vector, frozen");
            }
        };
        self.expect(b'>', "expecting '>'")?;
        Ok(kind)
    }

    /// A user type whose name, or keyspace, has been read.
    fn user_type(&mut self, first: String) -> Result<CqlType, NameError> {
        let (keyspace, name) = if self.take(b'.') {
            self.blanks();
            let name =
                if self.take(b'"') { self.quoted('"')? } else { self.run().to_ascii_lowercase() };
            (Some(first), name)
        } else {
            (None, first)
        };
        match (self.resolve)(keyspace.as_deref(), &name) {
            Some(definition) => Ok(CqlType::Udt { definition, frozen: false }),
            None => Err(NameError::Unknown(match keyspace {
                Some(keyspace) => format!("{keyspace}.{name}"),
                None => name,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words() {
        assert!(RESERVED.is_sorted());
        for word in ["select", "TABLE", "Where", "using", "with", "view"] {
            assert!(is_reserved(word), "{word}");
        }
        assert_eq!(maybe_quote("a_1"), "a_1");
        assert_eq!(maybe_quote("A"), "\"A\"");
        assert_eq!(maybe_quote("1a"), "\"1a\"");
        assert_eq!(maybe_quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(maybe_quote("table"), "\"table\"");
        assert_eq!(maybe_quote(""), "\"\"");
    }
}
