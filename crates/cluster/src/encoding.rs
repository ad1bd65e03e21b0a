//! Mutations as bytes: as they go to other nodes, and into the batch log.

use std::sync::Arc;

use rows::Mutation;
use rows::codec::MutationEncoder;
use storage::StorageError;

/// A mutation as it goes to other nodes.
pub(crate) fn encoded(mutation: &Mutation) -> Result<Arc<[u8]>, StorageError> {
    let mut encoded = Vec::new();
    MutationEncoder::new().mutation(mutation, &mut encoded).map_err(unencodable)?;
    Ok(encoded.into())
}

/// What is wrong with what cannot be sent to other nodes.
pub(crate) fn unencodable(error: impl std::fmt::Display) -> StorageError {
    StorageError::Encode(error.to_string())
}
