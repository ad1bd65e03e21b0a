//! A list that most often has one item, which then takes no memory of its own.
//!
//! A request mostly has one key, one row, one update and one slice of its result.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// A list for what a request mostly has one of: keys, rows, updates.
#[derive(Clone)]
pub struct Few<T>(Items<T>);

#[derive(Clone)]
enum Items<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> Few<T> {
    /// Of nothing.
    pub const fn new() -> Self {
        Self(Items::Many(Vec::new()))
    }

    /// Of one item.
    pub const fn one(item: T) -> Self {
        Self(Items::One(item))
    }

    /// Of nothing yet, with room for so many.
    pub fn with_capacity(capacity: usize) -> Self {
        match capacity {
            0 | 1 => Self::new(),
            _ => Self(Items::Many(Vec::with_capacity(capacity))),
        }
    }

    /// The items.
    pub fn as_slice(&self) -> &[T] {
        match &self.0 {
            Items::One(item) => std::slice::from_ref(item),
            Items::Many(items) => items,
        }
    }

    /// Appends an item.
    pub fn push(&mut self, item: T) {
        match &mut self.0 {
            Items::Many(items) if items.capacity() > 0 => items.push(item),
            Items::Many(_) => self.0 = Items::One(item),
            Items::One(_) => {
                let mut items = Vec::from(std::mem::take(self));
                items.push(item);
                self.0 = Items::Many(items);
            }
        }
    }

    /// Takes all items out; the memory of many is kept.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Items::One(_) => self.0 = Items::Many(Vec::new()),
            Items::Many(items) => items.clear(),
        }
    }

    /// Keeps the items for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        match &mut self.0 {
            Items::One(item) if keep(item) => {}
            Items::One(_) => self.clear(),
            Items::Many(items) => items.retain(keep),
        }
    }

    /// Drops of items beside each other that are the same all but the first, as [`Vec::dedup_by`].
    pub fn dedup_by(&mut self, same: impl FnMut(&mut T, &mut T) -> bool) {
        if let Items::Many(items) = &mut self.0 {
            items.dedup_by(same);
        }
    }
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Items::One(item) => std::slice::from_mut(item),
            Items::Many(items) => items,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Few<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Few<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Eq> Eq for Few<T> {}

impl<T: PartialEq> PartialEq<Vec<T>> for Few<T> {
    fn eq(&self, other: &Vec<T>) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T> From<Vec<T>> for Few<T> {
    fn from(items: Vec<T>) -> Self {
        Self(Items::Many(items))
    }
}

impl<T> From<Few<T>> for Vec<T> {
    fn from(few: Few<T>) -> Self {
        match few.0 {
            Items::One(item) => vec![item],
            Items::Many(items) => items,
        }
    }
}

impl<T> Extend<T> for Few<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        if let Items::Many(many) = &mut self.0
            && many.capacity() > 0
        {
            return many.extend(items);
        }
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items = items.into_iter();
        let mut few = Self::with_capacity(items.size_hint().0);
        few.extend(items);
        few
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, many) = match self.0 {
            Items::One(item) => (Some(item), Vec::new()),
            Items::Many(items) => (None, items),
        };
        one.into_iter().chain(many)
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.as_slice().iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Few<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_as_a_vec() {
        for count in 0..5 {
            let (mut few, mut vec) = (Few::new(), Vec::new());
            for item in 0..count {
                few.push(item);
                vec.push(item);
            }
            assert_eq!(few, vec);
            assert_eq!(Vec::from(few.clone()), vec);
            assert_eq!(few.clone().into_iter().collect::<Vec<_>>(), vec);
            assert_eq!((0..count).collect::<Few<_>>(), vec);
            assert_eq!(Few::from(vec.clone()), few);
            few.extend([7, 7]);
            few.dedup_by(|a, b| a == b);
            vec.push(7);
            assert_eq!(few, vec);
            few.retain(|item| item % 2 == 0);
            vec.retain(|item| item % 2 == 0);
            assert_eq!(few, vec);
            few.clear();
            few.push(9);
            assert_eq!(few.as_slice(), [9]);
        }
    }

    #[test]
    fn one_item_goes_where_many_were() {
        let mut few: Few<u8> = Few::one(1);
        few.retain(|_| false);
        assert!(few.is_empty());
        few.push(2);
        few.iter_mut().for_each(|item| *item += 1);
        assert_eq!(few, vec![3]);
    }
}
