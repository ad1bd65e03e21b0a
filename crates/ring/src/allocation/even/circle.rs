//! Who replicates what in one data centre, kept exact while tokens come and go.
//!
//! Each range knows its replicas, and how far a walk round the ring goes to find them. A token that
//! comes or goes changes the ranges alone whose walk passes it. Shares are whole numbers: what is
//! added and taken away again leaves nothing behind.

/// Parts of the whole ring.
pub const WHOLE: u128 = 1 << 64;

/// How replicas are found: as `walk.rs` finds them, for one data centre.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Replicas of each range.
    pub replicas: usize,
    /// Do racks count?
    pub by_rack: bool,
    /// Replicas that may be in racks that have one already.
    pub repeats: usize,
}

/// Tokens, their nodes, and what these replicate.
pub struct Circle {
    rule: Rule,
    /// Rack of each node.
    racks: Vec<u16>,
    /// Tokens in their order: each ends a range.
    ends: Vec<i64>,
    /// The node of each token.
    nodes: Vec<u16>,
    /// Replicas of each range, as the walk finds them.
    found: Vec<u16>,
    /// How many tokens after the range's own each replica is found.
    ways: Vec<u32>,
    owned: Vec<u128>,
    seen_racks: Vec<u16>,
}

/// What a new token in a range would change.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// What the newcomer gains of ranges before this one.
    pub gain: f64,
    /// Who loses how much of them; whoever loses of this range is the first.
    pub losses: Vec<(u16, f64)>,
    /// Who loses the part of this range that is before the new token; none if the newcomer
    /// replicates it already.
    pub sliding: Option<u16>,
}

impl Circle {
    /// A circle of nodes in these racks, with these tokens: all different, in their order.
    pub fn new(rule: Rule, racks: Vec<u16>, tokens: &[(i64, u16)]) -> Self {
        let owned = vec![0; racks.len()];
        let length = tokens.len() * rule.replicas;
        let mut circle = Self {
            rule,
            racks,
            ends: tokens.iter().map(|token| token.0).collect(),
            nodes: tokens.iter().map(|token| token.1).collect(),
            found: vec![0; length],
            ways: vec![0; length],
            owned,
            seen_racks: Vec::new(),
        };
        for range in 0..circle.ends.len() {
            circle.walk(range);
            circle.add(range);
        }
        circle
    }

    /// Replicas of each range.
    pub fn replicas(&self) -> usize {
        self.rule.replicas
    }

    /// What looking at a range costs, and what a token costs that comes or goes, about: in tokens
    /// that walks pass. Racks have each look go over the replicas again.
    pub fn efforts(&self) -> (usize, usize) {
        let passed = || (0..self.len()).map(|range| self.reach(range) + 1);
        let look = if self.rule.by_rack { self.rule.replicas } else { 1 };
        let looks: usize = passed().map(|passed| passed * look).sum();
        // a range is passed by as many walks as pass on average, and each is walked again
        let walks: usize = passed().map(|passed| passed * passed).sum();
        (looks.div_ceil(self.len()), walks.div_ceil(self.len()))
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Is all that is kept of ranges the same?
    #[cfg(test)]
    pub fn is_same_as(&self, other: &Self) -> bool {
        (&self.ends, &self.nodes, &self.found, &self.ways, &self.owned)
            == (&other.ends, &other.nodes, &other.found, &other.ways, &other.owned)
    }

    /// Parts of the ring that each node replicates.
    pub fn owned(&self) -> &[u128] {
        &self.owned
    }

    /// The token that a range ends with.
    pub fn end(&self, range: usize) -> i64 {
        self.ends[range]
    }

    /// The token that a range begins after.
    pub fn start(&self, range: usize) -> i64 {
        self.ends[self.before(range)]
    }

    /// Parts of the ring in a range.
    pub fn size(&self, range: usize) -> u128 {
        match self.ends.len() {
            1 => WHOLE,
            _ => self.end(range).wrapping_sub(self.start(range)).cast_unsigned().into(),
        }
    }

    fn before(&self, range: usize) -> usize {
        range.checked_sub(1).unwrap_or(self.ends.len() - 1)
    }

    fn places(&self, range: usize) -> std::ops::Range<usize> {
        range * self.rule.replicas..(range + 1) * self.rule.replicas
    }

    /// How far the walk from a range goes.
    fn reach(&self, range: usize) -> usize {
        self.ways[range * self.rule.replicas + self.rule.replicas - 1] as usize
    }

    fn walk(&mut self, range: usize) {
        let (first, length) = (range * self.rule.replicas, self.ends.len());
        let (mut count, mut repeats, mut at) = (0, self.rule.repeats, range);
        self.seen_racks.clear();
        for way in 0..length {
            let node = self.nodes[at];
            at = if at + 1 == length { 0 } else { at + 1 };
            if self.found[first..first + count].contains(&node) {
                continue;
            }
            if self.rule.by_rack && !self.takes(self.racks[usize::from(node)], &mut repeats) {
                continue;
            }
            self.found[first + count] = node;
            self.ways[first + count] = way as u32;
            count += 1;
            if count == self.rule.replicas {
                return;
            }
        }
        unreachable!("{count} of {} replicas of a range", self.rule.replicas);
    }

    fn takes(&mut self, rack: u16, repeats: &mut usize) -> bool {
        if !self.seen_racks.contains(&rack) {
            self.seen_racks.push(rack);
            return true;
        }
        let may_repeat = *repeats > 0;
        *repeats = repeats.saturating_sub(1);
        may_repeat
    }

    fn add(&mut self, range: usize) {
        let size = self.size(range);
        for at in self.places(range) {
            self.owned[usize::from(self.found[at])] += size;
        }
    }

    fn withdraw(&mut self, range: usize) {
        let size = self.size(range);
        for at in self.places(range) {
            self.owned[usize::from(self.found[at])] -= size;
        }
    }

    /// Ranges before this one whose walk passes its end, nearest first.
    fn passing(&self, range: usize) -> Vec<usize> {
        let (mut passing, mut at) = (Vec::new(), range);
        for way in 1..self.ends.len() {
            at = self.before(at);
            if self.reach(at) < way {
                break;
            }
            passing.push(at);
        }
        passing
    }

    /// The range that a token lies in.
    pub fn range_of(&self, token: i64) -> usize {
        let range = self.ends.partition_point(|end| *end < token);
        if range == self.ends.len() { 0 } else { range }
    }

    /// Adds a token that nobody has.
    pub fn insert(&mut self, token: i64, node: u16) {
        let at = self.ends.partition_point(|end| *end < token);
        let split = if at == self.ends.len() { 0 } else { at };
        debug_assert_ne!(self.ends[split], token, "a token has one node");
        let mut passing = self.passing(split);
        passing.push(split);
        passing.iter().for_each(|range| self.withdraw(*range));
        let places = self.places(split);
        let (found, ways) = (self.found[places.clone()].to_vec(), self.ways[places].to_vec());
        self.ends.insert(at, token);
        self.nodes.insert(at, node);
        let place = at * self.rule.replicas;
        self.found.splice(place..place, found);
        self.ways.splice(place..place, ways);
        // what lies behind has moved on by one; the range that was split is the one after
        for range in passing {
            let range = if range >= at { range + 1 } else { range };
            if range != (at + 1) % self.ends.len() {
                self.walk(range);
            }
            self.add(range);
        }
        self.walk(at);
        self.add(at);
    }

    /// Takes the token of a range out, which must not be its node's last.
    pub fn remove(&mut self, range: usize) {
        let mut passing = self.passing(range);
        let next = (range + 1) % self.ends.len();
        passing.retain(|passing| *passing != next);
        passing.iter().chain([&range, &next]).for_each(|range| self.withdraw(*range));
        self.ends.remove(range);
        self.nodes.remove(range);
        let places = self.places(range);
        self.found.drain(places.clone());
        self.ways.drain(places);
        let now = |old: usize| if old > range { old - 1 } else { old };
        for range in passing {
            self.walk(now(range));
            self.add(now(range));
        }
        // the walk of the range that grew may have passed what is gone, if it went all the way
        self.walk(now(next));
        self.add(now(next));
    }

    /// What a new token of this node somewhere in a range would change.
    pub fn change(&self, range: usize, node: u16, change: &mut Change) {
        change.gain = 0.0;
        change.losses.clear();
        change.sliding = self.loser(range, 0, node);
        change.losses.extend(change.sliding.map(|loser| (loser, 0.0)));
        let mut at = range;
        for way in 1..self.ends.len() {
            at = self.before(at);
            // before another token of its own, all that passes both is replicated already
            if self.reach(at) < way || self.nodes[at] == node {
                break;
            }
            let Some(loser) = self.loser(at, way, node) else { continue };
            let size = self.size(at) as u64 as f64;
            change.gain += size;
            match change.losses.iter_mut().find(|loss| loss.0 == loser) {
                Some(loss) => loss.1 += size,
                None => change.losses.push((loser, size)),
            }
        }
    }

    /// Who would no longer replicate a range if the node had a token so many tokens on. None if it
    /// would not replicate it, or does already.
    fn loser(&self, range: usize, way: usize, node: u16) -> Option<u16> {
        let places = self.places(range);
        let found = &self.found[places.clone()];
        if found.contains(&node) {
            return None;
        }
        if !self.rule.by_rack {
            return found.last().copied();
        }
        self.loser_by_rack(found, &self.ways[places], way, node)
    }

    /// Whoever the walk would pass over now: it accepts none that it passed over before.
    fn loser_by_rack(&self, found: &[u16], ways: &[u32], way: usize, node: u16) -> Option<u16> {
        let rack = |node: u16| self.racks[usize::from(node)];
        let new = ways.iter().position(|found| *found as usize >= way).unwrap_or(ways.len());
        let order = || found[..new].iter().chain([&node]).chain(&found[new..]).copied();
        let mut repeats = self.rule.repeats;
        for (place, candidate) in order().enumerate() {
            let is_repeat = order().take(place).any(|before| rack(before) == rack(candidate));
            if is_repeat && repeats == 0 {
                return (candidate != node).then_some(candidate);
            }
            repeats -= usize::from(is_repeat);
        }
        found.last().copied()
    }
}
