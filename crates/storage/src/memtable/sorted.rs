//! A sorted sequence in chunks: what a partition keeps its rows in.
//!
//! A B-tree of two levels. The order is the caller's (a table's clustering order needs the table),
//! so every search takes a comparison. Appending in order, the common case, moves nothing.

use std::cmp::Ordering;

/// Items of one chunk at most; a full one splits in two.
const CHUNK_ITEMS_MAX: usize = 128;

/// Sorted items. One alone, which is all that most partitions have, takes no memory of its own.
#[derive(Debug)]
pub struct Sorted<T> {
    items: Items<T>,
    len: usize,
}

#[derive(Debug)]
enum Items<T> {
    One(T),
    Chunks(Vec<Vec<T>>),
}

/// A place in a [`Sorted`]: valid until the next insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    chunk: usize,
    item: usize,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { items: Items::Chunks(Vec::new()), len: 0 }
    }
}

impl<T> Sorted<T> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No item?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn chunks(&self) -> usize {
        match &self.items {
            Items::One(_) => 1,
            Items::Chunks(chunks) => chunks.len(),
        }
    }

    fn chunk(&self, n: usize) -> Option<&[T]> {
        match &self.items {
            Items::One(item) => (n == 0).then_some(std::slice::from_ref(item)),
            Items::Chunks(chunks) => chunks.get(n).map(Vec::as_slice),
        }
    }

    /// The item at a place.
    pub fn get(&self, place: Place) -> Option<&T> {
        self.chunk(place.chunk)?.get(place.item)
    }

    /// The item at a place, to be changed without changing its order.
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        match &mut self.items {
            Items::One(item) => (place == Place { chunk: 0, item: 0 }).then_some(item),
            Items::Chunks(chunks) => chunks.get_mut(place.chunk)?.get_mut(place.item),
        }
    }

    /// The first place.
    pub fn first(&self) -> Place {
        Place { chunk: 0, item: 0 }
    }

    /// The place of the last item, if there is one.
    pub fn last(&self) -> Option<Place> {
        let chunk = self.chunks().checked_sub(1)?;
        Some(Place { chunk, item: self.chunk(chunk)?.len() - 1 })
    }

    /// The place after this one; `get` gives `None` there past the last item.
    pub fn next(&self, place: Place) -> Place {
        match self.chunk(place.chunk) {
            Some(chunk) if place.item + 1 < chunk.len() => {
                Place { chunk: place.chunk, item: place.item + 1 }
            }
            _ => Place { chunk: place.chunk + 1, item: 0 },
        }
    }

    /// The place before this one.
    pub fn previous(&self, place: Place) -> Option<Place> {
        if place.item > 0 {
            return Some(Place { chunk: place.chunk, item: place.item - 1 });
        }
        let chunk = place.chunk.checked_sub(1)?;
        Some(Place { chunk, item: self.chunk(chunk)?.len() - 1 })
    }

    /// Where the item lies for which `order` (of an item to the one sought) is `Equal`, or where it
    /// would be inserted: the first place whose item is greater.
    pub fn find(&self, mut order: impl FnMut(&T) -> Ordering) -> Result<Place, Place> {
        let chunks = match &self.items {
            Items::One(item) => {
                return match order(item) {
                    Ordering::Equal => Ok(self.first()),
                    Ordering::Greater => Err(self.first()),
                    Ordering::Less => Err(Place { chunk: 1, item: 0 }),
                };
            }
            Items::Chunks(chunks) => chunks,
        };
        // the last chunk whose first item is not greater
        let after = chunks.partition_point(|chunk| order(&chunk[0]) != Ordering::Greater);
        let Some(chunk) = after.checked_sub(1) else { return Err(self.first()) };
        match chunks[chunk].binary_search_by(order) {
            Ok(item) => Ok(Place { chunk, item }),
            Err(item) if item == chunks[chunk].len() => Err(Place { chunk: chunk + 1, item: 0 }),
            Err(item) => Err(Place { chunk, item }),
        }
    }

    /// Inserts before a place that `find` gave.
    pub fn insert(&mut self, place: Place, item: T) {
        self.len += 1;
        if self.len == 1 {
            self.items = Items::One(item);
            return;
        }
        let chunks = self.as_chunks();
        // a new item between two chunks goes to the end of the earlier one
        let (chunk, at) = match place.item == 0 && place.chunk > 0 {
            true => (place.chunk - 1, chunks[place.chunk - 1].len()),
            false => (place.chunk, place.item),
        };
        if chunks[chunk].len() < CHUNK_ITEMS_MAX {
            chunks[chunk].insert(at, item);
            return;
        }
        // Ascending insertion leaves full chunks behind, not half empty ones.
        let split = if at == CHUNK_ITEMS_MAX { CHUNK_ITEMS_MAX } else { CHUNK_ITEMS_MAX / 2 };
        let mut tail = chunks[chunk].split_off(split);
        match at.checked_sub(split) {
            Some(at) => tail.insert(at, item),
            None => chunks[chunk].insert(at, item),
        }
        chunks.insert(chunk + 1, tail);
    }

    /// The chunks; one item alone becomes the first of one.
    fn as_chunks(&mut self) -> &mut Vec<Vec<T>> {
        if let Items::One(_) = &self.items {
            let one = std::mem::replace(&mut self.items, Items::Chunks(Vec::new()));
            if let (Items::One(item), Items::Chunks(chunks)) = (one, &mut self.items) {
                chunks.push(vec![item]);
            }
        }
        match &mut self.items {
            Items::Chunks(chunks) => chunks,
            Items::One(_) => unreachable!("made chunks above"),
        }
    }

    /// The items in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (one, chunks) = match &self.items {
            Items::One(item) => (Some(item), [].as_slice()),
            Items::Chunks(chunks) => (None, chunks.as_slice()),
        };
        one.into_iter().chain(chunks.iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_set(values in prop::collection::vec(0u32..2000, 0..1500), probe in 0u32..2000) {
            let mut sorted = Sorted::default();
            let mut model = BTreeSet::new();
            for value in values {
                match sorted.find(|item: &u32| item.cmp(&value)) {
                    Ok(place) => prop_assert_eq!(sorted.get(place), Some(&value)),
                    Err(place) => {
                        prop_assert!(model.insert(value));
                        sorted.insert(place, value);
                    }
                }
            }
            prop_assert_eq!(sorted.len(), model.len());
            prop_assert!(sorted.iter().eq(model.iter()));
            let place = sorted.find(|item| item.cmp(&probe)).unwrap_or_else(|place| place);
            prop_assert_eq!(sorted.get(place), model.range(probe..).next());
            let before = sorted.previous(place).and_then(|place| sorted.get(place));
            prop_assert_eq!(before, model.range(..probe).next_back());
            let mut place = sorted.first();
            for expected in &model {
                prop_assert_eq!(sorted.get(place), Some(expected));
                place = sorted.next(place);
            }
            prop_assert_eq!(sorted.get(place), None);
            prop_assert_eq!(sorted.last().and_then(|place| sorted.get(place)), model.last());
        }

        #[test]
        fn ascending_insertion_fills_chunks(n in 1usize..1000) {
            let mut sorted = Sorted::default();
            for value in 0..n {
                let place = sorted.find(|item: &usize| item.cmp(&value)).unwrap_err();
                sorted.insert(place, value);
            }
            prop_assert_eq!(sorted.chunks(), n.div_ceil(CHUNK_ITEMS_MAX));
        }
    }
}
