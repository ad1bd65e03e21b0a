//! Tokens as distances from a range's left end, so that one range is like another
//! (`Murmur3Partitioner.midpoint`).
//!
//! `midpoint` counts as if the ring's largest token were its least one too. The ring has one
//! position less than there are tokens, and one behind the largest is the second least.

use types::{Token, TokenRange};

/// Positions of the ring.
const RING: u64 = u64::MAX;

/// The distances of a range's tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    left: i64,
    /// That of its right end.
    length: u64,
}

impl Offsets {
    pub fn of(range: TokenRange) -> Self {
        let left = range.left.0;
        Self { left, length: distance(left, range.right.0) }
    }

    pub fn length(self) -> u64 {
        self.length
    }

    /// That of a token, if it is in the range.
    pub fn offset(self, token: Token) -> Option<u64> {
        Some(distance(self.left, token.0)).filter(|offset| *offset <= self.length)
    }

    /// The token there, between the range's ends.
    pub fn token(self, offset: u64) -> Token {
        match self.left.checked_add_unsigned(offset) {
            Some(token) => Token(token),
            // the largest less the least token is the ring's positions
            None => Token(self.left.wrapping_add_unsigned(offset).wrapping_sub_unsigned(RING)),
        }
    }
}

fn distance(left: i64, token: i64) -> u64 {
    match token > left {
        true => token.abs_diff(left),
        false => RING - token.abs_diff(left),
    }
}

/// The midpoint of two offsets; `None` where it is one of them.
pub(super) fn middle(from: u64, to: u64) -> Option<u64> {
    let half = (to - from) / 2;
    (half > 0).then(|| from + half)
}
