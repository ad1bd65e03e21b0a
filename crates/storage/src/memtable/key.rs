//! The key of a partition with its token: the order of partitions in memory and on disk.

use types::{KeyBytes, Token};

/// A partition key and its token (`DecoratedKey`): ordered by token, then by the key's bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey {
    /// Token of the key.
    pub token: Token,
    /// The serialized key.
    pub bytes: KeyBytes,
}

impl PartitionKey {
    /// The key with its token.
    pub fn new(bytes: impl Into<KeyBytes>) -> Self {
        let bytes = bytes.into();
        Self { token: Token::of(&bytes), bytes }
    }

    /// A view of it.
    pub fn as_ref(&self) -> KeyRef<'_> {
        KeyRef { token: self.token, bytes: &self.bytes }
    }
}

/// The borrowed form of a [`PartitionKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRef<'a> {
    /// Token of the key.
    pub token: Token,
    /// The serialized key.
    pub bytes: &'a [u8],
}

impl KeyRef<'_> {
    /// Its own copy.
    pub fn to_owned(self) -> PartitionKey {
        PartitionKey { token: self.token, bytes: self.bytes.into() }
    }
}
