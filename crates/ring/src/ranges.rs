//! Ranges of the ring by node, and shares of it.

use types::{Token, TokenRange};

use crate::node::NodeIndex;
use crate::placement::{Placement, Replicas};
use crate::ring::Ring;

/// A range and the nodes that have it: what `nodetool describering` prints of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeRow<'a> {
    /// The range.
    pub range: TokenRange,
    /// Who has it, the primary replica first.
    pub replicas: &'a [NodeIndex],
}

impl Placement {
    /// The ring's ranges, in the order of their ends. Of each node for itself: one of all.
    pub fn ranges(&self) -> impl Iterator<Item = RangeRow<'_>> {
        let tokens = &self.layout.owners.tokens;
        let last = tokens.last().map_or(Token::MIN, |(token, _)| *token);
        let lefts = std::iter::once(last).chain(tokens.iter().map(|(token, _)| *token));
        let ranges = lefts.zip(tokens).map(|(left, (right, _))| TokenRange { left, right: *right });
        let whole = self.is_local.then_some(TokenRange::ALL);
        let ranges = ranges.filter(|_| !self.is_local).chain(whole);
        ranges.map(|range| RangeRow { range, replicas: self.at(range.right).natural })
    }

    /// Ranges of which a node is a replica.
    pub fn ranges_of(&self, node: NodeIndex) -> impl Iterator<Item = TokenRange> {
        self.ranges().filter(move |row| row.replicas.contains(&node)).map(|row| row.range)
    }

    /// Ranges of which a node is the primary replica: over all nodes, each range once.
    pub fn primary_ranges(&self, node: NodeIndex) -> impl Iterator<Item = TokenRange> {
        self.ranges().filter(move |row| row.replicas.first() == Some(&node)).map(|row| row.range)
    }

    /// Ranges of which a node is the first replica in its data centre: over its nodes, each range
    /// once that it has.
    pub fn primary_ranges_within_center(
        &self,
        node: NodeIndex,
    ) -> impl Iterator<Item = TokenRange> {
        let center = self.layout.place(node).center;
        let is_here = move |other: &&NodeIndex| self.layout.place(**other).center == center;
        let is_first = move |row: &RangeRow<'_>| row.replicas.iter().find(is_here) == Some(&node);
        self.ranges().filter(is_first).map(|row| row.range)
    }

    /// Ranges of which a node is about to be a replica.
    pub fn pending_ranges_of(&self, node: NodeIndex) -> impl Iterator<Item = TokenRange> {
        let is_pending = move |replicas: &Replicas<'_>| replicas.gaining().contains(&node);
        let pieces = self.pieces().filter(move |(_, _, replicas)| is_pending(replicas));
        pieces.map(|(left, right, _)| TokenRange { left, right })
    }

    /// Is a node about to be a replica of anything, or was it one until just now?
    pub fn changes_for(&self, node: NodeIndex) -> bool {
        self.pieces().any(|(_, _, replicas)| replicas.pending.contains(&node))
    }

    /// Is anybody about to be a replica of anything?
    pub fn has_pending(&self) -> bool {
        self.pieces().any(|(_, _, replicas)| !replicas.gaining().is_empty())
    }

    /// What part of the data each node has ("Owns (effective)"), by the place of the node; none of
    /// who owns no tokens. Means nothing where each node is for itself.
    pub fn effective_ownership(&self) -> Vec<Option<f32>> {
        let owners = &self.layout.owners;
        let mut owned = vec![None; self.layout.places.len()];
        owners.members.iter().for_each(|node| owned[node.at()] = Some(0.0));
        let tokens: Vec<Token> = owners.tokens.iter().map(|(token, _)| *token).collect();
        for (token, share) in tokens.iter().zip(shares(&tokens)) {
            for node in self.at(*token).natural {
                if let Some(sum) = &mut owned[node.at()] {
                    *sum += share;
                }
            }
        }
        owned
    }
}

impl Ring {
    /// What part of the ring each node owns, without replicas ("Owns"), by the place of the node;
    /// none of who owns no tokens.
    pub fn ownership(&self) -> Vec<Option<f32>> {
        let tokens: Vec<Token> = self.tokens().iter().map(|(token, _)| *token).collect();
        let mut owned = vec![None; self.nodes().len()];
        for ((_, node), share) in self.tokens().iter().zip(shares(&tokens)) {
            *owned[node.at()].get_or_insert(0.0) += share;
        }
        owned
    }

    /// Tokens at which a scan has to be cut, for replicas differ on both sides: those from the
    /// token that it begins at on and before the one that it ends at, if it does before the ring's
    /// end. The piece up to a cut has the replicas of the cut's token; the last one those of its
    /// end's, [`Token::MIN`] at the ring's.
    pub fn cuts(&self, first: Token, last: Option<Token>) -> impl Iterator<Item = Token> {
        let tokens = self.tokens();
        let from = tokens.partition_point(|(token, _)| *token < first);
        let to = last.map_or(tokens.len(), |last| tokens.partition_point(|(t, _)| *t < last));
        tokens.get(from..to).unwrap_or_default().iter().map(|(token, _)| *token)
    }
}

/// Tokens of the ring as Cassandra counts them for shares: `2^64 - 2`.
const TOKENS: i128 = (1 << 64) - 2;
/// Shares are rounded to this part.
const PART: i128 = 1_000_000;

/// What part of the ring ends with each token (`Murmur3Partitioner.describeOwnership`).
fn shares(tokens: &[Token]) -> Vec<f32> {
    let [first, .., last] = tokens else { return vec![1.0; tokens.len()] };
    let mut before = *last;
    let share = |left: Token, right: Token| {
        let length = (i128::from(right.0) - i128::from(left.0)).rem_euclid(TOKENS);
        let (whole, rest) = (length * PART / TOKENS, length * PART % TOKENS);
        let is_up = rest * 2 > TOKENS || (rest * 2 == TOKENS && whole % 2 == 1);
        (whole + i128::from(is_up)) as f32 / PART as f32
    };
    debug_assert!(first < last);
    tokens.iter().map(|token| share(std::mem::replace(&mut before, *token), *token)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_few() {
        assert_eq!(shares(&[]), Vec::<f32>::new());
        assert_eq!(shares(&[Token(7)]), [1.0]);
        assert_eq!(shares(&[Token(-1 << 62), Token(1 << 62)]), [0.5, 0.5]);
    }

    #[test]
    fn over_the_end() {
        let range = |left, right| TokenRange { left: Token(left), right: Token(right) };
        for (range, inside, outside) in [
            (range(1, 3), vec![2, 3], vec![1, 4, i64::MIN]),
            (range(3, 1), vec![4, i64::MAX, i64::MIN, 1], vec![2, 3]),
            (range(3, 3), vec![3, 4, 2], vec![]),
        ] {
            assert!(inside.into_iter().all(|token| range.contains(Token(token))));
            assert!(!outside.into_iter().any(|token| range.contains(Token(token))));
        }
    }
}
