//! Which tokens a new node takes (`BootStrapper.getBootstrapTokens`).

use std::collections::{BTreeMap, BTreeSet};

use config::Config;
use env::Env;
use types::{Address, Token};

use super::error::JoinError;

/// Those of `initial_token`, or as many by chance as `num_tokens` says: none that another has.
pub(super) fn choose(
    env: &Env,
    config: &Config,
    taken: &BTreeMap<Token, Address>,
) -> Result<BTreeSet<Token>, JoinError> {
    if !config.initial_tokens.is_empty() {
        let tokens: BTreeSet<_> = config.initial_tokens.iter().copied().map(Token).collect();
        let owned = tokens.iter().find_map(|token| Some((token.0, *taken.get(token)?)));
        return match owned {
            Some((token, owner)) => Err(JoinError::TokenTaken { token, owner }),
            None => Ok(tokens),
        };
    }
    let mut tokens = BTreeSet::new();
    while tokens.len() < config.num_tokens.max(1) as usize {
        let token = Token(env.random_u64().cast_signed());
        if token != Token::MIN && !taken.contains_key(&token) {
            tokens.insert(token);
        }
    }
    Ok(tokens)
}
