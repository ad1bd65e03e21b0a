//! The contexts that are the values of counter cells (`db.context.CounterContext`).
//!
//! ```text
//! i16 n, n elements of i16 (an index: that shard is local; an index + i16::MIN: global), then
//! shards: 16 bytes id, i64 clock, i64 count
//! ```
//!
//! Shards that the header does not name are remote. Local and remote ones are of Cassandra 2.0 and
//! before, but for one: an update on its way to the replica that applies it is a local shard of
//! [`UPDATE_ID`].

use std::borrow::Cow;
use std::cmp::Ordering;

/// The id of the shard that an update is (`CounterContext.UPDATE_CLOCK_ID`).
pub const UPDATE_ID: [u8; 16] = [0; 16];

/// Bytes of a shard.
const SHARD: usize = 32;
/// Bytes of the header's count, and of each of its elements.
const ELEMENT: usize = 2;

/// Who may have written a shard. The later ones win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Remote,
    Local,
    Global,
}

/// One replica's part of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    id: [u8; 16],
    clock: i64,
    count: i64,
    origin: Origin,
}

/// The most shards that a header names: it counts them in an `i16`.
const NAMED_MAX: usize = i16::MAX as usize;

/// The shards of a context. One that ends early has those that are whole.
fn shards(context: &[u8]) -> impl Iterator<Item = Shard> {
    let count = context.first_chunk().map_or(0, |n| i16::from_be_bytes(*n).unsigned_abs());
    let rest = context.get(ELEMENT..).unwrap_or_default();
    let (header, body) = rest.split_at_checked(usize::from(count) * ELEMENT).unwrap_or((rest, &[]));
    let (mut elements, _) = header.as_chunks::<ELEMENT>();
    let (body, _) = body.as_chunks::<SHARD>();
    // A peer may send more shards than an element can name: those behind them are remote.
    body.iter().enumerate().map(move |(at, shard)| {
        let named = elements.first().map(|e| u16::from_be_bytes(*e));
        let origin = match (named, u16::try_from(at)) {
            (Some(element), Ok(at)) if element == at => Origin::Local,
            (Some(element), Ok(at)) if element == at | 0x8000 => Origin::Global,
            _ => Origin::Remote,
        };
        if origin != Origin::Remote {
            elements = elements.get(1..).expect("the element that names a shard is one of several");
        }
        let number = |at: usize| {
            let number = shard.get(at..).and_then(|rest| rest.first_chunk());
            i64::from_be_bytes(*number.expect("a shard has a clock and a count"))
        };
        let id = *shard.first_chunk().expect("a shard begins with its id");
        Shard { id, clock: number(16), count: number(24), origin }
    })
}

fn context(shards: &[Shard]) -> Vec<u8> {
    // Contexts of peers can hold more shards than a header has elements for: it names the first of
    // them, and the others count as remote. Cassandra cuts the count to an i16 and reads the rest
    // of its header as shards.
    let nameable = shards.iter().enumerate().take(NAMED_MAX);
    let named = nameable.filter(|(_, shard)| shard.origin != Origin::Remote);
    let count = i16::try_from(named.clone().count())
        .expect("a counter context names no more shards than its limit");
    let mut out = count.to_be_bytes().to_vec();
    for (at, shard) in named {
        let at = u16::try_from(at).expect("the index of a named shard has 15 bits");
        let global = if shard.origin == Origin::Global { 0x8000 } else { 0 };
        out.extend((at | global).to_be_bytes());
    }
    for shard in shards {
        out.extend(shard.id);
        out.extend(shard.clock.to_be_bytes());
        out.extend(shard.count.to_be_bytes());
    }
    out
}

/// What an increment writes before a replica makes a shard of it (`createUpdate`).
pub fn update(count: i64) -> Vec<u8> {
    context(&[Shard { id: UPDATE_ID, clock: 1, count, origin: Origin::Local }])
}

/// What the replica `id` writes (`createGlobal`).
pub fn global(id: [u8; 16], clock: i64, count: i64) -> Vec<u8> {
    context(&[Shard { id, clock, count, origin: Origin::Global }])
}

/// The counter's value: the sum over all shards.
pub fn total(context: &[u8]) -> i64 {
    shards(context).fold(0, |sum, shard| sum.wrapping_add(shard.count))
}

/// Clock and count of a replica's shard.
pub fn shard_of(context: &[u8], id: [u8; 16]) -> Option<(i64, i64)> {
    let shard = shards(context).find(|shard| shard.id == id)?;
    Some((shard.clock, shard.count))
}

/// Two versions of one shard in one: a global one beats a local one beats a remote one; of two
/// global or remote ones the later counts, then the larger; two local ones add up.
fn merge_shards(a: Shard, b: Shard) -> Shard {
    let clock = |shard: &Shard| match shard.origin {
        // Negative clocks are resets of old, and stronger than all others, the lower the more.
        Origin::Remote if shard.clock < 0 => (1, shard.clock.wrapping_neg()),
        _ => (0, shard.clock),
    };
    if a.origin == Origin::Local && b.origin == Origin::Local {
        let (clock, count) = (a.clock.wrapping_add(b.clock), a.count.wrapping_add(b.count));
        return Shard { clock, count, ..a };
    }
    let order = a.origin.cmp(&b.origin).then_with(|| clock(&a).cmp(&clock(&b)));
    match order.then_with(|| a.count.cmp(&b.count)) {
        Ordering::Less => b,
        _ => a,
    }
}

/// The shards of both contexts, each once, in order of their ids (`CounterContext.merge`).
pub fn merge<'a>(a: &'a [u8], b: &'a [u8]) -> Cow<'a, [u8]> {
    let (mut left, mut right) = (shards(a).peekable(), shards(b).peekable());
    let mut merged = Vec::new();
    let (mut is_a, mut is_b) = (true, true);
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(x), Some(y)) => x.id.cmp(&y.id),
        };
        let x = if order.is_le() { left.next() } else { None };
        let y = if order.is_ge() { right.next() } else { None };
        let shard = match (x, y) {
            (Some(x), Some(y)) => merge_shards(x, y),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => break,
        };
        is_a &= x == Some(shard);
        is_b &= y == Some(shard);
        merged.push(shard);
    }
    match (is_a, is_b) {
        (true, _) => Cow::Borrowed(a),
        (_, true) => Cow::Borrowed(b),
        _ => Cow::Owned(context(&merged)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shard(id: u8, origin: Origin, clock: i64, count: i64) -> Shard {
        Shard { id: [id; 16], clock, count, origin }
    }

    #[test]
    fn an_update_is_one_local_shard() {
        let mut bytes = vec![0, 1, 0, 0];
        bytes.extend([0; 16]);
        bytes.extend(1_i64.to_be_bytes());
        bytes.extend((-3_i64).to_be_bytes());
        assert_eq!(update(-3), bytes);
        assert_eq!(total(&merge(&update(-3), &update(5))), 2);
    }

    #[test]
    fn a_global_shard_is_marked_in_the_header() {
        let bytes = global([7; 16], 9, 4);
        assert_eq!(bytes.get(..4), Some(&[0, 1, 0x80, 0][..]));
        assert_eq!(shard_of(&bytes, [7; 16]), Some((9, 4)));
        assert_eq!(shard_of(&bytes, [8; 16]), None);
    }

    #[test]
    fn what_is_cut_short_counts_as_far_as_it_goes() {
        assert_eq!(total(&[]), 0);
        let two = context(&[shard(1, Origin::Local, 1, 5), shard(2, Origin::Remote, 1, -2)]);
        assert_eq!(total(&two), 3);
        assert_eq!(total(two.get(..two.len() - 1).unwrap_or_default()), 5);
        for end in 0..two.len() {
            let _ = merge(two.get(..end).unwrap_or_default(), &two);
        }
    }

    #[test]
    fn more_shards_than_a_header_can_name_are_merged_and_none_is_lost() {
        let many = |from: u32| {
            let shards = (from..from + 40_000).map(|at| {
                let mut id = [0; 16];
                id[..4].copy_from_slice(&at.to_be_bytes());
                Shard { id, clock: 1, count: 1, origin: Origin::Global }
            });
            context(&shards.collect::<Vec<_>>())
        };
        let (a, b) = (many(1), many(40_001));
        assert_eq!(total(&a), 40_000);
        assert_eq!(total(&merge(&a, &b)), 80_000);
    }

    #[test]
    fn the_stronger_shard_wins() {
        use Origin::{Global, Local, Remote};
        for (winner, loser) in [
            (shard(1, Global, 2, 1), shard(1, Global, 1, 9)),
            (shard(1, Global, 2, 2), shard(1, Global, 2, 1)),
            (shard(1, Global, 1, 1), shard(1, Local, 9, 9)),
            (shard(1, Local, 1, 1), shard(1, Remote, 9, 9)),
            (shard(1, Remote, 2, 1), shard(1, Remote, 1, 9)),
            (shard(1, Remote, -1, 1), shard(1, Remote, 5, 9)),
            (shard(1, Remote, -2, 1), shard(1, Remote, -1, 9)),
        ] {
            let (a, b) = (context(&[winner]), context(&[loser]));
            assert_eq!(merge(&a, &b), a);
            assert_eq!(merge(&b, &a), a);
        }
    }

    fn contexts() -> impl Strategy<Value = Vec<u8>> {
        let origin = prop_oneof![Just(Origin::Global), Just(Origin::Remote)];
        let part = (origin, -3..5_i64, -3..5_i64);
        prop::collection::btree_map(0..4_u8, part, 0..4).prop_map(|shards| {
            let shards =
                shards.into_iter().map(|(id, (o, clock, count))| shard(id, o, clock, count));
            context(&shards.collect::<Vec<_>>())
        })
    }

    proptest! {
        #[test]
        fn merging_is_commutative_associative_and_idempotent(
            a in contexts(), b in contexts(), c in contexts(),
        ) {
            prop_assert_eq!(merge(&a, &a), a.clone());
            let ab = merge(&a, &b);
            prop_assert_eq!(&ab, &merge(&b, &a));
            let bc = merge(&b, &c);
            prop_assert_eq!(merge(&ab, &c), merge(&a, &bc));
        }

        #[test]
        fn any_bytes_are_a_context(a: Vec<u8>, b: Vec<u8>) {
            total(&merge(&a, &b));
        }
    }
}
