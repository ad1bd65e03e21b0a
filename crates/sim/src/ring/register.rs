//! What is known of a place that clients write to and read: each write has a higher number than all
//! before it.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use env::Instant;

/// For so long a node may show what it has not made durable yet, and loses if it ends: the sync of
/// its log on a slow disk.
pub const SHOWN_EARLY: Duration = Duration::from_millis(400);
/// After so long a coordinator knows who missed a write, and has kept it for them.
pub const HINTED_AFTER: Duration = Duration::from_secs(5);

/// An acknowledged write of which a coordinator knows who has it.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    node: usize,
    at: Instant,
    number: i64,
}

/// A register.
#[derive(Clone, Debug, Default)]
pub struct Register {
    /// The last number that was tried.
    pub tried: i64,
    /// Numbers that delete.
    deletions: BTreeSet<i64>,
    /// The highest that was acknowledged.
    acknowledged: i64,
    /// The highest that was read, for so long that it is durable.
    seen: i64,
    /// What was read since.
    shown: VecDeque<(Instant, i64)>,
    /// What was acknowledged of late.
    fresh: Vec<Acknowledged>,
    /// The highest that hints bring to whoever missed it.
    hinted: i64,
    /// When a node last ended without having had time to.
    ended_at: Instant,
}

impl Register {
    /// The number of another write.
    pub fn next(&mut self) -> i64 {
        self.tried += 1;
        self.tried
    }

    /// A number that is no lower than another is tried.
    pub fn tries(&mut self, number: i64, deletes: bool) {
        self.tried = number;
        if deletes {
            self.deletions.insert(number);
        }
    }

    /// What a later read shows at least.
    pub fn floor(&self) -> i64 {
        let shown = self.shown.iter().map(|(_, number)| *number);
        shown.fold(self.acknowledged.max(self.seen), i64::max)
    }

    /// A write was acknowledged by a node. `is_sound`: its disk keeps what is written.
    pub fn acknowledge(&mut self, number: i64, node: usize, at: Instant, is_sound: bool) {
        self.acknowledged = self.acknowledged.max(number);
        if is_sound {
            self.fresh.push(Acknowledged { node, at, number });
        }
    }

    /// One more was added to what is counted here.
    pub fn add(&mut self) {
        self.acknowledged += 1;
    }

    /// What was acknowledged and read until now may be lost.
    pub fn forgive(&mut self) {
        (self.acknowledged, self.seen, self.hinted) = (0, 0, 0);
        self.shown.clear();
        self.fresh.clear();
    }

    /// What was shown and not acknowledged may be lost.
    pub fn forget_shown(&mut self) {
        self.shown.clear();
    }

    /// A read that began then, when the floor was `floor`, shows this, or nothing. What is wrong
    /// with that?
    pub fn read(
        &mut self,
        (floor, began): (i64, Instant),
        value: Option<i64>,
        now: Instant,
    ) -> Result<(), String> {
        // what was read may be lost with a node that had not made it durable
        let floor = floor.min(self.floor());
        let number = match value {
            Some(number) if number > self.tried || self.deletions.contains(&number) => {
                return Err(format!("{number}, which was never written"));
            }
            Some(number) => number,
            // nothing may be there as nothing was ever written
            None if floor == 0 => 0,
            None => match self.deletions.range(floor..).next() {
                Some(deletion) => *deletion,
                None => 0,
            },
        };
        if number < floor {
            let of = (self.acknowledged, self.seen, self.tried);
            return Err(format!("{value:?} instead of {floor} ({of:?} acknowledged, read, tried)"));
        }
        // one that was under way when a node ended may show what that one alone had
        if number > self.floor() && began > self.ended_at {
            self.shown.push_back((now, number));
        }
        Ok(())
    }

    /// Time has passed; what was shown before `until` is durable.
    pub fn settle(&mut self, now: Instant, until: Instant) {
        while let Some((_, number)) = self.shown.pop_front_if(|(at, _)| *at < until) {
            self.seen = self.seen.max(number);
        }
        let hinted = &mut self.hinted;
        self.fresh.retain(|fresh| {
            let is_fresh = now.since(fresh.at) < HINTED_AFTER;
            if !is_fresh {
                *hinted = fresh.number.max(*hinted);
            }
            is_fresh
        });
    }

    /// A node ends without having had time to.
    pub fn ended(&mut self, node: usize, at: Instant) {
        self.ended_at = at;
        self.shown.clear();
        self.fresh.retain(|fresh| fresh.node != node);
    }

    /// What every replica has once hints were delivered.
    pub fn hinted(&self) -> i64 {
        self.hinted
    }

    /// Does a replica that shows this have all that was acknowledged?
    pub fn has_all(&self, value: Option<i64>) -> bool {
        let floor = self.floor();
        match value {
            Some(number) => number >= floor,
            None => floor == 0 || self.deletions.range(floor..).next().is_some(),
        }
    }

    /// Does a replica that shows this have all that it must?
    pub fn is_there(&self, value: Option<i64>) -> bool {
        match value {
            Some(number) => number >= self.hinted,
            None => self.hinted == 0 || self.deletions.range(self.hinted..).next().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn what_was_acknowledged_or_shown_is_read() {
        let mut register = Register::default();
        let number = register.next();
        register.acknowledge(number, 0, at(1), true);
        assert!(register.read((1, at(2)), Some(1), at(2)).is_ok());
        assert!(register.read((1, at(2)), None, at(2)).is_err());
        assert!(register.read((1, at(2)), Some(2), at(2)).is_err());
        // tried, not acknowledged, shown
        register.next();
        assert!(register.read((1, at(3)), Some(2), at(3)).is_ok());
        assert_eq!(register.floor(), 2);
        // lost with a node that had not made it durable
        let mut lost = register.clone();
        lost.ended(1, at(3));
        assert!(lost.read((2, at(4)), Some(1), at(4)).is_ok());
        register.settle(at(1000), at(600));
        register.ended(1, at(1000));
        assert!(register.read((2, at(1001)), Some(1), at(1001)).is_err());
    }

    #[test]
    fn nothing_is_what_a_deletion_leaves() {
        let mut register = Register::default();
        let first = register.next();
        register.acknowledge(first, 0, at(1), true);
        register.tries(2, true);
        assert!(register.read((1, at(2)), None, at(2)).is_ok());
        assert_eq!(register.floor(), 2);
        assert!(register.read((2, at(3)), Some(1), at(3)).is_err());
        assert!(register.read((2, at(3)), Some(2), at(3)).is_err());
    }

    #[test]
    fn hints_bring_what_their_coordinator_lived_to_keep() {
        let mut register = Register::default();
        for node in [0, 1] {
            let number = register.next();
            register.acknowledge(number, node, at(1), true);
        }
        register.ended(1, at(2));
        register.settle(at(6000), at(5000));
        assert_eq!(register.hinted(), 1);
        assert!(register.is_there(Some(1)) && !register.is_there(None));
    }
}
