//! Ranges of tokens (`dht.Range`).

use crate::token::Token;
use crate::vint::{ReadError, Reader};

/// Tokens after `left` up to `right`; over the ring's end if `left` is not less; all of them if
/// both are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenRange {
    /// Not part of it.
    pub left: Token,
    /// Its last one.
    pub right: Token,
}

impl TokenRange {
    /// All tokens.
    pub const ALL: Self = Self { left: Token::MIN, right: Token::MIN };

    /// Is a token in it?
    pub fn contains(self, token: Token) -> bool {
        match self.left < self.right {
            true => self.left < token && token <= self.right,
            false => self.left < token || token <= self.right,
        }
    }

    /// Ranges without one that goes over the ring's end, in order, none touching another
    /// (`Range.normalize`). One that ends at [`Token::MIN`] goes up to the ring's end.
    pub fn normalize(ranges: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut whole: Vec<Self> = ranges.into_iter().flat_map(Self::unwrap).collect();
        whole.sort_by_key(|range| (range.left, range.end()));
        let mut normal: Vec<Self> = Vec::with_capacity(whole.len());
        for range in whole {
            match normal.last_mut() {
                Some(last) if range.left.0 <= last.end() => {
                    if range.end() > last.end() {
                        last.right = range.right;
                    }
                }
                _ => normal.push(range),
            }
        }
        normal
    }

    /// The one or two ranges that it is without going over the ring's end.
    pub fn unwrap(self) -> impl Iterator<Item = Self> {
        let goes_over = self.left >= self.right && self.right != Token::MIN;
        let tail = Self { left: self.left, right: Token::MIN };
        let head = Self { left: Token::MIN, right: self.right };
        let parts = if goes_over { [Some(tail), Some(head)] } else { [Some(self), None] };
        // from the last token on there is nothing
        parts.into_iter().flatten().filter(|part| part.left != Token::MAX)
    }

    /// Its last token, where the range does not go over the ring's end.
    pub fn end(self) -> i64 {
        if self.right == Token::MIN { i64::MAX } else { self.right.0 }
    }

    /// What is left of a range that does not go over the ring's end, without others. These are to
    /// be [`normalized`](Self::normalize).
    pub fn without(self, others: &[Self]) -> Vec<Self> {
        let (mut left, mut rest) = (self.left, Vec::new());
        for other in others.iter().filter(|other| other.end() > self.left.0) {
            if other.left.0 >= self.end() {
                break;
            }
            if other.left > left {
                rest.push(Self { left, right: other.left });
            }
            if other.end() >= self.end() {
                return rest;
            }
            left = left.max(other.right);
        }
        rest.push(Self { left, right: self.right });
        rest
    }

    /// Is a token in one of these ranges? They are to be [`normalized`](Self::normalize).
    pub fn any_contains(ranges: &[Self], token: Token) -> bool {
        let after = ranges.partition_point(|range| range.left < token);
        let before = after.checked_sub(1).and_then(|before| ranges.get(before));
        // the least token is behind no other and before none
        before.is_some_and(|range| token.0 <= range.end())
    }

    /// Reads what [`Self::write`] wrote.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        Ok(Self { left: Token::read(reader)?, right: Token::read(reader)? })
    }

    /// Writes both tokens.
    pub fn write(self, out: &mut Vec<u8>) {
        self.left.write(out);
        self.right.write(out);
    }
}

#[cfg(test)]
mod tests {
    use super::TokenRange;
    use crate::token::Token;

    fn range(left: i64, right: i64) -> TokenRange {
        TokenRange { left: Token(left), right: Token(right) }
    }

    #[test]
    fn normal_ranges_are_apart_and_in_order() {
        let normal = TokenRange::normalize([range(50, -50), range(-60, -40), range(0, 10)]);
        assert_eq!(normal, [range(i64::MIN, -40), range(0, 10), range(50, i64::MIN)]);
        assert_eq!(TokenRange::normalize([range(3, 3)]), [TokenRange::ALL]);
    }

    #[test]
    fn what_is_left_is_what_the_others_have_not() {
        let others = TokenRange::normalize([range(0, 10), range(20, 30), range(60, -60)]);
        for whole in
            [range(-70, 70), range(5, 25), range(10, 20), range(0, 10), range(-5, i64::MIN)]
        {
            let left = whole.without(&others);
            assert_eq!(TokenRange::normalize(left.clone()), left);
            for token in (-80..80).map(Token) {
                let expected = whole.contains(token) && !TokenRange::any_contains(&others, token);
                assert_eq!(TokenRange::any_contains(&left, token), expected, "{whole:?} {token}");
            }
        }
        assert_eq!(range(3, i64::MIN).without(&[]), [range(3, i64::MIN)]);
    }

    #[test]
    fn a_token_is_in_normal_ranges_as_in_those_they_came_from() {
        let ranges = [range(50, -50), range(-60, -40), range(0, 10), range(10, 20)];
        let normal = TokenRange::normalize(ranges);
        for token in (-70..70).chain([i64::MIN + 1, i64::MAX]) {
            let token = Token(token);
            let expected = ranges.iter().any(|range| range.contains(token));
            assert_eq!(TokenRange::any_contains(&normal, token), expected, "{token}");
        }
    }
}
