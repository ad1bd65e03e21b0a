//! Values as written: literals, markers, collections, function calls, arithmetic; and the types
//! that casts name.

use types::CqlType;

use super::QualifiedName;

/// The lexical class of a literal. Which CQL type it becomes is decided by the column it meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralKind {
    /// `'..'` or `$$..$$`.
    String,
    /// `-?[0-9]+`, of any length.
    Integer,
    /// Digits with a point or an exponent; `NaN`, `Infinity`, `-Infinity`.
    Float,
    /// `true` or `false`, in any case.
    Boolean,
    /// 8-4-4-4-12 hexadecimal digits.
    Uuid,
    /// `0x` and hexadecimal digits (an odd count is possible here).
    Hex,
    /// `1h30m`, `P1Y2M`, `P2W`, `P0001-02-03T04:05:06`, each with an optional minus.
    Duration,
}

/// A constant: its class and its text. Strings come without quotes and with doubled quotes undone;
/// a negative NaN is written `NaN`, as in Cassandra; all else is as in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Literal {
    /// The lexical class.
    pub kind: LiteralKind,
    /// The text.
    pub text: String,
}

/// The five operators of arithmetic. `*`, `/` and `%` bind tighter than `+` and `-`; all group to
/// the left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// A value to be written or compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// A constant.
    Literal(Literal),
    /// `null`.
    Null,
    /// `?` or `:name`, by number (see [`Parsed::markers`](super::Parsed::markers)).
    Marker(u32),
    /// `[a, b]`: a list or a vector.
    List(Vec<Term>),
    /// `{a, b}`; `{}` is the empty set or map.
    Set(Vec<Term>),
    /// `{k: v}`, never empty.
    Map(Vec<(Term, Term)>),
    /// `{field: v}`, never empty. Of a field that occurs twice the last one counts.
    Udt(Vec<(String, Term)>),
    /// `(a, b)`, at least one.
    Tuple(Vec<Term>),
    /// `f(a, b)`.
    Function(QualifiedName, Vec<Term>),
    /// `CAST(a AS type)`.
    Cast(Box<Term>, NativeType),
    /// `(type) a`.
    TypeHint(RawType, Box<Term>),
    /// `a + b` and so on.
    Binary(Arithmetic, Box<Term>, Box<Term>),
    /// `-a`, where the minus is a token of its own.
    Negate(Box<Term>),
}

/// The native types by the names that the grammar knows. `Varchar` is `Text` under another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum NativeType {
    Ascii,
    Bigint,
    Blob,
    Boolean,
    Counter,
    Date,
    Decimal,
    Double,
    Duration,
    Float,
    Inet,
    Int,
    Smallint,
    Text,
    Time,
    Timestamp,
    Timeuuid,
    Tinyint,
    Uuid,
    Varchar,
    Varint,
}

impl NativeType {
    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ascii => "ascii",
            Self::Bigint => "bigint",
            Self::Blob => "blob",
            Self::Boolean => "boolean",
            Self::Counter => "counter",
            Self::Date => "date",
            Self::Decimal => "decimal",
            Self::Double => "double",
            Self::Duration => "duration",
            Self::Float => "float",
            Self::Inet => "inet",
            Self::Int => "int",
            Self::Smallint => "smallint",
            Self::Text => "text",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timeuuid => "timeuuid",
            Self::Tinyint => "tinyint",
            Self::Uuid => "uuid",
            Self::Varchar => "varchar",
            Self::Varint => "varint",
        }
    }

    /// The type that it names.
    pub fn cql_type(self) -> CqlType {
        match self {
            Self::Ascii => CqlType::Ascii,
            Self::Bigint => CqlType::BigInt,
            Self::Blob => CqlType::Blob,
            Self::Boolean => CqlType::Boolean,
            Self::Counter => CqlType::Counter,
            Self::Date => CqlType::Date,
            Self::Decimal => CqlType::Decimal,
            Self::Double => CqlType::Double,
            Self::Duration => CqlType::Duration,
            Self::Float => CqlType::Float,
            Self::Inet => CqlType::Inet,
            Self::Int => CqlType::Int,
            Self::Smallint => CqlType::SmallInt,
            Self::Text | Self::Varchar => CqlType::Text,
            Self::Time => CqlType::Time,
            Self::Timestamp => CqlType::Timestamp,
            Self::Timeuuid => CqlType::TimeUuid,
            Self::Tinyint => CqlType::TinyInt,
            Self::Uuid => CqlType::Uuid,
            Self::Varint => CqlType::VarInt,
        }
    }
}

/// A type as written, names of user types unresolved.
#[derive(Debug, Clone, PartialEq)]
pub enum RawType {
    /// A native type.
    Native(NativeType),
    /// `list<t>`.
    List(Box<RawType>),
    /// `set<t>`.
    Set(Box<RawType>),
    /// `map<k, v>`.
    Map(Box<RawType>, Box<RawType>),
    /// `tuple<a, b>`, at least one; always frozen, with all that it holds.
    Tuple(Vec<RawType>),
    /// `vector<t, n>`. The dimension is any 32-bit number here, zero and below included.
    Vector(Box<RawType>, i32),
    /// `frozen<t>`; `t` is a collection, tuple, vector, user type or another frozen one.
    Frozen(Box<RawType>),
    /// The name of a user type.
    User(QualifiedName),
    /// `'org.apache...'`: a class of Cassandra's, in its own syntax.
    Custom(String),
}
