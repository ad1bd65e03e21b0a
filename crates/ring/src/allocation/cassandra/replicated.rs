//! Tokens where replicas are on several groups of nodes (`ReplicationAwareTokenAllocator`): of the
//! middles of all ranges, those that lower the variance of what nodes and tokens own the most.
//!
//! Sums are made in Cassandra's order: of two middles that are as good, the last bits decide.

use super::java::Queue;
use super::wheel::{midpoint, size};
use super::{Exhausted, Members, splits};

/// What a node owns.
#[derive(Clone, Default)]
struct Unit {
    group: usize,
    owned: f64,
    tokens: f64,
}

/// A token of the ring, or one that may become one.
#[derive(Clone)]
struct Vnode {
    token: i64,
    unit: usize,
    before: usize,
    after: usize,
    /// Where what it replicates begins.
    start: i64,
    /// The nearest place of a new token that what it replicates would begin at instead.
    threshold: i64,
    owned: f64,
}

/// A middle of a range.
#[derive(Clone)]
struct Candidate {
    vnode: Vnode,
    /// The token whose range it splits.
    split: usize,
}

/// Groups that a walk has met.
struct Met {
    round: Vec<u32>,
    now: u32,
    count: usize,
}

impl Met {
    fn new(groups: usize) -> Self {
        Self { round: vec![0; groups], now: 0, count: 0 }
    }

    fn clear(&mut self) {
        self.now += 1;
        self.count = 0;
    }

    fn has(&self, group: usize) -> bool {
        self.round[group] == self.now
    }

    /// Is it the first of this group?
    fn add(&mut self, group: usize) -> bool {
        let is_new = !self.has(group);
        if is_new {
            self.round[group] = self.now;
            self.count += 1;
        }
        is_new
    }
}

struct Allocator {
    replicas: usize,
    newcomer: usize,
    units: Vec<Unit>,
    vnodes: Vec<Vnode>,
    candidates: Vec<Candidate>,
    /// What a token owns at best.
    target: f64,
    met: Met,
    /// Walks backward, which go on while one forward does.
    met_before: Met,
    /// Nodes that a candidate changes, in the order in which they were met, and what they own then.
    changed: Vec<(usize, f64)>,
}

/// Tokens of a node that is not among the members yet.
pub fn allocate(
    members: &Members,
    count: usize,
    first: impl FnOnce() -> i64,
) -> Result<Vec<i64>, Exhausted> {
    let mut ring = members.ring.clone();
    let is_early = members.nodes_with_tokens() < members.replicas
        || count > ring.len()
        || members.groups_with_tokens() < members.replicas;
    if is_early {
        return Ok(splits::generate(&mut ring, members.newcomer(), count, first));
    }
    Allocator::new(members, count).choose(count)
}

impl Allocator {
    fn new(members: &Members, count: usize) -> Self {
        let target = members.replicas as f64 / (members.ring.len() + count) as f64;
        let newcomer = members.newcomer();
        let mut units: Vec<Unit> = members
            .nodes
            .iter()
            .map(|node| Unit { group: node.group, ..Unit::default() })
            .collect();
        members.ring.values().for_each(|node| units[*node].tokens += 1.0);
        units[newcomer].owned = count as f64 * target;
        units[newcomer].tokens = count as f64;
        let length = members.ring.len();
        let vnodes = members.ring.iter().enumerate().map(|(at, (token, unit))| Vnode {
            token: *token,
            unit: *unit,
            before: (at + length - 1) % length,
            after: (at + 1) % length,
            start: 0,
            threshold: 0,
            owned: 0.0,
        });
        let groups = members.nodes.iter().map(|node| node.group + 1).max().unwrap_or(0);
        let mut allocator = Self {
            replicas: members.replicas,
            newcomer,
            units,
            vnodes: vnodes.collect(),
            candidates: Vec::new(),
            target,
            met: Met::new(groups),
            met_before: Met::new(groups),
            changed: Vec::new(),
        };
        (0..length).for_each(|at| allocator.adjust(at));
        allocator.candidates = (0..length).map(|at| allocator.candidate(at)).collect();
        (0..length).for_each(|at| allocator.place_candidate(at));
        allocator
    }

    fn candidate(&self, at: usize) -> Candidate {
        let split = &self.vnodes[at];
        let token = midpoint(self.vnodes[split.before].token, split.token);
        let vnode = Vnode { token, unit: self.newcomer, owned: self.target, ..split.clone() };
        Candidate { vnode, split: at }
    }

    fn choose(mut self, count: usize) -> Result<Vec<i64>, Exhausted> {
        let mut queue = Queue::default();
        for at in 0..self.candidates.len() {
            let better = self.improvement(at, 1.0 / count as f64);
            queue.push(better, at);
        }
        let mut tokens = Vec::with_capacity(count);
        let (_, mut best) = queue.pop().ok_or(Exhausted)?;
        loop {
            self.confirm(best);
            tokens.push(self.candidates[best].vnode.token);
            if tokens.len() == count {
                return Ok(tokens);
            }
            let part = (tokens.len() as f64 + 1.0) / count as f64;
            best = loop {
                let (_, at) = queue.pop().ok_or(Exhausted)?;
                // what was taken meanwhile may have made it worse
                let better = self.improvement(at, part);
                if queue.peek().is_none_or(|(next, _)| better >= next) {
                    break at;
                }
                queue.push(better, at);
            };
        }
    }

    fn group(&self, unit: usize) -> usize {
        self.units[unit].group
    }

    /// Where what a token of this unit replicates begins, with the threshold, if this token is the
    /// one before it.
    fn starts(&mut self, token: i64, unit: usize, before: usize) -> (i64, i64) {
        let (own, new) = (self.group(unit), self.group(self.newcomer));
        let mut threshold = token;
        let mut at = before;
        self.met_before.clear();
        let (start, last) = loop {
            let vnode = &self.vnodes[at];
            let (here, group) = (vnode.token, self.units[vnode.unit].group);
            at = vnode.before;
            if !self.met_before.add(group) {
                continue;
            }
            if self.met_before.count >= self.replicas {
                break (here, group);
            }
            threshold = here;
            if group == own {
                break (here, group);
            }
        };
        if new == own {
            threshold = token;
        } else if new != last && self.met_before.has(new) {
            threshold = start;
        }
        (start, threshold)
    }

    /// Looks anew at what a token replicates.
    fn adjust(&mut self, at: usize) {
        let Vnode { token, unit, before, owned: old, .. } = self.vnodes[at];
        let (start, threshold) = self.starts(token, unit, before);
        let owned = size(start, token);
        let vnode = &mut self.vnodes[at];
        (vnode.start, vnode.threshold, vnode.owned) = (start, threshold, owned);
        self.units[unit].owned += owned - old;
    }

    fn place_candidate(&mut self, at: usize) {
        let Candidate { vnode: Vnode { token, unit, .. }, split } = self.candidates[at];
        let before = self.vnodes[split].before;
        let (start, threshold) = self.starts(token, unit, before);
        let vnode = &mut self.candidates[at].vnode;
        (vnode.start, vnode.threshold) = (start, threshold);
    }

    /// By how much a candidate lowers the variance of tokens and nodes; the newcomer's own counts
    /// by this part alone.
    fn improvement(&mut self, at: usize, part: f64) -> f64 {
        self.changed.clear();
        let Candidate { vnode, split } = &self.candidates[at];
        let (new, mut next) = (vnode.token, *split);
        let mut change = 0.0;
        change += self.change((vnode.unit, vnode.owned), size(vnode.start, new));
        self.met.clear();
        while self.met.count < self.replicas {
            let vnode = &self.vnodes[next];
            next = vnode.after;
            if !self.met.add(self.units[vnode.unit].group) {
                continue;
            }
            let (token, unit, owned) = (vnode.token, vnode.unit, vnode.owned);
            let start = further(vnode.threshold, new, token);
            change += self.change((unit, owned), size(start, token));
        }
        -(change + self.change_of_units(part))
    }

    /// Notes what a unit loses or gains with a token, and returns the change of the token's share
    /// of the variance.
    fn change(&mut self, (unit, old): (usize, f64), new: f64) -> f64 {
        let Unit { owned, tokens, .. } = self.units[unit];
        match self.changed.iter_mut().find(|changed| changed.0 == unit) {
            Some(changed) => changed.1 += new - old,
            None => self.changed.push((unit, owned + (new - old))),
        }
        (squared(new - self.target) - squared(old - self.target)) / squared(tokens)
    }

    fn change_of_units(&self, part: f64) -> f64 {
        let mut sum = 0.0;
        for (place, (unit, new)) in self.changed.iter().enumerate().rev() {
            let Unit { owned, tokens, .. } = self.units[*unit];
            let difference =
                squared(new / tokens - self.target) - squared(owned / tokens - self.target);
            sum += if place == 0 { difference * part } else { difference };
        }
        sum
    }

    /// Takes a candidate into the ring.
    fn confirm(&mut self, at: usize) {
        let Candidate { vnode, split } = self.candidates[at].clone();
        self.unlink(at);
        let place = self.vnodes.len();
        let before = self.vnodes[split].before;
        self.vnodes.push(Vnode { before, after: split, ..vnode });
        self.vnodes[before].after = place;
        self.vnodes[split].before = place;
        self.adjust(place);
        self.met.clear();
        let (mut next, mut candidate) = (split, at);
        while self.met.count < self.replicas {
            candidate = self.candidates[candidate].vnode.after;
            self.place_candidate(candidate);
            let vnode = &self.vnodes[next];
            let (here, group) = (next, self.units[vnode.unit].group);
            next = vnode.after;
            if self.met.add(group) {
                self.adjust(here);
            }
        }
    }

    /// Takes a candidate from among the others; it still knows its neighbours.
    fn unlink(&mut self, at: usize) {
        let Vnode { before, after, .. } = self.candidates[at].vnode;
        self.candidates[before].vnode.after = after;
        self.candidates[after].vnode.before = before;
    }
}

/// The one of two tokens that is further before a third; that one itself is none.
fn further(one: i64, other: i64, end: i64) -> i64 {
    match () {
        () if one == end => other,
        () if other == end => one,
        () if size(one, end) > size(other, end) => one,
        () => other,
    }
}

fn squared(number: f64) -> f64 {
    number * number
}
