//! Requests that wait for their answers (`net.RequestCallbacks`).

use std::collections::{BTreeMap, BTreeSet};

use types::Address;

use crate::verb::Verb;

/// Ids are 32 bits; 0 is none.
const MAX_ID: u64 = u32::MAX as u64;

#[derive(Debug)]
struct Waiting<T> {
    verb: Verb,
    expires_at: i64,
    value: T,
}

/// Requests of one shard to other nodes, each with what is to become of its answer.
///
/// A shard's ids leave its number as the rest when they are divided by the number of shards, so
/// that an answer finds its way whichever shard it comes in at. An answer is told from another by
/// who sent it, by its id, and by what it is: other nodes count their own requests with the same
/// numbers.
#[derive(Debug)]
pub struct Callbacks<T> {
    /// This shard, and how many there are.
    shard: u64,
    shards: u64,
    last_id: u64,
    waiting: BTreeMap<(Address, u64), Waiting<T>>,
    /// The same, by the time when nobody waits any more.
    by_time: BTreeSet<(i64, Address, u64)>,
}

impl<T> Callbacks<T> {
    /// None yet, of a shard out of so many.
    pub fn new(shard: usize, shards: usize) -> Self {
        let (shard, shards) = (shard as u64, shards.max(1) as u64);
        let last_id = shard;
        Self { shard, shards, last_id, waiting: BTreeMap::new(), by_time: BTreeSet::new() }
    }

    /// The shard, out of so many, that gave an id.
    pub fn shard_of(id: u64, shards: usize) -> usize {
        (id % shards.max(1) as u64) as usize
    }

    /// The id of a message that nobody waits for the answer of.
    pub fn next_id(&mut self) -> u64 {
        let next = self.last_id + self.shards;
        self.last_id = if next > MAX_ID { self.shard + self.shards } else { next };
        self.last_id
    }

    /// Waits for the answer to a request, up to a time in milliseconds of a clock that nobody sets:
    /// the id that the request is to have.
    pub fn wait(&mut self, to: Address, verb: Verb, expires_at: i64, value: T) -> u64 {
        self.wait_for_all(verb, expires_at, vec![(to, value)])
    }

    /// Waits for the answers of several nodes to one request, which has one id for all: a node of
    /// Cassandra that is to pass it on gives it its own id for whomever, whatever it was told where
    /// that is one other (`MutationVerbHandler.forwardToLocalNodes`).
    pub fn wait_for_all(&mut self, verb: Verb, expires_at: i64, all: Vec<(Address, T)>) -> u64 {
        let mut id = self.next_id();
        // one that has waited for 2^32 messages keeps its id
        while all.iter().any(|(to, _)| self.waiting.contains_key(&(*to, id))) {
            id = self.next_id();
        }
        for (to, value) in all {
            self.by_time.insert((expires_at, to, id));
            self.waiting.insert((to, id), Waiting { verb, expires_at, value });
        }
        id
    }

    /// An answer came: what was to become of it; none if nobody waits for such a one.
    pub fn answered(&mut self, from: Address, id: u64, answer: Verb) -> Option<T> {
        let waiting = self.waiting.get(&(from, id))?;
        let is_answer = waiting.verb.answer() == Some(answer);
        if !is_answer && answer != Verb::FailureRsp {
            return None;
        }
        self.take(from, id)
    }

    /// Nobody waits for this answer any more.
    pub fn take(&mut self, from: Address, id: u64) -> Option<T> {
        let waiting = self.waiting.remove(&(from, id))?;
        self.by_time.remove(&(waiting.expires_at, from, id));
        Some(waiting.value)
    }

    /// The next request whose time is over: to whom it was, and what was to become of its answer.
    pub fn expired(&mut self, now_millis: i64) -> Option<(Address, u64, T)> {
        let (expires_at, to, id) = self.by_time.first().copied()?;
        if expires_at > now_millis {
            return None;
        }
        Some((to, id, self.take(to, id)?))
    }

    /// When the next one's time is over.
    pub fn next_expiry(&self) -> Option<i64> {
        self.by_time.first().map(|(expires_at, ..)| *expires_at)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Does none wait?
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: u8) -> Address {
        Address::new([127, 0, 0, host], 7000)
    }

    #[test]
    fn an_answer_is_of_who_was_asked_and_of_its_kind() {
        let mut callbacks = Callbacks::new(0, 1);
        let id = callbacks.wait(node(1), Verb::ReadReq, 100, "read");
        assert_eq!(callbacks.answered(node(2), id, Verb::ReadRsp), None);
        assert_eq!(callbacks.answered(node(1), id + 1, Verb::ReadRsp), None);
        assert_eq!(callbacks.answered(node(1), id, Verb::RangeRsp), None);
        assert_eq!(callbacks.answered(node(1), id, Verb::ReadRsp), Some("read"));
        assert_eq!(callbacks.answered(node(1), id, Verb::ReadRsp), None);
        let id = callbacks.wait(node(1), Verb::MutationReq, 100, "write");
        assert_eq!(callbacks.answered(node(1), id, Verb::FailureRsp), Some("write"));
        assert!(callbacks.is_empty());
        assert_eq!(callbacks.next_expiry(), None);
    }

    #[test]
    fn ids_go_around_and_pass_over_those_that_wait() {
        let mut callbacks = Callbacks::new(0, 1);
        assert_eq!(callbacks.wait(node(1), Verb::ReadReq, 100, ()), 1);
        callbacks.last_id = MAX_ID - 1;
        assert_eq!(callbacks.wait(node(1), Verb::ReadReq, 100, ()), MAX_ID);
        assert_eq!(callbacks.wait(node(1), Verb::ReadReq, 100, ()), 2);
        assert_eq!(callbacks.len(), 3);
    }

    #[test]
    fn one_request_to_several_has_one_id() {
        let mut callbacks = Callbacks::new(0, 1);
        let first = callbacks.wait(node(2), Verb::ReadReq, 100, "read");
        callbacks.last_id = 0;
        let all = vec![(node(1), "one"), (node(2), "two")];
        let id = callbacks.wait_for_all(Verb::MutationReq, 200, all);
        assert_ne!(id, first);
        assert_eq!(callbacks.len(), 3);
        assert_eq!(callbacks.answered(node(2), id, Verb::MutationRsp), Some("two"));
        assert_eq!(callbacks.answered(node(3), id, Verb::MutationRsp), None);
        assert_eq!(callbacks.expired(100), Some((node(2), first, "read")));
        assert_eq!(callbacks.expired(200), Some((node(1), id, "one")));
    }

    #[test]
    fn an_id_tells_its_shard() {
        for shard in 0..3 {
            let mut callbacks = Callbacks::<()>::new(shard, 3);
            for last_id in [None, Some(MAX_ID - 2), Some(MAX_ID - 1), Some(MAX_ID)] {
                if let Some(last_id) = last_id {
                    callbacks.last_id = last_id - (last_id - shard as u64) % 3;
                }
                for _ in 0..3 {
                    let id = callbacks.next_id();
                    assert!((1..=MAX_ID).contains(&id));
                    assert_eq!(Callbacks::<()>::shard_of(id, 3), shard);
                }
            }
        }
    }

    #[test]
    fn those_whose_time_is_over_come_in_its_order() {
        let mut callbacks = Callbacks::new(0, 1);
        for (host, expires_at) in [(1, 30), (2, 10), (3, 20)] {
            callbacks.wait(node(host), Verb::ReadReq, expires_at, host);
        }
        assert_eq!(callbacks.next_expiry(), Some(10));
        assert_eq!(callbacks.expired(9), None);
        assert_eq!(callbacks.expired(25), Some((node(2), 2, 2)));
        assert_eq!(callbacks.expired(25), Some((node(3), 3, 3)));
        assert_eq!(callbacks.expired(25), None);
        assert_eq!(callbacks.answered(node(1), 1, Verb::ReadRsp), Some(1));
        assert_eq!(callbacks.expired(i64::MAX), None);
    }
}
