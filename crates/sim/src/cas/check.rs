//! Is a history linearizable? A search after Wing and Gong, with Lowe's memory of what was tried
//! before.

use std::collections::BTreeSet;

use super::model::{Operation, Outcome, State, step};

/// Configurations that a search may try.
const TRIES_MAX: usize = 2_000_000;

/// An operation of a history.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What was asked.
    pub operation: Operation,
    /// What was answered; `None` if nobody knows, and it may have happened or not.
    pub outcome: Option<Outcome>,
    /// When it was asked.
    pub invoked: u64,
    /// When it was answered, or after when it cannot happen any more.
    pub returned: u64,
}

struct Search<'a> {
    entries: &'a [Entry],
    done: Vec<u64>,
    tried: BTreeSet<(Vec<u64>, State)>,
    /// The most operations that were put in order, for the report.
    best: usize,
}

impl Search<'_> {
    fn is_done(&self, at: usize) -> bool {
        self.done[at / 64] & (1 << (at % 64)) != 0
    }

    fn toggle(&mut self, at: usize) {
        self.done[at / 64] ^= 1 << (at % 64);
    }

    /// Puts the rest in order. `latest` is when the last of those in order so far was asked.
    fn run(&mut self, state: &State, latest: u64, depth: usize) -> Option<bool> {
        self.best = self.best.max(depth);
        let left = |search: &Self, at: &usize| !search.is_done(*at);
        let all = 0..self.entries.len();
        let open: Vec<usize> = all.filter(|at| left(self, at)).collect();
        let certain = open.iter().filter(|at| self.entries[**at].outcome.is_some());
        let Some(first_return) = certain.map(|at| self.entries[*at].returned).min() else {
            return Some(true);
        };
        for at in open {
            let entry = &self.entries[at];
            if entry.invoked >= first_return || entry.returned < latest {
                continue;
            }
            let Some(next) = step(state, &entry.operation, entry.outcome.as_ref()) else {
                continue;
            };
            if entry.outcome.is_none() && next == *state {
                continue;
            }
            let latest = latest.max(entry.invoked);
            self.toggle(at);
            if self.tried.insert((self.done.clone(), next.clone())) {
                if self.tried.len() > TRIES_MAX {
                    return None;
                }
                if self.run(&next, latest, depth + 1)? {
                    return Some(true);
                }
            }
            self.toggle(at);
        }
        Some(false)
    }
}

/// Says why a history is not linearizable.
///
/// # Errors
/// If no order explains it, or too many might.
pub fn linearizable(entries: &[Entry], initial: &State) -> Result<(), String> {
    let mut search = Search {
        entries,
        done: vec![0; entries.len().div_ceil(64)],
        tried: BTreeSet::new(),
        best: 0,
    };
    match search.run(initial, 0, 0) {
        Some(true) => Ok(()),
        None => Err(format!("{} operations have too many orders", entries.len())),
        Some(false) => {
            let around = search.best.saturating_sub(6)..(search.best + 8).min(entries.len());
            let shown: Vec<String> = entries[around]
                .iter()
                .map(|entry| {
                    let Entry { operation, outcome, invoked, returned } = entry;
                    format!("  {invoked}..{returned} {operation:?} -> {outcome:?}")
                })
                .collect();
            Err(format!("not linearizable after {} operations:\n{}", search.best, shown.join("\n")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Condition, Effect, Part, Value};
    use super::*;

    fn set(from: Value, to: u64) -> Operation {
        let effect = Effect::Set(Some(vec![to]));
        Operation::Change(vec![Part { row: 0, condition: Condition::Is(from), effect }])
    }

    fn entry(operation: Operation, outcome: Option<Outcome>, invoked: u64, returned: u64) -> Entry {
        Entry { operation, outcome, invoked, returned }
    }

    fn saw(number: Option<u64>, invoked: u64, returned: u64) -> Entry {
        let state = vec![number.map(|number| vec![number])];
        entry(Operation::Read, Some(Outcome::Saw(state)), invoked, returned)
    }

    #[test]
    fn of_two_that_race_one_wins() {
        let applied = || Some(Outcome::Applied);
        let (a, b) = (entry(set(None, 1), applied(), 1, 4), entry(set(None, 2), applied(), 2, 3));
        assert!(linearizable(&[a.clone(), b], &vec![None]).is_err());
        let refused = Some(Outcome::Refused(vec![Some(vec![1])]));
        let b = entry(set(None, 2), refused, 2, 3);
        assert!(linearizable(&[a.clone(), b], &vec![None]).is_ok());
        let refused = Some(Outcome::Refused(vec![Some(vec![7])]));
        let b = entry(set(None, 2), refused, 2, 3);
        assert!(linearizable(&[a, b], &vec![None]).is_err());
    }

    #[test]
    fn a_read_sees_what_was_answered_before() {
        let a = entry(set(None, 1), Some(Outcome::Applied), 1, 2);
        assert!(linearizable(&[a.clone(), saw(Some(1), 3, 4)], &vec![None]).is_ok());
        assert!(linearizable(&[a.clone(), saw(None, 3, 4)], &vec![None]).is_err());
        let a = Entry { returned: 5, ..a };
        assert!(linearizable(&[a, saw(None, 3, 4), saw(Some(1), 6, 7)], &vec![None]).is_ok());
    }

    #[test]
    fn what_nobody_knows_happens_in_its_time_or_never() {
        let a = entry(set(None, 1), None, 1, 10);
        let all = |reads: &[Entry]| {
            let all = [std::slice::from_ref(&a), reads].concat();
            linearizable(&all, &vec![None])
        };
        assert!(all(&[saw(None, 2, 3), saw(Some(1), 4, 5)]).is_ok());
        assert!(all(&[saw(None, 11, 12), saw(None, 13, 14)]).is_ok());
        assert!(all(&[saw(Some(1), 11, 12), saw(Some(1), 13, 14)]).is_ok());
        assert!(all(&[saw(None, 11, 12), saw(Some(1), 13, 14)]).is_err());
        assert!(all(&[saw(Some(1), 4, 5), saw(None, 6, 7)]).is_err());
    }
}
