//! `Summary.db`: every so many-th entry of Index.db, kept in memory
//! (`io.sstable.indexsummary.IndexSummary`).
//!
//! `i32` least interval (128), `i32` number of entries, `i64` bytes of offsets and entries,
//! `i32` sampling level (128 is full), `i32` entries at full sampling; a little-endian `i32`
//! offset each, counted from the start of the offsets; the entries, each the key's bytes and
//! a little-endian `i64` position in Index.db; then, counted by an `i32` each, the table's
//! first and last key. A table without Summary.db is complete: it can be made again.

use types::Token;

use crate::bytes::{Reader, put_int};
use crate::error::{Result, corrupt};

const SUMMARY: &str = "Summary.db";
/// The level at which every entry is kept.
pub const FULL_SAMPLING: u32 = 128;
/// Bytes of the position behind each key.
const POSITION: usize = 8;
/// Tokens that are looked at first about where one should be; further away four times as many each
/// time.
const NEAR: usize = 32;

/// A sample of Index.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// One of how many keys is sampled at full sampling.
    pub min_interval: u32,
    /// How many of 128 samples are kept.
    pub sampling_level: u32,
    /// How many there would be if all were.
    pub size_at_full_sampling: u32,
    /// The first key of the table.
    pub first: Vec<u8>,
    /// The last key of the table.
    pub last: Vec<u8>,
    /// Where each entry starts in `entries`, ascending.
    starts: Vec<u32>,
    /// Key and position, one after the other.
    entries: Vec<u8>,
    /// The token of each entry's key: a search goes over them alone.
    tokens: Vec<Token>,
}

impl Summary {
    /// Memory that the sample takes without its tokens, in bytes: what Cassandra, which has none,
    /// shows as off heap memory.
    pub fn memory(&self) -> usize {
        self.entries.len() + self.starts.len() * size_of::<u32>()
    }

    /// Reads a Summary.db.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(SUMMARY, bytes);
        let min_interval = reader.u32()?;
        let count = reader.u32()? as usize;
        let size = usize::try_from(reader.u64()?).unwrap_or(usize::MAX);
        let sampling_level = reader.u32()?;
        let size_at_full_sampling = reader.u32()?;
        if min_interval == 0 || !(1..=FULL_SAMPLING).contains(&sampling_level) {
            return corrupt(
                SUMMARY,
                format!(
                    "its interval {min_interval} or sampling level {sampling_level} is invalid"
                ),
            );
        }
        let base = count.checked_mul(4).filter(|base| *base <= size && size <= reader.left());
        let Some(base) = base else {
            return corrupt(SUMMARY, format!("it has {count} entries in {size} bytes"));
        };
        let mut starts = Vec::with_capacity(count);
        for _ in 0..count {
            let start = u32::from_le_bytes(reader.array()?);
            match (start as usize).checked_sub(base) {
                Some(start) => starts.push(start as u32),
                None => {
                    return corrupt(SUMMARY, format!("an entry at {start} lies outside the file"));
                }
            }
        }
        let entries = reader.take(size - base)?.to_vec();
        let first = reader.int_bytes()?.to_vec();
        let last = reader.int_bytes()?.to_vec();
        reader.end()?;
        let holds = |start: &u32, end: &u32| {
            start.checked_add(POSITION as u32).is_some_and(|least| least <= *end)
        };
        let ends = starts.iter().skip(1).copied().chain([entries.len() as u32]);
        if starts.first().is_some_and(|s| *s != 0)
            || !starts.iter().zip(ends).all(|(start, end)| holds(start, &end))
        {
            return corrupt(SUMMARY, "its entries overlap");
        }
        Ok(Self {
            min_interval,
            sampling_level,
            size_at_full_sampling,
            first,
            last,
            tokens: Vec::new(),
            starts,
            entries,
        }
        .with_tokens())
    }

    fn with_tokens(mut self) -> Self {
        let keys = (0..self.len()).filter_map(|index| self.entry(index));
        self.tokens = keys.map(|(key, _)| Token::of(key)).collect();
        assert_eq!(self.tokens.len(), self.len(), "each sample has a token");
        self
    }

    /// The bytes of a Summary.db.
    pub fn encode(&self) -> Vec<u8> {
        let base = self.starts.len() * 4;
        let mut out = Vec::with_capacity(32 + base + self.entries.len());
        out.extend(self.min_interval.to_be_bytes());
        put_int(&mut out, self.starts.len());
        out.extend(((base + self.entries.len()) as u64).to_be_bytes());
        out.extend(self.sampling_level.to_be_bytes());
        out.extend(self.size_at_full_sampling.to_be_bytes());
        for start in &self.starts {
            out.extend((*start + base as u32).to_le_bytes());
        }
        out.extend(&self.entries);
        for key in [&self.first, &self.last] {
            put_int(&mut out, key.len());
            out.extend(key);
        }
        out
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Entry number `index`: its key and its position in Index.db.
    pub fn entry(&self, index: usize) -> Option<(&[u8], u64)> {
        let start = *self.starts.get(index)? as usize;
        let end = self.starts.get(index + 1).map_or(self.entries.len(), |end| *end as usize);
        let (key, position) = self.entries.get(start..end)?.split_last_chunk::<POSITION>()?;
        Some((key, u64::from_le_bytes(*position)))
    }

    /// Where in Index.db the entry of a key can be: from the position of the last sample that is
    /// not after it to that of the next one, if there is one. `None` if all are after it.
    pub fn span(&self, token: Token, key: &[u8]) -> Option<(u64, Option<u64>)> {
        let is_not_after = |index: &usize| {
            self.tokens.get(*index) == Some(&token)
                && self.entry(*index).is_some_and(|(sample, _)| sample <= key)
        };
        let before = below(&self.tokens, token);
        let next = before + (before..self.len()).take_while(is_not_after).count();
        let position = |index| self.entry(index).map(|(_, position)| position);
        Some((position(next.checked_sub(1)?)?, position(next)))
    }

    /// Where in Index.db to start looking for a key: the position of the last sample that is not
    /// after it. `None` if all are after it.
    pub fn floor(&self, token: Token, key: &[u8]) -> Option<u64> {
        self.span(token, key).map(|(from, _)| from)
    }
}

/// How many of the tokens, which are sorted, are below this one. They are spread evenly over a
/// range, mostly, so it is looked for near where that would have it: to halve all of them takes
/// many a look at memory that is in no cache.
fn below(tokens: &[Token], token: Token) -> usize {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return 0 };
    let from_first = |token: Token| (i128::from(token.0) - i128::from(first.0)) as f64;
    let part = (from_first(token) / from_first(*last)).clamp(0.0, 1.0);
    // what is no number is 0
    let guess = (part * tokens.len() as f64) as usize;
    let is_below = |at: usize| tokens.get(at).is_some_and(|sample| *sample < token);
    let (mut low, mut high, mut step) = (guess, guess, NEAR);
    while low > 0 && !is_below(low - 1) {
        high = low;
        low = low.saturating_sub(step);
        step *= 4;
    }
    step = NEAR;
    while high < tokens.len() && is_below(high) {
        low = high;
        high = (high + step).min(tokens.len());
        step *= 4;
    }
    low + tokens.get(low..high).map_or(0, |near| near.partition_point(|sample| *sample < token))
}

/// Makes a summary while Index.db is written.
#[derive(Clone, Debug)]
pub struct Builder {
    interval: u32,
    keys: u64,
    starts: Vec<u32>,
    entries: Vec<u8>,
    first: Option<Vec<u8>>,
    last: Vec<u8>,
    /// Where the entry of the last key starts.
    position: Option<u64>,
}

impl Builder {
    /// That samples one key of `min_interval`, the table's `min_index_interval`.
    pub fn new(min_interval: u32) -> Self {
        let (starts, entries, last) = (Vec::new(), Vec::new(), Vec::new());
        let interval = min_interval.max(1);
        Self { interval, keys: 0, starts, entries, first: None, last, position: None }
    }

    /// Notes the next key, and where its entry starts in Index.db. Keys beyond 2 GiB of
    /// entries are not sampled any more, as Cassandra's are not.
    pub fn add(&mut self, key: &[u8], position: u64) {
        let before = self.position.replace(position);
        assert!(before < Some(position), "entries of Index.db follow each other");
        if self.keys.is_multiple_of(u64::from(self.interval)) {
            let size = self.entries.len() + key.len() + POSITION + 4 * (self.starts.len() + 1);
            if i32::try_from(size).is_ok() {
                self.starts.push(self.entries.len() as u32);
                self.entries.extend(key);
                self.entries.extend(position.to_le_bytes());
            }
        }
        self.keys += 1;
        self.first.get_or_insert_with(|| key.to_vec());
        self.last.clear();
        self.last.extend(key);
    }

    /// The summary; `None` if no key was noted.
    pub fn finish(self) -> Option<Summary> {
        let size = u32::try_from(self.starts.len()).expect("samples take less than 2 GiB");
        let summary = Summary {
            min_interval: self.interval,
            sampling_level: FULL_SAMPLING,
            size_at_full_sampling: size,
            first: self.first?,
            last: self.last,
            starts: self.starts,
            entries: self.entries,
            tokens: Vec::new(),
        };
        Some(summary.with_tokens())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: &[u8] = include_bytes!("../testdata/plain/nb-1-big-Summary.db");

    #[test]
    fn round_trips_cassandras() {
        for bytes in [PLAIN, include_bytes!("../testdata/lz4/nb-1-big-Summary.db")] {
            assert_eq!(Summary::parse(bytes).unwrap().encode(), bytes);
        }
        let summary = Summary::parse(PLAIN).unwrap();
        assert_eq!(summary.entry(0), Some((&b"key53"[..], 0)));
        assert_eq!(summary.entry(1), Some((&b"key70"[..], 0x55c)));
        assert_eq!((&summary.first[..], &summary.last[..]), (&b"key53"[..], &b"key76"[..]));
    }

    #[test]
    fn makes_cassandras_from_its_index() {
        let index = include_bytes!("../testdata/plain/nb-1-big-Index.db");
        let mut reader = Reader::new("Index.db", index);
        let mut builder = Builder::new(128);
        while reader.left() > 0 {
            let position = reader.position() as u64;
            let length = reader.u16().unwrap();
            builder.add(reader.take(length.into()).unwrap(), position);
            // An unsigned vint of Data.db, then the size of the index within the partition: 0.
            let more = reader.u8().unwrap().leading_ones();
            reader.take(more as usize).unwrap();
            assert_eq!(reader.u8().unwrap(), 0);
        }
        assert_eq!(builder.finish().unwrap().encode(), PLAIN);
    }

    #[test]
    fn finds_where_to_start() {
        let mut keys: Vec<[u8; 1]> = (0..10).map(|key| [key]).collect();
        keys.sort_by_key(|key| Token::of(key));
        let mut builder = Builder::new(2);
        for (position, key) in (0..).zip(&keys) {
            builder.add(key, position);
        }
        let summary = builder.finish().unwrap();
        assert_eq!(summary.len(), 5);
        let span = |token, key: &[u8]| summary.span(token, key);
        for (place, key) in (0..10).zip(&keys) {
            let (from, to) = span(Token::of(key), key).unwrap();
            assert_eq!((from, to), (place / 2 * 2, Some(place / 2 * 2 + 2).filter(|to| *to < 10)));
        }
        // of the same token, but before and behind what is there
        let (first, last) = (Token::of(&keys[0]), Token::of(&keys[8]));
        assert_eq!(span(first, &[]), None);
        assert_eq!(span(last, &[255]), Some((8, None)));
        assert_eq!(span(last, &[]), Some((6, Some(8))));
        let before = Token(first.0 - 1);
        assert_eq!((span(before, &keys[0]), summary.floor(before, &keys[0])), (None, None));
        assert!(Builder::new(128).finish().is_none());
    }

    proptest! {
        #[test]
        fn looks_where_halving_looks(
            mut tokens in prop::collection::vec(prop_oneof![any::<i64>(), -50..50i64], 0..2000),
            tried in prop::collection::vec(prop_oneof![any::<i64>(), -50..50i64], 1..20),
        ) {
            tokens.sort_unstable();
            let edges = [i64::MIN, i64::MAX, 0];
            let sorted: Vec<_> = tokens.iter().copied().map(Token).collect();
            for token in tried.into_iter().chain(edges).chain(tokens.into_iter().take(50)) {
                let wanted = sorted.partition_point(|sample| sample.0 < token);
                prop_assert_eq!(below(&sorted, Token(token)), wanted);
            }
        }
    }

    #[test]
    fn refuses_what_is_torn() {
        for n in 0..PLAIN.len() {
            assert!(Summary::parse(&PLAIN[..n]).is_err(), "{n}");
        }
    }

    proptest! {
        #[test]
        fn no_byte_panics(at in 0usize..76, byte: u8) {
            let mut bytes = PLAIN.to_vec();
            bytes[at] = byte;
            if let Ok(summary) = Summary::parse(&bytes) {
                for i in 0..summary.len() {
                    prop_assert!(summary.entry(i).is_some());
                }
                summary.floor(Token::of(b"key6"), b"key6");
            }
        }
    }
}
