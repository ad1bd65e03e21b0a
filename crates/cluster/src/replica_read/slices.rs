//! Which rows of a partition, and which partitions of the ring, as another node asks for them: in
//! order and checked.

use std::cmp::Ordering;

use internode::payload::PayloadError;
use internode::payload::read::{KeyRange, Position, RowChoice, RowsOf};
use rows::{Bound, BoundKind, Clustering, Layout, compare, compare_clusterings};
use storage::{PartitionKey, ScanStart, Slices};
use types::Token;

fn refused(what: &'static str) -> PayloadError {
    PayloadError::Kind { what, number: -1 }
}

/// The wanted rows of a partition.
///
/// # Errors
/// If slices are out of order: no merge is to see them.
pub(crate) fn slices(layout: &Layout, rows: &RowsOf) -> Result<Slices, PayloadError> {
    let ranges = match &rows.choice {
        RowChoice::Slices(slices) => {
            let mut last: Option<&Bound> = None;
            for (start, end) in slices {
                let before = last.replace(end).map(|end| (end, start));
                for (a, b) in before.into_iter().chain([(start, end)]) {
                    if compare(layout, a.as_ref(), b.as_ref()) == Ordering::Greater {
                        return Err(refused("order of slices"));
                    }
                }
            }
            slices.clone()
        }
        RowChoice::Names(names) => {
            let order = |a: &Clustering, b: &Clustering| {
                compare_clusterings(layout, a.as_ref(), b.as_ref())
            };
            let mut names = names.clone();
            names.sort_by(order);
            names.dedup_by(|a, b| order(a, b).is_eq());
            let one = |name: Clustering| {
                let bound = |kind, name: &Clustering| Bound::new(kind, name.clone());
                (bound(BoundKind::InclStart, &name), bound(BoundKind::InclEnd, &name))
            };
            names.into_iter().map(one).collect()
        }
    };
    Ok(Slices::new(ranges, rows.reversed))
}

/// Does a choice take in all rows there may be (`selectsAllPartition`)?
pub(crate) fn takes_all(rows: &RowsOf) -> bool {
    match &rows.choice {
        RowChoice::Slices(slices) => match &slices[..] {
            [(start, end)] => start.as_ref().values.is_empty() && end.as_ref().values.is_empty(),
            _ => false,
        },
        RowChoice::Names(_) => false,
    }
}

/// What of slices comes after a row in the direction of reading (`Slices.forPaging`).
pub(crate) fn after(
    layout: &Layout,
    slices: &Slices,
    (row, inclusive): &(Clustering, bool),
) -> Slices {
    let kind = match (slices.reversed(), inclusive) {
        (false, true) => BoundKind::InclStart,
        (false, false) => BoundKind::ExclStart,
        (true, true) => BoundKind::InclEnd,
        (true, false) => BoundKind::ExclEnd,
    };
    let from = Bound::new(kind, row.clone());
    let order = |a: &Bound, b: &Bound| compare(layout, a.as_ref(), b.as_ref());
    let mut left = Vec::new();
    for (start, end) in slices.ranges() {
        let (start, end) = match slices.reversed() {
            false if order(start, &from).is_lt() => (&from, end),
            true if order(end, &from).is_gt() => (start, &from),
            _ => (start, end),
        };
        if order(start, end).is_lt() {
            left.push((start.clone(), end.clone()));
        }
    }
    Slices::new(left, slices.reversed())
}

/// Partitions from one place of the ring to another.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    /// Where it starts; nowhere if it is empty.
    pub start: Option<ScanStart>,
    to: Position,
    to_inclusive: bool,
}

impl Stretch {
    /// # Errors
    /// If it goes around the end of the ring.
    pub fn new(range: &KeyRange) -> Result<Self, PayloadError> {
        let start = match &range.from {
            Position::Before(Token::MIN) => Some(ScanStart::Beginning),
            Position::Before(token) => Some(ScanStart::Token(*token)),
            Position::After(token) => {
                token.0.checked_add(1).map(|next| ScanStart::Token(Token(next)))
            }
            Position::Key(key) => {
                let key = PartitionKey::new(key.clone());
                Some(match range.from_inclusive {
                    true => ScanStart::Key(key),
                    false => ScanStart::After(key),
                })
            }
        };
        let token_of = |position: &Position| match position {
            Position::Key(key) => Token::of(key),
            Position::Before(token) | Position::After(token) => *token,
        };
        let (from, to) = (token_of(&range.from), token_of(&range.to));
        if to != Token::MIN && from > to {
            return Err(refused("range around the ring"));
        }
        Ok(Self { start, to: range.to.clone(), to_inclusive: range.to_inclusive })
    }

    /// Does it reach so far?
    pub fn reaches(&self, key: &PartitionKey) -> bool {
        match &self.to {
            Position::Before(Token::MIN) | Position::After(Token::MIN) => true,
            Position::Before(token) => key.token < *token,
            Position::After(token) => key.token <= *token,
            Position::Key(end) => {
                let order = (key.token, &*key.bytes).cmp(&(Token::of(end), &**end));
                order.is_lt() || (self.to_inclusive && order.is_eq())
            }
        }
    }
    /// Is a key in it?
    pub fn holds(&self, key: &PartitionKey) -> bool {
        let starts_before = match &self.start {
            None => false,
            Some(ScanStart::Beginning) => true,
            Some(ScanStart::Token(token)) => key.token >= *token,
            Some(ScanStart::Key(first)) => key >= first,
            Some(ScanStart::After(last)) => key > last,
        };
        starts_before && self.reaches(key)
    }
}
