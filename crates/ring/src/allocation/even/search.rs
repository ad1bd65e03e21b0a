//! The search for the newcomer's tokens.

use std::collections::BTreeSet;

use types::Token;

use super::aims::{Figures, aims};
use super::circle::{Change, Circle, WHOLE};
use super::parabola::Parabola;

/// Ranges that walks pass during one search, about: a second of a core.
const STEPS_MAX: usize = 16_000_000;
/// Times that each token is taken out and chosen anew.
const ROUNDS_MAX: usize = 4;
/// What the newcomer takes at most, in fair shares of its own: what moves is what it takes.
const SHARE_MAX: f64 = 1.08;
/// Added to the cost of a place beyond that: there may be none before it.
const OVER: f64 = 1e6;
/// A round that lowers the cost by less is the last one.
const GAIN_MIN: f64 = 1e-9;

/// A place for a token.
#[derive(Clone, Copy, Debug)]
struct Place {
    range: usize,
    /// Parts of the ring between the range's start and the token.
    way: f64,
    /// What it adds to the sum of squares.
    cost: f64,
}

/// A search.
pub struct Search<'a> {
    circle: Circle,
    figures: Figures,
    /// Parts of the ring that each node is to have.
    aims: Vec<f64>,
    /// How much more each node has, in parts of its aim.
    excess: Vec<f64>,
    newcomer: usize,
    /// Parts of the ring that the newcomer may have.
    most: f64,
    taken: &'a BTreeSet<Token>,
    count: usize,
    rounds: usize,
    /// Every so manieth range is looked at.
    stride: usize,
    looks: usize,
}

impl<'a> Search<'a> {
    /// For the last node of the circle, which is to have so many tokens. `shares` are parts of the
    /// ring, which is 1.
    pub fn new(circle: Circle, shares: &[f64], taken: &'a BTreeSet<Token>, count: u32) -> Self {
        let (count, newcomer) = (count as usize, shares.len() - 1);
        let figures = Figures::new(circle.replicas(), circle.len(), count);
        let (look, walk) = circle.efforts();
        // to choose again, a token is taken out, put in, and at worst both once more
        let rounds = (STEPS_MAX / (4 * count * walk)).min(ROUNDS_MAX);
        let steps = circle.len() * look * count * (1 + rounds);
        let mut search = Self {
            aims: aims(circle.owned(), shares, count * circle.replicas(), figures.spread),
            excess: Vec::new(),
            newcomer,
            most: SHARE_MAX * shares[newcomer] * WHOLE as f64,
            circle,
            figures,
            taken,
            count,
            rounds,
            stride: steps.div_ceil(STEPS_MAX).max(1),
            looks: 0,
        };
        search.weigh();
        search
    }

    /// The newcomer's tokens; fewer only if the ring has no room for more.
    pub fn run(mut self) -> Vec<i64> {
        let mut tokens = Vec::with_capacity(self.count);
        for number in 1..=self.count {
            // with some of its tokens it is to have some of its share
            let part = number as f64 / self.count as f64;
            tokens.extend(self.place(part));
        }
        for _ in 0..self.rounds {
            if !self.improve(&mut tokens) {
                break;
            }
        }
        tokens
    }

    /// Chooses each token again. False if that was in vain.
    fn improve(&mut self, tokens: &mut [i64]) -> bool {
        let mut is_better = false;
        for token in tokens {
            let (old, before) = (*token, self.penalty());
            self.remove(old);
            let Some(new) = self.place(1.0) else {
                self.insert(old);
                continue;
            };
            if self.penalty() < before - GAIN_MIN {
                *token = new;
                is_better = true;
            } else {
                self.remove(new);
                self.insert(old);
            }
        }
        is_better
    }

    fn penalty(&self) -> f64 {
        self.excess.iter().map(|excess| excess * excess).sum()
    }

    fn weigh(&mut self) {
        let owned = self.circle.owned().iter().zip(&self.aims);
        self.excess = owned.map(|(owned, aim)| *owned as f64 / aim - 1.0).collect();
    }

    fn insert(&mut self, token: i64) {
        self.circle.insert(token, self.newcomer as u16);
        self.weigh();
    }

    fn remove(&mut self, token: i64) {
        self.circle.remove(self.circle.range_of(token));
        self.weigh();
    }

    fn place(&mut self, part: f64) -> Option<i64> {
        let best = self.best(part)?;
        let token = self.token(best)?;
        self.insert(token);
        Some(token)
    }

    /// The best place of those looked at, if the newcomer is to have this part of its aim.
    fn best(&mut self, part: f64) -> Option<Place> {
        let (mut change, mut best) = (Change::default(), None::<Place>);
        let first = self.looks % self.stride;
        self.looks += 1;
        for range in (first..self.circle.len()).step_by(self.stride) {
            self.circle.change(range, self.newcomer as u16, &mut change);
            let place = self.judge(range, part, &change);
            if best.is_none_or(|best| place.cost < best.cost) && self.token(place).is_some() {
                best = Some(place);
            }
        }
        best
    }

    /// The best place in a range.
    fn judge(&self, range: usize, part: f64, change: &Change) -> Place {
        let size = self.circle.size(range) as f64;
        let owned = self.circle.owned()[self.newcomer] as f64 + change.gain;
        let aim = self.aims[self.newcomer];
        let own = self.excess[self.newcomer] + 1.0 - part;
        let slides = if change.sliding.is_some() { 1.0 } else { 0.0 };
        let mut cost = Parabola::default();
        cost.add_change(own, change.gain / aim, slides / aim);
        for (node, loss) in &change.losses {
            let node = usize::from(*node);
            let slides = if change.sliding == Some(node as u16) { 1.0 } else { 0.0 };
            cost.add_change(self.excess[node], -loss / self.aims[node], -slides / self.aims[node]);
        }
        cost.add(&self.figures.of_range(size));
        let room = if change.sliding.is_some() { self.most - owned } else { size };
        let margin = size * self.figures.margin;
        let way = cost.lowest().min(room).clamp(margin, size - margin);
        let over = (owned + slides * way - self.most) / self.most;
        let fine = if over > 0.0 { OVER * (1.0 + over) } else { 0.0 };
        Place { range, way, cost: cost.at(way) + fine }
    }

    /// A token at this place that nobody has; none if there is none left in the range.
    fn token(&self, place: Place) -> Option<i64> {
        let (start, end) = (self.circle.start(place.range), self.circle.end(place.range));
        // of one token, all others are in its range
        let size = end.wrapping_sub(start).wrapping_sub(1).cast_unsigned();
        let is_inside =
            |token: i64| token.wrapping_sub(start).wrapping_sub(1).cast_unsigned() < size;
        let mut token = start.wrapping_add_unsigned((place.way as u64).max(1));
        while is_inside(token) && self.taken.contains(&Token(token)) {
            token = token.wrapping_add(1);
        }
        is_inside(token).then_some(token)
    }
}
