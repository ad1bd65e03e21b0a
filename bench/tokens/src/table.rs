//! The table.

use crate::REPLICAS;
use crate::bound::least_largest;
use crate::figures::{Figures, SMALLEST};
use crate::grown::{Growth, Way};

/// Before the rows of rings of so many racks.
pub fn print_head(racks: usize) {
    println!(
        "\n{racks} rack(s), {REPLICAS} replicas; parts of fair shares, from {SMALLEST} nodes on"
    );
    println!(
        "tokens nodes way       largest (mean)  at best  smallest  \
         at the end       moved  neighbours"
    );
}

/// One ring's figures.
pub fn print_row(growth: &Growth, figures: &Figures) {
    let way = match growth.way {
        Way::Random => "random",
        Way::Cassandra => "cassandra",
        Way::Even => "even",
    };
    println!(
        "{:>6} {:>5} {way:<9} {:>7.3} ({:.3}) {:>8.3} {:>9.3}  {:.3} .. {:.3} {:>8.3} {:>11.1}",
        growth.tokens,
        growth.nodes,
        figures.largest,
        figures.mean_largest,
        least_largest(growth.tokens, growth.racks),
        figures.smallest,
        figures.last.1,
        figures.last.0,
        figures.moved,
        figures.neighbours,
    );
}
