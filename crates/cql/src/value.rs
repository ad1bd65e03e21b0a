//! Bound values, as the request carries them.

/// A value for a bind marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Null.
    Null,
    /// Not set (protocol v4 and later): what the marker stands for is left alone.
    Unset,
    /// Serialized.
    Bytes(&'a [u8]),
}

/// The values of a request by marker. Named values are brought into this order before.
pub trait Values {
    /// Number of values.
    fn len(&self) -> usize;

    /// Are there none?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Were they made here, in the stored form, rather than sent? Then they are taken as they are.
    fn are_made(&self) -> bool {
        false
    }

    /// The value of a marker; [`Value::Unset`] past the end (the count is checked before binding).
    fn get(&self, marker: usize) -> Value<'_>;
}

impl Values for [Value<'_>] {
    fn len(&self) -> usize {
        self.len()
    }

    fn get(&self, marker: usize) -> Value<'_> {
        <[Value<'_>]>::get(self, marker).copied().unwrap_or(Value::Unset)
    }
}

/// The values of a JSON document, made here and in the stored form.
#[derive(Clone, Debug, Default)]
pub struct OwnedValues(Vec<OwnedValue>);

/// A value of [`OwnedValues`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedValue {
    /// Null.
    Null,
    /// Not set.
    Unset,
    /// Serialized.
    Bytes(Vec<u8>),
}

impl From<Bound<'_>> for OwnedValue {
    fn from(value: Bound<'_>) -> Self {
        match value {
            Bound::Null => Self::Null,
            Bound::Unset => Self::Unset,
            Bound::Bytes(bytes) => Self::Bytes(bytes.into_owned()),
        }
    }
}

impl OwnedValues {
    /// Of the values of all markers, in order.
    pub fn made(values: Vec<OwnedValue>) -> Self {
        Self(values)
    }
}

impl Values for OwnedValues {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn are_made(&self) -> bool {
        true
    }

    fn get(&self, marker: usize) -> Value<'_> {
        match self.0.get(marker) {
            Some(OwnedValue::Bytes(value)) => Value::Bytes(value),
            Some(OwnedValue::Null) => Value::Null,
            Some(OwnedValue::Unset) | None => Value::Unset,
        }
    }
}

/// A term's value once bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound<'a> {
    /// Null.
    Null,
    /// Not set.
    Unset,
    /// Serialized, borrowed from the request where it can be.
    Bytes(std::borrow::Cow<'a, [u8]>),
}
