//! What must hold, and what is aimed at.

use crate::bound::least_largest;
use crate::figures::Figures;
use crate::grown::{Growth, Way};

/// The largest part with 16 tokens, at any size.
const LARGEST: f64 = 1.05;
/// What is aimed at there.
const LARGEST_AIM: f64 = 1.03;
/// What moves at most when a node comes, over its fair share.
const MOVED: f64 = 1.10;
/// Cassandra's default.
const DEFAULT: u32 = 16;
/// Tokens that are to be as even as that.
const FEW: u32 = 4;
/// Beyond that much, Cassandra is called evener: where racks are circles of their own, both are at
/// what is possible, but for where the sizes of the first nodes happen to lie.
const ROUNDING: f64 = 0.005;

/// What was measured.
#[derive(Default)]
pub struct Demands {
    rows: Vec<(Growth, Figures)>,
    /// `num_tokens`, racks, and nodes that `Method::Cassandra` gave other tokens than Cassandra.
    different: Vec<(u32, usize, usize)>,
}

impl Demands {
    /// Notes a row.
    pub fn add(&mut self, growth: Growth, figures: Figures) {
        self.rows.push((growth, figures));
    }

    /// Notes how many nodes of a ring differ from Cassandra's.
    pub fn same(&mut self, tokens: u32, racks: usize, different: usize) {
        self.different.push((tokens, racks, different));
    }

    fn of(&self, way: Way, tokens: u32, racks: usize) -> Option<Figures> {
        let is_it =
            |growth: &Growth| (growth.way, growth.tokens, growth.racks) == (way, tokens, racks);
        self.rows.iter().find(|row| is_it(&row.0)).map(|row| row.1)
    }

    /// Prints each, and says whether all that must hold do.
    pub fn print(&self) -> bool {
        println!();
        let mut holds = true;
        for (growth, even) in self.rows.iter().filter(|row| row.0.way == Way::Even) {
            holds &= self.print_even(growth, even);
        }
        for racks in [1, 3] {
            self.print_few(racks);
        }
        for (tokens, racks, different) in &self.different {
            let what = format!("{} of Cassandra's choices are others by our form", different);
            holds &= must(*different == 0, &at(*tokens, *racks, &what));
        }
        holds
    }

    fn print_even(&self, growth: &Growth, even: &Figures) -> bool {
        let Growth { tokens, racks, .. } = *growth;
        let (largest, mean) = (even.largest, even.mean_largest);
        let what = format!("a step moves {:.3} of a share, at most {MOVED}", even.moved);
        let mut holds = must(even.moved <= MOVED, &at(tokens, racks, &what));
        if tokens == DEFAULT {
            let what = format!("the largest is {largest:.3}, at most {LARGEST}");
            holds &= must(largest <= LARGEST, &at(tokens, racks, &what));
            let least = least_largest(tokens, racks);
            let what = format!("the same, aimed at {LARGEST_AIM}; in the long run over {least:.3}");
            aim(largest <= LARGEST_AIM, &at(tokens, racks, &what));
        }
        if let Some(random) = self.of(Way::Random, tokens, racks) {
            let what = format!("the largest is {largest:.3}, by chance {:.3}", random.largest);
            holds &= must(largest <= random.largest, &at(tokens, racks, &what));
        }
        if let Some(cassandra) = self.of(Way::Cassandra, tokens, racks) {
            let what = format!("the largest is {largest:.3}, Cassandra's {:.3}", cassandra.largest);
            let is_even = largest <= cassandra.largest + ROUNDING;
            holds &= must(is_even, &at(tokens, racks, &what));
            let theirs = cassandra.mean_largest;
            let what = format!("the mean of the largest is {mean:.4}, Cassandra's {theirs:.4}");
            // a single token leaves no choice but between bad places
            let what = at(tokens, racks, &what);
            match tokens {
                1 => aim(mean <= theirs, &what),
                _ => holds &= must(mean <= theirs, &what),
            }
        }
        holds
    }

    /// Few tokens beside Cassandra's default.
    fn print_few(&self, racks: usize) {
        let (few, default) =
            (self.of(Way::Even, FEW, racks), self.of(Way::Cassandra, DEFAULT, racks));
        let (Some(few), Some(default)) = (few, default) else { return };
        let (ours, theirs, least) = (few.largest, default.largest, least_largest(FEW, racks));
        let what = format!(
            "the largest is {ours:.3}, Cassandra's with {DEFAULT} {theirs:.3}; \
             in the long run over {least:.3}"
        );
        aim(ours <= theirs, &at(FEW, racks, &what));
    }
}

fn at(tokens: u32, racks: usize, what: &str) -> String {
    format!("{tokens} tokens, {racks} rack(s): {what}")
}

fn must(holds: bool, what: &str) -> bool {
    println!("{} {what}", if holds { "holds:   " } else { "FAILS:   " });
    holds
}

fn aim(holds: bool, what: &str) {
    println!("{} {what}", if holds { "reached: " } else { "not reached:" });
}
