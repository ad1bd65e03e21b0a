//! A list that is short almost always, and then needs no allocation.

use std::ops::{Deref, DerefMut};

/// Entries that are kept in place: two data centres with three replicas each, one more and some on
/// their way.
const INLINE: usize = 10;

/// A list: in place up to ten entries, on the heap beyond.
#[derive(Clone, Debug)]
pub struct Short<T> {
    length: usize,
    inline: [T; INLINE],
    more: Vec<T>,
}

impl<T: Copy + Default> Short<T> {
    /// Appends an entry.
    pub fn push(&mut self, entry: T) {
        if let Some(free) = self.inline.get_mut(self.length) {
            *free = entry;
        } else {
            if self.more.is_empty() {
                self.more.extend_from_slice(&self.inline);
            }
            self.more.push(entry);
        }
        self.length += 1;
    }
}

impl<T: Copy + Default> Default for Short<T> {
    fn default() -> Self {
        Self { length: 0, inline: [T::default(); INLINE], more: Vec::new() }
    }
}

impl<T> Deref for Short<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        if self.length <= INLINE { &self.inline[..self.length] } else { &self.more }
    }
}

impl<T> DerefMut for Short<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.length <= INLINE { &mut self.inline[..self.length] } else { &mut self.more }
    }
}

impl<T: Copy + Default> FromIterator<T> for Short<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut list = Self::default();
        entries.into_iter().for_each(|entry| list.push(entry));
        list
    }
}

impl<T: PartialEq> PartialEq for Short<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq> Eq for Short<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_vector() {
        for length in 0..3 * INLINE {
            let mut list: Short<usize> = (0..length).collect();
            assert_eq!(*list, (0..length).collect::<Vec<_>>()[..]);
            list.reverse();
            assert_eq!(list.first().copied(), length.checked_sub(1));
        }
    }
}
