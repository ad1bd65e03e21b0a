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
            let Growth { tokens, racks, .. } = *growth;
            let at = format!("{tokens} tokens, {racks} rack(s)");
            holds &= must(
                even.moved <= MOVED,
                &format!("{at}: a step moves {:.3} of a share, at most {MOVED}", even.moved),
            );
            if tokens == DEFAULT {
                holds &= must(
                    even.largest <= LARGEST,
                    &format!("{at}: the largest is {:.3}, at most {LARGEST}", even.largest),
                );
                aim(
                    even.largest <= LARGEST_AIM,
                    &format!(
                        "{at}: the largest is {:.3}, aimed at {LARGEST_AIM}; in the long run it is at least {:.3}",
                        even.largest,
                        least_largest(tokens, racks)
                    ),
                );
            }
            if let Some(random) = self.of(Way::Random, tokens, racks) {
                holds &= must(
                    even.largest <= random.largest,
                    &format!(
                        "{at}: the largest is {:.3}, by chance {:.3}",
                        even.largest, random.largest
                    ),
                );
            }
            if let Some(cassandra) = self.of(Way::Cassandra, tokens, racks) {
                holds &= must(
                    even.largest <= cassandra.largest + ROUNDING,
                    &format!(
                        "{at}: the largest is {:.3}, Cassandra's {:.3}",
                        even.largest, cassandra.largest
                    ),
                );
            }
        }
        for racks in [1, 3] {
            self.print_few(racks);
        }
        for (tokens, racks, different) in &self.different {
            holds &= must(
                *different == 0,
                &format!(
                    "{tokens} tokens, {racks} rack(s): {different} nodes get other tokens than from Cassandra's classes"
                ),
            );
        }
        holds
    }

    /// Few tokens beside Cassandra's default.
    fn print_few(&self, racks: usize) {
        let (few, default) =
            (self.of(Way::Even, FEW, racks), self.of(Way::Cassandra, DEFAULT, racks));
        let (Some(few), Some(default)) = (few, default) else { return };
        let least = least_largest(FEW, racks);
        aim(
            few.largest <= default.largest,
            &format!(
                "{FEW} tokens, {racks} rack(s): the largest is {:.3}, Cassandra's with {DEFAULT} is {:.3}; in the long run it is at least {least:.3}",
                few.largest, default.largest
            ),
        );
    }
}

fn must(holds: bool, what: &str) -> bool {
    println!("{} {what}", if holds { "holds:   " } else { "FAILS:   " });
    holds
}

fn aim(holds: bool, what: &str) {
    println!("{} {what}", if holds { "reached: " } else { "not reached:" });
}
