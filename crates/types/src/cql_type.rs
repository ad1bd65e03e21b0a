//! The CQL types.

use std::sync::Arc;

/// How deep types may nest: every walk over types and their values stops there. Cassandra has no
/// such bound; nobody's schema comes near it.
pub const MAX_DEPTH: usize = 64;

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
    /// One of Cassandra's own types that only its Java class names.
    Class(Arc<ClassType>),
    /// A type named by its Java class that is none of the above: kept, described, never computed
    /// with.
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

/// A type by its class; its order, text and checks are in `class`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ClassType {
    /// UUIDs by their two halves, each a signed number (`LexicalUUIDType`).
    LexicalUuid,
    /// Components one after the other, maybe not all of them (`CompositeType`).
    Composite(Vec<Component>),
    /// Components that each name their type, by a letter or in full (`DynamicCompositeType`).
    DynamicComposite(Vec<(u8, Component)>),
    /// Keys in the order of the ring (`PartitionerDefinedOrder`).
    RingOrder,
}

/// The type of a component of such a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Component {
    /// The type.
    pub ty: CqlType,
    /// Do its values compare the other way round?
    pub reversed: bool,
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

    /// The length of a value in the formats of disk and peers when all values have one, in which
    /// case it is not written (`AbstractType.valueLengthIfFixed`). Constant size is not enough:
    /// `smallint`, `tinyint`, `date`, `time` and `counter` are written behind a length.
    #[inline]
    pub fn fixed_length(&self) -> Option<usize> {
        match self {
            Self::Boolean => Some(1),
            Self::Int | Self::Float => Some(4),
            Self::BigInt | Self::Double | Self::Timestamp => Some(8),
            Self::Uuid | Self::TimeUuid => Some(16),
            Self::Empty => Some(0),
            Self::Vector { .. } => self.fixed_vector_length(),
            Self::Class(class) => class.fixed_length(),
            _ => None,
        }
    }

    /// [`Self::fixed_length`] of vectors, of vectors, and so on.
    fn fixed_vector_length(&self) -> Option<usize> {
        let (mut kind, mut length) = (self, 1_usize);
        while let Self::Vector { element, dimension } = kind {
            length = length.checked_mul(usize::try_from(*dimension).ok()?)?;
            kind = element;
        }
        length.checked_mul(kind.fixed_length()?)
    }

    /// Is the empty byte string a value of this type, apart from null (`AbstractType.allowsEmpty`)?
    pub fn allows_empty(&self) -> bool {
        !matches!(
            self,
            Self::Date
                | Self::Time
                | Self::SmallInt
                | Self::TinyInt
                | Self::Duration
                | Self::Empty
                | Self::List { .. }
                | Self::Set { .. }
                | Self::Map { .. }
                | Self::Vector { .. }
        )
    }

    /// Is the empty value of this type a relic without meaning
    /// (`AbstractType.isEmptyValueMeaningless`)? Not so for text and bytes.
    pub fn is_empty_meaningless(&self) -> bool {
        matches!(
            self,
            Self::BigInt
                | Self::Boolean
                | Self::Counter
                | Self::Decimal
                | Self::Double
                | Self::Float
                | Self::Inet
                | Self::Int
                | Self::Timestamp
                | Self::TimeUuid
                | Self::Uuid
                | Self::VarInt
        ) || matches!(self, Self::Class(class) if **class == ClassType::LexicalUuid)
    }

    /// This type with one cell for the whole value (`AbstractType.freeze`): collections freeze what
    /// they hold too, user types do not.
    pub fn freeze(self) -> Self {
        match self {
            Self::List { element, frozen: false } => {
                Self::List { element: freeze_inner(element), frozen: true }
            }
            Self::Set { element, frozen: false } => {
                Self::Set { element: freeze_inner(element), frozen: true }
            }
            Self::Map { key, value, frozen: false } => {
                Self::Map { key: freeze_inner(key), value: freeze_inner(value), frozen: true }
            }
            Self::Udt { definition, .. } => Self::Udt { definition, frozen: true },
            other => other,
        }
    }

    /// The types directly inside this one, in order.
    pub fn inner(&self) -> impl Iterator<Item = &Self> {
        let (pair, list, fields): ([Option<&Self>; 2], &[Self], &[(String, Self)]) = match self {
            Self::List { element, .. }
            | Self::Set { element, .. }
            | Self::Vector { element, .. } => ([Some(element), None], &[], &[]),
            Self::Map { key, value, .. } => ([Some(key), Some(value)], &[], &[]),
            Self::Tuple(types) => ([None, None], types, &[]),
            Self::Udt { definition, .. } => ([None, None], &[], &definition.fields),
            _ => ([None, None], &[], &[]),
        };
        pair.into_iter().flatten().chain(list).chain(fields.iter().map(|(_, kind)| kind))
    }

    /// Does this type or one inside it satisfy `test`? Looks no deeper than [`MAX_DEPTH`].
    pub fn any(&self, test: &mut impl FnMut(&Self) -> bool) -> bool {
        self.any_at(test, MAX_DEPTH)
    }

    fn any_at(&self, test: &mut dyn FnMut(&Self) -> bool, depth: usize) -> bool {
        test(self)
            || depth
                .checked_sub(1)
                .is_some_and(|depth| self.inner().any(|kind| kind.any_at(test, depth)))
    }

    /// Types on the longest way in, this one included; more than [`MAX_DEPTH`] counts as one more.
    pub fn depth(&self) -> usize {
        self.depth_within(MAX_DEPTH)
    }

    fn depth_within(&self, limit: usize) -> usize {
        match limit.checked_sub(1) {
            Some(limit) => 1 + self.inner().map(|kind| kind.depth_within(limit)).max().unwrap_or(0),
            None => 1,
        }
    }
}

fn freeze_inner(kind: Arc<CqlType>) -> Arc<CqlType> {
    if kind.is_multicell() { Arc::new((*kind).clone().freeze()) } else { kind }
}
