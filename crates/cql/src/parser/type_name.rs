//! Names of types.

use super::{K, Parser, Res, class_name};
use crate::ast::{NativeType, QualifiedName, RawType};
use crate::lexer::Kind;

/// Unquoted names that no user type may have.
const RESERVED_TYPE_NAMES: &[&str] =
    &["bitstring", "byte", "complex", "enum", "interval", "macaddr"];

impl Parser<'_> {
    pub(super) fn data_type(&mut self) -> Res<RawType> {
        let data_type = self.nested(Self::data_type_inner)?;
        self.looked_ahead();
        Ok(data_type)
    }

    fn data_type_inner(&mut self) -> Res<RawType> {
        if self.kind() == Kind::String {
            return self.custom_type();
        }
        if self.kind_at(1) == Kind::Dot {
            return Ok(RawType::User(self.type_name()?));
        }
        if self.kind_at(1) == Kind::Less
            && let Kind::Keyword(
                word @ (K::Map | K::List | K::Set | K::Tuple | K::Vector | K::Frozen),
            ) = self.kind()
        {
            self.skip();
            self.skip();
            let data_type = self.parameters(word)?;
            self.expect(Kind::Greater, "'>'")?;
            return Ok(data_type);
        }
        match self.native_here() {
            Some(native) => {
                self.skip();
                Ok(RawType::Native(native))
            }
            None => Ok(RawType::User(self.type_name()?)),
        }
    }

    /// What stands between `<` and `>`.
    fn parameters(&mut self, word: K) -> Res<RawType> {
        match word {
            K::List => Ok(RawType::List(Box::new(self.data_type()?))),
            K::Set => Ok(RawType::Set(Box::new(self.data_type()?))),
            K::Map => {
                let key = self.data_type()?;
                self.expect(Kind::Comma, "','")?;
                Ok(RawType::Map(Box::new(key), Box::new(self.data_type()?)))
            }
            K::Tuple => Ok(RawType::Tuple(self.comma_list(Self::data_type)?)),
            K::Vector => {
                let element = self.data_type()?;
                self.expect(Kind::Comma, "','")?;
                Ok(RawType::Vector(Box::new(element), self.dimension()?))
            }
            _ => {
                let inner = self.data_type()?;
                match &inner {
                    RawType::Native(native) => self.unfreezable(native.name()),
                    RawType::Custom(class) => self.unfreezable(class),
                    _ => Ok(RawType::Frozen(Box::new(inner))),
                }
            }
        }
    }

    fn unfreezable(&self, what: &str) -> Res<RawType> {
        self.rule(format!(
            "frozen<> is only allowed on collections, tuples, and user-defined types (got {what})"
        ))
    }

    fn dimension(&mut self) -> Res<i32> {
        if self.kind() != Kind::Integer {
            return self.mismatch("INTEGER");
        }
        let source = self.source();
        match source.parse() {
            Ok(dimension) => {
                self.skip();
                Ok(dimension)
            }
            Err(_) => self.rule(format!(
                "Failed parsing statement: [{}] reason: NumberFormatException For input string: \"{source}\"",
                self.text
            )),
        }
    }

    /// The name of a native type.
    pub(super) fn native_type(&mut self) -> Res<NativeType> {
        match self.native_here() {
            Some(native) => {
                self.skip();
                Ok(native)
            }
            None => self.no_viable(),
        }
    }

    fn native_here(&self) -> Option<NativeType> {
        let Kind::Keyword(word) = self.kind() else { return None };
        Some(match word {
            K::Ascii => NativeType::Ascii,
            K::Bigint => NativeType::Bigint,
            K::Blob => NativeType::Blob,
            K::Boolean => NativeType::Boolean,
            K::Counter => NativeType::Counter,
            K::Date => NativeType::Date,
            K::Decimal => NativeType::Decimal,
            K::Double => NativeType::Double,
            K::Duration => NativeType::Duration,
            K::Float => NativeType::Float,
            K::Inet => NativeType::Inet,
            K::Int => NativeType::Int,
            K::Smallint => NativeType::Smallint,
            K::Text => NativeType::Text,
            K::Time => NativeType::Time,
            K::Timestamp => NativeType::Timestamp,
            K::Timeuuid => NativeType::Timeuuid,
            K::Tinyint => NativeType::Tinyint,
            K::Uuid => NativeType::Uuid,
            K::Varchar => NativeType::Varchar,
            K::Varint => NativeType::Varint,
            _ => return None,
        })
    }

    /// `[keyspace.]type` of a user type.
    pub(super) fn type_name(&mut self) -> Res<QualifiedName> {
        let keyspace = if self.kind_at(1) == Kind::Dot {
            let keyspace = self.name()?;
            self.skip();
            Some(keyspace)
        } else {
            None
        };
        match self.kind() {
            Kind::Ident if RESERVED_TYPE_NAMES.contains(&self.source()) => {
                self.rule(format!("Invalid (reserved) user type name {}", self.source()))
            }
            Kind::Ident | Kind::QuotedName => Ok(QualifiedName { keyspace, name: self.name()? }),
            Kind::Keyword(word) if word.names_type() => {
                Ok(QualifiedName { keyspace, name: self.name()? })
            }
            _ => self.no_viable(),
        }
    }

    /// `'class(parameters)'`.
    fn custom_type(&mut self) -> Res<RawType> {
        let class = self.string()?;
        match class_name::refusal(&class) {
            Some(message) => self.rule(message),
            None => Ok(RawType::Custom(class)),
        }
    }

    /// The type of `(type) value`, if that is what the parenthesis here starts: it and its
    /// parentheses are then taken. No term is a bare name, so a type before the closing parenthesis
    /// settles it, but for a class name in quotes: that may be a tuple of one string, unless a term
    /// follows.
    pub(super) fn type_hint(&mut self) -> Res<Option<RawType>> {
        match (self.kind_at(1), self.kind_at(2)) {
            (Kind::String, Kind::CloseParen) if self.starts_simple_term(3) => {
                self.skip();
                let data_type = self.custom_type()?;
                self.skip();
                Ok(Some(data_type))
            }
            (Kind::String, _) => Ok(None),
            _ => Ok(self.guess_type()),
        }
    }

    /// `(type)`, or nothing taken.
    pub(super) fn guess_type(&mut self) -> Option<RawType> {
        let mark = self.mark();
        self.skip();
        match self.data_type() {
            Ok(data_type) if self.eat(Kind::CloseParen) => Some(data_type),
            _ => {
                self.go_back(mark);
                None
            }
        }
    }
}
