//! The bytes of a partition key: the value itself for one column, `CompositeType` for several:
//! a component = u16 length, bytes, one zero byte (`db.marshal.CompositeType`).

use std::cmp::Ordering;

use types::{CqlType, KeyBytes};

use crate::table::Table;

/// The longest partition key, in bytes (`FBUtilities.MAX_UNSIGNED_SHORT`).
pub const MAX_KEY_LENGTH: usize = u16::MAX as usize;

/// Why bytes are no partition key of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A number of components other than the table's.
    #[error("{got} components for a partition key of {want}")]
    Arity {
        /// Columns of the partition key.
        want: usize,
        /// Components given.
        got: usize,
    },
    /// Too long, as a whole or a component.
    #[error("Key length of {0} is longer than maximum of {MAX_KEY_LENGTH}")]
    TooLong(usize),
    /// A composite whose lengths do not add up.
    #[error("malformed composite partition key")]
    Malformed,
}

impl Table {
    /// The partition key's bytes, from one value a column of the key.
    pub fn partition_key_bytes<V: AsRef<[u8]>>(&self, values: &[V]) -> Result<KeyBytes, KeyError> {
        if values.len() != self.partition_key.len() {
            return Err(KeyError::Arity { want: self.partition_key.len(), got: values.len() });
        }
        let key: KeyBytes = match values {
            [value] => value.as_ref().into(),
            _ => compose(values)?.into(),
        };
        if key.len() > MAX_KEY_LENGTH { Err(KeyError::TooLong(key.len())) } else { Ok(key) }
    }

    /// The values of the columns of the partition key, from its bytes.
    pub fn partition_key_values<'a>(&self, key: &'a [u8]) -> Result<Vec<&'a [u8]>, KeyError> {
        if self.partition_key.len() == 1 {
            return Ok(vec![key]);
        }
        let mut values = Vec::with_capacity(self.partition_key.len());
        let mut rest = key;
        while let Some((length, after)) = rest.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            let (value, after) = after.split_at_checked(length).ok_or(KeyError::Malformed)?;
            values.push(value);
            rest = after.get(1..).ok_or(KeyError::Malformed)?;
        }
        if !rest.is_empty() {
            return Err(KeyError::Malformed);
        }
        if values.len() != self.partition_key.len() {
            return Err(KeyError::Arity { want: self.partition_key.len(), got: values.len() });
        }
        Ok(values)
    }

    /// A partition's key as plain text: components between colons
    /// (`AbstractCompositeType.getString`).
    pub fn key_text(&self, key: &[u8]) -> String {
        let values = self.partition_key_values(key).unwrap_or_default();
        let values = self.partition_key.iter().zip(values);
        let texts: Vec<String> = values.map(|(column, value)| column.ty.to_text(value)).collect();
        match texts.as_slice() {
            [text] => text.clone(),
            texts => texts.iter().map(|text| escaped(text)).collect::<Vec<_>>().join(":"),
        }
    }

    /// Is there no ring to spread keys over, and so the token of a key the key itself
    /// (`LocalPartitioner`)? So it is in all virtual tables but `streaming`, of which nobody said
    /// so.
    pub fn is_ordered_by_key(&self) -> bool {
        self.is_virtual() && self.name != "streaming"
    }

    /// The type of `token()`: that of the ring, or of the key itself.
    pub fn token_type(&self) -> CqlType {
        if !self.is_ordered_by_key() {
            return CqlType::BigInt;
        }
        match self.partition_key.as_slice() {
            [column] => column.ty.clone(),
            columns => {
                let types: Vec<_> = columns.iter().map(|column| column.ty.clone()).collect();
                CqlType::Custom(types::key_to_marshal_string(&types).into())
            }
        }
    }

    /// The order of keys where they are their own tokens: column by column, as their types order
    /// them.
    pub fn compare_keys(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (Ok(left), Ok(right)) = (self.partition_key_values(a), self.partition_key_values(b))
        else {
            return a.cmp(b); // one is no key of this table
        };
        let mut values = self.partition_key.iter().zip(left.iter().zip(right));
        let order = values.find_map(|(column, (left, right))| {
            Some(column.ty.compare(left, right)).filter(|order| order.is_ne())
        });
        order.unwrap_or(Ordering::Equal)
    }
}

fn escaped(text: &str) -> String {
    let mut text = text.replace(':', "\\:");
    if text.ends_with(['\\', '!']) {
        text.push('!');
    }
    text
}

fn compose<V: AsRef<[u8]>>(values: &[V]) -> Result<Vec<u8>, KeyError> {
    let mut key = Vec::with_capacity(values.iter().map(|v| v.as_ref().len() + 3).sum());
    for value in values {
        let value = value.as_ref();
        let length = u16::try_from(value.len()).map_err(|_| KeyError::TooLong(value.len()))?;
        key.extend_from_slice(&length.to_be_bytes());
        key.extend_from_slice(value);
        key.push(0);
    }
    Ok(key)
}
