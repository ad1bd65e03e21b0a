//! The CQL types.

use std::sync::Arc;

/// A CQL type. `Reversed` is no type here: a clustering column carries its order itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CqlType {
    /// US-ASCII string.
    Ascii,
    /// 64-bit signed.
    BigInt,
    /// Bytes.
    Blob,
    /// One byte, zero is false.
    Boolean,
    /// 64-bit counter; stored as a counter context.
    Counter,
    /// Days since -5877641-06-23, unsigned 32-bit, epoch at 2^31.
    Date,
    /// `i32` scale, then a varint.
    Decimal,
    /// IEEE 754 binary64.
    Double,
    /// Months, days and nanoseconds, three signed vints.
    Duration,
    /// The type of no value (`EmptyType`), left behind by COMPACT STORAGE.
    Empty,
    /// IEEE 754 binary32.
    Float,
    /// 4 or 16 address bytes.
    Inet,
    /// 32-bit signed.
    Int,
    /// 16-bit signed.
    SmallInt,
    /// UTF-8; `text` and `varchar` are one type.
    Text,
    /// Nanoseconds since midnight, 64-bit.
    Time,
    /// Milliseconds since the epoch, signed 64-bit.
    Timestamp,
    /// Version 1 UUID.
    TimeUuid,
    /// 8-bit signed.
    TinyInt,
    /// UUID of any version.
    Uuid,
    /// Two's complement, big endian, shortest form.
    VarInt,
    /// `list<element>`; not frozen = one cell an element.
    List {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// One cell for the whole value?
        frozen: bool,
    },
    /// `set<element>`; not frozen = one cell an element.
    Set {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// One cell for the whole value?
        frozen: bool,
    },
    /// `map<key, value>`; not frozen = one cell an entry.
    Map {
        /// Type of the keys.
        key: Arc<CqlType>,
        /// Type of the values.
        value: Arc<CqlType>,
        /// One cell for the whole value?
        frozen: bool,
    },
    /// `tuple<...>`, always frozen.
    Tuple(Arc<[CqlType]>),
    /// A user type; not frozen = one cell a field.
    Udt {
        /// The definition.
        definition: Arc<UserType>,
        /// One cell for the whole value?
        frozen: bool,
    },
    /// `vector<element, dimension>`, always frozen.
    Vector {
        /// Type of the elements.
        element: Arc<CqlType>,
        /// Number of elements, at least 1.
        dimension: u32,
    },
    /// A type named by its Java class that is none of the above: kept, described, never computed with.
    Custom(Arc<str>),
}

/// A user-defined type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserType {
    /// The keyspace it belongs to.
    pub keyspace: String,
    /// Its name.
    pub name: String,
    /// Fields in order of definition; the types of fields are frozen where they are collections.
    pub fields: Vec<(String, CqlType)>,
}

impl CqlType {
    /// One cell an element (a "complex" column)? Cassandra's `AbstractType.isMultiCell`.
    pub fn is_multicell(&self) -> bool {
        matches!(
            self,
            Self::List { frozen: false, .. }
                | Self::Set { frozen: false, .. }
                | Self::Map { frozen: false, .. }
                | Self::Udt { frozen: false, .. }
        )
    }

    /// Is this a list, set or map?
    pub fn is_collection(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Set { .. } | Self::Map { .. })
    }
}
