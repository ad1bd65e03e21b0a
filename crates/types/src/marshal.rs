//! Type names as Java classes (`db.marshal.TypeParser` and `AbstractType.toString`): in SSTable
//! headers, in the native protocol's custom types, and under the result metadata id.

use crate::cql_type::{ClassType, Component, CqlType, MAX_DEPTH, UserType};
use crate::hex::{from_hex, push_hex};
use std::fmt::Write as _;
use std::sync::Arc;
use thiserror::Error;

/// The package of Cassandra's types, put in front of a class name without dots.
pub(crate) const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// Class names of the native types, without the package.
const NATIVE: [(&str, CqlType); 21] = [
    ("AsciiType", CqlType::Ascii),
    ("BooleanType", CqlType::Boolean),
    ("ByteType", CqlType::TinyInt),
    ("BytesType", CqlType::Blob),
    ("CounterColumnType", CqlType::Counter),
    ("DecimalType", CqlType::Decimal),
    ("DoubleType", CqlType::Double),
    ("DurationType", CqlType::Duration),
    ("EmptyType", CqlType::Empty),
    ("FloatType", CqlType::Float),
    ("InetAddressType", CqlType::Inet),
    ("Int32Type", CqlType::Int),
    ("IntegerType", CqlType::VarInt),
    ("LongType", CqlType::BigInt),
    ("ShortType", CqlType::SmallInt),
    ("SimpleDateType", CqlType::Date),
    ("TimeType", CqlType::Time),
    ("TimeUUIDType", CqlType::TimeUuid),
    ("TimestampType", CqlType::Timestamp),
    ("UTF8Type", CqlType::Text),
    ("UUIDType", CqlType::Uuid),
];

/// Why a class name is no type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MarshalError {
    /// The text does not follow the grammar.
    #[error("Syntax error parsing '{text}' at char {at}: {what}")]
    Syntax {
        /// The whole text.
        text: String,
        /// Where in it, in bytes.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// A type with the wrong number of parameters.
    #[error("{class} takes exactly {wanted} type parameter(s), {given} given")]
    Parameters {
        /// Short name of the class.
        class: &'static str,
        /// How many it takes.
        wanted: usize,
        /// How many there were.
        given: usize,
    },
    /// Types nested deeper than [`MAX_DEPTH`].
    #[error("Types are nested more than {MAX_DEPTH} deep")]
    Depth,
}

impl CqlType {
    /// The type as `AbstractType.toString` writes it: full class names; a frozen collection or user
    /// type inside `FrozenType(...)`, but not once more inside another.
    pub fn to_marshal_string(&self) -> String {
        let mut out = String::new();
        write_type(&mut out, self, false, MAX_DEPTH);
        out
    }

    /// [`Self::to_marshal_string`] of a clustering column, inside `ReversedType(...)` where
    /// descending.
    pub fn to_marshal_string_clustering(&self, reversed: bool) -> String {
        if reversed {
            format!("{PACKAGE}ReversedType({})", self.to_marshal_string())
        } else {
            self.to_marshal_string()
        }
    }

    /// Parses a class name. The flag tells whether it was inside `ReversedType(...)`. Classes that
    /// are neither CQL's nor a [`ClassType`] come back as [`CqlType::Custom`]; no text is
    /// `BytesType`.
    pub fn parse_marshal(text: &str) -> Result<(Self, bool), MarshalError> {
        let mut parser = Parser { text, at: 0 };
        parser.blanks();
        if !parser.peek().is_some_and(is_identifier) {
            return Ok((Self::Blob, false));
        }
        parser.reversible(MAX_DEPTH)
    }
}

/// The class name of a partition key of these types: the type itself, or a `CompositeType` of
/// several.
pub fn key_to_marshal_string(types: &[CqlType]) -> String {
    match types {
        [single] => single.to_marshal_string(),
        several => {
            let inner: Vec<String> = several.iter().map(CqlType::to_marshal_string).collect();
            format!("{PACKAGE}CompositeType({})", inner.join(","))
        }
    }
}

/// The types of a partition key from its class name; undoes [`key_to_marshal_string`].
pub fn parse_key_marshal(text: &str) -> Result<Vec<CqlType>, MarshalError> {
    let mut parser = Parser { text, at: 0 };
    parser.blanks();
    let class = parser.identifier();
    if class.strip_prefix(PACKAGE).unwrap_or(class) != "CompositeType" {
        return Ok(vec![CqlType::parse_marshal(text)?.0]);
    }
    parser.blanks();
    parser.types(MAX_DEPTH)
}

/// `within` is set inside a frozen type, whose inner types do not say again that they are frozen.
fn write_type(out: &mut String, kind: &CqlType, within: bool, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    match kind {
        CqlType::List { element, frozen } => {
            write_frozen(out, "ListType", *frozen, within, &[element], depth);
        }
        CqlType::Set { element, frozen } => {
            write_frozen(out, "SetType", *frozen, within, &[element], depth);
        }
        CqlType::Map { key, value, frozen } => {
            write_frozen(out, "MapType", *frozen, within, &[key, value], depth);
        }
        CqlType::Tuple(types) => {
            push_class(out, "TupleType");
            write_parameters(out, types.iter(), true, depth);
        }
        CqlType::Udt { definition, frozen } => {
            let wrap = *frozen && !within;
            if wrap {
                push_class(out, "FrozenType(");
            }
            write_user_type(out, definition, within || *frozen, depth);
            if wrap {
                out.push(')');
            }
        }
        CqlType::Vector { element, dimension } => {
            push_class(out, "VectorType(");
            write_type(out, element, within, depth);
            let _ = write!(out, " , {dimension})");
        }
        CqlType::Class(class) => out.push_str(&class.marshal_string()),
        CqlType::Custom(class) => out.push_str(class),
        native => {
            let name = NATIVE.iter().find(|(_, kind)| kind == native).map(|(name, _)| *name);
            push_class(out, name.unwrap_or("BytesType"));
        }
    }
}

fn push_class(out: &mut String, class: &str) {
    out.push_str(PACKAGE);
    out.push_str(class);
}

fn write_frozen(
    out: &mut String,
    class: &str,
    frozen: bool,
    within: bool,
    parameters: &[&CqlType],
    depth: usize,
) {
    let wrap = frozen && !within;
    if wrap {
        push_class(out, "FrozenType(");
    }
    push_class(out, class);
    write_parameters(out, parameters.iter().copied(), within || frozen, depth);
    if wrap {
        out.push(')');
    }
}

fn write_parameters<'t>(
    out: &mut String,
    parameters: impl Iterator<Item = &'t CqlType>,
    within: bool,
    depth: usize,
) {
    out.push('(');
    for (index, kind) in parameters.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_type(out, kind, within, depth);
    }
    out.push(')');
}

fn write_user_type(out: &mut String, definition: &UserType, within: bool, depth: usize) {
    push_class(out, "UserType(");
    out.push_str(&definition.keyspace);
    out.push(',');
    push_hex(out, definition.name.as_bytes());
    for (name, kind) in &definition.fields {
        out.push(',');
        push_hex(out, name.as_bytes());
        out.push(':');
        write_type(out, kind, within, depth);
    }
    out.push(')');
}

fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.' | b'_' | b'&')
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self, what: &'static str) -> Result<T, MarshalError> {
        Err(MarshalError::Syntax { text: self.text.to_owned(), at: self.at, what })
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n')) {
            self.at += 1;
        }
    }

    /// Blanks and at most one comma.
    fn separator(&mut self) {
        self.blanks();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.blanks();
        }
    }

    /// The longest run of identifier characters, maybe none.
    fn identifier(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(is_identifier) {
            self.at += 1;
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), MarshalError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            self.fail(what)
        }
    }

    /// A type that may be `ReversedType(...)`, or say so in its parameters.
    fn reversible(&mut self, depth: usize) -> Result<(CqlType, bool), MarshalError> {
        let start = self.at;
        let class = self.identifier();
        if class.strip_prefix(PACKAGE).unwrap_or(class) == "ReversedType" {
            self.blanks();
            let kind = one(self.types(depth)?, "ReversedType")?;
            return Ok((kind, true));
        }
        self.at = start;
        let kind = self.kind(depth)?;
        let reversed = self.peek() == Some(b'(') && self.options()?;
        Ok((kind, reversed))
    }

    /// A type. Parameters of a native type are left where they are.
    fn kind(&mut self, depth: usize) -> Result<CqlType, MarshalError> {
        let depth = depth.checked_sub(1).ok_or(MarshalError::Depth)?;
        self.blanks();
        let start = self.at;
        let class = self.identifier();
        if class.is_empty() {
            return self.fail("expecting a class name");
        }
        self.blanks();
        let short = match class.strip_prefix(PACKAGE) {
            Some(short) => short,
            None if class.contains('.') => return self.custom(start, class),
            None => class,
        };
        let frozen = false;
        match short {
            "FrozenType" => Ok(one(self.types(depth)?, "FrozenType")?.freeze()),
            "ListType" => {
                let element = Arc::new(one(self.types(depth)?, "ListType")?.freeze());
                Ok(CqlType::List { element, frozen })
            }
            "SetType" => {
                let element = Arc::new(one(self.types(depth)?, "SetType")?.freeze());
                Ok(CqlType::Set { element, frozen })
            }
            "MapType" => {
                let types = self.types(depth)?;
                let given = types.len();
                let Ok([key, value]) = <[CqlType; 2]>::try_from(types) else {
                    return Err(MarshalError::Parameters { class: "MapType", wanted: 2, given });
                };
                let (key, value) = (Arc::new(key.freeze()), Arc::new(value.freeze()));
                Ok(CqlType::Map { key, value, frozen })
            }
            "TupleType" => {
                Ok(CqlType::Tuple(self.types(depth)?.into_iter().map(CqlType::freeze).collect()))
            }
            "UserType" => self.user_type(depth),
            "VectorType" => self.vector(depth),
            "ReversedType" => self.fail("ReversedType inside another type"),
            // what a column of these was when its table was created, and is since the next start
            "DateType" => Ok(CqlType::Timestamp),
            "LegacyTimeUUIDType" => Ok(CqlType::TimeUuid),
            "LexicalUUIDType" => Ok(CqlType::Class(Arc::new(ClassType::LexicalUuid))),
            "CompositeType" => {
                let parts = self.components(depth)?;
                if parts.is_empty() {
                    return Err(MarshalError::Parameters {
                        class: "CompositeType",
                        wanted: 1,
                        given: 0,
                    });
                }
                Ok(CqlType::Class(Arc::new(ClassType::Composite(parts))))
            }
            "DynamicCompositeType" => {
                let aliases = if self.peek() == Some(b'(') { self.aliases(depth)? } else { vec![] };
                Ok(CqlType::Class(Arc::new(ClassType::dynamic(aliases))))
            }
            "PartitionerDefinedOrder" => self.ring_order(start, class, depth),
            _ => match NATIVE.iter().find(|(name, _)| *name == short) {
                Some((_, kind)) => Ok(kind.clone()),
                None => self.custom(start, class),
            },
        }
    }

    /// What stands in parentheses, separated by commas or blanks.
    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, MarshalError>,
    ) -> Result<Vec<T>, MarshalError> {
        self.expect(b'(', "expecting '('")?;
        let mut items = Vec::new();
        loop {
            self.separator();
            match self.peek() {
                None => return self.fail("unexpected end of string"),
                Some(b')') => {
                    self.at += 1;
                    return Ok(items);
                }
                Some(_) => items.push(item(self)?),
            }
        }
    }

    /// Types in parentheses.
    fn types(&mut self, depth: usize) -> Result<Vec<CqlType>, MarshalError> {
        self.list(|parser| parser.kind(depth))
    }

    /// Types in parentheses, each maybe reversed.
    fn components(&mut self, depth: usize) -> Result<Vec<Component>, MarshalError> {
        self.list(|parser| parser.component(depth))
    }

    fn component(&mut self, depth: usize) -> Result<Component, MarshalError> {
        let (ty, reversed) = self.reversible(depth)?;
        Ok(Component { ty, reversed })
    }

    /// `letter=>type` in parentheses; of several of one letter the last counts.
    fn aliases(&mut self, depth: usize) -> Result<Vec<(u8, Component)>, MarshalError> {
        let mut aliases: Vec<(u8, Component)> = Vec::new();
        for (letter, component) in self.list(|parser| parser.alias(depth))? {
            match aliases.iter_mut().find(|(known, _)| *known == letter) {
                Some((_, known)) => *known = component,
                None => aliases.push((letter, component)),
            }
        }
        Ok(aliases)
    }

    fn alias(&mut self, depth: usize) -> Result<(u8, Component), MarshalError> {
        let &[letter] = self.identifier().as_bytes() else {
            return self.fail("an alias should be a single character");
        };
        self.blanks();
        self.expect(b'=', "expecting '=>'")?;
        self.expect(b'>', "expecting '=>'")?;
        self.blanks();
        Ok((letter, self.component(depth)?))
    }

    /// The order of a partitioner, maybe with the type of its keys, which makes no difference.
    fn ring_order(
        &mut self,
        start: usize,
        class: &str,
        depth: usize,
    ) -> Result<CqlType, MarshalError> {
        if self.peek() != Some(b'(') {
            return Ok(CqlType::Class(Arc::new(ClassType::RingOrder)));
        }
        let open = self.at;
        self.at += 1;
        self.blanks();
        let Some(order) = ClassType::ring_order(self.identifier()) else {
            self.at = open;
            return self.custom(start, class);
        };
        self.blanks();
        if self.peek() == Some(b':') {
            self.at += 1;
            self.kind(depth)?;
            self.blanks();
        }
        self.expect(b')', "expecting ')'")?;
        Ok(CqlType::Class(Arc::new(order)))
    }

    fn user_type(&mut self, depth: usize) -> Result<CqlType, MarshalError> {
        self.expect(b'(', "expecting '('")?;
        self.separator();
        let keyspace = self.identifier().to_owned();
        self.separator();
        let name = self.hex_name()?;
        let mut fields = Vec::new();
        loop {
            self.separator();
            match self.peek() {
                None => return self.fail("unexpected end of string"),
                Some(b')') => {
                    self.at += 1;
                    let definition = Arc::new(UserType { keyspace, name, fields });
                    return Ok(CqlType::Udt { definition, frozen: false });
                }
                Some(_) => {
                    let field = self.hex_name()?;
                    self.blanks();
                    self.expect(b':', "expecting ':' token")?;
                    fields.push((field, self.kind(depth)?));
                }
            }
        }
    }

    fn hex_name(&mut self) -> Result<String, MarshalError> {
        let name = from_hex(self.identifier()).and_then(|bytes| String::from_utf8(bytes).ok());
        match name {
            Some(name) => Ok(name),
            None => self.fail("expecting a name in hexadecimal"),
        }
    }

    fn vector(&mut self, depth: usize) -> Result<CqlType, MarshalError> {
        self.expect(b'(', "expecting '('")?;
        let element = Arc::new(self.kind(depth)?.freeze());
        self.separator();
        let dimension = self.identifier().parse::<i32>().unwrap_or(0).cast_unsigned();
        if !(1..=i32::MAX.cast_unsigned()).contains(&dimension) {
            return self.fail("vectors may only have positive dimensions");
        }
        self.blanks();
        self.expect(b')', "expecting ')'")?;
        Ok(CqlType::Vector { element, dimension })
    }

    /// `(reversed=true)` and the like behind a native type (`AbstractType.parseDefaultParameters`).
    fn options(&mut self) -> Result<bool, MarshalError> {
        self.expect(b'(', "expecting '('")?;
        let mut reversed = false;
        loop {
            self.separator();
            match self.peek() {
                None => return self.fail("unexpected end of string"),
                Some(b')') => {
                    self.at += 1;
                    return Ok(reversed);
                }
                Some(_) => {
                    let (key, at) = (self.identifier(), self.at);
                    self.blanks();
                    let mut value = "";
                    if self.peek() == Some(b'=') {
                        self.at += 1;
                        self.blanks();
                        value = self.identifier();
                    }
                    if key.is_empty() && self.at == at {
                        return self.fail("unexpected character");
                    }
                    reversed |= key == "reversed" && matches!(value, "" | "true");
                }
            }
        }
    }

    /// A class of somebody else's, kept as it is written, parameters and all.
    fn custom(&mut self, start: usize, class: &str) -> Result<CqlType, MarshalError> {
        let mut end = start + class.len();
        if self.peek() == Some(b'(') {
            let mut open = 0_usize;
            loop {
                match self.peek() {
                    None => return self.fail("unexpected end of string"),
                    Some(b'(') => open += 1,
                    Some(b')') => open -= 1,
                    Some(_) => {}
                }
                self.at += 1;
                if open == 0 {
                    break;
                }
            }
            end = self.at;
        }
        let written = self.text.get(start..end).unwrap_or(class);
        let package = if class.contains('.') { "" } else { PACKAGE };
        Ok(CqlType::Custom(format!("{package}{written}").into()))
    }
}

fn one(types: Vec<CqlType>, class: &'static str) -> Result<CqlType, MarshalError> {
    let given = types.len();
    match <[CqlType; 1]>::try_from(types) {
        Ok([kind]) => Ok(kind),
        Err(_) => Err(MarshalError::Parameters { class, wanted: 1, given }),
    }
}
