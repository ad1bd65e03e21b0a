//! The partitions of a memtable in the order of the ring.
//!
//! A map of runs: each has the partitions from its token up to the next one's, sorted, some dozens
//! beside each other. Tokens are hashes, so that a search begins where one would be if they lay at
//! equal distances, and mostly ends a few places from there; it looks at a key only where its token
//! is the one. Keys of one token are rare (of 64 bits), and stand beside each other in the order of
//! their bytes.
//!
//! A run has at most 128 partitions. A flush goes over the partitions in their order, and so brings
//! the rows of a whole run into the CPU's caches together.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use types::Token;

use super::partition::bring_near;
use super::{KeyRef, Partition, PartitionKey};

/// Partitions of a run at most, but for those of one token, which stay in one; a full one splits in
/// two.
const RUN_MAX: usize = 128;
/// How far from where it began a search goes at first, in places: as many as a line of the CPU's
/// caches has.
const NEAR: usize = 4;

/// Partitions by key.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    /// By the least token that may be in each, the first by the least of all; the tokens of one are
    /// in no other.
    runs: BTreeMap<Token, Run>,
    len: usize,
    /// The run that the last insertion filled: it is split before the next one.
    full: Option<Token>,
}

#[derive(Debug)]
struct Run {
    entries: Vec<Entry>,
    /// Of memory, as accounted; two that were one have as large a part of it as of its partitions.
    bytes: usize,
    /// No token in it is greater.
    greatest: Token,
}

#[derive(Debug)]
struct Entry {
    token: Token,
    of: Box<Keyed>,
}

#[derive(Debug)]
struct Keyed {
    key: PartitionKey,
    partition: Partition,
}

/// The partition of a key, as one who writes gets it.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub partition: &'a mut Partition,
    /// There was none.
    pub is_new: bool,
    /// What is accounted for all that are beside it: whoever adds to it says so.
    pub run_bytes: &'a mut usize,
}

impl Entry {
    fn compare(&self, key: KeyRef<'_>) -> Ordering {
        self.token.cmp(&key.token).then_with(|| (*self.of.key.bytes).cmp(key.bytes))
    }

    fn as_pair(&self) -> (&PartitionKey, &Partition) {
        (&self.of.key, &self.of.partition)
    }
}

impl Run {
    /// The place of a key, or where it would be; `least` is the least token that may be in the run.
    fn find(&self, least: Token, key: KeyRef<'_>) -> Result<usize, usize> {
        let entries = self.entries.as_slice();
        let is_before = |place: usize| entries.get(place).is_some_and(|e| e.compare(key).is_lt());
        let from_least = |token: Token| token.0.wrapping_sub(least.0).cast_unsigned() as f64;
        let share = from_least(key.token) / from_least(self.greatest).max(1.0);
        let guess = (share * entries.len() as f64) as usize;
        // the place is in here, its end included; farther from the guess in ever longer steps
        let (mut low, mut high) = (0, entries.len());
        let mut step = NEAR;
        if is_before(guess) {
            low = guess + 1;
            while low + step < high {
                if !is_before(low + step) {
                    high = low + step;
                    break;
                }
                low += step + 1;
                step *= 2;
            }
        } else {
            high = guess.min(high);
            while high > step {
                if is_before(high - step) {
                    low = high - step + 1;
                    break;
                }
                high -= step;
                step *= 2;
            }
        }
        let between = entries.get(low..high).expect("a search ends within its run");
        let place = low + between.partition_point(|entry| entry.compare(key).is_lt());
        match entries.get(place) {
            Some(entry) if entry.compare(key).is_eq() => Ok(place),
            _ => Err(place),
        }
    }
}

impl Partitions {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, key: KeyRef<'_>) -> Option<&Partition> {
        let (least, run) = self.runs.range(..=key.token).next_back()?;
        let place = run.find(*least, key).ok()?;
        run.entries.get(place).map(|entry| &entry.of.partition)
    }

    /// The partition of a key, an empty one if there was none.
    pub fn get_or_insert(&mut self, key: KeyRef<'_>) -> Found<'_> {
        if let Some(full) = self.full.take() {
            self.split(full);
        }
        if self.runs.is_empty() {
            self.runs
                .insert(Token::MIN, Run { entries: Vec::new(), bytes: 0, greatest: Token::MAX });
        }
        let Some((least, run)) = self.runs.range_mut(..=key.token).next_back() else {
            unreachable!("the first run has the least of all tokens")
        };
        let found = run.find(*least, key);
        let place = found.unwrap_or_else(|place| place);
        if found.is_err() {
            let of = Keyed { key: key.to_owned(), partition: Partition::default() };
            let (before, behind) = run.entries.split_at(place);
            let follows = before.last().is_none_or(|entry| entry.token <= key.token);
            let precedes = behind.first().is_none_or(|entry| key.token <= entry.token);
            assert!(follows && precedes, "partitions of a memtable are in the order of tokens");
            run.entries.insert(place, Entry { token: key.token, of: Box::new(of) });
            self.len += 1;
            self.full = Some(*least).filter(|_| run.entries.len() >= RUN_MAX);
        }
        let Run { entries, bytes, .. } = run;
        let partition = &mut entries[place].of.partition;
        Found { partition, is_new: found.is_err(), run_bytes: bytes }
    }

    /// Splits the run of this least token where a token begins, near its middle: the least of the
    /// second one. None if all in it are of one.
    fn split(&mut self, least: Token) -> Option<Token> {
        let Run { entries, bytes, greatest } = self.runs.get_mut(&least)?;
        let middle = entries.get(entries.len() / 2)?.token;
        let mut at = entries.partition_point(|entry| entry.token < middle);
        if at == 0 {
            at = entries.partition_point(|entry| entry.token <= middle);
        }
        let first = entries.get(at)?.token;
        assert!(first > least, "the second half of a run begins behind its first token");
        let lower = *bytes / entries.len() * at;
        let upper =
            Run { entries: entries.split_off(at), bytes: *bytes - lower, greatest: *greatest };
        *bytes = lower;
        *greatest = first;
        self.runs.insert(first, upper);
        Some(first)
    }

    /// Splits runs of more bytes, but for those of one token.
    fn split_larger(&mut self, most: usize) {
        let larger = self.runs.iter().filter(|(_, run)| run.bytes > most);
        let mut larger: Vec<Token> = larger.map(|(least, _)| *least).collect();
        while let Some(least) = larger.pop() {
            let is_larger =
                |least: &Token| self.runs.get(least).is_some_and(|run| run.bytes > most);
            if is_larger(&least)
                && let Some(second) = self.split(least)
            {
                larger.extend([least, second]);
            }
        }
    }

    /// Takes all out, in parts of so many bytes at most but for partitions that are larger, in
    /// order: the least token that may be in each, its bytes, and the part.
    pub fn cut(&mut self, most: usize) -> Vec<(Token, usize, Self)> {
        self.split_larger(most);
        let Self { runs: mut rest, len, .. } = std::mem::take(self);
        let (mut begins, mut bytes) = (vec![Token::MIN], 0);
        for (least, run) in &rest {
            if bytes > 0 && bytes + run.bytes > most {
                begins.push(*least);
                bytes = 0;
            }
            bytes += run.bytes;
        }
        let parts = begins.into_iter().rev().map(|least| {
            let runs = rest.split_off(&least);
            let len = runs.values().map(|run| run.entries.len()).sum();
            let bytes = runs.values().map(|run| run.bytes).sum();
            (least, bytes, Self { runs, len, full: None })
        });
        let mut parts: Vec<_> = parts.collect();
        let kept: usize = parts.iter().map(|(_, _, part)| part.len).sum();
        assert_eq!(kept, len, "a split of a memtable loses no partitions");
        parts.reverse();
        parts
    }

    /// Drops the first so many.
    pub fn remove_first(&mut self, count: usize) {
        let mut left = count;
        while let Some((_, mut run)) = self.runs.pop_first() {
            let dropped = run.entries.len().min(left);
            run.entries.drain(..dropped);
            left -= dropped;
            self.len -= dropped;
            if !run.entries.is_empty() {
                self.runs.insert(Token::MIN, run);
                return;
            }
        }
    }

    /// Those from a bound on.
    pub fn range(
        &self,
        from: Bound<KeyRef<'_>>,
    ) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        let (from, passes) = match from {
            Bound::Unbounded => (None, 0),
            Bound::Included(key) => (Some(key), 0),
            Bound::Excluded(key) => (Some(key), 1),
        };
        let first = from.and_then(|key| {
            let (least, run) = self.runs.range(..=key.token).next_back()?;
            let passed = run.find(*least, key).map_or_else(|place| place, |place| place + passes);
            Some((*least, passed))
        });
        let (least, passed) = first.unwrap_or((Token::MIN, 0));
        let runs = self.runs.range(least..);
        runs.flat_map(|(_, run)| &run.entries).skip(passed).map(Entry::as_pair)
    }

    /// All of them, for who reads their rows too: what of a run lies apart is brought into the
    /// CPU's caches at once, where one after the other would wait for each.
    pub fn walk(&self) -> impl Iterator<Item = (&PartitionKey, &Partition)> {
        let runs = self.runs.values().inspect(|run| warm(&run.entries));
        runs.flat_map(|run| &run.entries).map(Entry::as_pair)
    }
}

/// Brings near what a walk comes to next.
fn warm(run: &[Entry]) {
    let rows = run.iter().filter_map(|entry| entry.of.partition.rows().iter().next());
    rows.for_each(|row| bring_near(row));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn key(token: i64, bytes: &[u8]) -> PartitionKey {
        PartitionKey { token: Token(token), bytes: bytes.into() }
    }

    /// There are millions of them: what few have is to stand apart.
    /// [`super::super::PARTITION_OVERHEAD_BYTES`] counts on it.
    #[test]
    fn a_partition_is_small() {
        assert!(size_of::<Keyed>() <= 96, "{}", size_of::<Keyed>());
    }

    #[test]
    fn keys_of_one_token_are_told_apart_and_stand_in_order() {
        let all = [key(-5, b"z"), key(7, b"a"), key(7, b"b"), key(7, b"c"), key(9, b"a")];
        let mut partitions = Partitions::default();
        for at in [3, 0, 2, 4] {
            assert!(partitions.get_or_insert(all[at].as_ref()).is_new);
        }
        assert!(partitions.get(all[1].as_ref()).is_none());
        assert!(partitions.get_or_insert(all[1].as_ref()).is_new);
        assert!(all.iter().all(|key| !partitions.get_or_insert(key.as_ref()).is_new));
        assert!(all.iter().all(|key| partitions.get(key.as_ref()).is_some()));
        assert_eq!(partitions.len(), all.len());
        assert!(partitions.walk().map(|(key, _)| key).eq(&all));
        let from = |bound| partitions.range(bound).map(|(key, _)| key.clone()).collect::<Vec<_>>();
        assert_eq!(from(Bound::Unbounded), all);
        for at in 0..all.len() {
            assert_eq!(from(Bound::Included(all[at].as_ref())), all[at..]);
            assert_eq!(from(Bound::Excluded(all[at].as_ref())), all[at + 1..]);
        }
        // between keys that there are
        let (between, behind) = (key(7, b"bb"), key(8, b""));
        assert_eq!(from(Bound::Included(between.as_ref())), all[3..]);
        assert_eq!(from(Bound::Excluded(behind.as_ref())), all[4..]);
        partitions.remove_first(2);
        assert!(partitions.walk().map(|(key, _)| key).eq(&all[2..]));
        assert_eq!(partitions.len(), 3);
        partitions.remove_first(4);
        assert_eq!((partitions.len(), partitions.walk().count()), (0, 0));
    }

    /// Adds a key, and what is accounted for it; was it new?
    fn add(partitions: &mut Partitions, key: &PartitionKey, bytes: usize) -> bool {
        let found = partitions.get_or_insert(key.as_ref());
        *found.run_bytes += bytes;
        found.is_new
    }

    /// Spread over the ring, close to each other, or at its ends.
    fn token() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => any::<i64>(), 4 => -40..40_i64, 1 => i64::MIN..i64::MIN + 2, 1 => i64::MAX - 1..=i64::MAX,
        ]
    }

    proptest! {
        /// As a sorted map does it, with more keys than runs hold and tokens that many share.
        #[test]
        fn runs_are_one_sorted_map(
            tokens in vec((token(), any::<u8>()), 0..800),
            removed in 0..900_usize,
            most in 0..100_000_usize,
            probes in vec((token(), any::<u8>()), 40),
        ) {
            let mut model = std::collections::BTreeMap::new();
            let mut partitions = Partitions::default();
            for (token, byte) in tokens {
                let key = key(token, &[byte]);
                let is_new = model.insert(key.clone(), ()).is_none();
                prop_assert_eq!(add(&mut partitions, &key, 100), is_new);
            }
            for _ in 0..removed.min(model.len()) {
                model.pop_first();
            }
            partitions.remove_first(removed);
            prop_assert_eq!(partitions.len(), model.len());
            prop_assert!(partitions.walk().map(|(key, _)| key).eq(model.keys()));
            // and so are they where they are cut, each with its own part of the ring
            let cut = partitions.cut(most);
            prop_assert_eq!(partitions.len(), 0);
            let walked = cut.iter().flat_map(|(_, _, part)| part.walk()).map(|(key, _)| key);
            prop_assert!(walked.eq(model.keys()));
            prop_assert!(cut.is_sorted_by(|(one, ..), (other, ..)| one < other));
            for (place, (from, bytes, part)) in cut.iter().enumerate() {
                let end = cut.get(place + 1).map(|(from, ..)| *from);
                let tokens = || part.walk().map(|(key, _)| key.token);
                prop_assert!(tokens().all(|token| token >= *from && end.is_none_or(|end| token < end)));
                prop_assert_eq!(part.len(), tokens().count());
                prop_assert!(*bytes <= most || tokens().is_sorted_by(|one, other| one == other));
            }
            partitions = Partitions::default();
            for key in model.keys() {
                add(&mut partitions, key, 100);
            }
            for (token, byte) in probes {
                let probe = key(token, &[byte]);
                let of = cut.iter().rev().find(|(from, ..)| *from <= probe.token);
                let is_there = of.is_some_and(|(_, _, part)| part.get(probe.as_ref()).is_some());
                prop_assert_eq!(is_there, model.contains_key(&probe));
                prop_assert_eq!(partitions.get(probe.as_ref()).is_some(), model.contains_key(&probe));
                for bound in [Bound::Included(&probe), Bound::Excluded(&probe)] {
                    let found = partitions.range(bound.map(PartitionKey::as_ref)).map(|(key, _)| key);
                    let wanted = model.range::<PartitionKey, _>((bound, Bound::Unbounded));
                    prop_assert!(found.eq(wanted.map(|(key, ())| key)));
                }
            }
        }
    }
}
