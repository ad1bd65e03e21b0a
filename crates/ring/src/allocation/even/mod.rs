//! Tokens that make what nodes replicate as even as can be.
//!
//! The newcomer's tokens are chosen one by one, each where it lowers the sum of squares of all
//! nodes' deviations from their fair shares the most; then each is taken out and chosen again,
//! knowing the others. Within a range that sum is a parabola of the token's place, so that the best
//! place is computed and not searched. What a place would change is exact: see `circle.rs`.

mod aims;
mod circle;
#[cfg(test)]
mod laws;
mod parabola;
mod search;
mod spread;
mod there;

use std::collections::BTreeSet;

use types::Token;

use super::Newcomer;
use super::random::random_tokens;
use super::shares::fair_shares;
use crate::node::Node;
use circle::Circle;
use search::Search;
use there::There;

/// Tokens of the newcomer.
pub(super) fn allocate(
    nodes: &[Node],
    newcomer: &Newcomer<'_>,
    replicas: u32,
    random: &mut dyn FnMut() -> u64,
) -> Vec<Token> {
    let others = nodes.iter().flat_map(|node| node.tokens.iter().copied());
    let mut taken: BTreeSet<Token> = others.chain([Token::MIN]).collect();
    let there = There::new(nodes, newcomer);
    let chosen = match there.rule(replicas) {
        None => spread::spread(&there.tokens, newcomer.num_tokens, &taken, random),
        Some(rule) => {
            let (there, rule) = there.reduced(rule);
            let shares = fair_shares(&there.nodes, rule.replicas as u32);
            let racks = there.nodes.iter().map(|node| node.rack).collect();
            let circle = Circle::new(rule, racks, &there.tokens);
            Search::new(circle, &shares, &taken, newcomer.num_tokens).run()
        }
    };
    let mut tokens: Vec<Token> = chosen.into_iter().map(Token).collect();
    taken.extend(&tokens);
    // a ring without room between its tokens has some elsewhere
    let missing = newcomer.num_tokens - tokens.len() as u32;
    tokens.extend(random_tokens(missing, &taken, random));
    tokens
}
