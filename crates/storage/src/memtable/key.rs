//! The key of a partition with its token: the order of partitions in memory and on disk.

use std::borrow::Borrow;
use std::cmp::Ordering;

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

/// Lets a map of [`PartitionKey`]s be searched by a [`KeyRef`] without a copy.
pub(crate) trait AsKey {
    fn as_key(&self) -> KeyRef<'_>;
}

impl AsKey for PartitionKey {
    fn as_key(&self) -> KeyRef<'_> {
        self.as_ref()
    }
}

impl AsKey for KeyRef<'_> {
    fn as_key(&self) -> KeyRef<'_> {
        *self
    }
}

impl<'a> Borrow<dyn AsKey + 'a> for PartitionKey {
    fn borrow(&self) -> &(dyn AsKey + 'a) {
        self
    }
}

impl PartialEq for dyn AsKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.as_key() == other.as_key()
    }
}

impl Eq for dyn AsKey + '_ {}

impl PartialOrd for dyn AsKey + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn AsKey + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_key().cmp(&other.as_key())
    }
}
