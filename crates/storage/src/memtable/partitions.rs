//! The partitions of a memtable in the order of the ring.
//!
//! A map by token alone: a search goes over tokens that lie beside each other, and looks at a key only where its token is
//! the one. Keys of one token are rare (of 64 bits), and stand beside each other in the order of their bytes.

use std::collections::BTreeMap;
use std::ops::Bound;

use types::{Few, Token};

use super::{KeyRef, Partition, PartitionKey};

/// Partitions by key.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    by_token: BTreeMap<Token, Box<Few<Keyed>>>,
    len: usize,
}

#[derive(Debug)]
struct Keyed {
    key: PartitionKey,
    partition: Partition,
}

impl Keyed {
    fn as_pair(&self) -> (&PartitionKey, &Partition) {
        (&self.key, &self.partition)
    }
}

impl Partitions {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, key: KeyRef<'_>) -> Option<&Partition> {
        let same = self.by_token.get(&key.token)?;
        let found = same.iter().find(|one| *one.key.bytes == *key.bytes)?;
        Some(&found.partition)
    }

    /// The partition of a key, an empty one if there was none; and was there none?
    pub fn get_or_insert(&mut self, key: KeyRef<'_>) -> (&mut Partition, bool) {
        let place = |same: &[Keyed]| same.iter().position(|one| *one.key.bytes == *key.bytes);
        let same = self.by_token.entry(key.token).or_default();
        if let Some(place) = place(same) {
            return (&mut same[place].partition, false);
        }
        self.len += 1;
        same.push(Keyed { key: key.to_owned(), partition: Partition::default() });
        same.sort_by(|a, b| a.key.bytes.cmp(&b.key.bytes));
        let place = place(same).unwrap_or_default();
        (&mut same[place].partition, true)
    }

    /// Drops the first so many, or a few more: those of one token go together.
    pub fn remove_first(&mut self, count: usize) {
        let mut removed = 0;
        while removed < count
            && let Some((_, same)) = self.by_token.pop_first()
        {
            removed += same.len();
        }
        self.len -= removed;
    }

    /// Those from a bound on.
    pub fn range(
        &self,
        from: Bound<KeyRef<'_>>,
    ) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        let tokens = match from {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(key) | Bound::Excluded(key) => Bound::Included(key.token),
        };
        let is_before = move |one: &Keyed| match from {
            Bound::Unbounded => false,
            Bound::Included(from) => one.key.as_ref() < from,
            Bound::Excluded(from) => one.key.as_ref() <= from,
        };
        let found = self.by_token.range((tokens, Bound::Unbounded));
        let found = found.flat_map(|(_, same)| same.iter());
        found.skip_while(move |one| is_before(one)).map(Keyed::as_pair)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        self.by_token.values().flat_map(|same| same.iter()).map(Keyed::as_pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(token: i64, bytes: &[u8]) -> PartitionKey {
        PartitionKey { token: Token(token), bytes: bytes.into() }
    }

    #[test]
    fn keys_of_one_token_are_told_apart_and_stand_in_order() {
        let all = [key(-5, b"z"), key(7, b"a"), key(7, b"b"), key(7, b"c"), key(9, b"a")];
        let mut partitions = Partitions::default();
        for at in [3, 0, 2, 4] {
            assert!(partitions.get_or_insert(all[at].as_ref()).1);
        }
        assert!(partitions.get(all[1].as_ref()).is_none());
        assert!(partitions.get_or_insert(all[1].as_ref()).1);
        assert!(all.iter().all(|key| !partitions.get_or_insert(key.as_ref()).1));
        assert!(all.iter().all(|key| partitions.get(key.as_ref()).is_some()));
        assert_eq!(partitions.len(), all.len());
        assert!(partitions.iter().map(|(key, _)| key).eq(&all));
        let from = |bound| partitions.range(bound).map(|(key, _)| key.clone()).collect::<Vec<_>>();
        assert_eq!(from(Bound::Unbounded), all);
        for at in 0..all.len() {
            assert_eq!(from(Bound::Included(all[at].as_ref())), all[at..]);
            assert_eq!(from(Bound::Excluded(all[at].as_ref())), all[at + 1..]);
        }
        // between keys that there are
        let (between, behind) = (key(7, b"bb"), key(8, b""));
        assert_eq!(from(Bound::Included(between.as_ref())), all[3..]);
        assert_eq!(from(Bound::Excluded(behind.as_ref())), all[4..]);
        partitions.remove_first(2);
        assert!(partitions.iter().map(|(key, _)| key).eq(&all[4..]));
        assert_eq!(partitions.len(), 1);
        partitions.remove_first(2);
        assert_eq!((partitions.len(), partitions.iter().count()), (0, 0));
    }
}
