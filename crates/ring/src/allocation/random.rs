//! Tokens by chance: what a node has that allocates none.

use std::collections::BTreeSet;

use types::Token;

/// Draws in vain before the next free token is taken instead: `random` may be a poor one.
const DRAWS_MAX: u32 = 64;

/// So many tokens that nobody has yet, in their order. `random` gives 64 bits.
pub fn random_tokens(
    count: u32,
    taken: &BTreeSet<Token>,
    random: &mut dyn FnMut() -> u64,
) -> Vec<Token> {
    let mut tokens = BTreeSet::new();
    for _ in 0..count {
        let is_free = |token: &Token, tokens: &BTreeSet<Token>| {
            *token != Token::MIN && !taken.contains(token) && !tokens.contains(token)
        };
        let mut token = self::token(random);
        for _ in 0..DRAWS_MAX {
            if is_free(&token, &tokens) {
                break;
            }
            token = self::token(random);
        }
        while !is_free(&token, &tokens) {
            token = Token(token.0.wrapping_add(1));
        }
        tokens.insert(token);
    }
    tokens.into_iter().collect()
}

/// Any but the least one, which no key but the empty one has.
pub(super) fn token(random: &mut dyn FnMut() -> u64) -> Token {
    match Token(random().cast_signed()) {
        Token::MIN => Token::MAX,
        token => token,
    }
}
