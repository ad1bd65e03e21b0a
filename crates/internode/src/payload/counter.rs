//! COUNTER_MUTATION (`db.CounterMutation`): to the replica that is to count.

use rows::Mutation;
use rows::codec::{MutationDecoder, MutationEncoder};
use types::{Reader, WriteBytes};

use super::{LayoutOf, PayloadError, WriteError};

/// Changes of counters, and how many replicas must have them before the answer.
#[derive(Clone, Debug)]
pub struct CounterMutation {
    /// The changes.
    pub mutation: Mutation,
    /// Name of the consistency level, as `LOCAL_QUORUM`.
    pub consistency: String,
}

impl CounterMutation {
    /// Reads it.
    pub fn read(
        reader: &mut Reader<'_>,
        decoder: &mut MutationDecoder,
        layout_of: LayoutOf<'_>,
    ) -> Result<Self, PayloadError> {
        let mutation = decoder.mutation(reader, layout_of)?;
        Ok(Self { mutation, consistency: reader.utf()? })
    }

    /// Appends it.
    pub fn write(
        &self,
        encoder: &mut MutationEncoder,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        encoder.mutation(&self.mutation, out)?;
        Ok(out.put_utf(&self.consistency)?)
    }
}
