//! todo
use types::Token;
use super::Newcomer;
use crate::node::Node;
pub(super) fn allocate(
    _nodes: &[Node],
    newcomer: &Newcomer<'_>,
    _replicas: u32,
    random: &mut dyn FnMut() -> u64,
) -> Vec<Token> {
    super::random::random_tokens(newcomer.num_tokens, &Default::default(), random)
}
