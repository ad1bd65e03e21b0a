//! The bytes of a partition key: copied along the way of a request, and short mostly.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Keys of so many bytes have no memory of their own: numbers, UUIDs, most names. With them a key
/// is 32 bytes.
const INLINE_BYTES: usize = 30;

/// A partition key's bytes.
#[derive(Clone)]
pub struct KeyBytes(Place);

#[derive(Clone)]
enum Place {
    Inline { length: u8, bytes: [u8; INLINE_BYTES] },
    Apart(Box<[u8]>),
}

impl KeyBytes {
    /// Those of these that are short.
    fn inline(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; INLINE_BYTES];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self(Place::Inline { length: key.len() as u8, bytes }))
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Place::Inline { length, bytes } => {
                bytes.get(..usize::from(*length)).unwrap_or_default()
            }
            Place::Apart(bytes) => bytes,
        }
    }
}

impl Default for KeyBytes {
    fn default() -> Self {
        Self(Place::Inline { length: 0, bytes: [0; INLINE_BYTES] })
    }
}

impl Deref for KeyBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl AsRef<[u8]> for KeyBytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Borrow<[u8]> for KeyBytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for KeyBytes {
    fn from(key: &[u8]) -> Self {
        Self::inline(key).unwrap_or_else(|| Self(Place::Apart(key.into())))
    }
}

impl<const N: usize> From<&[u8; N]> for KeyBytes {
    fn from(key: &[u8; N]) -> Self {
        Self::from(&key[..])
    }
}

impl<const N: usize> From<[u8; N]> for KeyBytes {
    fn from(key: [u8; N]) -> Self {
        Self::from(&key[..])
    }
}

impl From<Box<[u8]>> for KeyBytes {
    fn from(key: Box<[u8]>) -> Self {
        Self::inline(&key).unwrap_or(Self(Place::Apart(key)))
    }
}

impl From<Vec<u8>> for KeyBytes {
    fn from(key: Vec<u8>) -> Self {
        Self::inline(&key).unwrap_or_else(|| Self(Place::Apart(key.into())))
    }
}

impl From<Cow<'_, [u8]>> for KeyBytes {
    fn from(key: Cow<'_, [u8]>) -> Self {
        match key {
            Cow::Borrowed(key) => key.into(),
            Cow::Owned(key) => key.into(),
        }
    }
}

impl From<KeyBytes> for Box<[u8]> {
    fn from(key: KeyBytes) -> Self {
        match key.0 {
            Place::Inline { .. } => key.as_slice().into(),
            Place::Apart(bytes) => bytes,
        }
    }
}

impl From<KeyBytes> for Vec<u8> {
    fn from(key: KeyBytes) -> Self {
        Box::<[u8]>::from(key).into()
    }
}

impl PartialEq for KeyBytes {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for KeyBytes {}

impl PartialEq<Box<[u8]>> for KeyBytes {
    fn eq(&self, other: &Box<[u8]>) -> bool {
        self[..] == other[..]
    }
}

impl PartialEq<KeyBytes> for Box<[u8]> {
    fn eq(&self, other: &KeyBytes) -> bool {
        self[..] == other[..]
    }
}

impl Ord for KeyBytes {
    fn cmp(&self, other: &Self) -> Ordering {
        self[..].cmp(&other[..])
    }
}

impl PartialOrd for KeyBytes {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for KeyBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_the_same_wherever_they_are() {
        for length in 0..=2 * INLINE_BYTES {
            let bytes: Vec<u8> = (0..length as u8).collect();
            let key = KeyBytes::from(&bytes[..]);
            assert_eq!(&*key, &*bytes);
            assert_eq!(key, KeyBytes::from(bytes.clone()));
            assert_eq!(key, KeyBytes::from(bytes.clone().into_boxed_slice()));
            assert_eq!(Vec::from(key.clone()), bytes);
            assert_eq!(key.cmp(&KeyBytes::from(b"\x05")), bytes[..].cmp(b"\x05"));
        }
        assert_eq!(size_of::<KeyBytes>(), 32);
    }
}
