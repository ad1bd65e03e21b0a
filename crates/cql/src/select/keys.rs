//! Which partitions are wanted: by key, or a range of the ring.

use std::cmp::Ordering;

use schema::{MAX_KEY_LENGTH, Table};
use types::{CqlType, Few, KeyBytes, Token};

use crate::context::Bind;
use crate::error::CqlError;
use crate::select::restrictions::Restrictions;
use crate::select::slices::{Combinations, Prefix};
use crate::token::{BoundEnd, compare_tokens};

/// A partition key and its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionKey {
    /// The token.
    pub token: Token,
    /// The serialized key.
    pub bytes: KeyBytes,
}

impl PartitionKey {
    /// The key with these bytes.
    pub fn new(bytes: impl Into<KeyBytes>) -> Self {
        let bytes = bytes.into();
        Self { token: Token::of(&bytes), bytes }
    }
}

/// An end of a range of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeBound {
    /// The end of the ring itself.
    Unbounded,
    /// At a token: with or without the partitions that have it.
    Token {
        /// The token.
        token: Token,
        /// Do its partitions belong to the range?
        inclusive: bool,
    },
    /// At a partition, by token and key.
    Key {
        /// The partition.
        key: PartitionKey,
        /// Does it belong to the range?
        inclusive: bool,
    },
}

/// The wanted partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// These, to be returned in this order. None at all: the result is empty.
    Keys(Few<PartitionKey>),
    /// All from one bound to the other, in order of token and key.
    Range {
        /// Where it starts.
        from: RangeBound,
        /// Where it ends.
        to: RangeBound,
    },
}

impl Target {
    /// Nothing.
    pub fn nothing() -> Self {
        Self::Keys(Few::new())
    }

    /// Is it known to have no partition?
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Keys(keys) if keys.is_empty())
    }
}

/// The values of the keys, in the order in which Cassandra returns them, each once; not yet checked
/// to be keys.
pub(super) fn prefixes_of<'a>(
    restrictions: &'a Restrictions,
    table: &Table,
    bind: &Bind<'a>,
) -> Result<Few<Prefix<'a>>, CqlError> {
    let mut combinations = Combinations::new("partition key", restrictions.keys.has_in);
    for restriction in restrictions.keys.iter() {
        combinations.append(restriction, table, bind)?;
        if combinations.prefixes.is_empty() {
            return Ok(Few::new());
        }
    }
    let mut prefixes = combinations.prefixes;
    if prefixes.len() > 1 {
        prefixes.sort_by(|a, b| compare_keys(table, a, b));
        prefixes.dedup_by(|b, a| compare_keys(table, a, b).is_eq());
    }
    Ok(prefixes)
}

/// The keys of such values.
pub(super) fn keys_of(
    prefixes: &[Prefix<'_>],
    restrictions: &Restrictions,
    table: &Table,
    bind: &Bind<'_>,
) -> Result<Few<PartitionKey>, CqlError> {
    let mut keys = Few::with_capacity(prefixes.len());
    for prefix in prefixes {
        keys.push(PartitionKey::new(serialize(table, prefix)?));
    }
    if let Some(token) = &restrictions.token {
        let window = token.window(table, bind)?;
        keys.retain(|key| window.contains(key.token, &key.bytes));
    }
    Ok(keys)
}

fn compare_keys(table: &Table, a: &Prefix<'_>, b: &Prefix<'_>) -> Ordering {
    let columns = table.partition_key.iter().zip(a.iter().zip(b));
    columns
        .map(|(column, (a, b))| column.ty.compare(a, b))
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

fn serialize(table: &Table, values: &Prefix<'_>) -> Result<KeyBytes, CqlError> {
    let too_long = |length: usize| {
        CqlError::invalid(format!(
            "Key length of {length} is longer than maximum of {MAX_KEY_LENGTH}"
        ))
    };
    let framing = if values.len() == 1 { 0 } else { 3 * values.len() };
    let length = values.iter().map(|value| value.len()).sum::<usize>() + framing;
    if length > MAX_KEY_LENGTH {
        return Err(too_long(length));
    }
    let key =
        table.partition_key_bytes(values).map_err(|error| CqlError::invalid(error.to_string()))?;
    if key.is_empty() {
        return Err(CqlError::invalid("Key may not be empty"));
    }
    Ok(key)
}

/// The place of a token's value in the order of partitions. The least one means "no bound" in
/// Cassandra.
fn place(table: &Table, value: &[u8], inclusive: bool) -> RangeBound {
    if table.is_ordered_by_key() {
        return match value {
            [] => RangeBound::Unbounded,
            key => RangeBound::Key { key: PartitionKey::new(key), inclusive },
        };
    }
    match CqlType::BigInt.as_i64(value).map(Token) {
        None | Some(Token::MIN) => RangeBound::Unbounded,
        Some(token) => RangeBound::Token { token, inclusive },
    }
}

/// The range of partitions.
pub(super) fn range_of(
    restrictions: &Restrictions,
    table: &Table,
    bind: &Bind<'_>,
) -> Result<Target, CqlError> {
    let everything = Target::Range { from: RangeBound::Unbounded, to: RangeBound::Unbounded };
    let Some(token) = restrictions.token.as_ref().filter(|_| restrictions.is_on_token(table))
    else {
        return Ok(everything);
    };
    let placed = |end: Option<BoundEnd>| {
        let place = |(value, inclusive): &BoundEnd| place(table, value, *inclusive);
        let at = end.as_ref().map_or(RangeBound::Unbounded, place);
        // what is no bound has no place among others either
        (end.filter(|_| at != RangeBound::Unbounded), at)
    };
    let (start, end) = token.bind(table, bind)?;
    let ((start, from), (end, to)) = (placed(start), placed(end));
    if let (Some((start, start_inclusive)), Some((end, end_inclusive))) = (start, end) {
        let order = compare_tokens(table, &start, &end);
        if order.is_gt() || (order.is_eq() && !(start_inclusive && end_inclusive)) {
            return Ok(Target::nothing());
        }
    }
    Ok(Target::Range { from, to })
}
