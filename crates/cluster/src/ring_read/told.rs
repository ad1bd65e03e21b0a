//! What replicas say that they went over for one read (`service.reads.thresholds`): in parameters
//! of their answers, where `read_thresholds_enabled` has a coordinator ask for it. Where it is
//! false a client hears of what this node itself went over.

use std::collections::{BTreeMap, BTreeSet};

use internode::{FailureReason, Param, Params};
use types::{Address, Token};

use crate::scanned::{Command, Outcome, Scanned, Thing, Thresholds};

/// Who said it, and the most that one said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Count {
    nodes: BTreeSet<Address>,
    most: u64,
}

/// What was said of the reads of one partition, or of a range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    counts: BTreeMap<(Thing, Outcome), Count>,
    own: Vec<(Scanned, Token)>,
}

/// What a parameter says.
fn said(param: &Param) -> Option<(Thing, Outcome, u64)> {
    let of = |count: i64| u64::try_from(count).unwrap_or(0);
    Some(match param {
        Param::TombstoneFail(n) => (Thing::Tombstones, Outcome::Aborted, of((*n).into())),
        Param::TombstoneWarn(n) => (Thing::Tombstones, Outcome::Warned, of((*n).into())),
        Param::ReadSizeFail(n) => (Thing::Bytes, Outcome::Aborted, of(*n)),
        Param::ReadSizeWarn(n) => (Thing::Bytes, Outcome::Warned, of(*n)),
        Param::RowIndexSizeFail(n) => (Thing::RowIndexBytes, Outcome::Aborted, of(*n)),
        Param::RowIndexSizeWarn(n) => (Thing::RowIndexBytes, Outcome::Warned, of(*n)),
        Param::TooManyIndexesFail(n) => (Thing::Indexes, Outcome::Aborted, of((*n).into())),
        Param::TooManyIndexesWarn(n) => (Thing::Indexes, Outcome::Warned, of((*n).into())),
        _ => return None,
    })
}

/// Does an answer say that its replica gave up, whatever its payload?
pub(super) fn given_up(params: &Params) -> Option<FailureReason> {
    let aborted =
        params.iter().filter_map(said).find(|(_, outcome, _)| *outcome == Outcome::Aborted);
    aborted.map(|(thing, ..)| match thing {
        Thing::Tombstones => FailureReason::TooManyTombstones,
        Thing::Bytes | Thing::RowIndexBytes => FailureReason::ReadSize,
        Thing::Indexes => FailureReason::TooManyIndexes,
    })
}

impl Told {
    /// Takes in what an answer of a replica says.
    pub fn hear(&mut self, node: Address, params: &Params) {
        for (thing, outcome, most) in params.iter().filter_map(said) {
            let count = self.counts.entry((thing, outcome)).or_default();
            count.nodes.insert(node);
            count.most = count.most.max(most);
        }
    }

    /// Takes in what this node went over, up to a token.
    pub fn went_over(&mut self, scanned: Scanned, last: Token) {
        self.own.push((scanned, last));
    }

    /// Why replicas gave up, if any did.
    pub fn abortion(&self, text: &str) -> Option<String> {
        let aborted = self.counts.iter().find(|((_, outcome), _)| *outcome == Outcome::Aborted);
        aborted.map(|((thing, outcome), count)| {
            thing.message(*outcome, count.nodes.len(), count.most, text)
        })
    }

    /// What the client is told.
    pub fn messages(&self, thresholds: &Thresholds, command: Command) -> Vec<String> {
        let Command { text, tokens, .. } = &command;
        let told = self.counts.iter().map(|((thing, outcome), count)| {
            format!(
                "{} with {tokens}",
                thing.message(*outcome, count.nodes.len(), count.most, text)
            )
        });
        let mut messages: Vec<String> = told.collect();
        let mut own = command.clone();
        for (scanned, last) in &self.own {
            own.token = *last;
            messages.extend(thresholds.warnings(*scanned, &own));
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(last: u8) -> Address {
        Address::new([127, 0, 0, last], 7000)
    }

    fn command() -> Command {
        Command { text: "SELECT *".to_owned(), tokens: "token=7".to_owned(), token: Token(7) }
    }

    #[test]
    fn nodes_are_counted_and_the_most_is_told() {
        let mut told = Told::default();
        let warned = |count| Params::NONE.with(Param::TombstoneWarn(count));
        told.hear(node(1), &warned(1200));
        told.hear(node(2), &warned(1500).with(Param::ReadSizeWarn(9)));
        told.hear(node(1), &warned(1100));
        assert_eq!(told.abortion("SELECT *"), None);
        assert_eq!(
            told.messages(&Thresholds::NONE, command()),
            [
                "2 nodes scanned up to 1500 tombstones and issued tombstone warnings for query SELECT * (see tombstone_warn_threshold) with token=7",
                "1 nodes loaded over 9 bytes and issued local read size warnings for query SELECT * (see local_read_size_warn_threshold) with token=7",
            ]
        );
    }

    #[test]
    fn who_gives_up_comes_first() {
        let mut told = Told::default();
        let gave_up = Params::NONE.with(Param::TombstoneFail(100_001));
        assert_eq!(given_up(&gave_up), Some(FailureReason::TooManyTombstones));
        assert_eq!(given_up(&Params::NONE.with(Param::TombstoneWarn(5))), None);
        told.hear(node(1), &Params::NONE.with(Param::TombstoneWarn(2000)));
        told.hear(node(2), &gave_up);
        let why = "1 nodes scanned over 100001 tombstones and aborted the query SELECT * (see tombstone_failure_threshold)";
        assert_eq!(told.abortion("SELECT *").as_deref(), Some(why));
        let messages = told.messages(&Thresholds::NONE, command());
        assert_eq!(messages.first(), Some(&format!("{why} with token=7")));
        assert_eq!(messages.len(), 2);
    }
}
