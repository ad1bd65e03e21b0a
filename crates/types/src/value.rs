//! Values made of values: iterating over serialized collections, tuples and vectors without
//! copying, and putting them together; numbers out of values.

use crate::cql_type::CqlType;
use crate::decimal::Decimal;
use crate::vint::{ReadError, Reader, WriteBytes};
use num_bigint::BigInt;

/// The elements of a serialized list or set, or the keys and values of a map in turn. Null
/// elements, which only the values of an IN list have, are `None`. Ends after an error.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Elements<'a> {
    /// The elements of a list or set.
    pub fn of_list(value: &'a [u8]) -> Result<Self, ReadError> {
        Self::parts(value, 1)
    }

    /// The keys and values of a map, in turn.
    pub fn of_map(value: &'a [u8]) -> Result<Self, ReadError> {
        Self::parts(value, 2)
    }

    fn parts(value: &'a [u8], each: usize) -> Result<Self, ReadError> {
        let mut reader = Reader::new(value);
        let count = reader.i32()?;
        let Ok(entries) = usize::try_from(count) else {
            return Err(ReadError::Length(count.into()));
        };
        let left = entries.saturating_mul(each);
        // Four bytes an element at the least: what is left is a safe capacity.
        if left.saturating_mul(4) > reader.remaining() {
            return Err(ReadError::End {
                wanted: left.saturating_mul(4),
                left: reader.remaining(),
            });
        }
        Ok(Self { reader, left })
    }

    /// Elements not iterated over yet, keys and values of a map counted apart.
    pub fn left(&self) -> usize {
        self.left
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Option<&'a [u8]>, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = self.reader.int_bytes_or_null();
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

/// The entries of a serialized map. Ends after an error.
#[derive(Clone, Debug)]
pub struct Entries<'a>(Elements<'a>);

impl<'a> Entries<'a> {
    /// The entries of a map.
    pub fn of(value: &'a [u8]) -> Result<Self, ReadError> {
        Elements::of_map(value).map(Self)
    }

    /// Entries not iterated over yet.
    pub fn left(&self) -> usize {
        self.0.left / 2
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut part = || match self.0.next()? {
            Ok(Some(part)) => Some(Ok(part)),
            Ok(None) => Some(Err(ReadError::Length(-1))),
            Err(error) => Some(Err(error)),
        };
        let entry = part()?.and_then(|key| {
            let value = part().unwrap_or(Err(ReadError::End { wanted: 4, left: 0 }));
            value.map(|value| (key, value))
        });
        if entry.is_err() {
            self.0.left = 0;
        }
        Some(entry)
    }
}

/// The components of a serialized tuple or user type; missing ones at the end are not there. Ends
/// after an error.
#[derive(Clone, Debug)]
pub struct Components<'a>(Reader<'a>);

impl<'a> Components<'a> {
    /// The components of a tuple or user type.
    pub fn of(value: &'a [u8]) -> Self {
        Self(Reader::new(value))
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = Result<Option<&'a [u8]>, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let item = self.0.int_bytes_or_null();
        if item.is_err() {
            self.0 = Reader::new(&[]);
        }
        Some(item)
    }
}

/// The elements of a serialized vector. Ends after an error.
#[derive(Clone, Debug)]
pub struct VectorElements<'a> {
    reader: Reader<'a>,
    fixed: Option<usize>,
    left: u32,
}

impl<'a> VectorElements<'a> {
    /// The elements of a vector of `dimension` values of type `element`.
    pub fn of(value: &'a [u8], element: &CqlType, dimension: u32) -> Self {
        let fixed = element.fixed_length();
        // Elements without bytes are all alike, and a dimension without bytes behind it is no
        // bound.
        let left = if fixed == Some(0) { 0 } else { dimension };
        Self { reader: Reader::new(value), fixed, left }
    }

    /// Bytes behind the elements iterated over so far.
    pub fn rest(&self) -> &'a [u8] {
        self.reader.rest()
    }
}

impl<'a> Iterator for VectorElements<'a> {
    type Item = Result<&'a [u8], ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let item = match self.fixed {
            Some(length) => self.reader.bytes(length),
            None => self.reader.vint_bytes(),
        };
        if item.is_err() {
            self.left = 0;
        }
        Some(item)
    }
}

/// A list or set of these elements, which the caller has put in order.
pub fn pack_list<I>(elements: I) -> Vec<u8>
where
    I: IntoIterator,
    I::Item: AsRef<[u8]>,
{
    let mut out = vec![0; 4];
    let mut count = 0_u32;
    for element in elements {
        out.put_int_bytes(element.as_ref());
        count += 1;
    }
    set_count(&mut out, count);
    out
}

/// A list of these elements, of which some may be null: one that is bound, alone.
pub fn pack_nullable_list<B: AsRef<[u8]>>(
    elements: impl IntoIterator<Item = Option<B>>,
) -> Vec<u8> {
    let mut out = vec![0; 4];
    let mut count = 0_u32;
    for element in elements {
        match element {
            Some(element) => out.put_int_bytes(element.as_ref()),
            None => out.put_i32(-1),
        }
        count += 1;
    }
    set_count(&mut out, count);
    out
}

/// A map of these entries, which the caller has put in order of their keys.
pub fn pack_map<I, K, V>(entries: I) -> Vec<u8>
where
    I: IntoIterator<Item = (K, V)>,
    K: AsRef<[u8]>,
    V: AsRef<[u8]>,
{
    let mut out = vec![0; 4];
    let mut count = 0_u32;
    for (key, value) in entries {
        out.put_int_bytes(key.as_ref());
        out.put_int_bytes(value.as_ref());
        count += 1;
    }
    set_count(&mut out, count);
    out
}

fn set_count(out: &mut [u8], count: u32) {
    if let Some(head) = out.first_chunk_mut() {
        *head = count.to_be_bytes();
    }
}

/// A tuple or user type of these components, `None` for null.
pub fn pack_components<I, B>(components: I) -> Vec<u8>
where
    I: IntoIterator<Item = Option<B>>,
    B: AsRef<[u8]>,
{
    let mut out = Vec::new();
    for component in components {
        match component {
            Some(component) => out.put_int_bytes(component.as_ref()),
            None => out.put_i32(-1),
        }
    }
    out
}

/// A vector of these elements of type `element`.
pub fn pack_vector<I>(element: &CqlType, elements: I) -> Vec<u8>
where
    I: IntoIterator,
    I::Item: AsRef<[u8]>,
{
    let fixed = element.fixed_length().is_some();
    let mut out = Vec::new();
    for item in elements {
        if fixed {
            out.put(item.as_ref());
        } else {
            out.put_vint_bytes(item.as_ref());
        }
    }
    out
}

impl CqlType {
    /// A value of a type that holds whole numbers in 8 to 64 bits; `None` for other types, the
    /// empty value and malformed ones. A timestamp counts milliseconds, a time nanoseconds, a date
    /// days since 1970.
    pub fn as_i64(&self, value: &[u8]) -> Option<i64> {
        match self {
            Self::TinyInt => value.as_array().map(|bytes| i8::from_be_bytes(*bytes).into()),
            Self::SmallInt => value.as_array().map(|bytes| i16::from_be_bytes(*bytes).into()),
            Self::Int => value.as_array().map(|bytes| i32::from_be_bytes(*bytes).into()),
            Self::BigInt | Self::Counter | Self::Timestamp | Self::Time => {
                value.as_array().map(|bytes| i64::from_be_bytes(*bytes))
            }
            Self::Date => {
                value.as_array().map(|bytes| i64::from(u32::from_be_bytes(*bytes)) - (1 << 31))
            }
            _ => None,
        }
    }

    /// A value of a number type as a `double`, rounded to the nearest; `None` as [`Self::as_i64`].
    pub fn as_f64(&self, value: &[u8]) -> Option<f64> {
        match self {
            Self::Double => value.as_array().map(|bytes| f64::from_be_bytes(*bytes)),
            Self::Float => value.as_array().map(|bytes| f32::from_be_bytes(*bytes).into()),
            Self::VarInt | Self::Decimal => self.as_decimal(value)?.to_string().parse().ok(),
            _ => self.as_i64(value).map(|number| number as f64),
        }
    }

    /// A value of a type that holds whole numbers, of any size; `None` as [`Self::as_i64`].
    pub fn as_bigint(&self, value: &[u8]) -> Option<BigInt> {
        match self {
            Self::VarInt if value.is_empty() => None,
            Self::VarInt => Some(BigInt::from_signed_bytes_be(value)),
            _ => self.as_i64(value).map(BigInt::from),
        }
    }

    /// A value of a number type as a decimal, exact (as `BigDecimal.valueOf` has it for `float` and
    /// `double`: the digits that they print); `None` as [`Self::as_i64`], and for NaN and
    /// infinities.
    pub fn as_decimal(&self, value: &[u8]) -> Option<Decimal> {
        match self {
            Self::Decimal => Decimal::from_bytes(value),
            Self::Double => Decimal::parse(&crate::float::format_double(self.as_f64(value)?)),
            Self::Float => {
                let number = f32::from_be_bytes(*value.as_array()?);
                Decimal::parse(&crate::float::format_float(number))
            }
            _ => Some(Decimal { unscaled: self.as_bigint(value)?, scale: 0 }),
        }
    }
}
