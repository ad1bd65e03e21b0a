//! One node of a trie (`io.tries.TrieNode`).
//!
//! ```text
//! u4 type | u4 flags of the payload, 0 for none | transitions | payload
//!  0 none
//!  1 single: the flags are the distance | u8 byte
//!  2 single: u8 byte | u8 distance
//!  3 single: 12 bits from the flags on are the distance | u8 byte
//!  4 single: u8 byte | u16 distance
//!  5..9 sparse: u8 n | n * byte | n * distance of 8, 12, 16, 24, 40 bits
//! 10..15 dense: u8 first | u8 n-1 | n * distance of 12, 16, 24, 32, 40, 64 bits, 0 for no child
//! ```
//!
//! A child stands before its parent: a distance is counted backwards from the parent. No node
//! crosses a page.

use crate::error::{Error, Result};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Leaf,
    /// Its only byte.
    Single(u8),
    /// Bytes in ascending order.
    Sparse,
    /// The first of consecutive bytes.
    Dense(u8),
}

/// A node.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Where it stands in the file.
    position: u64,
    shape: Shape,
    /// Places for children, some of which are empty in a dense node.
    places: usize,
    /// The bytes of a sparse node.
    bytes: &'a [u8],
    /// Bits of a distance.
    bits: usize,
    /// The distances, where `bits` is not 0.
    distances: &'a [u8],
    /// The distance of a node that has it beside its type.
    distance: u64,
    flags: u8,
    payload: &'a [u8],
}

/// Where a byte is, or would be, among a node's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Here is a child.
    At(usize),
    /// None is here; all below are of lesser bytes.
    Before(usize),
}

fn corrupt<T>(component: &'static str, position: u64, what: impl std::fmt::Display) -> Result<T> {
    Err(Error::Corrupt { component, what: format!("node at {position}: {what}") })
}

/// The widths of distances, by type.
const BITS: [usize; 16] = [0, 0, 8, 0, 16, 8, 12, 16, 24, 40, 12, 16, 24, 32, 40, 64];

impl<'a> Node<'a> {
    /// The node at the start of `bytes`, which is at `position` of the file.
    ///
    /// # Errors
    /// If the node goes beyond its bytes or its page.
    pub fn parse(component: &'static str, bytes: &'a [u8], position: u64) -> Result<Self> {
        let in_page = (PAGE_BYTES - position % PAGE_BYTES) as usize;
        let bytes = bytes.get(..in_page).unwrap_or(bytes);
        let Some(node) = Self::read(bytes, position) else {
            return corrupt(component, position, format!("it has only {} bytes", bytes.len()));
        };
        Ok(node)
    }

    fn read(all: &'a [u8], position: u64) -> Option<Self> {
        let (head, rest) = all.split_first()?;
        let (kind, low) = (head >> 4, head & 0x0f);
        let bits = *BITS.get(usize::from(kind))?;
        let mut node = Self {
            position,
            shape: Shape::Leaf,
            places: 0,
            bytes: &[],
            bits,
            distances: &[],
            distance: 0,
            flags: low,
            payload: rest,
        };
        match kind {
            0 => {}
            1 => {
                let (byte, payload) = rest.split_first()?;
                node.single(*byte, u64::from(low), payload);
            }
            3 => {
                let ([more, byte], payload) = rest.split_first_chunk::<2>()?;
                node.single(*byte, u64::from(low) << 8 | u64::from(*more), payload);
            }
            2 | 4 => {
                let (byte, rest) = rest.split_first()?;
                (node.shape, node.places) = (Shape::Single(*byte), 1);
                (node.distances, node.payload) = rest.split_at_checked(bits / 8)?;
            }
            5..=9 => {
                let (count, rest) = rest.split_first()?;
                (node.shape, node.places) = (Shape::Sparse, usize::from(*count));
                let (bytes, rest) = rest.split_at_checked(node.places)?;
                node.bytes = bytes;
                (node.distances, node.payload) =
                    rest.split_at_checked((node.places * bits).div_ceil(8))?;
            }
            _ => {
                let ([first, last], rest) = rest.split_first_chunk::<2>()?;
                (node.shape, node.places) = (Shape::Dense(*first), usize::from(*last) + 1);
                (node.distances, node.payload) =
                    rest.split_at_checked((node.places * bits).div_ceil(8))?;
            }
        }
        Some(node)
    }

    /// A node that keeps its distance where others have the flags of their payload, and so has
    /// none.
    fn single(&mut self, byte: u8, distance: u64, payload: &'a [u8]) {
        (self.shape, self.places) = (Shape::Single(byte), 1);
        (self.distance, self.flags, self.payload) = (distance, 0, payload);
    }

    /// Has it a payload?
    pub fn has_payload(&self) -> bool {
        self.flags != 0
    }

    /// The flags of the payload, and the bytes from its start to the end of the page.
    pub fn payload(&self) -> Option<(u8, &'a [u8])> {
        self.has_payload().then_some((self.flags, self.payload))
    }

    /// Has it children?
    pub fn has_children(&self) -> bool {
        self.places > 0
    }

    /// Looks for a byte.
    pub fn search(&self, byte: u8) -> Search {
        match self.shape {
            Shape::Leaf => Search::Before(0),
            Shape::Single(own) if own == byte => Search::At(0),
            Shape::Single(own) => Search::Before(usize::from(own < byte)),
            Shape::Sparse => match self.bytes.binary_search(&byte) {
                Ok(place) => Search::At(place),
                Err(place) => Search::Before(place),
            },
            Shape::Dense(first) => match byte.checked_sub(first).map(usize::from) {
                None => Search::Before(0),
                Some(place) if place >= self.places => Search::Before(self.places),
                Some(place) if self.distance_at(place) == Some(0) => Search::Before(place),
                Some(place) => Search::At(place),
            },
        }
    }

    fn distance_at(&self, place: usize) -> Option<u64> {
        if place >= self.places {
            return None;
        }
        let start = place * self.bits / 8;
        match self.bits {
            0 => Some(self.distance),
            12 => {
                let two = u16::from_be_bytes(*self.distances.get(start..)?.first_chunk()?);
                Some(u64::from(if place.is_multiple_of(2) { two >> 4 } else { two & 0xfff }))
            }
            bits => {
                let bytes = self.distances.get(start..start + bits / 8)?;
                Some(bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
            }
        }
    }

    /// The child at a place; `None` if the place is empty or beyond the last.
    ///
    /// # Errors
    /// If it would stand before the file's start or not before its parent.
    pub fn child(&self, component: &'static str, place: usize) -> Result<Option<u64>> {
        match self.distance_at(place) {
            None => Ok(None),
            Some(0) if matches!(self.shape, Shape::Dense(_)) => Ok(None),
            Some(distance) => match self.position.checked_sub(distance) {
                Some(child) if child < self.position => Ok(Some(child)),
                _ => corrupt(
                    component,
                    self.position,
                    format!("it has a child {distance} bytes before itself"),
                ),
            },
        }
    }

    /// The first child at a place or after it, and where.
    ///
    /// # Errors
    /// As [`Self::child`].
    pub fn child_from(
        &self,
        component: &'static str,
        place: usize,
    ) -> Result<Option<(usize, u64)>> {
        for place in place..self.places {
            if let Some(child) = self.child(component, place)? {
                return Ok(Some((place, child)));
            }
        }
        Ok(None)
    }

    /// The last child below a place, and where.
    ///
    /// # Errors
    /// As [`Self::child`].
    pub fn child_below(
        &self,
        component: &'static str,
        place: usize,
    ) -> Result<Option<(usize, u64)>> {
        for place in (0..place.min(self.places)).rev() {
            if let Some(child) = self.child(component, place)? {
                return Ok(Some((place, child)));
            }
        }
        Ok(None)
    }

    /// Places for children.
    pub fn places(&self) -> usize {
        self.places
    }
}
