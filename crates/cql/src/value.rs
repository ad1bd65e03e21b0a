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

/// Values that are no request's: those of a JSON document, or of a request whose bytes are gone.
#[derive(Clone, Debug, Default)]
pub struct OwnedValues {
    values: Vec<OwnedValue>,
    are_made: bool,
}

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

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Unset => Self::Unset,
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
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
    /// A copy of all values.
    pub fn of(values: &dyn Values) -> Self {
        let copied = (0..values.len()).map(|marker| values.get(marker).into()).collect();
        Self { values: copied, are_made: values.are_made() }
    }

    /// Values that were made here, in the stored form.
    pub fn made(values: Vec<OwnedValue>) -> Self {
        Self { values, are_made: true }
    }
}

impl FromIterator<OwnedValue> for OwnedValues {
    fn from_iter<I: IntoIterator<Item = OwnedValue>>(values: I) -> Self {
        Self { values: values.into_iter().collect(), are_made: false }
    }
}

impl Values for OwnedValues {
    fn len(&self) -> usize {
        self.values.len()
    }

    fn are_made(&self) -> bool {
        self.are_made
    }

    fn get(&self, marker: usize) -> Value<'_> {
        match self.values.get(marker) {
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
